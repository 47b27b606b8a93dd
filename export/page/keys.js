/* SPDX-License-Identifier: MIT */
/* Keys that work everywhere, and the card that lists all keys. */

const KEYS = [
    [
        "Anywhere",
        [
            ["1 2 3 4", "flame graph, timeline, table, summary"],
            ["/", "search by regular expression"],
            ["i", "callees or callers"],
            ["f", "icicle or flame"],
            ["r", "fold recursion"],
            ["t", "dark or light"],
            ["Esc", "close, clear, zoom out: one step at a time"],
            ["?", "this card"],
        ],
    ],
    [
        "Flame graph",
        [
            ["← ↑ ↓ →", "walk from box to box"],
            ["Enter, click", "zoom"],
            ["Backspace", "zoom before"],
            ["double-click", "draw its callers or callees alone"],
            ["Ctrl wheel", "zoom at the pointer"],
            ["drag, Shift wheel", "pan"],
        ],
    ],
    [
        "Timeline",
        [
            ["drag", "choose a range of time"],
            ["W S", "zoom in, out"],
            ["A D, Shift wheel", "pan"],
            ["Ctrl wheel", "zoom at the pointer"],
            ["Z", "zoom to the range"],
            ["↑ ↓, Enter", "choose a lane, open it"],
            ["Shift ← ↑ ↓ →", "walk from call to call"],
            ["Shift Enter, double-click", "zoom to the call"],
        ],
    ],
    [
        "Table, time strip",
        [
            ["↑ ↓, Enter", "choose a function"],
            ["← → + −", "move, resize the range"],
            ["Delete", "clear the range"],
        ],
    ],
];

class Keys {
    constructor(choice, page) {
        this.choice = choice;
        this.page = page;
        this.card = document.body.appendChild(
            make("dialog", { class: "keys", "aria-label": "Keys" }),
        );
        this.card.append(make("h2", { textContent: "Keys" }));
        const columns = this.card.appendChild(make("div", { class: "key-columns" }));
        for (const [title, keys] of KEYS) {
            const list = make("dl");
            for (const [key, does] of keys)
                list.append(
                    make("dt", {}, make("kbd", { textContent: key })),
                    make("dd", { textContent: does }),
                );
            columns.append(make("section", {}, make("h3", { textContent: title }), list));
        }
        this.card.addEventListener(
            "click",
            (event) => event.target === this.card && this.card.close(),
        );
        document.addEventListener("keydown", (event) => this.key(event));
        /* Rings around what has the focus are for those who use keys. */
        document.addEventListener(
            "keydown",
            (event) => event.key.length > 1 && (document.documentElement.dataset.keys = "yes"),
            true,
        );
        document.addEventListener(
            "pointerdown",
            () => delete document.documentElement.dataset.keys,
            true,
        );
    }
    help() {
        if (this.card.open) this.card.close();
        else this.card.showModal();
    }
    key(event) {
        if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
        const { choice, page } = this,
            typing = event.target.tagName === "INPUT" && event.target.type !== "checkbox";
        if (event.key === "Escape") return this.escape(typing);
        if (typing || (this.card.open && event.key !== "?")) return;
        const does =
            {
                "/": () => page.searchBox.focus(),
                "?": () => this.help(),
                t: () => page.setTheme(choice.theme === "dark" ? "light" : "dark"),
                i: () => choice.draw({ mode: choice.mode === "callees" ? "callers" : "callees" }),
                f: () => choice.draw({ upward: !choice.upward }),
                r: () => choice.draw({ collapse: !choice.collapse }),
            }[event.key] ||
            (/^[1-4]$/.test(event.key) ? () => page.showView(VIEWS[event.key - 1][0]) : null);
        if (does) {
            event.preventDefault();
            does();
        } else if (event.key.length === 1 || event.key === "Backspace") this.toView(event);
    }
    /* Letters of the view in sight work wherever the focus is. */
    toView(event) {
        const view = this.page.views[this.choice.view];
        if (view.surface && event.target !== view.surface.canvas && event.key !== " ")
            view.key(event);
    }
    escape(typing) {
        const { choice, page } = this,
            flame = page.views.flame;
        if (this.card.open) return;
        if (page.filters.panel) page.filters.close();
        else if (typing && !choice.query) page.focusView();
        else if (choice.query) {
            page.searchBox.value = "";
            choice.search("");
            page.focusView();
        } else if (choice.selected >= 0) choice.select(-1);
        else if (choice.view === "flame" && !flame.isWhole()) flame.zoomTo(flame.picture.root);
        else if (choice.view === "timeline" && !page.views.timeline.isWhole())
            page.views.timeline.setWindow(0, choice.profile.duration);
        else if (choice.focus >= 0) choice.draw({ focus: -1 });
        else if (choice.range) choice.filter({ range: null });
    }
}
