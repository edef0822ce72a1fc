/* SPDX-License-Identifier: Apache-2.0 */
#include "http/sse.h"

#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "http/chars.h"

static void on_beat(struct loop_timer *t)
{
    struct sse *s = (struct sse *)((char *)t - offsetof(struct sse, beat));

    (void)sse_comment(s);
}

static void set_beat(struct sse *s)
{
    if (s->beat_usec)
        (void)loop_set_timer(http_loop(s->x), &s->beat, s->beat_usec);
}

void sse_start(struct sse *s, struct http_exchange *x, const struct http_field *fields,
               size_t n_fields, uint64_t beat_usec)
{
    struct http_field all[8] = {
        {"Content-Type", "text/event-stream"},
        {"X-Accel-Buffering", "no"}, /* nginx would keep events back */
    };

    assert(n_fields <= 6);
    for (size_t i = 0; i < n_fields; i++)
        all[i + 2] = fields[i];
    *s = (struct sse){.x = x, .beat.on_time = on_beat, .beat_usec = beat_usec};
    http_reply_start(x, 200, all, n_fields + 2);
    set_beat(s);
}

static bool is_word(const char *text)
{
    return strlen(text) <= LIMIT_SSE_NAME && !strpbrk(text, "\r\n");
}

/* The bytes of one line of the data; *ret_next is where the one after it begins. */
static size_t line_len(const char *data, size_t len, size_t *ret_next)
{
    size_t n = 0;

    while (n < len && data[n] != '\r' && data[n] != '\n')
        n++;
    *ret_next = n == len ? len : n + 1 + (data[n] == '\r' && n + 1 < len && data[n + 1] == '\n');
    return n;
}

/* A line end in the data would otherwise end the event, and what follows would be another's. */
static void write_data(struct buf *b, const char *data, size_t len)
{
    size_t at = 0, next, n;
    bool more;

    do {
        n = line_len(data + at, len - at, &next);
        more = n < len - at; /* also an empty line after the last line end */
        buf_puts(b, "data: ");
        buf_append(b, data + at, n);
        buf_puts(b, "\n");
        at += next;
    } while (more);
}

bool sse_event(struct sse *s, const char *id, const char *name, const char *data, size_t len)
{
    autobuf b = {0};

    buf_init(&b, LIMIT_HTTP_HARD);
    if ((id && !is_word(id)) || (name && !is_word(name)) || len > LIMIT_SSE_DATA)
        b.failed = true;
    if (name)
        buf_printf(&b, "event: %s\n", name);
    if (id)
        buf_printf(&b, "id: %s\n", id);
    write_data(&b, data, len);
    buf_puts(&b, "\n");
    if (b.failed) {
        http_drop(s->x);
        return false;
    }
    set_beat(s);
    return http_reply_part(s->x, b.data, b.len);
}

bool sse_comment(struct sse *s)
{
    set_beat(s);
    return http_reply_part(s->x, ":\n\n", 3);
}

void sse_end(struct sse *s)
{
    struct http_exchange *x = s->x;

    sse_done(s);
    http_reply_end(x);
}

void sse_done(struct sse *s)
{
    loop_stop_timer(&s->beat);
    s->x = NULL;
}

bool sse_last_id(const struct http_exchange *x, uint64_t *ret)
{
    const struct http_slice *id = http_find(x->head, "Last-Event-ID");

    return id && http_number(*id, UINT64_MAX, ret);
}
