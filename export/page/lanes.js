/* SPDX-License-Identifier: MIT */
/* Pixels of a thread's lane in the timeline: the prefix diff between one sample and the next, as
 * nested bars over time, one row of pixels for each depth. A lane is drawn into a bitmap wider than
 * the window and copied while the reader pans; a million samples cost at most four a pixel column. */

class LanePainter {
    constructor(choice) {
        this.choice = choice;
        const { profile } = choice;
        this.nodeDepth = new Uint32Array(profile.nodeCount);
        /* Below [truncated]: outer frames are missing, so what the diff makes of them is inferred. */
        this.nodeCut = new Uint8Array(profile.nodeCount);
        this.stands = new Uint8Array(profile.nodeCount); /* for missing outer frames */
        for (let i = 1; i < profile.nodeCount; i++) {
            this.stands[i] = profile.functions[profile.nodeFunction[i]].flags & 2 ? 1 : 0;
            this.nodeDepth[i] = this.nodeDepth[profile.nodeParent[i]] + 1;
            this.nodeCut[i] = this.nodeCut[profile.nodeParent[i]] | this.stands[i];
        }
        this.depths = profile.threads.map((_, t) => this.deepest(t));
        this.pause = profile.gap || 4 * (profile.period || 0) || profile.duration / 1000;
    }
    deepest(thread) {
        const s = this.choice.profile.samples,
            nodes = this.choice.profile.leafNode;
        let deepest = 0;
        for (let i = s.start[thread]; i < s.start[thread + 1]; i++)
            deepest = Math.max(deepest, this.nodeDepth[nodes[s.leaf[i]]]);
        return deepest;
    }
    node(sample) {
        const { profile } = this.choice;
        return profile.leafNode[profile.samples.leaf[sample]];
    }
    /* Was the thread off the CPU before this sample? A sample stands for `weight` of running time. */
    pausedBefore(sample) {
        const s = this.choice.profile.samples;
        return s.time[sample] - s.time[sample - 1] > s.weight[sample] + this.pause;
    }
    /* Indexes of the samples that stand for [from, until): all of them when there are few, else the
     * middle one of each slot of time. Slots lie at fixed multiples, so panning changes nothing. */
    pick(thread, from, until, columns) {
        const { profile } = this.choice,
            s = profile.samples;
        const first = s.start[thread],
            last = s.start[thread + 1];
        const low = Math.max(first, lowerBound(s.time, from, first, last) - 1);
        const high = Math.min(last, lowerBound(s.time, until, first, last) + 1);
        if (high - low <= columns * 4) {
            const all = new Uint32Array(Math.max(0, high - low));
            for (let i = 0; i < all.length; i++) all[i] = low + i;
            return { picked: all, lasts: all, exact: true };
        }
        const slot = 2 ** Math.floor(Math.log2((until - from) / columns)),
            picked = [],
            lasts = [];
        for (let at = low; at < high; ) {
            const end = far(s.time, at, high, (Math.floor(s.time[at] / slot) + 1) * slot);
            const next = Math.max(at + 1, end);
            picked.push((at + next) >>> 1);
            lasts.push(next - 1);
            at = next;
        }
        return { picked, lasts, exact: false };
    }
    words() {
        const { choice } = this,
            { words, palette } = choice.colours,
            { matches, selected } = choice;
        if (!matches && selected < 0) return words;
        const names = choice.profile.nameOf,
            strong = colourWord(matches ? palette.found : palette.accent);
        return words.map((word, f) =>
            (matches ? matches[f] : names[f] === selected)
                ? strong
                : ((word & 0xffffff) | 0x66000000) >>> 0,
        );
    }
    /* The lane of a thread over [from, until) in `columns` pixels. */
    paint(thread, from, until, columns) {
        const { profile } = this.choice,
            s = profile.samples,
            depth = this.depths[thread];
        const image = new ImageData(columns, Math.max(1, depth)),
            out = new Uint32Array(image.data.buffer);
        const words = this.words(),
            { picked, lasts, exact } = this.pick(thread, from, until, columns);
        const scale = columns / (until - from),
            labels = this.choice.labels;
        const open = new Uint32Array(depth + 1),
            opened = new Float64Array(depth + 1),
            bars = [];
        const x = (time) => Math.max(0, Math.min(columns, Math.round((time - from) * scale)));
        let deep = 0;
        const close = (level, at) => {
            if (open[level] && at - opened[level] >= 22)
                bars.push({
                    x0: opened[level],
                    x1: at,
                    depth: level - 1,
                    func: profile.nodeFunction[open[level]],
                });
        };
        for (let i = 0; i < picked.length; i++) {
            const sample = picked[i],
                last = i + 1 === picked.length,
                begin = x(s.time[sample]);
            const end = last
                ? Math.max(begin + 1, x(s.time[lasts[i]]))
                : Math.max(begin, x(s.time[picked[i + 1]]));
            const gone =
                !last && this.pausedBefore(lasts[i] + 1)
                    ? Math.min(end, Math.max(begin + 1, x(s.time[lasts[i]] + profile.period)))
                    : end;
            let node = this.node(sample);
            const alpha =
                labels && !labels[s.labels[sample]]
                    ? 0x40000000
                    : this.nodeCut[node]
                      ? 0x99000000
                      : 0xff000000;
            const depthNow = this.nodeDepth[node];
            for (let level = deep; level > depthNow; level--) {
                close(level, begin);
                open[level] = 0;
            }
            deep = depthNow;
            for (let level = depthNow; level > 0; level--, node = profile.nodeParent[node]) {
                const starts = open[level] !== node;
                if (starts) {
                    close(level, begin);
                    open[level] = node;
                    opened[level] = begin;
                }
                if (end === begin) continue;
                const word = words[profile.nodeFunction[node]],
                    row = (level - 1) * columns;
                if (this.stands[node]) this.stripes(out, row, begin, gone, word);
                else this.segment(out, row, begin, gone, end, word, alpha, starts);
            }
        }
        for (let level = deep; level > 0; level--) close(level, x(s.time[lasts[lasts.length - 1]]));
        return { image, bars, exact };
    }
    /* Stripes: what stands here is missing, and what lies above it is no root. */
    stripes(out, row, begin, end, word) {
        for (let x = begin; x < end; x++) if (((x >> 2) & 1) === 0) out[row + x] = word;
    }
    segment(out, row, begin, gone, end, word, alpha, starts) {
        const shown = (word & (alpha | 0xffffff)) >>> 0;
        if (gone - begin > 16) out.fill(shown, row + begin, row + gone);
        else for (let x = row + begin; x < row + gone; x++) out[x] = shown;
        if (end > gone) out.fill(((word & 0xffffff) | 0x30000000) >>> 0, row + gone, row + end);
        /* The pixel where a call begins is shaded: without it neighbours of one function merge. */
        if (starts && end - begin > 3) out[row + begin] = shadeWord(word);
    }
    use(thread, from, until, columns, most) {
        const { profile, palette } = this.choice,
            step = (until - from) / columns,
            use = new Float64Array(columns);
        addUse(profile, thread, from, step, Math.max(step, 4 * (profile.period || 1)), use);
        const height = 14,
            image = new ImageData(columns, height),
            out = new Uint32Array(image.data.buffer),
            word = colourWord(palette.cpu);
        for (let x = 0; x < columns; x++) {
            const rows = Math.min(height, Math.round((use[x] / most) * height));
            for (let y = height - rows; y < height; y++) out[y * columns + x] = word;
        }
        return image;
    }
}

