/* SPDX-License-Identifier: Apache-2.0 */
#include "image/image.h"

#include "tests/test.h"

#define H1 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define H2 "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define H3 "0123456789abff00123456789abcdef0123456789abcdef0123456789abcdef0"

static const char *const good =
    "{\"version\":1,\"id\":\"sha256:" H1 "\",\"root\":\"sha256:" H2 "\",\"architecture\":\"amd64\","
    "\"user\":\"node\",\"uid\":1000,\"gid\":65535,\"workdir\":\"/w\",\"env\":[\"A=1\",\"B=\"],"
    "\"entrypoint\":[],\"cmd\":[\"sh\"],\"labels\":{\"a\":\"b\"},\"ports\":[\"80/tcp\"],"
    "\"layers\":[{\"digest\":\"sha256:" H1 "\",\"diff_id\":\"sha256:" H2 "\",\"size\":5,"
    "\"stored\":true}],\"size\":7,\"entries\":3,\"created_usec\":0,\"imported_usec\":9}\n";

/* The record with one part of it replaced; freed by the caller. */
static char *changed(const char *part, const char *by)
{
    const char *at = strstr(good, part);
    char *text = calloc(1, strlen(good) + strlen(by) + 1);

    assert_non_null(at);
    assert_non_null(text);
    (void)snprintf(text, strlen(good) + strlen(by) + 1, "%.*s%s%s", (int)(at - good), good, by,
                   at + strlen(part));
    return text;
}

static void test_good(void **state)
{
    autoptr(image) i = NULL;
    struct error err;

    (void)state;
    CHECK_OK(image_parse(good, strlen(good), &i, &err), err);
    assert_string_equal(i->id, H1);
    assert_string_equal(i->root, H2);
    assert_string_equal(i->manifest, "");
    assert_string_equal(i->user, "node");
    assert_int_equal(i->uid, 1000);
    assert_int_equal(i->gid, 65535);
    assert_string_equal(i->env[1], "B=");
    assert_null(i->env[2]);
    assert_null(i->entrypoint[0]);
    assert_string_equal(i->cmd[0], "sh");
    assert_string_equal(i->ports[0], "80/tcp");
    assert_string_equal(i->labels[0].value, "b");
    assert_int_equal(i->n_labels, 1);
    assert_int_equal(i->n_layers, 1);
    assert_true(i->layers[0].stored);
    assert_int_equal(i->size, 7);
    assert_int_equal(i->root_fd, -1);
    assert_string_equal(i->name, "");
    assert_null(i->names[0]);
}

