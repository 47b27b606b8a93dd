/* SPDX-License-Identifier: MIT */
/* Boxes of the flame graph on an axis of weight, as columns, level by level from the root. A box
 * stands for its *places*: nodes of the shape. Going up (callers) each place carries the weight that
 * came from below it. Only what is wide enough to be seen is made, a few milliseconds' worth a frame,
 * so a picture is ready from its root outwards; flame.js draws what is there. */

class Level {
    constructor() {
        this.size = this.placeCount = 0; /* boxes, places */
        this.start = this.total = this.count = this.self = new Float64Array(0);
        /* of the box above; of the boxes below: [kids, kidsEnd); places: [placeFrom, placeEnd) */
        this.func = this.parent = this.kids = this.kidsEnd = new Int32Array(0);
        this.placeFrom = this.placeEnd = this.place = this.func;
        this.placeWeight = this.placeSamples = this.start; /* when going up */
        this.strips = []; /* from, to: what is too narrow for boxes */
        this.known = []; /* marks of drawn boxes */
    }
    reserve(boxes) {
        if (this.size + boxes > this.func.length)
            this.grow(
                ["start", "total", "count", "self", "func", "parent"].concat(
                    ["kids", "kidsEnd", "placeFrom", "placeEnd"],
                ),
                this.size + boxes,
            );
    }
    reservePlaces(places, weighed) {
        const names = weighed ? ["place", "placeWeight", "placeSamples"] : ["place"];
        if (this.placeCount + places > this.place.length)
            this.grow(names, this.placeCount + places);
    }
    grow(names, least) {
        for (const name of names) {
            const grown = new this[name].constructor(Math.max(64, least * 2));
            grown.set(this[name]);
            this[name] = grown;
        }
    }
    add(start, total, count, self, func, parent, places) {
        const i = this.size++;
        this.start[i] = start;
        this.total[i] = total;
        this.count[i] = count;
        this.self[i] = self;
        this.func[i] = func;
        this.parent[i] = parent;
        this.placeFrom[i] = this.placeCount;
        this.placeCount += places;
        this.placeEnd[i] = this.placeCount;
    }
    /* The last box that starts at or before a place on the axis; -1: none. */
    find(at) {
        let low = -1,
            high = this.size;
        while (high - low > 1) {
            const middle = (low + high) >> 1;
            if (this.start[middle] <= at) low = middle;
            else high = middle;
        }
        return low;
    }
}

/* One box, by where it lies: kept for what is selected, hovered or zoomed. */
class Box {
    constructor(levels, depth, index) {
        Object.assign(this, { levels, depth, index });
        const level = levels[depth];
        for (const column of ["start", "total", "count", "self", "func"])
            this[column] = level[column][index];
    }
    get end() {
        return this.start + this.total;
    }
    get parent() {
        const { levels, depth, index } = this;
        return depth ? new Box(levels, depth - 1, levels[depth].parent[index]) : null;
    }
    get path() {
        return this.depth ? [...this.parent.path, this.func] : [];
    }
    is(other) {
        return Boolean(
            other &&
                this.depth === other.depth &&
                this.start === other.start &&
                this.func === other.func,
        );
    }
}

/* Room for what lies below one box, by function; the pictures of a shape share it. */
class Groups {
    constructor(shape) {
        const functions = shape.profile.functions.length;
        this.slot = new Int32Array(functions);
        this.stamp = new Int32Array(functions);
        this.now = 0;
        for (const name of ["total", "count", "self"]) this[name] = new Float64Array(functions);
        for (const name of ["func", "places", "to"]) this[name] = new Int32Array(functions);
        /* of each place: the node, or its index in the level; its group */
        this.place = new Int32Array(shape.size);
        this.of = new Int32Array(shape.size);
        this.clear();
    }
    clear() {
        this.size = this.found = 0;
        this.now++;
    }
    add(func, weight, count, self, place) {
        let at = this.slot[func];
        if (this.stamp[func] !== this.now) {
            this.stamp[func] = this.now;
            this.slot[func] = at = this.size++;
            this.func[at] = func;
            this.total[at] = this.count[at] = this.self[at] = this.places[at] = 0;
        }
        this.total[at] += weight;
        this.count[at] += count;
        this.self[at] += self;
        this.places[at]++;
        this.place[this.found] = place;
        this.of[this.found++] = at;
    }
}

