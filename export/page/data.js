/* SPDX-License-Identifier: MIT */
/* The profile inside the page: base64, deflate, then the columns that export/format_html.c writes.
 * Everything that came from the profiled program is text for textContent and canvas, nothing else. */

class Reader {
    constructor(bytes) {
        this.bytes = bytes;
        this.at = 0;
        this.decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    }
    uint() {
        const bytes = this.bytes;
        let byte = bytes[this.at++];
        if (byte < 0x80) return byte;
        let value = byte & 0x7f,
            scale = 128;
        do {
            if (this.at >= bytes.length) throw new Error("the data ends too early");
            byte = bytes[this.at++];
            value += (byte & 0x7f) * scale;
            scale *= 128;
        } while (byte >= 0x80);
        return value;
    }
    sint() {
        const value = this.uint();
        return value % 2 ? -(value + 1) / 2 : value / 2;
    }
    text() {
        const size = this.uint();
        this.at += size;
        return this.decoder.decode(this.bytes.subarray(this.at - size, this.at));
    }
    list(item) {
        const count = this.uint(),
            items = new Array(count);
        for (let i = 0; i < count; i++) items[i] = item(i);
        return items;
    }
}

/* Typed array that grows; samples come in blocks whose number is not known beforehand. */
class Column {
    constructor(Type, expected) {
        this.Type = Type;
        this.values = new Type(Math.max(1 << 16, Math.min(1 << 26, expected)));
        this.size = 0;
    }
    reserve(more) {
        if (this.size + more <= this.values.length) return;
        const grown = new this.Type(Math.max(this.values.length * 2, this.size + more));
        grown.set(this.values);
        this.values = grown;
    }
}

async function inflate(base64) {
    const text = atob(base64.trim());
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
}

function readProfile(bytes) {
    const r = new Reader(bytes);
    if (r.text() !== "lapse-page-1") throw new Error("this is not data of a lapse page");
    const p = {
        title: r.text(),
        writer: r.text(),
        byCount: r.uint() === 1,
        period: r.uint(),
        hasTimes: r.uint() === 1,
        startRealtime: r.uint(),
        duration: r.uint(),
        count: r.uint(),
        weight: r.uint(),
        gap: r.uint(),
    };
    p.notes = r.list(() => r.text());
    p.counters = new Map(r.list(() => [r.text(), r.uint()]));
    p.modules = r.list(() => ({ path: r.text(), buildId: r.text() }));
    p.functions = r.list(() => ({
        name: r.text(),
        file: r.text(),
        line: r.uint(),
        module: r.uint() - 1,
        flags: r.uint(),
    }));
    readNodes(p, r);
    readLeaves(p, r);
    p.processes = r.list(() => ({
        pid: r.uint(),
        name: r.text(),
        program: r.text(),
        command: r.text(),
        host: r.text(),
        start: r.uint(),
        end: r.uint(),
        cpu: r.uint(),
        clock: r.uint(),
        period: r.uint(),
        recorded: r.uint(),
        lost: r.uint(),
        ended: r.text(),
        run: r.uint(),
    }));
    p.runs = p.processes.reduce((runs, { run }) => Math.max(runs, run + 1), 1);
    p.threads = r.list(() => ({
        process: r.uint(),
        tid: r.uint(),
        name: r.text(),
        start: r.uint(),
        end: r.uint(),
        cpu: r.uint(),
        unsampled: r.uint() === 1,
        spans: [],
    }));
    p.labelSets = r.list(() => r.list(() => [r.text(), r.text()]));
    r.list(() => {
        const span = { thread: r.uint(), start: r.uint(), end: r.uint(), name: r.text() };
        if (p.threads[span.thread]) p.threads[span.thread].spans.push(span);
    });
    for (const thread of p.threads) placeSpans(thread);
    readSamples(p, r);
    return p;
}

/* Overlapping spans of a thread go to rows of their own. */
function placeSpans(thread) {
    thread.spans.sort((a, b) => a.start - b.start || b.end - a.end);
    const ends = [];
    for (const span of thread.spans) {
        let row = ends.findIndex((end) => end <= span.start);
        if (row < 0) row = ends.length;
        ends[row] = span.end;
        span.row = row;
    }
    thread.spanRows = ends.length;
}

