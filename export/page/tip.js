/* SPDX-License-Identifier: MIT */
/* The box beside the pointer, and the words for readers who listen: what is under it weighs. */

class Tip {
    constructor() {
        this.box = document.body.appendChild(
            make("div", { class: "tip", hidden: true, role: "presentation" }),
        );
        this.live = document.body.appendChild(
            make("div", { class: "unseen", "aria-live": "polite", id: "live" }),
        );
    }
    /* rows: [label, value] pairs */
    show(x, y, title, rows, note) {
        const box = this.box;
        box.replaceChildren(
            make("div", { class: "tip-name", dir: "ltr", textContent: elideText(title, 400) }),
        );
        const list = box.appendChild(make("dl"));
        for (const [label, value] of rows)
            list.append(
                make("dt", { textContent: label }),
                make("dd", { dir: "ltr", textContent: elideText(value, 160) }),
            );
        if (note) box.append(make("div", { class: "tip-note", textContent: note }));
        box.hidden = false;
        const width = box.offsetWidth,
            height = box.offsetHeight,
            gap = 14;
        const left = x + gap + width > innerWidth ? Math.max(4, x - gap - width) : x + gap;
        const top = y + gap + height > innerHeight ? Math.max(4, y - gap - height) : y + gap;
        box.style.transform = `translate(${left}px, ${top}px)`;
    }
    hide() {
        this.box.hidden = true;
    }
    say(text) {
        this.live.textContent = elideText(text, 300);
    }
}

function moduleText(profile, f) {
    const fn = profile.functions[f];
    return fn && fn.module >= 0 ? baseName(shownName(profile.modules[fn.module].path)) : "";
}

function placeText(profile, f) {
    const fn = profile.functions[f];
    return fn && fn.file ? shownName(fn.file) + (fn.line ? ":" + fn.line : "") : "";
}

/* Weight, share of everything chosen and its 95 % interval in one line. */
function shareText(choice, weight, squares) {
    const w = choice.weights,
        range = shareInterval(weight, w.whole, squares, w.wholeSquares);
    return (
        weightText(choice.profile, weight) +
        "  ·  " +
        percentText(w.whole ? weight / w.whole : 0) +
        "  (" +
        percentText(range.low).replace(/\s%$/, "") +
        "–" +
        percentText(range.high) +
        ")"
    );
}
