/* SPDX-License-Identifier: Apache-2.0 */
#include "egress/wish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/jtext.h"

/* ---- making ---- */

static bool copy_text(char **ret, const char *text)
{
    *ret = strdup(text ? text : "");
    return *ret;
}

int wish_new(const char *allow_key, const char *deny_key, const char *host_ports_key,
             const char *budgets_key, struct wish **ret)
{
    autoptr(wish) w = calloc(1, sizeof(*w));

    if (!w || !copy_text(&w->allow_key, allow_key) || !copy_text(&w->deny_key, deny_key) ||
        !copy_text(&w->host_ports_key, host_ports_key) || !copy_text(&w->budgets_key, budgets_key))
        return -ENOMEM;
    *ret = TAKE_PTR(w);
    return 0;
}

static void free_list(char **list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(list[i]);
    free(list);
}

void wish_free(struct wish *w)
{
    if (!w)
        return;
    free_list(w->allow, w->n_allow);
    free_list(w->deny, w->n_deny);
    free(w->allow_key);
    free(w->deny_key);
    free(w->host_ports_key);
    free(w->budgets_key);
    free(w);
}

static int add_all(struct wish *w, enum wish_list which, char *const *list, size_t n)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < n; i++)
        r = wish_add(w, which, list[i]);
    return r;
}

struct wish *wish_copy(const struct wish *w)
{
    autoptr(wish) new = NULL;

    if (wish_new(w->allow_key, w->deny_key, w->host_ports_key, w->budgets_key, &new) < 0 ||
        add_all(new, WISH_ALLOW, w->allow, w->n_allow) < 0 ||
        add_all(new, WISH_DENY, w->deny, w->n_deny) < 0)
        return NULL;
    memcpy(new->host_ports, w->host_ports, sizeof(w->host_ports));
    new->n_host_ports = w->n_host_ports;
    new->budgets = w->budgets;
    return TAKE_PTR(new);
}

/* ---- lists ---- */

int wish_add(struct wish *w, enum wish_list which, const char *entry)
{
    char ***list = which == WISH_ALLOW ? &w->allow : &w->deny, **grown;
    size_t *n = which == WISH_ALLOW ? &w->n_allow : &w->n_deny;

    for (size_t i = 0; i < *n; i++)
        if (strcmp((*list)[i], entry) == 0)
            return 0;
    if (*n >= LIMIT_RULES)
        return -E2BIG;
    grown = realloc(*list, (*n + 1) * sizeof(**list));
    if (!grown)
        return -ENOMEM;
    *list = grown;
    if (!copy_text(&grown[*n], entry))
        return -ENOMEM;
    ++*n;
    return 0;
}

static size_t remove_from(char **list, size_t *n, const char *entry)
{
    size_t kept = 0, had = *n;

    for (size_t i = 0; i < had; i++) {
        if (strcmp(list[i], entry) == 0)
            free(list[i]);
        else
            list[kept++] = list[i];
    }
    *n = kept;
    return had - kept;
}

size_t wish_remove(struct wish *w, const char *entry)
{
    return remove_from(w->allow, &w->n_allow, entry) + remove_from(w->deny, &w->n_deny, entry);
}

int wish_add_host_port(struct wish *w, uint16_t port)
{
    for (size_t i = 0; i < w->n_host_ports; i++)
        if (w->host_ports[i] == port)
            return 0;
    if (w->n_host_ports >= LIMIT_HOST_PORTS)
        return -E2BIG;
    w->host_ports[w->n_host_ports++] = port;
    return 0;
}

