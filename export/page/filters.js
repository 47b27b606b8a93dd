/* SPDX-License-Identifier: MIT */
/* The row of filters below the header: threads by process, labels, time; each shows what it leaves. */

class Filters {
    constructor(choice, parent) {
        this.choice = choice;
        this.element = parent.appendChild(
            make("div", { class: "filters", role: "toolbar", "aria-label": "Filters" }),
        );
        this.threads = this.element.appendChild(
            this.menu("Threads", (panel) => this.threadPanel(panel)),
        );
        this.labels = this.element.appendChild(
            this.menu("Labels", (panel) => this.labelPanel(panel)),
        );
        this.range = this.element.appendChild(
            button("", "Show all of the time again", () => choice.filter({ range: null }), {
                class: "chip",
                id: "range",
            }),
        );
        this.sum = this.element.appendChild(make("span", { class: "sum", id: "sum" }));
        this.match = this.element.appendChild(
            make("span", { class: "match", id: "match", role: "status" }),
        );
        choice.listen((what) => what !== "settled" && what !== "view" && this.show());
        document.addEventListener(
            "pointerdown",
            (event) => this.panel && !this.panel.parentNode.contains(event.target) && this.close(),
        );
        this.show();
    }
    menu(label, fill) {
        const holder = make("div", { class: "menu" });
        holder.opener = holder.appendChild(
            button(
                label,
                "Choose " + label.toLowerCase(),
                () => {
                    const mine = this.panel && this.panel.parentNode === holder;
                    this.close();
                    if (!mine) this.open(holder, fill);
                },
                { "aria-haspopup": "true", "aria-expanded": "false" },
            ),
        );
        return holder;
    }
    open(holder, fill) {
        this.panel = holder.appendChild(make("div", { class: "panel" }));
        holder.opener.setAttribute("aria-expanded", "true");
        fill(this.panel);
        this.panel.addEventListener("keydown", (event) => {
            if (event.key !== "Escape") return;
            event.stopPropagation();
            this.close();
            holder.opener.focus();
        });
        const first = this.panel.querySelector("input, button");
        if (first) first.focus();
    }
    close() {
        if (!this.panel) return;
        this.panel.parentNode.opener.setAttribute("aria-expanded", "false");
        this.panel.remove();
        this.panel = null;
    }
    check(text, on, action, extra) {
        return make(
            "label",
            { class: "check" },
            make("input", {
                type: "checkbox",
                checked: on,
                onchange: (event) => action(event.target.checked),
            }),
            make("span", { dir: "ltr", textContent: elideText(text, 60) }),
            extra ? make("small", { textContent: extra }) : null,
        );
    }
    threadPanel(panel) {
        const { choice } = this,
            { profile } = choice,
            s = profile.samples;
        const set = (which, on) => {
            const threads = choice.threads.slice();
            for (const t of which) threads[t] = on ? 1 : 0;
            choice.filter({ threads });
        };
        const all = profile.threads.map((_, t) => t),
            refill = () => {
                panel.replaceChildren();
                this.threadPanel(panel);
            };
        panel.append(
            make(
                "div",
                { class: "joined" },
                button("All", "Choose all threads", () => {
                    set(all, true);
                    refill();
                }),
                button("None", "Choose no thread", () => {
                    set(all, false);
                    refill();
                }),
            ),
        );
        const list = panel.appendChild(make("div", { class: "checks" }));
        profile.processes.forEach((process, p) => {
            const members = all.filter((t) => profile.threads[t].process === p);
            const weight = (t) => s.before[s.start[t + 1]] - s.before[s.start[t]];
            members.sort((a, b) => weight(b) - weight(a));
            if (!members.length || list.children.length > 2000) return;
            const head = this.check(
                (profile.runs > 1 ? "run " + (process.run + 1) + ": " : "") +
                    shownName(process.name) + " " + process.pid,
                members.every((t) => choice.threads[t]),
                (on) => {
                    set(members, on);
                    refill();
                },
                timeText(members.reduce((sum, t) => sum + weight(t), 0)),
            );
            head.classList.add("whole");
            list.append(head);
            for (const t of members)
                list.append(
                    this.check(
                        threadName(profile, t) + "  " + profile.threads[t].tid,
                        Boolean(choice.threads[t]),
                        (on) => set([t], on),
                        timeText(weight(t)),
                    ),
                );
        });
    }
    labelPanel(panel) {
        const { choice } = this,
            { labelSets } = choice.profile,
            values = new Map();
        for (const set of labelSets)
            for (const [key, value] of set) values.set(key + "\0" + value, [key, value]);
        const list = panel.appendChild(make("div", { class: "checks" }));
        const chosen = choice.labelKeys || new Set();
        for (const [id, [key, value]] of [...values].slice(0, 2000))
            list.append(
                this.check(shownName(key) + " = " + shownName(value), chosen.has(id), (on) => {
                    const labelKeys = new Set(choice.labelKeys || []);
                    if (on) labelKeys.add(id);
                    else labelKeys.delete(id);
                    const labels = labelKeys.size
                        ? Uint8Array.from(labelSets, (set) =>
                              set.some(([k, v]) => labelKeys.has(k + "\0" + v)) ? 1 : 0,
                          )
                        : null;
                    choice.filter({ labels, labelKeys: labelKeys.size ? labelKeys : null });
                }),
            );
        list.append(
            make("small", {
                class: "quiet",
                textContent: "None ticked: all samples. Ticked: samples that carry one of them.",
            }),
        );
    }
    show() {
        const { choice } = this,
            { profile, range } = choice,
            chosen = choice.threads.reduce((sum, on) => sum + on, 0);
        this.threads.hidden = !profile.hasTimes;
        setText(
            this.threads.opener,
            "Threads  " +
                (chosen === profile.threads.length
                    ? "all " + chosen
                    : chosen + " of " + profile.threads.length) +
                "  ▾",
        );
        this.labels.hidden = profile.labelSets.every((set) => !set.length);
        setText(
            this.labels.opener,
            "Labels  " + (choice.labelKeys ? choice.labelKeys.size + " chosen" : "all") + "  ▾",
        );
        this.range.hidden = !range;
        if (range) {
            const step = (range[1] - range[0]) / 100;
            this.range.textContent =
                momentText(range[0], step) + " – " + momentText(range[1], step) + "  ×";
        }
        const whole = choice.leaves.whole;
        this.sum.textContent =
            weightText(profile, whole) +
            (whole !== profile.weight && profile.weight
                ? "  ·  " + percentText(whole / profile.weight) + " of all"
                : "") +
            (profile.byCount ? "" : "  ·  " + samplesText(choice.leaves.wholeCount));
        setText(
            this.match,
            choice.queryError ||
                (choice.matchedShare
                    ? "matched " +
                      percentText(choice.matchedShare.share) +
                      "  ·  " +
                      weightText(profile, choice.matchedShare.weight)
                    : ""),
        );
        this.match.classList.toggle("wrong", Boolean(choice.queryError));
    }
}
