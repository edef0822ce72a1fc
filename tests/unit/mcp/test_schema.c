/* SPDX-License-Identifier: Apache-2.0 */
#include "mcp/schema.h"

#include "tests/test.h"

static json_t *load(const char *text)
{
    json_error_t error;
    json_t *v = json_loads(text, JSON_DECODE_ANY, &error);

    CHECK(v, "%s: %s", text, error.text);
    return v;
}

#define EDITS                                                                            \
    "{\"type\":\"object\",\"properties\":{\"edits\":{\"type\":\"array\",\"minItems\":1," \
    "\"maxItems\":3,\"items\":{\"type\":\"object\",\"properties\":{\"old\":{\"type\":"   \
    "\"string\",\"minLength\":1},\"new\":{\"type\":\"string\",\"maxLength\":3}},"        \
    "\"required\":[\"old\",\"new\"],\"additionalProperties\":false}}},"                  \
    "\"required\":[\"edits\"]}"

static void test_check(void **state)
{
    static const struct {
        const char *schema, *value, *why; /* NULL: taken */
    } rows[] = {
        {"{}", "null", NULL},
        {"{\"type\":\"object\"}", "{\"a\":1}", NULL},
        {"{\"type\":\"object\"}", "[]", "arguments: must be of type object, not array"},
        {"{\"type\":\"string\"}", "5", "of type string, not integer"},
        {"{\"type\":\"boolean\"}", "false", NULL},
        {"{\"type\":\"boolean\"}", "0", "not integer"},
        {"{\"type\":\"null\"}", "null", NULL},
        {"{\"type\":\"number\"}", "5", NULL},
        {"{\"type\":\"number\"}", "5.5", NULL},
        {"{\"type\":\"number\"}", "\"5\"", "not string"},
        {"{\"type\":\"integer\"}", "5", NULL},
        {"{\"type\":\"integer\"}", "5.0", NULL},
        {"{\"type\":\"integer\"}", "5.5", "not number"},
        {"{\"type\":\"integer\"}", "1e300", "not number"},
        {"{\"type\":\"integer\"}", "true", "not boolean"},
        {"{\"type\":[\"string\",\"null\"]}", "null", NULL},
        {"{\"type\":[\"string\",\"null\"]}", "1", "of type \"string\", \"null\", not integer"},
        {"{\"enum\":[\"a\",1,null]}", "1", NULL},
        {"{\"enum\":[\"a\",1,null]}", "\"A\"", "must be one of \"a\", 1, null"},
        {"{\"const\":\"a\"}", "\"a\"", NULL},
        {"{\"const\":\"a\"}", "\"b\"", "the one value"},
        {"{\"minimum\":1,\"maximum\":10}", "1", NULL},
        {"{\"minimum\":1,\"maximum\":10}", "0", "at least 1"},
        {"{\"minimum\":1,\"maximum\":10}", "10.5", "at most 10"},
        {"{\"maximum\":9007199254740992}", "9007199254740993", "at most 9.00719925474099e+15"},
        {"{\"minimum\":1}", "\"text\"", NULL},
        {"{\"minLength\":2,\"maxLength\":3}", "\"\xc3\xa4\xe2\x98\x83\xf0\x9f\x98\x80\"", NULL},
        {"{\"minLength\":2}", "\"\xf0\x9f\x98\x80\"", "at least 2 characters, has 1"},
        {"{\"maxLength\":3}", "\"abcd\"", "at most 3 characters, has 4"},
        {"{\"maxItems\":1}", "[1,2]", "at most 1 items, has 2"},
        {"{\"items\":{\"type\":\"integer\"}}", "[1,\"x\"]", "arguments[1]: must be"},
        {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":\"b\"}", NULL},
        {"{\"additionalProperties\":{\"type\":\"string\"}}", "{\"a\":1}", "a: must be of"},
        {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"b\":1}",
         "arguments: has no field 'b'; its fields are: a"},
        {"{\"additionalProperties\":false}", "{\"a b\\u001b[0m\":1}", "its fields are: none"},
        {"{\"properties\":{\"a\":{}},\"required\":[\"a\"]}", "{}", "a: is required"},
        {"{\"properties\":{\"a b\":{\"type\":\"string\"}}}", "{\"a b\":1}", "['a b']: must be"},
        {EDITS, "{\"edits\":[{\"old\":\"a\",\"new\":\"b\"}]}", NULL},
        {EDITS, "{\"edits\":[]}", "edits: must have at least 1 items"},
        {EDITS, "{\"edits\":[{\"old\":\"a\",\"new\":\"b\"},{\"old\":\"\",\"new\":\"\"}]}",
         "edits[1].old: must have at least 1"},
        {EDITS, "{\"edits\":[{\"old\":\"a\"}]}", "edits[0].new: is required"},
        {EDITS, "{\"edits\":[{\"old\":\"a\",\"new\":\"b\",\"all\":true}]}",
         "edits[0]: has no field 'all'; its fields are: old, new"},
        {EDITS, "{\"edits\":[{\"old\":\"a\",\"new\":\"long\"}]}",
         "edits[0].new: must have at most 3"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        json_t *schema = load(row->schema), *value = load(row->value);
        struct error err = {0};

        CHECK_OK(schema_accept(schema, &err), err);
        if (row->why)
            CHECK_ERR(schema_check(schema, value, "arguments", &err), err, ERR_INVALID, row->why);
        else
            CHECK_OK(schema_check(schema, value, "arguments", &err), err);
        for (const char *c = err.msg; *c; c++)
            CHECK((unsigned char)*c >= 0x20, "%s: a control character", row->schema);
        json_decref(schema);
        json_decref(value);
    }
}

static void test_whole(void **state)
{
    json_t *schema =
        load("{\"properties\":{\"n\":{\"type\":\"integer\"},\"x\":{\"type\":\"number\"},"
             "\"list\":{\"items\":{\"type\":\"integer\"}}}}");
    json_t *value = load("{\"n\":5.0,\"x\":5.0,\"list\":[1.0,2]}");
    json_t *want = load("{\"n\":5,\"x\":5.0,\"list\":[1,2]}");
    struct error err = {0};

    (void)state;
    CHECK_OK(schema_check(schema, value, "arguments", &err), err);
    assert_true(json_equal(value, want));
    json_decref(schema);
    json_decref(value);
    json_decref(want);
}

static void test_refused(void **state)
{
    static const struct {
        const char *schema, *why;
    } rows[] = {
        {"[]", "not a schema"},
        {"{\"pattern\":\"^a\"}", "'pattern' is not one that is checked"},
        {"{\"oneOf\":[]}", "'oneOf'"},
        {"{\"$ref\":\"#\"}", "'$ref'"},
        {"{\"exclusiveMinimum\":1}", "'exclusiveMinimum'"},
        {"{\"type\":\"text\"}", "'type' is not as"},
        {"{\"type\":[]}", "'type' is not as"},
        {"{\"type\":[\"string\",5]}", "'type' is not as"},
        {"{\"enum\":[]}", "'enum'"},
        {"{\"required\":\"a\"}", "'required'"},
        {"{\"minLength\":-1}", "'minLength'"},
        {"{\"maxItems\":1.5}", "'maxItems'"},
        {"{\"minimum\":\"1\"}", "'minimum'"},
        {"{\"properties\":[]}", "'properties'"},
        {"{\"items\":[{}]}", "'items'"},
        {"{\"additionalProperties\":1}", "'additionalProperties'"},
        {"{\"properties\":{\"a\":{\"items\":{\"anyOf\":[]}}}}", "a.items: the word 'anyOf'"},
        {"{\"additionalProperties\":{\"not\":{}}}", "additionalProperties: the word 'not'"},
    };

    (void)state;
    FOR_EACH(row, rows)
    {
        json_t *schema = load(row->schema);
        struct error err = {0};

        CHECK_ERR(schema_accept(schema, &err), err, ERR_INVALID, row->why);
        json_decref(schema);
    }
}

int main(void)
{
    static const struct CMUnitTest claims[] = {
        CLAIM("values are checked, and what is wrong is named by its path", test_check),
        CLAIM("5.0 is an integer where one is wanted, and becomes one", test_whole),
        CLAIM("a schema with a word that is not checked is refused", test_refused),
    };

    return RUN_CLAIMS("mcp/schema", claims);
}
