/* SPDX-License-Identifier: MIT */
/* Flame graph and icicle: a window [low, high] on a Picture's axis of weight, so zooming is moving the
 * window. Boxes are painted as pixels, one row a level, and stretched; names and outlines follow. */

const ROW = 20,
    FLAME_BUDGET_MS = 3; /* of a frame, for making boxes */

class FlameView extends Plot {
    constructor(choice, parent, tip) {
        super(choice, parent, tip, {
            name: "flame",
            label: "Flame graph",
            hint: "Flame graph. Arrow keys move between boxes, Enter zooms, Backspace goes back.",
            left: 0,
        });
        this.makeBar();
        this.past = [];
        this.future = [];
        this.image = document.createElement("canvas");
        this.listen();
        this.rebuild();
        choice.listen((what) => this.changed(what));
    }
    makeBar() {
        const { choice } = this;
        this.modes = segmented(
            "Direction",
            [
                ["callees", "Callees", "From the outermost function down to what it calls"],
                ["callers", "Callers", "From each innermost function up to who calls it (i)"],
            ],
            (mode) => choice.draw({ mode }),
        );
        this.ways = segmented(
            "Orientation",
            [
                ["down", "Icicle", "Outermost at the top"],
                ["up", "Flame", "Outermost at the bottom (f)"],
            ],
            (way) => choice.draw({ upward: way === "up" }),
        );
        this.folding = toggle(
            "Fold recursion",
            "A function that calls itself is one box (r)",
            (on) => choice.draw({ collapse: on }),
        );
        this.back = button("←", "Back to the zoom before (Backspace)", () => this.goBack(), {
            "aria-label": "Zoom back",
        });
        this.forth = button("→", "Forward again", () => this.goForth(), {
            "aria-label": "Zoom forward",
        });
        this.whole = button("Whole graph", "Zoom all the way out (Esc)", () =>
            this.zoomTo(this.picture.root),
        );
        this.focusChip = button("", "Draw everything again", () => choice.draw({ focus: -1 }), {
            class: "chip",
            hidden: true,
        });
        this.trail = make("span", { class: "trail", dir: "ltr" });
        this.bar.append(
            this.modes,
            this.ways,
            this.folding,
            make("div", { class: "joined" }, this.back, this.forth),
            this.whole,
            this.focusChip,
            this.trail,
        );
    }
    changed(what) {
        if (what === "filter" || what === "draw") this.stale = true;
        if (this.choice.view !== "flame" || what === "settled") return;
        if (what === "filter") return this.follow();
        if (this.stale || (what === "draw" && this.isBehind())) this.rebuild();
        this.surface.dirty();
    }
    /* At once: a picture of the choice as it is now, nothing made yet. */
    rebuild() {
        const { choice } = this;
        this.stale = false;
        this.weighed = null;
        this.show(new Picture(choice.weights, choice.mode, choice.focus));
    }
    /* The same place stays zoomed as far as it still exists. */
    show(picture) {
        const { choice } = this,
            shape = [choice.mode, choice.focus, choice.collapse].join(),
            same = this.drawn === shape;
        if (!same) this.past = this.future = [];
        if (this.picture && same) choice.giveBack(this.picture.weights);
        this.zoomed = this.current = picture.locate(same ? this.zoomed.path : []);
        this.picture = picture;
        this.coming = null;
        this.drawn = shape;
        this.hovered = null;
        this.window = this.target = this.windowOf(this.zoomed);
        this.move = null;
        if (!picture.covers(...this.target, 3 * this.axisWidth)) this.aim(picture, this.target);
        this.turned = this.turned || this.upward !== choice.upward;
        this.upward = choice.upward;
        this.showBar();
        this.surface.dirty();
    }
    /* While the choice moves: one step towards its picture in a frame, a few milliseconds each, and the
     * picture is shown when it is complete. The next one is of the choice as it is by then. */
    follow() {
        if (this.following) return;
        this.following = requestAnimationFrame(() => {
            const { choice, coming } = this;
            this.following = 0;
            if (coming) {
                if (coming.make(performance.now() + FLAME_BUDGET_MS)) this.show(coming);
            } else if (this.weighed) {
                this.coming = new Picture(this.weighed, choice.mode, choice.focus);
                this.weighed = null;
                this.aim(this.coming, this.windowOf(this.coming.locate(this.zoomed.path)));
            } else if (this.stale) {
                this.stale = false;
                this.weighed = choice.weights;
            }
            if (this.isBehind()) this.follow();
        });
    }
    isBehind() {
        return Boolean(this.stale || this.weighed || this.coming);
    }
    /* For print: no later frame will come. */
    complete() {
        if (this.isBehind()) this.rebuild();
        this.window = this.target;
        this.move = null;
        this.picture.make(Infinity);
    }
    printHeight() {
        return this.picture.depth * ROW + 8;
    }
    /* The picture is made for a window and one more at each side. */
    aim(picture, [low, high]) {
        const span = high - low;
        picture.aim(low - span, high + span, 9 * this.axisWidth);
    }
    windowOf(box) {
        return [box.start, box.start + (box.total || 1)];
    }
    isWhole() {
        return this.zoomed.depth === 0;
    }
    showBar() {
        const { choice } = this;
        this.modes.press(choice.mode);
        this.ways.press(choice.upward ? "up" : "down");
        this.folding.press(choice.collapse);
        this.back.disabled = !this.past.length;
        this.forth.disabled = !this.future.length;
        this.whole.disabled = this.isWhole();
        this.focusChip.hidden = choice.focus < 0;
        setText(
            this.focusChip,
            (choice.mode === "callers" ? "Callers of " : "Callees of ") +
                elideText(choice.name(choice.focus), 40) +
                "  ×",
        );
        setText(this.trail, this.isWhole() ? "" : elideText(choice.name(this.zoomed.func), 90));
    }
    zoomTo(box, fromHistory) {
        if (box.is(this.zoomed) && !fromHistory) return;
        if (!fromHistory) {
            this.past.push(this.zoomed.path);
            this.future = [];
        }
        this.zoomed = this.current = box;
        this.target = this.windowOf(box);
        this.move = { from: this.window, began: performance.now() };
        this.showBar();
        this.describe(box);
        this.surface.dirty();
    }
    goBack() {
        if (!this.past.length) return;
        this.future.push(this.zoomed.path);
        this.zoomTo(this.picture.locate(this.past.pop()), true);
    }
    goForth() {
        if (!this.future.length) return;
        this.past.push(this.zoomed.path);
        this.zoomTo(this.picture.locate(this.future.pop()), true);
    }
    glide() {
        if (!this.move) return;
        const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
        const t = calm ? 1 : Math.min(1, (performance.now() - this.move.began) / 180);
        const ease = 1 - (1 - t) ** 3;
        this.window = [0, 1].map(
            (i) => this.move.from[i] + (this.target[i] - this.move.from[i]) * ease,
        );
        if (t < 1) this.surface.dirty();
        else this.move = null;
    }
    draw(context, width, height) {
        this.glide();
        const { picture } = this;
        if (!picture.covers(...this.target, 3 * width)) this.aim(picture, this.target);
        if (!picture.make(performance.now() + FLAME_BUDGET_MS)) this.surface.dirty();
        /* While levels are still to come the height stays, and with it the place that is scrolled to. */
        this.content = Math.max(
            height,
            picture.depth * ROW + 8,
            picture.ready ? 0 : this.content || 0,
        );
        this.setContent(this.content, height);
        if (this.turned) {
            this.turned = false;
            this.scroller.scrollTop = this.upward ? this.content : 0;
        }
        const rows = [];
        for (let depth = 0; depth < picture.depth; depth++) {
            const y = this.top(depth);
            if (y > -ROW && y < height) rows.push(depth);
        }
        if (this.upward) rows.reverse();
        if (rows.length) this.drawRows(context, rows, width);
        if (!picture.total) this.drawEmpty(context, width, height);
    }
    top(depth) {
        return (
            (this.upward ? this.content - (depth + 1) * ROW : depth * ROW) - this.scroller.scrollTop
        );
    }
    drawRows(context, rows, width) {
        const { ratio, fitter } = this.surface,
            columns = Math.round(width * ratio),
            top = this.top(rows[0]),
            names = [],
            marks = [];
        if (!this.pixels || this.pixels.width !== columns || this.pixels.height < rows.length)
            this.pixels = new ImageData(columns, rows.length + 8);
        const words = new Uint32Array(this.pixels.data.buffer);
        words.fill(0, 0, columns * rows.length);
        rows.forEach((depth, row) =>
            this.paintRow(
                words.subarray(row * columns, (row + 1) * columns),
                depth,
                ratio,
                names,
                marks,
            ),
        );
        putImage(this.image, this.pixels);
        context.imageSmoothingEnabled = false;
        context.drawImage(this.image, 0, 0, columns, rows.length, 0, top, width, rows.length * ROW);
        context.fillStyle = this.choice.palette.ground;
        rows.forEach((_, row) => context.fillRect(0, top + (row + 1) * ROW - 1, width, 1));
        for (const mark of marks) this.drawMark(context, ...mark);
        fitter.setFont("12px " + FONT);
        for (const name of names) this.drawName(context, ...name);
    }
    /* Pixels of a level's boxes. A pixel belongs to the box over its middle; a box that is over no
     * middle takes a pixel that nobody has. */
    paintRow(out, depth, ratio, names, marks) {
        const { picture, choice } = this,
            { words, palette } = choice.colours,
            { matches } = choice,
            level = picture.level(depth),
            [low, high] = this.window,
            scale = out.length / (high - low),
            above = depth < this.zoomed.depth,
            strip = ((colourWord(palette.pseudo) & 0xffffff) | 0x99000000) >>> 0,
            found = colourWord(palette.found),
            gap = colourWord(palette.gap);
        for (let i = 0; i < level.strips.length; i += 2) {
            const x0 = Math.max(0, Math.floor((level.strips[i] - low) * scale)),
                x1 = Math.ceil((level.strips[i + 1] - low) * scale);
            if (x1 > x0) out.fill(strip, x0, x1);
        }
        const { start, total, func } = level;
        for (let i = Math.max(0, level.find(low)); i < level.size && start[i] < high; i++) {
            const from = (start[i] - low) * scale,
                until = from + total[i] * scale,
                f = func[i];
            let x0 = Math.max(0, Math.ceil(from - 0.5)),
                x1 = Math.min(out.length, Math.ceil(until - 0.5));
            const match = matches && f >= 0 && matches[f];
            let word = match ? found : f < 0 ? gap : words[f];
            if (above) word = ((word & 0xffffff) | 0x8c000000) >>> 0;
            else if (matches && !match) word = ((word & 0xffffff) | 0x61000000) >>> 0;
            const wide = x1 - x0;
            if (wide > 3 * ratio) {
                out.fill(word, x0, x1 - Math.round(ratio));
                if (wide > 6 * ratio && (picture.marks(level, i) & 2 || this.outlined(depth, f, start[i])))
                    marks.push([depth, i, x0 / ratio, x1 / ratio]);
                if (wide > 26 * ratio)
                    names.push([depth, i, x0 / ratio, x1 / ratio, match, above]);
            } else if (wide > 0) for (; x0 < x1; x0++) out[x0] = word;
            else if (x0 < out.length && !out[x0]) out[x0] = word;
        }
    }
    /* 2: under pointer or keys, 1: selected. */
    outlined(depth, func, start) {
        const at = { depth, func, start },
            { hovered, current, keyed } = this;
        if ((hovered && hovered.is(at)) || (keyed && current.is(at))) return 2;
        return func >= 0 && func === this.choice.selected ? 1 : 0;
    }
    drawEmpty(context, width, height) {
        context.fillStyle = this.choice.palette.muted;
        context.textAlign = "center";
        context.fillText(
            "No samples here: widen the time range, or choose more threads.",
            width / 2,
            height / 2,
        );
        context.textAlign = "start";
    }
    drawMark(context, depth, index, left, right) {
        const { palette } = this.choice,
            level = this.picture.level(depth),
            y = this.top(depth),
            outline = this.outlined(depth, level.func[index], level.start[index]);
        if (this.picture.marks(level, index) & 2) {
            context.fillStyle = palette.shade;
            for (let x = left + 2; x < right - 1; x += 5) context.fillRect(x, y, 2, ROW - 1);
        }
        if (!outline) return;
        context.strokeStyle = outline > 1 ? palette.text : palette.accent;
        context.lineWidth = 2;
        context.strokeRect(left + 1, y + 1, right - left - 3, ROW - 3);
    }
    drawName(context, depth, index, left, right, match, above) {
        const { choice } = this,
            level = this.picture.level(depth),
            func = level.func[index],
            fitter = this.surface.fitter;
        const text =
            func < 0
                ? fitter.fit(this.rootName(), right - left - 10)
                : fitter.fitName(choice.name(func), right - left - 10);
        if (!text) return;
        const inlined = this.picture.marks(level, index) & 1;
        context.fillStyle = match ? choice.palette.foundText : choice.palette.text;
        context.globalAlpha = above ? 0.7 : 1;
        if (inlined) context.font = "italic 12px " + FONT;
        context.fillText(text, left + 5, this.top(depth) + ROW / 2);
        if (inlined) context.font = fitter.font;
        context.globalAlpha = 1;
    }
    rootName() {
        const { profile, range } = this.choice,
            { whole, wholeCount } = this.picture.weights;
        return (
            (range ? "chosen time" : "all") +
            "  ·  " +
            weightText(profile, whole) +
            (profile.byCount ? "" : "  ·  " + samplesText(wholeCount))
        );
    }
    hit(event) {
        const { x, y } = this.surface.at(event),
            { picture } = this;
        if (!this.content) return null;
        const at = y + this.scroller.scrollTop,
            depth = Math.floor((this.upward ? this.content - at : at) / ROW);
        if (depth < 0 || depth >= picture.depth) return null;
        const level = picture.level(depth),
            value = this.valueAt(x),
            pixel = this.valueAt(x + 1) - value;
        for (const index of [level.find(value), level.find(value) - 1])
            if (index >= 0 && value < level.start[index] + Math.max(level.total[index], pixel))
                return picture.box(depth, index);
        return null;
    }
    listen() {
        const { canvas } = this.surface;
        canvas.addEventListener("pointermove", (event) => {
            if (this.drag) return this.dragOn(event);
            const before = this.keyed ? undefined : this.hovered;
            this.hovered = this.hit(event);
            canvas.style.cursor = this.hovered ? "pointer" : "default";
            this.keyed = false;
            if (this.hovered) this.showTip(this.hovered, event.clientX, event.clientY);
            else this.tip.hide();
            if (!(this.hovered ? this.hovered.is(before) : this.hovered === before))
                this.surface.dirty();
        });
        canvas.addEventListener("pointerleave", () => {
            this.hovered = null;
            this.tip.hide();
            this.surface.dirty();
        });
        canvas.addEventListener("pointerdown", (event) => event.button || this.grab(event));
        canvas.addEventListener("pointerup", (event) => this.released(event));
        canvas.addEventListener("pointercancel", () => (this.drag = null));
        canvas.addEventListener(
            "dblclick",
            () => this.choice.selected >= 0 && this.choice.draw({ focus: this.choice.selected }),
        );
    }
    released(event) {
        const drag = this.drag;
        this.drag = null;
        if (!drag || drag.moved) return;
        const box = this.hit(event);
        if (!box) return;
        this.zoomTo(box);
        this.choice.select(box.func);
    }
    setWindow(low, high) {
        const end = this.picture.total || 1,
            size = Math.min(high - low, end);
        low = Math.max(0, Math.min(end - size, low));
        this.window = this.target = [low, low + size];
        this.move = null;
        this.surface.dirty();
    }
    key(event) {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const { picture } = this,
            deeper = this.upward ? "ArrowUp" : "ArrowDown",
            outer = this.upward ? "ArrowDown" : "ArrowUp";
        const beside = (by) => {
            const peers = this.current.parent ? picture.kids(this.current.parent) : [];
            return peers[peers.findIndex((box) => box.is(this.current)) + by];
        };
        let next = null;
        if (event.key === deeper) next = picture.kids(this.current)[0];
        else if (event.key === outer) next = this.current.parent;
        else if (event.key === "ArrowLeft") next = beside(-1);
        else if (event.key === "ArrowRight") next = beside(1);
        else if (event.key === "Home") next = picture.root;
        else if (event.key === "Enter" || event.key === " ") {
            this.zoomTo(this.current);
            this.choice.select(this.current.func);
        } else if (event.key === "Backspace") this.goBack();
        else return;
        event.preventDefault();
        if (next) this.step(next);
    }
    /* Keyboard focus moves to a box; the window follows when it lies outside or is a sliver, so that
     * what lies below it is made in its turn. */
    step(box) {
        this.keyed = true;
        const [low, high] = this.target,
            sliver = box.total < (high - low) * 0.002;
        if (box.start >= high || box.end <= low || sliver)
            this.zoomTo(sliver ? box : box.parent || box);
        this.current = box;
        this.describe(box);
        const y = this.content ? this.top(box.depth) : 0,
            height = this.pane.clientHeight;
        if (y < 0) this.scroller.scrollTop += y;
        else if (y + ROW > height) this.scroller.scrollTop += y + ROW - height;
        this.surface.dirty();
    }
    describe(box) {
        const { choice } = this,
            whole = choice.weights.whole;
        this.tip.say(
            `${choice.name(box.func)}, depth ${box.depth}, total ${percentText(box.total / whole)}, ` +
                `self ${percentText(box.self / whole)} ${moduleText(choice.profile, box.func)}`,
        );
    }
    showTip(box, x, y) {
        const { choice } = this,
            { profile, weights } = choice,
            whole = weights.whole || 1;
        const squares = box.count ? (box.total * box.total) / box.count : 0;
        const rows = [["Total", shareText(choice, box.total, squares)]];
        if (!this.picture.up || box.depth === 1)
            rows.push([
                "Self",
                weightText(profile, box.self) + "  ·  " + percentText(box.self / whole),
            ]);
        if (!this.isWhole() && this.zoomed.total)
            rows.push(["Of zoomed", percentText(box.total / this.zoomed.total)]);
        if (!profile.byCount) rows.push(["Samples", countText(box.count)]);
        const fn = profile.functions[box.func];
        if (fn && moduleText(profile, box.func))
            rows.push(["Module", moduleText(profile, box.func)]);
        if (fn && placeText(profile, box.func))
            rows.push(["Source", placeText(profile, box.func)]);
        const notes = [];
        const marks = this.picture.marks(box.levels[box.depth], box.index);
        if (marks & 1) notes.push("inlined into its caller");
        if (marks & 2) notes.push("found by box pointer, not proven");
        if (box.func >= 0 && choice.shape.recursive[box.func]) notes.push("recursive");
        if (box.count < 30) notes.push("few samples: a rough figure");
        this.tip.show(
            x,
            y,
            box.func < 0 ? "All samples chosen" : choice.name(box.func),
            rows,
            notes.join(" · "),
        );
    }
}
