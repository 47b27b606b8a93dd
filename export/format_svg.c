/* SPDX-License-Identifier: MIT */
/* A flame graph as a static picture for documents: one SVG without scripts or outside references,
 * names and figures as tooltips. Widths are shares of the weight; colours go by module (hue) and
 * name (lightness), the same in every picture. Root at the bottom; inverted: leaf at the top.
 * Called by `lapse export --to=svg`. Offline only. */
#include <errno.h>
#include <stdlib.h>

#include "captions.h"
#include "json_writer.h"
#include "view.h"

#define ROW 17u
#define MARGIN 12u
#define HEAD 56u
#define FOOT 28u
#define LEAST_THOUSANDTHS 300u /* narrower boxes are left out, in 1/1000 of a pixel */
#define LETTER_THOUSANDTHS 6700u /* advance of the 11 px monospaced font */

struct svg {
    struct lapse_profile *profile;
    const struct lapse_export_options *options;
    struct lapse_view *view;
    struct lapse_output output;
    uint64_t *lefts;   /* by view node: weight to the left of it */
    uint32_t width, rows;
    uint64_t least_ns; /* boxes below are left out */
};

static void put(struct svg *svg, const char *text)
{
    lapse_output_text(&svg->output, text);
}

/* One character for XML; what it has no way to write becomes U+FFFD. Returns its bytes. */
static size_t put_character(struct svg *svg, const char *text)
{
    size_t size = lapse_utf8_sequence(text);
    if (*text == '&')
        put(svg, "&amp;");
    else if (*text == '<')
        put(svg, "&lt;");
    else if (*text == '>')
        put(svg, "&gt;");
    else if (*text == '"')
        put(svg, "&quot;");
    else if (!size || (unsigned char)*text < 0x20 || *text == 0x7f ||
             (size == 3 && !memcmp(text, "\xef\xbf", 2) && (unsigned char)text[2] >= 0xbe))
        put(svg, "\xef\xbf\xbd");
    else
        lapse_output_bytes(&svg->output, text, size);
    return size ? size : 1;
}

static void put_escaped(struct svg *svg, const char *text)
{
    while (*text)
        text += put_character(svg, text);
}

static size_t characters(const char *text)
{
    size_t count = 0;
    for (size_t size; *text; text += size ? size : 1, count++)
        size = lapse_utf8_sequence(text);
    return count;
}

/* At most `room` characters: the middle of a longer name is left out, its end tells templates apart. */
static void put_elided(struct svg *svg, const char *text, size_t room)
{
    size_t count = characters(text), tail = room > 5 ? room / 3 : 0;
    for (size_t i = 0; *text; i++) {
        if (count <= room || i + tail + 1 < room || i >= count - tail) {
            text += put_character(svg, text);
            continue;
        }
        if (i + tail + 1 == room)
            put(svg, "\xe2\x80\xa6"); /* ellipsis */
        size_t size = lapse_utf8_sequence(text);
        text += size ? size : 1;
    }
}

static uint32_t hash_text(const char *text)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    while (*text)
        hash = (hash ^ (unsigned char)*text++) * 16777619u;
    return hash ^ hash >> 15;
}

/* Hues that the common kinds of colour blindness keep apart; lightness carries the rest. */
static void put_color(struct svg *svg, uint32_t function)
{
    static const uint16_t hues[] = { 28, 205, 48, 178, 12, 222, 60, 192 };
    const struct lapse_profile_function *f = &svg->profile->functions[function];
    uint32_t hue = 36, saturation = 70, lightness = 62 + hash_text(f->name) % 16;
    if (f->flags & LAPSE_FUNCTION_PSEUDO)
        saturation = 0;
    else if (f->module != LAPSE_NONE)
        hue = hues[hash_text(lapse_module_name(&svg->profile->modules[f->module])) % 8];
    put(svg, "hsl(");
    lapse_output_uint(&svg->output, hue);
    lapse_output_char(&svg->output, ',');
    lapse_output_uint(&svg->output, saturation);
    put(svg, "%,");
    lapse_output_uint(&svg->output, lightness);
    put(svg, "%)");
}

/* Thousandths of pixels for a weight. */
static uint64_t scaled(const struct svg *svg, uint64_t weight)
{
    double share = (double)weight / (double)(svg->view->weight_ns ? svg->view->weight_ns : 1);
    return (uint64_t)(share * (svg->width - 2 * MARGIN) * 1000 + 0.5);
}

static void put_number(struct svg *svg, const char *before, uint64_t thousandths)
{
    put(svg, before);
    lapse_output_thousandths(&svg->output, thousandths);
}

static void put_figures(struct svg *svg, const struct lapse_view_node *node)
{
    uint64_t whole = svg->view->weight_ns ? svg->view->weight_ns : 1;
    char text[128];
    if (svg->profile->weight_unit == LAPSE_WEIGHT_NS)
        snprintf(text, sizeof text, "%llu samples, %.3f ms, %.2f%%",
                 (unsigned long long)node->total_count, (double)node->total_ns / 1e6,
                 100.0 * (double)node->total_ns / (double)whole);
    else
        snprintf(text, sizeof text, "%llu, %.2f%%", (unsigned long long)node->total_ns,
                 100.0 * (double)node->total_ns / (double)whole);
    put(svg, text);
}

static uint32_t box_top(const struct svg *svg, uint32_t depth)
{
    return svg->options->inverted ? HEAD + depth * ROW : HEAD + (svg->rows - 1 - depth) * ROW;
}

