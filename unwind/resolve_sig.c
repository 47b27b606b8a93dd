/* SPDX-License-Identifier: MIT */
/* Asks libunwind how to unwind one address, once per address and process.
 *
 * libunwind steps one frame of a remote process that does not exist: its registers are tokens, reads
 * at token addresses give further tokens, and reads elsewhere (unwind tables) give this process's
 * memory. From the tokens that come out the rule is read off: the new stack pointer is "register
 * plus offset", or "what was read there plus offset", and the new RBP was read at such an address.
 *
 * Callers: the walker inside the handler (cold path), tests. Context: every signal masked as far as
 * the C library lets one, up to 6 KiB of stack. libunwind allocates from pools of its own, mapped by
 * need, and takes its own mutexes: hence the gate, an atomic flag that nobody waits for, so that a
 * handler never finds one of them taken. Cancellation is disabled inside, since glibc's signal for
 * it cannot be masked and a cancelled thread would leave a mutex taken. */
#include "resolve.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "binding.h"
#include "unwind_table.h"

/* The upper 16 bits of a token say what it is, the lower 48 are a signed offset. No address has
 * these upper bits. */
enum {
    TOKEN_SHIFT = 48,
    TOKEN_REGISTER = 0x100,
    TOKEN_READ = 0x200,
    REGISTERS = 17,
    READS_MAX = 8
};

#define NOT_A_TOKEN (-1)

/* Windows are kept from one question to the next, until modules may have changed. */
enum { WINDOW_COUNT = 64 };
static struct lapse_window slots[WINDOW_COUNT];
static uint64_t windows_epoch;
struct lapse_windows lapse_resolver_windows = { slots, WINDOW_COUNT };
struct lapse_unwind_entry lapse_resolver_entry;

/* One question to libunwind. Static, since only the holder of the gate has one. */
static struct probe {
    unw_cursor_t cursor;
    unw_word_t registers[REGISTERS];
    unw_word_t read_at[READS_MAX];
    int reads;
} probe;

static unw_addr_space_t space;

/* First addresses of modules that were met, each in the one place that is its own. */
enum { MODULES_MET = 256 };
static uintptr_t modules_met[MODULES_MET];
_Atomic uint32_t lapse_unwind_modules_met;

/* 1 while someone resolves. */
static _Atomic uint32_t gate;

static uint64_t token(int id)
{
    return (uint64_t)id << TOKEN_SHIFT;
}

/* Split into what it is and the offset. */
static int token_id(uint64_t value, int64_t *offset)
{
    int id = (int)((value + (UINT64_C(1) << (TOKEN_SHIFT - 1))) >> TOKEN_SHIFT);
    *offset = (int64_t)(value - token(id));
    if ((id >= TOKEN_REGISTER && id < TOKEN_REGISTER + REGISTERS) ||
        (id >= TOKEN_READ && id < TOKEN_READ + READS_MAX))
        return id;
    return NOT_A_TOKEN;
}

/* Accessors. libunwind names the address space and the argument; both are ours and the only ones. */

static int find_proc_info(unw_addr_space_t in, unw_word_t pc, unw_proc_info_t *info, int need,
                          void *argument)
{
    const struct lapse_unwind_entry *entry = &lapse_resolver_entry;
    /* The row is already known: a table of one row spares libunwind the search. */
    unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE,
                             .start_ip = entry->map_start, .end_ip = entry->map_end };
    if (!entry->covered || pc < entry->start || pc >= entry->end)
        return -UNW_ENOINFO;
    table.u.rti.segbase = entry->header;
    table.u.rti.table_data = entry->row;
    table.u.rti.table_len = 1;
    return lapse_libunwind.dwarf_search_unwind_table(in, pc, &table, info, need, argument);
}

