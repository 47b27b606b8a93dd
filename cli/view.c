/* SPDX-License-Identifier: MIT */
/* lapse view: makes lapse's own page of a recording, serves it to this machine alone and opens the
 * browser. Ends on Ctrl-C. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "command.h"
#include "format.h"
#include "input.h"
#include "loopback.h"

extern char **environ;

static const char help[] =
    "usage: lapse view [--no-open] RECORDING...\n"
    "\n"
    "Shows recordings (or folded text) in the browser: flame graph, timeline, table, summary.\n"
    "The page is served on 127.0.0.1 alone, under an address that cannot be guessed, and needs\n"
    "no network. Ctrl-C ends it. `lapse export --to=html` writes the same page to a file.\n"
    "\n"
    "  -n, --no-open   print the address and leave the browser alone\n"
    "  -h, --help      this text\n";

/* The page in a file without a name. NULL after a complaint. */
static FILE *make_page(char *const *paths, int count)
{
    char error[512] = "";
    const struct lapse_input_options reading = { .lines = true };
    const struct lapse_export_options writing = { 0 };
    struct lapse_profile *profile;
    if (lapse_input_open("view", &profile, paths, count, &reading))
        return NULL;
    FILE *page = tmpfile();
    int result = page ? lapse_write_html(profile, page, &writing, error, sizeof error) : -errno;
    if (!result && fflush(page))
        result = -errno;
    lapse_input_close(profile);
    if (!result)
        return page;
    lapse_complain("view", "%s", *error ? error : strerror(-result));
    if (page)
        fclose(page);
    return NULL;
}

/* Start the browser, with the signals it would have had without us. */
static void open_browser(const char *address)
{
    char *arguments[] = { "xdg-open", (char *)address, NULL };
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, ours;
    pid_t child;
    sigemptyset(&none);
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    sigaddset(&ours, SIGPIPE);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &ours);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    signal(SIGCHLD, SIG_IGN); /* nobody waits for it */
    int error = posix_spawnp(&child, "xdg-open", &files, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (error)
        fprintf(stderr, "lapse view: xdg-open: %s; open the address yourself\n", strerror(error));
}

static int serve(FILE *page, bool opens)
{
    struct lapse_loopback server;
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN); /* a browser that leaves midway */
    int stop = signalfd(-1, &ends, SFD_CLOEXEC);
    int error = stop < 0 ? -errno : lapse_loopback_open(&server);
    if (error) {
        if (stop >= 0)
            close(stop);
        return lapse_complain("view", "no port to listen on: %s", strerror(-error));
    }
    printf("%s\n", server.address);
    fflush(stdout);
    fputs("lapse view: Ctrl-C ends it\n", stderr);
    if (opens)
        open_browser(server.address);
    error = lapse_loopback_run(&server, fileno(page), stop);
    lapse_loopback_close(&server);
    close(stop);
    return error ? lapse_complain("view", "%s", strerror(-error)) : 0;
}

int lapse_command_view(int argc, char **argv)
{
    static const struct option options[] = {
        { "no-open", no_argument, NULL, 'n' }, { "help", no_argument, NULL, 'h' }, { 0 },
    };
    bool opens = true;
    for (int option; (option = getopt_long(argc, argv, "nh", options, NULL)) != -1;) {
        if (option == 'h')
            return lapse_show_help("view", help);
        if (option != 'n')
            return LAPSE_STATUS_BAD;
        opens = false;
    }
    if (optind == argc)
        return lapse_complain("view", "no recording named; `lapse view --help` says more");
    FILE *page = make_page(argv + optind, argc - optind);
    if (!page)
        return LAPSE_STATUS_BAD;
    int status = serve(page, opens);
    fclose(page);
    return status;
}
