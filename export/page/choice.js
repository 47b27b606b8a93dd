/* SPDX-License-Identifier: MIT */
/* What the reader chose: threads, labels, time, way of drawing, search, selected function. All views
 * draw from here, and whoever changes it says what changed; so the views stay linked. */

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
        this.leaves = weighLeaves(profile, this);
    }
    listen(listener) {
        this.listeners.push(listener);
    }
    tell(what) {
        for (const listener of this.listeners) listener(what);
    }
    get shape() {
        const which = this.collapse ? 1 : 0;
        return (this.shapes[which] = this.shapes[which] || new Shape(this.profile, this.collapse));
    }
    get weights() {
        const shape = this.shape;
        if (!this.weighed || this.weighed.shape !== shape || this.weighed.leaves !== this.leaves)
            this.weighed = new Weights(shape, this.leaves);
        return this.weighed;
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
    filter(change) {
        Object.assign(this, change);
        this.leaves = weighLeaves(this.profile, this);
        this.countMatches();
        this.tell("filter");
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
