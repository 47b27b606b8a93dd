/* SPDX-License-Identifier: MIT */
/* Table of functions: self and total with their 95 % intervals as whiskers. Only the rows in sight
 * are elements; they are used again while scrolling. */

const TABLE_ROW = 28,
    SWATCH_ROOM = 30,
    MARK_ROOM = 64;

const COLUMNS = [
    { key: "self", label: "Self", title: "Time in the function itself", numeric: true },
    {
        key: "total",
        label: "Total",
        title: "Time in the function and what it calls; each sample counts once",
        numeric: true,
    },
    { key: "selfCount", label: "Samples", title: "Samples in the function itself", numeric: true },
    { key: "name", label: "Function", title: "Name of the function" },
    { key: "module", label: "Module", title: "File that holds the code" },
];

class FunctionTable {
    constructor(choice, parent) {
        this.choice = choice;
        this.order = "self";
        this.falling = true;
        this.onlyMatches = true;
        this.element = parent.appendChild(
            make("section", {
                class: "view table",
                id: "view-table",
                role: "tabpanel",
                "aria-label": "Functions",
            }),
        );
        this.grid = this.element.appendChild(
            make("div", {
                class: "grid",
                role: "grid",
                "aria-label": "Functions by time",
                tabIndex: 0,
            }),
        );
        this.makeHead();
        this.scroller = this.grid.appendChild(
            make("div", { class: "scroller rows", role: "rowgroup" }),
        );
        this.spacer = this.scroller.appendChild(make("div", { class: "spacer" }));
        this.pool = [];
        this.fitter = new TextFitter(document.createElement("canvas").getContext("2d"));
        this.current = 0;
        this.scroller.addEventListener("scroll", () => this.show());
        this.grid.addEventListener("keydown", (event) => this.key(event));
        new ResizeObserver(() => this.show()).observe(this.scroller);
        choice.listen((what) => this.changed(what));
        this.stale = true;
    }
    makeHead() {
        const head = this.grid.appendChild(make("div", { class: "head", role: "row" }));
        this.heads = COLUMNS.map((column) => {
            const cell = head.appendChild(
                make("div", { role: "columnheader", class: column.numeric ? "figure" : "words" }),
            );
            cell.append(
                button(column.label, column.title + ". Click to sort.", () =>
                    this.sortBy(column.key),
                ),
            );
            return cell;
        });
    }
    sortBy(key) {
        this.falling = this.order === key ? !this.falling : key !== "name" && key !== "module";
        this.order = key;
        this.sort();
    }
    changed(what) {
        if (what === "view" && this.choice.view === "table")
            this.grid.focus({ preventScroll: true });
        if (what === "filter" || what === "draw" || what === "search") this.stale = true;
        if (this.choice.view !== "table" || what === "filter") return;
        if (this.stale) this.sort();
        else this.show();
    }
    text(row, key) {
        return key === "name"
            ? this.choice.profile.functions[row.f].name
            : moduleText(this.choice.profile, row.f);
    }
    sort() {
        this.stale = false;
        const { choice, order } = this,
            sign = this.falling ? -1 : 1,
            words = order === "name" || order === "module";
        this.rows = choice.weights.functions();
        if (choice.matches) this.rows = this.rows.filter((row) => choice.matches[row.f]);
        if (words)
            this.rows = this.rows
                .map((row) => [this.text(row, order), row])
                .sort((a, b) => (a[0] < b[0] ? -sign : a[0] > b[0] ? sign : 0))
                .map((pair) => pair[1]);
        else if (order !== "self" || sign > 0)
            this.rows = [...this.rows].sort(
                (a, b) => sign * (a[order] - b[order]) || b.self - a.self || b.total - a.total,
            );
        COLUMNS.forEach((column, i) =>
            this.heads[i].setAttribute(
                "aria-sort",
                column.key !== order ? "none" : this.falling ? "descending" : "ascending",
            ),
        );
        this.grid.setAttribute("aria-rowcount", this.rows.length + 1);
        this.setScales();
        this.current = Math.min(this.current, Math.max(0, this.rows.length - 1));
        this.show();
    }
    /* Bars end where the longest whisker of their column does. The longest bars are enough to ask. */
    setScales() {
        const { sums, whole } = this.choice.weights;
        const most = (part, squares) => {
            let largest = 0;
            for (const value of part) if (value > largest) largest = value;
            return part.reduce(
                (high, value, f) =>
                    value > largest * 0.5 ? Math.max(high, this.range(value, squares[f]).high) : high,
                largest / (whole || 1),
            );
        };
        this.mostSelf = Math.max(0.001, most(sums.self, sums.selfSquares));
        this.most = Math.max(0.001, most(sums.total, sums.totalSquares));
    }
    range(part, squares) {
        const w = this.choice.weights;
        return shareInterval(part, w.whole, squares, w.wholeSquares);
    }
    show() {
        if (this.choice.view !== "table") return;
        this.spacer.style.height = this.rows.length * TABLE_ROW + "px";
        const first = Math.max(0, Math.floor(this.scroller.scrollTop / TABLE_ROW) - 2);
        const last = Math.min(
            this.rows.length,
            first + Math.ceil(this.scroller.clientHeight / TABLE_ROW) + 4,
        );
        if (first < last && !this.pool[0]) this.pool.push(this.makeRow());
        if (this.pool[0]) {
            this.pool[0].hidden = false;
            this.nameRoom = this.pool[0].cells[3].clientWidth - SWATCH_ROOM;
            this.fitter.setFont("13px " + FONT);
        }
        for (let i = first; i < last; i++) {
            if (!this.pool[i - first]) this.pool.push(this.makeRow());
            this.fill(this.pool[i - first], i);
        }
        for (let i = last - first; i < this.pool.length; i++) this.pool[i].hidden = true;
    }
    makeRow() {
        const row = this.scroller.appendChild(make("div", { class: "row", role: "row" }));
        row.cells = COLUMNS.map((column) =>
            row.appendChild(
                make("div", { role: "gridcell", class: column.numeric ? "figure" : "words" }),
            ),
        );
        for (const i of [0, 1]) {
            const cell = row.cells[i],
                whisker = make("i", { class: "whisker" }),
                bar = make("i", { class: "measure" });
            cell.number = make("b");
            cell.share = make("span", { class: "share" });
            cell.bar = make("i", { class: "fill" });
            cell.whisker = whisker;
            bar.append(cell.bar, whisker);
            cell.append(cell.number, bar, cell.share);
        }
        row.swatch = make("i", { class: "swatch" });
        row.label = make("span", { dir: "ltr", class: "name" });
        row.mark = make("span", { class: "mark" });
        row.cells[3].append(row.swatch, row.label, row.mark);
        row.addEventListener("click", () => {
            this.current = row.index;
            this.choice.select(this.rows[row.index].f);
        });
        return row;
    }
    fill(row, index) {
        const { choice } = this,
            data = this.rows[index],
            f = data.f;
        row.hidden = false;
        row.index = index;
        row.style.transform = `translateY(${index * TABLE_ROW}px)`;
        row.setAttribute("aria-rowindex", index + 2);
        row.setAttribute("aria-selected", String(choice.selected === f));
        row.classList.toggle("current", index === this.current);
        this.measure(row.cells[0], data.self, data.selfSquares, this.mostSelf);
        this.measure(row.cells[1], data.total, data.totalSquares, this.most);
        row.cells[2].textContent = countText(data.selfCount);
        row.swatch.style.background = choice.colours.css[f];
        const recursive = Boolean(choice.shape.recursive[f]);
        setText(
            row.label,
            this.fitter.fitName(choice.name(f), this.nameRoom - (recursive ? MARK_ROOM : 0)) ||
                elideText(choice.name(f), 12),
        );
        row.label.title = elideText(choice.name(f), 600);
        setText(row.mark, recursive ? "recursive" : "");
        row.cells[4].textContent = elideText(moduleText(choice.profile, f), 40);
    }
    measure(cell, part, squares, most) {
        const w = this.choice.weights,
            share = w.whole ? part / w.whole : 0,
            range = this.range(part, squares);
        cell.number.textContent = percentText(share);
        cell.share.textContent = weightText(this.choice.profile, part);
        cell.bar.style.width = (share / most) * 100 + "%";
        cell.whisker.style.left = (range.low / most) * 100 + "%";
        cell.whisker.style.width =
            Math.min(1 - range.low / most, (range.high - range.low) / most) * 100 + "%";
        cell.title = `95 % interval: ${percentText(range.low)} to ${percentText(range.high)}`;
    }
    key(event) {
        if (event.altKey || event.ctrlKey || event.metaKey || event.target.tagName === "BUTTON")
            return;
        const page = Math.max(1, Math.floor(this.scroller.clientHeight / TABLE_ROW) - 1);
        const by = {
            ArrowDown: 1,
            ArrowUp: -1,
            PageDown: page,
            PageUp: -page,
            Home: -1e9,
            End: 1e9,
        }[event.key];
        if (by) this.current = Math.max(0, Math.min(this.rows.length - 1, this.current + by));
        else if (event.key === "Enter" && this.rows[this.current])
            this.choice.select(this.rows[this.current].f);
        else return;
        event.preventDefault();
        const top = this.current * TABLE_ROW,
            height = this.scroller.clientHeight;
        if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
        else if (top + TABLE_ROW > this.scroller.scrollTop + height)
            this.scroller.scrollTop = top + TABLE_ROW - height;
        this.show();
    }
}
