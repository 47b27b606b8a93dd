/* SPDX-License-Identifier: MIT */
/* Sampling error of shares, by the rule of export/statistics.c, and how numbers are written. */

/* How many samples of equal weight would tell as much as these. */
function effectiveSamples(share, part, whole, partSquares, wholeSquares) {
    const rest = whole - part,
        restSquares = wholeSquares - partSquares,
        kish = (whole * whole) / wholeSquares;
    if (part <= 0 || rest <= 0 || partSquares <= 0 || restSquares <= 0) return kish;
    const variance =
        ((1 - share) ** 2 * partSquares + share * share * restSquares) / (whole * whole);
    const linear = (share * (1 - share)) / variance;
    const known = (part * part) / partSquares >= 50 && (rest * rest) / restSquares >= 50;
    return known || linear < kish ? linear : kish;
}

/* Wilson's 95 % interval of a share of weight. */
function shareInterval(part, whole, partSquares, wholeSquares) {
    if (!(whole > 0) || !(wholeSquares > 0)) return { low: 0, high: 1 };
    const z = 1.959963984540054,
        share = Math.min(1, Math.max(0, part / whole));
    const n = effectiveSamples(share, part, whole, partSquares, wholeSquares),
        scale = 1 + (z * z) / n;
    const centre = (share + (z * z) / (2 * n)) / scale;
    const half = (z / scale) * Math.sqrt((share * (1 - share)) / n + (z * z) / (4 * n * n));
    return {
        low: share > 0 ? Math.max(0, centre - half) : 0,
        high: share < 1 ? Math.min(1, centre + half) : 1,
    };
}

function percentText(share) {
    const percent = share * 100;
    if (!isFinite(percent)) return "–";
    if (percent === 0) return "0 %";
    if (percent < 0.01) return "<0.01 %";
    return (
        (percent >= 99.95
            ? percent.toFixed(0)
            : percent >= 9.995
              ? percent.toFixed(1)
              : percent.toFixed(2)) + "\u2009%"
    );
}

function timeText(ns) {
    const size = Math.abs(ns);
    const [scale, unit] =
        size >= 60e9
            ? [60e9, "min"]
            : size >= 1e9
              ? [1e9, "s"]
              : size >= 1e6
                ? [1e6, "ms"]
                : size >= 1e3
                  ? [1e3, "µs"]
                  : [1, "ns"];
    const value = ns / scale,
        digits = scale === 1 ? 0 : Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
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

function samplesText(count) {
    return countText(count) + (Math.round(count) === 1 ? " sample" : " samples");
}

function weightText(profile, weight) {
    return profile.byCount ? countText(weight) : timeText(weight);
}
