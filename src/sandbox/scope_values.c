/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/scope_parts.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "sandbox/values.h"

static void *need(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- lists ---- */

void scope_add_text(char ***list, const char *text)
{
    size_t n = 0;

    while (*list && (*list)[n])
        n++;
    *list = need(realloc(*list, (n + 2) * sizeof(**list)));
    (*list)[n] = need(strdup(text));
    (*list)[n + 1] = NULL;
}

void scope_warn(struct scope_plan *p, const char *fmt, ...)
{
    char text[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    scope_add_text(&p->warnings, text);
}

void scope_add_mount(struct box_record *r, struct box_mount m)
{
    r->mounts = need(realloc(r->mounts, (r->n_mounts + 1) * sizeof(*r->mounts)));
    r->mounts[r->n_mounts++] = m;
}

void scope_add_bind(struct box_record *r, const char *source, const char *target, bool read_only)
{
    scope_add_mount(r, (struct box_mount){.kind = BOX_BIND,
                                          .source = need(strdup(source)),
                                          .target = need(strdup(target)),
                                          .options = read_only ? need(strdup("ro")) : NULL,
                                          .read_only = read_only});
}

void scope_add_label(struct box_record *r, const char *name, const char *value)
{
    r->labels = need(realloc(r->labels, (r->n_labels + 1) * sizeof(*r->labels)));
    r->labels[r->n_labels++] =
        (struct box_label){.name = need(strdup(name)), .value = need(strdup(value))};
}

/* ---- values that JSON can write in several ways ---- */

int scope_size(const json_t *value, uint64_t *ret_bytes, struct error *err)
{
    double n = json_number_value(value);
    int r = json_is_string(value) ? values_size(json_string_value(value), ret_bytes, err) : 0;

    if (r < 0)
        return r;
    if (json_is_string(value)) /* 0 is docker's word for unlimited: not one of a configuration's */
        return *ret_bytes ? 0
                          : error_set(err, ERR_INVALID, "size '%s': there is no unlimited one",
                                      json_string_value(value));
    if (n < 1 || n >= 9223372036854775807.0)
        return error_set(err, ERR_INVALID, "size %.0f: out of range", n);
    *ret_bytes = (uint64_t)n;
    return 0;
}

static const char *limit_text(const json_t *v, char *ret, size_t size)
{
    if (json_is_string(v))
        return json_string_value(v);
    (void)snprintf(ret, size, "%.0f", json_number_value(v));
    return ret;
}

int scope_ulimit(const char *name, const json_t *value, struct box_ulimit *ret, struct error *err)
{
    const json_t *soft = json_object_get(value, "soft"), *hard = json_object_get(value, "hard");
    char text[256], number[2][32];

    if (json_is_object(value) && !soft && !hard)
        return error_set(err, ERR_INVALID, "docker.ulimits.%s: {soft, hard} without either", name);
    if (json_is_object(value))
        (void)snprintf(text, sizeof(text), "%s=%s:%s", name,
                       limit_text(soft ? soft : hard, number[0], sizeof(number[0])),
                       limit_text(hard ? hard : soft, number[1], sizeof(number[1])));
    else
        (void)snprintf(text, sizeof(text), "%s=%s", name,
                       limit_text(value, number[0], sizeof(number[0])));
    return values_ulimit(text, ret, err) < 0 ? error_wrap(err, "docker.ulimits") : 0;
}
