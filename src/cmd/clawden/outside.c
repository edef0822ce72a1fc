/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From within a box: a command in the box beside it, by the gateway that the box belongs to
 * (gateway/doors.h). `clawden-sandbox exec` comes here when it finds itself in a box.
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/usage.h"
#include "base/utf8.h"
#include "cmd/clawden/clawden.h"
#include "gateway/doors.h"
#include "mcp/base64.h"

#define STATUS_REFUSED 125
#define INPUT_PIECE    (64u << 10)
#define LIMIT_LINE     (48u << 20) /* one event, or the body of a refusal */
#define LIMIT_REPLY    4096u       /* of an answer that is only looked at */
#define AGAIN_USEC     50000       /* its command does not read what it has */

static void usage(void)
{
    puts(
        "clawden outside [--timeout SECONDS] [--chdir DIR] [--env NAME]... [--] command [words]\n"
        "\n"
        "In a box, runs a command in the box beside it: another one of the same session, with the\n"
        "same workspace, made and watched by the gateway that made this one. What it writes and\n"
        "its exit status come back. If this ends, so does the command.\n"
        "\n"
        "  --timeout SECONDS   kill it after that time\n"
        "  --chdir DIR         where it starts (the workspace)\n"
        "  --env NAME          a variable of this environment that it gets, too\n"
        "\n"
        "  clawden outside -- python3 untrusted.py\n"
        "\n"
        "clawden-sandbox exec does the same there. Without ClawDen in the box:\n"
        "  curl --unix-socket " DOOR_PATH " -H 'Content-Type: application/json' \\\n"
        "       -d '{\"tool\": \"exec\", \"arguments\": {\"command\": \"id\"}}' "
        "http://localhost/v1/call\n"
        "\n"
        "Exit status: that of the command; 124 after a timeout, 137 if a limit killed it, 125 if\n"
        "it was refused or nobody answers.");
}

/* ---- the question ---- */

static int take_env(json_t *arguments, const char *name)
{
    json_t *env = json_object_get(arguments, "env");
    const char *value = getenv(name);

    if (!value)
        return 0;
    if (!env) {
        env = json_object();
        (void)json_object_set_new(arguments, "env", env);
    }
    if (json_object_set_new(env, name, json_string(value)) < 0) {
        log_error("--env %s: its value is not UTF-8", name);
        return -1;
    }
    return 0;
}

static int take_option(json_t *arguments, const char *name, const char *value)
{
    char *end;
    double seconds;

    if (!value) {
        log_error("option '%s' needs a value", name);
        return -1;
    }
    if (strcmp(name, "--env") == 0)
        return take_env(arguments, value);
    if (strcmp(name, "--chdir") == 0) {
        if (json_object_set_new(arguments, "cwd", json_string(value)) == 0)
            return 0;
        log_error("--chdir: not UTF-8");
        return -1;
    }
    seconds = strtod(value, &end);
    if (*end || end == value || !(seconds > 0)) {
        log_error("--timeout '%s': write seconds, like 30 or 0.5", value);
        return -1;
    }
    return json_object_set_new(arguments, "timeout", json_real(seconds));
}

/* 1: help was asked for. */
static int read_words(int argc, char **argv, json_t *arguments)
{
    json_t *words = json_array();
    int i;

    for (i = 1; i < argc && argv[i][0] == '-' && strcmp(argv[i], "--") != 0; i += 2) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            json_decref(words);
            return 1;
        }
        if (strcmp(argv[i], "--env") != 0 && strcmp(argv[i], "--chdir") != 0 &&
            strcmp(argv[i], "--timeout") != 0) {
            (void)usage_unknown("clawden outside", argv[i]);
            json_decref(words);
            return -1;
        }
        if (take_option(arguments, argv[i], i + 1 < argc ? argv[i + 1] : NULL) < 0) {
            json_decref(words);
            return -1;
        }
    }
    if (i < argc && strcmp(argv[i], "--") == 0)
        i++;
    (void)json_object_set_new(arguments, "argv", words);
    for (; i < argc; i++)
        if (json_array_append_new(words, json_string(argv[i])) < 0) {
            log_error("word %d of the command is not UTF-8", (int)json_array_size(words) + 1);
            return -1;
        }
    if (json_array_size(words) == 0) {
        log_error("no command: write 'clawden outside -- command [words]'");
        return -1;
    }
    return 0;
}

/* Whatever can be read goes along as it comes; nothing comes from /dev/null. */
static bool has_input(void)
{
    struct stat st;

    return fstat(STDIN_FILENO, &st) == 0 && (!S_ISCHR(st.st_mode) || isatty(STDIN_FILENO));
}

/* ---- the line ---- */

static int knock(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = DOOR_PATH};
    autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        log_error(errno == ENOENT ? "%s: this is no box of a gateway's (%s); run clawden-sandbox "
                                    "exec where boxes can be made"
                                  : "%s: the gateway that this box belongs to does not answer "
                                    "(%s); start it again: clawden gateway",
                  DOOR_PATH, strerror(errno));
        return -1;
    }
    return TAKE_FD(fd);
}

