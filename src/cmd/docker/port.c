/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/flags.h"
#include "sandbox/sandbox.h"

/*
 * Which host port leads to a port of the box. None does in this version: a port that was asked for
 * is said to be recorded, never printed as if somebody listened there.
 */
int cmd_port(int argc, char **argv)
{
    struct flags f = {
        .verb = "port", .usage = "CONTAINER [PRIVATE_PORT[/PROTO]]", .argc = argc, .argv = argv};
    autoptr(box_record) r = NULL;
    char want[64] = "";

    if (!flags_read(&f, 1, 2, NULL, NULL))
        return f.status;
    r = say_find(f.words[0]);
    if (!r)
        return 1;
    if (r->n_ports)
        say_note("published ports of %s are recorded; nothing is forwarded in this version",
                 r->name);
    if (f.n_words == 1)
        return 0;
    (void)snprintf(want, sizeof(want), "%s%s", f.words[1], strchr(f.words[1], '/') ? "" : "/tcp");
    (void)fprintf(stderr, "Error: No public port '%s' published for %s\n", want, f.words[0]);
    return 1;
}
