/* SPDX-License-Identifier: MIT */
/* A Perfetto trace, decoded by protoc with the published field numbers and read by the rules of Perfetto's
 * importer: sequences, interning, tracks, clocks. Its trace processor cannot be had as a package. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { openSync, closeSync } from "node:fs";
import { dirname } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { everything, exported, figures, gapped, hostile, hostileWeights, recording, sorted } from "./export_files.mjs";

/* protoc's text form: `name {`, `}`, `name: value`. A field that the schema lacks is a number: refused. */
function decode(file) {
    const input = openSync(file, "r");
    const folder = dirname(fileURLToPath(import.meta.url));
    const text = execFileSync("protoc", ["--decode=Trace", `--proto_path=${folder}`, `${folder}/perfetto.proto`], { encoding: "utf8", maxBuffer: 1 << 28, stdio: [input, "pipe", "pipe"] });
    closeSync(input);
    const root = {}, open = [root];
    for (const line of text.split("\n")) {
        const [, name, value] = /^ *(\w+|\}) ?(?:\{|: (.*))?$/.exec(line) ?? [];
        if (!name)
            continue;
        assert.doesNotMatch(name, /^\d/, "a field that is not in the schema");
        if (name === "}") {
            open.pop();
            continue;
        }
        const parsed = value === undefined ? {} : value.startsWith('"') ? value.slice(1, -1) : value === "true" ? true : BigInt(value);
        (open.at(-1)[name] ??= []).push(parsed);
        if (value === undefined)
            open.push(parsed);
    }
    return root.packet;
}

const one = (message, field) => {
    assert.equal(message[field]?.length ?? 0, 1, `${field} of ${Object.keys(message)}`);
    return message[field][0];
};

/* Replays a trace. Returns what a viewer would hold. */
function load(file) {
    const interned = {}, tracks = new Map(), events = [], samples = [];
    let cleared = false;
    const known = (table, iid) => {
        const entry = interned[table]?.get(iid);
        assert.ok(entry, `${table} ${iid} is used before it is defined`);
        return entry;
    };
    for (const packet of decode(file)) {
        const flags = Number(packet.sequence_flags?.[0] ?? 0n);
        assert.equal(one(packet, "trusted_packet_sequence_id"), 1n);
        if (flags & 1) {
            assert.equal(cleared, false);
            assert.equal(one(packet, "first_packet_on_sequence"), true);
            cleared = true;
        }
        assert.ok(cleared, "the sequence starts with a cleared state");
        for (const data of packet.interned_data ?? []) {
            assert.ok(flags & 2);
            for (const [table, entries] of Object.entries(data))
                for (const entry of entries) {
                    interned[table] ??= new Map();
                    const iid = one(entry, "iid");
                    assert.ok(iid > 0n && !interned[table].has(iid), `${table} ${iid} once`);
                    interned[table].set(iid, entry);
                    for (const id of entry.frame_ids ?? [])
                        known("frames", id);
                    if (table === "frames") {
                        known("function_names", one(entry, "function_name_id"));
                        assert.equal(entry.mapping_id === undefined, entry.rel_pc === undefined);
                        if (entry.mapping_id)
                            known("mappings", entry.mapping_id[0]);
                        if (entry.source_path_iid)
                            known("source_paths", entry.source_path_iid[0]);
                    }
                    if (table === "mappings") {
                        known("build_ids", one(entry, "build_id"));
                        entry.path_string_ids.forEach((id) => known("mapping_paths", id));
                        assert.ok(one(entry, "start") < one(entry, "end"));
                    }
                }
        }
        for (const track of packet.track_descriptor ?? []) {
            const uuid = one(track, "uuid");
            assert.ok(uuid > 0n);
            if (track.parent_uuid)
                assert.ok(tracks.has(track.parent_uuid[0]));
            tracks.set(uuid, track);
        }
        for (const event of packet.track_event ?? []) {
            const track = tracks.get(one(event, "track_uuid")), type = Number(one(event, "type"));
            assert.ok(track, "a track is described before its events");
            if (type !== 4)
                assert.ok(flags & 2);
            if (type === 1)
                known("event_names", one(event, "name_iid"));
            for (const category of event.category_iids ?? [])
                known("event_categories", category);
            events.push({ time: one(packet, "timestamp"), type, track, event });
        }
        for (const sample of packet.perf_sample ?? []) {
            assert.ok(flags & 2);
            const stack = known("callstacks", one(sample, "callstack_iid"));
            const frames = (stack.frame_ids ?? []).map((id) => interned.frames.get(id)).map((frame) => interned.function_names.get(frame.function_name_id[0]).str[0]);
            samples.push({ time: one(packet, "timestamp"), tid: Number(one(sample, "tid")), frames, weight: sample.timebase_count[0] });
        }
    }
    return { interned, tracks, events, samples };
}

