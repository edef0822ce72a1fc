/* SPDX-License-Identifier: Apache-2.0 */
/* Prometheus' text format 0.0.4. A name that is none makes the whole a mistake: half a scrape reads
 * like a fall of the numbers. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "gateway/front_internal.h"

static bool is_name(const char *s, bool with_colon)
{
    static const char first[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_:";

    if (!s || !*s || !strchr(first, *s) || (!with_colon && strchr(s, ':')))
        return false;
    while (*s && (strchr(first, *s) || (*s >= '0' && *s <= '9')))
        s++;
    return *s == 0;
}

/* HELP has '\' and line ends escaped, label values '"' too. */
static void put_escaped(struct buf *b, const char *s, bool quotes)
{
    for (; *s; s++) {
        if (*s == '\\' || (quotes && *s == '"'))
            buf_puts(b, "\\");
        if (*s == '\n')
            buf_puts(b, "\\n");
        else
            buf_append(b, s, 1);
    }
}

static bool put_labels(struct buf *b, const json_t *labels)
{
    const char *key, *before = "{";
    json_t *v;

    json_object_foreach((json_t *)labels, key, v)
    {
        if (!is_name(key, false) || !json_is_string(v))
            return false;
        buf_printf(b, "%s%s=\"", before, key);
        put_escaped(b, json_string_value(v), true);
        buf_puts(b, "\"");
        before = ",";
    }
    buf_puts(b, *before == ',' ? "} " : " ");
    return true;
}

static bool put_value(struct buf *b, const json_t *v)
{
    if (json_is_integer(v))
        buf_printf(b, "%" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
    else if (json_is_real(v))
        buf_printf(b, "%.17g\n", json_real_value(v));
    else
        return false;
    return true;
}

/* A sample of a histogram or summary has a suffix of its own. */
static bool put_sample(struct buf *b, const char *name, const json_t *sample)
{
    const json_t *own = json_object_get(sample, "name");

    if (own && !is_name(json_string_value(own), true))
        return false;
    buf_puts(b, own ? json_string_value(own) : name);
    return put_labels(b, json_object_get(sample, "labels")) &&
           put_value(b, json_object_get(sample, "value"));
}

static bool put_metric(struct buf *b, const json_t *m)
{
    static const char *const types[] = {"counter", "gauge", "histogram", "summary", "untyped"};
    const char *name = json_string_value(json_object_get(m, "name"));
    const char *type = json_string_value(json_object_get(m, "type"));
    const char *help = json_string_value(json_object_get(m, "help"));
    bool known = false;
    const json_t *one;
    size_t i;

    for (i = 0; type && i < COUNT(types); i++)
        known |= strcmp(type, types[i]) == 0;
    if (!is_name(name, true) || !known)
        return false;
    if (help) {
        buf_printf(b, "# HELP %s ", name);
        put_escaped(b, help, false);
        buf_puts(b, "\n");
    }
    buf_printf(b, "# TYPE %s %s\n", name, type);
    json_array_foreach(json_object_get(m, "samples"), i, one)
    {
        if (!put_sample(b, name, one))
            return false;
    }
    return true;
}

bool metrics_put(const json_t *body, struct buf *out)
{
    const json_t *all = json_object_get(body, "metrics"), *one;
    size_t i;

    if (!json_is_array(all))
        return false;
    json_array_foreach(all, i, one)
    {
        if (!put_metric(out, one))
            return false;
    }
    buf_puts(out, ""); /* no metrics are an empty text, not none */
    return !out->failed;
}
