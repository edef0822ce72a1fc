/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --env-file: whatever stands in it, either it is refused or every variable has a proper name,
 * once. The first line, if it begins with '-', is a word of the command line instead.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "cmd/sandbox/sandbox.h"
#include "tests/fuzz/fuzz.h"

static void check_env(const struct options *o)
{
    for (size_t i = 0; i < o->n_env; i++) {
        const char *e = o->env[i];
        size_t n = strcspn(e, "=");

        PROPERTY(e[n] == '=' && n > 0, "'%s' is no variable", e);
        PROPERTY(strspn(e, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789") >=
                         n &&
                     !(e[0] >= '0' && e[0] <= '9'),
                 "'%s': its name is none", e);
        PROPERTY(!strchr(e, '\n'), "'%s' has two lines", e);
        for (size_t k = 0; k < i; k++)
            PROPERTY(strncmp(o->env[k], e, n + 1) != 0, "'%s' is there twice", e);
    }
    PROPERTY(!o->env || !o->env[o->n_env], "no end");
}

static void check_limits(const struct options *o)
{
    const struct box_limits *l = &o->spec.limits;

    PROPERTY(l->memory_bytes >= 4 << 20 && l->pids > 0 && l->tmp_bytes > 0, "a limit is gone");
    PROPERTY(l->memory_bytes <= INT64_MAX && l->cpu_milli <= 4096000, "a limit is too large");
}

static void run(int argc, char **argv)
{
    struct options o;

    if (options_parse(&o, argc, argv) == 0) {
        check_env(&o);
        check_limits(&o);
    }
    options_done(&o);
}

/* Messages about what is refused would drown the fuzzer's own. */
static void be_quiet(void)
{
    static bool done;
    int null, old;

    if (done)
        return;
    done = true;
    null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    old = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    if (null < 0 || old < 0)
        return;
    (void)dup2(null, STDERR_FILENO);
    (void)close(null);
    stderr = fdopen(old, "w"); /* properties still speak */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32], *s = fuzz_text(data, size), *words[8] = {(char *)"exec"};
    int fd = memfd_create("env", MFD_CLOEXEC), n = 1;

    be_quiet();
    if (fd < 0)
        abort();
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    (void)fd_write_full(fd, data, size);
    words[n++] = (char *)"--env-file";
    words[n++] = path;
    run(n, words);

    n = 1;
    for (char *save = NULL, *w = strtok_r(s, "\n", &save); w && n < 7 && w[0] == '-';
         w = strtok_r(NULL, "\n", &save))
        if (strncmp(w, "--env-f", 7) != 0) /* no files of the host */
            words[n++] = w;
    words[n] = NULL;
    run(n, words);
    (void)close(fd);
    free(s);
    return 0;
}
