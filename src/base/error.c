/* SPDX-License-Identifier: Apache-2.0 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM_FOR_REASON 64

int error_set(struct error *err, enum error_code code, const char *fmt, ...)
{
    va_list ap;

    err->code = code;
    err->sys = 0;
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    return -(int)code;
}

int error_sys(struct error *err, int r, const char *fmt, ...)
{
    va_list ap;
    size_t n;

    err->code = ERR_SYS;
    err->sys = -r;
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    n = strlen(err->msg);
    if (n > sizeof(err->msg) - ROOM_FOR_REASON) /* a long path must not hide the reason */
        n = sizeof(err->msg) - ROOM_FOR_REASON;
    (void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(-r));
    return -ERR_SYS;
}

int error_wrap(struct error *err, const char *fmt, ...)
{
    char old[sizeof(err->msg)];
    va_list ap;
    size_t n;

    memcpy(old, err->msg, sizeof(old));
    va_start(ap, fmt);
    (void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
    va_end(ap);
    n = strlen(err->msg);
    (void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
    return -(int)err->code;
}

const char *error_code_name(enum error_code code)
{
    switch (code) {
    case ERR_NONE:
        return "none";
    case ERR_SYS:
        return "system";
    case ERR_INVALID:
        return "invalid";
    case ERR_DENIED:
        return "denied";
    case ERR_NOT_FOUND:
        return "not_found";
    case ERR_TOO_LARGE:
        return "too_large";
    case ERR_TIMEOUT:
        return "timeout";
    case ERR_UNSUPPORTED:
        return "unsupported";
    case ERR_EXISTS:
        return "exists";
    }
    return "unknown";
}
