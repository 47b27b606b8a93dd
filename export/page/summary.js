/* SPDX-License-Identifier: MIT */
/* Summary: what was run, how well it was sampled, what was lost, and how far the figures go. */

const CLOCKS = ["CPU time of each thread", "task clock, user time", "wall clock"];

class Summary {
    constructor(choice, parent) {
        this.choice = choice;
        this.element = parent.appendChild(
            make("section", {
                class: "view summary",
                id: "view-summary",
                role: "tabpanel",
                tabIndex: 0,
                "aria-label": "Summary",
            }),
        );
        choice.listen((what) => {
            if (what === "view" && choice.view === "summary")
                this.element.focus({ preventScroll: true });
            if (choice.view === "summary" && what !== "filter") this.show();
        });
    }
    show() {
        const { choice } = this,
            { profile } = choice;
        const parts = [
            make("h2", { dir: "ltr", textContent: elideText(shownName(profile.title), 400) }),
            this.tiles(),
            this.warnings(),
            this.functions(choice.weights.functions(), 12),
            this.processes(),
            this.losses(),
        ];
        this.element.replaceChildren(...parts.filter(Boolean));
    }
    tiles() {
        const { profile, weights } = this.choice,
            tiles = make("div", { class: "tiles" });
        const add = (value, label) =>
            tiles.append(
                make(
                    "div",
                    { class: "tile" },
                    make("b", { textContent: value }),
                    make("span", { textContent: label }),
                ),
            );
        add(
            profile.byCount ? countText(profile.weight) : timeText(profile.weight),
            profile.byCount ? "total value" : "sampled CPU time",
        );
        if (!profile.byCount) add(countText(profile.count), "samples");
        if (profile.hasTimes) add(timeText(profile.duration), "wall time");
        if (profile.period) add((1e9 / profile.period).toFixed(0) + " Hz", "rate asked");
        if (profile.period && profile.weight)
            add((profile.count / (profile.weight / 1e9)).toFixed(0) + " Hz", "rate reached");
        if (profile.threads.length)
            add(
                countText(profile.threads.length),
                profile.threads.length === 1 ? "thread" : "threads",
            );
        if (profile.weight !== weights.whole)
            add(percentText(weights.whole / profile.weight), "of it chosen");
        return tiles;
    }
    warnings() {
        const list = make("ul", { class: "warnings" });
        for (const text of profileWarnings(this.choice))
            list.append(make("li", { textContent: elideText(text, 400) }));
        return list.children.length
            ? make("section", {}, make("h3", { textContent: "Keep in mind" }), list)
            : null;
    }
    /* The first `most` of the rows. */
    functions(rows, most) {
        const { choice } = this,
            { weights } = choice,
            table = make("table", { class: "plain" });
        table.append(
            make(
                "tr",
                {},
                ...["Self", "95 % interval", "Total", "Function", "Module"].map((label) =>
                    make("th", { textContent: label }),
                ),
            ),
        );
        for (const row of rows.slice(0, most)) {
            const range = shareInterval(
                row.self,
                weights.whole,
                row.selfSquares,
                weights.wholeSquares,
            );
            table.append(
                make(
                    "tr",
                    {},
                    make("td", {
                        textContent: percentText(weights.whole ? row.self / weights.whole : 0),
                    }),
                    make("td", {
                        class: "quiet",
                        textContent: percentText(range.low) + " – " + percentText(range.high),
                    }),
                    make("td", {
                        textContent: percentText(weights.whole ? row.total / weights.whole : 0),
                    }),
                    make(
                        "td",
                        { class: "wide" },
                        make("button", {
                            type: "button",
                            class: "link",
                            dir: "ltr",
                            textContent: elideText(choice.name(row.f), 140),
                            onclick: () => choice.select(row.f),
                        }),
                    ),
                    make("td", {
                        class: "quiet",
                        textContent: elideText(moduleText(choice.profile, row.f), 40),
                    }),
                ),
            );
        }
        return make(
            "section",
            { class: "functions" },
            make("h3", {
                textContent:
                    rows.length > most
                        ? `The first ${most} of ${countText(rows.length)} functions`
                        : "Functions",
            }),
            table,
        );
    }
    processes() {
        const { profile } = this.choice;
        if (!profile.processes.length) return null;
        const table = make("table", { class: "plain" });
        table.append(
            make(
                "tr",
                {},
                ...["Process", "Command", "CPU", "Samples", "Clock", "Ended"].map((label) =>
                    make("th", { textContent: label }),
                ),
            ),
        );
        for (const p of profile.processes.slice(0, 200))
            table.append(
                make(
                    "tr",
                    {},
                    make("td", {
                        dir: "ltr",
                        textContent: elideText(shownName(p.name), 30) + " " + p.pid,
                    }),
                    make("td", {
                        class: "wide",
                        dir: "ltr",
                        textContent: elideText(shownName(p.command || p.program), 160),
                    }),
                    make("td", { textContent: p.cpu ? timeText(p.cpu) : "–" }),
                    make("td", { textContent: countText(p.recorded) }),
                    make("td", { class: "quiet", textContent: CLOCKS[p.clock] || "" }),
                    make("td", { class: "quiet", textContent: p.ended }),
                ),
            );
        const { host } = profile.processes[0],
            began = profile.startRealtime
                ? new Date(profile.startRealtime / 1e6)
                      .toISOString()
                      .replace("T", " ")
                      .slice(0, 19) + " UTC"
                : "";
        return make(
            "section",
            {},
            make("h3", { textContent: "Processes" }),
            table,
            make("p", {
                class: "quiet",
                textContent: [host && "on " + shownName(host), began, shownName(profile.writer)]
                    .filter(Boolean)
                    .join("  ·  "),
            }),
        );
    }
    losses() {
        const { profile } = this.choice,
            list = make("dl", { class: "counters" });
        for (const [name, value] of profile.counters)
            list.append(
                make("dt", { textContent: shownName(name) }),
                make("dd", {
                    textContent: / time$/.test(name) ? timeText(value) : countText(value),
                }),
            );
        return profile.counters.size
            ? make("section", {}, make("h3", { textContent: "Counters" }), list)
            : null;
    }
}

/* Remarks that change how the figures are to be read. */
function profileWarnings(choice) {
    const { profile, weights } = choice,
        out = profile.notes.map(shownName),
        rows = weights.functions();
    const count = weights.wholeCount;
    if (!count) return out.concat("No samples in what is chosen.");
    if (!profile.byCount && count < 100)
        out.push(
            `Only ${samplesText(count)}: too few to rank functions. Run longer or raise the rate.`,
        );
    else if (rows.length > 1 && !profile.byCount) {
        const range = rows
            .slice(0, 10)
            .map((row) =>
                shareInterval(row.self, weights.whole, row.selfSquares, weights.wholeSquares),
            );
        const first = range.findIndex((r, i) => i + 1 < range.length && r.low < range[i + 1].high);
        if (first >= 0)
            out.push(
                `Too few samples to rank these by self time: ${elideText(choice.name(rows[first].f), 60)} and ${elideText(choice.name(rows[first + 1].f), 60)} lie within each other's interval` +
                    (first < range.length - 2 ? ", and so may those after them." : "."),
            );
    }
    const unsampled = profile.threads.filter((t) => t.unsampled).length;
    if (unsampled)
        out.push(
            `${countText(unsampled)} thread${unsampled > 1 ? "s were" : " was"} not sampled: the signal was blocked there.`,
        );
    return out;
}