/* Takes arguments. */
static void ask(int fd, const char *tool, json_t *arguments)
{
    json_t *q = json_pack("{s:s,s:o,s:b}", "tool", tool, "arguments", arguments, "stream",
                          strcmp(tool, "exec") == 0);
    autofree char *body = q ? json_dumps(q, JSON_COMPACT) : NULL;
    autobuf head;

    json_decref(q);
    buf_init(&head, 4096);
    if (!body)
        abort();
    buf_printf(&head,
               "POST /v1/call HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
               "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
               strlen(body));
    if (head.failed)
        abort();
    if (fd_write_full(fd, head.data, head.len) >= 0)
        (void)fd_write_full(fd, body, strlen(body)); /* if it was refused early, that is there */
}

struct reply {
    FILE *from;
    unsigned status;
    bool chunked;
    size_t left; /* of the chunk */
};

/* A line without its end; false at the end of everything. */
static bool take_line(FILE *from, struct buf *ret)
{
    int c;

    buf_clear(ret);
    while ((c = getc(from)) != EOF && c != '\n')
        if (c != '\r')
            buf_append(ret, &(char){(char)c}, 1);
    buf_append(ret, "", 1);
    return c != EOF && !ret->failed;
}

static bool read_head(struct reply *r, struct buf *line)
{
    if (!take_line(r->from, line) || sscanf(line->data, "HTTP/1.1 %3u", &r->status) != 1)
        return false;
    while (take_line(r->from, line)) {
        if (!line->data[0])
            return true;
        r->chunked |= strncasecmp(line->data, "transfer-encoding: chunked", 26) == 0;
    }
    return false;
}

/* A character of the body, or EOF. */
static int take_char(struct reply *r)
{
    unsigned long n;
    char size[32];
    int c;

    if (!r->chunked)
        return getc(r->from);
    if (r->left == 0) {
        do
            if (!fgets(size, sizeof(size), r->from))
                return EOF;
        while (size[0] == '\r' || size[0] == '\n');
        n = strtoul(size, NULL, 16);
        if (n == 0)
            return EOF;
        r->left = n;
    }
    c = getc(r->from);
    r->left--;
    return c;
}

/* The same for a line of the body, whose last one may have no end. */
static bool take_body_line(struct reply *r, struct buf *ret)
{
    int c;

    buf_clear(ret);
    while ((c = take_char(r)) != EOF && c != '\n')
        buf_append(ret, &(char){(char)c}, 1);
    c = c == EOF && ret->len == 0 ? EOF : 0;
    buf_append(ret, "", 1);
    return c != EOF && !ret->failed;
}

/* ---- its input ---- */

