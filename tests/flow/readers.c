/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our readers make of many texts, for the suites that compare them with other readers.
 *
 * Standard input is a sequence of "<format> <length>\n<bytes>"; every text gives one line:
 * "ok <JSON>" or "error <line> <column> <message>". The JSON is compact with sorted keys; of the
 * format `canonical`, which reads JSON5, it is what canonical_format() makes.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "json/canonical.h"
#include "json/json5.h"
#ifndef READERS_NO_TOML
#include "toml/toml.h"
#endif

#define MOST_BYTES (64u << 20) /* a text of the suites; the readers have limits of their own */

static void print_sorted(json_t *value)
{
    autofree char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

    printf("ok %s\n", text ? text : "(not to be printed)");
}

static void print_canonical(json_t *value)
{
    struct error err;
    autobuf out;

    buf_init(&out, MOST_BYTES);
    if (canonical_format(value, &out, &err) < 0)
        printf("error 0 0 %s\n", err.msg);
    else
        printf("ok %s\n", out.data);
}

static const struct format {
    const char *name;
    int (*parse)(const char *text, size_t len, json_t **ret, struct text_place *ret_place,
                 struct error *err);
    void (*print)(json_t *value);
} formats[] = {
    {"json5", json5_parse, print_sorted},
    {"canonical", json5_parse, print_canonical},
#ifndef READERS_NO_TOML
    {"toml", toml_parse, print_sorted},
#endif
};

static const struct format *find_format(const char *name)
{
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(formats[i].name, name) == 0)
            return &formats[i];
    return NULL;
}

static void answer(const struct format *f, const char *text, size_t len)
{
    json_auto_t *value = NULL;
    struct text_place place = {0};
    struct error err = {0};

    if (f->parse(text, len, &value, &place, &err) < 0)
        printf("error %u %u %s\n", place.line, place.column, err.msg);
    else
        f->print(value);
}

int main(void)
{
    char name[16];
    size_t len;

    for (;;) {
        const struct format *f;
        autofree char *text = NULL;
        int n = scanf("%15s %zu", name, &len);

        if (n == EOF)
            return 0;
        f = n == 2 ? find_format(name) : NULL;
        if (!f || getchar() != '\n' || len > MOST_BYTES) {
            fprintf(stderr, "not a record of a known format: '%s'\n", n > 0 ? name : "");
            return 2;
        }
        text = malloc(len ? len : 1); /* its own block: a sanitizer sees what reads beyond */
        if (!text || fread(text, 1, len, stdin) != len) {
            fprintf(stderr, "a text of %zu bytes is cut off\n", len);
            return 2;
        }
        answer(f, text, len);
    }
}
