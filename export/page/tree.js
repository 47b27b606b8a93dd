/* SPDX-License-Identifier: MIT */
/* From columns to what is drawn. A Shape is the call tree by function (equal names under one parent
 * are one node), made once for each way of treating recursion. Weights are sums over the samples
 * that the reader chose. A Frame is one box of a picture, made only when it is wide enough to see. */

class Shape {
    constructor(profile, collapse) {
        this.profile = profile;
        const count = profile.nodeCount,
            names = profile.nameOf;
        const functions = profile.functions.length;
        this.ofNode = new Uint32Array(count);
        const parent = new Uint32Array(count),
            func = new Int32Array(count);
        const plain = new Uint8Array(count),
            guessed = new Uint8Array(count);
        const known = new Map();
        let size = 1;
        func[0] = -1;
        for (let i = 1; i < count; i++) {
            const above = this.ofNode[profile.nodeParent[i]],
                name = names[profile.nodeFunction[i]];
            let node;
            if (collapse && func[above] === name) node = above;
            else {
                const key = above * functions + name;
                node = known.get(key);
                if (node === undefined) {
                    node = size++;
                    known.set(key, node);
                    parent[node] = above;
                    func[node] = name;
                    guessed[node] = 1;
                }
            }
            this.ofNode[i] = node;
            if (!(profile.nodeFlags[i] & 1)) plain[node] = 1;
            if (!(profile.nodeFlags[i] & 2)) guessed[node] = 0;
        }
        this.size = size;
        this.parent = parent.slice(0, size);
        this.func = func.slice(0, size);
        this.plain = plain;
        this.guessed = guessed;
        this.linkChildren();
        this.markRecursion(functions);
    }
    linkChildren() {
        const { size, parent } = this;
        this.depth = new Uint32Array(size);
        this.childStart = new Uint32Array(size + 1);
        for (let v = 1; v < size; v++) {
            this.depth[v] = this.depth[parent[v]] + 1;
            this.childStart[parent[v] + 1]++;
        }
        for (let v = 0; v < size; v++) this.childStart[v + 1] += this.childStart[v];
        const next = this.childStart.slice(0, size);
        this.children = new Uint32Array(size - 1);
        for (let v = 1; v < size; v++) this.children[next[parent[v]]++] = v;
        this.deepest = this.depth.reduce((a, b) => Math.max(a, b), 0);
    }
    /* outermost[v]: no frame above v is of the same function. A function's total is the sum over
     * these, so each sample counts once however deep it recurses. */
    markRecursion(functions) {
        this.outermost = new Uint8Array(this.size);
        this.recursive = new Uint8Array(functions);
        const open = new Uint32Array(functions),
            stack = [0],
            at = [this.childStart[0]];
        while (stack.length) {
            const top = stack.length - 1,
                v = stack[top];
            if (at[top] < this.childStart[v + 1]) {
                const child = this.children[at[top]++],
                    f = this.func[child];
                if (open[f]++) this.recursive[f] = 1;
                else this.outermost[child] = 1;
                stack.push(child);
                at.push(this.childStart[child]);
            } else {
                if (v) open[this.func[v]]--;
                stack.pop();
                at.pop();
            }
        }
    }
}

/* What one choice of threads, labels and time weighs, by leaf. */
function weighLeaves(profile, choice) {
    const out = {
        weight: new Float64Array(profile.leafCount),
        count: new Float64Array(profile.leafCount),
        squares: new Float64Array(profile.leafCount),
    };
    if (!profile.hasTimes) {
        for (let i = 0; i < profile.leafCount; i++)
            addLeaf(out, i, profile.leafWeight[i], profile.leafSamples[i]);
        return out;
    }
    const s = profile.samples,
        labels = choice.labels;
    for (let t = 0; t < profile.threads.length; t++) {
        if (!choice.threads[t]) continue;
        const [from, to] = sampleRange(profile, t, choice.range);
        for (let i = from; i < to; i++) {
            if (labels && !labels[s.labels[i]]) continue;
            addLeaf(out, s.leaf[i], s.weight[i], s.number[i]);
        }
    }
    return out;
}

