/* SPDX-License-Identifier: Apache-2.0 */
#include "config/config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/units.h"

#define COUNT_MAX 4194304

static const struct config_setting settings[CONFIG_KEYS] = {
    [CONFIG_DATA_DIR] = {"data_dir", "CLAWDEN_DATA_DIR", "~/.clawden",
                         "boxes, images, records: what stays", CONFIG_PATH},
    [CONFIG_RUNTIME_DIR] = {"runtime_dir", "CLAWDEN_RUNTIME_DIR", "$XDG_RUNTIME_DIR/clawden",
                            "sockets and locks: what dies with the machine", CONFIG_PATH},
    [CONFIG_MULTI_TENANT] = {"multi_tenant", "CLAWDEN_MULTI_TENANT", "0",
                             "deny what lacks a belt, a limit kept by the kernel, or an image",
                             CONFIG_SWITCH},
    [CONFIG_SPAWNER_OFF] = {"no_spawner", "CLAWDEN_NO_SPAWNER", "0",
                            "build every box in place, keep no slots ready", CONFIG_SWITCH},
    [CONFIG_BOX_MEMORY] = {"box.memory", "CLAWDEN_BOX_MEMORY", "1g",
                           "memory of a live box that asks for none", CONFIG_SIZE},
    [CONFIG_BOX_PIDS] = {"box.pids", "CLAWDEN_BOX_PIDS", "256",
                         "processes of a live box that asks for none", CONFIG_COUNT},
    [CONFIG_BOX_TMP] = {"box.tmp", "CLAWDEN_BOX_TMP", "500m",
                        "size of /tmp and the other scratch folders together", CONFIG_SIZE},
    [CONFIG_BOX_IMAGE] = {"box.host_image", "CLAWDEN_HOST_IMAGE", "openclaw-sandbox:bookworm-slim",
                          "the image name that means the host's own system folders while no such "
                          "image is in the store",
                          CONFIG_TEXT},
    [CONFIG_NATIVE_FILES] = {"native_files", "CLAWDEN_NATIVE_FS", "1",
                             "do OpenClaw's known file scripts by a program of ours",
                             CONFIG_SWITCH},
    [CONFIG_NAMESERVERS] = {"nameservers", "CLAWDEN_NAMESERVERS", "",
                            "addresses of name servers for boxes with a network, separated by "
                            "commas; empty: those of /etc/resolv.conf",
                            CONFIG_TEXT},
};

const struct config_setting *config_setting(enum config_key key)
{
    return &settings[key];
}

const char *config_text(enum config_key key, bool *ret_is_set)
{
    const char *v = getenv(settings[key].variable);
    bool is_set = v && v[0];

    if (ret_is_set)
        *ret_is_set = is_set;
    return is_set ? v : settings[key].standard;
}

int config_number(enum config_key key, uint64_t *ret, struct error *err)
{
    const struct config_setting *s = &settings[key];
    const char *text = config_text(key, NULL);
    int r = s->kind == CONFIG_SIZE ? units_parse_size(text, ret)
                                   : units_parse_count(text, COUNT_MAX, ret);

    if (r < 0)
        return error_set(err, ERR_INVALID, "%s='%s': not understood; write %s", s->variable, text,
                         s->kind == CONFIG_SIZE ? "a size: 256m, 1g" : "a whole number");
    return 0;
}

bool config_is_on(enum config_key key)
{
    static const char *const off[] = {"0", "no", "off", "false"};
    const char *text = config_text(key, NULL);

    for (size_t i = 0; i < sizeof(off) / sizeof(*off); i++)
        if (strcasecmp(text, off[i]) == 0)
            return false;
    return true;
}
