/* SPDX-License-Identifier: MIT */
/* The reader: what was written is read; every prefix, every damaged byte is survived and counted. */
#include "recording.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "make_recording.h"

static char path[64], error[256];

static void fresh_path(void)
{
    snprintf(path, sizeof path, "/tmp/lapse-unit-recording-%d", (int)getpid());
    unlink(path);
}

static void remove_path(void)
{
    unlink(path);
}

TestSuite(recording, .init = fresh_path, .fini = remove_path);

struct sum { uint64_t count, weight_ns, last_ns; uint32_t last_node; };

static int add(void *context, const struct lapse_recorded_sample *sample)
{
    struct sum *sum = context;
    sum->count++;
    sum->weight_ns += sample->weight_ns;
    sum->last_ns = sample->time_ns;
    sum->last_node = sample->node;
    return 0;
}

static struct sum sum_of(struct lapse_recording *recording)
{
    struct sum sum = { 0 };
    cr_assert_eq(lapse_recording_each_sample(recording, add, &sum), 0);
    return sum;
}

static struct lapse_recording *must_open(void)
{
    struct lapse_recording *recording = NULL;
    cr_assert_eq(lapse_recording_open(&recording, path, error, sizeof error), 0, "%s", error);
    return recording;
}

static uint8_t *file_bytes(size_t *size)
{
    struct stat status;
    int fd = open(path, O_RDONLY);
    cr_assert(fd >= 0 && !fstat(fd, &status));
    uint8_t *bytes = malloc((size_t)status.st_size + 1);
    *size = (size_t)status.st_size;
    cr_assert_eq(read(fd, bytes, *size), status.st_size);
    close(fd);
    return bytes;
}

static void put_bytes(const uint8_t *bytes, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, bytes, size), (ssize_t)size);
    close(fd);
}

Test(recording, gives_back_what_was_written)
{
    static const struct lapse_test_sample samples[] = {
        { 2000, 2, 0x1010, 5, 1, 0 }, { 3000, 1, 0x1004, 10, 0, 0 }, { 3500, 3, 0x900, 5, 0, 0x7f00 },
    };
    struct lapse_test_spool spool;
    lapse_test_spool_open(&spool, path);
    lapse_test_spool_header(&spool, 77, "/bin/x", 5);
    lapse_test_spool_module(&spool, 1, "/bin/x", 0x1000, 0x2000, 0x1000, 0, 0);
    lapse_test_spool_thread(&spool, 1, 78, "");
    lapse_test_spool_thread(&spool, 1, 78, "named later");
    cr_assert_eq(lapse_test_spool_node(&spool, 0, 0, 0x1000, 0), 1);
    lapse_test_spool_node(&spool, 1, 0x1008, 0x1010, 1);
    lapse_test_spool_node(&spool, 0, 0, 1, 0);
    lapse_test_spool_labels(&spool, 1, "k", "v");
    lapse_test_spool_samples(&spool, 1, samples, 3);
    lapse_test_spool_symbol(&spool, 0x1000, 16, "main", 0, 0);
    lapse_test_spool_end(&spool, 4, 9, 5000, 15, 5);
    lapse_test_spool_close(&spool);

    struct lapse_recording *recording = must_open();
    cr_assert_eq(recording->session_count, 1);
    const struct lapse_session *session = recording->sessions;
    cr_expect(session->pid == 77 && session->period_ns == 5 && !strcmp(session->program, "/bin/x"));
    cr_expect(session->argument_count == 2 && !strcmp(session->arguments[1], "two words"));
    cr_expect(session->thread_count == 1 && !strcmp(session->threads[0].name, "named later"));
    cr_expect(session->symbol_count == 1 && !strcmp(session->symbols[0].name, "main"));
    cr_expect(session->ended && session->end_reason == LAPSE_END_SIGNAL && session->end_signal == 9);
    cr_expect(session->user_ns == 15 && session->system_ns == 5);
    cr_expect(session->sample_count == 3 && session->first_sample_ns == 2000 &&
              session->last_sample_ns == 3500);
    uint32_t count;
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(session->tree, &count);
    cr_assert_eq(count, 4);
    cr_expect(nodes[2].parent == 1 && nodes[2].call_site == 0x1008 && nodes[2].function == 0x1010 &&
              nodes[2].flags == 1);
    struct sum sum = sum_of(recording);
    cr_expect(sum.count == 3 && sum.weight_ns == 20 && sum.last_ns == 3500 && sum.last_node == 3);
    cr_expect_eq(sum_of(recording).count, 3, "streaming again gives the same");
    lapse_recording_close(recording);
}

