/* SPDX-License-Identifier: MIT */
/* page [SAMPLES [NODES]]: lapse's own page of 1,000,000 samples over 100,000 nodes, in headless Chromium
 * without a GPU. Printed: what opening costs, and what a frame costs while views pan, zoom and follow a
 * range of time that is being dragged. Costs are CPU time of the page's thread, script and drawing, each
 * frame by itself: that other programs are busy does not count. Fails where opening takes more than 1 s,
 * or one frame in twenty more than 16 ms. Needs the packages that the tests install (make test). */
import { statSync } from "node:fs";
import { test } from "node:test";
import { html, open, recording } from "../tests/integration/page_browser.mjs";

const [samples = 1000000, nodes = 100000] = process.argv.slice(2).map(Number);
const FRAMES = 60;

/* What moves: a view, and what is done once a frame, with i from 0 on. `at` is in shares of the time
 * that was sampled. */
const RANGE = `choice.filter({ range: [0.2 + i * 0.004, 0.3 + i * 0.006].map(at) }, true)`,
    MOVES = [
        ["nothing moves", "1", ``],
        ["flame graph, drawn anew", "1", `flame.surface.dirty()`],
        ["flame graph, zooming", "1", `flame.zoomAt(flame.picture.total * 0.1, 0.95)`],
        ["flame graph, panning", "1", `flame.pan(0.02)`],
        ["flame graph, range dragged", "1", RANGE, `flame.zoomTo(flame.picture.root)`],
        ["callers, range dragged", "1", RANGE, `choice.draw({ mode: "callers" })`],
        ["timeline, panning", "2", `timeline.pan(0.004)`, `timeline.setWindow(at(0.1), at(0.6))`],
        ["timeline, zooming", "2", `timeline.zoomAt(at(0.3), 0.97)`],
        ["timeline, range dragged", "2", RANGE],
        ["functions, range dragged", "3", RANGE],
    ];

/* CPU seconds of the page's thread so far. */
async function busy(session) {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value;
}

/* Costs of frames in ms, in order of size: from one frame's drawing to the next one's. */
async function frames(page, session, move, first = "") {
    const prelude = `const { choice } = lapsePage, { flame, timeline } = lapsePage.views, { time, start } = choice.profile.samples,
        at = (share) => time[0] + share * (time[start[1] - 1] - time[0]);`;
    await page.evaluate(`(() => { ${prelude} ${first}; })()`);
    await page.waitForTimeout(800);
    const costs = [];
    let before = await busy(session);
    for (let i = 0; i < FRAMES; i++) {
        await page.evaluate(
            `new Promise((done) => { const i = ${i}; ${prelude} ${move}; requestAnimationFrame(done); })`,
        );
        const after = await busy(session);
        costs.push((after - before) * 1000);
        before = after;
    }
    return costs.sort((a, b) => a - b);
}

test("page", async () => {
    const input = recording("bench", { threads: 8, samples, stacks: nodes, depth: 40, walk: 1, leaf_pcs: 1 }),
        path = html(input),
        page = await open(path),
        session = await page.context().newCDPSession(page),
        problems = [];
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const before = await busy(session);
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.ready);
    const opening = (await busy(session)) - before;
    if (opening > 1) problems.push("opening is slow");
    console.log(`${samples} samples, ${nodes} nodes, ${(statSync(path).size / 1e6).toFixed(1)} MB: ` +
        `opens with ${(opening * 1000).toFixed(0)} ms of CPU time, by the clock in ${page.openedIn} ms`);
    for (const [what, key, move, first] of MOVES) {
        await page.keyboard.press(key);
        const costs = await frames(page, session, move, first),
            [median, late, worst] = [0.5, 0.95, 1].map((share) => costs[Math.ceil(FRAMES * share) - 1]);
        console.log(`${what.padEnd(28)} ${median.toFixed(1).padStart(5)} ms CPU a frame, 95th of a hundred ${late.toFixed(1)}, most ${worst.toFixed(1)}`);
        if (late > 16) problems.push(`${what}: too slow for 60 frames a second`);
    }
    problems.push(...page.problems);
    await page.close();
    if (problems.length) throw new Error(problems.join("; "));
});
