/* SPDX-License-Identifier: MIT */
/* What the tests of export formats share: made recordings, exports of them, and the figures that every
 * consumer must read back: those of `lapse report`. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const folder = mkdtempSync(join(tmpdir(), "lapse-export-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

export function run(program, args, options = {}) {
    return execFileSync(program, args, { encoding: "utf8", maxBuffer: 1 << 28, stdio: ["ignore", "pipe", "pipe"], ...options });
}

/* A recording of the generator: fields as of struct lapse_test_recording. */
export function recording(name, ...fields) {
    const path = join(folder, `${name}.lapse`);
    run(process.env.MAKE_RECORDING, [path, ...fields]);
    return path;
}

/* Two processes of two threads with inlined functions, lines, labels, spans, cut and late samples. */
export const everything = ["processes=2", "threads=2", "samples=2000", "stacks=150", "depth=30", "lines=1", "labels=1", "spans=1", "cut=1", "late=1", "seed=7"];

/* A recording of folded text (a count stands for 10 ms) or of what else import reads. */
export function imported(name, text, from = "folded") {
    const input = join(folder, `${name}.folded`), path = join(folder, `${name}.lapse`);
    writeFileSync(input, text);
    run(process.env.LAPSE, ["import", `--from=${from}`, "-o", path, input]);
    return path;
}

/* Two threads: two samples of which the second stands for more time than has passed, and CPU time alone that
 * was not sampled. */
export function unsampled(name) {
    const sample = (ids, time, weight, frames) => `prog ${ids} ${time}: ${weight} cpu-clock: \n${frames.map((frame) => `\t10 ${frame}+0x0 (prog)\n`).join("")}\n`;
    return imported(name, sample("5", "1.000000", 10000000, ["leaf", "main"]) + sample("5", "1.004000", 12000000, ["leaf", "main"]) +
        sample("5/6", "1.006000", 296500001, ["[not sampled]"]), "perf");
}

/* 20 ms of one call, a second of nothing, 20 ms of the same. */
export function gapped(name) {
    return imported(name, [1, 1.01, 2, 2.01].map((time) => `prog 5 ${time.toFixed(6)}: 10000000 cpu-clock: \n\t10 leaf+0x0 (prog)\n\t20 main+0x0 (prog)\n\n`).join(""), "perf");
}

/* Names that break out of badly written formats. Their weights tell them apart where a format
 * had to change a name. */
export function hostile(name) {
    const text = Buffer.concat([
        Buffer.from("main;</script><b>&\"'\\ 3\nmain;\u202eright to left\u2028line 5\nmain;"), Buffer.from([0xff, 0xc0, 0xaf, 0xed, 0xa0, 0x80]),
        Buffer.from(` 7\nmain;${"outer<".repeat(2000)}int${">".repeat(2000)} 11\nmain;_Zmangled\u00e9\t\u0001 13\nmain;(9) 17\n`),
    ]);
    return imported(name, text);
}
export const hostileWeights = [3, 5, 7, 11, 13, 17].map((count) => count * 10000000);

let made = 0;
/* Export to a file whose name ends with `suffix`. */
export function exported(format, input, suffix, ...options) {
    const path = join(folder, `${++made}${suffix}`);
    run(process.env.LAPSE, ["export", `--to=${format}`, ...options, "-o", path, input]);
    return path;
}

/* What `lapse report` says: nanoseconds in all, by leaf function, by thread id, by both. */
export function figures(input) {
    const report = (...args) => JSON.parse(run(process.env.LAPSE, ["report", "--format=json", "--limit=0", ...args, input]));
    const selfOf = (...args) => new Map(report(...args).functions.map((row) => [row.function, row.self_weight]));
    const threads = new Map(report("--threads").threads.map((row) => [row.tid, row.weight]));
    return {
        total: report().weight, self: selfOf(), threads,
        threadSelf: new Map([...threads.keys()].map((tid) => [tid, selfOf(`--thread=${tid}`)])),
    };
}

export function sorted(map) {
    return [...map].filter(([, value]) => value).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
}
