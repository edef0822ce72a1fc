/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Ownership by scope: what is declared with one of these is released when the scope ends. */
#include <stdlib.h>
#include <unistd.h>

#define cleanup_(fn) __attribute__((cleanup(fn)))
#define autofree     cleanup_(cleanup_free)
#define autoclose    cleanup_(cleanup_close)
#define autoptr(S)   cleanup_(S##_freep) struct S *

/* Give `struct S` an autoptr(): S_free(NULL) must be a no-op. */
#define DEFINE_AUTOPTR(S)                      \
    static inline void S##_freep(struct S **p) \
    {                                          \
        S##_free(*p);                          \
    }

/* Moves a value out of var, which must be a plain name: it is evaluated twice. */
#define TAKE(var, empty)                \
    ({                                  \
        __typeof__(var) taken_ = (var); \
        (var) = (empty);                \
        taken_;                         \
    })
#define TAKE_PTR(p) TAKE(p, NULL)
#define TAKE_FD(fd) TAKE(fd, -1)

static inline void cleanup_free(void *p)
{
    free(*(void **)p);
}

static inline void cleanup_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

/* Closes *fd if it is open, and marks it closed. */
static inline void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(TAKE_FD(*fd));
}
