/* SPDX-License-Identifier: MIT */
/* The strip below the header in every view: CPU use of the chosen threads over the whole run, and
 * the chosen range of time, which is drawn, moved and resized here with pointer or keys. */

class Overview {
    constructor(choice, parent, tip) {
        this.choice = choice;
        this.tip = tip;
        this.element = parent.appendChild(
            make("section", { class: "overview", "aria-label": "Time range" }),
        );
        this.pane = this.element.appendChild(make("div", { class: "pane" }));
        this.element.hidden = !choice.profile.hasTimes;
        this.surface = new Surface(
            this.pane,
            (c, w, h) => this.draw(c, w, h),
            "CPU use over time. Drag to choose a range; arrow keys move it, plus and minus resize it, Delete clears it.",
        );
        this.brush = new Brush(choice, this.surface, () => [0, choice.profile.duration || 1], 0);
        this.surface.canvas.addEventListener("pointermove", (event) => this.hover(event));
        this.surface.canvas.addEventListener("pointerleave", () => this.tip.hide());
        this.surface.canvas.addEventListener("keydown", (event) => this.key(event));
        choice.listen((what) => {
            if (what !== "view" && what !== "select") this.surface.dirty();
        });
    }
    /* CPUs in use, a value for each pixel column. */
    measure(width) {
        const { profile, threads } = this.choice,
            step = profile.duration / width || 1;
        const smooth = Math.max(step, 6 * (profile.period || 1)),
            use = new Float64Array(width);
        for (let t = 0; t < profile.threads.length; t++)
            if (threads[t]) addUse(profile, t, 0, step, smooth, use);
        this.use = use;
        this.most = use.reduce((a, b) => Math.max(a, b), 0.0001);
    }
    draw(context, width, height) {
        const { ratio } = this.surface,
            key = [width, height, ratio, this.choice.theme, this.choice.threads].join();
        if (this.key0 !== key) {
            this.key0 = key;
            this.backdrop = this.backdrop || document.createElement("canvas");
            this.backdrop.width = Math.round(width * ratio);
            this.backdrop.height = Math.round(height * ratio);
            const below = this.backdrop.getContext("2d");
            below.scale(ratio, ratio);
            this.drawUse(below, width, height);
        }
        context.drawImage(this.backdrop, 0, 0, width, height);
        this.brush.draw(context, height);
    }
    /* All but the chosen range: it changes seldom, the range many times a second. */
    drawUse(context, width, height) {
        const columns = Math.max(1, Math.floor(width)),
            { palette, profile } = this.choice,
            base = height - 15;
        this.measure(columns);
        context.fillStyle = palette.panel;
        context.fillRect(0, 0, width, height);
        context.fillStyle = palette.cpu;
        context.beginPath();
        context.moveTo(0, base);
        for (let x = 0; x < columns; x++)
            context.lineTo(x + 0.5, base - (this.use[x] / this.most) * (base - 5));
        context.lineTo(width, base);
        context.fill();
        drawTicks(context, palette, 0, profile.duration || 1, width, base, height);
        const most = this.most.toFixed(this.most < 10 ? 1 : 0) + " CPU";
        context.font = "10px " + FONT;
        context.fillStyle = palette.panel;
        context.globalAlpha = 0.82;
        context.beginPath();
        context.roundRect(2, 2, context.measureText(most).width + 8, 13, 3);
        context.fill();
        context.globalAlpha = 1;
        context.fillStyle = palette.text;
        context.fillText(most, 6, 9);
    }
    hover(event) {
        const { profile } = this.choice,
            x = this.surface.at(event).x,
            width = this.pane.clientWidth;
        if (!this.use) return;
        const time = (x / width) * profile.duration,
            use = this.use[Math.min(this.use.length - 1, Math.max(0, Math.floor(x)))];
        this.tip.show(
            event.clientX,
            event.clientY + 20,
            momentText(time, profile.duration / width),
            [["CPU use", use.toFixed(2)]],
            "drag to choose a range",
        );
    }
    key(event) {
        const { choice } = this,
            whole = choice.profile.duration;
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const range = choice.range || [whole * 0.4, whole * 0.6],
            size = range[1] - range[0],
            step = Math.max(size * 0.1, whole / 500);
        let next = null;
        if (event.key === "ArrowLeft") next = [range[0] - step, range[1] - step];
        else if (event.key === "ArrowRight") next = [range[0] + step, range[1] + step];
        else if (event.key === "+" || event.key === "=") next = [range[0] - step, range[1] + step];
        else if (event.key === "-") next = [range[0] + step / 2, range[1] - step / 2];
        else if (event.key === "Delete" || event.key === "Backspace" || event.key === "Escape") {
            event.stopPropagation();
            choice.filter({ range: null });
        } else return;
        event.preventDefault();
        if (!next) return;
        const shift = Math.max(0, -next[0]) - Math.max(0, next[1] - whole);
        choice.filter(
            { range: [Math.max(0, next[0] + shift), Math.min(whole, next[1] + shift)] },
            true,
        );
        this.tip.say(
            `Time ${timeText(choice.range[0])} to ${timeText(choice.range[1])}, ${weightText(choice.profile, choice.leaves.whole)}`,
        );
    }
}

/* Adds the CPU share of a thread to each column of `step` ns from `from` on, averaged over `smooth`
 * ns: a sample stands for the time before it, so narrower columns would show the clock, not the use. */
