/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* clawden-gateway: what its files share. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/front.h"

struct buf;
struct error;

#define GATEWAY_PORT 18789u
#define PORTS_TRIED  32u /* of the standard one, if nobody asked for a port */
#define LIMIT_NAMES  64u /* --host and --origin */

struct options {
    const char *listen[LIMIT_FRONT_LISTENERS];
    size_t n_listen;
    const char *hosts[LIMIT_NAMES], *origins[LIMIT_NAMES];
    size_t n_hosts, n_origins;
    const char *certificate, *key; /* files, PEM */
    bool open_metrics, stdio, logs, no_link;
    const char *agent, *session; /* of --stdio */
};

/* What is listened on: sockets, and how people are told. */
struct listening {
    struct front_listener list[LIMIT_FRONT_LISTENERS];
    size_t n;
    char url[256]; /* of the first that a browser can open; "" */
    bool is_next;  /* the standard port was taken, this is the next one */
};

/* -1: go on; else the exit status. */
int options_read(struct options *o, int argc, char **argv);
/* Sockets that were inherited (LISTEN_FDS), those that were asked for, or the standard one. */
int listening_open(const struct options *o, struct listening *ret, struct error *err);
void listening_close(struct listening *l);
/* What the front has to know, as JSON text; certificates are read here. */
int facts_write(const struct options *o, struct buf *ret, struct error *err);
/* Tells whoever started us (sd_notify). */
void notify(const char *text);
