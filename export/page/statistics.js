/* SPDX-License-Identifier: MIT */
/* Sampling error of shares, by the rule of export/statistics.c, and how numbers are written. */

/* Wilson's 95 % interval; samples of unequal weight count as whole^2 / squares equal ones. */
function shareInterval(part, whole, partSquares, wholeSquares) {
    if (!(whole > 0) || !(wholeSquares > 0)) return { low: 0, high: 1 };
    const z = 1.959963984540054, n = whole * whole / wholeSquares;
    const p = Math.min(1, Math.max(0, part / whole));
    const middle = (p + z * z / (2 * n)) / (1 + z * z / n);
    const half = z / (1 + z * z / n) * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    return { low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}

function percentText(share) {
    const percent = share * 100;
    if (!isFinite(percent)) return "–";
    if (percent === 0) return "0 %";
    if (percent < 0.01) return "<0.01 %";
    return (percent >= 99.95 ? percent.toFixed(0) : percent >= 9.995 ? percent.toFixed(1) :
            percent.toFixed(2)) + "\u2009%";
}

function timeText(ns) {
    const size = Math.abs(ns);
    const [scale, unit] = size >= 60e9 ? [60e9, "min"] : size >= 1e9 ? [1e9, "s"] :
        size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
    const value = ns / scale, digits = scale === 1 ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
    return value.toFixed(digits) + "\u2009" + unit;
}

/* A moment on an axis whose ticks are `step` apart: as many digits as the step needs. */
function momentText(ns, step) {
    const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / 1e9) - 1e-9)));
    return (ns / 1e9).toFixed(digits) + "\u2009s";
}

function countText(count) {
    return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function weightText(profile, weight) {
    return profile.byCount ? countText(weight) : timeText(weight);
}
