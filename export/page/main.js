/* SPDX-License-Identifier: MIT */
/* Start: reads the data, builds the views, links them through one Choice. */

const VIEWS = [
    ["flame", "Flame graph"],
    ["timeline", "Timeline"],
    ["table", "Functions"],
    ["summary", "Summary"],
];

class Page {
    constructor(profile) {
        const choice = (this.choice = new Choice(profile)),
            app = document.getElementById("app");
        this.tip = new Tip();
        app.replaceChildren();
        this.makeHeader(app);
        this.filters = new Filters(choice, app);
        this.overview = new Overview(choice, app, this.tip);
        const body = app.appendChild(make("main", { class: "body" }));
        this.views = {
            flame: new FlameView(choice, body, this.tip),
            timeline: new Timeline(choice, body, this.tip),
            table: new FunctionTable(choice, body),
            summary: new Summary(choice, body),
        };
        this.details = new Details(choice, body);
        this.keys = new Keys(choice, this);
        this.legend = app.appendChild(make("footer", { class: "legend" }));
        choice.listen((what) => {
            if (what === "view") this.showTabs();
            if (what === "settled") this.showLegend();
        });
        document.title = elideText(shownName(profile.title), 80) + " – lapse";
        const dark = matchMedia("(prefers-color-scheme: dark)");
        this.setTheme(dark.matches ? "dark" : "light");
        dark.addEventListener("change", () => this.setTheme(dark.matches ? "dark" : "light"));
        this.listenPrint();
        this.showView("flame");
    }
    makeHeader(app) {
        const { choice } = this,
            { profile } = choice;
        this.tabs = make("div", { class: "tabs", role: "tablist", "aria-label": "Views" });
        VIEWS.forEach(([view, label], i) => {
            const tab = button(label, `${label} (${i + 1})`, () => this.showView(view), {
                role: "tab",
                value: view,
                id: "tab-" + view,
                "aria-controls": "view-" + view,
            });
            tab.disabled = view === "timeline" && !profile.hasTimes;
            if (tab.disabled) tab.title = "This profile holds no times";
            this.tabs.append(tab);
        });
        this.searchBox = make("input", {
            type: "search",
            id: "search",
            placeholder: "Search: regular expression  /",
            "aria-label": "Search functions by regular expression",
            spellcheck: false,
            autocomplete: "off",
            oninput: () => this.searchSoon(),
            onkeydown: (event) => event.key === "Enter" && this.focusView(),
        });
        app.append(
            make(
                "header",
                {},
                make("h1", { textContent: "lapse" }),
                make("span", {
                    class: "command",
                    dir: "ltr",
                    title: elideText(shownName(profile.title), 1000),
                    textContent: elideText(shownName(profile.title), 120),
                }),
                this.tabs,
                this.searchBox,
                button(
                    "◐",
                    "Dark or light (t)",
                    () => this.setTheme(choice.theme === "dark" ? "light" : "dark"),
                    { class: "icon", "aria-label": "Dark or light" },
                ),
                button("?", "Keys (?)", () => this.keys.help(), {
                    class: "icon",
                    "aria-label": "Keys",
                }),
            ),
        );
    }
    /* A pattern over many long names takes a while: wait for the typing to pause. */
    searchSoon() {
        clearTimeout(this.searching);
        this.searching = setTimeout(
            () => this.choice.search(this.searchBox.value),
            this.choice.profile.functions.length > 20000 ? 150 : 0,
        );
    }
    showView(view) {
        if (view === "timeline" && !this.choice.profile.hasTimes) return;
        this.choice.view = view;
        this.showTabs();
        this.choice.tell("view");
    }
    showTabs() {
        const { view } = this.choice;
        for (const tab of this.tabs.children)
            tab.setAttribute("aria-selected", String(tab.value === view));
        for (const [name, part] of Object.entries(this.views)) part.element.hidden = name !== view;
        this.tip.hide();
    }
    focusView() {
        this.choice.tell("view");
    }
    setTheme(theme) {
        this.choice.theme = theme;
        document.documentElement.dataset.theme = theme;
        this.choice.tell("theme");
        this.showLegend();
    }
    /* Colours of the modules that hold most of the self time. */
    showLegend() {
        const { choice } = this,
            { profile, colours } = choice,
            sums = new Map();
        for (const [module, sum] of choice.moduleWeights().entries()) if (sum) sums.set(module, sum);
        this.legend.replaceChildren();
        for (const [module, weight] of [...sums].sort((a, b) => b[1] - a[1]).slice(0, 9)) {
            const swatch = make("i", { class: "swatch" });
            swatch.style.background = moduleColour(colours.slots[module], colours.palette);
            this.legend.append(
                make(
                    "span",
                    {
                        title:
                            "Self time in " +
                            elideText(shownName(profile.modules[module].path), 200),
                    },
                    swatch,
                    elideText(baseName(shownName(profile.modules[module].path)), 32) + "  ",
                    make("small", { textContent: percentText(weight / choice.leaves.whole) }),
                ),
            );
        }
        this.legend.append(make("span", { class: "hint", textContent: "? keys" }));
    }
    /* Paper shows the view in the light, drawn for the width of a page (`data-print` in
     * page.css) before it is laid out, and the functions that hold most time. */
    listenPrint() {
        const root = document.documentElement;
        let before = null;
        addEventListener("beforeprint", () => {
            const { choice } = this,
                { flame, table, summary } = this.views,
                part = this.views[choice.view];
            if (before) return;
            before = { theme: choice.theme, top: part.scroller ? part.scroller.scrollTop : 0 };
            this.setTheme("light");
            root.dataset.print = choice.view;
            flame.complete();
            if (choice.view !== "summary") {
                const rows = choice.view === "table" ? table.rows : choice.weights.functions();
                this.printed = part.element.parentNode.appendChild(summary.functions(rows, 60));
            }
            if (part.surface) part.print();
            this.overview.surface.draw();
        });
        addEventListener("afterprint", () => {
            if (!before) return;
            const part = this.views[this.choice.view],
                { theme, top } = before;
            before = null;
            delete root.dataset.print;
            if (this.printed) this.printed.remove();
            if (part.surface) part.pane.style.height = "";
            this.setTheme(theme);
            if (part.scroller) part.scroller.scrollTop = top;
        });
    }
}

async function start() {
    const holder = document.getElementById("data");
    try {
        const profile = readProfile(await inflate(holder.textContent));
        holder.remove();
        nameFunctions(profile);
        window.lapsePage = new Page(profile);
        requestAnimationFrame(() => (document.documentElement.dataset.ready = "yes"));
    } catch (error) {
        const app = document.getElementById("app");
        app.replaceChildren(
            make("p", {
                class: "failed",
                textContent:
                    "This page cannot be shown: " +
                    error.message +
                    (typeof DecompressionStream === "undefined"
                        ? ". It needs a browser of 2023 or later."
                        : ""),
            }),
        );
        document.documentElement.dataset.ready = "failed";
    }
}

start();
