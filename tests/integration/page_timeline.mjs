/* SPDX-License-Identifier: MIT */
/* Timeline, time range, threads, labels and table of lapse's own page, on a recording with times. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { html, lapse, open, recording, sumsOfPage } from "./page_browser.mjs";

const made = recording("timeline", {
    processes: 2,
    threads: 3,
    samples: 6000,
    stacks: 200,
    labels: 1,
    spans: 1,
    lines: 1,
});
const ask = (page, expression) =>
    page.evaluate(`(() => { const choice = lapsePage.choice, profile = choice.profile, samples = profile.samples,
    timeline = lapsePage.views.timeline; return ${expression}; })()`);

test("a drag on the strip chooses the samples of that time", async () => {
    const page = await open(html(made)),
        strip = await (await page.$(".overview canvas")).boundingBox();
    const whole = (await sumsOfPage(page)).whole;
    await page.mouse.move(strip.x + strip.width * 0.02, strip.y + 20);
    await page.mouse.down();
    await page.mouse.move(strip.x + strip.width * 0.05, strip.y + 20);
    await page.mouse.move(strip.x + strip.width * 0.1, strip.y + 20);
    await page.mouse.up();
    const range = await ask(page, "choice.range"),
        duration = await ask(page, "profile.duration");
    assert.ok(
        Math.abs(range[0] / duration - 0.02) < 0.005 && Math.abs(range[1] / duration - 0.1) < 0.005,
        String(range),
    );
    const chosen = await sumsOfPage(page);
    const counted = await ask(
        page,
        `samples.time.reduce((sum, time, i) => time >= choice.range[0] && time < choice.range[1] ? sum + samples.weight[i] : sum, 0)`,
    );
    assert.equal(chosen.whole, counted);
    assert.ok(chosen.whole > 0 && chosen.whole < whole);
    /* The flame graph follows. */
    await page.waitForFunction(
        (total) => lapsePage.views.flame.picture.total === total,
        counted,
    );
    await page.click("#range");
    assert.equal((await sumsOfPage(page)).whole, whole);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("a range that moves counts what counting anew does, and the graph is that of a picture made at once", async () => {
    const page = await open(html(made));
    for (const mode of ["callees", "callers"]) {
        const wrong = await ask(
            page,
            `(async () => {
            const { flame } = lapsePage.views, bad = [], ranges = [[0.1, 0.2], [0.12, 0.3], [0.05, 0.11], [0.5, 0.9], [0.2, 0.95], [0.2, 0.21], [0, 1], [0.4, 0.4001]];
            choice.draw({ mode: "${mode}" });
            for (const range of ranges) {
                choice.filter({ range: range.map((share) => share * profile.duration) }, true);
                const anew = choice.weigh();
                for (const part of ["weight", "count"]) if (choice.leaves[part].some((value, i) => value !== anew[part][i])) bad.push([range, part]);
                if (choice.leaves.squares.some((value, i) => Math.abs(value - anew.squares[i]) > 1e-9 * anew.squares[i])) bad.push([range, "squares"]);
                if (choice.leaves.whole !== anew.whole || choice.leaves.wholeCount !== anew.wholeCount) bad.push([range, "whole"]);
                while (flame.isBehind()) await new Promise(requestAnimationFrame);
                const at = flame.picture, other = new at.constructor(choice.weights, choice.mode, -1);
                other.aim(at.low, at.high, (at.high - at.low) / at.least);
                other.make(Infinity);
                at.make(Infinity);
                if (at.total !== anew.whole) bad.push([range, "total"]);
                if (other.levels.length !== at.levels.length) bad.push([range, "levels"]);
                other.levels.forEach((level, depth) => { for (let i = 0; i < level.size; i++) for (const part of ["start", "total", "count", "func"])
                    if (level[part][i] !== at.levels[depth][part][i]) bad.push([range, depth, i, part]); });
            }
            return bad.slice(0, 5); })()`,
        );
        assert.deepEqual(wrong, []);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("lanes draw the calls that the samples hold", async () => {
    const page = await open(html(made));
    await page.keyboard.press("2");
    await page.waitForTimeout(300);
    assert.equal(await ask(page, "timeline.lanes.length"), 6);
    /* Every pixel of a lane, exact or not, is the colour of the call open at that time. */
    const wrong = await ask(
        page,
        `(() => { const painter = timeline.painter, thread = timeline.lanes[0].thread, first = samples.start[thread], columns = 900, bad = [];
        const from = samples.time[first], until = samples.time[first + 200], image = painter.paint(thread, from, until, columns).image, words = new Uint32Array(image.data.buffer);
        for (let i = first; i < first + 199; i++) {
            const x0 = Math.round((samples.time[i] - from) / (until - from) * columns), x1 = Math.round((samples.time[i + 1] - from) / (until - from) * columns);
            if (x1 - x0 < 3) continue;
            let node = painter.node(i);
            const deep = painter.nodeDepth[node];
            for (let depth = deep; depth > 0; depth--, node = profile.nodeParent[node])
                if (words[(depth - 1) * columns + x0 + 1] !== choice.colours.words[profile.nodeFunction[node]]) bad.push([i, depth]);
            if (deep < image.height && words[deep * columns + x0 + 1] !== 0) bad.push([i, "below"]);
        }
        return bad; })()`,
    );
    assert.deepEqual(wrong, []);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("keys pan and zoom, a lane opens, hovering tells the interval's bounds", async () => {
    const page = await open(html(made));
    await page.keyboard.press("2");
    const before = await ask(page, "timeline.window");
    for (const key of ["w", "w", "w"]) await page.keyboard.press(key);
    const zoomed = await ask(page, "timeline.window");
    assert.ok(zoomed[1] - zoomed[0] < (before[1] - before[0]) * 0.5);
    await page.keyboard.press("d");
    assert.ok((await ask(page, "timeline.window"))[0] > zoomed[0]);
    await page.keyboard.press("Enter");
    await page.waitForTimeout(200);
    await page.keyboard.press("Escape");
    await page.waitForTimeout(300);
    const at = await ask(
        page,
        `(() => { const pane = timeline.pane.getBoundingClientRect(), lane = timeline.lanes.find((l) => l.open) || timeline.lanes[0];
        return [pane.x + timeline.x(samples.time[samples.start[lane.thread] + 100]) + 1, pane.y + lane.calls - timeline.scroller.scrollTop + 2]; })()`,
    );
    await page.mouse.move(...at);
    await page.waitForSelector(".tip:not([hidden])");
    assert.match(await page.textContent(".tip"), /Lasts.*Seen in.*sample.*Starts/);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("keys walk from call to call, say each, and zoom to it", async () => {
    const page = await open(html(made));
    await page.keyboard.press("2");
    await page.waitForFunction(() => lapsePage.views.timeline.lanes.length);
    const at = () =>
        ask(
            page,
            `(({ thread, depth, first, last, func }) => ({ thread, depth, first, last, name: choice.name(func) }))(timeline.cursor.interval)`,
        );
    /* Worked out here: the call at a depth of a sample, and how far the samples around hold it. */
    const wanted = (thread, sample, depth) =>
        ask(
            page,
            `(() => { const path = (i) => { const nodes = []; for (let n = profile.leafNode[samples.leaf[i]]; n > 0; n = profile.nodeParent[n]) nodes.unshift(n); return nodes; };
            const node = path(${sample})[${depth - 1}]; let first = ${sample}, last = ${sample};
            while (first > samples.start[${thread}] && path(first - 1)[${depth - 1}] === node) first--;
            while (last + 1 < samples.start[${thread} + 1] && path(last + 1)[${depth - 1}] === node) last++;
            return { thread: ${thread}, depth: ${depth}, first, last, name: choice.name(profile.nodeFunction[node]) }; })()`,
        );
    let before = null;
    for (const key of ["Down", "Down", "Down", "Up", "Right", "Right", "Left"]) {
        await page.keyboard.press("Shift+Arrow" + key);
        const now = await at();
        assert.deepEqual(now, await wanted(now.thread, now.first, now.depth));
        if (before && key === "Down") assert.ok(now.depth === before.depth + 1 && now.first >= before.first && now.last <= before.last);
        if (key === "Right") assert.ok(now.first === before.last + 1 && now.depth <= before.depth);
        if (key === "Left") assert.ok(now.last === before.first - 1 && now.depth <= before.depth);
        if (key === "Up") assert.ok(now.depth === before.depth - 1 && now.first <= before.first && now.last >= before.last);
        assert.ok((await page.textContent("#live")).startsWith(`${now.name}, depth ${now.depth}, lasts `));
        assert.ok((await page.textContent(".tip:not([hidden])")).startsWith(now.name));
        before = now;
    }
    await page.keyboard.press("Shift+Enter");
    const [low, high] = await ask(page, "timeline.window"),
        { start, end } = await ask(page, "timeline.cursor.interval");
    assert.ok(low <= start && high >= end && (end - start) / (high - low) > 0.8);
    assert.equal(await page.textContent(".details h2"), before.name);
    await page.keyboard.press("ArrowDown");
    assert.equal(await ask(page, "timeline.cursor.interval"), null);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("every control and picture has a role and a name for readers who listen", async () => {
    const page = await open(html(made)),
        tree = await page.context().newCDPSession(page);
    const controls = /^(button|tab|checkbox|searchbox|textbox|application|grid|columnheader|dialog|tabpanel|toolbar|slider|link)$/i;
    const seen = new Set();
    for (const view of ["1", "2", "3", "4", "?"]) {
        await page.keyboard.press(view);
        await page.waitForTimeout(150);
        const { nodes } = await tree.send("Accessibility.getFullAXTree");
        for (const { ignored, role, name } of nodes) {
            if (ignored || !role || !controls.test(role.value)) continue;
            seen.add(role.value);
            assert.ok(name && name.value.trim(), `${role.value} without a name in view ${view}`);
        }
    }
    for (const role of ["button", "tab", "application", "grid", "columnheader", "dialog"])
        assert.ok(seen.has(role), `${role} among ${[...seen]}`);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("what is printed fits the paper", async () => {
    const page = await open(html(made));
    for (const width of [500, 720, 1050]) {
        await page.emulateMedia({ media: "print" });
        await page.setViewportSize({ width: 1200, height: 800 });
        /* The pictures keep the size that the screen gave them, as they do between screen and paper. */
        const wide = await page.evaluate((paper) => {
            document.body.style.width = paper + "px";
            return [...document.querySelectorAll("canvas")]
                .filter((canvas) => canvas.offsetParent)
                .map((canvas) => canvas.getBoundingClientRect())
                .filter((box) => box.right > paper + 1).length;
        }, width);
        assert.equal(wide, 0, `pictures wider than ${width} pixels of paper`);
    }
    await page.emulateMedia({ media: "screen" });
    const rows = (await sumsOfPage(page)).rows.length;
    for (const view of ["1", "2", "3"]) {
        await page.keyboard.press(view);
        await page.waitForTimeout(100);
        await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
        assert.equal(await page.locator(".body > .functions tr:has(td)").count(), Math.min(rows, 60));
        await page.evaluate(() => dispatchEvent(new Event("afterprint")));
        assert.equal(await page.locator(".body > .functions").count(), 0);
        assert.equal(await page.getAttribute("html", "data-print"), null);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("threads and labels leave what they say", async () => {
    const page = await open(html(made));
    await page.click("text=/Threads/");
    await page.click("text=None");
    assert.equal((await sumsOfPage(page)).whole, 0);
    await page.click(".check:not(.whole) >> nth=1");
    const thread = await ask(page, "choice.threads.indexOf(1)");
    const own = await ask(
        page,
        `samples.before[samples.start[${thread} + 1]] - samples.before[samples.start[${thread}]]`,
    );
    assert.equal((await sumsOfPage(page)).whole, own);
    const tid = await ask(page, `profile.threads[${thread}].tid`);
    assert.equal(own, JSON.parse(lapse("report", "--format=json", `--thread=${tid}`, made)).weight);
    await page.click("text=All");
    await page.keyboard.press("Escape");
    await page.click("text=/Labels/");
    await page.click(".check >> nth=0");
    const labelled = await ask(
        page,
        "samples.labels.reduce((sum, set, i) => choice.labels[set] ? sum + samples.weight[i] : sum, 0)",
    );
    const chosen = (await sumsOfPage(page)).whole;
    assert.equal(chosen, labelled);
    assert.ok(chosen > 0 && chosen < (await ask(page, "profile.weight")));
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("the table sorts, filters, selects, and holds few elements", async () => {
    const page = await open(html(made));
    await page.keyboard.press("3");
    const top = await page.textContent(".row .name >> nth=0"),
        rows = await ask(page, "choice.weights.functions().map((row) => choice.name(row.f))");
    assert.equal(top, rows[0]);
    await page.click(".head >> text=Function");
    assert.equal(await page.textContent(".row .name >> nth=0"), [...rows].sort()[0]);
    assert.ok((await page.evaluate(() => document.querySelectorAll(".row").length)) < 60);
    await page.fill("#search", "^" + rows[3].replace(/[^\w]/g, "\\$&") + "$");
    await page.waitForFunction(() => lapsePage.views.table.rows.length === 1);
    await page.click(".row .name >> nth=0");
    assert.equal(await page.textContent(".details h2"), rows[3]);
    assert.ok(
        (await page.evaluate(() => {
            lapsePage.choice.select(
                lapsePage.choice.profile.functions.findIndex((fn) => fn.name === "made_inline"),
            );
            return document.querySelectorAll(".details .lines li").length;
        })) > 0,
        "hot lines",
    );
    const width = await page.evaluate(() =>
        parseFloat(document.querySelector(".row .whisker").style.width),
    );
    assert.ok(width > 0);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("runs lie above each other, each from its own start; a process is left out as a whole", async () => {
    const input = recording("runs", { processes: 3, threads: 2, samples: 1000, runs: 1 }),
        page = await open(html(input));
    assert.equal(await ask(page, "profile.runs"), 3);
    assert.deepEqual(await ask(page, "profile.processes.map((p) => [p.run, p.start])"), [
        [0, 0],
        [1, 0],
        [2, 0],
    ]);
    const firsts = await ask(page, "profile.threads.map((_, t) => samples.time[samples.start[t]])");
    assert.ok(firsts.length === 6 && Math.max(...firsts) < 1e9, String(firsts));
    assert.ok((await ask(page, "profile.duration")) < 50e9, "not the 200 s between the runs");
    await page.keyboard.press("4");
    await page.waitForSelector("text=/3 runs: the times of each/");
    const whole = (await sumsOfPage(page)).whole;
    await page.click("text=/Threads/");
    await page.click(".check.whole >> nth=0");
    const left = (await sumsOfPage(page)).whole,
        out = await ask(page, "profile.threads[choice.threads.indexOf(0)].process"),
        own = await ask(
            page,
            `profile.threads.reduce((sum, thread, t) => thread.process === ${out} ? sum + samples.before[samples.start[t + 1]] - samples.before[samples.start[t]] : sum, 0)`,
        );
    assert.ok(own > 0);
    assert.equal(left, whole - own);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("a million samples open in time and pan without waiting", async () => {
    const page = await open(
        html(recording("million", { threads: 8, samples: 1000000, stacks: 20000 })),
    );
    console.log(`1,000,000 samples: open in ${page.openedIn} ms`);
    assert.ok(page.openedIn < 10000, "generous: other tests run beside this one");
    await page.keyboard.press("2");
    await page.waitForTimeout(500);
    const cost = await page.evaluate(async () => {
        const { timeline } = lapsePage.views,
            { duration } = lapsePage.choice.profile,
            surface = timeline.surface,
            costs = [];
        const draw = surface.draw.bind(surface);
        surface.draw = () => {
            const began = performance.now();
            draw();
            costs.push(performance.now() - began);
        };
        timeline.setWindow(duration * 0.1, duration * 0.6);
        for (let i = 0; i < 60; i++) {
            timeline.pan(0.004);
            await new Promise(requestAnimationFrame);
        }
        return costs.sort((a, b) => a - b)[costs.length >> 1];
    });
    console.log(`1,000,000 samples: median ${cost.toFixed(1)} ms a frame while panning`);
    assert.ok(cost < 50);
    assert.deepEqual(page.problems, []);
    await page.close();
});
