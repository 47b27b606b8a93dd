/* SPDX-License-Identifier: MIT */
/* Elements of the page. Text goes in as text only: a name from the profiled program can hold
 * anything, so nothing here parses markup. */

function make(tag, properties, ...children) {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(properties || {})) {
        if (key === "class") element.className = value;
        else if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (key in element && key !== "role") element[key] = value;
        else element.setAttribute(key, value);
    }
    for (const child of children) if (child !== null && child !== undefined) element.append(child);
    return element;
}

/* Only what is new is written: each change makes the browser lay out again. */
function setText(element, text) {
    if (element.textContent !== text) element.textContent = text;
}

function setState(element, name, value) {
    if (element.getAttribute(name) !== String(value)) element.setAttribute(name, String(value));
}

function button(label, title, action, properties) {
    return make("button", { type: "button", title, onclick: action, ...properties }, label);
}

/* A row of buttons of which one is pressed. options: [value, label, title]. */
function segmented(label, options, action) {
    const group = make("div", { class: "segmented", role: "group", "aria-label": label });
    const buttons = options.map(([value, text, title]) =>
        group.appendChild(button(text, title, () => action(value), { value })),
    );
    group.press = (value) => {
        for (const b of buttons) setState(b, "aria-pressed", b.value === value);
    };
    return group;
}

function toggle(label, title, action) {
    const b = button(label, title, () => action(b.getAttribute("aria-pressed") !== "true"), {
        class: "toggle",
    });
    b.press = (on) => setState(b, "aria-pressed", on);
    b.press(false);
    return b;
}

/* A canvas that fills its parent at the screen's resolution; draw(context, width, height) runs at
 * most once a frame, after dirty(). */
class Surface {
    constructor(parent, draw, label) {
        this.canvas = parent.appendChild(
            make("canvas", { tabIndex: 0, role: "application", "aria-label": label }),
        );
        this.context = this.canvas.getContext("2d");
        this.fitter = new TextFitter(this.context);
        this.paint = draw;
        this.parent = parent;
        this.queued = false;
        new ResizeObserver(() => this.dirty()).observe(parent);
    }
    dirty() {
        if (this.queued) return;
        this.queued = true;
        requestAnimationFrame(() => {
            this.queued = false;
            this.draw();
        });
    }
    draw() {
        const width = this.parent.clientWidth,
            height = this.parent.clientHeight;
        if (!width || !height) return;
        const ratio = window.devicePixelRatio || 1,
            canvas = this.canvas;
        if (
            canvas.width !== Math.round(width * ratio) ||
            canvas.height !== Math.round(height * ratio)
        ) {
            canvas.width = Math.round(width * ratio);
            canvas.height = Math.round(height * ratio);
            canvas.style.width = width + "px";
            canvas.style.height = height + "px";
            this.fitter.font = "";
        }
        this.ratio = ratio;
        this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
        this.paint(this.context, width, height);
    }
    at(event) {
        const box = this.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }
}

const FONT =
    '"Inter", "Segoe UI", system-ui, -apple-system, "Noto Sans", "DejaVu Sans", sans-serif';

/* Round distance between ticks so that about `room` of them fit a span. */
function tickStep(span, room) {
    const rough = span / Math.max(1, room),
        ten = 10 ** Math.floor(Math.log10(rough));
    return [1, 2, 5, 10].map((n) => n * ten).find((step) => step >= rough);
}
