/* SPDX-License-Identifier: Apache-2.0 */
/*
 * UDP other than DNS finds nobody: in the box's network every address is local, and nothing listens
 * there. The kernel answers it and counts it; that count is what is told.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "egress/relay.h"

#define LOOK_USEC 5000000ull

/* The whole of a file of /proc that stays open; "" if there is none. */
static const char *read_all(int fd)
{
    static char text[32 << 10];
    size_t len = 0;
    ssize_t n = 0;

    while (fd >= 0 && len + 1 < sizeof(text) &&
           (n = pread(fd, text + len, sizeof(text) - 1 - len, (off_t)len)) > 0)
        len += (size_t)n;
    text[len] = 0;
    return text;
}

static const char *find_line(const char *text, const char *start)
{
    while (text && strncmp(text, start, strlen(start)) != 0) {
        text = strchr(text, '\n');
        text = text ? text + 1 : NULL;
    }
    return text;
}

/* The word of a line that stands `n` words behind its first; NULL: there is none. */
static const char *word_at(const char *line, size_t n)
{
    for (; n; n--) {
        line += strcspn(line, " \n");
        if (*line != ' ')
            return NULL;
        line++;
    }
    return line;
}

/* Two lines that begin with "Udp:": the names of the columns, and their values. */
static uint64_t no_ports(const char *text)
{
    const char *names = find_line(text, "Udp:"), *word, *value;
    const char *values = names ? strchr(names, '\n') : NULL;

    values = values ? find_line(values + 1, "Udp:") : NULL;
    if (!values)
        return 0;
    for (size_t i = 1; (word = word_at(names, i)); i++)
        if (strncmp(word, "NoPorts", 7) == 0 && strcspn(word, " \n") == 7) {
            value = word_at(values, i);
            return value ? strtoull(value, NULL, 10) : 0;
        }
    return 0;
}

/* One line for each: the name, blanks, the value. */
static uint64_t no_ports_6(const char *text)
{
    static const char name[] = "Udp6NoPorts";
    const char *line = find_line(text, name);

    return line ? strtoull(line + sizeof(name) - 1, NULL, 10) : 0;
}

uint64_t relay_udp_refused(const struct relay_box *b)
{
    uint64_t n = no_ports(read_all(b->counters[0]));

    return n + no_ports_6(read_all(b->counters[1]));
}

static void look(struct relay_box *b)
{
    uint64_t n = relay_udp_refused(b);
    struct relay_event e = {.via = "udp",
                            .target = "(any)",
                            .address = "",
                            .reason = "UDP other than DNS is refused",
                            .times = n - b->udp_told};

    if (n <= b->udp_told)
        return;
    b->udp_told = n;
    relay_tell(b, &e, NULL);
}

static int set_timer(struct relay_box *b)
{
    uint64_t usec = b->relay->udp_usec;

    return loop_set_timer(b->relay->loop, &b->udp_timer, usec ? usec : LOOK_USEC);
}

static void on_time(struct loop_timer *t)
{
    struct relay_box *b = (struct relay_box *)((char *)t - offsetof(struct relay_box, udp_timer));

    (void)set_timer(b); /* it has just been taken out: there is room for it */
    look(b);
}

int udp_start(struct relay_box *b)
{
    if (b->counters[0] < 0 && b->counters[1] < 0)
        return 0;
    b->udp_told = relay_udp_refused(b);
    b->udp_timer.on_time = on_time;
    return set_timer(b);
}

void udp_stop(struct relay_box *b)
{
    look(b);
    loop_stop_timer(&b->udp_timer);
}
