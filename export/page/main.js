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
    listenPrint() {
        let before = null;
        addEventListener("beforeprint", () => {
            before = this.choice.theme;
            this.setTheme("light");
            this.views.flame.complete();
            for (const part of Object.values(this.views)) if (part.surface) part.surface.draw();
            this.overview.surface.draw();
        });
        addEventListener("afterprint", () => before && this.setTheme(before));
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
