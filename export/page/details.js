/* SPDX-License-Identifier: MIT */
/* The panel beside every view: what is known of the selected function, with ways on from there. */

class Details {
    constructor(choice, parent) {
        this.choice = choice;
        this.element = parent.appendChild(
            make("aside", { class: "details", hidden: true, "aria-label": "Selected function" }),
        );
        choice.listen((what) => {
            if (what === "select" || what === "settled" || what === "draw" || what === "theme")
                this.show();
        });
    }
    show() {
        const { choice } = this,
            f = choice.selected;
        this.element.hidden = f < 0;
        if (f < 0) return;
        const fn = choice.profile.functions[f],
            row = choice.weights.row(f);
        this.element.replaceChildren(
            make(
                "div",
                { class: "details-head" },
                make("i", { class: "swatch" }),
                make("h2", {
                    dir: "ltr",
                    textContent: elideText(choice.name(f), 600),
                    title: elideText(choice.name(f), 2000),
                }),
                button("×", "Close (Esc)", () => choice.select(-1), {
                    class: "close",
                    "aria-label": "Close",
                }),
            ),
            this.facts(fn, row),
            this.actions(f),
        );
        this.element.querySelector(".swatch").style.background = choice.colours.css[f];
        if (!row) return;
        this.element.append(
            this.list("Called by", this.around(f, "callers"), row.total),
            this.list("Calls", this.around(f, "callees"), row.total),
        );
        const lines = this.lines(f);
        if (lines.length) this.element.append(this.lineList(lines, fn, row.self));
    }
    facts(fn, row) {
        const { choice } = this,
            list = make("dl"),
            add = (label, value) =>
                value &&
                list.append(
                    make("dt", { textContent: label }),
                    make("dd", { dir: "ltr", textContent: value }),
                );
        add(
            "Total",
            row ? shareText(choice, row.total, row.totalSquares) : "none in what is chosen",
        );
        add("Self", row && shareText(choice, row.self, row.selfSquares));
        add(
            "Samples",
            row && countText(row.selfCount) + " self, " + countText(row.totalCount) + " total",
        );
        add(
            "Module",
            fn.module >= 0 && elideText(shownName(choice.profile.modules[fn.module].path), 120),
        );
        add("Source", placeText(choice.profile, choice.selected));
        if (row && row.selfCount < 30 && row.totalCount < 30)
            list.after(
                make("p", { class: "warning", textContent: "Few samples: a rough figure." }),
            );
        return list;
    }
    actions(f) {
        const { choice } = this;
        const draw = (mode) => () => {
            choice.draw({ mode, focus: f });
            choice.show("flame");
        };
        return make(
            "div",
            { class: "actions" },
            button(
                "Graph of callers",
                "Draw who calls this function, from it upwards",
                draw("callers"),
            ),
            button(
                "Graph of callees",
                "Draw what this function calls, all places as one",
                draw("callees"),
            ),
            button(
                "Copy name",
                "Copy the whole name",
                () =>
                    navigator.clipboard &&
                    navigator.clipboard.writeText(choice.profile.functions[f].name).catch(() => {}),
            ),
        );
    }
    around(f, mode) {
        const picture = new Picture(this.choice.weights, mode, f);
        return picture.nearest().slice(0, 8);
    }
    list(title, boxes, whole) {
        const { choice } = this,
            list = make("ul");
        for (const box of boxes)
            list.append(
                make(
                    "li",
                    {},
                    make(
                        "button",
                        {
                            type: "button",
                            dir: "ltr",
                            title: elideText(choice.name(box.func), 500),
                            onclick: () => choice.select(box.func),
                        },
                        make("i", { class: "swatch" }),
                        make("span", {
                            class: "name",
                            textContent: elideText(choice.name(box.func), 90),
                        }),
                    ),
                    make("b", { textContent: percentText(whole ? box.total / whole : 0) }),
                ),
            );
        boxes.forEach(
            (box, i) =>
                (list.children[i].querySelector("i").style.background =
                    choice.colours.css[box.func]),
        );
        if (!boxes.length)
            list.append(make("li", { class: "none", textContent: "nothing in what is chosen" }));
        return make("section", {}, make("h3", { textContent: title }), list);
    }
    /* Weight by source line of the function's own code. */
    lines(f) {
        const { profile, leaves } = this.choice,
            sums = new Map();
        for (let i = 0; i < profile.leafCount; i++) {
            const node = profile.leafNode[i];
            if (
                !node ||
                !profile.leafLine[i] ||
                !leaves.weight[i] ||
                profile.nameOf[profile.nodeFunction[node]] !== f
            )
                continue;
            sums.set(profile.leafLine[i], (sums.get(profile.leafLine[i]) || 0) + leaves.weight[i]);
        }
        return [...sums].sort((a, b) => b[1] - a[1]).slice(0, 12);
    }
    lineList(lines, fn, self) {
        const list = make("ol", { class: "lines" }),
            file = fn.file ? baseName(shownName(fn.file)) : "line";
        for (const [line, weight] of lines) {
            const bar = make("i", { class: "fill" });
            bar.style.width = (weight / lines[0][1]) * 100 + "%";
            list.append(
                make(
                    "li",
                    {},
                    make("span", { dir: "ltr", textContent: elideText(file, 24) + ":" + line }),
                    make("i", { class: "measure" }, bar),
                    make("b", { textContent: percentText(self ? weight / self : 0) }),
                ),
            );
        }
        return make("section", {}, make("h3", { textContent: "Hot lines" }), list);
    }
}
