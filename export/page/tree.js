/* SPDX-License-Identifier: MIT */
/* From columns to what is drawn. A Shape is the call tree by function (equal names under one parent
 * are one node), made once for each way of treating recursion. Weights are sums over the samples
 * that the reader chose. Boxes are made from both in picture.js. */

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
        this.leafNode = profile.leafNode.map((node) => this.ofNode[node]);
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
class Leaves {
    constructor(profile) {
        this.profile = profile;
        this.weight = new Float64Array(profile.leafCount);
        this.count = new Float64Array(profile.leafCount);
        this.squares = new Float64Array(profile.leafCount);
        this.whole = this.wholeCount = 0;
    }
    static all(profile) {
        const out = Object.assign(new Leaves(profile), {
            weight: profile.leafWeight,
            count: profile.leafSamples,
            squares: profile.leafSquares,
        });
        out.whole = out.weight.reduce((sum, part) => sum + part, 0);
        out.wholeCount = out.count.reduce((sum, part) => sum + part, 0);
        return out;
    }
    /* Samples [from, to) come in (sign 1) or go out (-1). Weights and counts stay whole numbers, so
     * what went in comes out exactly; of squares a rounding could stay behind. */
    move(from, to, sign, labels) {
        const s = this.profile.samples,
            { weight, count, squares } = this;
        for (let i = from; i < to; i++) {
            if (labels && !labels[s.labels[i]]) continue;
            const leaf = s.leaf[i],
                w = s.weight[i],
                n = s.number[i];
            weight[leaf] += sign * w;
            count[leaf] += sign * n;
            squares[leaf] = count[leaf] ? squares[leaf] + (sign * w * w) / n : 0;
            this.whole += sign * w;
            this.wholeCount += sign * n;
        }
    }
}

function weighLeaves(profile, choice) {
    const out = new Leaves(profile);
    for (let t = 0; t < profile.threads.length; t++)
        if (choice.threads[t]) out.move(...sampleRange(profile, t, choice.range), 1, choice.labels);
    return out;
}

/* The same leaves after a change of the range alone: only samples that come or go are touched.
 * Returns null where counting anew is less work. */
function moveLeaves(leaves, choice, before) {
    const { profile } = leaves,
        moves = [];
    let moved = 0,
        whole = 0;
    for (let t = 0; t < profile.threads.length; t++) {
        if (!choice.threads[t]) continue;
        const [from, to] = sampleRange(profile, t, before),
            [low, high] = sampleRange(profile, t, choice.range);
        if (low >= to || high <= from) moves.push([from, to, -1], [low, high, 1]);
        else
            moves.push(
                [low, from, 1],
                [from, low, -1],
                [to, high, 1],
                [high, to, -1],
            );
        whole += high - low;
    }
    for (const [from, to] of moves) moved += Math.max(0, to - from);
    if (moved > whole) return null;
    for (const [from, to, sign] of moves) leaves.move(from, to, sign, choice.labels);
    return Object.assign(Object.create(Leaves.prototype), leaves);
}

function sampleRange(profile, thread, range) {
    const s = profile.samples,
        low = s.start[thread],
        high = s.start[thread + 1];
    if (!range) return [low, high];
    return [lowerBound(s.time, range[0], low, high), lowerBound(s.time, range[1], low, high)];
}

class Weights {
    /* spare: weights of the same shape that nobody needs any more; their memory is used again. */
    constructor(shape, leaves, spare) {
        this.shape = shape;
        this.leaves = leaves;
        const room = spare || {};
        this.self = this.ownSums(leaves.weight, room.self);
        this.selfCount = this.ownSums(leaves.count, room.selfCount);
        this.total = this.sumUp(this.self, room.total);
        this.totalCount = this.sumUp(this.selfCount, room.totalCount);
        this.whole = this.total[0];
        this.wholeCount = this.totalCount[0];
    }
    /* By node, of the node alone. */
    ownSums(values, room) {
        const { leafNode, size } = this.shape,
            sums = room ? room.fill(0) : new Float64Array(size);
        for (let i = 0; i < leafNode.length; i++) sums[leafNode[i]] += values[i];
        return sums;
    }
    /* By node, with what is below. */
    sumUp(own, room) {
        const { parent, size } = this.shape,
            sums = room || new Float64Array(size);
        sums.set(own);
        for (let v = size - 1; v > 0; v--) sums[parent[v]] += sums[v];
        return sums;
    }
    get wholeSquares() {
        this.summedSquares ??= this.leaves.squares.reduce((sum, part) => sum + part, 0);
        return this.summedSquares;
    }
    /* Sums by function as columns. */
    get sums() {
        if (this.summed) return this.summed;
        const { func, outermost, size, profile } = this.shape,
            { self, total, selfCount, totalCount } = this,
            selfSquares = this.ownSums(this.leaves.squares),
            totalSquares = this.sumUp(selfSquares),
            sums = {};
        for (const name of ["self", "total", "selfCount", "totalCount", "selfSquares", "totalSquares"])
            sums[name] = new Float64Array(profile.functions.length);
        for (let v = 1; v < size; v++) {
            if (!totalCount[v] && !total[v]) continue;
            const f = func[v];
            sums.self[f] += self[v];
            sums.selfCount[f] += selfCount[v];
            sums.selfSquares[f] += selfSquares[v];
            if (!outermost[v]) continue;
            sums.total[f] += total[v];
            sums.totalCount[f] += totalCount[v];
            sums.totalSquares[f] += totalSquares[v];
        }
        return (this.summed = sums);
    }
    /* Sums by function, in order of self, then total, then name. */
    functions() {
        if (this.rows) return this.rows;
        const { self, total, totalCount } = this.sums,
            names = this.shape.profile.functions,
            order = [];
        for (let f = 0; f < names.length; f++) if (total[f] || totalCount[f]) order.push(f);
        order.sort(
            (a, b) =>
                self[b] - self[a] ||
                total[b] - total[a] ||
                (names[a].name < names[b].name ? -1 : 1),
        );
        return (this.rows = order.map((f) => this.row(f)));
    }
    /* Undefined for a function that is not in what was chosen. */
    row(f) {
        const { sums } = this;
        if (!sums.total[f] && !sums.totalCount[f]) return undefined;
        return {
            f,
            self: sums.self[f],
            total: sums.total[f],
            selfCount: sums.selfCount[f],
            totalCount: sums.totalCount[f],
            selfSquares: sums.selfSquares[f],
            totalSquares: sums.totalSquares[f],
        };
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
