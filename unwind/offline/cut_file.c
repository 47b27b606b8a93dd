/* SPDX-License-Identifier: MIT */
#include "cut_file.h"

#include <signal.h>
#include <sys/mman.h>

#define PAGE 4096u

static struct lapse_object_file *files; /* changed only while no mapped byte is being read */
static struct sigaction before;
static bool is_set;

/* Context: handler, in the thread that read the missing byte. mmap is a mere system call. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    const uint8_t *at = info->si_addr;
    (void)context;
    for (struct lapse_object_file *file = files; file; file = file->next) {
        if (at < file->bytes || at >= file->bytes + file->size)
            continue;
        void *page = (void *)((uintptr_t)at & ~(uintptr_t)(PAGE - 1));
        file->cut = true;
        if (mmap(page, PAGE, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == page)
            return;
    }
    sigaction(signal, &before, NULL); /* the access is tried again, and meets it */
}

void lapse_cut_file_watch(struct lapse_object_file *file)
{
    struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
    file->next = files;
    files = file;
    if (!is_set)
        is_set = !sigaction(SIGBUS, &action, &before);
}

void lapse_cut_file_forget(struct lapse_object_file *file)
{
    for (struct lapse_object_file **at = &files; *at; at = &(*at)->next) {
        if (*at == file) {
            *at = file->next;
            return;
        }
    }
}
