/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/base64.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "tests/test.h"

static void test_vectors(void **state)
{
    static const struct {
        const char *data, *plain, *url;
    } rows[] = {
        {"", "", ""},
        {"f", "Zg==", "Zg"},
        {"fo", "Zm8=", "Zm8"},
        {"foo", "Zm9v", "Zm9v"},
        {"foob", "Zm9vYg==", "Zm9vYg"},
        {"fooba", "Zm9vYmE=", "Zm9vYmE"},
        {"foobar", "Zm9vYmFy", "Zm9vYmFy"},
        {"\xfb\xff\xfe", "+//+", "-__-"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf plain = {.max = 64}, url = {.max = 64}, back = {.max = 64};

        base64_put(row->data, strlen(row->data), BASE64_PLAIN, &plain);
        base64_put(row->data, strlen(row->data), BASE64_URL, &url);
        CHECK_STR(plain.data ? plain.data : "", row->plain, row->data);
        CHECK_STR(url.data ? url.data : "", row->url, row->data);
        CHECK(base64_take(row->plain, strlen(row->plain), BASE64_PLAIN, &back), "%s", row->plain);
        CHECK_STR(back.data ? back.data : "", row->data, row->plain);
        buf_clear(&back);
        CHECK(base64_take(row->url, strlen(row->url), BASE64_URL, &back), "%s", row->url);
        CHECK_STR(back.data ? back.data : "", row->data, row->url);
    }
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        enum base64_kind kind;
    } rows[] = {
        {"Zg", BASE64_PLAIN},          {"Zg=", BASE64_PLAIN},  {"Zg===", BASE64_PLAIN},
        {"Z", BASE64_PLAIN},           {"Z===", BASE64_PLAIN}, {"====", BASE64_PLAIN},
        {"Zh==", BASE64_PLAIN},        {"Zm9=", BASE64_PLAIN}, {"-__-", BASE64_PLAIN},
        {"Zg==Zg==", BASE64_PLAIN},    {"Zm 9", BASE64_PLAIN}, {"Zm9v\n", BASE64_PLAIN},
        {"SGVs!!!bG8=", BASE64_PLAIN}, {"Z", BASE64_URL},      {"Zh", BASE64_URL},
        {"Zg==", BASE64_URL},          {"+//+", BASE64_URL},   {"Zm9vZ", BASE64_URL},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autobuf out = {.max = 64};

        CHECK(!base64_take(row->text, strlen(row->text), row->kind, &out), "'%s' was taken",
              row->text);
    }
}

static void test_full(void **state)
{
    autobuf out = {.max = 3};

    (void)state;
    assert_false(base64_take("Zm9vYg==", 8, BASE64_PLAIN, &out));
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("the vectors of RFC 4648 go both ways", test_vectors),
        CLAIM("a value has one text: padding, leftover bits and alphabet are exact", test_refused),
        CLAIM("what does not fit is not taken", test_full),
    };

    return RUN_CLAIMS("mcp/base64", claims);
}