/* The status of the answer; 0 if nobody gave one. */
static unsigned write_piece(const char *process, const char *data, size_t len, bool last)
{
    autoclose int fd = knock();
    char text[LIMIT_REPLY];
    unsigned status = 0;
    size_t n = 0;
    ssize_t got;

    if (fd < 0)
        return 0;
    ask(fd, "process",
        json_pack("{s:s,s:s,s:s%,s:b}", "action", "write", "process", process, "data", data, len,
                  "eof", last));
    while (n < sizeof(text) - 1 && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = 0;
    return sscanf(text, "HTTP/1.1 %3u", &status) == 1 ? status : 0;
}

/* How many bytes of it are whole characters; a beginning of one at the end may still be made whole.
 * -1: it is no UTF-8. */
static ssize_t whole(const char *data, size_t len)
{
    size_t at = 0, n;
    uint32_t c;

    while (at < len && (n = utf8_take(data + at, len - at, &c)))
        at += n;
    return len - at > 3 ? -1 : (ssize_t)at;
}

/* In a process of its own, which ends with us. */
static __attribute__((noreturn)) void carry_input(const char *process)
{
    char data[INPUT_PIECE];
    size_t have = 0;
    ssize_t n, good;
    unsigned status;

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    do {
        while ((n = read(STDIN_FILENO, data + have, sizeof(data) - have)) < 0 && errno == EINTR)
            ;
        have += n > 0 ? (size_t)n : 0;
        good = whole(data, have);
        if (good < 0 || (n <= 0 && (size_t)good < have)) {
            log_error("standard input is not UTF-8, and ends here for the command: put it into a "
                      "file of the workspace");
            n = 0;
            good = good < 0 ? 0 : good;
        }
        /* It does not read, or too much is asked at once. Has it ended, so do we, soon. */
        while ((status = write_piece(process, data, (size_t)good, n <= 0)) == 409 ||
               status == 429 || status == 503)
            (void)usleep(AGAIN_USEC);
        have -= (size_t)good;
        memmove(data, data + good, have);
    } while (n > 0 && status == 200);
    _exit(0);
}

/* ---- the answer ---- */

static void put_output(json_t *event)
{
    json_t *text = json_object_get(event, "data"), *coded = json_object_get(event, "data64");
    const char *stream = json_string_value(json_object_get(event, "stream"));
    int to = stream && strcmp(stream, "stderr") == 0 ? STDERR_FILENO : STDOUT_FILENO;
    autobuf bytes;

    buf_init(&bytes, LIMIT_LINE);
    if (json_is_string(text))
        buf_append(&bytes, json_string_value(text), json_string_length(text));
    else if (json_is_string(coded))
        (void)base64_take(json_string_value(coded), json_string_length(coded), BASE64_PLAIN,
                          &bytes);
    if (bytes.len)
        (void)fd_write_full(to, bytes.data, bytes.len);
}

static int signal_of(const char *name)
{
    for (int i = 1; name && i < 32; i++)
        if (sigabbrev_np(i) && strncmp(name, "SIG", 3) == 0 &&
            strcmp(sigabbrev_np(i), name + 3) == 0)
            return i;
    return 0;
}

static int status_of(json_t *result)
{
    const char *status = json_string_value(json_object_get(result, "status"));
    const char *reason = json_string_value(json_object_get(result, "reason"));
    json_int_t code = json_integer_value(json_object_get(result, "exitCode"));
    json_t *limit = json_object_get(result, "limit");
    const char *which = json_string_value(json_object_get(limit, "name"));

    if (!status)
        return STATUS_REFUSED;
    if (strcmp(status, "exited") == 0)
        return code >= 0 && code <= 255 ? (int)code : STATUS_REFUSED;
    if (strcmp(status, "signaled") == 0)
        return 128 + signal_of(json_string_value(json_object_get(result, "signal")));
    if (strcmp(status, "limit") == 0) {
        log_error("a limit of the sibling was reached: %s", which ? which : "?");
        return which && strcmp(which, "time") == 0 ? 124 : 137;
    }
    log_error("the command is %s%s%s", status, reason ? ": " : "", reason ? reason : "");
    return strcmp(status, "failed") == 0 ? 127 : STATUS_REFUSED;
}

static int refusal(json_t *body)
{
    json_t *denied = json_object_get(body, "denied");
    const char *reason = json_string_value(json_object_get(denied, "reason"));
    const char *rule = json_string_value(json_object_get(denied, "rule"));
    const char *message =
        json_string_value(json_object_get(json_object_get(body, "error"), "message"));

    if (denied)
        log_error("refused by %s: %s", rule ? rule : "?", reason ? reason : "?");
    else
        log_error("%s", message ? message : "the gateway ended before the command did");
    return STATUS_REFUSED;
}

/* -1: it is not the last one. */
static int take_event(json_t *event, pid_t *carrier)
{
    const char *type = json_string_value(json_object_get(event, "type"));
    const char *call = json_string_value(json_object_get(event, "call"));

    if (type && strcmp(type, "started") == 0 && call && *carrier < 0 && has_input()) {
        *carrier = fork();
        if (*carrier == 0)
            carry_input(call);
    }
    if (type && strcmp(type, "output") == 0)
        put_output(event);
    if (type && strcmp(type, "dropped") == 0)
        log_warn("%lld bytes of its output are left out",
                 (long long)json_integer_value(json_object_get(event, "bytes")));
    if (!type || strcmp(type, "end") != 0)
        return -1;
    return json_is_object(json_object_get(event, "result"))
               ? status_of(json_object_get(event, "result"))
               : refusal(event);
}

static int follow(struct reply *r, struct buf *line)
{
    pid_t carrier = -1;
    int status = -1;

    while (status < 0 && take_body_line(r, line)) {
        bool is_data = strncmp(line->data, "data: ", 6) == 0;
        json_t *v = r->status != 200 || is_data
                        ? json_loads(line->data + (is_data ? 6 : 0), JSON_REJECT_DUPLICATES, NULL)
                        : NULL;

        if (r->status == 200 && v)
            status = take_event(v, &carrier);
        else if (r->status != 200)
            status = refusal(v);
        json_decref(v);
    }
    if (carrier > 0) {
        (void)kill(carrier, SIGKILL);
        (void)waitpid(carrier, NULL, 0);
    }
    return status < 0 ? refusal(NULL) : status;
}

static int run(json_t *arguments)
{
    int fd = knock(), status;
    struct reply r = {0};
    autobuf line;

    buf_init(&line, LIMIT_LINE);
    if (fd < 0)
        return STATUS_REFUSED;
    r.from = fdopen(fd, "r");
    if (!r.from)
        abort();
    if (has_input())
        (void)json_object_set_new(arguments, "stdinOpen", json_true());
    ask(fd, "exec", json_incref(arguments));
    status = read_head(&r, &line) ? follow(&r, &line) : refusal(NULL);
    (void)fclose(r.from);
    return status;
}

int cmd_outside(int argc, char **argv)
{
    json_t *arguments = json_object();
    int r = read_words(argc, argv, arguments), status = 2;

    (void)signal(SIGPIPE, SIG_IGN);
    if (r > 0) {
        usage();
        status = 0;
    } else if (r == 0) {
        status = run(arguments);
    }
    json_decref(arguments);
    return status;
}