static void make(uint32_t processes, bool raw)
{
    struct lapse_test_recording numbers = {
        .processes = processes, .stacks = 12, .samples = 40, .depth = 6, .labels = true, .spans = true,
        .lines = true, .cut = true, .late = true, .raw = raw,
    };
    lapse_test_make_recording(path, &numbers);
}

Test(recording, any_prefix_is_read)
{
    size_t size;
    uint64_t before = 0;
    make(2, true);
    uint8_t *bytes = file_bytes(&size);
    for (size_t cut = 0; cut <= size; cut++) {
        struct lapse_recording *recording;
        put_bytes(bytes, cut);
        int result = lapse_recording_open(&recording, path, error, sizeof error);
        if (result) {
            cr_assert_eq(result, -EBADMSG, "at %zu: %s", cut, error);
            cr_assert_eq(before, 0, "at %zu a longer prefix holds less", cut);
            continue;
        }
        uint64_t count = sum_of(recording).count;
        cr_assert_geq(count, before, "at %zu a longer prefix holds less", cut);
        cr_assert_eq(recording->damage.bad_chunks + recording->damage.bad_references, 0);
        before = count;
        lapse_recording_close(recording);
    }
    cr_expect_eq(before, 2 * (40 + 6));
    free(bytes);
}

Test(recording, a_changed_byte_is_noticed_and_costs_its_chunk_only)
{
    size_t size;
    make(2, false);
    uint8_t *bytes = file_bytes(&size);
    for (size_t at = 0; at < size; at += 7) {
        struct lapse_recording *recording;
        bytes[at] ^= (uint8_t)(1 << at % 8);
        put_bytes(bytes, size);
        bytes[at] ^= (uint8_t)(1 << at % 8);
        cr_assert_eq(lapse_recording_open(&recording, path, error, sizeof error), 0, "at %zu: %s", at, error);
        cr_assert(recording->damage.bad_chunks || recording->damage.skipped_bytes ||
                  recording->damage.cut_bytes, "at %zu nothing was noticed", at);
        /* Each process is one chunk here. */
        cr_assert_eq(sum_of(recording).count, 40, "at %zu", at);
        lapse_recording_close(recording);
    }
    free(bytes);
}

/* Two chunks of nodes, of which the first is lost: with Chunk.first_node the second is in place. */
static struct lapse_recording *with_lost_chunk(bool anonymous)
{
    struct lapse_test_spool spool;
    size_t size;
    const struct lapse_test_sample lost = { 2000, 1, 0, 5, 0, 0 }, kept = { 3000, 2, 0, 7, 0, 0 };
    lapse_test_spool_open(&spool, path);
    spool.anonymous = anonymous;
    lapse_test_spool_header(&spool, 1, "/bin/x", 5);
    lapse_test_spool_commit(&spool);
    uint8_t *bytes = file_bytes(&size);
    size_t lost_at = size + LAPSE_CHUNK_HEAD + 3;
    free(bytes);
    lapse_test_spool_node(&spool, 0, 0, 0x1000, 0);
    lapse_test_spool_commit(&spool);
    lapse_test_spool_node(&spool, 0, 0, 0x2000, 0);
    lapse_test_spool_samples(&spool, 1, &lost, 1);
    lapse_test_spool_samples(&spool, 1, &kept, 1);
    lapse_test_spool_close(&spool);
    bytes = file_bytes(&size);
    bytes[lost_at] ^= 1;
    put_bytes(bytes, size);
    free(bytes);
    return must_open();
}

Test(recording, node_ids_go_on_behind_a_lost_chunk)
{
    struct lapse_recording *recording = with_lost_chunk(false);
    uint32_t count;
    struct sum sum = sum_of(recording);
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(recording->sessions[0].tree, &count);
    cr_expect_eq(sum.weight_ns, 7);
    cr_expect_eq(nodes[sum.last_node].function, 0x2000);
    cr_expect(recording->damage.bad_chunks == 1 && recording->damage.bad_references == 1);
    lapse_recording_close(recording);
}

