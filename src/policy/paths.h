/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What security.c and paths.c share: a check under way, its refusals, and the rules about paths. */
#include <stdbool.h>

#include "base/error.h"
#include "config/settings.h"
#include "policy/security.h"

struct check {
    const struct settings *s;
    const struct security_facts *f;
    bool multi_tenant;
    struct error *err;
};

int security_refuse(const struct check *c, enum error_code code, enum setting_id id,
                    const char *value, const char *fmt, ...) __attribute__((format(printf, 5, 6)));
#define DENY(c, id, value, ...)  security_refuse(c, ERR_DENIED, id, value, __VA_ARGS__)
#define WRONG(c, id, value, ...) security_refuse(c, ERR_INVALID, id, value, __VA_ARGS__)

/* Of a text without control characters. `source:target[:options]`: */
int security_check_bind(const struct check *c, enum setting_id id, const char *bind);
/* A folder of the operator's, bound at its own path. */
int security_check_vault(const struct check *c, enum setting_id id, const char *path);
/* Where the workspace is mounted. */
int security_check_workdir(const struct check *c, enum setting_id id, const char *path);
/* `path` or `path:options`. */
int security_check_tmpfs(const struct check *c, enum setting_id id, const char *entry);
