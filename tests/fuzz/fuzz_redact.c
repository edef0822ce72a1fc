/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Redaction: two words, separated by a newline, the second one judged in the light of the first. No
 * token of a known shape survives, nor the value of a secret option; the result is one JSON string.
 */
#include "audit/redact.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "tests/fuzz/fuzz.h"

static const char *const starts[] = {"ghp_", "gho_",  "ghs_",  "ghu_",      "github_pat_", "glpat-",
                                     "sk-",  "xoxb-", "xoxp-", "xoxa-",     "AKIA",        "ASIA",
                                     "eyJ",  "npm_",  "AIza",  "-----BEGIN"};

static void check(const char *before, const char *word)
{
    autobuf b;

    buf_init(&b, 8 * LIMIT_AUDIT_ARGV);
    redact_word(&b, before, word);
    PROPERTY(!b.failed && b.len >= 2 && b.data[0] == '"' && b.data[b.len - 1] == '"', "'%s': %s",
             word, b.data ? b.data : "");
    for (size_t i = 1; i + 1 < b.len; i++) {
        PROPERTY((unsigned char)b.data[i] >= 0x20 && b.data[i] != 0x7f, "'%s': control byte", word);
        PROPERTY(b.data[i] != '"' || b.data[i - 1] == '\\', "'%s': ends early: %s", word, b.data);
        if (b.data[i] == '\\')
            i++;
    }
    if (before && before[0] == '-' && !strchr(before, '=') &&
        redact_is_secret_name(before, strlen(before)) && word[0])
        PROPERTY(strcmp(b.data, "\"[redacted]\"") == 0 || strcmp(b.data, "\"[cut]\"") == 0,
                 "'%s' '%s': %s", before, word, b.data);
    /* What is left begins no token at its start or behind a separator. */
    for (size_t i = 1; i < b.len; i++) {
        if (i > 1 && !strchr("=:/@ ,;'", b.data[i - 1]))
            continue;
        for (size_t k = 0; k < sizeof(starts) / sizeof(*starts); k++)
            PROPERTY(strncmp(b.data + i, starts[k], strlen(starts[k])) != 0 ||
                         strcspn(b.data + i + strlen(starts[k]), "\\\"[") < 8,
                     "'%s': a token is left: %s", word, b.data);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *s = fuzz_text(data, size), *second = strchr(s, '\n');

    if (second)
        *second++ = 0;
    check(NULL, s);
    if (second)
        check(s, second);
    free(s);
    return 0;
}