static int access_mem(unw_addr_space_t in, unw_word_t at, unw_word_t *value, int write,
                      void *argument)
{
    int64_t offset;
    (void)in, (void)argument;
    if (write)
        return -UNW_EINVAL;
    if (token_id(at, &offset) == NOT_A_TOKEN)
        return lapse_windows_read(&lapse_resolver_windows, value, at, sizeof *value) ? -UNW_EINVAL
                                                                                     : 0;
    /* The same place gives the same token: expressions are read byte by byte, each time the word
     * around it. */
    int read = 0;
    while (read < probe.reads && probe.read_at[read] != at)
        read++;
    if (read == READS_MAX)
        return -UNW_EINVAL;
    if (read == probe.reads)
        probe.read_at[probe.reads++] = at;
    *value = token(TOKEN_READ + read);
    return 0;
}

static int access_reg(unw_addr_space_t in, unw_regnum_t reg, unw_word_t *value, int write,
                      void *argument)
{
    (void)in, (void)argument;
    if (reg < 0 || reg >= REGISTERS)
        return -UNW_EBADREG;
    if (write)
        probe.registers[reg] = *value;
    else
        *value = probe.registers[reg];
    return 0;
}

static void put_unwind_info(unw_addr_space_t in, unw_proc_info_t *info, void *argument)
{
    (void)in, (void)info, (void)argument;
}

static int no_dynamic_info(unw_addr_space_t in, unw_word_t *list, void *argument)
{
    (void)in, (void)list, (void)argument;
    return -UNW_ENOINFO;
}

static int no_fpreg(unw_addr_space_t in, unw_regnum_t reg, unw_fpreg_t *value, int write,
                    void *argument)
{
    (void)in, (void)reg, (void)value, (void)write, (void)argument;
    return -UNW_EINVAL;
}

static int no_resume(unw_addr_space_t in, unw_cursor_t *cursor, void *argument)
{
    (void)in, (void)cursor, (void)argument;
    return -UNW_EINVAL;
}

static int no_name(unw_addr_space_t in, unw_word_t pc, char *name, size_t size, unw_word_t *offset,
                   void *argument)
{
    (void)in, (void)pc, (void)name, (void)size, (void)offset, (void)argument;
    return -UNW_EINVAL;
}

/* Reading the answer off. */

static int fits(int64_t value, int bits)
{
    return value >= -(INT64_C(1) << (bits - 1)) && value < INT64_C(1) << (bits - 1);
}

/* Base register and offset of the CFA; 0 when no rule expresses it. */
static uint64_t cfa_part(uint64_t cfa)
{
    int64_t offset, add = 0;
    int id = token_id(cfa, &offset);
    if (id >= TOKEN_READ) {
        add = offset;
        id = token_id(probe.read_at[id - TOKEN_READ], &offset);
        if (id == NOT_A_TOKEN || id >= TOKEN_READ || !fits(offset, 24) || !fits(add, 8))
            return 0;
        return LAPSE_RULE_DEREF | (uint64_t)(id - TOKEN_REGISTER) << 4 |
               ((uint64_t)offset & 0xffffff) << 40 | ((uint64_t)add & 0xff) << 32;
    }
    int base = id - TOKEN_REGISTER;
    if (id == NOT_A_TOKEN || base == LAPSE_REGISTER_RIP || !fits(offset, 32))
        return 0;
    uint64_t kind = base == LAPSE_REGISTER_RSP || base == LAPSE_REGISTER_RBP ? LAPSE_RULE_PLAIN
                                                                             : LAPSE_RULE_REGISTER;
    return kind | (uint64_t)base << 4 | (uint64_t)offset << 32;
}

static uint64_t rbp_part(uint64_t rbp, uint64_t cfa, uint64_t rule)
{
    int64_t offset, cfa_offset;
    int id = token_id(rbp, &offset);
    if (id == TOKEN_REGISTER + LAPSE_REGISTER_RBP && offset == 0)
        return (uint64_t)LAPSE_RBP_KEPT << 8;
    if (id < TOKEN_READ || offset)
        return (uint64_t)LAPSE_RBP_LOST << 8;
    int at = token_id(probe.read_at[id - TOKEN_READ], &offset);
    uint64_t place = LAPSE_RBP_LOST;
    if (at == token_id(cfa, &cfa_offset)) {
        place = LAPSE_RBP_AT_CFA;
        offset -= cfa_offset;
    } else if (at == TOKEN_REGISTER + (int)lapse_rule_base(rule)) {
        place = LAPSE_RBP_AT_BASE;
    }
    if (place == LAPSE_RBP_LOST || offset % 8 || !fits(offset / 8, 16))
        return (uint64_t)LAPSE_RBP_LOST << 8;
    return place << 8 | ((uint64_t)(offset / 8) & 0xffff) << 16;
}

