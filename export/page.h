/* SPDX-License-Identifier: MIT */
/* lapse's own page without its data: what stands before and after it. The bytes are made from
 * export/page at build time; format_html.c writes them. */
#ifndef LAPSE_EXPORT_PAGE_H
#define LAPSE_EXPORT_PAGE_H

#include <stddef.h>

extern const unsigned char lapse_page_head[], lapse_page_tail[];
extern const size_t lapse_page_head_size, lapse_page_tail_size;

#endif