function addLeaf(out, leaf, weight, count) {
    out.weight[leaf] += weight;
    out.count[leaf] += count;
    if (count) out.squares[leaf] += (weight * weight) / count;
}

function sampleRange(profile, thread, range) {
    const s = profile.samples,
        low = s.start[thread],
        high = s.start[thread + 1];
    if (!range) return [low, high];
    return [lowerBound(s.time, range[0], low, high), lowerBound(s.time, range[1], low, high)];
}

class Weights {
    constructor(shape, leaves) {
        this.shape = shape;
        this.leaves = leaves;
        const size = shape.size,
            profile = shape.profile;
        this.self = new Float64Array(size);
        this.selfCount = new Float64Array(size);
        this.selfSquares = new Float64Array(size);
        for (let i = 0; i < profile.leafCount; i++) {
            const v = shape.ofNode[profile.leafNode[i]];
            this.self[v] += leaves.weight[i];
            this.selfCount[v] += leaves.count[i];
            this.selfSquares[v] += leaves.squares[i];
        }
        this.total = this.self.slice();
        this.totalCount = this.selfCount.slice();
        this.totalSquares = this.selfSquares.slice();
        for (let v = size - 1; v > 0; v--) {
            const up = shape.parent[v];
            this.total[up] += this.total[v];
            this.totalCount[up] += this.totalCount[v];
            this.totalSquares[up] += this.totalSquares[v];
        }
        this.whole = this.total[0];
        this.wholeCount = this.totalCount[0];
        this.wholeSquares = this.totalSquares[0];
    }
    /* Sums by function, in order of self, then total, then name. */
    functions() {
        if (this.byFunction) return this.byFunction;
        const { shape } = this,
            rows = new Map();
        for (let v = 1; v < shape.size; v++) {
            if (!this.total[v] && !this.totalCount[v]) continue;
            const f = shape.func[v];
            let row = rows.get(f);
            if (!row)
                rows.set(
                    f,
                    (row = {
                        f,
                        self: 0,
                        total: 0,
                        selfCount: 0,
                        totalCount: 0,
                        selfSquares: 0,
                        totalSquares: 0,
                    }),
                );
            row.self += this.self[v];
            row.selfCount += this.selfCount[v];
            row.selfSquares += this.selfSquares[v];
            if (!shape.outermost[v]) continue;
            row.total += this.total[v];
            row.totalCount += this.totalCount[v];
            row.totalSquares += this.totalSquares[v];
        }
        const names = shape.profile.functions;
        this.byFunction = [...rows.values()].sort(
            (a, b) =>
                b.self - a.self ||
                b.total - a.total ||
                (names[a.f].name < names[b.f].name ? -1 : 1),
        );
        this.rows = rows;
        return this.byFunction;
    }
    row(f) {
        this.functions();
        return this.rows.get(f);
    }
    /* Share of the weight whose stack holds a matching function; each sample counts once. */
    matched(matches) {
        const { shape } = this,
            held = new Uint8Array(shape.size);
        let weight = 0,
            count = 0;
        for (let v = 1; v < shape.size; v++) {
            if (!matches[shape.func[v]] && !held[shape.parent[v]]) continue;
            held[v] = 1;
            weight += this.self[v];
            count += this.selfCount[v];
        }
        return { weight, count, share: this.whole ? weight / this.whole : 0 };
    }
}

/* A box. `places` are nodes of the shape: everything that the box stands for. Going up (callers),
 * each place carries the weight that came from below it. */