static void put_box(struct svg *svg, uint32_t index)
{
    const struct lapse_view_node *node = &svg->view->nodes[index];
    uint32_t function = index ? svg->view->functions[node->function].function : 0;
    const char *name = index ? svg->profile->functions[function].name : "all";
    uint64_t left = scaled(svg, svg->lefts[index]),
             right = scaled(svg, svg->lefts[index] + node->total_ns);
    uint64_t top = box_top(svg, node->depth);
    put(svg, "<g><title>");
    put_escaped(svg, name);
    put(svg, " (");
    put_figures(svg, node);
    put_number(svg, ")</title><rect x=\"", MARGIN * 1000 + left);
    put_number(svg, "\" y=\"", top * 1000);
    put_number(svg, "\" width=\"", right - left);
    put_number(svg, "\" height=\"", (ROW - 1) * 1000);
    put(svg, "\" fill=\"");
    if (index)
        put_color(svg, function);
    else
        put(svg, "hsl(0,0%,80%)");
    put(svg, "\"/>");
    size_t room = right - left > 6000 ? (size_t)((right - left - 6000) / LETTER_THOUSANDTHS) : 0;
    if (room >= 3) {
        put_number(svg, "<text x=\"", MARGIN * 1000 + left + 3000);
        put_number(svg, "\" y=\"", (top + 12) * 1000);
        put(svg, "\">");
        put_elided(svg, name, room);
        put(svg, "</text>");
    }
    put(svg, "</g>\n");
}

/* Place children side by side, widest first as the view orders them; find how deep it goes. */
static void arrange(struct svg *svg)
{
    const struct lapse_view_node *nodes = svg->view->nodes;
    svg->rows = 1;
    for (uint32_t i = 0; i < svg->view->node_count; i++) {
        uint64_t left = svg->lefts[i];
        if (nodes[i].total_ns >= svg->least_ns && nodes[i].depth + 1 > svg->rows)
            svg->rows = nodes[i].depth + 1;
        for (uint32_t child = nodes[i].first_child; child != LAPSE_NONE;
             child = nodes[child].next_sibling) {
            svg->lefts[child] = left;
            left += nodes[child].total_ns;
        }
    }
}

static void put_head(struct svg *svg)
{
    uint32_t height = HEAD + svg->rows * ROW + FOOT;
    char title[512], text[160];
    lapse_caption_title(title, sizeof title, svg->profile, svg->options);
    put(svg,
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" ");
    snprintf(text, sizeof text, "width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" ", svg->width,
             height, svg->width, height);
    put(svg, text);
    put(svg, "font-family=\"ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace\" "
             "font-size=\"11\" role=\"img\">\n<title>");
    put_escaped(svg, title);
    put(svg, "</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
             "<text x=\"12\" y=\"24\" font-size=\"16\" font-weight=\"bold\">");
    put_elided(svg, title, (svg->width - 2 * MARGIN) / 10);
    put(svg, "</text>\n<text x=\"12\" y=\"44\" fill=\"#555\">");
    put_figures(svg, &svg->view->nodes[0]);
    put(svg, svg->options->inverted ? ", innermost functions first</text>\n" : "</text>\n");
}

static void put_loss(void *context, const char *name, uint64_t value)
{
    struct svg *svg = context;
    put(svg, " \xc2\xb7 ");
    put(svg, name);
    put(svg, " ");
    lapse_output_uint(&svg->output, value);
}

static int write_all(struct svg *svg)
{
    char text[96];
    arrange(svg);
    put_head(svg);
    for (uint32_t i = 0; i < svg->view->node_count; i++)
        if (svg->view->nodes[i].total_ns >= svg->least_ns)
            put_box(svg, i);
    snprintf(text, sizeof text, "<text x=\"12\" y=\"%u\" fill=\"#555\">lapse " LAPSE_VERSION,
             HEAD + svg->rows * ROW + 18);
    put(svg, text);
    lapse_each_loss(svg->profile, svg, put_loss);
    put(svg, "</text>\n</svg>\n");
    return lapse_output_finish(&svg->output);
}

static int prepare(struct svg *svg, FILE *to)
{
    const struct lapse_export_options *options = svg->options;
    struct lapse_view_options chosen = {
        .inverted = options->inverted, .group_by_thread = options->threads,
        .group_by_process = options->processes,
    };
    int error = lapse_output_init(&svg->output, to);
    if (!error)
        error = lapse_view_create(&svg->view, svg->profile, &chosen);
    if (error)
        return error;
    svg->width = options->width >= 200 ? options->width : 1200;
    svg->lefts = calloc(svg->view->node_count + 1u, sizeof *svg->lefts);
    double least =
        (double)svg->view->weight_ns * LEAST_THOUSANDTHS / 1000 / (svg->width - 2 * MARGIN);
    if (options->minimum > 0)
        least = (double)svg->view->weight_ns * options->minimum;
    svg->least_ns = least > 1 ? (uint64_t)least : 1;
    return svg->lefts ? 0 : -ENOMEM;
}

int lapse_write_svg(struct lapse_profile *profile, FILE *to,
                    const struct lapse_export_options *options, char *error, size_t error_size)
{
    struct svg svg = { .profile = profile, .options = options };
    int result = prepare(&svg, to);
    if (!result)
        result = write_all(&svg);
    if (result)
        lapse_export_failed(error, error_size, "svg", result);
    lapse_output_fini(&svg.output);
    if (svg.view)
        lapse_view_destroy(svg.view);
    free(svg.lefts);
    return result;
}