static int restores_rax(void)
{
    unw_word_t rax;
    int64_t offset;
    return lapse_libunwind.get_reg(&probe.cursor, UNW_X86_64_RAX, &rax) >= 0 &&
           token_id(rax, &offset) >= TOKEN_READ;
}

static uint64_t read_answer(void)
{
    unw_word_t cfa, rbp, pc;
    int64_t offset, cfa_offset;
    if (lapse_libunwind.get_reg(&probe.cursor, UNW_X86_64_RSP, &cfa) < 0 ||
        lapse_libunwind.get_reg(&probe.cursor, UNW_X86_64_RIP, &pc) < 0)
        return LAPSE_RULE_FAILED;
    if (lapse_libunwind.get_reg(&probe.cursor, UNW_X86_64_RBP, &rbp) < 0)
        rbp = 0;
    int id = token_id(pc, &offset);
    if (id < TOKEN_READ || offset)
        return LAPSE_RULE_FAILED;
    int at = token_id(probe.read_at[id - TOKEN_READ], &offset);
    if (at == NOT_A_TOKEN || at != token_id(cfa, &cfa_offset) || offset != cfa_offset - 8)
        return LAPSE_RULE_FAILED; /* the return address is not below the CFA */
    uint64_t rule = cfa_part(cfa);
    if (!rule)
        return LAPSE_RULE_FAILED;
    rule |= rbp_part(rbp, cfa, rule);
    if (lapse_rule_kind(rule) == LAPSE_RULE_PLAIN && restores_rax())
        rule += LAPSE_RULE_REGISTER - LAPSE_RULE_PLAIN + LAPSE_RULE_LANDS;
    return rule;
}

static uint64_t ask_libunwind(uint64_t key)
{
    probe.reads = 0;
    for (int i = 0; i < REGISTERS; i++)
        probe.registers[i] = token(TOKEN_REGISTER + i);
    probe.registers[UNW_X86_64_RIP] = key;
    if (lapse_libunwind.init_remote(&probe.cursor, space, &probe) < 0)
        return LAPSE_RULE_FAILED;
    int stepped = lapse_libunwind.step(&probe.cursor);
    if (stepped < 0)
        return LAPSE_RULE_FAILED;
    return stepped ? read_answer() : (uint64_t)LAPSE_RULE_OUTERMOST;
}

LAPSE_SIGSAFE int lapse_is_after_call(const uint8_t code[7])
{
    /* call rel32; call through a register or [register]; with 8 and 32 bits of displacement; the
     * same with a scale-index-base byte. FF /2 has 010 in the middle of the byte that follows. */
    const uint8_t *end = code + 7;
    if (end[-5] == 0xe8)
        return 1;
    if (end[-2] == 0xff && ((end[-1] & 0xf8) == 0xd0 ||
                            ((end[-1] & 0xf8) == 0x10 && end[-1] != 0x14 && end[-1] != 0x15)))
        return 1;
    if (end[-3] == 0xff && (((end[-2] & 0xf8) == 0x50 && end[-2] != 0x54) || end[-2] == 0x14))
        return 1;
    if (end[-4] == 0xff && end[-3] == 0x54)
        return 1;
    if (end[-6] == 0xff && (((end[-5] & 0xf8) == 0x90 && end[-5] != 0x94) || end[-5] == 0x15))
        return 1;
    return end[-7] == 0xff && end[-6] == 0x94;
}