function addUse(profile, thread, from, step, smooth, use) {
    const s = profile.samples,
        first = s.start[thread],
        last = s.start[thread + 1];
    if (first === last) return;
    const half = smooth / 2;
    let low = lowerBound(s.time, from + step / 2 - half, first, last),
        high = low;
    for (let x = 0; x < use.length; x++) {
        const middle = from + (x + 0.5) * step;
        while (low < last && s.time[low] < middle - half)
            low = far(s.time, low, last, middle - half);
        if (high < low) high = low;
        while (high < last && s.time[high] < middle + half)
            high = far(s.time, high, last, middle + half);
        use[x] += (s.before[high] - s.before[low]) / smooth;
    }
}

/* Forward search in steps that double: cheap when near, logarithmic when far. */
function far(times, at, last, time) {
    let step = 1;
    while (at + step < last && times[at + step] < time) {
        at += step;
        step *= 2;
    }
    return lowerBound(times, time, at, Math.min(last, at + step + 1));
}

function drawTicks(context, palette, low, high, width, top, bottom) {
    const step = tickStep(high - low, width / 90);
    context.fillStyle = palette.muted;
    context.font = "10px " + FONT;
    context.textBaseline = "middle";
    for (let time = Math.ceil(low / step) * step; time <= high; time += step) {
        const x = ((time - low) / (high - low)) * width;
        context.fillStyle = palette.line;
        context.fillRect(Math.round(x), top, 1, bottom - top);
        context.fillStyle = palette.muted;
        context.fillText(momentText(time, step), x + 4, bottom - 7);
    }
}

/* A range of time under the pointer: drag to draw one, inside it to move it, at its edges to resize. */
class Brush {
    constructor(choice, surface, window, left) {
        Object.assign(this, { choice, surface, window, left });
        const { canvas } = surface;
        canvas.addEventListener("pointerdown", (event) => this.begin(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", () => this.end());
        canvas.addEventListener("pointercancel", () => this.end());
    }
    time(x) {
        const [low, high] = this.window(),
            width = this.surface.parent.clientWidth - this.left;
        return low + ((x - this.left) / width) * (high - low);
    }
    x(time) {
        const [low, high] = this.window(),
            width = this.surface.parent.clientWidth - this.left;
        return this.left + ((time - low) / (high - low)) * width;
    }
    part(x) {
        const { range } = this.choice;
        if (!range) return "new";
        const from = this.x(range[0]),
            to = this.x(range[1]);
        if (Math.abs(x - from) < 5) return "from";
        if (Math.abs(x - to) < 5) return "to";
        return this.movable !== false && x > from && x < to ? "move" : "new";
    }
    begin(event) {
        const { x } = this.surface.at(event);
        if (event.button || event.altKey || x < this.left) return;
        this.surface.canvas.setPointerCapture(event.pointerId);
        this.held = {
            part: this.part(x),
            x,
            time: this.time(x),
            range: this.choice.range,
            moved: false,
        };
    }
    move(event) {
        const { x } = this.surface.at(event),
            { held } = this;
        if (!held) {
            const part = x < this.left ? "" : this.part(x);
            this.surface.canvas.style.cursor =
                { from: "ew-resize", to: "ew-resize", move: "grab", new: "crosshair" }[part] ||
                "default";
            return;
        }
        if (!held.moved && Math.abs(x - held.x) < 3) return;
        held.moved = true;
        held.to = this.time(x);
        if (this.queued) return;
        this.queued = requestAnimationFrame(() => {
            this.queued = 0;
            this.apply(held, true);
        });
    }
    apply(held, moving) {
        const whole = this.choice.profile.duration,
            clamp = (time) => Math.max(0, Math.min(whole, time));
        let range;
        if (held.part === "new") range = [held.time, held.to];
        else if (held.part === "from") range = [held.to, held.range[1]];
        else if (held.part === "to") range = [held.range[0], held.to];
        else {
            const size = held.range[1] - held.range[0];
            const from = Math.max(0, Math.min(whole - size, held.range[0] + held.to - held.time));
            range = [from, from + size];
        }
        range = range.map(clamp).sort((a, b) => a - b);
        if (range[1] > range[0]) this.choice.filter({ range }, moving);
    }
    end() {
        const { held } = this;
        this.held = null;
        if (!held) return;
        if (held.moved) {
            cancelAnimationFrame(this.queued);
            this.queued = 0;
            this.apply(held);
            this.justDragged = true;
            setTimeout(() => (this.justDragged = false), 0);
        } else if (held.part === "new" && held.range && this.clears !== false)
            this.choice.filter({ range: null });
    }
    draw(context, height) {
        const { range, palette } = this.choice;
        if (!range) return;
        const from = Math.max(this.left, this.x(range[0])),
            to = Math.max(this.left, this.x(range[1]));
        context.fillStyle = palette.ground;
        context.globalAlpha = 0.55;
        context.fillRect(this.left, 0, from - this.left, height);
        context.fillRect(to, 0, this.surface.parent.clientWidth - to, height);
        context.globalAlpha = 1;
        context.fillStyle = palette.accent;
        if (from > this.left) context.fillRect(from - 0.5, 0, 1.5, height);
        context.fillRect(to - 0.5, 0, 1.5, height);
    }
}
