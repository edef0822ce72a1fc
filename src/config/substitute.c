/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ${VAR}: names of capital letters, digits and '_' only; $${VAR} is a literal ${VAR}; everything
 * else with a '$' stays as it is. A variable that is set to nothing counts as not set, as in the
 * client. No message ever holds a value.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "config/internal.h"

const char *config_variable(const struct config *c, const char *name)
{
    const char *v = getenv(name);

    return v ? v : json_string_value(json_object_get(c->variables, name));
}

/* The length of "{NAME}" at s, or 0. */
static size_t reference(const char *s)
{
    size_t n = 1;

    if (s[0] != '{' || (s[1] >= '0' && s[1] <= '9'))
        return 0;
    while ((s[n] >= 'A' && s[n] <= 'Z') || (s[n] >= '0' && s[n] <= '9') || s[n] == '_')
        n++;
    return n > 1 && s[n] == '}' ? n + 1 : 0;
}

bool config_next_reference(const char **at, char *name, size_t size)
{
    for (const char *s = *at; (s = strchr(s, '$')); s++) {
        size_t n;

        if (s[1] == '$' && (n = reference(s + 2))) { /* a literal ${NAME} */
            s += n + 1;
        } else if ((n = reference(s + 1))) {
            (void)snprintf(name, size, "%.*s", (int)n - 2, s + 2);
            *at = s + n + 1;
            return true;
        }
    }
    return false;
}

/* Appends raw with its references replaced; false when one is missing, whose name is then told. */
static bool expand(const struct config *c, const char *raw, struct buf *out, bool *ret_any,
                   char *missing, size_t size)
{
    for (const char *s = raw; *s;) {
        size_t plain = strcspn(s, "$"), n;

        buf_append(out, s, plain);
        s += plain;
        if (!*s)
            break;
        if (s[1] == '$' && (n = reference(s + 2))) {
            buf_append(out, s + 1, n + 1);
            s += n + 2;
        } else if ((n = reference(s + 1))) {
            autofree char *name = strndup(s + 2, n - 2);
            const char *v = name ? config_variable(c, name) : NULL;

            *ret_any = true;
            if (!v || !v[0]) {
                (void)snprintf(missing, size, "%s", name ? name : "");
                return false;
            }
            buf_puts(out, v);
            s += n + 1;
        } else {
            buf_append(out, s++, 1);
        }
    }
    buf_append(out, "", 0);
    return true;
}

enum env_result config_env_value(const struct config *c, const char *raw, char **ret)
{
    char missing[64];
    bool any = false;
    autobuf out = {0};

    buf_init(&out, LIMIT_CONFIG_TOTAL);
    *ret = NULL;
    if (!expand(c, raw, &out, &any, missing, sizeof(missing)) || out.failed)
        return ENV_MISSING;
    *ret = TAKE(out.data, NULL);
    if (!*ret)
        *ret = strdup("");
    return any ? ENV_REFERENCE : ENV_LITERAL;
}

static int substitute_text(struct config *c, enum source_kind kind, const struct key_path *p,
                           json_t *value, json_t **ret, struct error *err)
{
    const char *raw = json_string_value(value);
    char missing[64];
    bool any = false;
    autobuf out = {0};

    *ret = json_incref(value);
    if (!strchr(raw, '$'))
        return 0;
    buf_init(&out, LIMIT_CONFIG_BYTES);
    if (!expand(c, raw, &out, &any, missing, sizeof(missing))) {
        key_warn(c, kind, p, value, "the variable '%s' is not set; '%s' stays as it is", missing,
                 key_path_show(p).text);
        return 0;
    }
    json_decref(*ret);
    *ret = out.failed ? NULL : json_string(out.data);
    if (*ret)
        return 0;
    (void)error_set(err, ERR_INVALID, "a variable of '%s' is too long or not UTF-8",
                    key_path_show(p).text);
    return key_wrong(c, kind, p, value, err);
}

int substitute(struct config *c, enum source_kind kind, const struct key_path *p, json_t *value,
               json_t **ret, struct error *err)
{
    json_t *out, *v, *one;
    const char *key;
    size_t i;
    int r = 0;

    if (json_is_string(value))
        return substitute_text(c, kind, p, value, ret, err);
    if (!json_is_object(value) && !json_is_array(value)) {
        *ret = json_incref(value);
        return 0;
    }
    out = json_is_object(value) ? json_object() : json_array();
    if (json_is_object(value)) {
        json_object_foreach(value, key, v)
        {
            if ((r = substitute(c, kind, p, v, &one, err)) < 0)
                break;
            (void)json_object_set_new(out, key, one);
        }
    } else {
        json_array_foreach(value, i, v)
        {
            if ((r = substitute(c, kind, p, v, &one, err)) < 0)
                break;
            (void)json_array_append_new(out, one);
        }
    }
    if (r < 0)
        json_decref(out);
    else
        *ret = out;
    return r;
}