/* In either encoding. */
static int is_mov_rbp_rsp(const uint8_t *code)
{
    static const uint8_t store[] = { 0x48, 0x89, 0xe5 }, load[] = { 0x48, 0x8b, 0xec };
    return !memcmp(code, store, sizeof store) || !memcmp(code, load, sizeof load);
}

/* `mov $15, %rax; syscall`: what every sigaction wrapper for this machine returns to. */
static int is_trampoline(const uint8_t *code)
{
    static const uint8_t trampoline[9] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };
    return memcmp(code, trampoline, sizeof trampoline) == 0;
}

/* Where the return address is in code without unwind information, at the two ends of a function that keeps
 * a frame pointer: RBP is still, or again, its caller's. `code` is from the key on, with `before` before it. */
static uint64_t frame_part(uint8_t before, const uint8_t *code)
{
    static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
    const uint8_t *entry = memcmp(code, endbr64, sizeof endbr64) ? code : code + sizeof endbr64;
    if (entry[0] == 0x55 && is_mov_rbp_rsp(entry + 1))
        return LAPSE_RULE_AT_RETURN;
    if (code[0] == 0xc3 || code[0] == 0xc2 || (code[0] == 0xf3 && code[1] == 0xc3))
        return LAPSE_RULE_AT_RETURN;
    return before == 0x55 && is_mov_rbp_rsp(code) ? LAPSE_RULE_RBP_PUSHED : 0;
}

static void note_module(uintptr_t start)
{
    uintptr_t *place = &modules_met[(start >> 12) % MODULES_MET];
    if (*place == start)
        return;
    *place = start;
    /* relaxed: read by the thread itself; by others as a hint */
    atomic_fetch_add_explicit(&lapse_unwind_modules_met, 1, memory_order_relaxed);
}

/* What was there before this epoch may have made room for another module. */
static void begin_epoch(uint64_t epoch)
{
    lapse_windows_reset(&lapse_resolver_windows);
    memset(modules_met, 0, sizeof modules_met);
    windows_epoch = epoch;
}

LAPSE_SIGSAFE int lapse_resolver_look_up(uint64_t epoch, uint64_t key)
{
    if (epoch != windows_epoch)
        begin_epoch(epoch);
    int result = lapse_unwind_table_find(&lapse_resolver_windows, key, &lapse_resolver_entry);
    if (!result)
        note_module(lapse_resolver_entry.map_start);
    return result;
}

static uint64_t resolve(uint64_t epoch, uint64_t key, uint64_t *start)
{
    uint8_t code[17] = { 0 }; /* from key - 7 on */
    const struct lapse_unwind_entry *entry = &lapse_resolver_entry;
    int in_module = !lapse_resolver_look_up(epoch, key);
    /* Not through a window, since code made at run time changes without notice. Near the end of a
     * mapping less is there; what is missing stays zero. */
    int readable = lapse_memory_read(code, key - 7, sizeof code) >= 8;
    *start = in_module ? entry->start : 0;
    uint64_t after_call = readable && lapse_is_after_call(code + 1) ? LAPSE_RULE_AFTER_CALL : 0;
    uint64_t frame = readable ? frame_part(code[6], code + 7) : 0;
    /* Returned to (key is one less), about to start, or before its system call. */
    if (readable && (is_trampoline(code + 8) || is_trampoline(code + 7) || is_trampoline(code)))
        return LAPSE_RULE_SIGNAL;
    if (!in_module)
        return LAPSE_RULE_NO_INFO | after_call | frame;
    /* A return address that is the start of a function was put there by hand, by who made the stack
     * (makecontext does this); what stands before it is padding. */
    if (!entry->covered && !after_call && entry->end == key + 1) {
        *start = key + 1;
        return LAPSE_RULE_OUTERMOST;
    }
    if (!entry->covered)
        return LAPSE_RULE_NO_INFO | after_call | frame | LAPSE_RULE_IN_MODULE |
               (entry->has_table ? LAPSE_RULE_IN_TABLED_MODULE : 0);
    return ask_libunwind(key) | after_call;
}

