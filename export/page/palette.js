/* SPDX-License-Identifier: MIT */
/* Colours. One per module, chosen by its name so that the same library looks the same in every
 * page; neighbours in the list differ in lightness as well as in hue, for readers who do not see
 * all hues. Functions of a module differ slightly, so that boxes side by side can be told apart. */

const PALETTES = {
    light: {
        modules: [
            "#f3b95f",
            "#8fbbe9",
            "#82d0bb",
            "#eba3ab",
            "#bdaee6",
            "#cfcd72",
            "#f09b70",
            "#a6dcee",
            "#dba8d2",
            "#b5c7a3",
        ],
        libc: "#b4bec8",
        plain: "#f5c564",
        warm: "#ee9f7c",
        pseudo: "#dcdcd8",
        text: "#1b2127",
        dim: 0.8,
        ground: "#fdfdfc",
        panel: "#ffffff",
        line: "#e3e4e1",
        muted: "#656e77",
        accent: "#1f66b0",
        found: "#d1279b",
        foundText: "#ffffff",
        shade: "rgba(27,33,39,.07)",
        brush: "rgba(31,102,176,.14)",
        cpu: "#7d9cbd",
        span: "#e6e0f6",
        spanText: "#43357a",
        gap: "#f0f0ed",
    },
    dark: {
        modules: [
            "#8a6220",
            "#2e5f97",
            "#1f7262",
            "#93454f",
            "#5d4d99",
            "#6c6b20",
            "#96502a",
            "#28738f",
            "#7f4474",
            "#52693c",
        ],
        libc: "#4b5764",
        plain: "#84651f",
        warm: "#8c4a33",
        pseudo: "#3b3f43",
        text: "#eef1f3",
        dim: 0.74,
        ground: "#14171a",
        panel: "#1b1f23",
        line: "#2d3339",
        muted: "#98a2ab",
        accent: "#7ab2ee",
        found: "#f06ac4",
        foundText: "#1d0716",
        shade: "rgba(255,255,255,.06)",
        brush: "rgba(122,178,238,.2)",
        cpu: "#56748f",
        span: "#3a3360",
        spanText: "#d6cdf7",
        gap: "#1f2327",
    },
};

function textHash(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return (hash ^ (hash >>> 13)) >>> 0;
}

/* Slot of each module: the program's own first; libraries by hash of their names, the next free one
 * when two meet; the C library and the loader have a grey of their own. */
function moduleSlots(profile, count) {
    const { modules } = profile,
        programs = new Set(profile.processes.map((p) => p.program));
    const slots = new Int16Array(modules.length),
        taken = new Set([0]);
    const order = modules
        .map((m, i) => [baseName(m.path), i])
        .sort((a, b) => (a[0] < b[0] ? -1 : 1));
    for (const [name, index] of order) {
        if (/^(libc[.-]|ld-linux|libm[.-]|libpthread[.-]|\[vdso\])/.test(name)) {
            slots[index] = -1;
            continue;
        }
        if (programs.has(modules[index].path)) {
            slots[index] = 0;
            continue;
        }
        let slot = textHash(name.replace(/[-.]so.*|[-.\d]+$/g, "")) % count;
        for (let tries = 0; taken.has(slot) && tries < count; tries++) slot = (slot + 1) % count;
        taken.add(slot);
        slots[index] = slot;
    }
    return slots;
}

function mix(colour, other, share) {
    const a = parseInt(colour.slice(1), 16),
        b = parseInt(other.slice(1), 16);
    let out = 0;
    for (const shift of [16, 8, 0]) {
        const from = (a >> shift) & 255,
            to = (b >> shift) & 255;
        out |= Math.round(from + (to - from) * share) << shift;
    }
    return "#" + ((out >>> 0) & 0xffffff).toString(16).padStart(6, "0");
}

/* Colours of all functions for one theme, as CSS text and as the words of an ImageData. */
function functionColours(profile, theme) {
    const palette = PALETTES[theme];
    const slots = moduleSlots(profile, palette.modules.length);
    const count = profile.functions.length;
    const colours = { palette, css: new Array(count), words: new Uint32Array(count), slots };
    for (let f = 0; f < count; f++) {
        const fn = profile.functions[f],
            hash = textHash(fn.name);
        const colour = functionColour(fn, hash, slots, palette);
        colours.css[f] = colour;
        colours.words[f] = colourWord(colour);
    }
    return colours;
}

function functionColour(fn, hash, slots, palette) {
    if (fn.flags & 1) return palette.pseudo;
    let base = mix(palette.plain, palette.warm, ((hash >>> 16) & 255) / 255);
    if (fn.module >= 0) base = moduleColour(slots[fn.module], palette);
    else if (fn.flags & 8) base = palette.modules[3];
    const shift = (((hash >>> 4) & 255) / 255 - 0.5) * 0.22;
    return mix(base, shift < 0 ? "#000000" : "#ffffff", Math.abs(shift) * (shift < 0 ? 0.6 : 1));
}

function moduleColour(slot, palette) {
    return slot < 0 ? palette.libc : palette.modules[slot];
}

function colourWord(colour) {
    const value = parseInt(colour.slice(1), 16);
    return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | ((value >> 16) & 255)) >>> 0;
}
