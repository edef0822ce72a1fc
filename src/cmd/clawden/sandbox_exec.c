/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One tool call, the whole way: configuration, decision, box, command. What is denied is not run,
 * and what would run outside of a box is not run unless that is asked for in so many words.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/limits.h"
#include "base/log.h"
#include "cmd/clawden/decision.h"
#include "cmd/clawden/sandbox.h"
#include "config/config.h"

#define STATUS_REFUSED 125

struct exec_call {
    struct settings_args args;
    bool interactive, direct;
    char **argv; /* behind `--`; NULL: args.command is the command */
    char *line;  /* what is decided about */
    struct decision d;
    struct verdict verdict;
};

static void usage(void)
{
    puts(
        "clawden sandbox exec [options] (--command LINE | -- WORD...)\n"
        "\n"
        "Runs a command as a tool call of a session would run: decided by the tool policy, routed "
        "to\n"
        "the isolated box or the one with a network, the box made if it is missing. The exit "
        "status\n"
        "is the command's; 125: it was denied, the box could not be had, or the words were wrong.\n"
        "\n"
        "  --session KEY       whose call it is (agent:<agent>:cli)\n"
        "  --agent ID          the agent (that of the session, else main)\n"
        "  --tool NAME         the tool that is called (exec)\n"
        "  --command LINE      runs with `sh -lc`; without a shell if a rule of networkExecAllow\n"
        "                      sends it to the box with a network\n"
        "  -i                  our standard input is the command's\n"
        "  --direct            run it here if the session is not sandboxed; else that is "
        "refused");
    puts(settings_args_help);
    puts("                      (one object about the call, on standard error)\n"
         "\n"
         "  clawden sandbox exec --session agent:main:work --command 'make && make test'\n"
         "  clawden sandbox exec --agent main -- gh pr list\n"
         "  clawden sandbox exec -e sandbox_mode=all -- id");
}

/* ---- the words ---- */

static int read_words(struct exec_call *x, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int r;

        if (strcmp(argv[i], "--") == 0) {
            x->argv = argv + i + 1;
            break;
        }
        if (sandbox_wants_help(argv[i])) {
            usage();
            return 0;
        }
        if (strcmp(argv[i], "-i") == 0 || strcmp(argv[i], "--interactive") == 0) {
            x->interactive = true;
        } else if (strcmp(argv[i], "--direct") == 0) {
            x->direct = true;
        } else {
            r = settings_args_take(&x->args, argc, argv, &i);
            if (r <= 0)
                return r < 0 ? STATUS_REFUSED : (sandbox_unknown("exec", argv[i]), STATUS_REFUSED);
        }
    }
    if ((x->argv && x->argv[0]) ? !x->args.command : x->args.command && !x->argv)
        return -1;
    log_error("sandbox exec: say what to run, one way: --command LINE, or -- WORD...");
    return STATUS_REFUSED;
}

/* ---- deciding ---- */

static int decide(struct exec_call *x)
{
    struct call call;
    struct error err;
    bool asked;

    x->args.in.remember = true;
    if (decision_load(&x->args, "cli", &x->d, &err) < 0) {
        log_error("%s", err.msg);
        return -1;
    }
    decision_say(x->d.config, true);
    call = decision_call(&x->d, &x->args, &asked);
    call.command = x->line;
    policy_decide(&x->d.policy, &call, &x->verdict);
    return 0;
}

static void print_json(const struct exec_call *x, const char *box, int status)
{
    autobuf b;

    buf_init(&b, LIMIT_JSON_RESULT);
    if (!x->args.json)
        return;
    buf_puts(&b, "{");
    buf_json_bool(&b, "allowed", x->verdict.allowed);
    buf_json_str(&b, "route", route_name(x->verdict.route));
    buf_json_str(&b, "tool", x->verdict.tool);
    buf_json_str(&b, "rule", x->verdict.rule);
    buf_json_str(&b, "reason", x->verdict.reason);
    buf_json_str(&b, "change", x->verdict.change ? x->verdict.change : "");
    buf_json_bool(&b, "shell", !x->argv && x->verdict.argv.n == 0);
    buf_json_str(&b, "box", box ? box : "");
    buf_json_num(&b, "exit", status);
    buf_puts(&b, "}");
    if (!b.failed)
        (void)fprintf(stderr, "%s\n", b.data);
}

