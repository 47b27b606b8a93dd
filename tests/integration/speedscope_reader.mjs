/* SPDX-License-Identifier: MIT */
/* speedscope's own import code, taken out of its published page and run without a browser: the page is
 * one script whose import module is loaded on demand; a hook is put where that happens, the rest of the
 * page fails for want of a document, which does not matter. */
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { createContext, runInContext } from "node:vm";

const release = join(process.env.NODE_FOLDER, "node_modules/speedscope/dist/release");
const script = readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
const source = readFileSync(join(release, script), "utf8")
    .replace(/var [\w$]+=Promise\.resolve\(\)\.then\(\(\)=>\(([\w$]+)\(\),([\w$]+)\)\);/, "globalThis.importModule=()=>($1(),$2);$&");
export const messages = [];
const say = (...words) => { messages.push(words.join(" ")); };
const nothing = new Proxy(function () {}, { get: (target, key) => (key === Symbol.toPrimitive ? () => "" : nothing), apply: () => nothing, construct: () => nothing, set: () => true });
const context = createContext({
    console: { log: say, warn: say, error: say, assert: console.assert }, TextDecoder, TextEncoder, setTimeout, clearTimeout, Uint8Array, ArrayBuffer, performance, URL, Blob, atob, btoa, Promise,
    document: nothing, navigator: { userAgent: "", platform: "" }, location: { hash: "", protocol: "file:", href: "file:///" },
    addEventListener: () => {}, matchMedia: () => nothing,
});
context.self = context.window = context;
try {
    runInContext(source, context);
} catch { /* the page itself */ }

/* The profiles of a file: name, total, self weight by frame name. speedscope's remarks, other than what it
 * takes the file for, are in `messages`. */
export async function read(path) {
    const bytes = readFileSync(path);
    messages.length = 0;
    const group = await context.importModule().importProfilesFromArrayBuffer(basename(path), bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
    const remarks = messages.filter((message) => !/^Importing as/.test(message));
    messages.splice(0, messages.length, ...remarks);
    return group && Array.from(group.profiles, (profile) => {
        const self = new Map();
        profile.forEachFrame((frame) => self.set(frame.name, (self.get(frame.name) ?? 0) + frame.getSelfWeight()));
        return { name: profile.getName(), total: profile.getTotalNonIdleWeight(), self };
    });
}