Test(recording, without_ids_nothing_is_guessed_behind_a_lost_chunk)
{
    struct lapse_recording *recording = with_lost_chunk(true);
    cr_expect_eq(sum_of(recording).count, 0);
    cr_expect_eq(recording->damage.bad_references, 3); /* one node, two samples */
    lapse_recording_close(recording);
}

Test(recording, a_session_without_its_head_is_not_taken_for_another)
{
    struct lapse_test_spool spool;
    const struct lapse_test_sample sample = { 2000, 1, 0, 5, 0, 0 };
    uint8_t *bytes;
    size_t size, second;
    lapse_test_spool_open(&spool, path);
    for (uint32_t pid = 1; pid <= 2; pid++) {
        lapse_test_spool_header(&spool, pid, "/bin/x", 5);
        lapse_test_spool_commit(&spool);
        bytes = file_bytes(&size);
        second = size;
        free(bytes);
        lapse_test_spool_node(&spool, 0, 0, pid * 0x1000, 0);
        lapse_test_spool_samples(&spool, 1, &sample, 1);
    }
    lapse_test_spool_close(&spool);
    bytes = file_bytes(&size);
    bytes[second - 4] ^= 1; /* in the second header's chunk */
    put_bytes(bytes, size);
    free(bytes);
    struct lapse_recording *recording = must_open();
    cr_assert_eq(recording->session_count, 2);
    cr_expect(recording->sessions[0].sample_count == 1 && recording->sessions[1].sample_count == 1);
    cr_expect(recording->sessions[1].pid == 0 && recording->sessions[1].note_count == 1);
    lapse_recording_close(recording);
}

Test(recording, a_cut_spool_in_front_of_another_file)
{
    size_t first, both;
    make(1, false);
    uint8_t *bytes = file_bytes(&first);
    put_bytes(bytes, first - 100);
    make(1, false); /* appends */
    free(bytes);
    bytes = file_bytes(&both);
    struct lapse_recording *recording = must_open();
    cr_expect(recording->session_count == 1 && sum_of(recording).count == 40);
    cr_expect_eq(recording->damage.bad_chunks + (recording->damage.cut_bytes > 0), 1);
    lapse_recording_close(recording);
    free(bytes);
}

Test(recording, garbage_between_chunks_is_stepped_over)
{
    size_t size;
    make(1, false);
    uint8_t *bytes = file_bytes(&size);
    uint8_t *twice = calloc(2, size + 5000);
    memcpy(twice, bytes, size);
    memset(twice + size, 'L', 4999);
    memcpy(twice + size + 4999, bytes, size);
    put_bytes(twice, 2 * size + 4999);
    struct lapse_recording *recording = must_open();
    cr_expect_eq(recording->session_count, 2);
    cr_expect_eq(recording->damage.skipped_bytes, 4999);
    lapse_recording_close(recording);
    free(bytes);
    free(twice);
}

Test(recording, what_is_no_recording_is_refused)
{
    struct lapse_recording *recording;
    put_bytes((const uint8_t *)"main;work 12\n", 13);
    cr_expect_eq(lapse_recording_open(&recording, path, error, sizeof error), -EBADMSG);
    cr_expect_str_eq(strrchr(error, ':'), ": not a lapse recording");
    put_bytes(NULL, 0);
    cr_expect_eq(lapse_recording_open(&recording, path, error, sizeof error), -EBADMSG);
    cr_expect_str_eq(strrchr(error, ':'), ": the file is empty");
    cr_expect_eq(lapse_recording_open(&recording, "/nonexistent/x", error, sizeof error), -ENOENT);
    cr_expect_eq(lapse_recording_open(&recording, "/", error, sizeof error), -EISDIR);
}

