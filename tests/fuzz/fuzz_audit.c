/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The audit file as somebody else left it: verifying it never fails in a way of its own, and
 * appending to it never changes what is there. What was broken before is still told afterwards, at
 * the same line.
 */
#include "audit/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "tests/fuzz/fuzz.h"

static char folder[64];

static void remove_folder(void)
{
    static const char *const names[] = {"/logs/audit.jsonl", "/logs/audit.log", "/logs", ""};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        char path[128];

        (void)snprintf(path, sizeof(path), "%s%s", folder, names[i]);
        (void)remove(path);
    }
}

static void make_folder(void)
{
    if (folder[0])
        return;
    (void)snprintf(folder, sizeof(folder), "/tmp/clawden-fuzz-XXXXXX");
    if (!mkdtemp(folder))
        abort();
    (void)setenv("CLAWDEN_DATA_DIR", folder, 1);
    (void)atexit(remove_folder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct audit a = {.dir = -1};
    struct audit_check before, after;
    struct error err;
    autobuf none;
    char *now = malloc(size + 4096);
    ssize_t n;
    int fd;

    make_folder();
    if (!now || audit_open(&a, &err) < 0)
        abort();
    fd = openat(a.dir, "audit.jsonl", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || fd_write_full(fd, data, size) < 0)
        abort();
    (void)close(fd);
    buf_init(&none, 1);
    PROPERTY(audit_verify(&a, &before, &err) == 0, "verify: %s", err.msg);
    PROPERTY(!before.bad_line || (before.why && before.bad_line <= before.lines), "line %lu of %lu",
             before.bad_line, before.lines);
    PROPERTY(audit_append(&a, "e", "t", &none, &err) == 0, "append: %s", err.msg);
    n = fd_read_text(a.dir, "audit.jsonl", now, size + 4096);
    PROPERTY(n > (ssize_t)size && memcmp(now, data, size) == 0, "what was there has changed");
    PROPERTY(audit_verify(&a, &after, &err) == 0, "verify again: %s", err.msg);
    if (before.bad_line && size && data[size - 1] == '\n')
        PROPERTY(after.bad_line == before.bad_line, "line %lu, then %lu", before.bad_line,
                 after.bad_line);
    if (!before.bad_line)
        PROPERTY(!after.bad_line && after.lines == before.lines + 1,
                 "a good chain broke at line %lu", after.bad_line);
    audit_close(&a);
    free(now);
    return 0;
}