const input = recording("all", ...everything);
const wanted = figures(input);
const trace = load(exported("perfetto", input, ".pftrace"));

test("samples: threads, totals, self times", () => {
    const last = new Map(), threads = new Map(), self = new Map();
    for (const { tid, weight, frames } of trace.samples) {
        const own = Number(weight - (last.get(tid) ?? 0n)), leaf = frames.at(-1);
        last.set(tid, weight);
        threads.set(tid, (threads.get(tid) ?? 0) + own);
        self.set(leaf, (self.get(leaf) ?? 0) + own);
    }
    assert.deepEqual(sorted(threads), sorted(wanted.threads));
    assert.deepEqual(sorted(self), sorted(wanted.self));
});

/* An end with a category closes the innermost slice of that category, without one the innermost slice. */
function unended({ events }) {
    const open = new Map();
    const order = events.filter(({ type }) => type === 1 || type === 2).map((event, index) => ({ ...event, index })).sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.index - b.index));
    for (const { type, track, event } of order) {
        const category = event.category_iids?.[0], stack = open.get(track) ?? [];
        open.set(track, stack);
        if (type === 1) {
            stack.push(category);
            continue;
        }
        assert.equal(category ? stack.lastIndexOf(category) : stack.length - 1, stack.length - 1);
        assert.ok(stack.length > 0, "an end closes something");
        stack.pop();
    }
    assert.ok(order.length > 0);
    return [...open.values()].flat();
}

test("slices nest and end on every track", () => {
    assert.ok(trace.events.length > 1000);
    assert.deepEqual(unended(trace), []);
});

test("a call that was closed or opened by guess ends too", () => {
    const guessed = load(exported("perfetto", gapped("gap"), ".pftrace"));
    const inferred = [...guessed.interned.event_categories].find(([, category]) => category.name[0] === "inferred")[0];
    assert.equal(guessed.events.filter(({ type, event }) => type === 1 && event.category_iids[0] === inferred).length, 2);
    assert.deepEqual(unended(guessed), []);
});

test("processes, threads, spans, labels and categories", () => {
    const tracks = [...trace.tracks.values()];
    assert.deepEqual(tracks.filter((track) => track.thread).map((track) => Number(track.thread[0].tid[0])).sort(), [...wanted.threads.keys()].sort());
    assert.equal(tracks.filter((track) => track.process).length, 2);
    const begun = (name) => trace.events.filter(({ type, track }) => type === 1 && track.name?.[0] === name).length;
    assert.equal(begun("spans"), 4);
    assert.ok(begun("labels") > 4);
    assert.deepEqual([...trace.interned.event_categories.values()].map((category) => category.name[0]), ["call", "inferred", "span", "label"]);
});

test("hostile names keep their weights", () => {
    const weights = new Map();
    let last = 0n;
    for (const { weight, frames } of load(exported("perfetto", hostile("bad"), ".pftrace")).samples) {
        weights.set(frames.at(-1), (weights.get(frames.at(-1)) ?? 0) + Number(weight - last));
        last = weight;
    }
    assert.deepEqual([...weights.values()].sort((a, b) => a - b), hostileWeights);
});
