/* SPDX-License-Identifier: MIT */
/* Names as they are shown: controls and text-direction marks made visible, cut in the middle where
 * there is no room. Widths are sums over a table of glyphs, since measuring each name is too slow. */

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function shownName(name) {
    return name.replace(UNSEEN, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

/* At most `room` characters of a text, the middle left out. Both ends carry meaning: the namespace
 * and the method, the directory and the file. */
function elideText(text, room) {
    if (text.length <= room) return text;
    if (room < 2) return room < 1 ? "" : "…";
    let head = Math.ceil((room - 1) * 0.6), tail = text.length - (room - 1 - head);
    if (isLow(text.charCodeAt(head))) head--;
    if (isLow(text.charCodeAt(tail))) tail++;
    return text.slice(0, head) + "…" + text.slice(tail);
}

function isLow(unit) {
    return unit >= 0xdc00 && unit <= 0xdfff;
}

class TextFitter {
    constructor(context) {
        this.context = context;
        this.font = "";
    }
    setFont(font) {
        this.context.font = font;
        if (this.font === font) return;
        this.font = font;
        this.ascii = new Float64Array(128);
        for (let i = 32; i < 127; i++)
            this.ascii[i] = this.context.measureText(String.fromCharCode(i)).width;
        this.wide = new Map([["…", this.context.measureText("…").width]]);
    }
    glyph(text, i) {
        const unit = text.charCodeAt(i);
        if (unit < 128) return this.ascii[unit];
        const key = text[i];
        let width = this.wide.get(key);
        if (width === undefined) {
            width = isLow(unit) ? 0 : this.context.measureText(String.fromCodePoint(text.codePointAt(i))).width;
            if (this.wide.size < 5000) this.wide.set(key, width);
        }
        return width;
    }
    /* The text, or its two ends, within `room` pixels; "" when not even a few letters fit. */
    fit(text, room) {
        let width = 0, i = 0;
        for (; i < text.length && width <= room; i++) width += this.glyph(text, i);
        if (width <= room) return text;
        room -= this.wide.get("…");
        let head = 0, headWidth = 0, tail = text.length, tailWidth = 0;
        for (;;) {
            const fromHead = headWidth <= tailWidth * 1.5;
            const next = this.glyph(text, fromHead ? head : tail - 1);
            if (headWidth + tailWidth + next > room) break;
            if (fromHead) { headWidth += next; head++; } else { tailWidth += next; tail--; }
        }
        if (head < 3) return "";
        if (isLow(text.charCodeAt(head))) head--;
        if (isLow(text.charCodeAt(tail))) tail++;
        return text.slice(0, head) + "…" + text.slice(tail);
    }
}

function baseName(path) {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}