function shadeWord(word) {
    return ((word & 0xff000000) | (((word >>> 1) & 0x7f7f7f) + ((word >>> 2) & 0x3f3f3f))) >>> 0;
}

/* Node of a sample's stack at a depth, or 0. */
function ancestorAt(profile, depths, node, depth) {
    if (depths[node] < depth) return 0;
    while (depths[node] > depth) node = profile.nodeParent[node];
    return node;
}

function putImage(canvas, image) {
    if (canvas.width !== image.width || canvas.height !== image.height) {
        canvas.width = image.width;
        canvas.height = image.height;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
}

function fitterText(context, palette, text, x, y) {
    context.font = "11px " + FONT;
    context.fillStyle = palette.muted;
    context.textBaseline = "middle";
    context.fillText(text, x, y);
}

function threadName(profile, t) {
    const thread = profile.threads[t],
        process = profile.processes[thread.process];
    return shownName(thread.name || (process && process.name) || "") || "thread " + thread.tid;
}

/* Where the samples are: what is shown at first. */
function sampledTime(profile) {
    const { time, start } = profile.samples;
    let low = Infinity,
        high = 0;
    for (let t = 0; t < profile.threads.length; t++) {
        if (start[t] === start[t + 1]) continue;
        low = Math.min(low, time[start[t]]);
        high = Math.max(high, time[start[t + 1] - 1]);
    }
    const room = (high - low) * 0.01 + (profile.period || 1);
    return low > high ? [0, profile.duration || 1] : [Math.max(0, low - room), high + room];
}

/* All threads, those of one process together, whoever used more CPU time first. */
function busiestThreads(profile) {
    const { before, start } = profile.samples, whole = new Float64Array(profile.processes.length);
    const weight = profile.threads.map((_, t) => before[start[t + 1]] - before[start[t]]);
    profile.threads.forEach((thread, t) => (whole[thread.process] += weight[t]));
    const process = (t) => profile.threads[t].process;
    const compare = (a, b) =>
        whole[process(b)] - whole[process(a)] ||
        process(a) - process(b) ||
        weight[b] - weight[a] ||
        a - b;
    return profile.threads.map((_, t) => t).sort(compare);
}