static bool same_list(char *const *a, size_t n_a, char *const *b, size_t n_b)
{
    bool same = n_a == n_b;

    for (size_t i = 0; same && i < n_a; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

bool wish_equal(const struct wish *a, const struct wish *b)
{
    return same_list(a->allow, a->n_allow, b->allow, b->n_allow) &&
           same_list(a->deny, a->n_deny, b->deny, b->n_deny) &&
           a->n_host_ports == b->n_host_ports &&
           memcmp(a->host_ports, b->host_ports, a->n_host_ports * sizeof(*a->host_ports)) == 0 &&
           a->budgets.bytes == b->budgets.bytes &&
           a->budgets.bytes_per_sec == b->budgets.bytes_per_sec &&
           a->budgets.host_bytes == b->budgets.host_bytes &&
           a->budgets.call_bytes == b->budgets.call_bytes && a->budgets.conns == b->budgets.conns &&
           a->budgets.host_conns == b->budgets.host_conns &&
           a->budgets.new_per_sec == b->budgets.new_per_sec &&
           strcmp(a->allow_key, b->allow_key) == 0 && strcmp(a->deny_key, b->deny_key) == 0 &&
           strcmp(a->host_ports_key, b->host_ports_key) == 0 &&
           strcmp(a->budgets_key, b->budgets_key) == 0;
}

/* ---- as text ---- */

void wish_write(const struct wish *w, struct buf *out)
{
    buf_puts(out, "{");
    buf_json_strings(out, "allow", w->allow, w->n_allow);
    buf_json_strings(out, "deny", w->deny, w->n_deny);
    buf_json_key(out, "host_ports");
    for (size_t i = 0; i < w->n_host_ports; i++)
        buf_printf(out, "%s%u", i ? "," : "[", w->host_ports[i]);
    buf_puts(out, w->n_host_ports ? "]" : "[]");
    buf_json_num(out, "bytes", (long long)w->budgets.bytes);
    buf_json_num(out, "bytes_per_sec", (long long)w->budgets.bytes_per_sec);
    buf_json_num(out, "host_bytes", (long long)w->budgets.host_bytes);
    buf_json_num(out, "call_bytes", (long long)w->budgets.call_bytes);
    buf_json_num(out, "conns", w->budgets.conns);
    buf_json_num(out, "host_conns", w->budgets.host_conns);
    buf_json_num(out, "new_per_sec", w->budgets.new_per_sec);
    buf_json_str(out, "allow_key", w->allow_key);
    buf_json_str(out, "deny_key", w->deny_key);
    buf_json_str(out, "host_ports_key", w->host_ports_key);
    buf_json_str(out, "budgets_key", w->budgets_key);
    buf_puts(out, "}");
}

static int read_list(struct wish *w, enum wish_list which, const struct jtext *v, struct error *err)
{
    int r = 0;

    for (const struct jtext *e = jtext_first(v); r >= 0 && e; e = jtext_next(e))
        r = jtext_string(e) ? wish_add(w, which, jtext_string(e)) : -EINVAL;
    return r < 0 ? error_sys(err, r, "read the rules of a box") : 0;
}

static int read_ports(struct wish *w, const struct jtext *v, struct error *err)
{
    int64_t port;

    for (const struct jtext *e = jtext_first(v); e; e = jtext_next(e))
        if (!jtext_int(e, &port) || port < 1 || port > UINT16_MAX ||
            wish_add_host_port(w, (uint16_t)port) < 0)
            return error_set(err, ERR_INVALID, "the rules of a box: not a port of the host's");
    return 0;
}

static uint64_t number(const struct jtext *object, const char *key, uint64_t max)
{
    int64_t n;

    if (!jtext_int(jtext_get(object, key), &n) || n < 0)
        return 0;
    return (uint64_t)n > max ? max : (uint64_t)n;
}

int wish_read(const struct jtext *o, struct wish **ret, struct error *err)
{
    autoptr(wish) w = NULL;
    int r;

    if (wish_new(jtext_string(jtext_get(o, "allow_key")), jtext_string(jtext_get(o, "deny_key")),
                 jtext_string(jtext_get(o, "host_ports_key")),
                 jtext_string(jtext_get(o, "budgets_key")), &w) < 0)
        return error_sys(err, -ENOMEM, "read the rules of a box");
    w->budgets = (struct wish_budgets){
        .bytes = number(o, "bytes", INT64_MAX),
        .bytes_per_sec = number(o, "bytes_per_sec", INT64_MAX),
        .host_bytes = number(o, "host_bytes", INT64_MAX),
        .call_bytes = number(o, "call_bytes", INT64_MAX),
        .conns = (uint32_t)number(o, "conns", UINT32_MAX),
        .host_conns = (uint32_t)number(o, "host_conns", UINT32_MAX),
        .new_per_sec = (uint32_t)number(o, "new_per_sec", UINT32_MAX),
    };
    r = read_list(w, WISH_ALLOW, jtext_get(o, "allow"), err);
    if (r >= 0)
        r = read_list(w, WISH_DENY, jtext_get(o, "deny"), err);
    if (r >= 0)
        r = read_ports(w, jtext_get(o, "host_ports"), err);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(w);
    return 0;
}

int wish_parse(const char *text, size_t len, struct wish **ret, struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    int r = jtext_parse(text, len, &doc, err);

    return r < 0 ? error_wrap(err, "the rules of a box") : wish_read(jtext_root(doc), ret, err);
}

/* ---- what it means ---- */

int wish_rules(const struct wish *w, struct rules **ret, struct error *err)
{
    return rules_parse(&(struct rules_source){.allow = (const char *const *)w->allow,
                                              .deny = (const char *const *)w->deny,
                                              .n_allow = w->n_allow,
                                              .n_deny = w->n_deny,
                                              .host_ports = w->host_ports,
                                              .n_host_ports = w->n_host_ports,
                                              .allow_key = w->allow_key,
                                              .deny_key = w->deny_key,
                                              .host_ports_key = w->host_ports_key},
                       ret, err);
}

static size_t add_port(uint16_t *list, size_t n, size_t max, unsigned long port)
{
    for (size_t i = 0; i < n; i++)
        if (list[i] == port)
            return n;
    if (n < max && port >= 1 && port <= UINT16_MAX)
        list[n++] = (uint16_t)port;
    return n;
}

size_t wish_ports(const struct wish *w, uint16_t *ret, size_t max)
{
    static const uint16_t usual[] = {443, 80, 22, 8080, 8443};
    size_t n = 0;

    for (size_t i = 0; i < sizeof(usual) / sizeof(*usual); i++)
        n = add_port(ret, n, max, usual[i]);
    for (size_t i = 0; i < w->n_host_ports; i++)
        n = add_port(ret, n, max, w->host_ports[i]);
    for (size_t i = 0; i < w->n_allow; i++) {
        const char *colon = strrchr(w->allow[i], ':');

        if (colon)
            n = add_port(ret, n, max, strtoul(colon + 1, NULL, 10));
    }
    return n;
}
