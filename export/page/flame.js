/* SPDX-License-Identifier: MIT */
/* Flame graph and icicle. Boxes lie on an axis of weight; the picture is a window [low, high] on it,
 * so zooming is moving the window. Boxes narrower than half a pixel are neither made nor drawn. */

const ROW = 20;

class FlameView {
    constructor(choice, parent, tip) {
        this.choice = choice;
        this.tip = tip;
        this.element = parent.appendChild(
            make("section", {
                class: "view flame",
                id: "view-flame",
                role: "tabpanel",
                "aria-label": "Flame graph",
            }),
        );
        this.makeBar();
        this.scroller = this.element.appendChild(make("div", { class: "scroller" }));
        this.spacer = this.scroller.appendChild(make("div", { class: "spacer" }));
        this.pane = this.element.appendChild(make("div", { class: "pane" }));
        this.surface = new Surface(
            this.pane,
            (c, w, h) => this.draw(c, w, h),
            "Flame graph. Arrow keys move between boxes, Enter zooms, Backspace goes back.",
        );
        this.scroller.prepend(this.pane);
        this.scroller.addEventListener("scroll", () => this.surface.dirty());
        this.past = [];
        this.future = [];
        this.rows = [];
        this.listen();
        this.rebuild([]);
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
            this.zoomTo(this.root),
        );
        this.focusChip = button("", "Draw everything again", () => choice.draw({ focus: -1 }), {
            class: "chip",
            hidden: true,
        });
        this.trail = make("span", { class: "trail", dir: "ltr" });
        this.element.append(
            make(
                "div",
                { class: "bar" },
                this.modes,
                this.ways,
                this.folding,
                make("div", { class: "joined" }, this.back, this.forth),
                this.whole,
                this.focusChip,
                this.trail,
            ),
        );
    }
    changed(what) {
        if (what === "filter" || what === "draw") this.rebuild(this.path(this.zoomed));
        if (what === "view" && this.choice.view === "flame")
            this.surface.canvas.focus({ preventScroll: true });
        this.surface.dirty();
    }
    path(frame) {
        const path = [];
        for (; frame && frame.parent; frame = frame.parent) path.unshift(frame.func);
        return path;
    }
    /* New weights: the same place stays zoomed as far as it still exists. */
    rebuild(path) {
        const { choice } = this;
        const shape = [choice.mode, choice.focus, choice.collapse].join();
        const turned = this.upward !== choice.upward;
        this.upward = choice.upward;
        if (this.drawn !== shape) {
            this.past = [];
            this.future = [];
            path = [];
        }
        this.drawn = shape;
        this.root = rootFrame(choice.weights, choice.mode, choice.focus);
        this.zoomed = this.root;
        for (const func of path) {
            const next = this.zoomed.children(choice.weights).find((kid) => kid.func === func);
            if (!next) break;
            this.zoomed = next;
        }
        this.current = this.zoomed;
        this.window = this.target = this.windowOf(this.zoomed);
        if (turned) this.turned = true;
        this.showBar();
        this.surface.dirty();
    }
    windowOf(frame) {
        return [frame.start, frame.start + (frame.total || 1)];
    }
    showBar() {
        const { choice } = this;
        this.modes.press(choice.mode);
        this.ways.press(choice.upward ? "up" : "down");
        this.folding.press(choice.collapse);
        this.back.disabled = !this.past.length;
        this.forth.disabled = !this.future.length;
        this.whole.disabled = this.zoomed === this.root;
        this.focusChip.hidden = choice.focus < 0;
        this.focusChip.textContent =
            (choice.mode === "callers" ? "Callers of " : "Callees of ") +
            elideText(choice.name(choice.focus), 40) +
            "  ×";
        this.trail.textContent =
            this.zoomed === this.root ? "" : elideText(choice.name(this.zoomed.func), 90);
    }
    zoomTo(frame, fromHistory) {
        if (frame === this.zoomed && !fromHistory) return;
        if (!fromHistory) {
            this.past.push(this.path(this.zoomed));
            this.future = [];
        }
        this.zoomed = this.current = frame;
        this.target = this.windowOf(frame);
        this.move = { from: this.window, began: performance.now() };
        this.showBar();
        this.describe(frame);
        this.surface.dirty();
    }
    follow(path) {
        let frame = this.root;
        for (const func of path) {
            const next = frame.children(this.choice.weights).find((kid) => kid.func === func);
            if (!next) break;
            frame = next;
        }
        this.zoomTo(frame, true);
    }
    goBack() {
        if (!this.past.length) return;
        this.future.push(this.path(this.zoomed));
        this.follow(this.past.pop());
    }
    goForth() {
        if (!this.future.length) return;
        this.past.push(this.path(this.zoomed));
        this.follow(this.future.pop());
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
    /* Boxes in the window, row by row. Children are in order of size, so the first that is too
     * narrow ends its row: the rest is one grey strip. */
    layOut(width) {
        const [low, high] = this.window,
            scale = width / (high - low),
            weights = this.choice.weights,
            laid = [this.root, low, high, width];
        if (this.laid && laid.every((part, i) => part === this.laid[i])) return;
        this.laid = laid;
        const rows = [],
            queue = [this.root];
        while (queue.length) {
            const frame = queue.pop();
            const x0 = (frame.start - low) * scale,
                x1 = (frame.start + frame.total - low) * scale;
            (rows[frame.depth] = rows[frame.depth] || []).push({ x0, x1, frame });
            for (const kid of frame.children(weights)) {
                const left = (kid.start - low) * scale,
                    right = left + kid.total * scale;
                if (left > width) break;
                if (kid.total * scale < 0.5) {
                    const row = (rows[kid.depth] = rows[kid.depth] || []);
                    row.push({
                        x0: left,
                        x1: (kid.start - low) * scale + this.restOf(frame, kid) * scale,
                        frame: null,
                    });
                    break;
                }
                if (right >= 0) queue.push(kid);
            }
        }
        this.rows = rows;
    }
    restOf(frame, kid) {
        const last = frame.kids[frame.kids.length - 1];
        return last.start + last.total - kid.start;
    }
    draw(context, width, height) {
        this.glide();
        this.layOut(width);
        const content = Math.max(height, this.rows.length * ROW + 8);
        this.spacer.style.height = Math.max(0, content - height) + "px";
        if (this.turned) {
            this.turned = false;
            this.scroller.scrollTop = this.upward ? content : 0;
        }
        const { palette } = this.choice;
        context.fillStyle = palette.ground;
        context.fillRect(0, 0, width, height);
        this.surface.fitter.setFont("12px " + FONT);
        context.textBaseline = "middle";
        this.top = (depth) =>
            (this.upward ? content - (depth + 1) * ROW : depth * ROW) - this.scroller.scrollTop;
        this.rows.forEach((row, depth) => {
            const y = this.top(depth);
            if (y > -ROW && y < height) this.drawRow(context, row, y, width);
        });
        if (!this.root.total) this.drawEmpty(context, width, height);
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
    drawRow(context, row, y, width) {
        const { choice } = this,
            { palette, css } = choice.colours,
            matches = choice.matches;
        for (const { x0, x1, frame } of row) {
            const left = Math.max(0, x0),
                right = Math.min(width, x1),
                w = Math.max(0.5, right - left - (right - left > 3 ? 1 : 0));
            if (!frame) {
                context.fillStyle = palette.pseudo;
                context.globalAlpha = 0.6;
                context.fillRect(left, y, w, ROW - 1);
                context.globalAlpha = 1;
                continue;
            }
            const found = matches && frame.func >= 0 && matches[frame.func];
            const above = frame.depth < this.zoomed.depth;
            context.fillStyle = found
                ? palette.found
                : frame.func < 0
                  ? palette.gap
                  : css[frame.func];
            context.globalAlpha = above ? 0.55 : matches && !found ? 0.38 : 1;
            context.fillRect(left, y, w, ROW - 1);
            context.globalAlpha = 1;
            if (right - left > 6) this.drawMarks(context, frame, left, y, w);
            if (right - left > 26) this.drawName(context, frame, left, right, y, found, above);
        }
    }
    drawMarks(context, frame, left, y, w) {
        const { palette, shape, selected } = this.choice;
        if (frame.guessed(shape)) {
            context.fillStyle = palette.shade;
            for (let x = left + 2; x < left + w; x += 5) context.fillRect(x, y, 2, ROW - 1);
        }
        if (
            (selected >= 0 && frame.func === selected) ||
            (frame === this.current && this.keyed) ||
            frame === this.hovered
        ) {
            context.strokeStyle =
                frame === this.hovered || (frame === this.current && this.keyed)
                    ? palette.text
                    : palette.accent;
            context.lineWidth = 2;
            context.strokeRect(left + 1, y + 1, w - 2, ROW - 3);
        }
    }
    drawName(context, frame, left, right, y, found, above) {
        const { choice } = this,
            fitter = this.surface.fitter;
        const inlined = frame.inlined(choice.shape);
        const text =
            frame.func < 0
                ? fitter.fit(this.rootName(), right - left - 10)
                : fitter.fitName(choice.name(frame.func), right - left - 10);
        if (!text) return;
        context.fillStyle = found ? choice.palette.foundText : choice.palette.text;
        context.globalAlpha = above ? 0.7 : 1;
        if (inlined) context.font = "italic 12px " + FONT;
        context.fillText(text, left + 5, y + ROW / 2);
        if (inlined) context.font = fitter.font;
        context.globalAlpha = 1;
    }
    rootName() {
        const { weights, profile, range } = this.choice;
        return (
            (range ? "chosen time" : "all") +
            "  ·  " +
            weightText(profile, weights.whole) +
            (profile.byCount ? "" : "  ·  " + countText(weights.wholeCount) + " samples")
        );
    }
    hit(event) {
        const { x, y } = this.surface.at(event);
        if (!this.top) return null;
        const depth = this.rows.findIndex((row, d) => y >= this.top(d) && y < this.top(d) + ROW);
        const box =
            depth >= 0 && this.rows[depth].find((b) => x >= b.x0 && x < Math.max(b.x1, b.x0 + 1));
        return (box && box.frame) || null;
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
            if (this.hovered !== before) this.surface.dirty();
        });
        canvas.addEventListener("pointerleave", () => {
            this.hovered = null;
            this.tip.hide();
            this.surface.dirty();
        });
        canvas.addEventListener("pointerdown", (event) => {
            if (event.button) return;
            canvas.setPointerCapture(event.pointerId);
            this.drag = {
                x: event.clientX,
                y: event.clientY,
                window: this.window,
                top: this.scroller.scrollTop,
                moved: false,
            };
        });
        canvas.addEventListener("pointerup", (event) => this.released(event));
        canvas.addEventListener(
            "dblclick",
            () => this.choice.selected >= 0 && this.choice.draw({ focus: this.choice.selected }),
        );
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        canvas.addEventListener("keydown", (event) => this.key(event));
    }
    dragOn(event) {
        const dx = event.clientX - this.drag.x,
            dy = event.clientY - this.drag.y;
        if (!this.drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        this.drag.moved = true;
        this.tip.hide();
        const [low, high] = this.drag.window,
            shift = (-dx * (high - low)) / this.pane.clientWidth;
        this.setWindow(low + shift, high + shift);
        this.scroller.scrollTop = this.drag.top - dy;
    }
    released(event) {
        const drag = this.drag;
        this.drag = null;
        if (!drag || drag.moved) return;
        const frame = this.hit(event);
        if (!frame) return;
        this.zoomTo(frame);
        this.choice.select(frame.func);
    }
    setWindow(low, high) {
        const end = this.root.total || 1,
            size = Math.min(high - low, end);
        low = Math.max(0, Math.min(end - size, low));
        this.window = this.target = [low, low + size];
        this.move = null;
        this.surface.dirty();
    }
    wheel(event) {
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const [low, high] = this.window,
                at = low + ((high - low) * this.surface.at(event).x) / this.pane.clientWidth;
            const by = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006);
            this.setWindow(at - (at - low) * by, at + (high - at) * by);
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            const shift =
                ((event.deltaX || event.deltaY) * (this.window[1] - this.window[0])) /
                this.pane.clientWidth;
            this.setWindow(this.window[0] + shift, this.window[1] + shift);
        }
    }
    key(event) {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const weights = this.choice.weights,
            frame = this.current;
        const kids = frame.children(weights),
            peers = frame.parent ? frame.parent.children(weights) : [frame];
        const at = peers.indexOf(frame),
            deeper = this.upward ? "ArrowUp" : "ArrowDown",
            outer = this.upward ? "ArrowDown" : "ArrowUp";
        let next = null;
        if (event.key === deeper) next = kids[0];
        else if (event.key === outer) next = frame.parent;
        else if (event.key === "ArrowLeft") next = peers[at - 1];
        else if (event.key === "ArrowRight") next = peers[at + 1];
        else if (event.key === "Home") next = this.root;
        else if (event.key === "Enter" || event.key === " ") {
            this.zoomTo(frame);
            this.choice.select(frame.func);
        } else if (event.key === "Backspace") this.goBack();
        else return;
        event.preventDefault();
        if (next) this.step(next);
    }
    /* Keyboard focus moves to a box; the window follows when it lies outside or is a sliver. */
    step(frame) {
        this.current = frame;
        this.keyed = true;
        const [low, high] = this.window,
            span = high - low;
        if (frame.start >= high || frame.start + frame.total <= low || frame.total < span * 0.002)
            this.zoomTo(frame.total < span * 0.002 ? frame : frame.parent || frame);
        this.current = frame;
        this.describe(frame);
        const y = this.top ? this.top(frame.depth) : 0,
            height = this.pane.clientHeight;
        if (y < 0) this.scroller.scrollTop += y;
        else if (y + ROW > height) this.scroller.scrollTop += y + ROW - height;
        this.surface.dirty();
    }
    describe(frame) {
        const { choice } = this,
            whole = choice.weights.whole;
        this.tip.say(
            `${choice.name(frame.func)}, depth ${frame.depth}, total ${percentText(frame.total / whole)}, ` +
                `self ${percentText(frame.self / whole)} ${moduleText(choice.profile, frame.func)}`,
        );
    }
    showTip(frame, x, y) {
        const { choice } = this,
            { profile, weights } = choice,
            whole = weights.whole || 1;
        const squares = frame.count ? (frame.total * frame.total) / frame.count : 0;
        const rows = [["Total", shareText(choice, frame.total, squares)]];
        if (!frame.shares || frame.depth === 1)
            rows.push([
                "Self",
                weightText(profile, frame.self) + "  ·  " + percentText(frame.self / whole),
            ]);
        if (this.zoomed !== this.root && this.zoomed.total)
            rows.push(["Of zoomed", percentText(frame.total / this.zoomed.total)]);
        if (!profile.byCount) rows.push(["Samples", countText(frame.count)]);
        const fn = profile.functions[frame.func];
        if (fn && moduleText(profile, frame.func))
            rows.push(["Module", moduleText(profile, frame.func)]);
        if (fn && placeText(profile, frame.func))
            rows.push(["Source", placeText(profile, frame.func)]);
        const notes = [];
        if (frame.inlined(choice.shape)) notes.push("inlined into its caller");
        if (frame.guessed(choice.shape)) notes.push("found by frame pointer, not proven");
        if (frame.func >= 0 && choice.shape.recursive[frame.func]) notes.push("recursive");
        if (frame.count < 30) notes.push("few samples: a rough figure");
        this.tip.show(
            x,
            y,
            frame.func < 0 ? "All samples chosen" : choice.name(frame.func),
            rows,
            notes.join(" · "),
        );
    }
}