function readNodes(p, r) {
    const count = r.uint();
    p.nodeCount = count;
    p.nodeParent = new Uint32Array(count);
    p.nodeFunction = new Uint32Array(count);
    p.nodeFlags = new Uint8Array(count);
    p.nodeLine = new Uint32Array(count);
    for (let i = 1; i < count; i++) {
        p.nodeParent[i] = i - r.uint();
        p.nodeFunction[i] = r.uint();
        p.nodeFlags[i] = r.uint();
        p.nodeLine[i] = r.uint();
    }
}

function readLeaves(p, r) {
    const count = r.uint();
    p.leafCount = count;
    p.leafNode = new Uint32Array(count);
    p.leafLine = new Uint32Array(count);
    p.leafSamples = new Float64Array(count);
    p.leafWeight = new Float64Array(count);
    p.leafSquares = new Float64Array(count);
    for (let i = 0; i < count; i++) {
        p.leafNode[i] = r.uint();
        p.leafLine[i] = r.uint();
        p.leafSamples[i] = r.uint();
        const weight = (p.leafWeight[i] = r.uint()),
            more = r.uint();
        p.leafSquares[i] = p.leafSamples[i] ? (weight * weight) / p.leafSamples[i] + more : 0;
    }
}

/* Run lengths: (how many, value) until the block is full. */
function readRuns(r, column, count) {
    column.reserve(count);
    for (const end = column.size + count; column.size < end; ) {
        const stop = Math.min(end, column.size + r.uint()),
            value = r.uint();
        if (stop === column.size) throw new Error("an empty run of samples");
        column.values.fill(value, column.size, stop);
        column.size = stop;
    }
}

function readSamples(p, r) {
    const [thread, leaf, labels, number] = [0, 1, 2, 3].map(() => new Column(Uint32Array, p.count));
    const [time, weight] = [0, 1].map(() => new Column(Float64Array, p.count));
    const lastTime = new Float64Array(p.threads.length),
        lastWeight = new Float64Array(p.threads.length);
    for (let count = r.uint(); count; count = r.uint()) {
        const from = thread.size;
        readRuns(r, thread, count);
        readRuns(r, labels, count);
        readRuns(r, number, count);
        for (const column of [time, leaf, weight]) column.reserve(count);
        const threads = thread.values;
        for (let i = from; i < from + count; i++) time.values[i] = lastTime[threads[i]] += r.sint();
        for (let i = from; i < from + count; i++) leaf.values[i] = r.uint();
        for (let i = from; i < from + count; i++)
            weight.values[i] = lastWeight[threads[i]] += r.sint();
        for (const column of [time, leaf, weight]) column.size += count;
    }
    p.sampleCount = thread.size;
    sortByThread(p, { thread, time, leaf, weight, labels, number });
}

/* Samples of one thread lie together, in order of time: a range of time is two binary searches. */
function sortByThread(p, columns) {
    const count = p.sampleCount,
        threads = p.threads.length;
    const start = new Uint32Array(threads + 1);
    for (let i = 0; i < count; i++) start[columns.thread.values[i] + 1]++;
    for (let t = 0; t < threads; t++) start[t + 1] += start[t];
    const next = start.slice();
    const s = {
        start,
        time: new Float64Array(count),
        leaf: new Uint32Array(count),
        weight: new Float64Array(count),
        labels: new Uint32Array(count),
        number: new Uint32Array(count),
    };
    const place = new Uint32Array(count);
    for (let i = 0; i < count; i++) place[i] = next[columns.thread.values[i]]++;
    for (const name of ["time", "leaf", "weight", "labels", "number"]) {
        const from = columns[name].values,
            to = s[name];
        for (let i = 0; i < count; i++) to[place[i]] = from[i];
    }
    /* Running sums: the CPU time of any range is one subtraction. */
    s.before = new Float64Array(count + 1);
    for (let i = 0; i < count; i++) s.before[i + 1] = s.before[i] + s.weight[i];
    p.samples = s;
}

/* First index in [low, high) whose time is at least `time`. */
function lowerBound(times, time, low, high) {
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (times[middle] < time) low = middle + 1;
        else high = middle;
    }
    return low;
}
