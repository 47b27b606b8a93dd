/* SPDX-License-Identifier: MIT */
/* callgrind_annotate reads the export: totals, self costs, inclusive costs of what does not recurse. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { everything, exported, figures, hostile, hostileWeights, imported, recording, run, sorted } from "./export_files.mjs";

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

test("hostile names keep their weights", () => {
    const text = readFileSync(exported("callgrind", hostile("bad"), ".callgrind"), "utf8");
    const costs = [...text.matchAll(/^fn=.*\n\d+ \d+ (\d+)$/gm)].map((row) => Number(row[1]));
    assert.deepEqual(costs.sort((a, b) => a - b), hostileWeights);
    assert.equal(annotate(exported("callgrind", hostile("bad"), ".callgrind")).get(""), hostileWeights.reduce((a, b) => a + b));
});
