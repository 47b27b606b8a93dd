/* SPDX-License-Identifier: MIT */
/* Runs a fuzz target over the files of a folder, once each: its corpus as an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    size_t capacity = 1 << 20, size;
    uint8_t *bytes = malloc(capacity), *exact;
    if (!file || !bytes)
        return 1;
    size = fread(bytes, 1, capacity, file);
    exact = realloc(bytes, size ? size : 1); /* so that a sanitizer sees reads beyond it */
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    DIR *folder = argc == 2 ? opendir(argv[1]) : NULL;
    unsigned count = 0;
    if (!folder) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        if (run_file(path)) {
            fprintf(stderr, "cannot read %s\n", path);
            return 1;
        }
        count++;
    }
    closedir(folder);
    printf("%u inputs\n", count);
    return count ? 0 : 1;
}