Test(recording, symbols_and_modules_depend_on_time)
{
    struct lapse_test_spool spool;
    struct lapse_validity validity = { 0, UINT64_MAX };
    lapse_test_spool_open(&spool, path);
    lapse_test_spool_header(&spool, 1, "/bin/x", 5);
    lapse_test_spool_module(&spool, 1, "/lib/old.so", 0x1000, 0x3000, 0, 100, 500);
    lapse_test_spool_module(&spool, 2, "/lib/new.so", 0x2000, 0x4000, 0, 700, 0);
    lapse_test_spool_symbol(&spool, 0x9000, 64, "first", 10, 200);
    lapse_test_spool_symbol(&spool, 0x9000, 64, "second", 200, 300);
    lapse_test_spool_symbol(&spool, 0x9010, 8, "inner", 0, 0);
    lapse_test_spool_close(&spool);
    struct lapse_recording *recording = must_open();
    const struct lapse_session *session = recording->sessions;
    /* Before it was noticed a module was there already; after it went it is not. */
    cr_expect_str_eq(lapse_session_module(session, 0x2800, 50)->path, "/lib/old.so");
    cr_expect_str_eq(lapse_session_module(session, 0x2800, 600)->path, "/lib/new.so");
    cr_expect_null(lapse_session_module(session, 0x1800, 600));
    lapse_session_module_while(session, 0x2800, 400, &validity);
    cr_expect(validity.from_ns == 0 && validity.until_ns == 500);
    cr_expect_str_eq(lapse_session_symbol(session, 0x9020, 150, NULL)->name, "first");
    cr_expect_str_eq(lapse_session_symbol(session, 0x9020, 200, NULL)->name, "second");
    cr_expect_str_eq(lapse_session_symbol(session, 0x9012, 200, NULL)->name, "inner");
    cr_expect_null(lapse_session_symbol(session, 0x9020, 300, NULL));
    cr_expect_null(lapse_session_symbol(session, 0x9040, 150, NULL));
    validity = (struct lapse_validity){ 0, UINT64_MAX };
    lapse_session_symbol(session, 0x9020, 250, &validity);
    cr_expect(validity.from_ns == 200 && validity.until_ns == 300);
    lapse_recording_close(recording);
}

Test(recording, raw_stacks_join_the_tree)
{
    struct lapse_test_spool spool;
    const uint64_t pcs[] = { 0x9004, 0x1008, 0x5555 };
    const uint64_t cut[] = { 0x9004 };
    lapse_test_spool_open(&spool, path);
    lapse_test_spool_header(&spool, 1, "/bin/x", 5);
    lapse_test_spool_node(&spool, 0, 0, 0x5000, 0);
    lapse_test_spool_node(&spool, 1, 0x5555, 0x1000, 0);
    lapse_test_spool_node(&spool, 2, 0x1008, 0x9000, 0);
    lapse_test_spool_raw(&spool, 1, 100, 5, pcs, 3, 0);
    lapse_test_spool_raw(&spool, 1, 200, 5, cut, 1, 1);
    lapse_test_spool_symbol(&spool, 0x9000, 64, "leaf", 0, 0);
    lapse_test_spool_close(&spool);
    struct lapse_recording *recording = must_open();
    uint32_t count;
    struct sum sum = sum_of(recording);
    const struct lapse_call_node *nodes = lapse_call_tree_nodes(recording->sessions[0].tree, &count);
    cr_expect_eq(sum.count, 2);
    /* 0x5555 and 0x1008 are known call sites and 0x9004 is in a symbol, so the first raw stack is the
     * interned one down to 0x1000; its outermost frame has no call site either. */
    cr_expect_eq(count, 6);
    cr_expect(nodes[sum.last_node].function == 0x9000 && nodes[nodes[sum.last_node].parent].function == 1);
    lapse_recording_close(recording);
}

Test(recording, standard_input_may_be_a_pipe)
{
    int ends[2];
    size_t size;
    make(1, false);
    uint8_t *bytes = file_bytes(&size);
    cr_assert_eq(pipe(ends), 0);
    cr_assert_lt(size, 65536); /* fits the pipe, so no second process is needed */
    cr_assert_eq(write(ends[1], bytes, size), (ssize_t)size);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    struct lapse_recording *recording;
    cr_assert_eq(lapse_recording_open(&recording, "-", error, sizeof error), 0, "%s", error);
    cr_expect_eq(sum_of(recording).count, 40);
    lapse_recording_close(recording);
    free(bytes);
}
