/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines: "+ENTRY" is allowed, "-ENTRY" denied, anything else is asked for (HOST:PORT). Lists are
 * refused with a reason, or decide so that fewer allow entries and more deny entries never allow
 * more, and no barred address is ever dialled.
 */
#include "egress/rules.h"

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

#define MOST 16

struct lists {
    const char *allow[MOST], *deny[MOST], *ask[MOST];
    size_t n_allow, n_deny, n_ask;
};

static void split(char *text, struct lists *l)
{
    for (char *line = text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        if (line[0] == '+' && l->n_allow < MOST)
            l->allow[l->n_allow++] = line + 1;
        else if (line[0] == '-' && l->n_deny < MOST)
            l->deny[l->n_deny++] = line + 1;
        else if (l->n_ask < MOST)
            l->ask[l->n_ask++] = line;
    }
}

static struct rules *parse(const struct lists *l, size_t n_allow, size_t n_deny)
{
    struct rules_source s = {.allow = l->allow,
                             .deny = l->deny,
                             .n_allow = n_allow,
                             .n_deny = n_deny,
                             .allow_key = "allow",
                             .deny_key = "deny",
                             .host_ports_key = "hostPorts"};
    struct rules *r = NULL;
    struct error err = {0};
    int result = rules_parse(&s, &r, &err);

    PROPERTY(result == 0 ? r != NULL : !r && strstr(err.msg, "entry"), "result %d: %s", result,
             err.msg);
    return r;
}

/* 0 denied, 1 to be resolved, 2 dialled. */
static int reach(const struct rules *r, const struct host *h, uint16_t port,
                 const struct address *a)
{
    struct egress_verdict name, address, lookup;

    rules_decide_name(r, h, port, &name);
    rules_decide_address(r, h, port, a, &address);
    rules_decide_lookup(r, h, &lookup);
    PROPERTY(name.reason[0] && address.reason[0] && lookup.reason[0], "no reason");
    PROPERTY(name.decision == EGRESS_DENY || h->kind != HOST_NAME || lookup.decision != EGRESS_DENY,
             "%s may be reached, but not looked up", h->text);
    if (address.decision != EGRESS_ALLOW)
        return name.decision != EGRESS_DENY;
    PROPERTY(name.decision != EGRESS_DENY && address.rule, "%s is dialled by no entry", h->text);
    PROPERTY(!address_class_is_barred(address_class(a)), "%s: a barred address", h->text);
    return 2;
}

static void check(const struct lists *l, const struct host *h, uint16_t port)
{
    static const char *const places[] = {"8.8.8.8", "10.0.0.1", "127.0.0.1",      "169.254.169.254",
                                         "fd00::1", "2600::1",  "64:ff9b::a00:1", "224.0.0.1"};
    autoptr(rules) all = parse(l, l->n_allow, l->n_deny);
    autoptr(rules) fewer = parse(l, l->n_allow - (l->n_allow > 0), l->n_deny);
    autoptr(rules) laxer = parse(l, l->n_allow, l->n_deny - (l->n_deny > 0));
    autoptr(rules) none = parse(l, 0, 0);

    for (size_t i = 0; i <= sizeof(places) / sizeof(*places); i++) {
        struct address a = h->address;
        int now;

        if (i < sizeof(places) / sizeof(*places))
            (void)address_parse(places[i], strlen(places[i]), &a);
        now = reach(all, h, port, &a);
        PROPERTY(reach(fewer, h, port, &a) <= now, "%s: fewer entries allow more", h->text);
        PROPERTY(now <= reach(laxer, h, port, &a), "%s: more denials allow more", h->text);
        PROPERTY(reach(none, h, port, &a) == 0, "%s: nothing allows it", h->text);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size < 4096 ? size : 4096);
    struct lists l = {0};
    struct rules *r;

    split(text, &l);
    r = parse(&l, l.n_allow, l.n_deny);
    rules_free(r);
    for (size_t i = 0; r && i < l.n_ask; i++) {
        struct host h;
        struct error err;
        uint16_t port;

        if (host_parse_authority(l.ask[i], strlen(l.ask[i]), 443, &h, &port, &err) == 0)
            check(&l, &h, port);
    }
    free(text);
    return 0;
}
