/* SPDX-License-Identifier: Apache-2.0 */
/* docker's --env-file: refused, or every name is there once and without blanks; no value in a
 * message. */
#include "base/error.h"
#include "cmd/docker/env.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1);
    struct env e = {0};
    struct error err = {0};
    int r;

    if (!copy)
        abort();
    memcpy(copy, data, size);
    copy[size] = 0;
    r = env_parse(&e, "file", copy, size, &err);
    PROPERTY(r >= 0 || err.msg[0], "no reason");
    PROPERTY(r < 0 || !memchr(data, 0, size), "a NUL was taken");
    for (size_t i = 0; i < e.n; i++) {
        size_t n = strcspn(e.list[i], "=");

        PROPERTY(n > 0 && e.list[i][n] == '=', "'%s' is no variable", e.list[i]);
        PROPERTY(strcspn(e.list[i], " \t\v\f\r") >= n, "'%s' has a blank in its name", e.list[i]);
        PROPERTY(!strchr(e.list[i], '\n'), "'%s' has two lines", e.list[i]);
        for (size_t k = 0; k < i && e.n < 200; k++)
            PROPERTY(strncmp(e.list[k], e.list[i], n + 1) != 0, "'%s' is there twice", e.list[i]);
    }
    PROPERTY(!e.list || !e.list[e.n], "no end");
    env_done(&e);
    free(copy);
    return 0;
}