static int refuse(const struct exec_call *x)
{
    const struct verdict *v = &x->verdict;

    if (x->args.json)
        print_json(x, NULL, STATUS_REFUSED);
    else
        log_error("%s: %s; %s changes that", v->allowed ? "not sandboxed" : "denied", v->reason,
                  v->change ? v->change : "the configuration");
    if (v->allowed && !x->args.json)
        log_error("--direct runs it here all the same, without a box");
    return STATUS_REFUSED;
}

/* ---- running ---- */

/* The words to execute: those that the policy has read, those that were given, or a shell's. */
static char *const *words_of(const struct exec_call *x, char *shell[4])
{
    if (x->verdict.argv.n)
        return x->verdict.argv.argv;
    if (x->argv)
        return x->argv;
    shell[0] = (char *)"sh";
    shell[1] = (char *)"-lc";
    shell[2] = x->line;
    shell[3] = NULL;
    return shell;
}

static int run_direct(const struct exec_call *x)
{
    char *shell[4];
    char *const *argv = words_of(x, shell);

    (void)execvp(argv[0], argv);
    log_error("execute '%s': %s", argv[0], strerror(errno));
    return errno == ENOENT ? 127 : 126;
}

static int run_in(const struct exec_call *x, const struct box_record *box, struct error *err)
{
    char *shell[4], text[256];
    const struct sandbox_exec what = {
        .argv = words_of(x, shell),
        .env = x->verdict.argv.n ? (char *const *)scope_routed_env : NULL,
        .interactive = x->interactive,
        .terminal = x->interactive && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)};
    struct run_result result;
    int r = sandbox_exec(box, &what, &result, err), status;

    if (r < 0)
        return r;
    status = run_exit_status(&result);
    if (!result.started && result.exec_sys) {
        bool at_folder = result.exec_at && strcmp(result.exec_at, "execute") != 0;

        log_error("%s '%s': %s", result.exec_at ? result.exec_at : "execute",
                  at_folder ? box->workdir : what.argv[0], strerror(result.exec_sys));
        status = result.exec_sys == ENOENT ? 127 : 126;
    } else if (run_limit_text(&result, text, sizeof(text))[0]) {
        log_error("%s", text);
    }
    print_json(x, box->name, status);
    return status;
}

static int run_boxed(struct exec_call *x)
{
    const struct scope_request q = {.config = x->d.config,
                                    .settings = &x->d.settings,
                                    .policy = &x->d.policy,
                                    .agent = x->d.agent,
                                    .session = x->d.session,
                                    .network = x->verdict.second_box};
    autoptr(scope_plan) plan = NULL;
    autoptr(box_record) box = NULL;
    autofree char *note = NULL;
    struct error err;
    int r = scope_plan_make(&q, &plan, &err);

    if (r >= 0)
        r = scope_box(plan, &box, &note, &err);
    if (note)
        log_warn("%s", note);
    if (r >= 0)
        r = run_in(x, box, &err);
    if (r < 0) {
        log_error("%s", err.msg);
        print_json(x, NULL, STATUS_REFUSED);
        return STATUS_REFUSED;
    }
    return r;
}

static int call(struct exec_call *x)
{
    x->line = x->argv ? words_quote(x->argv) : strdup(x->args.command);
    if (!x->line) {
        log_error("the command is too long");
        return STATUS_REFUSED;
    }
    if (decide(x) < 0)
        return STATUS_REFUSED;
    if (!x->verdict.allowed || (x->verdict.route == ROUTE_DIRECT && !x->direct))
        return refuse(x);
    return x->verdict.route == ROUTE_DIRECT ? run_direct(x) : run_boxed(x);
}

int sandbox_verb_exec(int argc, char **argv)
{
    struct exec_call x = {.interactive = false};
    int status = read_words(&x, argc, argv);

    if (status < 0)
        status = call(&x);
    verdict_done(&x.verdict);
    decision_done(&x.d);
    settings_args_done(&x.args);
    free(x.line);
    return status;
}
