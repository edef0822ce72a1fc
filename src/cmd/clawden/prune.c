/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "base/units.h"
#include "cmd/clawden/clawden.h"
#include "sandbox/sandbox.h"

#define HOUR_USEC 3600000000ll

static void say(void *arg, const struct box_record *r, const char *why)
{
    const struct sandbox_prune *p = arg;

    printf("%s %.12s %s (%s)\n", p->dry_run ? "would remove" : "removed", r->id, r->name, why);
}

static void usage(void)
{
    puts("clawden prune [--idle TIME] [--age TIME] [--dry-run]\n"
         "\n"
         "Removes boxes that nobody has run a command in for --idle (24h), or that are older than "
         "--age\n"
         "(168h, a week); 0 switches a rule off. A box with a running command is never removed, "
         "and\n"
         "workspaces stay what they are: folders of yours.");
}

static int set(const char *option, const char *value, int64_t *ret)
{
    uint64_t usec = 0;

    if (strcmp(value, "0") != 0 && units_parse_duration(value, &usec) < 0) {
        log_error("--%s '%s': not understood; write 24h, 30m, or 0 for never", option, value);
        return 2;
    }
    *ret = (int64_t)usec;
    return 0;
}

int cmd_prune(int argc, char **argv)
{
    struct sandbox_prune p = {
        .idle_usec = 24 * HOUR_USEC, .age_usec = 7 * 24 * HOUR_USEC, .on_prune = say};
    struct error err;
    int status = 0;

    p.arg = &p;
    for (int i = 1; i < argc && status == 0; i++) {
        if (strcmp(argv[i], "--dry-run") == 0) {
            p.dry_run = true;
        } else if (strcmp(argv[i], "--idle") == 0 && i + 1 < argc) {
            status = set("idle", argv[++i], &p.idle_usec);
        } else if (strcmp(argv[i], "--age") == 0 && i + 1 < argc) {
            status = set("age", argv[++i], &p.age_usec);
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage();
            return 0;
        } else {
            log_error("prune: '%s' is not known, or lacks its value: see 'clawden prune --help'",
                      argv[i]);
            return 2;
        }
    }
    if (status)
        return status;
    if (sandbox_prune(&p, &err) < 0) {
        log_error("%s", err.msg);
        return 1;
    }
    return 0;
}
