/* SPDX-License-Identifier: MIT */
/* What flame graph and timeline have in common: a bar of buttons, a canvas that stays in sight while
 * what it shows scrolls, and a window [low, high] on a horizontal axis that wheel and drag move.
 * A subclass has setWindow(low, high), draw(context, width, height) and key(event). */

class Plot {
    constructor(choice, parent, tip, { name, label, hint, left }) {
        this.choice = choice;
        this.tip = tip;
        this.left = left; /* pixels before the axis */
        this.element = parent.appendChild(
            make("section", {
                class: "view " + name,
                id: "view-" + name,
                role: "tabpanel",
                "aria-label": label,
            }),
        );
        this.bar = this.element.appendChild(make("div", { class: "bar" }));
        this.scroller = this.element.appendChild(make("div", { class: "scroller" }));
        this.pane = this.scroller.appendChild(make("div", { class: "pane" }));
        this.spacer = this.scroller.appendChild(make("div", { class: "spacer" }));
        this.surface = new Surface(this.pane, (c, w, h) => this.drawOn(c, w, h), hint);
        this.scroller.addEventListener("scroll", () => this.surface.dirty());
        const { canvas } = this.surface;
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        canvas.addEventListener("keydown", (event) => this.key(event));
        choice.listen((what) => {
            if (what === "view" && choice.view === name) canvas.focus({ preventScroll: true });
        });
    }
    drawOn(context, width, height) {
        context.fillStyle = this.choice.palette.ground;
        context.fillRect(0, 0, width, height);
        context.textBaseline = "middle";
        this.draw(context, width, height);
    }
    /* What is drawn is `content` pixels high. */
    setContent(content, height) {
        this.spacer.style.height = Math.max(0, content - height) + "px";
    }
    /* As much as a page of paper holds, from the top. Twice, since the first drawing finds the height. */
    print() {
        for (let i = 0; i < 2; i++) {
            this.surface.draw();
            this.pane.style.height = Math.min(1050, Math.max(120, this.printHeight())) + "px";
        }
        this.surface.draw();
    }
    printHeight() {
        return this.content;
    }
    get axisWidth() {
        return Math.max(1, this.pane.clientWidth - this.left);
    }
    valueAt(x) {
        const [low, high] = this.window;
        return low + ((x - this.left) / this.axisWidth) * (high - low);
    }
    zoomAt(at, by) {
        const [low, high] = this.window;
        this.setWindow(at - (at - low) * by, at + (high - at) * by);
    }
    pan(share) {
        const [low, high] = this.window,
            shift = (high - low) * share;
        this.setWindow(low + shift, high + shift);
    }
    wheel(event) {
        if (event.ctrlKey || event.metaKey) {
            event.preventDefault();
            const by = Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.006);
            this.zoomAt(this.valueAt(this.surface.at(event).x), by);
        } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
            event.preventDefault();
            this.pan((event.deltaX || event.deltaY) / this.axisWidth);
        }
    }
    grab(event) {
        this.surface.canvas.setPointerCapture(event.pointerId);
        this.drag = {
            x: event.clientX,
            y: event.clientY,
            window: this.window,
            top: this.scroller.scrollTop,
            moved: false,
        };
    }
    dragOn(event) {
        const { drag } = this,
            dx = event.clientX - drag.x,
            dy = event.clientY - drag.y;
        if (!drag.moved && Math.abs(dx) + Math.abs(dy) < 4) return;
        drag.moved = true;
        this.tip.hide();
        const [low, high] = drag.window,
            shift = (-dx * (high - low)) / this.axisWidth;
        this.setWindow(low + shift, high + shift);
        this.scroller.scrollTop = drag.top - dy;
    }
}