class Picture {
    /* mode: "callees" from the outermost frame or from `focus` (a function or -1), "callers" from
     * the innermost frame or from `focus`. */
    constructor(weights, mode, focus) {
        this.weights = weights;
        this.names = weights.shape.profile.functions;
        this.up = mode === "callers";
        this.focus = focus;
        this.groups = weights.shape.groups = weights.shape.groups || new Groups(weights.shape);
        this.coarser = [];
        this.first = this.rootLevel();
        this.aim(0, 0, 1);
    }
    get total() {
        return this.first.total[0];
    }
    get root() {
        return new Box(this.levels, 0, 0);
    }
    box(depth, index) {
        return new Box(this.levels[depth] ? this.levels : this.coarser, depth, index);
    }
    rootLevel() {
        const { weights, focus, up } = this,
            { shape } = weights,
            root = new Level();
        const own = focus < 0,
            weight = own ? weights.self : weights.total,
            samples = own ? weights.selfCount : weights.totalCount;
        let total = 0,
            count = 0,
            found = 0;
        root.reserve(1);
        root.reservePlaces(shape.size, up);
        if (own && !up) {
            total = weights.whole;
            count = weights.wholeCount;
            root.place[found++] = 0;
        }
        for (let v = 1; v < shape.size && (up || !own); v++) {
            if (!weight[v] || !(own || (shape.func[v] === focus && shape.outermost[v]))) continue;
            root.place[found] = v;
            if (up) {
                root.placeWeight[found] = weight[v];
                root.placeSamples[found] = samples[v];
            }
            found++;
            total += weight[v];
            count += samples[v];
        }
        const self = focus >= 0 ? weights.sums.self[focus] : up ? 0 : weights.self[0];
        root.add(0, total, count, self, focus, 0, found);
        return root;
    }
    /* What is to be seen: [low, high), boxes that are a pixel wide when that is `pixels` wide. Levels
     * of before stay in use until the new ones are made. */
    aim(low, high, pixels) {
        this.low = low;
        this.high = high;
        this.least = (high - low) / pixels;
        if (this.levels) this.coarser = this.levels.concat(this.coarser.slice(this.levels.length));
        this.levels = [this.first];
        this.at = 0;
        this.next = new Level();
        this.ready = false;
        this.first.strips = [];
    }
    /* Is what was made fine enough for a window? */
    covers(low, high, pixels) {
        return (
            low >= this.low &&
            Math.min(high, this.total) <= this.high &&
            this.least <= ((high - low) / pixels) * 1.5
        );
    }
    level(depth) {
        return this.levels[depth] || this.coarser[depth];
    }
    get depth() {
        return this.ready ? this.levels.length : Math.max(this.levels.length, this.coarser.length);
    }
    /* Make levels until a moment of performance.now(). Returns whether all is made. */
    make(until) {
        while (!this.ready) {
            const level = this.levels[this.levels.length - 1];
            for (let work = 0; this.at < level.size; this.at++) {
                if (work > 1000) {
                    if (performance.now() > until) return false;
                    work = 0;
                }
                work += 20 + this.expand(level, this.at, this.next, this.least);
            }
            if (this.next.size || this.next.strips.length) {
                this.levels.push(this.next);
                this.next = new Level();
                this.next.reserve(this.levels[this.levels.length - 1].size);
                this.at = 0;
            } else {
                this.ready = true;
                this.coarser = [];
            }
        }
        return true;
    }
    /* Boxes below one box into the next level. Returns how many places were looked at. */
    expand(level, index, next, least) {
        const { groups, up } = this,
            start = level.start[index];
        let looked = 0;
        level.kids[index] = next.size;
        if (start < this.high && start + level.total[index] > this.low) {
            if (!up && level.placeEnd[index] - level.placeFrom[index] === 1)
                looked = this.expandPlace(level, index, next, least);
            else {
                this.group(level, index);
                this.addGroups(level, index, next, least);
                looked = groups.found;
            }
        }
        level.kidsEnd[index] = next.size;
        return looked;
    }
    /* One place alone: its children are of different functions already. */
    expandPlace(level, index, next, least) {
        const { weights, names } = this,
            { total, totalCount, self, shape } = weights,
            { children, childStart, func } = shape,
            place = level.place[level.placeFrom[index]],
            from = childStart[place],
            to = childStart[place + 1],
            order = [];
        let rest = 0,
            at = level.start[index];
        for (let k = from; k < to; k++) {
            const weight = total[children[k]];
            if (!weight) continue;
            if (weight >= least) order.push(children[k]);
            else rest += weight;
        }
        if (order.length > 1)
            order.sort(
                (a, b) =>
                    total[b] - total[a] || (names[func[a]].name < names[func[b]].name ? -1 : 1),
            );
        next.reserve(order.length);
        next.reservePlaces(order.length, false);
        for (const node of order) {
            next.place[next.placeCount] = node;
            next.add(at, total[node], totalCount[node], self[node], func[node], index, 1);
            at += total[node];
        }
        if (rest) next.strips.push(at, at + rest);
        return to - from;
    }
    /* What lies below a box, by function. */
    group(level, index) {
        const { up, weights, groups } = this,
            { shape, total, totalCount, self } = weights,
            { func, parent, childStart, children } = shape,
            here = this.startsHere(level);
        groups.clear();
        for (let i = level.placeFrom[index]; i < level.placeEnd[index]; i++) {
            const place = level.place[i];
            if (up) {
                const weight = level.placeWeight[i],
                    node = here ? place : parent[place];
                if (node) groups.add(func[node], weight, level.placeSamples[i], here ? weight : 0, i);
                continue;
            }
            for (let k = childStart[place]; k < childStart[place + 1]; k++) {
                const child = children[k];
                if (total[child])
                    groups.add(func[child], total[child], totalCount[child], self[child], child);
            }
        }
    }
    /* Without a focus the first row of callers is the innermost frames themselves. */
    startsHere(level) {
        return this.up && this.focus < 0 && level === this.first;
    }
    addGroups(level, index, next, least) {
        const { groups, names, up } = this,
            { func, total, count, self, places, to, size } = groups,
            order = [];
        let rest = 0,
            at = level.start[index],
            found = 0;
        for (let i = 0; i < size; i++) {
            to[i] = -1;
            if (total[i] >= least) order.push(i);
            else rest += total[i];
        }
        order.sort(
            (a, b) => total[b] - total[a] || (names[func[a]].name < names[func[b]].name ? -1 : 1),
        );
        for (const i of order) found += places[i];
        next.reserve(order.length);
        next.reservePlaces(found, up);
        for (const i of order) {
            to[i] = next.placeCount;
            next.add(at, total[i], count[i], self[i], func[i], index, places[i]);
            at += total[i];
        }
        if (rest) next.strips.push(at, at + rest);
        this.addPlaces(level, next);
    }
    /* The places of the boxes just added, where `to` says. */
    addPlaces(level, next) {
        const { groups, up } = this,
            { parent } = this.weights.shape,
            here = this.startsHere(level);
        for (let i = 0; i < groups.found; i++) {
            const at = groups.to[groups.of[i]],
                place = groups.place[i];
            if (at < 0) continue;
            groups.to[groups.of[i]]++;
            next.place[at] = !up ? place : here ? level.place[place] : parent[level.place[place]];
            if (!up) continue;
            next.placeWeight[at] = level.placeWeight[place];
            next.placeSamples[at] = level.placeSamples[place];
        }
    }
    /* The boxes below one, none left out, as a level of their own. */
    below(level, index) {
        const next = new Level();
        this.group(level, index);
        this.addGroups(level, index, next, 0);
        return next;
    }
    nearest() {
        const next = this.below(this.first, 0);
        return Array.from({ length: next.size }, (_, i) => new Box([this.first, next], 1, i));
    }
    /* The box of a path of functions, as far as it exists, however narrow it is. */
    locate(path) {
        let levels = [this.first],
            index = 0;
        for (const func of path) {
            const next = this.below(levels[levels.length - 1], index),
                found = next.func.subarray(0, next.size).indexOf(func);
            if (found < 0) break;
            index = found;
            levels = [...levels, next];
        }
        return new Box(levels, levels.length - 1, index);
    }
    /* The same box where its children can be looked up; all of the picture is made for it. */
    refresh(box) {
        this.make(Infinity);
        const level = this.levels[box.depth],
            index = level ? level.find(box.start) : -1;
        if (index < 0 || level.func[index] !== box.func || level.start[index] !== box.start)
            return box;
        return new Box(this.levels, box.depth, index);
    }
    kids(box) {
        const { levels, depth, index } = this.refresh(box),
            out = [];
        if (levels !== this.levels) return out;
        for (let i = levels[depth].kids[index]; i < levels[depth].kidsEnd[index]; i++)
            out.push(new Box(levels, depth + 1, i));
        return out;
    }
    /* 1: inlined wherever it stands, 2: found by frame pointer wherever it stands. */
    marks(level, index) {
        const { known } = level,
            { plain, guessed } = this.weights.shape;
        if (known[index] !== undefined) return known[index];
        let inlined = !this.up && level.func[index] >= 0,
            guess = level.func[index] >= 0;
        for (let i = level.placeFrom[index]; i < level.placeEnd[index]; i++) {
            if (plain[level.place[i]]) inlined = false;
            if (!guessed[level.place[i]]) guess = false;
            if (!inlined && !guess) break;
        }
        return (known[index] = (inlined ? 1 : 0) | (guess ? 2 : 0));
    }
}