static void test_bad(void **state)
{
    static const struct {
        const char *part, *by, *why;
    } rows[] = {
        {"\"version\":1", "\"version\":2", "version"},
        {"\"id\":\"sha256:0", "\"id\":\"sha256:G", "id"},
        {"\"id\":\"sha256:0", "\"id\":\"sha256:", "id"},
        {"\"root\":\"sha256:1", "\"root\":\"sha256:/", "root"},
        {"\"root\":\"sha256:1", "\"root\":\"sha256:..", "root"},
        {"\"uid\":1000", "\"uid\":65536", "user"},
        {"\"uid\":1000", "\"uid\":-1", "user"},
        {"\"uid\":1000", "\"uid\":1.5", "user"},
        {"\"gid\":65535", "\"gid\":4294967296", "user"},
        {"\"user\":\"node\"", "\"user\":7", "user"},
        {"\"workdir\":\"/w\"", "\"workdir\":\"w\"", "workdir"},
        {"\"A=1\"", "\"A\"", "env"},
        {"\"A=1\"", "\"=1\"", "env"},
        {"\"A=1\"", "null", "env"},
        {"[\"sh\"]", "\"sh\"", "cmd"},
        {"\"entrypoint\":[]", "\"entrypoint\":{}", "entrypoint"},
        {"{\"a\":\"b\"}", "[\"a\"]", "labels"},
        {"{\"a\":\"b\"}", "{\"a\":1}", "labels"},
        {"\"ports\":[\"80/tcp\"],", "", "ports"},
        {"\"architecture\":\"amd64\",", "", "architecture"},
        {"\"diff_id\":\"sha256:1", "\"diff_id\":\"sha512:1", "layers"},
        {"\"size\":5", "\"size\":-5", "layers"},
        {"\"size\":7", "\"size\":\"7\"", "size"},
        {"\"imported_usec\":9", "\"imported_usec\":-9", "times"},
        {"\"entries\":3,", "", "entries"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        autofree char *text = changed(row->part, row->by);
        autoptr(image) i = NULL;
        struct error err;

        CHECK_ERR(image_parse(text, strlen(text), &i, &err), err, ERR_INVALID, row->why);
        assert_null(i);
    }
}

static void test_cut(void **state)
{
    (void)state;
    for (size_t n = 0; n + 1 < strlen(good); n++) {
        autoptr(image) i = NULL;
        struct error err;

        CHECK(image_parse(good, n, &i, &err) < 0, "%zu bytes were taken", n);
    }
}

/* ---- a store by hand ---- */

static void make_dirs(const struct temp *t)
{
    static const char *const names[] = {"images",       "images/" H1,   "images/" H3,
                                        "images/names", "images/roots", "images/roots/" H2};

    assert_int_equal(fchmod(t->fd, 0700), 0);
    for (size_t i = 0; i < COUNT(names); i++)
        assert_int_equal(mkdirat(t->fd, names[i], 0700), 0);
    temp_write(t, "images/" H1 "/image.json", good, strlen(good));
    assert_int_equal(symlinkat(H1, t->fd, "images/names/tool%3Alatest"), 0);
    assert_int_equal(symlinkat(H1, t->fd, "images/names/tool%40sha256%3A" H2), 0);
    assert_int_equal(symlinkat("../../etc", t->fd, "images/names/evil%3Alatest"), 0);
    assert_int_equal(setenv("CLAWDEN_DATA_DIR", t->path, 1), 0);
}

static void test_find(void **state)
{
    static const char *const refs[] = {"tool", "tool:latest", "tool@sha256:" H2,
                                       H1,     "sha256:" H1,  "0123456789abcdef"};
    size_t before;

    make_dirs(*state);
    before = open_fds();
    for (size_t k = 0; k < COUNT(refs); k++) {
        autoptr(image) i = NULL;
        struct error err;

        CHECK_OK(image_find(refs[k], &i, &err), err);
        CHECK_STR(i->id, H1, refs[k]);
        CHECK(i->root_fd >= 0 && i->hold_fd >= 0, "%s: not open", refs[k]);
        assert_string_equal(i->names[0], "tool:latest");
        assert_string_equal(i->names[1], "tool@sha256:" H2);
        assert_null(i->names[2]);
    }
    assert_int_equal(open_fds(), before);
}

static void test_find_not(void **state)
{
    static const struct {
        const char *ref;
        enum error_code code;
    } rows[] = {
        {"tool:2", ERR_NOT_FOUND},
        {"evil", ERR_NOT_FOUND},
        {"abcdefabcdef", ERR_NOT_FOUND},
        {H2, ERR_NOT_FOUND},
        {H3, ERR_NOT_FOUND}, /* a folder without record is no image */
        {"0123456789a", ERR_NOT_FOUND},
        {"../x", ERR_INVALID},
        {"sha256:01", ERR_NOT_FOUND},
        {"sha256:XX", ERR_NOT_FOUND}, /* a name with a tag */
    };
    size_t before;

    make_dirs(*state);
    before = open_fds();
    FOR_EACH(row, rows)
    {
        autoptr(image) i = NULL;
        struct error err;

        CHECK_ERR(image_find(row->ref, &i, &err), err, row->code, "");
        assert_null(i);
    }
    assert_int_equal(open_fds(), before);
}

static void test_ambiguous(void **state)
{
    struct temp *t = *state;
    autofree char *text = changed("\"id\":\"sha256:" H1, "\"id\":\"sha256:" H3);
    autoptr(image) i = NULL;
    struct image **list;
    struct error err;
    size_t n;

    make_dirs(t);
    temp_write(t, "images/" H3 "/image.json", text, strlen(text));
    CHECK_ERR(image_find("0123456789ab", &i, &err), err, ERR_INVALID, "two ids begin so");
    CHECK_OK(image_find("0123456789abc", &i, &err), err);
    assert_string_equal(i->id, H1);
    CHECK_OK(image_list(&list, &n, &err), err);
    assert_int_equal(n, 2);
    image_list_free(list, n);
}

static void test_remove(void **state)
{
    struct temp *t = *state;
    autoptr(image) i = NULL;
    struct error err;
    bool removed = false;

    make_dirs(t);
    assert_int_equal(mkdirat(t->fd, "images/blobs", 0700), 0);
    assert_int_equal(mkdirat(t->fd, "images/blobs/sha256", 0700), 0);
    assert_int_equal(mkdirat(t->fd, "images/blobs/partial", 0700), 0);
    CHECK_OK(image_find("tool", &i, &err), err);
    CHECK_ERR(image_remove("tool", false, &removed, &err), err, ERR_DENIED, "in use");
    image_free(TAKE_PTR(i));
    CHECK_OK(image_remove("tool", false, &removed, &err), err);
    assert_true(removed);
    CHECK_ERR(image_find(H1, &i, &err), err, ERR_NOT_FOUND, "clawden image");
    assert_int_not_equal(faccessat(t->fd, "images/roots/" H2, F_OK, 0), 0);
    CHECK_ERR(image_remove("tool", false, &removed, &err), err, ERR_NOT_FOUND, "tool");
}

static const struct CMUnitTest claims[] = {
    CLAIM("a record is read whole", test_good),
    CLAIM("a record with one wrong value is refused and the value named", test_bad),
    CLAIM("a record cut off anywhere is refused", test_cut),
    CLAIM_IN_TEMP("an image is found by name, digest, id and its beginning", test_find),
    CLAIM_IN_TEMP("what is not there, or points elsewhere, is not found", test_find_not),
    CLAIM_IN_TEMP("the beginning of two ids is neither", test_ambiguous),
    CLAIM_IN_TEMP("an image goes with its root unless it is held", test_remove),
};

int main(void)
{
    return RUN_CLAIMS("image/record", claims);
}
