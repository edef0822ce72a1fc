/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a box may reach, as it is asked for: the text that stands in its folder, goes to the relay,
 * and comes of settings or of options. rules.h reads the entries; nothing here decides.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/rules.h"

struct buf;
struct error;
struct jtext;

#define LIMIT_WISH_TEXT (2u << 20) /* bytes of it as JSON: two full lists of rules fit */
#define WISH_PUBLIC     "public:*" /* the whole public internet: network "bridge" */

/* How much, of a box, of one host, of one call. 0: the relay's standard. */
struct wish_budgets {
    uint64_t bytes, bytes_per_sec, host_bytes, call_bytes;
    uint32_t conns, host_conns; /* at once */
    uint32_t new_per_sec;       /* connections and questions */
};

struct wish {
    char **allow, **deny; /* owned */
    size_t n_allow, n_deny;
    uint16_t host_ports[LIMIT_HOST_PORTS];
    size_t n_host_ports;
    struct wish_budgets budgets;
    /* What to change, for whoever is denied: "sandbox.egress.allow", "--allow-network". */
    char *allow_key, *deny_key, *host_ports_key, *budgets_key;
};

int wish_new(const char *allow_key, const char *deny_key, const char *host_ports_key,
             const char *budgets_key, struct wish **ret);
struct wish *wish_copy(const struct wish *w);
void wish_free(struct wish *w);
DEFINE_AUTOPTR(wish)

enum wish_list { WISH_ALLOW, WISH_DENY };

/* Nothing to do when it is in the list. -ENOMEM; -E2BIG: more than LIMIT_RULES. */
int wish_add(struct wish *w, enum wish_list which, const char *entry);
/* From every list; how many there were. */
size_t wish_remove(struct wish *w, const char *entry);
/* -E2BIG: more than LIMIT_HOST_PORTS. */
int wish_add_host_port(struct wish *w, uint16_t port);

bool wish_equal(const struct wish *a, const struct wish *b);

/* One JSON object. */
void wish_write(const struct wish *w, struct buf *out);
int wish_read(const struct jtext *object, struct wish **ret, struct error *err);
int wish_parse(const char *text, size_t len, struct wish **ret, struct error *err);

/* The keys stay the wish's: it must outlive the rules. */
int wish_rules(const struct wish *w, struct rules **ret, struct error *err);

/* Ports that matter where only certain ones can be caught (net.h): how many of `max`. */
size_t wish_ports(const struct wish *w, uint16_t *ret, size_t max);