/* How often the gate is tried, with so many pauses in between: some 50 us in all. One answer takes 2 to
 * 20 us, the longer ones while pages of unwind tables come in. */
enum { TRIES = 1024, PAUSES = 4 };

static void pause_for(int count)
{
    while (count--)
        __builtin_ia32_pause();
}

static int gate_try(void)
{
    uint32_t open = 0;
    /* Acquire: pairs with the release in gate_leave, so that the probe of who was inside before is
     * ours alone. */
    return atomic_compare_exchange_strong_explicit(&gate, &open, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static void gate_leave(void)
{
    atomic_store_explicit(&gate, 0, memory_order_release);
}

LAPSE_SIGSAFE int lapse_resolver_enter(int *cancel)
{
    if (!gate_try())
        return 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, cancel);
    return 1;
}

LAPSE_SIGSAFE int lapse_resolver_enter_in_turn(int *cancel)
{
    for (int i = 0; i < TRIES; i++) {
        if (lapse_resolver_enter(cancel))
            return 1;
        pause_for(PAUSES);
    }
    return 0;
}

LAPSE_SIGSAFE void lapse_resolver_leave(int cancel)
{
    gate_leave();
    pthread_setcancelstate(cancel, &cancel);
}

/* Threads that are trying. Relaxed everywhere: a hint. A child of fork may inherit one too many. */
static _Atomic int32_t trying;

/* The kernel's tick comes to all processors at once, so threads that run side by side are sampled at
 * the same moment, and new code finds them here together. Who leaves the gate wants the next rule at
 * once; it lets the others have their turn first. */
static void let_others_in(void)
{
    if (atomic_load_explicit(&trying, memory_order_relaxed) > 0)
        pause_for(32 * PAUSES);
}

static uint64_t resolve_in_turn(uint64_t key)
{
    for (int i = 0; i < TRIES; i++) {
        /* The epoch from before the look at memory: a module that goes away while we look makes
         * what we store stale from the start. */
        uint64_t epoch = lapse_rule_cache_epoch();
        uint64_t start, rule = lapse_rule_cache_find(epoch, key);
        if (rule)
            return rule;
        int cancel;
        if (lapse_resolver_enter(&cancel)) {
            rule = resolve(epoch, key, &start);
            lapse_rule_cache_store(epoch, key, rule, start);
            lapse_resolver_leave(cancel);
            return rule;
        }
        pause_for(PAUSES);
    }
    return LAPSE_RULE_UNKNOWN;
}

/* Context: as lapse_walk. */
LAPSE_SIGSAFE uint64_t lapse_rule_resolve(uint64_t key)
{
    if (key >> LAPSE_EPOCH_SHIFT)
        return LAPSE_RULE_NO_INFO; /* no user address; never stored */
    atomic_fetch_add_explicit(&trying, 1, memory_order_relaxed);
    uint64_t rule = resolve_in_turn(key);
    atomic_fetch_sub_explicit(&trying, 1, memory_order_relaxed);
    let_others_in();
    return rule;
}

LAPSE_SIGSAFE int lapse_unwind_hold(void)
{
    return gate_try() ? 0 : -EBUSY;
}

LAPSE_SIGSAFE void lapse_unwind_release(void)
{
    gate_leave();
}

const unw_accessors_t lapse_resolver_accessors = {
    .find_proc_info = find_proc_info,
    .put_unwind_info = put_unwind_info,
    .get_dyn_info_list_addr = no_dynamic_info,
    .access_fpreg = no_fpreg,
    .resume = no_resume,
    .get_proc_name = no_name,
};

int lapse_resolver_init(void)
{
    static unw_accessors_t accessors;
    accessors = lapse_resolver_accessors;
    accessors.access_mem = access_mem;
    accessors.access_reg = access_reg;
    space = lapse_libunwind.create_addr_space(&accessors, 0);
    if (!space)
        return -ENOMEM;
    lapse_libunwind.set_caching_policy(space, UNW_CACHE_NONE);
    return 0;
}
