/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/fd.h"
#include "base/jtext.h"
#include "base/limits.h"
#include "cmd/docker/docker.h"
#include "cmd/docker/template.h"

static int put(const struct buf *b)
{
    (void)fflush(stdout);
    return b->failed || (b->len && fd_write_full(STDOUT_FILENO, b->data, b->len) < 0) ? 1 : 0;
}

/* ---- JSON for people ---- */

static void break_line(struct buf *out, unsigned depth)
{
    buf_puts(out, "\n");
    for (unsigned i = 0; i < depth; i++)
        buf_puts(out, "    ");
}

void show_indented(struct buf *out, const char *json, size_t len)
{
    bool text = false;
    unsigned depth = 0;

    for (size_t i = 0; i < len; i++) {
        char c = json[i];

        if (text || c == '"') {
            if (c == '"')
                text = !text;
            buf_append(out, &json[i], 1);
            if (text && c == '\\' && ++i < len)
                buf_append(out, &json[i], 1);
        } else if (c == '{' || c == '[') {
            buf_append(out, &c, 1);
            if (i + 1 < len && (json[i + 1] == '}' || json[i + 1] == ']'))
                buf_append(out, &json[++i], 1);
            else
                break_line(out, ++depth);
        } else if (c == '}' || c == ']') {
            break_line(out, depth ? --depth : 0);
            buf_append(out, &c, 1);
        } else {
            buf_append(out, &c, 1);
            if (c == ',')
                break_line(out, depth);
            else if (c == ':')
                buf_puts(out, " ");
        }
    }
}

void show_strings(struct buf *b, const char *key, char *const *list)
{
    buf_json_key(b, key);
    if (!list || !list[0]) {
        buf_puts(b, "null");
        return;
    }
    for (size_t i = 0; list[i]; i++) {
        buf_puts(b, i ? "," : "[");
        buf_json_string(b, list[i], strlen(list[i]));
    }
    buf_puts(b, "]");
}

/* ---- templates ---- */

static int eval(const char *format, const char *json, size_t len, struct buf *out,
                struct error *err)
{
    autoptr(jtext_doc) doc = NULL;
    int r = jtext_parse(json, len, &doc, err);

    return r < 0 ? r : template_eval(format, jtext_root(doc), out, err);
}

/* 64 when the text is wrong, 1 when it does not fit the object: docker's difference. */
static int say_template(const struct error *err)
{
    (void)fprintf(stderr, "template parsing error: %s\n", err->msg);
    return err->code == ERR_INVALID ? STATUS_BAD_TEMPLATE : 1;
}

int show_template(const char *format, const struct buf *json)
{
    struct error err;
    autobuf out;

    buf_init(&out, LIMIT_TEMPLATE_TEXT);
    if (json->failed)
        return say_daemon("the description is too long");
    if (eval(format, json->data, json->len, &out, &err) < 0) {
        if (err.code != ERR_INVALID) {
            puts("");
            (void)fflush(stdout);
        }
        return say_template(&err);
    }
    buf_puts(&out, "\n");
    return put(&out);
}

/* ---- tables ---- */

enum { MAX_COLUMNS = 32, MIN_WIDTH = 10, PADDING = 3 };

/* Columns as people see them: a character of UTF-8 is one. */
static size_t width(const char *s, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

static void measure(const char *text, size_t widths[MAX_COLUMNS])
{
    for (const char *p = text; *p;) {
        size_t line = strcspn(p, "\n"), column = 0;

        for (const char *cell = p; cell < p + line && column < MAX_COLUMNS; column++) {
            const char *tab = memchr(cell, '\t', (size_t)(p + line - cell));
            size_t n = (size_t)((tab ? tab : p + line) - cell), w = width(cell, n);

            if (tab && w + PADDING > widths[column])
                widths[column] = w + PADDING;
            cell += n + 1;
        }
        p += line + (p[line] != 0);
    }
}

static void align(struct buf *out, const char *text, const size_t widths[MAX_COLUMNS])
{
    size_t column = 0;

    for (const char *p = text; *p;) {
        size_t n = strcspn(p, "\t\n");

        buf_append(out, p, n);
        if (p[n] == '\t' && column < MAX_COLUMNS) {
            for (size_t i = width(p, n); i < widths[column]; i++)
                buf_puts(out, " ");
            column++;
        } else if (p[n] == '\n') {
            buf_puts(out, "\n");
            column = 0;
        }
        p += n + (p[n] != 0);
    }
}

static int print_rows(const char *format, const char *columns, char **rows, size_t n, bool table)
{
    size_t widths[MAX_COLUMNS];
    struct error err;
    autobuf text, out;

    buf_init(&text, LIMIT_TEMPLATE_TEXT);
    buf_init(&out, LIMIT_TEMPLATE_TEXT);
    for (size_t i = 0; i < n + table; i++) {
        const char *row = !table ? rows[i] : i ? rows[i - 1] : columns;

        if (eval(format, row, strlen(row), &text, &err) < 0) {
            (void)say_template(&err);
            return 1; /* of lists docker does not tell the two apart */
        }
        buf_puts(&text, "\n");
    }
    if (!table || text.failed)
        return put(&text);
    for (size_t i = 0; i < MAX_COLUMNS; i++)
        widths[i] = MIN_WIDTH;
    measure(text.data, widths);
    align(&out, text.data, widths);
    return put(&out);
}

int show_rows(const char *format, const char *table, const char *columns, char **rows, size_t n,
              bool quiet)
{
    autofree char *copy = NULL;
    bool is_table = !format || strncmp(format, "table ", 6) == 0 || strcmp(format, "table") == 0;

    if (format && strcmp(format, "json") == 0)
        format = "{{json .}}";
    else if (quiet && (!format || is_table))
        format = "{{.ID}}", is_table = false;
    else if (!format || strcmp(format, "table") == 0)
        format = table;
    else if (is_table)
        format += 6;
    copy = strdup(format);
    if (!copy)
        abort();
    template_unescape(copy);
    return print_rows(copy, columns, rows, n, is_table);
}
