/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "cmd/fs/fs.h"

enum { STATUS_USAGE = 64 };

int fs_answer(const struct buf *b)
{
    return b->failed || fd_write_full(STDOUT_FILENO, b->data, b->len) < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
    static const char usage[] = "usage: clawden-fs canon PATH ALLOW_FINAL IDENTITY\n"
                                "       clawden-fs stat FOLDER NAME\n"
                                "       clawden-fs pinned OPERATION ROOT FOLDER [ARG...]\n";

    (void)signal(SIGPIPE, SIG_IGN); /* a temporary file is removed even if nobody listens */
    if (argc == 5 && strcmp(argv[1], "canon") == 0)
        return fs_canon(argv + 2);
    if (argc == 4 && strcmp(argv[1], "stat") == 0)
        return fs_stat(argv + 2);
    if (argc >= 2 && strcmp(argv[1], "pinned") == 0)
        return fs_pinned(argv + 2);
    (void)fd_write_full(STDERR_FILENO, usage, sizeof(usage) - 1);
    return STATUS_USAGE;
}
