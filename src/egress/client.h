/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A box gets its network: sockets in its namespace (net.h), handed to clawden-egress, which is
 * started if it is not there. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "egress/wire.h"
#include "egress/wish.h"

struct buf;
struct error;

/* A port of the host's loopback, already listened on, and the port of the box's that it leads to.
 */
struct client_port {
    int listener;
    uint16_t port;
};

struct client_box {
    const char *id;
    pid_t init; /* that cannot end meanwhile, or the box is another one */
    const struct wish *wish;
    const struct client_port *ports; /* their descriptors stay the caller's */
    size_t n_ports;
};

/* Nothing to do when the relay has the box already. */
int client_join(const struct client_box *b, struct error *err);

/*
 * A command begins in the box: *ret_fd is to be held open until it has ended. -ERR_NOT_FOUND: the
 * relay does not know the box, or there is none (then join it again).
 */
int client_use(const char *box, const char *call, int *ret_fd, struct error *err);

/* From now on these rules, also for what is open. -ERR_NOT_FOUND as above. */
int client_change(const char *box, const struct wish *wish, struct error *err);

/* What the relay knows of the box, as a JSON object. -ERR_NOT_FOUND as above. */
int client_look(const char *box, struct buf *ret, struct error *err);

/* Ends the relay, if there is one. */
int client_stop(struct error *err);

/* Variables for programs that know proxies; ends with NULL. */
extern const char *const client_proxy_env[];