class Frame {
    constructor(parent, func, places, shares) {
        this.parent = parent;
        this.func = func;
        this.places = places;
        this.shares = shares;
        this.depth = parent ? parent.depth + 1 : 0;
        this.total = this.count = this.self = 0;
        this.start = 0;
        this.kids = null;
    }
    children(weights) {
        if (this.kids) return this.kids;
        const groups = new Map();
        if (this.shares) this.groupCallers(weights, groups);
        else this.groupCallees(weights, groups);
        const names = weights.shape.profile.functions;
        this.kids = [...groups.values()].sort(
            (a, b) => b.total - a.total || (names[a.func].name < names[b.func].name ? -1 : 1),
        );
        let at = this.start;
        for (const kid of this.kids) {
            kid.start = at;
            at += kid.total;
        }
        return this.kids;
    }
    groupCallees(weights, groups) {
        const { shape, total, totalCount, self } = weights;
        for (const place of this.places)
            for (let i = shape.childStart[place]; i < shape.childStart[place + 1]; i++) {
                const child = shape.children[i];
                if (!total[child]) continue;
                const kid = groupOf(this, groups, shape.func[child], null);
                kid.places.push(child);
                kid.total += total[child];
                kid.count += totalCount[child];
                kid.self += self[child];
            }
    }
    groupCallers(weights, groups) {
        const { shape } = weights;
        for (let i = 0; i < this.places.length; i++) {
            const up = shape.parent[this.places[i]];
            if (!up) continue;
            const kid = groupOf(this, groups, shape.func[up], []);
            kid.places.push(up);
            kid.shares.push(this.shares[i]);
            kid.total += this.shares[i].weight;
            kid.count += this.shares[i].count;
        }
    }
    inlined(shape) {
        return !this.shares && this.func >= 0 && this.places.every((v) => !shape.plain[v]);
    }
    guessed(shape) {
        return this.func >= 0 && this.places.every((v) => shape.guessed[v]);
    }
}

function groupOf(parent, groups, func, shares) {
    let kid = groups.get(func);
    if (!kid) groups.set(func, (kid = new Frame(parent, func, [], shares)));
    return kid;
}

/* The root of a picture. mode: "callees" from the outermost frame or from `focus` (a function or
 * -1), "callers" from the innermost frame or from `focus`. */
function rootFrame(weights, mode, focus) {
    const { shape } = weights,
        up = mode === "callers";
    const root = new Frame(null, focus, [], up ? [] : null);
    if (!up && focus < 0) {
        root.places.push(0);
        root.total = weights.whole;
        root.count = weights.wholeCount;
        root.self = weights.self[0];
        return root;
    }
    for (let v = 1; v < shape.size; v++) {
        const chosen =
            focus < 0 ? weights.self[v] > 0 : shape.func[v] === focus && shape.outermost[v];
        if (!chosen) continue;
        const weight = focus < 0 ? weights.self[v] : weights.total[v];
        const count = focus < 0 ? weights.selfCount[v] : weights.totalCount[v];
        root.places.push(v);
        if (up) root.shares.push({ weight, count });
        root.total += weight;
        root.count += count;
    }
    if (focus >= 0) root.self = (weights.row(focus) || { self: 0 }).self;
    if (up && focus < 0) startFromLeaves(root, weights);
    return root;
}

/* Without a focus the first row of callers is the innermost frames themselves. */
function startFromLeaves(root, weights) {
    const groups = new Map();
    for (let i = 0; i < root.places.length; i++) {
        const kid = groupOf(root, groups, weights.shape.func[root.places[i]], []);
        kid.places.push(root.places[i]);
        kid.shares.push(root.shares[i]);
        kid.total += root.shares[i].weight;
        kid.count += root.shares[i].count;
        kid.self = kid.total;
    }
    const names = weights.shape.profile.functions;
    root.kids = [...groups.values()].sort(
        (a, b) => b.total - a.total || (names[a.func].name < names[b.func].name ? -1 : 1),
    );
    let at = 0;
    for (const kid of root.kids) {
        kid.start = at;
        at += kid.total;
    }
}
