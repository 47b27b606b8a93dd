/* SPDX-License-Identifier: MIT */
/* lapse diff --html: a differential flame graph as one page that loads nothing. Width is the time in NEW,
 * colour the change of this very call path with what it calls, grey where the 95 % interval of that path
 * includes zero or too few samples were taken there; pale where it does not, but would not stand after the
 * correction for the number of paths. The data is JSON in a script element, in which lapse_json_string leaves nothing that
 * could end it; names reach the page as text only. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "comparison_report.h"
#include "json_writer.h"

static const char page_head[] =
    "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>lapse diff</title>\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n"
    "<style>\n"
    "body{margin:1em;font:14px sans-serif;background:#fff;color:#222}\n"
    "#graph{position:relative;border:1px solid #ccc;overflow:hidden}\n"
    "#graph div{position:absolute;height:17px;overflow:hidden;white-space:nowrap;font:11px/17px monospace;\n"
    "border-right:1px solid #fff;cursor:pointer;color:#222;box-sizing:border-box;padding-left:2px}\n"
    "#said{min-height:3em;white-space:pre-wrap;font-family:monospace}\n"
    "b{display:inline-block;width:1em;height:1em;vertical-align:-2px}\n"
    "</style></head><body>\n"
    "<p>Width: time a run in NEW. <b style=\"background:hsl(5 75% 65%)\"></b> slower\n"
    "<b style=\"background:hsl(215 75% 65%)\"></b> faster <b style=\"background:#ddd\"></b> no change shown\n"
    "(the 95&nbsp;% interval of this call path, with what it calls, includes zero). Pale: it does not, but one in\n"
    "many paths looks like that by chance. Strength: the change. Click a frame to enlarge it, the lowest row to go back.</p>\n"
    "<p id=\"said\"></p><div id=\"graph\"></div>\n<script>\nconst data = ";

/* Nodes: parent, name, base, new, low and high of the relative interval (null: unbounded), and what is shown:
 * 0 nothing, 1 by its own interval, 2 after the correction as well. */
static const char page_script[] =
    ";\nconst nodes = data.nodes.map(([parent, name, base, now, low, high, shown]) =>\n"
    "    ({ parent, name, base, now, low, high, shown, children: [], depth: 0 }));\n"
    "let deepest = 0;\n"
    "nodes.forEach((node, i) => {\n"
    "    if (!i) return;\n"
    "    node.depth = nodes[node.parent].depth + 1;\n"
    "    if (node.now > 0) nodes[node.parent].children.push(node);\n"
    "    if (node.now > 0) deepest = Math.max(deepest, node.depth);\n"
    "});\n"
    "const graph = document.getElementById('graph'), said = document.getElementById('said');\n"
    "const unit = ns => data.counts ? String(ns) : (ns / 1e6).toFixed(2) + ' ms';\n"
    "const percent = x => x === null ? 'without bound' : (100 * x).toFixed(1) + ' %';\n"
    "function colour(node) {\n"
    "    if (!node.shown) return '#ddd';\n"
    "    const change = node.base > 0 ? node.now / node.base - 1 : 1;\n"
    "    const strength = node.shown > 1 ? Math.min(1, 0.2 + Math.abs(change) * 2) : 0;\n"
    "    return `hsl(${change > 0 ? 5 : 215} 75% ${88 - 30 * strength}%)`;\n"
    "}\n"
    "function tell(node) {\n"
    "    const change = node.base > 0 ? percent(node.now / node.base - 1) : 'new';\n"
    "    const shown = ['no change shown', 'not after correction for the number of paths', 'shown'][node.shown];\n"
    "    said.textContent = `${node.name}\\n${unit(node.base)} to ${unit(node.now)} a run: ${change}, 95 % interval ` +\n"
    "        `${percent(node.low)} to ${percent(node.high)} (${shown})`;\n"
    "}\n"
    "function put(node, left, width) {\n"
    "    if (width < 0.05) return;\n"
    "    const box = document.createElement('div');\n"
    "    box.textContent = node.name;\n"
    "    box.style.cssText = `left:${left}%;width:${width}%;bottom:${18 * node.depth}px;background:${colour(node)}`;\n"
    "    box.onclick = () => draw(node);\n"
    "    box.onmouseenter = () => tell(node);\n"
    "    graph.append(box);\n"
    "    let at = left;\n"
    "    for (const child of node.children.sort((a, b) => a.name < b.name ? -1 : 1)) {\n"
    "        const share = node.now > 0 ? width * Math.min(1, child.now / node.now) : 0;\n"
    "        put(child, at, share);\n"
    "        at += share;\n"
    "    }\n"
    "}\n"
    "function draw(from) {\n"
    "    graph.replaceChildren();\n"
    "    graph.style.height = `${18 * (deepest + 1)}px`;\n"
    "    put(from, 0, 100);\n"
    "    for (let node = from; node !== nodes[0];) {\n"
    "        node = nodes[node.parent];\n"
    "        const { children } = node;\n"
    "        node.children = [];\n"
    "        put(node, 0, 100);\n"
    "        node.children = children;\n"
    "    }\n"
    "}\n"
    "draw(nodes[0]);\ntell(nodes[0]);\n</script></body></html>\n";

static void put_number(struct lapse_output *to, double value)
{
    char text[40];
    if (isfinite(value))
        snprintf(text, sizeof text, "%.6g", value);
    lapse_output_text(to, isfinite(value) ? text : "null");
}

/* What the page may show of a path: see page_script. */
static unsigned shown(const struct lapse_change *change)
{
    bool is_apart = change->difference_interval.low > 0 || change->difference_interval.high < 0;
    if (change->verdict == LAPSE_TOO_FEW || !is_apart)
        return 0;
    return change->verdict == LAPSE_SAME || change->verdict == LAPSE_SHARE_ONLY ? 1 : 2;
}

static void put_node(struct lapse_output *to, const struct lapse_comparison_node *node,
                     const struct lapse_change *change)
{
    lapse_output_char(to, '[');
    lapse_output_uint(to, node->parent);
    lapse_output_char(to, ',');
    lapse_json_string(to, node->name && *node->name ? node->name : "all");
    const double numbers[] = { node->base_ns, node->new_ns, change->relative_interval.low,
                               change->relative_interval.high };
    for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        lapse_output_char(to, ',');
        put_number(to, numbers[i]);
    }
    lapse_output_char(to, ',');
    lapse_output_uint(to, shown(change));
    lapse_output_text(to, "],\n");
}

void lapse_report_comparison_html(struct lapse_output *to, const struct lapse_comparison_report *report)
{
    const struct lapse_comparison *c = report->comparison;
    lapse_output_text(to, page_head);
    lapse_output_text(to, c->counts ? "{\"counts\":true,\"nodes\":[\n" : "{\"counts\":false,\"nodes\":[\n");
    for (uint32_t i = 0; i < c->node_count; i++)
        put_node(to, &c->nodes[i], &c->calls[i]);
    lapse_output_text(to, "]}");
    lapse_output_text(to, page_script);
}
