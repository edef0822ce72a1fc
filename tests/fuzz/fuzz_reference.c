/* SPDX-License-Identifier: Apache-2.0 */
/* Names of images: what is taken has one spelling, which is read as the same and is a file name. */
#include "image/reference.h"

#include "base/error.h"
#include "tests/fuzz/fuzz.h"

static void check_file(const char *text)
{
    char file[256], back[REFERENCE_TEXT];

    if (reference_encode(text, file, sizeof(file)) < 0)
        return; /* too long for a file name */
    PROPERTY(file[0] != '.' && !strchr(file, '/') && strlen(file) <= 255, "'%s': file '%s'", text,
             file);
    PROPERTY(reference_decode(file, back) == 0 && strcmp(back, text) == 0, "'%s': read as '%s'",
             text, back);
}

static void check_digest(const char *s)
{
    char hex[DIGEST_HEX] = "";

    if (digest_parse(s, hex))
        PROPERTY(strlen(hex) == 64 && strspn(hex, "0123456789abcdef") == 64, "digest '%s'", s);
    else
        PROPERTY(!hex[0], "digest '%s': written though it failed", s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_text(data, size), text[REFERENCE_TEXT], again[REFERENCE_TEXT];
    struct reference ref = {.tag = ""}, second;
    struct error err;

    check_digest(s);
    if (reference_parse(s, &ref, &err) == 0) {
        PROPERTY(ref.repository[0] && (ref.tag[0] || ref.digest[0]), "'%s': a part is missing", s);
        PROPERTY(!strstr(ref.repository, "..") && !strpbrk(ref.repository, ":@%"), "'%s': '%s'", s,
                 ref.repository);
        reference_format(&ref, text);
        PROPERTY(reference_parse(text, &second, &err) == 0, "'%s' became '%s'", s, text);
        reference_format(&second, again);
        PROPERTY(strcmp(text, again) == 0, "'%s' became '%s', then '%s'", s, text, again);
        check_file(text);
    } else {
        PROPERTY(!ref.repository[0] && err.msg[0], "'%s': written though it failed", s);
    }
    if (reference_decode(s, text) == 0)
        PROPERTY(reference_parse(text, &ref, &err) == 0, "file '%s': '%s' is no name", s, text);
    free(s);
    return 0;
}
