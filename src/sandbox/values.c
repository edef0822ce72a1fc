/* SPDX-License-Identifier: Apache-2.0 */
#include "sandbox/values.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/error.h"
#include "sandbox/sandbox.h"

static char *copy(const char *s, size_t len)
{
    char *r = strndup(s, len);

    if (!r)
        abort();
    return r;
}

bool values_is_name(const char *s)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    size_t n = strlen(s);

    return n > 1 && strchr(letters, s[0]) && strspn(s + 1, letters) <= n &&
           s[1 + strspn(s + 1,
                        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")] == 0;
}

/* A decimal number that is all of s[0..len). */
static bool read_number(const char *s, size_t len, int64_t *ret)
{
    bool minus = len > 1 && s[0] == '-';
    int64_t n = 0;

    if (minus)
        s++, len--;
    for (size_t i = 0; i < len; i++)
        if (s[i] < '0' || s[i] > '9' || __builtin_mul_overflow(n, 10, &n) ||
            __builtin_add_overflow(n, s[i] - '0', &n))
            return false;
    *ret = minus ? -n : n;
    return len > 0;
}

/* ---- sizes ---- */

/* The factor of "", "b", "k", "kb", "kib" and so on; 0 if it is none. */
static double size_factor(const char *suffix)
{
    static const char units[] = "kmgtp";
    const char *unit;
    double factor = 1024;

    if (!suffix[0] || strcasecmp(suffix, "b") == 0)
        return 1;
    unit = strchr(units, suffix[0] | 0x20);
    if (!unit ||
        (suffix[1] && strcasecmp(suffix + 1, "b") != 0 && strcasecmp(suffix + 1, "ib") != 0))
        return 0;
    for (; unit > units; unit--)
        factor *= 1024;
    return factor;
}

int values_size(const char *s, uint64_t *ret_bytes, struct error *err)
{
    size_t n = strspn(s, "0123456789."), blank = s[n] == ' ';
    double factor = size_factor(s + n + blank), value;
    char *end;

    if (n == 0 || n > 64)
        return error_set(err, ERR_INVALID, "invalid size: '%s'", s);
    if (factor == 0)
        return error_set(err, ERR_INVALID, "invalid suffix: '%s'", s + n + blank);
    value = strtod(s, &end);
    if (end != s + n)
        return error_set(err, ERR_INVALID, "invalid size: '%s'", s);
    value *= factor;
    if (value >= 9223372036854775807.0)
        return error_set(err, ERR_INVALID, "invalid size: '%s': too large", s);
    *ret_bytes = (uint64_t)value;
    return 0;
}

int values_cpus(const char *s, uint32_t *ret_milli, struct error *err)
{
    size_t whole = strspn(s, "0123456789"), part = 0;
    uint64_t milli = 0, scale = 100;

    if (s[whole] == '.')
        part = strspn(s + whole + 1, "0123456789");
    if (whole + part == 0 || whole > 6 || s[whole + (s[whole] == '.') + part])
        return error_set(err, ERR_INVALID, "failed to parse %s as a rational number", s);
    if (part > 9)
        return error_set(err, ERR_INVALID, "value is too precise");
    for (size_t i = 0; i < whole; i++)
        milli = milli * 10 + (uint64_t)(s[i] - '0') * 1000;
    for (size_t i = 0; i < part && scale; i++, scale /= 10)
        milli += (uint64_t)(s[whole + 1 + i] - '0') * scale;
    if (milli < 10 && strpbrk(s, "123456789"))
        return error_set(err, ERR_INVALID, "range of CPUs is from 0.01");
    if (milli > 4096000)
        return error_set(err, ERR_INVALID, "range of CPUs is up to 4096");
    *ret_milli = (uint32_t)milli;
    return 0;
}

int values_pids(const char *s, uint32_t *ret, struct error *err)
{
    int64_t n;

    if (!read_number(s, strlen(s), &n))
        return error_set(err, ERR_INVALID, "strconv.ParseInt: parsing \"%s\": invalid syntax", s);
    if (n > 4194304)
        return error_set(err, ERR_INVALID, "more than the kernel's 4194304");
    *ret = n <= 0 ? 0 : (uint32_t)n;
    return 0;
}

/* ---- ulimits ---- */

int values_ulimit(const char *s, struct box_ulimit *ret, struct error *err)
{
    static const char *const names[] = {"core",    "cpu",      "data",   "fsize",  "locks",
                                        "memlock", "msgqueue", "nice",   "nofile", "nproc",
                                        "rss",     "rtprio",   "rttime", "stack",  "sigpending"};
    size_t n = strcspn(s, "="), soft_len;
    const char *soft = s + n + 1, *hard;
    struct box_ulimit u = {0};
    bool known = false;

    if (!s[n])
        return error_set(err, ERR_INVALID, "invalid ulimit argument: %s", s);
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        known |= strlen(names[i]) == n && memcmp(names[i], s, n) == 0;
    if (!known)
        return error_set(err, ERR_INVALID, "invalid ulimit type: %.*s", (int)n, s);
    soft_len = strcspn(soft, ":");
    hard = soft[soft_len] ? soft + soft_len + 1 : NULL;
    if (!read_number(soft, soft_len, &u.soft) || u.soft < -1)
        return error_set(err, ERR_INVALID, "invalid ulimit argument: %s", s);
    u.hard = u.soft;
    if (hard && (!read_number(hard, strlen(hard), &u.hard) || u.hard < -1))
        return error_set(err, ERR_INVALID, "invalid ulimit argument: %s", s);
    if (u.hard != -1 && (u.soft == -1 || u.soft > u.hard))
        return error_set(err, ERR_INVALID,
                         "ulimit soft limit must be less than or equal to hard limit: %lld > %lld",
                         (long long)u.soft, (long long)u.hard);
    u.name = copy(s, n);
    *ret = u;
    return 0;
}

/* ---- ports ---- */

static bool read_port(const char *s, size_t len, uint16_t *ret)
{
    int64_t n;

    if (len > 5 || !read_number(s, len, &n) || n < 0 || n > 65535)
        return false;
    *ret = (uint16_t)n;
    return true;
}

static bool is_protocol(const char *s)
{
    return strcasecmp(s, "tcp") == 0 || strcasecmp(s, "udp") == 0 || strcasecmp(s, "sctp") == 0;
}

/* `[::1]` without its brackets, or an IPv4 address; NULL if it is neither. */
static char *read_address(const char *s, size_t len)
{
    bool brackets = len > 1 && s[0] == '[' && s[len - 1] == ']';
    char *text = brackets ? copy(s + 1, len - 2) : copy(s, len);
    unsigned char binary[16];

    if (len == 0 || inet_pton(brackets ? AF_INET6 : AF_INET, text, binary) == 1)
        return text;
    free(text);
    return NULL;
}

void values_port_done(struct box_port *p)
{
    free(p->host_ip);
    free(p->protocol);
    *p = (struct box_port){0};
}

/* [[address:]host port:]port, from its end. */
static int read_binding(const char *s, size_t len, struct box_port *p, struct error *err)
{
    const char *last = memrchr(s, ':', len), *middle, *port = last ? last + 1 : s;
    size_t host_len;

    if (memchr(s, '-', len))
        return error_set(err, ERR_UNSUPPORTED,
                         "ranges of ports are not supported by ClawDen: name each port");
    if (!read_port(port, (size_t)(s + len - port), &p->port) || p->port == 0)
        return error_set(err, ERR_INVALID, "invalid containerPort: %.*s", (int)(s + len - port),
                         port);
    if (!last)
        return 0;
    host_len = (size_t)(last - s);
    middle = memrchr(s, ':', host_len);
    if (middle && memchr(middle, ']', (size_t)(last - middle)))
        middle = NULL; /* a colon of the address itself */
    port = middle ? middle + 1 : s;
    if (port < last && !read_port(port, (size_t)(last - port), &p->host_port))
        return error_set(err, ERR_INVALID, "invalid hostPort: %.*s", (int)(last - port), port);
    if (middle)
        p->host_ip = read_address(s, (size_t)(middle - s));
    if (middle && !p->host_ip)
        return error_set(err, ERR_INVALID, "invalid IP address: %.*s", (int)(middle - s), s);
    return 0;
}

int values_port(const char *s, struct box_port *ret, struct error *err)
{
    const char *slash = strchr(s, '/'), *protocol = slash ? slash + 1 : "tcp";
    struct box_port p = {0};
    int r;

    if (!is_protocol(protocol))
        return error_set(err, ERR_INVALID, "invalid proto: %s", protocol);
    r = read_binding(s, slash ? (size_t)(slash - s) : strlen(s), &p, err);
    if (r < 0) {
        values_port_done(&p);
        return r;
    }
    p.protocol = copy(protocol, strlen(protocol));
    for (char *c = p.protocol; *c; c++)
        *c |= 0x20;
    if (!p.host_ip)
        p.host_ip = copy("", 0);
    *ret = p;
    return 0;
}
