/* SPDX-License-Identifier: MIT */
/* Mapped files that become shorter while they are read: without this the command would end by SIGBUS.
 * The missing pages read as zero and the file is marked `cut`. Used by object_file.c alone; one owner,
 * not thread-safe. */
#ifndef LAPSE_OFFLINE_CUT_FILE_H
#define LAPSE_OFFLINE_CUT_FILE_H

#include "object_file.h"

/* The handler of SIGBUS is set with the first file and stays; what is none of ours goes on to what was
 * set before it. */
void lapse_cut_file_watch(struct lapse_object_file *file);
void lapse_cut_file_forget(struct lapse_object_file *file);

#endif
