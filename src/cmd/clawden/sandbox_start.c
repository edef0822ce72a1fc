/* SPDX-License-Identifier: Apache-2.0 */
/* The box of a session, before anybody calls: found or made, set up, started. The gateway makes its
 * boxes so, in a process that knows nothing of the gateway's. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/log.h"
#include "cmd/clawden/decision.h"
#include "cmd/clawden/sandbox.h"

#define STATUS_REFUSED 125

static void usage(void)
{
    puts("clawden sandbox start [--session KEY] [--agent ID] [--network] [--sibling] [--json]\n"
         "\n"
         "Finds or makes the box of a session, runs its setup command if that was not done, and\n"
         "leaves it running: the first call does not wait for it. Prints its id.\n"
         "\n"
         "  --session KEY       whose box it is (agent:<agent>:main)\n"
         "  --agent ID          the agent (that of the session, else main)\n"
         "  --network           the box with a network, where there are two\n"
         "  --sibling           the box beside it, for calls that come from within it");
    puts(settings_args_help);
    puts("\n"
         "  clawden sandbox start --session agent:main:work\n"
         "\n"
         "Exit status: 0, or 125 if the box could not be had.");
}

static int report(const struct settings_args *a, const struct box_record *box, const char *note,
                  const struct error *err)
{
    json_t *out;

    if (!a->json) {
        if (note)
            log_warn("%s", note);
        if (box)
            puts(box->id);
        else
            log_error("%s", err->msg);
        return box ? 0 : STATUS_REFUSED;
    }
    if (box)
        out = json_pack("{s:s,s:s,s:s*}", "id", box->id, "name", box->name, "note", note);
    else
        out = json_pack("{s:{s:s,s:s}}", "error", "code", error_code_name(err->code), "message",
                        err->msg);
    (void)json_dumpf(out, stdout, JSON_COMPACT);
    puts("");
    json_decref(out);
    return box ? 0 : STATUS_REFUSED;
}

static int start(struct settings_args *a, bool network, bool sibling)
{
    auto_decision d = {0};
    autoptr(scope_plan) plan = NULL;
    autoptr(box_record) box = NULL;
    autofree char *note = NULL;
    struct error err;
    int r;

    a->in.remember = true;
    r = decision_load(a, "main", &d, &err);
    if (r >= 0) {
        const struct scope_request q = {.config = d.config,
                                        .settings = &d.settings,
                                        .policy = &d.policy,
                                        .agent = d.agent,
                                        .session = d.session,
                                        .network = network,
                                        .sibling = sibling};

        r = scope_plan_make(&q, &plan, &err);
    }
    if (r >= 0)
        r = scope_box(plan, &box, &note, &err);
    return report(a, r < 0 ? NULL : box, note, &err);
}

int sandbox_verb_start(int argc, char **argv)
{
    auto_settings_args a = {0};
    bool network = false, sibling = false;

    for (int i = 1; i < argc; i++) {
        int r;

        if (sandbox_wants_help(argv[i])) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "--network") == 0) {
            network = true;
            continue;
        }
        if (strcmp(argv[i], "--sibling") == 0) {
            sibling = true;
            continue;
        }
        r = settings_args_take(&a, argc, argv, &i);
        if (r <= 0)
            return r < 0 ? 2 : sandbox_unknown("start", argv[i]);
    }
    return start(&a, network, sibling);
}
