/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "config/settings.h"
#include "sandbox/scope_parts.h"

/* Where it stands, or where it would: what is to be changed. */
static const char *key_of(const struct settings *s, enum setting_id id, char *text, size_t size)
{
    return s->from[id].path ? s->from[id].path : setting_full_path(&settings_table[id], text, size);
}

static int add_list(struct wish *w, enum wish_list which, const json_t *list)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++)
        r = wish_add(w, which, json_string_value(json_array_get(list, i)));
    return r;
}

static int add_ports(struct wish *w, const json_t *list)
{
    int r = 0;

    for (size_t i = 0; r >= 0 && i < json_array_size(list); i++)
        r = wish_add_host_port(w, (uint16_t)json_integer_value(json_array_get(list, i)));
    return r;
}

static int read_budgets(const struct settings *s, struct wish_budgets *b, struct error *err)
{
    const struct {
        enum setting_id id;
        uint64_t *to;
    } sizes[] = {{SETTING_EGRESS_BYTES, &b->bytes},
                 {SETTING_EGRESS_HOST_BYTES, &b->host_bytes},
                 {SETTING_EGRESS_CALL_BYTES, &b->call_bytes},
                 {SETTING_EGRESS_RATE, &b->bytes_per_sec}};
    int r = 0;

    for (size_t i = 0; r >= 0 && i < sizeof(sizes) / sizeof(*sizes); i++)
        if (s->value[sizes[i].id])
            r = scope_size(s->value[sizes[i].id], sizes[i].to, err);
    b->conns = (uint32_t)settings_number(s, SETTING_EGRESS_CONNS);
    b->host_conns = (uint32_t)settings_number(s, SETTING_EGRESS_HOST_CONNS);
    b->new_per_sec = (uint32_t)settings_number(s, SETTING_EGRESS_NEW);
    return r;
}

int scope_wish(const struct settings *s, const char *network, struct wish **ret, struct error *err)
{
    char allow[128], deny[128], ports[128];
    autoptr(rules) rules = NULL;
    autoptr(wish) w = NULL;
    int r;

    *ret = NULL;
    if (strcmp(network, "none") == 0)
        return 0;
    r = wish_new(key_of(s, SETTING_EGRESS_ALLOW, allow, sizeof(allow)),
                 key_of(s, SETTING_EGRESS_DENY, deny, sizeof(deny)),
                 key_of(s, SETTING_EGRESS_HOST_PORTS, ports, sizeof(ports)),
                 "agents.defaults.sandbox.egress", &w);
    if (r >= 0 && strcmp(network, "allowlist") != 0)
        r = wish_add(w, WISH_ALLOW, WISH_PUBLIC);
    if (r >= 0)
        r = add_list(w, WISH_ALLOW, s->value[SETTING_EGRESS_ALLOW]);
    if (r >= 0)
        r = add_list(w, WISH_DENY, s->value[SETTING_EGRESS_DENY]);
    if (r >= 0)
        r = add_ports(w, s->value[SETTING_EGRESS_HOST_PORTS]);
    if (r < 0)
        return error_sys(err, r, "the rules of egress");
    r = read_budgets(s, &w->budgets, err);
    if (r >= 0)
        r = wish_rules(w, &rules, err);
    if (r >= 0)
        *ret = TAKE_PTR(w);
    return r;
}
