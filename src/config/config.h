/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Every setting in one table: its name, kind, standard value, variable and a line of help. What a
 * value is and where it came from is asked here and nowhere else; `clawden config` prints it.
 *
 * So far a setting comes from its variable or is the standard one. A value that is not understood
 * is an error when it is asked for, never silently the standard.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

enum config_kind { CONFIG_PATH, CONFIG_SIZE, CONFIG_COUNT, CONFIG_SWITCH, CONFIG_TEXT };

enum config_key {
    CONFIG_DATA_DIR,
    CONFIG_RUNTIME_DIR,
    CONFIG_MULTI_TENANT,
    CONFIG_SPAWNER_OFF,
    CONFIG_BOX_MEMORY,
    CONFIG_BOX_PIDS,
    CONFIG_BOX_TMP,
    CONFIG_BOX_IMAGE,
    CONFIG_NATIVE_FILES,
    CONFIG_NAMESERVERS,
    CONFIG_KEYS
};

struct config_setting {
    const char *name, *variable, *standard, *help;
    enum config_kind kind;
};

const struct config_setting *config_setting(enum config_key key);

/* Its value as text, and whether it was set. Never NULL; borrowed. */
const char *config_text(enum config_key key, bool *ret_is_set);
/* CONFIG_SIZE and CONFIG_COUNT. */
int config_number(enum config_key key, uint64_t *ret, struct error *err);
/* CONFIG_SWITCH: 0, no, off and false are off. Everything else is on: multi-tenant mode must not be
 * lost by how somebody writes yes. */
bool config_is_on(enum config_key key);
