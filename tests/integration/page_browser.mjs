/* SPDX-License-Identifier: MIT */
/* What the tests of lapse's own page share: recordings made into pages, and a headless Chromium that
 * opens them and fails on any error of the page or request to the network.
 * Environment, set by page.cmake: LAPSE, MAKE_RECORDING, CHROMIUM, NODE_FOLDER (holds node_modules). */
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

const { chromium } = createRequire(join(process.env.NODE_FOLDER, "x.js"))("playwright-core");

export const folder = mkdtempSync(join(tmpdir(), "lapse-page-"));
after(() => rmSync(folder, { recursive: true, force: true }));

export function lapse(...args) {
    return execFileSync(process.env.LAPSE, args, {
        encoding: "utf8",
        maxBuffer: 1 << 28,
        stdio: ["ignore", "pipe", "inherit"],
    });
}

/* A made-up recording; numbers by name, as make-recording takes them. */
export function recording(name, numbers) {
    const path = join(folder, name + ".lapse");
    execFileSync(process.env.MAKE_RECORDING, [
        path,
        ...Object.entries(numbers).map(([key, value]) => `${key}=${value}`),
    ]);
    return path;
}

export function folded(name, text) {
    const path = join(folder, name + ".folded");
    writeFileSync(path, text);
    return path;
}

export function html(input) {
    const path = input.replace(/\.\w+$/, ".html");
    lapse("export", "--to=html", "-o", path, input);
    return path;
}

let browser;
before(async () => {
    browser = await chromium.launch({
        executablePath: process.env.CHROMIUM,
        args: [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ],
    });
});
after(() => browser.close());

/* Opens an address or file; `problems` collects what must not happen. */
export async function open(address) {
    const page = await browser.newPage({
        viewport: { width: 1200, height: 800 },
        colorScheme: "light",
    });
    page.problems = [];
    page.on("pageerror", (error) => page.problems.push("error: " + error.message));
    page.on(
        "console",
        (message) => message.type() === "error" && page.problems.push("console: " + message.text()),
    );
    page.on("dialog", (dialog) => {
        page.problems.push("dialog: " + dialog.message());
        dialog.dismiss();
    });
    const url = address.startsWith("http") ? address : "file://" + address;
    page.on(
        "request",
        (request) =>
            request.url() !== url &&
            !request.url().startsWith("data:") &&
            page.problems.push("request: " + request.url()),
    );
    const began = Date.now();
    await page.goto(url);
    await page.waitForFunction(() => document.documentElement.dataset.ready, null, {
        timeout: 30000,
    });
    page.ready = await page.getAttribute("html", "data-ready");
    if (page.ready !== "yes") page.problems.push("ready: " + page.ready);
    page.openedIn = Date.now() - began;
    return page;
}

/* Sums by name from plain folded text in ns, worked out here and not by what is tested. */
export function sumsOfFolded(text) {
    const sums = new Map();
    let whole = 0;
    for (const line of text.split("\n")) {
        if (!line) continue;
        const at = line.lastIndexOf(" "),
            weight = Number(line.slice(at + 1)),
            frames = line.slice(0, at).split(";");
        whole += weight;
        for (const name of new Set(frames)) {
            const sum = sums.get(name) || { self: 0, total: 0 };
            sum.total += weight;
            if (frames[frames.length - 1] === name) sum.self += weight;
            sums.set(name, sum);
        }
    }
    return { whole, sums };
}

/* Sums by name as the page has them for what is chosen there. */
export function sumsOfPage(page) {
    return page.evaluate(() => {
        const { choice } = window.lapsePage,
            { weights, profile } = choice;
        return {
            whole: weights.whole,
            count: weights.wholeCount,
            rows: weights
                .functions()
                .map((row) => [profile.functions[row.f].name, row.self, row.total]),
        };
    });
}
