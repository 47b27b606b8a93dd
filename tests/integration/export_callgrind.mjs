/* SPDX-License-Identifier: MIT */
/* callgrind_annotate reads the export: totals, self costs, inclusive costs of what does not recurse. */
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { test } from "node:test";
import { everything, exported, figures, folder, hostile, hostileWeights, imported, recording, run, sorted } from "./export_files.mjs";

/* Costs in ns by function, over files and objects; the program's total under "". */
function annotate(file, ...args) {
    const costs = new Map();
    for (const line of run(process.env.CALLGRIND_ANNOTATE, ["--threshold=100", "--show=ns", "--sort=ns", "--auto=no", ...args, file]).split("\n")) {
        const row = /^ *([\d,]+)(?: \( *[\d.]+%\))? +(?:PROGRAM (TOTALS)|(?:\(unknown\)|[^: ]*[^: <]*):(.*?)(?: \[[^\]]*\])?)$/.exec(line);
        if (!row)
            continue;
        const name = row[2] ? "" : row[3];
        costs.set(name, (costs.get(name) ?? 0) + Number(row[1].replaceAll(",", "")));
    }
    return costs;
}

test("self cost of every function, and the total", () => {
    const input = recording("all", ...everything);
    const wanted = figures(input);
    const costs = annotate(exported("callgrind", input, ".callgrind"));
    assert.equal(costs.get(""), wanted.total);
    costs.delete("");
    assert.deepEqual(sorted(costs), sorted(wanted.self));
});

test("inclusive costs, each sample once", () => {
    /* No function calls itself: of those the format cannot say more than the sum over callers. */
    const input = imported("flat", "main;a;b 3\nmain;a 4\nmain;c;b 5\nmain;c;d;b 6\nother;b 7\n");
    const inclusive = new Map(Object.entries({ main: 18, a: 7, b: 21, c: 11, d: 6, other: 7 }).map(([name, count]) => [name, count * 1e7]));
    const costs = annotate(exported("callgrind", input, ".callgrind"), "--inclusive=yes");
    costs.delete("");
    assert.deepEqual(sorted(costs), sorted(inclusive));
});

test("a file for each thread: its costs, its number, its name", () => {
    const input = recording("threads", ...everything), wanted = figures(input);
    const base = exported("callgrind", input, ".threads", "--threads");
    const files = readdirSync(folder).filter((name) => name.startsWith(basename(base) + "-")).sort();
    assert.deepEqual(files, ["01", "02", "03", "04"].map((number) => `${basename(base)}-${number}`));
    const totals = [], tids = [...wanted.threads.keys()].sort((a, b) => a - b);
    for (const [index, name] of files.entries()) {
        const text = readFileSync(join(folder, name), "utf8"), costs = annotate(join(folder, name));
        assert.match(text, new RegExp(`^thread: ${index + 1}\ndesc: Thread: (made|worker-1)$`, "m"));
        totals.push(costs.get(""));
        costs.delete("");
        assert.deepEqual(sorted(costs), sorted(wanted.threadSelf.get(tids[index])));
    }
    assert.deepEqual(totals, tids.map((tid) => wanted.threads.get(tid)));
});

test("hostile names keep their weights", () => {
    const text = readFileSync(exported("callgrind", hostile("bad"), ".callgrind"), "utf8");
    const costs = [...text.matchAll(/^fn=.*\n\d+ \d+ (\d+)$/gm)].map((row) => Number(row[1]));
    assert.deepEqual(costs.sort((a, b) => a - b), hostileWeights);
    assert.equal(annotate(exported("callgrind", hostile("bad"), ".callgrind")).get(""), hostileWeights.reduce((a, b) => a + b));
});
