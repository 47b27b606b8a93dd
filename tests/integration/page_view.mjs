/* SPDX-License-Identifier: MIT */
/* lapse view: the page over HTTP, for this machine and for those who know the address. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { request } from "node:http";
import { createConnection } from "node:net";
import { after, test } from "node:test";
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { folded, folder, html, open, sumsOfPage } from "./page_browser.mjs";

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
        "/%2e%2e" + url.pathname,
        url.pathname + "../../etc/passwd",
        url.pathname + "\u00ff",
        "http://evil.example" + url.pathname,
        "//" + url.pathname,
    ])
        assert.equal((await ask(path)).status, 404, path);
    const twice = await new Promise((resolve) => {
        const socket = createConnection(Number(url.port), "127.0.0.1", () =>
            socket.write(
                `GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nHost: evil.example\r\n\r\n`,
            ),
        );
        socket.once("data", (text) => resolve(String(text)));
    });
    assert.match(twice, /^HTTP\/1\.1 403 /);
    assert.equal((await ask(url.pathname, {}, "POST")).status, 405);
    assert.equal((await ask(url.pathname, {}, "HEAD")).body, "");
});

test("silent, broken and many clients keep nobody waiting", async () => {
    const silent = Array.from({ length: 40 }, () =>
        createConnection(Number(url.port), "127.0.0.1").on("error", () => {}),
    );
    const broken = createConnection(Number(url.port), "127.0.0.1").on("error", () => {});
    broken.write(Buffer.concat([Buffer.from("GET "), Buffer.alloc(9000, 65)]));
    try {
        const began = Date.now();
        assert.equal((await ask(url.pathname)).status, 200);
        assert.ok(Date.now() - began < 3000);
    } finally {
        for (const socket of [...silent, broken]) socket.destroy();
    }
});

test("who has been silent longest goes first, also within a second", async () => {
    const connected = () =>
        new Promise((resolve) => {
            const socket = createConnection(Number(url.port), "127.0.0.1", () => resolve(socket)).on("error", () => {});
        });
    const sockets = [];
    try {
        for (let i = 0; i < 16; i++) sockets.push(await connected());
        const slow = await connected(),
            reply = new Promise((resolve) => slow.once("data", resolve).once("close", () => resolve("closed")));
        for (let i = 0; i < 12; i++) sockets.push(await connected());
        slow.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
        assert.match(String(await reply), /^HTTP\/1\.1 200 /);
        slow.destroy();
    } finally {
        for (const socket of sockets) socket.destroy();
    }
});

/* A page that does not fit into the buffers between two ends of a connection. */
const noise = (seed) => Array.from({ length: 40 }, () => (seed = (seed * 48271) % 2147483647).toString(36)).join(""),
    big = folded("big", Array.from({ length: 30000 }, (_, i) => `main;${noise(i + 1)} 1\n`).join(""));

/* Another `lapse view`; what it prints and how it ends. */
async function start(args, environment = {}) {
    const child = spawn(process.env.LAPSE, ["view", ...args], {
        stdio: ["ignore", "pipe", "pipe"],
        env: { ...process.env, ...environment },
    });
    after(() => child.kill("SIGKILL"));
    child.said = "";
    child.stderr.on("data", (text) => (child.said += text));
    child.ended = new Promise((resolve) =>
        child.on("exit", (code, signal) => resolve({ code, signal })),
    );
    child.url = new URL(
        String(await new Promise((resolve) => child.stdout.once("data", resolve))).trim(),
    );
    return child;
}
const connect = (url) =>
    new Promise((resolve) => {
        const socket = createConnection(Number(url.port), "127.0.0.1", () => {
            socket.write(`GET ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\n\r\n`);
            resolve(socket);
        }).on("error", () => {});
    });
const whole = async (url) => {
    const reply = await fetch(url, { redirect: "error" });
    assert.equal(reply.status, 200);
    return (await reply.arrayBuffer()).byteLength;
};

test("readers who leave midway or never read are no trouble to others, nor to Ctrl-C", async () => {
    const child = await start(["--no-open", big]),
        size = statSync(html(big)).size;
    assert.ok(size > 5e6, "more than a connection holds");
    for (let i = 0; i < 4; i++) {
        const socket = await connect(child.url);
        await new Promise((resolve) => socket.once("data", resolve));
        socket.resetAndDestroy();
    }
    const idle = await Promise.all(Array.from({ length: 6 }, () => connect(child.url)));
    for (const socket of idle) socket.pause();
    assert.equal(await whole(child.url), size);
    const began = Date.now();
    child.kill("SIGINT");
    assert.deepEqual(await child.ended, { code: 0, signal: null });
    assert.ok(Date.now() - began < 5000);
    for (const socket of idle) socket.destroy();
});

test("two at once have each their own port and secret", async () => {
    const [one, two] = await Promise.all([start(["--no-open", input]), start(["-n", input])]);
    assert.notEqual(one.url.port, two.url.port);
    assert.notEqual(one.url.pathname, two.url.pathname);
    assert.equal(await whole(one.url), await whole(two.url));
    assert.equal((await fetch(new URL(one.url.pathname, two.url))).status, 404);
    for (const [child, signal] of [[one, "SIGTERM"], [two, "SIGHUP"]]) {
        child.kill(signal);
        assert.deepEqual(await child.ended, { code: 0, signal: null }, signal);
    }
});

test("the browser is opened by xdg-open, and where there is none that is said", async () => {
    const seen = join(folder, "seen"),
        tool = join(folder, "bin");
    mkdirSync(tool);
    writeFileSync(
        join(tool, "xdg-open"),
        `#!/bin/sh\n{ echo "$1"; grep -E "^Sig(Blk|Ign)" /proc/self/status; } > ${seen}.new; mv ${seen}.new ${seen}\n`,
        { mode: 0o755 },
    );
    const child = await start([input], { PATH: tool + ":" + process.env.PATH });
    for (let i = 0; !existsSync(seen) && i < 100; i++)
        await new Promise((resolve) => setTimeout(resolve, 50));
    const [opened, blocked, ignored] = readFileSync(seen, "utf8").split("\n");
    assert.equal(opened, child.url.href);
    assert.match(blocked, /0{16}$/);
    assert.equal(BigInt("0x" + ignored.split("\t")[1]) & 0x11000n, 0n, "SIGPIPE and SIGCHLD as usual");
    const bare = await start([input], { PATH: join(folder, "nothing") });
    assert.equal((await fetch(bare.url)).status, 200);
    for (const one of [child, bare]) {
        one.kill("SIGINT");
        assert.deepEqual(await one.ended, { code: 0, signal: null });
    }
    assert.match(bare.said, /xdg-open: .*open the address yourself/);
});

test("Ctrl-C ends it", async () => {
    server.kill("SIGINT");
    assert.deepEqual(await ended, { code: 0, signal: null });
});
