/* SPDX-License-Identifier: MIT */
/* Names that try to be more than names stay text on lapse's own page. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { folded, html, open, sumsOfPage } from "./page_browser.mjs";

const LONG = "std::tuple<" + "std::basic_string<char>, ".repeat(420) + "int>";
const NAMES = [
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"quoted\" 'twice' & <b>bold</b>",
    "`${alert(3)}`",
    "__proto__",
    "constructor",
    "-->",
    "]]>",
    "\u202eright to left\u202c",
    "\u2066isolated",
    "שלום עולם",
    "\ud83d\udd25 hot",
    "a\u0300\u0301\u0302\u0303",
    "%s%n",
    "javascript:alert(4)",
    LONG,
];
const input = folded("hostile", NAMES.map((name, i) => `main;${name};leaf ${i + 10}\n`).join(""));

test("hostile names are drawn, listed and searched as they are", async () => {
    const path = html(input),
        text = readFileSync(path, "utf8");
    assert.ok(!text.includes("alert("), "names never stand in the page as they are");
    const page = await open(path),
        { rows } = await sumsOfPage(page);
    for (const name of NAMES)
        assert.ok(
            rows.some((row) => row[0] === name),
            name.slice(0, 60),
        );
    await page.keyboard.press("i");
    await page.keyboard.press("i");
    for (const name of NAMES) {
        await page.evaluate((wanted) => {
            const { choice } = lapsePage;
            choice.select(choice.profile.functions.findIndex((fn) => fn.name === wanted));
            choice.search(
                wanted
                    .replace(/[^\w]/gu, (c) => (/[\^$\\.*+?()[\]{}|/]/.test(c) ? "\\" + c : c))
                    .slice(0, 1000),
            );
        }, name);
        assert.ok(
            !/[\u202a-\u202e\u2066-\u2069]/.test(await page.textContent(".details h2")),
            "direction marks are made visible",
        );
        assert.ok(
            await page.evaluate(
                () => lapsePage.choice.matchedShare && lapsePage.choice.matchedShare.weight > 0,
            ),
            name.slice(0, 60),
        );
    }
    await page.evaluate(() => lapsePage.choice.search(""));
    for (const width of [1200, 700]) {
        await page.setViewportSize({ width, height: 700 });
        await page.keyboard.press("3");
        await page.waitForTimeout(200);
        assert.deepEqual(
            await page.evaluate(() =>
                [...document.querySelectorAll(".row:not([hidden]) .words:nth-child(4)")]
                    .filter((cell) => cell.scrollWidth > cell.clientWidth + 1)
                    .map((cell) => cell.textContent.slice(0, 60)),
            ),
            [],
            "names fit, their middle left out",
        );
    }
    for (const key of ["4", "1"]) await page.keyboard.press(key);
    assert.equal(
        await page.evaluate(
            () =>
                document.querySelectorAll("img, b:not([class]) > b, iframe, script:not([type])")
                    .length,
        ),
        1,
        "the page's own script alone",
    );
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("nothing but the page's own script may run", async () => {
    const page = await open(html(input));
    const ran = await page.evaluate(() => {
        const script = document.createElement("script");
        script.textContent = "window.intruder = 1";
        document.body.append(script);
        return window.intruder === 1;
    });
    assert.equal(ran, false);
    await page.close();
});

test("damaged data are said to be so", async () => {
    const path = html(input),
        text = readFileSync(path, "utf8"),
        broken = path.replace(".html", "-broken.html");
    writeFileSync(broken, text.replace(/(id="data">.{200})[^<]*/, "$1"));
    const page = await open(broken);
    assert.equal(page.ready, "failed");
    assert.match(await page.textContent(".failed"), /^This page cannot be shown: /);
    await page.close();
});
