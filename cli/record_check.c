/* SPDX-License-Identifier: MIT */
/* What can be told about a command before it runs: is it there, can the loader put liblapse into it? */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "command.h"
#include "record.h"

#define SEGMENTS_MAX 512u
#define SCRIPT_DEPTH_MAX 4
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127 };

#ifndef LAPSE_LIBRARY_DIR
#define LAPSE_LIBRARY_DIR "/usr/local/lib"
#endif

static bool is_program(const char *path)
{
    struct stat status;
    return !stat(path, &status) && S_ISREG(status.st_mode) && !access(path, X_OK);
}

static int complain_not_executable(const char *path)
{
    struct stat status;
    bool folder = !stat(path, &status) && S_ISDIR(status.st_mode);
    lapse_complain("record", "%s: %s", path, folder ? "is a folder" : strerror(EACCES));
    return NOT_EXECUTABLE;
}

int lapse_record_find(const char *command, char path[PATH_MAX])
{
    const char *folders = getenv("PATH");
    bool seen = false;
    if (strchr(command, '/')) {
        snprintf(path, PATH_MAX, "%s", command);
        if (is_program(path))
            return 0;
        if (!access(path, F_OK))
            return complain_not_executable(path);
        lapse_complain("record", "%s: %s", command, strerror(errno));
        return NOT_FOUND;
    }
    for (const char *at = folders ? folders : "/usr/bin:/bin", *end; *command; at = end + 1) {
        end = strchrnul(at, ':');
        int size = snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - at), at, end > at ? "/" : "./", command);
        if (size < PATH_MAX && is_program(path))
            return 0;
        seen |= size < PATH_MAX && !access(path, F_OK);
        if (!*end)
            break;
    }
    if (seen)
        return complain_not_executable(command);
    lapse_complain("record", "%s: command not found", command);
    return NOT_FOUND;
}

static enum lapse_obstacle elf_obstacle(int fd, const Elf64_Ehdr *head)
{
    if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64)
        return LAPSE_OBSTACLE_CLASS;
    for (unsigned i = 0; i < head->e_phnum && i < SEGMENTS_MAX; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(head->e_phoff + i * sizeof segment);
        if (pread(fd, &segment, sizeof segment, at) != sizeof segment)
            break;
        if (segment.p_type == PT_INTERP)
            return LAPSE_OBSTACLE_NONE;
    }
    return LAPSE_OBSTACLE_STATIC;
}

static bool gains_privileges(int fd)
{
    struct stat status;
    if (fstat(fd, &status))
        return false;
    return ((status.st_mode & S_ISUID) && status.st_uid != geteuid()) ||
           ((status.st_mode & S_ISGID) && status.st_gid != getegid()) ||
           (geteuid() && fgetxattr(fd, "security.capability", NULL, 0) > 0);
}

/* Path after `#!`, or false. */
static bool script_interpreter(const char *head, char path[PATH_MAX])
{
    if (head[0] != '#' || head[1] != '!')
        return false;
    head += 2 + strspn(head + 2, " \t");
    snprintf(path, PATH_MAX, "%.*s", (int)strcspn(head, " \t\r\n"), head);
    return *path != 0;
}

enum lapse_obstacle lapse_record_obstacle(const char *path, char subject[PATH_MAX])
{
    snprintf(subject, PATH_MAX, "%s", path);
    for (int depth = 0; depth < SCRIPT_DEPTH_MAX; depth++) {
        union { Elf64_Ehdr elf; char text[256]; } head = { 0 };
        int fd = open(subject, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
            return LAPSE_OBSTACLE_NONE; /* executable and not readable: let it run */
        ssize_t size = pread(fd, &head, sizeof head - 1, 0);
        enum lapse_obstacle obstacle = LAPSE_OBSTACLE_NONE;
        bool is_elf = size >= (ssize_t)sizeof head.elf && !memcmp(head.elf.e_ident, ELFMAG, SELFMAG);
        if (gains_privileges(fd))
            obstacle = LAPSE_OBSTACLE_SETUID;
        else if (is_elf)
            obstacle = elf_obstacle(fd, &head.elf);
        close(fd);
        if (obstacle || is_elf || !script_interpreter(head.text, subject))
            return obstacle;
    }
    return LAPSE_OBSTACLE_NONE;
}

bool lapse_record_library(char path[PATH_MAX])
{
    static const char *const places[] = { "liblapse.so", "../lib/liblapse.so",
                                          "../" LAPSE_LIBRARY_NAME "/liblapse.so" };
    char self[PATH_MAX], wanted[PATH_MAX + 64];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash = size > 0 ? memrchr(self, '/', (size_t)size) : NULL;
    bool found = false;
    for (size_t i = 0; slash && i < sizeof places / sizeof *places && !found; i++) {
        snprintf(wanted, sizeof wanted, "%.*s/%s", (int)(slash - self), self, places[i]);
        found = !access(wanted, R_OK) && realpath(wanted, path);
    }
    if (!found)
        found = !access(LAPSE_LIBRARY_DIR "/liblapse.so", R_OK) &&
                realpath(LAPSE_LIBRARY_DIR "/liblapse.so", path);
    if (!found)
        lapse_complain("record", "liblapse.so is neither beside %.*s nor in " LAPSE_LIBRARY_DIR,
                       size > 0 ? (int)size : 5, size > 0 ? self : "lapse");
    else if (strpbrk(path, " :")) /* LD_PRELOAD knows no quotes */
        found = false, lapse_complain("record", "%s: the loader takes no path with a space or colon", path);
    return found;
}
