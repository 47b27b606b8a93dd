/* SPDX-License-Identifier: MIT */
/* The call of the timeline that keys are on, a sample and a depth: a ring is drawn around its interval, and
 * what it is stands beside it and is said to readers who listen. */

class CallCursor {
    constructor(timeline) {
        this.timeline = timeline;
        this.interval = null; /* none: keys are on no call */
    }
    clear() {
        this.interval = null;
    }
    /* An arrow key: down and up go along the stack, left and right in time. */
    move(key, thread) {
        const { interval } = this;
        if (!interval || interval.thread !== thread) this.enter(thread);
        else if (key === "ArrowDown") this.inward();
        else if (key === "ArrowUp") this.put(thread, interval.first, interval.depth - 1);
        else if (key === "ArrowLeft") this.beside(thread, interval.first - 1, interval.depth, -1);
        else this.beside(thread, interval.last + 1, interval.depth, 1);
    }
    /* The outermost call in the middle of what is shown. */
    enter(thread) {
        const { choice, window } = this.timeline,
            { start, time } = choice.profile.samples,
            first = start[thread];
        const sample = lowerBound(time, (window[0] + window[1]) / 2, first, start[thread + 1]) - 1;
        this.beside(thread, Math.max(first, sample), 1, sample < first ? 1 : -1);
    }
    /* The first call that this one makes. */
    inward() {
        const { thread, first, last, depth } = this.interval;
        for (let sample = first; sample <= last; sample++)
            if (this.depthAt(sample) > depth) return this.put(thread, sample, depth + 1);
    }
    /* The nearest sample that way which holds a call, at this depth or less deep. */
    beside(thread, sample, depth, way) {
        const { start } = this.timeline.choice.profile.samples;
        while (sample >= start[thread] && sample < start[thread + 1]) {
            const held = Math.min(depth, this.depthAt(sample));
            if (held) return this.put(thread, sample, held);
            sample += way;
        }
    }
    depthAt(sample) {
        const { painter } = this.timeline;
        return painter.nodeDepth[painter.node(sample)];
    }
    put(thread, sample, depth) {
        const interval = this.timeline.interval(thread, sample, depth);
        if (!interval) return;
        this.interval = interval;
        this.timeline.reveal(interval);
    }
}
