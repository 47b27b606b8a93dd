/* SPDX-License-Identifier: MIT */
/* Names as they are shown: controls and text-direction marks made visible, cut in the middle where
 * there is no room. Widths are sums over a table of glyphs, since measuring each name is too slow. */

const UNSEEN =
    /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

function shownName(name) {
    return name.replace(UNSEEN, (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

/* At most `room` characters of a text, the middle left out. Both ends carry meaning: the namespace
 * and the method, the directory and the file. */
function elideText(text, room) {
    if (text.length <= room) return text;
    if (room < 2) return room < 1 ? "" : "…";
    let head = Math.ceil((room - 1) * 0.6),
        tail = text.length - (room - 1 - head);
    if (isLow(text.charCodeAt(head))) head--;
    if (isLow(text.charCodeAt(tail))) tail++;
    return text.slice(0, head) + "…" + text.slice(tail);
}

function isLow(unit) {
    return unit >= 0xdc00 && unit <= 0xdfff;
}

/* A C++ or Rust name without what tells least: parameters, template arguments, result type. */
function briefName(name) {
    if (!/[(<]/.test(name) || name.startsWith("<") || name.startsWith("[")) return name;
    let out = "";
    for (let i = 0; i < name.length; ) {
        const operator = /^operator(?:\(\)|[<>=!+*/%^&|~,-]+|\[\])/.exec(name.slice(i, i + 14));
        if (operator && !/\w$/.test(out)) {
            out += operator[0];
            i += operator[0].length;
        } else if (name.startsWith("(anonymous namespace)", i)) {
            out += "(anonymous)";
            i += 21;
        } else if (name[i] === "(" || name[i] === "<") {
            if (name[i] === "<") out += "<…>";
            i = closing(name, i);
        } else out += name[i++];
    }
    out = out.replace(/( const| volatile|&|\s)+$/, "");
    const word = out.indexOf("operator"),
        space = out.lastIndexOf(" ", word < 0 ? Infinity : word);
    return out.slice(space + 1) || name;
}

/* Behind the bracket that closes the one at `from`; the end when none does. */
function closing(name, from) {
    for (let i = from, depth = 0; i < name.length; i++) {
        if (name[i] === "(" || (name[i] === "<" && !name.startsWith("operator", i - 8))) depth++;
        else if ((name[i] === ")" || (name[i] === ">" && name[i - 1] !== "-")) && --depth === 0)
            return i + 1;
    }
    return name.length;
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
            width = isLow(unit)
                ? 0
                : this.context.measureText(String.fromCodePoint(text.codePointAt(i))).width;
            if (this.wide.size < 5000) this.wide.set(key, width);
        }
        return width;
    }
    /* A function's name: whole, else brief, else the two ends of the brief one. */
    fitName(name, room) {
        if (this.fits(name, room)) return name;
        this.brief = this.brief || new Map();
        let brief = this.brief.get(name);
        if (brief === undefined) {
            if (this.brief.size > 20000) this.brief.clear();
            this.brief.set(name, (brief = briefName(name)));
        }
        return this.fit(brief, room);
    }
    fits(text, room) {
        let width = 0;
        for (let i = 0; i < text.length && width <= room; i++) width += this.glyph(text, i);
        return width <= room;
    }
    /* The text, or its two ends, within `room` pixels; "" when not even a few letters fit. */
    fit(text, room) {
        if (this.fits(text, room)) return text;
        room -= this.wide.get("…");
        let head = 0,
            headWidth = 0,
            tail = text.length,
            tailWidth = 0;
        for (;;) {
            const fromHead = headWidth <= tailWidth * 1.5;
            const next = this.glyph(text, fromHead ? head : tail - 1);
            if (headWidth + tailWidth + next > room) break;
            if (fromHead) {
                headWidth += next;
                head++;
            } else {
                tailWidth += next;
                tail--;
            }
        }
        if (head < 3) return "";
        /* The ends may be places where something was left out already. */
        while (head > 1 && /[<…]/.test(text[head - 1])) head--;
        while (/[…>]/.test(text[tail] || "") && text[tail + 1]) tail++;
        if (isLow(text.charCodeAt(head))) head--;
        if (isLow(text.charCodeAt(tail))) tail++;
        return text.slice(0, head) + "…" + text.slice(tail);
    }
}

function baseName(path) {
    return path.slice(path.lastIndexOf("/") + 1) || path;
}
