/* SPDX-License-Identifier: MIT */
/* Google's pprof reads the export: totals, self times with inlined functions, labels, and sums. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { join } from "node:path";
import { everything, exported, figures, folder, hostile, hostileWeights, recording, run, sorted } from "./export_files.mjs";

const env = { ...process.env, PPROF_TMPDIR: folder, HOME: folder };
const pprof = (...args) => run(process.env.PPROF, ["-symbolize=none", ...args], { env });
const all = ["-nodecount=0", "-nodefraction=0", "-edgefraction=0"];
const input = recording("all", ...everything);
const wanted = figures(input);
const file = exported("pprof", input, ".pb.gz");

/* Flat nanoseconds by name. */
function top(...args) {
    const self = new Map();
    for (const line of pprof("-top", "-sample_index=cpu", "-unit=ns", ...all, ...args).split("\n")) {
        const row = /^ *(\d+)(?:ns)? +[\d.]+% +[\d.]+% +\d+(?:ns)? +[\d.]+%  (.*?)(?: \(inline\))?(?: \(partial-inline\))?$/s.exec(line);
        if (row)
            self.set(row[2], (self.get(row[2]) ?? 0) + Number(row[1]));
    }
    return self;
}

test("self time of every function", () => {
    assert.deepEqual(sorted(top(file)), sorted(wanted.self));
});

test("head: program, build id, period, remarks", () => {
    assert.match(pprof("-top", file), /^File: made\nBuild ID: [0-9a-f]+\nType: cpu\n/);
    const raw = pprof("-raw", file);
    assert.match(raw, /^PeriodType: cpu nanoseconds\nPeriod: 5000000\n/m);
    assert.match(raw, /^samples\/count cpu\/nanoseconds$/m);
    assert.match(pprof("-comments", exported("pprof", hostile("noted"), ".pb.gz")), /had no times/);
});

test("threads and user labels", () => {
    const tags = pprof("-tags", "-sample_index=cpu", file);
    for (const tid of wanted.threads.keys())
        assert.match(tags, new RegExp(`\\b${tid}\\b`));
    assert.match(tags, /^ *thread: Total/m);
    assert.equal([...tags.matchAll(/^ *\w+: Total/gm)].length > 3, true, tags);
    for (const [tid, weight] of wanted.threads)
        assert.equal([...top(`-tagfocus=tid=${tid}`, file).values()].reduce((a, b) => a + b, 0), weight);
});

test("two profiles add up", () => {
    const sum = join(folder, "sum.pb.gz");
    pprof("-proto", `-output=${sum}`, file, exported("pprof", input, ".pb.gz"));
    assert.deepEqual(sorted(top(sum)), sorted(new Map([...wanted.self].map(([name, weight]) => [name, 2 * weight]))));
});

test("hostile names keep their weights", () => {
    assert.deepEqual([...top(exported("pprof", hostile("bad"), ".pb.gz")).values()].filter((weight) => weight).sort((a, b) => a - b), hostileWeights);
});
