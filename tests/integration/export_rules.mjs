/* SPDX-License-Identifier: MIT */
/* Rules of the formats themselves: equal input gives equal bytes, JSON and XML are well formed, events are
 * balanced and in order, inferred events and losses are told. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { everything, exported, figures, gapped, hostile, hostileWeights, imported, recording, run, unsampled } from "./export_files.mjs";

const formats = ["folded", "pprof", "chrome", "perfetto", "speedscope", "firefox", "callgrind", "svg"];
const input = recording("all", ...everything);
const bad = hostile("bad");

test("equal input, equal bytes, wherever and whenever", () => {
    for (const format of [...formats, "events", "intervals", "html"]) {
        const elsewhere = run(process.env.LAPSE, ["export", `--to=${format}`, input], { encoding: "buffer",
            env: { TZ: "Asia/Tokyo", LC_ALL: "C.UTF-8", LC_NUMERIC: "de_DE.UTF-8", COLUMNS: "20", HOME: "/" } });
        assert.ok(readFileSync(exported(format, input, "")).equals(elsewhere), format);
    }
});

test("folded: roots of processes, threads and labels, and lines, change no sum", () => {
    const { total } = figures(input), options = ["--processes", "--threads", "--labels", "--lines", "--label-root=request"];
    for (let choice = 0; choice < 1 << options.length; choice += 3)
        for (const [unit, scale] of [["ns", 1], ["us", 1000]]) {
            const chosen = options.filter((_, bit) => choice >> bit & 1);
            const lines = readFileSync(exported("folded", input, "", `--unit=${unit}`, ...chosen), "utf8").trimEnd().split("\n");
            const stacks = lines.map((line) => line.slice(0, line.lastIndexOf(" ")));
            const off = Math.abs(sum(lines.map((line) => Number(line.slice(line.lastIndexOf(" "))))) * scale - total);
            assert.ok(off <= lines.length * (scale - 1), `${chosen} ${unit}: off by ${off} ns`);
            assert.equal(new Set(stacks).size, stacks.length, "a stack is one line");
        }
});

test("JSON and UTF-8 are well formed whatever the names", () => {
    const strict = new TextDecoder("utf-8", { fatal: true });
    for (const from of [input, bad])
        for (const format of ["chrome", "speedscope", "firefox"]) {
            const text = strict.decode(readFileSync(exported(format, from, ".json")));
            JSON.parse(text);
            assert.ok(!text.includes("</script"), format);
        }
    for (const format of ["folded", "callgrind", "svg"])
        strict.decode(readFileSync(exported(format, bad, "")));
});

const sum = (weights) => weights.reduce((a, b) => a + b, 0);
const sums = (pairs) => [...pairs.reduce((of, [tid, weight]) => of.set(tid, (of.get(tid) ?? 0) + weight), new Map())].sort();

test("weights add up to those of the report, in every format that has them", () => {
    for (const from of [input, bad, unsampled("late")]) {
        const { total, threads } = figures(from), wanted = [...threads].sort();
        const text = (format, ...options) => readFileSync(exported(format, from, "", ...options), "utf8");
        assert.equal(sum(text("folded", "--unit=ns").trimEnd().split("\n").map((line) => Number(/ (\d+)$/.exec(line)[1]))), total);
        assert.equal(Number(/^(?:totals|summary): \d+ (\d+)$/m.exec(text("callgrind"))[1]), total);
        assert.equal(Math.round(1e6 * /<title>all \(\d+ samples, ([\d.]+) ms/.exec(text("svg"))[1]), total - total % 1000);
        const [merged, ...others] = JSON.parse(text("speedscope")).profiles;
        assert.equal(sum(merged.weights), total);
        const sampled = others.filter(({ type }) => type === "sampled");
        assert.deepEqual(sums(sampled.map(({ name, weights }) => [Number(/\((\d+)\)$/.exec(name)[1]), sum(weights)])), wanted);
        const rows = JSON.parse(text("firefox")).threads.map(({ tid, samples }) => ({ tid, ...samples }));
        assert.deepEqual(sums(rows.map(({ tid, weight }) => [tid, sum(weight.map((ms) => Math.round(ms * 1e6)))])), wanted);
        assert.deepEqual(sums(rows.map(({ tid, threadCPUDelta }) => [tid, sum(threadCPUDelta.slice(1))])), wanted);
        assert.deepEqual(rows.map(({ time, length }) => time.length === length && time.every((ms, i) => !i || ms >= time[i - 1])), rows.map(() => true));
        assert.equal(figures(imported("back", readFileSync(exported("pprof", from, "")), "pprof")).total, total);
    }
});

function chromeEvents(from) {
    return JSON.parse(readFileSync(exported("chrome", from, ".json"), "utf8")).traceEvents;
}

test("chrome: balanced, in order, named, from zero", () => {
    const events = chromeEvents(input), open = new Map(), last = new Map();
    for (const { ph, tid, ts, name } of events) {
        if (ph !== "B" && ph !== "E")
            continue;
        assert.ok(ts >= (last.get(tid) ?? 0));
        last.set(tid, ts);
        const stack = open.get(tid) ?? [];
        open.set(tid, stack);
        if (ph === "B")
            stack.push(name);
        else
            assert.equal(stack.pop(), name);
    }
    for (const stack of open.values())
        assert.deepEqual(stack, []);
    assert.deepEqual([...open.keys()].sort(), [...figures(input).threads.keys()].sort());
    assert.ok(Math.max(...last.values()) < 60e6);
    const named = events.filter(({ ph, name }) => ph === "M" && name === "thread_name");
    assert.equal(named.length, 4);
    assert.equal(events[0].cat, undefined);
    assert.equal(events.filter(({ ph }) => ph === "b").length, 4);
});

const gap = gapped("gap");

test("chrome: a thread that was off the CPU has its calls closed, and opened as inferred", () => {
    const edges = chromeEvents(gap).filter(({ ph }) => ph === "B" || ph === "E").map(({ ph, ts, name, cat }) => [ph, Math.round(ts) < 1e6, name, cat]);
    assert.deepEqual(edges.slice(0, 6), [
        ["B", true, "main", undefined], ["B", true, "leaf", undefined], ["E", true, "leaf", undefined], ["E", true, "main", undefined],
        ["B", false, "main", "inferred"], ["B", false, "leaf", "inferred"]], JSON.stringify(edges));
});

/* Perfetto lets an end with a category or a name close the innermost open slice that has the same ones, not
 * the innermost slice; one that finds none closes nothing. */
