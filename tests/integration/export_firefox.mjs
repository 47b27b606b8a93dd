/* SPDX-License-Identifier: MIT */
/* The Firefox Profiler's own loader, in its command line: it upgrades the file and answers from it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { everything, exported, figures, folder, hostile, hostileWeights, recording, run, sorted, unsampled } from "./export_files.mjs";

const program = join(process.env.NODE_FOLDER, "node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js");
const env = { ...process.env, HOME: folder, PROFILER_CLI_SESSION_DIR: join(folder, "sessions") };
mkdirSync(env.PROFILER_CLI_SESSION_DIR);
const ask = (...args) => run(process.execPath, [program, ...args], { env, timeout: 60000 });

/* The loader is a process that answers questions; it is started here, and not by its own `load`, which
 * gives up when it is not ready within half a second. Its log says when it is: a question that comes
 * too early makes it forget the session. */
const loaders = [];
after(() => loaders.forEach((loader) => loader.kill()));
async function load(file, session) {
    const log = join(env.PROFILER_CLI_SESSION_DIR, `${session}.log`);
    loaders.push(spawn(process.execPath, [program, "--daemon", file, "--session", session], { env, stdio: "ignore" }));
    for (let attempt = 0; !(existsSync(log) && /Profile loaded successfully/.test(readFileSync(log, "utf8"))); attempt++) {
        assert.ok(attempt < 300, "the loader did not load the profile within a minute");
        await setTimeout(200);
    }
    return (...args) => JSON.parse(ask(...args, "--session", session, "--json"));
}

/* Milliseconds of the viewer as whole nanoseconds. */
const ns = (ms) => Math.round(ms * 1e6);

function selfOf(thread) {
    const self = new Map();
    const { functions } = json("thread", "functions", "--thread", thread, "--include-idle", "--limit", "100000");
    for (const { name, selfSamples } of functions)
        self.set(name, (self.get(name) ?? 0) + ns(selfSamples));
    return self;
}

const input = recording("all", ...everything);
const wanted = figures(input);
let json, threads;
before(async () => {
    json = await load(exported("firefox", input, ".firefox.json"), "all");
    threads = json("thread", "list").threads;
});

test("threads", () => {
    assert.deepEqual(threads.map((thread) => thread.tid).sort(), [...wanted.threads.keys()].sort());
});

test("self time of every function of every thread", () => {
    for (const thread of threads)
        assert.deepEqual(sorted(selfOf(thread.threadHandle)), sorted(wanted.threadSelf.get(thread.tid)));
});

/* The viewer adds up what is between samples: the first has no time of its own. */
function cpuOf(ask) {
    const threads = ask("profile", "info", "--all").processes.flatMap((process) => process.threads);
    return new Map(threads.map(({ tid, cpuMs }) => [tid, ns(cpuMs)]));
}

test("CPU time of every thread", () => {
    assert.deepEqual(sorted(cpuOf(json)), sorted(wanted.threads));
});

test("CPU time that was not sampled, or that is more than the time that passed", async () => {
    const late = unsampled("late");
    const lateJson = await load(exported("firefox", late, ".firefox.json"), "late");
    assert.deepEqual(sorted(cpuOf(lateJson)), sorted(figures(late).threads));
    assert.deepEqual([...figures(late).threads].sort(), [[5, 22000000], [6, 296500001]]);
});

test("categories, inlined frames and spans arrive", () => {
    const { categoryBreakdown } = json("thread", "samples", "--thread", threads[0].threadHandle, "--include-idle");
    const names = categoryBreakdown.categories.map((category) => category.name);
    for (const name of ["User", "Library", "Guessed", "Missing"])
        assert.ok(names.includes(name), `${name} among ${names}`);
    const markers = ask("thread", "markers", "--session", "all", "--thread", threads[0].threadHandle);
    assert.match(markers, /request +1 markers/);
});

test("hostile names keep their weights", async () => {
    const hostileJson = await load(exported("firefox", hostile("bad"), ".firefox.json"), "hostile");
    const { functions } = hostileJson("thread", "functions", "--thread", "t-0", "--limit", "100");
    assert.deepEqual(functions.map(({ selfSamples }) => ns(selfSamples)).filter((weight) => weight).sort((a, b) => a - b), hostileWeights);
});
