/* SPDX-License-Identifier: MIT */
/* What the reader chose: threads, labels, time, way of drawing, search, selected function. All views
 * draw from here, and whoever changes it says what changed; so the views stay linked. */

const PAUSE_MS = 120;

class Choice {
    constructor(profile) {
        this.profile = profile;
        this.threads = new Uint8Array(profile.threads.length).fill(1);
        this.labels = null; /* by label set; null: all */
        this.labelKeys = null; /* what the labels were chosen by, for the filter list */
        this.range = null; /* [from, until) in ns since the start */
        this.mode = "callees";
        this.focus = -1; /* function that callers or callees are drawn for */
        this.collapse = false;
        this.upward = false; /* flame graph instead of icicle */
        this.query = "";
        this.matches = null; /* by function */
        this.matchedShare = null;
        this.queryError = "";
        this.selected = -1; /* function */
        this.view = "flame";
        this.theme = "light";
        this.shapes = [null, null];
        this.listeners = [];
        this.leaves = this.allLeaves = Leaves.all(profile);
    }
    listen(listener) {
        this.listeners.push(listener);
    }
    /* what: filter, settled (some time after a filter that moved), draw, select, view, search or
     * theme; change: what is new of a filter. */
    tell(what, change) {
        for (const listener of this.listeners) listener(what, change);
    }
    get shape() {
        const which = this.collapse ? 1 : 0;
        return (this.shapes[which] = this.shapes[which] || new Shape(this.profile, this.collapse));
    }
    get weights() {
        const shape = this.shape;
        if (!this.weighed || this.weighed.shape !== shape || this.weighed.leaves !== this.leaves) {
            const spare = this.spare && this.spare.shape === shape ? this.spare : null;
            this.spare = null;
            this.weighed = new Weights(shape, this.leaves, spare);
        }
        return this.weighed;
    }
    giveBack(weights) {
        if (weights !== this.weighed) this.spare = weights;
    }
    get colours() {
        this.coloured = this.coloured || {};
        return (this.coloured[this.theme] =
            this.coloured[this.theme] || functionColours(this.profile, this.theme));
    }
    get palette() {
        return PALETTES[this.theme];
    }
    name(f) {
        return f < 0 ? "all" : this.profile.functions[f].shown;
    }
    /* moving: more of the same is to be expected soon, so what is slow to follow waits for a pause. */
    filter(change, moving) {
        const before = this.range,
            onlyTime = Object.keys(change).every((part) => part === "range");
        Object.assign(this, change);
        this.leaves =
            (onlyTime && before && this.range && moveLeaves(this.leaves, this, before)) ||
            this.weigh();
        this.countMatches();
        this.tell("filter", change);
        clearTimeout(this.pause);
        if (moving) this.pause = setTimeout(() => this.tell("settled"), PAUSE_MS);
        else this.tell("settled");
    }
    weigh() {
        const all =
            !this.profile.hasTimes ||
            (!this.range && !this.labels && this.threads.every((on) => on));
        return all ? this.allLeaves : weighLeaves(this.profile, this);
    }
    draw(change) {
        Object.assign(this, change);
        this.countMatches();
        this.tell("draw");
    }
    select(f) {
        this.selected = f;
        this.tell("select");
    }
    show(view) {
        this.view = view;
        this.tell("view");
    }
    /* Self time by module. */
    moduleWeights() {
        const { profile, leaves } = this,
            sums = new Float64Array(profile.modules.length + 1);
        this.leafModule =
            this.leafModule ||
            profile.leafNode.map(
                (node) => 1 + (node ? profile.functions[profile.nodeFunction[node]].module : -1),
            );
        for (let i = 0; i < profile.leafCount; i++) sums[this.leafModule[i]] += leaves.weight[i];
        return sums.subarray(1);
    }
    search(query) {
        this.query = query;
        this.matches = null;
        this.queryError = "";
        if (query) {
            try {
                const pattern = searchPattern(query);
                this.matches = Uint8Array.from(this.profile.functions, (fn) =>
                    pattern.test(fn.name) ? 1 : 0,
                );
            } catch (error) {
                this.queryError = error.message.replace(/^Invalid regular expression: /, "");
            }
        }
        this.countMatches();
        this.tell("search");
    }
    countMatches() {
        this.matchedShare = this.matches ? this.weights.matched(this.matches) : null;
    }
}

/* Small letters match both cases, as in editors. By code points where the pattern allows that: it
 * does not when harmless characters are escaped, as in C\+\+\:\:. */
function searchPattern(query) {
    const fold = /[A-Z]/.test(query) ? "" : "i";
    try {
        return new RegExp(query, fold + "u");
    } catch {
        return new RegExp(query, fold);
    }
}

/* The first function of each name stands for all of that name. */
function nameFunctions(profile) {
    const first = new Map();
    profile.nameOf = Uint32Array.from(profile.functions, (fn, f) => {
        if (!first.has(fn.name)) first.set(fn.name, f);
        return first.get(fn.name);
    });
    for (const fn of profile.functions) fn.shown = shownName(fn.name);
}
