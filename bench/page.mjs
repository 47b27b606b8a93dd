/* SPDX-License-Identifier: MIT */
/* page [SAMPLES [NODES]]: lapse's own page of 1,000,000 samples over 100,000 nodes, in headless Chromium
 * without a GPU. Printed: time until it can be used, and what a frame costs while the timeline pans and the
 * flame graph is drawn anew, by the clock and in CPU time of the page's thread, which does not count that
 * other programs are busy. Fails where CPU time is above 2 s for opening or misses 60 frames a second.
 * Needs the packages that the tests install (make test). */
import { test } from "node:test";
import { html, open, recording } from "../tests/integration/page_browser.mjs";

const [samples = 1000000, nodes = 100000] = process.argv.slice(2).map(Number);

/* CPU seconds of the page's thread so far. */
async function busy(session) {
    const { metrics } = await session.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration").value;
}

/* Costs of drawing in ms while `step` is done a hundred times, a frame each. */
const frames = (page, view, step) =>
    page.evaluate(
        async ([view, step]) => {
            const shown = lapsePage.views[view],
                { surface } = shown,
                draw = surface.draw.bind(surface),
                costs = [],
                move = new Function("view", "i", "profile", step);
            surface.draw = () => {
                const began = performance.now();
                draw();
                costs.push(performance.now() - began);
            };
            for (let i = 0; i < 100; i++) {
                move(shown, i, lapsePage.choice.profile);
                await new Promise(requestAnimationFrame);
            }
            surface.draw = draw;
            costs.sort((a, b) => a - b);
            return [costs.length, costs[costs.length >> 1], costs[Math.floor(costs.length * 0.95)]];
        },
        [view, step],
    );

test("page", async () => {
    const input = recording("bench", { threads: 8, samples, stacks: nodes, depth: 40, walk: 1, leaf_pcs: 1 }),
        page = await open(html(input)),
        session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const before = await busy(session);
    await page.reload();
    await page.waitForFunction(() => document.documentElement.dataset.ready);
    const opening = (await busy(session)) - before;
    let slow = opening > 2;
    console.log(`${samples} samples, ${nodes} nodes: open in ${page.openedIn} ms, CPU ${(opening * 1000).toFixed(0)} ms`);
    const report = async (what, ...how) => {
        const began = await busy(session),
            [count, median, late] = await frames(page, ...how),
            cost = (((await busy(session)) - began) * 1000) / 100;
        console.log(`${what}: CPU ${cost.toFixed(1)} ms a frame; drawn ${count} times, median ${median.toFixed(1)} ms, 95th of a hundred ${late.toFixed(1)} ms`);
        slow ||= cost > 1000 / 60;
    };
    await page.keyboard.press("2");
    await page.waitForTimeout(500);
    await page.evaluate(() => lapsePage.views.timeline.setWindow(lapsePage.choice.profile.duration * 0.1, lapsePage.choice.profile.duration * 0.6));
    await report("timeline, panning", "timeline", "view.pan(0.004)");
    await page.keyboard.press("1");
    await page.waitForTimeout(500);
    await report("flame graph, redrawn", "flame", "view.surface.dirty()");
    await page.close();
    if (slow || page.problems.length) throw new Error(page.problems.join("; ") || "too slow");
});
