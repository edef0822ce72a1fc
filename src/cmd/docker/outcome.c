/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/docker/outcome.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

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

    if (at_folder) {
        (void)fprintf(
            stderr,
            "%sunable to start container process: chdir to cwd (\"%s\") set in config.json "
            "failed: %s: unknown\n",
            before, workdir ? workdir : "/", reason(res->exec_sys));
        return 126;
    }
    if (res->exec_sys == ENOENT && !strchr(word, '/'))
        (void)fprintf(
            stderr,
            "%sunable to start container process: exec: \"%s\": executable file not found "
            "in $PATH: unknown\n",
            before, word);
    else
        (void)fprintf(stderr,
                      "%sunable to start container process: exec: \"%s\": %s%s%s%s: unknown\n",
                      before, word, res->exec_sys == ENOENT ? "stat " : "",
                      res->exec_sys == ENOENT ? word : "", res->exec_sys == ENOENT ? ": " : "",
                      reason(res->exec_sys));
    return res->exec_sys == ENOENT ? 127 : 126;
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
