/* SPDX-License-Identifier: MIT */
/* What the parts of the profile's builder share: profile.c reads inputs and counts, profile_stacks.c
 * turns recorded stacks into nodes and leaves, profile_names.c names addresses, profile_notes.c writes
 * the remarks. No one else includes this. */
#ifndef LAPSE_EXPORT_PROFILE_SOURCE_H
#define LAPSE_EXPORT_PROFILE_SOURCE_H

#include "index.h"
#include "profile.h"

/* A look-up that was done, and how long it holds. */
struct lapse_memo { uint32_t value; struct lapse_validity validity; };

struct lapse_leaf_memo { uint32_t node; uint64_t pc; struct lapse_memo memo; };
/* An answer that always holds, where one look finds it; node 0: free. Others may have taken its place. */
struct lapse_near_leaf { uint64_t pc; uint32_t node, leaf; };

/* One position of a chain of inlined functions. */
struct lapse_frame_position { uint32_t function, line; };

struct lapse_frames_memo { uint32_t first, count; struct lapse_validity validity; };

/* A session of an input, which is a process of the profile with the same number. */
struct lapse_session_link {
    const struct lapse_session *session;
    uint32_t thread_base; /* the n-th thread of the session is thread_base + n of the profile */
    bool has_lines;       /* there may be something to know about single pcs */
    uint32_t *modules;    /* module of the session -> module of the profile */
    struct lapse_memo *nodes; /* node of the session's tree -> node of the profile */
    struct lapse_index leaf_index; /* (node, pc) -> leaves */
    struct lapse_leaf_memo *leaves;
    uint32_t leaf_count;
    struct lapse_near_leaf *near_leaves; /* by hash, in front of leaf_index */
    uint32_t near_count;                 /* 0 or a power of two */
    struct lapse_map function_map; /* address -> functions */
    struct lapse_memo *functions;
    uint32_t function_count;
    struct lapse_map frame_map;    /* pc and whether it is a return address -> frames */
    struct lapse_frames_memo *frames;
    uint32_t frame_count;
    struct lapse_map threads;      /* id -> index in the profile */
    struct lapse_map label_sets;   /* id -> index in the profile */
};

struct lapse_profile_source {
    struct lapse_profile_options options;
    struct lapse_strings strings, label_texts;
    struct lapse_map label_sets; /* number of a label text -> label set */
    struct lapse_index functions, nodes, leaves, modules;
    struct lapse_frame_position *positions; /* all chains, one after the other */
    uint32_t position_count;
    struct lapse_recording **recordings;
    uint32_t *first_link; /* of each recording */
    uint32_t recording_count;
    struct lapse_session_link *links;
    uint32_t link_count;
    uint32_t folded_count; /* inputs that are folded text */
};

/* profile_names.c. Indexes, or LAPSE_NONE without memory. `validity` is narrowed. */
uint32_t lapse_profile_function(struct lapse_profile *profile, const char *name,
                                const char *system_name, const char *file, uint32_t line,
                                uint32_t module, uint32_t flags);
uint32_t lapse_profile_function_at(struct lapse_profile *profile, struct lapse_session_link *link,
                                   uint64_t address, uint64_t time_ns,
                                   struct lapse_validity *validity);
/* The chain at a pc, outermost first; its first entry has only a line that counts. Returns a number
 * of link->frames. */
uint32_t lapse_profile_frames_at(struct lapse_profile *profile, struct lapse_session_link *link,
                                 uint64_t pc, bool is_return, uint64_t time_ns,
                                 struct lapse_validity *validity);
/* The pc as if its module lay where the profile has it. */
uint64_t lapse_profile_pc(const struct lapse_profile *profile, const struct lapse_session_link *link,
                          uint64_t pc, uint64_t time_ns, struct lapse_validity *validity);
const char *lapse_profile_last_part(const char *path);
int lapse_profile_add_modules(struct lapse_profile *profile, struct lapse_session_link *link);

/* profile_stacks.c. */
uint32_t lapse_profile_child(struct lapse_profile *profile, const struct lapse_profile_node *node);
uint32_t lapse_profile_leaf(struct lapse_profile *profile, uint32_t node, uint64_t pc, uint32_t line);
/* Told some time before the same is asked of lapse_profile_leaf_at. */
void lapse_profile_leaf_ahead(const struct lapse_profile *profile, const struct lapse_session_link *link,
                              uint32_t node, uint64_t pc);
uint32_t lapse_profile_leaf_at(struct lapse_profile *profile, struct lapse_session_link *link,
                               uint32_t node, uint64_t pc, uint64_t time_ns);

/* profile_notes.c. */
int lapse_profile_add_notes(struct lapse_profile *profile);

/* profile_folded.c: add the stacks of folded text. The descriptor stays the caller's. */
int lapse_profile_read_folded(struct lapse_profile *profile, int fd, const char *name, char *error,
                              size_t error_size);

#endif
