/* SPDX-License-Identifier: MIT */
/* speedscope reads its own format, chrome's, pprof and folded text: totals, threads and self times. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { everything, exported, figures, hostile, hostileWeights, recording, sorted } from "./export_files.mjs";
import { messages, read } from "./speedscope_reader.mjs";

const input = recording("all", ...everything);
const wanted = figures(input);
const tidOf = (name) => Number(/\((?:tid )?(\d+)\)/.exec(name)[1]); /* "made (12)" or "... (tid 12)" */

test("its own format: merged, by thread, over time", async () => {
    const profiles = await read(exported("speedscope", input, ".speedscope.json"));
    assert.deepEqual(messages, []);
    const [merged, ...others] = profiles;
    assert.equal(merged.total, wanted.total);
    assert.deepEqual(sorted(merged.self), sorted(wanted.self));
    const sampled = others.filter((profile) => !/over time/.test(profile.name));
    assert.deepEqual(sorted(new Map(sampled.map((profile) => [tidOf(profile.name), profile.total]))), sorted(wanted.threads));
    for (const profile of sampled)
        assert.deepEqual(sorted(profile.self), sorted(wanted.threadSelf.get(tidOf(profile.name))));
    assert.equal(others.length, 2 * sampled.length);
});

test("chrome: every thread, no event out of place", async () => {
    const profiles = await read(exported("chrome", input, ".json"));
    assert.deepEqual(messages, []);
    assert.deepEqual(profiles.map((profile) => tidOf(profile.name)).sort(), [...wanted.threads.keys()].sort());
});

test("pprof: the total and, where nothing is inlined, self times", async () => {
    const [profile] = await read(exported("pprof", input, ".pb.gz"));
    assert.equal(profile.total, wanted.total);
    const plain = recording("plain", "samples=1000", "stacks=60", "seed=3");
    const [simple] = await read(exported("pprof", plain, ".pb.gz"));
    assert.deepEqual(sorted(simple.self), sorted(figures(plain).self));
});

test("folded text", async () => {
    const [profile] = await read(exported("folded", input, ".collapsedstack.txt", "--unit=ns"));
    assert.equal(profile.total, wanted.total);
    assert.deepEqual(sorted(profile.self), sorted(wanted.self));
});

test("hostile names keep their weights", async () => {
    const bad = hostile("bad");
    for (const [format, suffix] of [["speedscope", ".speedscope.json"], ["pprof", ".pb.gz"]]) {
        const [profile] = await read(exported(format, bad, suffix));
        assert.deepEqual([...profile.self.values()].filter((weight) => weight).sort((a, b) => a - b), hostileWeights, format);
    }
});
