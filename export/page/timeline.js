/* SPDX-License-Identifier: MIT */
/* Timeline: a lane for each chosen thread with its name, spans, CPU use and calls over real time.
 * Bitmaps of lanes come from lanes.js, a few milliseconds' worth of them a frame; what is not ready
 * is shown stretched from the bitmap before, so panning and zooming never wait. */

const LABEL_WIDTH = 168,
    RULER = 24,
    SPAN_ROW = 15,
    CPU_ROW = 16,
    LANE_GAP = 8,
    PALE = "; pale: off the CPU or cut, calls inferred";

class Timeline extends Plot {
    constructor(choice, parent, tip) {
        super(choice, parent, tip, {
            name: "timeline",
            label: "Timeline",
            hint: "Timeline of calls. A and D pan, W and S zoom, up and down choose a thread, Enter opens it. With Shift, arrows walk from call to call, Enter zooms.",
            left: LABEL_WIDTH,
        });
        this.makeBar();
        this.window = sampledTime(choice.profile);
        this.brush = new Brush(choice, this.surface, () => this.window, LABEL_WIDTH);
        this.brush.movable = false;
        this.brush.clears = false;
        this.version = 0;
        this.thinned = choice.profile.count > choice.profile.sampleCount * 1.5;
        this.opened = new Set();
        this.bitmaps = new Map();
        this.current = 0;
        this.cursor = new CallCursor(this);
        this.lanes = [];
        this.listen();
        choice.listen((what, change) => this.changed(what, change));
    }
    makeBar() {
        const zoom = (by) => () => this.zoomAt((this.window[0] + this.window[1]) / 2, by);
        this.note = make("span", { class: "trail" });
        this.toRange = button("Zoom to range", "Fill the view with the chosen range (z)", () =>
            this.zoomToRange(),
        );
        this.bar.append(
            make(
                "div",
                { class: "joined" },
                button("−", "Zoom out (s)", zoom(1.6), { "aria-label": "Zoom out" }),
                button("+", "Zoom in (w)", zoom(1 / 1.6), { "aria-label": "Zoom in" }),
            ),
            button("Whole run", "Show all of the time (Esc)", () =>
                this.setWindow(0, this.choice.profile.duration),
            ),
            this.toRange,
            button("Open all", "Show every lane in full height with names", () =>
                this.openAll(true),
            ),
            button("Close all", "Show every lane small", () => this.openAll(false)),
            this.note,
        );
    }
    prepare() {
        if (this.painter) return;
        this.painter = new LanePainter(this.choice);
        const busy = this.order().filter((t) => this.painter.depths[t]);
        for (const t of busy.slice(0, busy.length <= 3 ? 3 : 1)) this.opened.add(t);
    }
    changed(what, change) {
        /* The range of time is drawn above the lanes, not in them. */
        const lanes = what !== "view" && what !== "draw" && !(what === "filter" && change.range !== undefined);
        if (lanes) this.version++;
        if (this.choice.view === "timeline") this.surface.dirty();
    }
    order() {
        const { profile, threads } = this.choice;
        this.busiest = this.busiest || busiestThreads(profile);
        return this.busiest.filter((t) => threads[t]);
    }
    layOut() {
        let top = RULER + 4;
        this.lanes = this.order().map((thread) => {
            const open = this.opened.has(thread),
                row = open
                    ? 17
                    : Math.max(2, Math.min(5, Math.floor(90 / (this.painter.depths[thread] || 1))));
            const rows = open
                ? this.painter.depths[thread]
                : Math.min(this.painter.depths[thread], Math.floor(90 / row));
            const spans = this.choice.profile.threads[thread].spanRows * SPAN_ROW;
            const lane = { thread, open, row, rows, top, spans, calls: top + spans + CPU_ROW };
            lane.height = spans + CPU_ROW + Math.max(rows * row, 14);
            top += lane.height + LANE_GAP;
            return lane;
        });
        this.content = top;
    }
    draw(context, width, height) {
        this.prepare();
        this.layOut();
        this.setContent(this.content, height);
        const scrolled = this.scroller.scrollTop,
            began = performance.now();
        this.width = this.axisWidth;
        this.exact = true;
        let late = false,
            ahead = false;
        for (const [index, lane] of this.lanes.entries()) {
            const y = lane.top - scrolled;
            if (y + lane.height < RULER || y > height) continue;
            if (this.stale(lane)) {
                if (performance.now() - began < 2.5) this.refresh(lane);
                else late = true;
            } else if (!ahead && this.nearEdge(lane)) {
                ahead = true;
                this.refresh(lane);
            }
            this.drawLane(context, lane, y, width, index);
        }
        this.drawRuler(context, width, height);
        this.toRange.disabled = !this.choice.range;
        const note = this.exact
            ? (this.thinned ? "the samples kept are all drawn" : "every sample is drawn") + PALE
            : "drawn: one sample a pixel, zoom in for all" + PALE;
        setText(this.note, note);
        if (late) this.surface.dirty();
        this.forget();
    }
    forget() {
        for (const thread of this.bitmaps.keys()) {
            if (this.bitmaps.size <= 48) break;
            const lane = this.lanes.find((l) => l.thread === thread),
                y = lane ? lane.top - this.scroller.scrollTop : -1e9;
            if (y < -2000 || y > 4000) this.bitmaps.delete(thread);
        }
    }
    stale(lane) {
        const bitmap = this.bitmaps.get(lane.thread),
            [low, high] = this.window;
        return (
            !bitmap ||
            bitmap.version !== this.version ||
            bitmap.span !== high - low ||
            bitmap.width !== this.width ||
            bitmap.from > Math.max(0, low) ||
            bitmap.until < Math.min(high, this.choice.profile.duration)
        );
    }
    /* The window comes close to where the bitmap ends: one lane a frame is drawn before it is due. */
    nearEdge(lane) {
        const bitmap = this.bitmaps.get(lane.thread),
            [low, high] = this.window,
            room = (high - low) * 0.2;
        return (
            bitmap.from > Math.max(0, low - room) ||
            bitmap.until < Math.min(high + room, this.choice.profile.duration)
        );
    }
    refresh(lane) {
        const [low, high] = this.window,
            span = high - low,
            ratio = this.surface.ratio;
        const from = low - span / 2,
            until = high + span / 2,
            columns = Math.round(this.width * ratio * 2);
        const old = this.bitmaps.get(lane.thread) || {
            calls: document.createElement("canvas"),
            use: document.createElement("canvas"),
        };
        const { image, bars, exact } = this.painter.paint(lane.thread, from, until, columns);
        putImage(old.calls, image);
        putImage(old.use, this.painter.use(lane.thread, from, until, columns, 1));
        Object.assign(old, {
            from,
            until,
            span,
            bars,
            exact,
            version: this.version,
            width: this.width,
        });
        this.bitmaps.delete(lane.thread);
        this.bitmaps.set(lane.thread, old);
    }
    x(time) {
        const [low, high] = this.window;
        return LABEL_WIDTH + ((time - low) / (high - low)) * this.width;
    }
    drawLane(context, lane, y, width, index) {
        const { palette, profile } = this.choice,
            bitmap = this.bitmaps.get(lane.thread),
            thread = profile.threads[lane.thread];
        context.save();
        context.beginPath();
        context.rect(LABEL_WIDTH, Math.max(RULER, y - 2), width - LABEL_WIDTH, lane.height + 4);
        context.clip();
        const from = this.x(Math.max(thread.start, 0)),
            until = this.x(thread.end || profile.duration);
        context.fillStyle = palette.gap;
        context.fillRect(from, y + lane.spans, Math.max(1, until - from), CPU_ROW - 2);
        if (bitmap) this.drawBitmap(context, lane, bitmap, y);
        this.drawSpans(context, thread, y, width);
        this.drawCursor(context, lane);
        context.restore();
        this.drawLabel(context, lane, y, index);
    }
    drawBitmap(context, lane, bitmap, y) {
        const left = this.x(bitmap.from),
            scale = (this.x(bitmap.until) - left) / bitmap.calls.width;
        context.imageSmoothingEnabled = false;
        context.drawImage(bitmap.use, left, y + lane.spans, bitmap.use.width * scale, CPU_ROW - 2);
        const top = y + lane.spans + CPU_ROW,
            rows = Math.min(lane.rows, bitmap.calls.height);
        context.drawImage(
            bitmap.calls,
            0,
            0,
            bitmap.calls.width,
            rows,
            left,
            top,
            bitmap.calls.width * scale,
            rows * lane.row,
        );
        if (!bitmap.exact) this.exact = false;
        if (!lane.open) return;
        context.fillStyle = this.choice.palette.ground;
        for (let row = 1; row <= rows; row++)
            context.fillRect(LABEL_WIDTH, top + row * lane.row - 1, this.width, 1);
        this.drawNames(context, lane, bitmap, left, scale, top);
    }
    drawNames(context, lane, bitmap, left, scale, top) {
        const { choice } = this,
            fitter = this.surface.fitter,
            end = LABEL_WIDTH + this.width,
            view = this.pane.clientHeight;
        fitter.setFont("11px " + FONT);
        context.textBaseline = "middle";
        const strong = choice.matches || choice.selected >= 0;
        for (const bar of bitmap.bars) {
            const y = top + bar.depth * lane.row,
                x0 = Math.max(LABEL_WIDTH, left + bar.x0 * scale),
                x1 = Math.min(end, left + bar.x1 * scale);
            if (x1 - x0 < 24 || y < 0 || y > view) continue;
            const text = fitter.fitName(choice.name(bar.func), x1 - x0 - 8);
            if (!text) continue;
            const found = choice.matches
                ? choice.matches[bar.func]
                : choice.selected >= 0 && choice.profile.nameOf[bar.func] === choice.selected;
            context.fillStyle =
                strong && found
                    ? choice.matches
                        ? choice.palette.foundText
                        : choice.palette.ground
                    : choice.palette.text;
            context.fillText(text, x0 + 4, y + lane.row / 2);
        }
    }
    drawSpans(context, thread, y, width) {
        const { palette } = this.choice,
            fitter = this.surface.fitter,
            [low, high] = this.window;
        fitter.setFont("10px " + FONT);
        context.textBaseline = "middle";
        let drawn = -1;
        for (const span of thread.spans) {
            const end = span.end || this.choice.profile.duration;
            if (end < low || span.start > high) continue;
            const x0 = Math.max(LABEL_WIDTH - 4, this.x(span.start)),
                x1 = Math.min(width + 4, this.x(end));
            if (x1 - x0 < 1 && Math.floor(x0) === drawn) continue;
            drawn = Math.floor(x0);
            context.fillStyle = palette.span;
            context.beginPath();
            context.roundRect(x0, y + span.row * SPAN_ROW, Math.max(1, x1 - x0), SPAN_ROW - 2, 3);
            context.fill();
            const text = x1 - x0 > 20 && fitter.fit(shownName(span.name), x1 - x0 - 8);
            context.fillStyle = palette.spanText;
            if (text)
                context.fillText(
                    text,
                    Math.max(LABEL_WIDTH, x0) + 4,
                    y + span.row * SPAN_ROW + SPAN_ROW / 2 - 1,
                );
        }
    }
    /* Where the box of a call is on the canvas, within what is shown of its lane. */
    boxOf(lane, { start, end, depth }) {
        const left = Math.max(this.x(start), LABEL_WIDTH),
            right = Math.min(this.x(end), LABEL_WIDTH + this.width);
        return {
            x: left,
            y: lane.calls + (depth - 1) * lane.row - this.scroller.scrollTop,
            width: Math.max(2, right - left),
        };
    }
    drawCursor(context, lane) {
        const { interval } = this.cursor;
        if (!interval || interval.thread !== lane.thread) return;
        const box = this.boxOf(lane, interval);
        context.strokeStyle = this.choice.palette.text;
        context.lineWidth = 2;
        context.strokeRect(box.x + 1, box.y, Math.max(1, box.width - 2), lane.row - 1);
    }
    drawLabel(context, lane, y, index) {
        const { palette, profile } = this.choice,
            thread = profile.threads[lane.thread],
            fitter = this.surface.fitter;
        const process = profile.processes[thread.process],
            mark = lane.open ? "▾ " : "▸ ";
        context.fillStyle = index === this.current && this.keyed ? palette.brush : palette.panel;
        context.fillRect(0, y - 2, LABEL_WIDTH, lane.height + LANE_GAP);
        context.fillStyle = palette.line;
        context.fillRect(0, y + lane.height + LANE_GAP / 2 - 1, LABEL_WIDTH + this.width, 1);
        context.textBaseline = "middle";
        fitter.setFont("600 12px " + FONT);
        context.fillStyle = palette.text;
        context.fillText(
            mark + fitter.fit(threadName(profile, lane.thread), LABEL_WIDTH - 30),
            8,
            y + 8,
        );
        fitter.setFont("11px " + FONT);
        context.fillStyle = palette.muted;
        const weight =
            profile.samples.before[profile.samples.start[lane.thread + 1]] -
            profile.samples.before[profile.samples.start[lane.thread]];
        context.fillText(
            thread.unsampled && !weight
                ? "not sampled"
                : timeText(weight) + " CPU  ·  " + thread.tid,
            22,
            y + 23,
        );
        if (profile.processes.length > 1 && lane.height > 38)
            context.fillText(
                fitter.fit(
                    (profile.runs > 1 ? "run " + (process.run + 1) + "  ·  " : "") +
                        shownName(process.name) + " " + process.pid,
                    LABEL_WIDTH - 30,
                ),
                22,
                y + 37,
            );
    }
    drawRuler(context, width, height) {
        const { palette } = this.choice,
            [low, high] = this.window;
        context.fillStyle = palette.panel;
        context.fillRect(0, 0, width, RULER);
        context.fillStyle = palette.line;
        context.fillRect(0, RULER - 1, width, 1);
        context.fillRect(LABEL_WIDTH - 1, 0, 1, height);
        context.save();
        context.beginPath();
        context.rect(LABEL_WIDTH, 0, this.width, height);
        context.clip();
        context.translate(LABEL_WIDTH, 0);
        drawTicks(context, palette, low, high, this.width, 4, RULER - 2);
        context.restore();
        this.brush.draw(context, height);
        fitterText(context, palette, timeText(high - low) + " shown", 8, RULER / 2);
    }
    setWindow(low, high) {
        const whole = this.choice.profile.duration || 1,
            span = Math.min(whole * 1.02, Math.max(high - low, 2000));
        low = Math.max(-whole * 0.01, Math.min(whole * 1.01 - span, low));
        this.window = [low, low + span];
        this.surface.dirty();
    }
    isWhole() {
        return this.window[1] - this.window[0] >= this.choice.profile.duration;
    }
    zoomToRange() {
        const { range } = this.choice;
        if (range)
            this.setWindow(
                range[0] - (range[1] - range[0]) * 0.02,
                range[1] + (range[1] - range[0]) * 0.02,
            );
    }
    openAll(open) {
        this.opened = new Set(open ? this.order() : []);
        this.surface.dirty();
    }
    toggleLane(lane) {
        if (!this.opened.delete(lane.thread)) this.opened.add(lane.thread);
        this.surface.dirty();
    }
    laneAt(y) {
        const at = y + this.scroller.scrollTop;
        return y < RULER
            ? null
            : this.lanes.find(
                  (lane) => at >= lane.top - 2 && at < lane.top + lane.height + LANE_GAP - 2,
              );
    }
    /* The interval under a point: from the first to the last sample in a row that hold the call. */
    hit(event) {
        const { x, y } = this.surface.at(event),
            lane = this.laneAt(y);
        if (!lane || x < LABEL_WIDTH || !this.painter) return { lane };
        const { profile } = this.choice,
            s = profile.samples,
            at = y + this.scroller.scrollTop,
            time = this.valueAt(x);
        const span = profile.threads[lane.thread].spans.find(
            (p) =>
                time >= p.start &&
                time < (p.end || profile.duration) &&
                at >= lane.top + p.row * SPAN_ROW &&
                at < lane.top + (p.row + 1) * SPAN_ROW,
        );
        const depth = Math.floor((at - lane.calls) / lane.row) + 1,
            first = s.start[lane.thread];
        const sample = lowerBound(s.time, time, first, s.start[lane.thread + 1]) - 1;
        if (span || depth < 1 || depth > lane.rows || sample < first) return { lane, span, time };
        return { lane, time, interval: this.interval(lane.thread, sample, depth) };
    }
    /* Null where the sample's stack is not that deep. */
    interval(thread, sample, depth) {
        const { profile } = this.choice,
            { painter } = this,
            limit = 50000,
            s = profile.samples,
            first = s.start[thread],
            last = s.start[thread + 1];
        const at = (i) => ancestorAt(profile, painter.nodeDepth, painter.node(i), depth),
            node = depth > 0 ? at(sample) : 0,
            holds = (i) => at(i) === node;
        if (!node) return null;
        let from = sample,
            to = sample;
        while (from > first && sample - from < limit && holds(from - 1)) from--;
        while (to + 1 < last && to - sample < limit && holds(to + 1)) to++;
        let pauses = 0;
        for (let i = from + 1; i <= to; i++) if (painter.pausedBefore(i)) pauses++;
        return {
            thread,
            depth,
            first: from,
            last: to,
            func: profile.nodeFunction[node],
            start: s.time[from],
            end: s.time[Math.min(last - 1, to + 1)],
            after: from > first ? s.time[from - 1] : null,
            samples: to - from + 1,
            pauses,
            long: sample - from >= limit || to - sample >= limit,
            cut: painter.nodeCut[node],
            weight: s.before[to + 1] - s.before[from],
        };
    }
    zoomToCall({ start, end }) {
        this.setWindow(start - (end - start) * 0.05, end + (end - start) * 0.05);
    }
    /* The call comes into sight, in an open lane, and is told beside its box and to who listens. */
    reveal(interval) {
        const { start, end, thread, depth } = interval,
            [low, high] = this.window,
            span = high - low;
        this.opened.add(thread);
        this.layOut();
        if (end <= low || start >= high) this.setWindow(start - span * 0.1, start + span * 0.9);
        const lane = this.lanes.find((l) => l.thread === thread),
            top = lane.calls + (depth - 1) * lane.row;
        this.setContent(this.content, this.pane.clientHeight);
        if (top - this.scroller.scrollTop < RULER) this.scroller.scrollTop = top - RULER - 8;
        else if (top + lane.row > this.scroller.scrollTop + this.pane.clientHeight)
            this.scroller.scrollTop = top + lane.row + 8 - this.pane.clientHeight;
        const pane = this.pane.getBoundingClientRect(),
            box = this.boxOf(lane, interval);
        this.showInterval(
            interval,
            { clientX: pane.x + box.x + box.width / 2, clientY: pane.y + box.y + lane.row },
            span / this.width,
        );
        this.tip.say(
            `${this.choice.name(interval.func)}, depth ${depth}, lasts ${timeText(end - start)}, ` +
                `seen in ${samplesText(interval.samples)} ${moduleText(this.choice.profile, interval.func)}`,
        );
        this.surface.dirty();
    }
    listen() {
        const { canvas } = this.surface;
        canvas.addEventListener("pointermove", (event) => this.hover(event));
        canvas.addEventListener("pointerleave", () => this.tip.hide());
        canvas.addEventListener("click", (event) => this.clicked(event));
        canvas.addEventListener("dblclick", (event) => {
            const { interval } = this.hit(event);
            if (interval) this.zoomToCall(interval);
        });
        canvas.addEventListener("pointerdown", (event) => {
            if (event.button !== 1 && !(event.button === 0 && event.altKey)) return;
            this.grab(event);
        });
        canvas.addEventListener("pointerup", () => (this.drag = null));
    }
    hover(event) {
        if (this.drag) return this.dragOn(event);
        if (this.brush.held && this.brush.held.moved) return this.tip.hide();
        const { lane, span, interval, time } = this.hit(event),
            step = (this.window[1] - this.window[0]) / this.width;
        if (interval) this.showInterval(interval, event, step);
        else if (span)
            this.tip.show(event.clientX, event.clientY, shownName(span.name), [
                ["Span", timeText((span.end || this.choice.profile.duration) - span.start)],
                ["From", momentText(span.start, step)],
            ]);
        else if (lane && time !== undefined)
            this.tip.show(
                event.clientX,
                event.clientY,
                threadName(this.choice.profile, lane.thread),
                [["At", momentText(time, step)]],
            );
        else this.tip.hide();
    }
    showInterval(interval, event, step) {
        const { choice } = this,
            rows = [
                ["Lasts", (interval.long ? "over " : "") + timeText(interval.end - interval.start)],
            ];
        if (interval.weight && !choice.profile.byCount)
            rows.push(["CPU time", timeText(interval.weight)]);
        rows.push([
            "Seen in",
            samplesText(interval.samples),
        ]);
        rows.push([
            "Starts",
            interval.after === null
                ? momentText(interval.start, step) + ", the first sample"
                : "after " +
                  momentText(interval.after, step) +
                  ", by " +
                  momentText(interval.start, step),
        ]);
        if (moduleText(choice.profile, interval.func))
            rows.push(["Module", moduleText(choice.profile, interval.func)]);
        const notes = [];
        if (interval.pauses)
            notes.push(
                `off the CPU ${interval.pauses} times in between: that it went on is inferred`,
            );
        if (interval.cut)
            notes.push("outer frames are missing: where it starts and ends is inferred");
        this.tip.show(
            event.clientX,
            event.clientY,
            choice.name(interval.func),
            rows,
            notes.join(" · "),
        );
    }
    clicked(event) {
        if (this.brush.justDragged) return;
        this.cursor.clear();
        const { x } = this.surface.at(event),
            { lane, interval } = this.hit(event);
        if (lane && x < LABEL_WIDTH) this.toggleLane(lane);
        else this.choice.select(interval ? this.choice.profile.nameOf[interval.func] : -1);
    }
    key(event) {
        if (event.altKey || event.ctrlKey || event.metaKey) return;
        const middle = (this.window[0] + this.window[1]) / 2,
            key = event.key,
            lane = this.lanes[this.current],
            walks = event.shiftKey && lane && /^Arrow/.test(key);
        if (!walks) this.tip.hide();
        if (walks) this.cursor.move(key, lane.thread);
        else if (event.shiftKey && key === "Enter" && this.cursor.interval) this.zoomToCursor();
        else if (key === "w" || key === "+" || key === "=") this.zoomAt(middle, 1 / 1.4);
        else if (key === "s" || key === "-") this.zoomAt(middle, 1.4);
        else if (key === "a" || key === "ArrowLeft") this.pan(-0.15);
        else if (key === "d" || key === "ArrowRight") this.pan(0.15);
        else if (key === "z") this.zoomToRange();
        else if (key === "ArrowDown") this.chooseLane(this.current + 1);
        else if (key === "ArrowUp") this.chooseLane(this.current - 1);
        else if (key === "Enter" && lane) this.toggleLane(lane);
        else return;
        event.preventDefault();
    }
    zoomToCursor() {
        const { interval } = this.cursor;
        this.zoomToCall(interval);
        this.choice.select(this.choice.profile.nameOf[interval.func]);
    }
    chooseLane(index) {
        this.keyed = true;
        this.cursor.clear();
        this.current = Math.max(0, Math.min(this.lanes.length - 1, index));
        const lane = this.lanes[this.current];
        if (!lane) return;
        const y = lane.top - this.scroller.scrollTop;
        if (y < RULER || y + lane.height > this.pane.clientHeight)
            this.scroller.scrollTop = lane.top - RULER - 8;
        this.tip.say(
            "Thread " +
                threadName(this.choice.profile, lane.thread) +
                (lane.open ? ", open" : ", closed"),
        );
        this.surface.dirty();
    }
}