test("chrome: every end closes what it should in Perfetto", () => {
    for (const from of [input, bad, gap]) {
        const open = new Map();
        for (const { ph, tid, cat, name } of chromeEvents(from)) {
            const stack = open.get(tid) ?? [];
            open.set(tid, stack);
            if (ph === "B")
                stack.push({ cat, name });
            else if (ph === "E")
                assert.equal(stack.findLastIndex((slice) => (!cat || slice.cat === cat) && (!name || slice.name === name)), stack.length - 1);
            if (ph === "E")
                stack.pop();
        }
    }
});

test("svg: well formed, self-contained, with the figures", () => {
    for (const from of [input, bad]) {
        const path = exported("svg", from, ".svg");
        run("xmllint", ["--noout", path]);
        const text = readFileSync(path, "utf8");
        assert.doesNotMatch(text, /<script|href=|url\(/);
    }
    const text = readFileSync(exported("svg", imported("small", "main;a 1\nmain;b 3\n"), ".svg"), "utf8");
    assert.match(text, /<title>main \(4 samples, 40\.000 ms, 100\.00%\)<\/title>/);
    assert.match(text, /<title>b \(3 samples, 30\.000 ms, 75\.00%\)<\/title>/);
    const widths = [...text.matchAll(/<title>(\w+) \([^<]*<\/title><rect x="[\d.]+" y="[\d.]+" width="([\d.]+)"/g)].map(([, name, width]) => [name, Number(width)]);
    const width = Object.fromEntries(widths);
    assert.equal(width.b, 3 * width.a);
    assert.equal(width.main, 4 * width.a);
});

test("folded text: sums by whoever reads it", () => {
    const total = readFileSync(exported("folded", bad, ".folded", "--unit=ns"), "utf8").trimEnd().split("\n").map((line) => Number(/ (\d+)$/.exec(line)[1]));
    assert.deepEqual(total.sort((a, b) => a - b), hostileWeights);
});

test("folded: lines of the calls that lead there, whose sums are those of the names alone", () => {
    const text = (...options) => readFileSync(exported("folded", input, "", "--unit=ns", ...options), "utf8");
    const sums = (lines) => {
        const stacks = new Map();
        for (const line of lines.trimEnd().split("\n")) {
            const at = line.lastIndexOf(" "), stack = line.slice(0, at).replace(/(?<=[^;]):\d+(?=;|$)/g, "");
            stacks.set(stack, (stacks.get(stack) ?? 0) + Number(line.slice(at + 1)));
        }
        return [...stacks].sort();
    };
    const lined = text("--lines");
    assert.match(lined, /made_inline:5 \d+$/m);
    assert.deepEqual(sums(lined), sums(text()));
});

test("text formats: hostile names stay on their lines", () => {
    for (const format of ["folded", "events", "intervals"]) {
        const text = readFileSync(exported(format, bad, ""), "utf8");
        assert.ok(!/[\0-\x08\x0b-\x1f\x7f]/.test(text), format);
        assert.equal(text.split("\n").filter((line) => line.includes("right to left")).length > 0, true, format);
    }
    assert.equal(readFileSync(exported("folded", bad, ""), "utf8").trimEnd().split("\n").length, hostileWeights.length);
});
