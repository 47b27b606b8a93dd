/* SPDX-License-Identifier: MIT */
/* Flame graph of lapse's own page: figures, zoom, history, search, direction, recursion, keyboard. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { folded, html, lapse, open, recording, sumsOfFolded, sumsOfPage } from "./page_browser.mjs";

const made = recording("flame", {
    threads: 3,
    samples: 4000,
    stacks: 300,
    spans: 1,
    labels: 1,
    cut: 1,
});
const flame = (page, ask) =>
    page.evaluate(
        `(() => { const view = lapsePage.views.flame, choice = lapsePage.choice; return ${ask}; })()`,
    );
/* Middle of the box of a function in the first place where it is drawn. */
const place = async (page, name) => {
    const at = await flame(
        page,
        `(() => { const pane = view.pane.getBoundingClientRect(), [low, high] = view.window, x = (at) => Math.max(0, Math.min(1, (at - low) / (high - low)));
        const find = (box) => choice.name(box.func) === ${JSON.stringify(name)} ? box : view.picture.kids(box).map(find).find(Boolean), box = find(view.picture.root);
        return box && [pane.x + (x(box.start) + x(box.end)) / 2 * pane.width, pane.y + view.top(box.depth) + 8]; })()`,
    );
    assert.ok(at, name + " is drawn");
    return at;
};
const settle = (page) => page.waitForTimeout(350);

