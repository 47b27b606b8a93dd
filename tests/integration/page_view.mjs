/* SPDX-License-Identifier: MIT */
/* lapse view: the page over HTTP, for this machine and for those who know the address. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { request } from "node:http";
import { createConnection } from "node:net";
import { after, test } from "node:test";
import { folded, html, open, sumsOfPage } from "./page_browser.mjs";
import { readFileSync } from "node:fs";

const input = folded("view", "main;work 70\nmain;rest 30\n");
const server = spawn(process.env.LAPSE, ["view", "--no-open", input], {
    stdio: ["ignore", "pipe", "ignore"],
});
const ended = new Promise((resolve) =>
    server.on("exit", (code, signal) => resolve({ code, signal })),
);
after(() => server.kill("SIGKILL"));
const address = await new Promise((resolve, reject) => {
    server.stdout.once("data", (text) => resolve(String(text).trim()));
    server.once("exit", () => reject(new Error("lapse view ended at once")));
});
const url = new URL(address);

function ask(path, headers = {}, method = "GET") {
    return new Promise((resolve, reject) =>
        request({ host: "127.0.0.1", port: url.port, path, headers, method }, (reply) => {
            const parts = [];
            reply
                .on("data", (part) => parts.push(part))
                .on("end", () =>
                    resolve({
                        status: reply.statusCode,
                        body: Buffer.concat(parts).toString(),
                        headers: reply.headers,
                    }),
                );
        })
            .on("error", reject)
            .end(),
    );
}

test("the address is of this machine and not to be guessed", () => {
    assert.match(address, /^http:\/\/127\.0\.0\.1:\d+\/[0-9a-f]{32}\/$/);
});

test("the page is served, the same that export writes, and works", async () => {
    const reply = await ask(url.pathname);
    assert.equal(reply.status, 200);
    assert.equal(reply.body, readFileSync(html(input), "utf8"));
    const page = await open(address);
    assert.equal((await sumsOfPage(page)).whole, 100);
    assert.deepEqual(page.problems, []);
    await page.close();
});

test("other hosts, paths and methods are refused", async () => {
    for (const host of [
        "evil.example",
        `evil.example:${url.port}`,
        "127.0.0.1",
        `127.0.0.1:${Number(url.port) + 1}`,
        `127.0.0.1:${url.port}.evil.example`,
    ])
        assert.equal((await ask(url.pathname, { host })).status, 403, host);
    const nameless = await new Promise((resolve) => {
        const socket = createConnection(Number(url.port), "127.0.0.1", () =>
            socket.write(`GET ${url.pathname} HTTP/1.0\r\n\r\n`),
        );
        socket.once("data", (text) => resolve(String(text)));
    });
    assert.match(nameless, /^HTTP\/1\.1 403 /);
    assert.equal((await ask(url.pathname, { host: `localhost:${url.port}` })).status, 200);
    for (const path of [
        "/",
        "/favicon.ico",
        url.pathname.slice(0, -1),
        url.pathname + "x",
        "/" + "0".repeat(32) + "/",
        "/../" + url.pathname,
    ])
        assert.equal((await ask(path)).status, 404, path);
    assert.equal((await ask(url.pathname, {}, "POST")).status, 405);
    assert.equal((await ask(url.pathname, {}, "HEAD")).body, "");
});

test("silent, broken and many clients keep nobody waiting", async () => {
    const silent = Array.from({ length: 40 }, () =>
        createConnection(Number(url.port), "127.0.0.1").on("error", () => {}),
    );
    const broken = createConnection(Number(url.port), "127.0.0.1").on("error", () => {});
    broken.write(Buffer.concat([Buffer.from("GET "), Buffer.alloc(9000, 65)]));
    const began = Date.now();
    assert.equal((await ask(url.pathname)).status, 200);
    assert.ok(Date.now() - began < 3000);
    for (const socket of [...silent, broken]) socket.destroy();
});

test("Ctrl-C ends it", async () => {
    server.kill("SIGINT");
    assert.deepEqual(await ended, { code: 0, signal: null });
});
