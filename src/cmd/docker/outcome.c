/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "cmd/docker/docker.h"
#include "engine/run.h"

/* Go writes its errors in small letters. */
static const char *reason(int sys)
{
    switch (sys) {
    case ENOENT:
        return "no such file or directory";
    case EACCES:
        return "permission denied";
    case ENOTDIR:
        return "not a directory";
    case ENOEXEC:
        return "exec format error";
    case E2BIG:
        return "argument list too long";
    default:
        return strerror(sys);
    }
}

static int not_started(const struct run_result *res, const char *before, const char *word,
                       const char *workdir)
{
    bool at_folder = res->exec_at && strstr(res->exec_at, "folder");
    int sys = word[0] ? res->exec_sys : ENOENT; /* "" would be the folder itself */

    if (at_folder) {
        (void)fprintf(
            stderr,
            "%sunable to start container process: chdir to cwd (\"%s\") set in config.json "
            "failed: %s: unknown\n",
            before, workdir ? workdir : "/", reason(res->exec_sys));
        return 126;
    }
    if (sys == ENOENT && !strchr(word, '/'))
        (void)fprintf(
            stderr,
            "%sunable to start container process: exec: \"%s\": executable file not found "
            "in $PATH: unknown\n",
            before, word);
    else
        (void)fprintf(stderr,
                      "%sunable to start container process: exec: \"%s\": %s%s%s%s: unknown\n",
                      before, word, sys == ENOENT || sys == ENOTDIR ? "stat " : "",
                      sys == ENOENT || sys == ENOTDIR ? word : "",
                      sys == ENOENT || sys == ENOTDIR ? ": " : "", reason(sys));
    return sys == ENOENT ? 127 : 126;
}

int outcome_status(const struct run_result *res, const char *before, const char *word,
                   const char *workdir)
{
    char text[256];

    if (!res->started && res->exec_sys)
        return not_started(res, before, word, workdir);
    if (run_limit_text(res, text, sizeof(text))[0])
        say_note("%s", text);
    return run_exit_status(res);
}

int outcome_of_start(const struct error *err, const char *before, const char *word,
                     const char *workdir)
{
    struct run_result res = {.exec_sys = err->sys, .exec_at = "execute"};

    if (err->code != ERR_SYS || !err->sys)
        return 0;
    if (strncmp(err->msg, "enter the folder '", 18) == 0)
        res.exec_at = "enter the folder";
    else if (strncmp(err->msg, "execute '", 9) != 0)
        return 0;
    return not_started(&res, before, word, workdir);
}
