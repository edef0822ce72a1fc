/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * May a box reach this host and port? One pure function of (rules, host, port), and of the address
 * once the name is resolved. No clock, no network, nothing remembered.
 *
 * An entry is
 *     host              ports 443 and 80 of exactly this name
 *     *.suffix          of every name below it, at any depth; not of the suffix itself
 *     192.0.2.7  [2001:db8::7]  10.0.0.0/8  2001:db8::/32     of these addresses
 *     public            of every public address, by name or as it is
 * each with ":PORT" for that port alone, or ":*" for every port. In the deny list an entry without
 * a port means every port. Deny beats allow; what no entry allows is denied; no entries: all is.
 *
 * A name is reached only at public addresses, unless an entry names the special address too: say
 * "ollama:11434" and "172.18.0.0/16:11434". An address entry alone lets no name be resolved: a
 * question to a resolver is a way out as well. Loopback, multicast and unspecified addresses cannot
 * be allowed; the host's own loopback is reached as host.clawden.internal (or host.docker.internal)
 * at the ports of `host_ports`, and no others.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "egress/host.h"

struct error;

#define LIMIT_RULES        4096u /* entries of one list: each decision looks at all */
#define LIMIT_RULE_TEXT    300u  /* bytes of an entry: a name, a port, room to be wrong */
#define LIMIT_HOST_PORTS   64u   /* ports of the host's loopback; people name one or two */
#define LIMIT_RULES_REASON 640u  /* a sentence with a host and an entry in it */

/* What the settings say. Lists are borrowed. */
struct rules_source {
    const char *const *allow, *const *deny;
    size_t n_allow, n_deny;
    const uint16_t *host_ports;
    size_t n_host_ports;
    /* The keys of the settings, named in errors and denials; kept by reference. */
    const char *allow_key, *deny_key, *host_ports_key;
};

struct rules;

/* An error names the list, the entry and why. Nothing is half taken. */
int rules_parse(const struct rules_source *source, struct rules **ret, struct error *err);
void rules_free(struct rules *r);
DEFINE_AUTOPTR(rules)

enum egress_decision {
    EGRESS_DENY,
    EGRESS_RESOLVE,   /* the name is fine: each of its addresses has to be asked for */
    EGRESS_ALLOW,     /* this address may be dialled */
    EGRESS_HOST_PORT, /* the host's loopback, at this port */
};

struct egress_verdict {
    enum egress_decision decision;
    const char *rule;    /* the entry that decided, as it was written; NULL: none did */
    const char *setting; /* the key that would change it; NULL: none would */
    char reason[LIMIT_RULES_REASON];
};

/* Before anything is resolved or dialled. */
void rules_decide_name(const struct rules *r, const struct host *host, uint16_t port,
                       struct egress_verdict *ret);
/* For an address that `host` has. ALLOW or DENY, and it decides about the name again. */
void rules_decide_address(const struct rules *r, const struct host *host, uint16_t port,
                          const struct address *address, struct egress_verdict *ret);
/* After that, for an address that is this very machine's: whatever it listens on would be open to
 * the box, past every firewall. As for special addresses, an entry has to name it. */
void rules_decide_own(const struct rules *r, const struct host *host, uint16_t port,
                      const struct address *address, struct egress_verdict *ret);
/* May this name be answered by the box's resolver: is there a port at which it may be reached? */
void rules_decide_lookup(const struct rules *r, const struct host *host,
                         struct egress_verdict *ret);
