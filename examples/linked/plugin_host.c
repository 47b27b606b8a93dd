/* SPDX-License-Identifier: MIT */
/* A host that loads a plugin, uses it and unloads it, again and again, all of it profiled. Labels that
 * may outlive the plugin are interned. usage: plugin_host OUT PLUGIN.so */
#include <dlfcn.h>
#include <lapse.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int use(const char *path, int round)
{
    void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = plugin ? dlsym(plugin, "plugin_filter") : NULL;
    uint64_t (*filter)(uint64_t);
    char value[32];
    if (!symbol)
        return fprintf(stderr, "plugin_host: %s\n", dlerror()), 1;
    memcpy(&filter, &symbol, sizeof filter);
    snprintf(value, sizeof value, "round %d", round % 2);
    lapse_label_push("plugin", lapse_intern(value));
    uint64_t result = filter(20000000);
    lapse_label_pop();
    dlclose(plugin);
    return result == 0;
}

int main(int argc, char **argv)
{
    struct lapse_options options = { .out = argc > 1 ? argv[1] : NULL, .hz = 250, .exports = LAPSE_EXPORT_NONE };
    int error = lapse_start(&options);
    if (error || argc < 3)
        return fprintf(stderr, "plugin_host: %s\n", error ? strerror(-error) : "two arguments, please"), 1;
    for (int round = 0; round < 10; round++)
        if (use(argv[2], round))
            return 1;
    return lapse_stop() != 0;
}
