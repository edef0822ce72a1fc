/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/state.h"
#include "cmd/clawden/clawden.h"

/* The folders have rules of their own: what they come to, not what the table says. */
static const char *effective(enum config_key key, bool *is_set, char *path, size_t size)
{
    const char *text = config_text(key, is_set);
    struct error ignored;

    if (key == CONFIG_DATA_DIR && state_data_path(path, size, &ignored) >= 0)
        return path;
    if (key == CONFIG_RUNTIME_DIR && state_runtime_path(path, size, &ignored) >= 0)
        return path;
    return text;
}

static void print_json(void)
{
    autobuf b;

    buf_init(&b, 64 << 10);
    buf_puts(&b, "{");
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *s = config_setting((enum config_key)i);
        char path[4096];
        bool is_set;
        const char *value = effective((enum config_key)i, &is_set, path, sizeof(path));

        buf_json_key(&b, s->name);
        buf_puts(&b, "{");
        buf_json_str(&b, "value", value);
        buf_json_str(&b, "from", is_set ? s->variable : "standard");
        buf_json_str(&b, "standard", s->standard);
        buf_json_str(&b, "help", s->help);
        buf_puts(&b, "}");
    }
    buf_puts(&b, "}\n");
    if (!b.failed)
        (void)fputs(b.data, stdout);
}

int cmd_config(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "--json") == 0) {
        print_json();
        return 0;
    }
    if (argc > 1) {
        puts("clawden config [--json]   every setting, its value here, and where that came from");
        return strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ? 0 : 2;
    }
    for (int i = 0; i < CONFIG_KEYS; i++) {
        const struct config_setting *s = config_setting((enum config_key)i);
        char path[4096];
        bool is_set;
        const char *value = effective((enum config_key)i, &is_set, path, sizeof(path));

        printf("%-15s %-32s %s\n", s->name, value, is_set ? s->variable : "standard");
        printf("%-15s %s%s%s\n", "", s->help, is_set ? "" : "; set it by ",
               is_set ? "" : s->variable);
    }
    return 0;
}