test("sums equal the folded text's", async () => {
    const page = await open(html(made)),
        mine = await sumsOfPage(page),
        truth = sumsOfFolded(lapse("export", "--to=folded", "--unit=ns", made));
    assert.equal(mine.whole, truth.whole);
    assert.equal(mine.rows.length, truth.sums.size);
    for (const [name, self, total] of mine.rows)
        assert.deepEqual({ self, total }, truth.sums.get(name), name);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("sums and intervals equal the report's", async () => {
    const page = await open(html(made)),
        report = JSON.parse(lapse("report", "--format=json", "--limit=0", made));
    const mine = await flame(
        page,
        `(() => { const table = lapsePage.views.table; return choice.weights.functions().map((row) => { const self = table.range(row.self, row.selfSquares),
        total = table.range(row.total, row.totalSquares); return { function: profileName(row.f), self_weight: row.self, total_weight: row.total, self_samples: row.selfCount,
        total_samples: row.totalCount, bounds: [self.low, self.high, total.low, total.high] }; function profileName(f) { return choice.profile.functions[f].name; } }); })()`,
    );
    assert.equal(mine.length, report.functions.length);
    assert.equal(await flame(page, "choice.weights.whole"), report.weight);
    for (const [i, theirs] of report.functions.entries()) {
        for (const key of [
            "function",
            "self_weight",
            "total_weight",
            "self_samples",
            "total_samples",
        ])
            assert.equal(mine[i][key], theirs[key], theirs.function);
        for (const [j, key] of ["self_low", "self_high", "total_low", "total_high"].entries())
            assert.ok(
                Math.abs(mine[i].bounds[j] - theirs[key]) < 2e-6,
                `${theirs.function} ${key}: ${mine[i].bounds[j]} and ${theirs[key]}`,
            );
    }
    await page.close();
});

test("the page without its data is small", async () => {
    const text = readFileSync(html(made), "utf8"),
        data = /<script type="application\/octet-stream" id="data">([^<]*)<\/script>/.exec(text)[1];
    assert.ok(data.length > 1000);
    assert.ok(text.length - data.length < 150 * 1024, `${text.length - data.length} bytes`);
});

const SMALL = "main;a;b 40\nmain;a;c 20\nmain;d;d;d;e 30\nmain;f 10\n";

test("click zooms, history goes back and forth, Escape shows all", async () => {
    const page = await open(html(folded("zoom", SMALL)));
    await page.mouse.click(...(await place(page, "a")));
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [0, 60]);
    await page.mouse.click(...(await place(page, "c")));
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [40, 60]);
    await page.keyboard.press("Backspace");
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [0, 60]);
    await page.click("text=→");
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [40, 60]);
    await page.keyboard.press("Escape"); /* the selection */
    await page.keyboard.press("Escape"); /* the zoom */
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [0, 100]);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("search counts each sample once and dims the rest", async () => {
    const page = await open(html(folded("search", SMALL)));
    await page.keyboard.press("/");
    await page.keyboard.type("^(d|e|b)$");
    await page.waitForFunction(() => document.getElementById("match").textContent.includes("70"));
    assert.match(await page.textContent("#match"), /^matched 70\.0\s%/);
    await page.fill("#search", "(");
    await page.waitForFunction(() => document.getElementById("match").classList.contains("wrong"));
    await page.keyboard.press("Escape");
    assert.equal(await page.inputValue("#search"), "");
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("a profile with little in it says no more than that", async () => {
    for (const input of [folded("least", "main 1\n"), recording("single", { threads: 1, samples: 1 })]) {
        const page = await open(html(input));
        for (const key of ["1", "2", "3", "4"]) {
            await page.keyboard.press(key);
            await page.waitForTimeout(100);
            const text = await page.innerText("body");
            assert.doesNotMatch(text, /null|undefined|NaN|\b1 samples/, key);
        }
        assert.deepEqual(page.problems, []);
        await page.close();
    }
});

test("callers, focus and folded recursion", async () => {
    const page = await open(html(folded("turn", SMALL)));
    const tree = `(() => { const walk = (box) => [choice.name(box.func), box.total, ...view.picture.kids(box).map(walk)]; return walk(view.picture.root); })()`;
    await page.keyboard.press("r");
    assert.deepEqual(await flame(page, tree), [
        "all",
        100,
        ["main", 100, ["a", 60, ["b", 40], ["c", 20]], ["d", 30, ["e", 30]], ["f", 10]],
    ]);
    await page.keyboard.press("r");
    await page.keyboard.press("i");
    assert.deepEqual(await flame(page, tree), [
        "all",
        100,
        ["b", 40, ["a", 40, ["main", 40]]],
        ["e", 30, ["d", 30, ["d", 30, ["d", 30, ["main", 30]]]]],
        ["c", 20, ["a", 20, ["main", 20]]],
        ["f", 10, ["main", 10]],
    ]);
    await flame(
        page,
        `choice.draw({ focus: choice.profile.functions.findIndex((f) => f.name === "d") })`,
    );
    assert.deepEqual(await flame(page, tree), ["d", 30, ["main", 30]]);
    await page.keyboard.press("i");
    assert.deepEqual(await flame(page, tree), ["d", 30, ["d", 30, ["d", 30, ["e", 30]]]]);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("keyboard walks the boxes and is heard", async () => {
    const page = await open(html(folded("keys", SMALL)));
    for (const key of ["ArrowDown", "ArrowDown", "ArrowRight"]) await page.keyboard.press(key);
    assert.match(await page.textContent("#live"), /^d, depth 2, total 30\.0/);
    await page.keyboard.press("Enter");
    await settle(page);
    assert.deepEqual(await flame(page, "view.window"), [60, 90]);
    assert.equal(await page.textContent(".details h2"), "d");
    await page.keyboard.press("f");
    assert.equal(await flame(page, "view.upward"), true);
    await page.keyboard.press("?");
    assert.ok(await page.isVisible("dialog.keys"));
    await page.keyboard.press("Escape");
    assert.ok(!(await page.isVisible("dialog.keys")));
    await page.keyboard.press("t");
    assert.equal(await page.getAttribute("html", "data-theme"), "dark");
    for (const [key, view] of [
        ["2", null],
        ["3", "table"],
        ["4", "summary"],
        ["1", "flame"],
    ]) {
        await page.keyboard.press(key);
        if (view) assert.ok(await page.isVisible("#view-" + view), view);
    }
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("hovering tells self, total and share", async () => {
    const page = await open(html(folded("tip", SMALL)));
    await page.mouse.move(...(await place(page, "a")));
    await page.waitForSelector(".tip:not([hidden])");
    assert.match(await page.textContent(".tip"), /^aTotal60\s+·\s+60\.0\s%.*Self0/);
    await page.close();
});

test("names without room lose what tells least, then their middle", async () => {
    const page = await open(html(folded("names", SMALL)));
    const fit = (name, room) =>
        flame(page, `view.surface.fitter.fitName(${JSON.stringify(name)}, ${room})`);
    assert.equal(await fit("short(int)", 500), "short(int)");
    for (const [name, brief] of [
        [
            "clang::Sema::PerformPendingInstantiations(bool)",
            "clang::Sema::PerformPendingInstantiations",
        ],
        ["void std::sort<int*, less<int> >(int*, int*, less<int>)", "std::sort<…>"],
        ["std::function<int (int)>::operator()(int) const", "std::function<…>::operator()"],
        ["std::ostream& operator<< <char>(std::ostream&, char)", "operator<< <…>"],
        ["(anonymous namespace)::Pass::run(llvm::Function&)", "(anonymous)::Pass::run"],
        [
            "main(int, char**)::{lambda(int)#1}::operator()(int) const",
            "main::{lambda#1}::operator()",
        ],
        ["operator new(unsigned long)", "operator new"],
        ["unbalanced<<<(and some more of it", "unbalanced<…>"],
    ]) {
        const whole = await flame(
            page,
            `view.surface.context.measureText(${JSON.stringify(name)}).width`,
        );
        assert.match(
            await fit(name, whole - 6),
            new RegExp("^" + brief.replace(/[^\w]/g, "\\$&") + "(<…>)?$"),
            name,
        );
    }
    const cut = await fit("a_very_long_function_name_of_plain_c", 120);
    assert.match(cut, /^a_very.*….*_c$/);
    assert.ok(
        (await flame(page, `view.surface.context.measureText(${JSON.stringify(cut)}).width`)) <=
            121,
    );
    await page.close();
});
