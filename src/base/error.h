/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What went wrong, for people and for programs.
 *
 * A function whose last parameter is `struct error *err` fills it exactly when its result is
 * negative. The caller owns it; nothing is allocated, so it works when memory is gone. Functions
 * of base/ without that parameter return -errno and say nothing.
 */
enum error_code {
    ERR_NONE,
    ERR_SYS,         /* a system call failed; see .sys */
    ERR_INVALID,     /* the request is malformed */
    ERR_DENIED,      /* a rule says no */
    ERR_NOT_FOUND,   /* no such box, tool, file, ... */
    ERR_TOO_LARGE,   /* a limit of ours was reached */
    ERR_TIMEOUT,     /* a deadline of ours passed */
    ERR_UNSUPPORTED, /* this host cannot do that */
    ERR_EXISTS,      /* the name is taken */
};

struct error {
    enum error_code code;
    int sys; /* errno, or 0 */
    char msg[512];
};

/* All three return -code, so that a failure is reported and returned in one line. */
int error_set(struct error *err, enum error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* r is a negative errno; its text is appended. */
int error_sys(struct error *err, int r, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Puts "what we were doing: " before the message that is there. */
int error_wrap(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The name of a code as programs see it ("not_found"). */
const char *error_code_name(enum error_code code);
