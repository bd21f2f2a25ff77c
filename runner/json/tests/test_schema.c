/* The schema validator: every keyword, both sides of each bound, and what is refused. */
#include "test.h"

#include <errno.h>
#include <pthread.h>

#include "json/json.h"
#include "json/schema.h"

static json_t *parse(const char *text)
{
    json_t *value = NULL;
    struct err err = {0};
    if (json_parse(text, strlen(text), &value, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return value;
}

static struct schema *compile(const char *text)
{
    struct schema *s = NULL;
    struct err err = {0};
    if (schema_compile(text, &s, &err) < 0)
        fail_msg("%s: %s", text, err.msg);
    return s;
}

/* "path: message" lines. */
static void check(const struct schema *s, const json_t *value, struct buf *out)
{
    json_auto_t *details = NULL;
    int r = schema_check(s, value, &details);
    assert_true(r == 0 || r == 1);
    assert_int_equal(r == 1, json_array_size(details) > 0);
    buf_init(out, 1 << 20);
    assert_int_equal(buf_append_str(out, ""), 0);
    size_t i;
    json_t *d;
    json_array_foreach(details, i, d)
    {
        assert_int_equal(buf_appendf(out, "%s%s: %s", i > 0 ? "\n" : "",
                                     json_string_value(json_object_get(d, "path")),
                                     json_string_value(json_object_get(d, "message"))),
                         0);
    }
}

static const struct {
    const char *schema, *value;
    const char *want; /* "": valid */
} cases[] = {
    {"{}", "{\"any\":[1,null]}", ""},

    {"{\"type\":\"null\"}", "null", ""},
    {"{\"type\":\"null\"}", "0", ": Expected null, received number"},
    {"{\"type\":\"boolean\"}", "true", ""},
    {"{\"type\":\"boolean\"}", "false", ""},
    {"{\"type\":\"boolean\"}", "\"true\"", ": Expected boolean, received string"},
    {"{\"type\":\"string\"}", "\"\"", ""},
    {"{\"type\":\"string\"}", "false", ": Expected string, received boolean"},
    {"{\"type\":\"array\"}", "[]", ""},
    {"{\"type\":\"array\"}", "{}", ": Expected array, received object"},
    {"{\"type\":\"object\"}", "{}", ""},
    {"{\"type\":\"object\"}", "null", ": Expected object, received null"},
    {"{\"type\":\"number\"}", "1.5", ""},
    {"{\"type\":\"number\"}", "1", ""},
    {"{\"type\":\"number\"}", "[]", ": Expected number, received array"},
    {"{\"type\":\"integer\"}", "1", ""},
    {"{\"type\":\"integer\"}", "1.0", ""},
    {"{\"type\":\"integer\"}", "1e300", ""},
    {"{\"type\":\"integer\"}", "1.5", ": Expected integer, received float"},
    {"{\"type\":\"integer\"}", "\"1\"", ": Expected number, received string"},
    {"{\"type\":[\"string\",\"null\"]}", "null", ""},
    {"{\"type\":[\"string\",\"null\"]}", "\"\"", ""},
    {"{\"type\":[\"string\",\"null\"]}", "1", ": Expected string | null, received number"},
    {"{\"type\":[\"integer\",\"null\"]}", "1.5", ": Expected integer | null, received float"},
    {"{\"type\":[\"integer\",\"null\"]}", "\"\"", ": Expected number | null, received string"},

    {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "{\"a\":1,\"b\":2}",
     "a: Expected string, received number"},
    {"{\"properties\":{\"a\":{\"type\":\"string\"}}}", "[1]", ""}, /* says nothing of arrays */
    {"{\"properties\":{\"a\":{},\"b\":{}},\"required\":[\"b\",\"c\",\"a\"]}", "{}",
     "a: Required\nb: Required\nc: Required"},
    {"{\"required\":[\"a\"]}", "{\"a\":null}", ""},
    {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"a\":1}", ""},
    {"{\"properties\":{\"a\":{}},\"additionalProperties\":false}", "{\"x\":1,\"a\":1,\"y\":2}",
     ": Unrecognized key(s) in object: 'x', 'y'"},
    {"{\"additionalProperties\":false}",
     "{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0}",
     ": Unrecognized key(s) in object: '1', '2', '3', '4', '5', '6', '7', '8'"},
    {"{\"additionalProperties\":false}",
     "{\"1\":0,\"2\":0,\"3\":0,\"4\":0,\"5\":0,\"6\":0,\"7\":0,\"8\":0,\"9\":0,\"10\":0}",
     ": Unrecognized key(s) in object: '1', '2', '3', '4', '5', '6', '7', '8' and 2 more"},
    {"{\"required\":[\"a\"],\"additionalProperties\":false}", "{\"a\":1}",
     ": Unrecognized key(s) in object: 'a'"}, /* required does not declare */
    {"{\"properties\":{\"a\":{}},\"additionalProperties\":{\"type\":\"string\"}}",
     "{\"a\":1,\"b\":2,\"c\":\"\"}", "b: Expected string, received number"},

    {"{\"items\":{\"type\":\"string\"}}", "[\"\",1,\"\",null]",
     "1: Expected string, received number\n3: Expected string, received null"},
    {"{\"properties\":{\"a\":{\"items\":{\"properties\":{\"b\":{\"items\":{\"type\":\"null\"}}}}}}"
     "}",
     "{\"a\":[{},{\"b\":[null,1]}]}", "a.1.b.1: Expected null, received number"},
    {"{\"minItems\":2}", "[1,2]", ""},
    {"{\"minItems\":2}", "[1]", ": Array must contain at least 2 element(s), received 1"},
    {"{\"maxItems\":2}", "[1,2]", ""},
    {"{\"maxItems\":2}", "[1,2,3]", ": Array must contain at most 2 element(s), received 3"},

    {"{\"minLength\":2}", "\"ab\"", ""},
    {"{\"minLength\":2}", "\"a\"", ": String must contain at least 2 character(s), received 1"},
    {"{\"minLength\":2}", "\"\\ud83d\\ude00\"", ""}, /* one code point, two units */
    {"{\"maxLength\":2}", "\"ab\"", ""},
    {"{\"maxLength\":2}", "\"abc\"", ": String must contain at most 2 character(s), received 3"},
    {"{\"maxLength\":1}", "\"\\u4e16\"", ""},
    {"{\"maxLength\":1}", "\"\\ud83d\\ude00\"",
     ": String must contain at most 1 character(s), received 2"},
    {"{\"maxLength\":2}", "\"\\u0000\\u0000\\u0000\"",
     ": String must contain at most 2 character(s), received 3"},

    {"{\"pattern\":\"^a+$\"}", "\"aa\"", ""},
    {"{\"pattern\":\"^a+$\"}", "1", ""},
    {"{\"pattern\":\"^a+$\"}", "\"ab\"", ": Invalid, must match ^a+$, received 'ab'"},
    {"{\"pattern\":\"^a+$\"}", "\"aa\\n\"", ": Invalid, must match ^a+$, received 'aa?'"},
    {"{\"pattern\":\"^a+$\"}", "\"aa\\u0000\"", ": Invalid, must match ^a+$, received 'aa?'"},
    {"{\"pattern\":\"b\"}", "\"\\u0000b\"", ""},
    {"{\"pattern\":\"^a$\",\"maxLength\":1}", "\"bb\"", /* too long to be worth reading */
     ": String must contain at most 1 character(s), received 2"},

    {"{\"enum\":[\"a\",1,null]}", "1.0", ""},
    {"{\"enum\":[\"a\",1,null]}", "null", ""},
    {"{\"enum\":[\"a\",1,null]}", "\"1\"",
     ": Invalid enum value. Expected 'a' | 1 | null, received '1'"},
    {"{\"enum\":[[1]]}", "[1]", ""},
    {"{\"const\":\"a\"}", "\"a\"", ""},
    {"{\"const\":null}", "null", ""},
    {"{\"const\":\"a\"}", "{}", ": Invalid literal value, expected 'a', received object"},
    {"{\"const\":1}", "true", ": Invalid literal value, expected 1, received true"},

    {"{\"minimum\":1}", "1", ""},
    {"{\"minimum\":1}", "1.0", ""},
    {"{\"minimum\":1}", "0.5", ": Number must be greater than or equal to 1, received 0.5"},
    {"{\"minimum\":1}", "-9223372036854775808",
     ": Number must be greater than or equal to 1, received -9223372036854775808"},
    {"{\"minimum\":1}", "\"\"", ""},
    {"{\"maximum\":1.5}", "1.5", ""},
    {"{\"maximum\":1.5}", "2", ": Number must be less than or equal to 1.5, received 2"},
    {"{\"maximum\":9007199254740991}", "9007199254740991", ""},
    {"{\"maximum\":9007199254740991}", "9007199254740993",
     ": Number must be less than or equal to 9007199254740991, received 9007199254740993"},
    {"{\"minimum\":-9007199254740991}", "-9007199254740992",
     ": Number must be greater than or equal to -9007199254740991, received -9007199254740992"},

    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"minimum\":1}]}", "\"\"", ""},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"minimum\":1}]}", "1", ""},
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"minimum\":1}]}", "0",
     ": Number must be greater than or equal to 1, received 0"}, /* the only one of its type */
    {"{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"integer\",\"minimum\":1}]}", "null",
     ": Invalid input"},
    {"{\"anyOf\":[{\"maximum\":1},{\"minimum\":3}]}", "2", ": Invalid input"},
    {"{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/"
     "o\"}],\"$defs\":{\"o\":{\"type\":\"object\","
     "\"required\":[\"a\",\"b\"]}}}",
     "{}", "a: Required\nb: Required"},

    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/"
     "b\"},\"b\":{\"type\":\"null\"}}}",
     "null", ""},
    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/"
     "b\"},\"b\":{\"type\":\"null\"}}}",
     "1", ": Expected null, received number"},
    {"{\"$ref\":\"#/$defs/a\",\"minimum\":5,\"$defs\":{\"a\":{\"maximum\":1}}}", "3",
     ": Number must be less than or equal to 1, received 3\n"
     ": Number must be greater than or equal to 5, received 3"},

    {"{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"$id\":\"x\",\"title\":\"t\","
     "\"description\":\"d\",\"default\":1,\"examples\":[1]}",
     "{}", ""},
};

static void test_keywords(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_schema struct schema *s = compile(cases[i].schema);
        json_auto_t *value = parse(cases[i].value);
        cleanup_buf struct buf got;
        check(s, value, &got);
        if (strcmp(got.data, cases[i].want) != 0)
            fail_msg("%s of %s:\n%s\nwanted:\n%s", cases[i].schema, cases[i].value, got.data,
                     cases[i].want);
    }
}

static const struct {
    const char *schema, *error; /* how the error begins */
} refused[] = {
    {"", "line 1, "},
    {"{", "line 1, "},
    {"true", "#: a schema is an object"},
    {"[]", "#: a schema is an object"},
    {"{\"Type\":\"string\"}", "#/Type: unknown keyword"},
    {"{\"format\":\"uri\"}", "#/format: unknown keyword"},
    {"{\"oneOf\":[{}]}", "#/oneOf: unknown keyword"},
    {"{\"exclusiveMinimum\":1}", "#/exclusiveMinimum: unknown keyword"},
    {"{\"properties\":{\"a\":{\"items\":{\"uniqueItems\":true}}}}",
     "#/properties/a/items/uniqueItems: unknown keyword"},
    {"{\"anyOf\":[{},{\"x\":1}]}", "#/anyOf/1/x: unknown keyword"},
    {"{\"$defs\":{\"a\":{\"x\":1}}}", "#/$defs/a/x: unknown keyword"},
    {"{\"type\":\"text\"}", "#/type: not a type"},
    {"{\"type\":1}", "#/type: not a type"},
    {"{\"type\":[]}", "#/type: not a type"},
    {"{\"type\":[\"string\",\"text\"]}", "#/type: a type that does not exist"},
    {"{\"properties\":[]}", "#/properties: not an object"},
    {"{\"properties\":{\"a\":true}}", "#/properties/a: a schema is an object"},
    {"{\"required\":\"a\"}", "#/required: not a list of names"},
    {"{\"required\":[1]}", "#/required: not a list of names"},
    {"{\"additionalProperties\":true}", "#/additionalProperties: a schema is an object"},
    {"{\"items\":[{}]}", "#/items: a schema is an object"},
    {"{\"minItems\":-1}", "#/minItems: not an integer >= 0"},
    {"{\"maxItems\":\"1\"}", "#/maxItems: not an integer >= 0"},
    {"{\"minLength\":1.5}", "#/minLength: not an integer >= 0"},
    {"{\"maxLength\":1e300}", "#/maxLength: not an integer >= 0"},
    {"{\"minimum\":\"1\"}", "#/minimum: not a number"},
    {"{\"maximum\":9007199254740992}", "#/maximum: not a number within 2^53 - 1"},
    {"{\"pattern\":1}", "#/pattern: not a pattern"},
    {"{\"pattern\":\"a\\u0000b\"}", "#/pattern: not a pattern"},
    {"{\"pattern\":\"(\"}", "#/pattern: "},
    {"{\"enum\":[]}", "#/enum: not a list of values"},
    {"{\"enum\":\"a\"}", "#/enum: not a list of values"},
    {"{\"anyOf\":[]}", "#/anyOf: not a list of schemas"},
    {"{\"anyOf\":{}}", "#/anyOf: not a list of schemas"},
    {"{\"$ref\":1}", "#/$ref: only #/$defs/name is understood"},
    {"{\"$ref\":\"other.json\"}", "#/$ref: only #/$defs/name is understood"},
    {"{\"$ref\":\"#\"}", "#/$ref: only #/$defs/name is understood"},
    {"{\"$ref\":\"#/$defs/a\"}", "#/$ref: no such entry in $defs"},
    {"{\"$defs\":[]}", "#/$defs: not an object"},
    {"{\"$defs\":{\"a/b\":{}}}", "#/$defs: a name with"},
    {"{\"items\":{\"$defs\":{}}}", "#/items/$defs: only at the root"},
    {"{\"$id\":1}", "#/$id: only a string at the root"},
    {"{\"items\":{\"$id\":\"x\"}}", "#/items/$id: only a string at the root"},
    {"{\"$schema\":\"http://json-schema.org/draft-07/schema#\"}", "#/$schema: only "},
    {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/a\"}}}", "a $ref leads back"},
    {"{\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"anyOf\":[{},{\"$ref\":\"#/$defs/a\"}]}}}",
     "a $ref leads back"},
};

static void test_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct schema *s = NULL;
        struct err err = {0};
        int r = schema_compile(refused[i].schema, &s, &err);
        if (r != -EINVAL || s || strncmp(err.msg, refused[i].error, strlen(refused[i].error)) != 0)
            fail_msg("%s: r=%d %s", refused[i].schema, r, err.msg);
        assert_int_equal(schema_compile(refused[i].schema, &s, NULL), -EINVAL);
    }
    schema_free(NULL);
}

/* depth arrays inside each other. */
static json_t *nest(size_t depth)
{
    json_t *value = json_array();
    for (size_t i = 1; i < depth; i++) {
        json_t *outer = json_array();
        assert_int_equal(json_array_append_new(outer, value), 0);
        value = outer;
    }
    return value;
}

static void test_depth(void **state)
{
    (void)state;
    cleanup_schema struct schema *s =
        compile("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"type\":\"array\",\"items\":"
                "{\"$ref\":\"#/$defs/a\"}}}}");
    static const struct {
        size_t depth;
        int want;
    } depths[] = {{1, 0}, {90, 0}, {100, 0}, {101, 1}, {2000, 1}};
    for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
        json_auto_t *value = nest(depths[i].depth);
        json_auto_t *details = NULL;
        assert_int_equal(schema_check(s, value, &details), depths[i].want);
        if (!details)
            continue;
        assert_int_equal(json_array_size(details), 1);
        const json_t *d = json_array_get(details, 0);
        assert_string_equal(json_string_value(json_object_get(d, "message")), "Nested too deeply");
        assert_true(json_string_length(json_object_get(d, "path")) <= 1024);
    }
}

/* Twenty levels of anyOf with two open branches each must not take 2^20 steps of work. */
static void test_any_of_is_linear(void **state)
{
    (void)state;
    cleanup_schema struct schema *s =
        compile("{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"anyOf\":[{\"type\":\"string\"},"
                "{\"type\":\"array\",\"minItems\":1,\"items\":{\"$ref\":\"#/$defs/a\"}}]}}}");
    json_auto_t *value = nest(20);
    cleanup_buf struct buf got;
    check(s, value, &got);
    const char want[] = "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0: Array must contain at least 1 "
                        "element(s), received 0";
    assert_string_equal(got.data, want);
}

static void test_violations_max(void **state)
{
    (void)state;
    cleanup_schema struct schema *s = compile("{\"items\":{\"type\":\"string\",\"minLength\":1}}");
    static const struct {
        size_t bad, want;
    } sizes[] = {{99, 99}, {100, 100}, {101, 100}, {100000, 100}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        json_auto_t *value = json_array();
        for (size_t k = 0; k < sizes[i].bad; k++)
            assert_int_equal(json_array_append_new(value, json_integer(1)), 0);
        json_auto_t *details = NULL;
        assert_int_equal(schema_check(s, value, &details), 1);
        assert_int_equal(json_array_size(details), sizes[i].want);
    }
    assert_int_equal(SCHEMA_VIOLATIONS_MAX, 100);
}

/* What users send comes back short, whole code points only, and without control bytes. */
static void test_echo(void **state)
{
    (void)state;
    cleanup_buf struct buf big;
    buf_init(&big, 1 << 20);
    assert_int_equal(buf_append_str(&big, "abc\x01\x7f"), 0);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(buf_append_str(&big, "\xe4\xb8\x96"), 0);

    static const char *const schemas[] = {
        "{\"properties\":{\"v\":{\"enum\":[\"x\"]}}}",
        "{\"properties\":{\"v\":{\"const\":\"x\"}}}",
        "{\"properties\":{\"v\":{\"pattern\":\"^x\"}}}",
        "{\"additionalProperties\":{\"maxLength\":1}}",
        "{\"properties\":{\"v\":{}},\"additionalProperties\":false}",
    };
    for (size_t i = 0; i < ARRAY_LEN(schemas); i++) {
        cleanup_schema struct schema *s = compile(schemas[i]);
        json_auto_t *value = json_object();
        assert_int_equal(json_object_set_new(value, "v", json_string_lossy(big.data, big.len)), 0);
        assert_int_equal(json_object_set_new(value, big.data, json_string("xx")), 0);
        json_auto_t *details = NULL;
        assert_int_equal(schema_check(s, value, &details), 1);
        cleanup_buf struct buf text;
        buf_init(&text, 1 << 20);
        assert_int_equal(json_print(&text, details), 0);
        if (text.len > 400 || !strstr(text.data, "abc??\xe4\xb8\x96") || !strstr(text.data, "..."))
            fail_msg("%s: %s", schemas[i], text.data);
    }
}

static const char shared_schema[] =
    "{\"items\":{\"anyOf\":[{\"$ref\":\"#/$defs/s\"},{\"type\":\"null\"}]},"
    "\"$defs\":{\"s\":{\"type\":\"string\",\"pattern\":\"^(a|b)*c{2,4}$\",\"enum\":[\"acc\"]}}}";

/* Asserts only by its result: cmocka can't fail a test from another thread. */
static void *check_many(void *arg)
{
    size_t wrong = 0;
    for (int i = 0; i < 500; i++) {
        json_auto_t *value = json_pack("[s, n, s]", "acc", "bc");
        json_auto_t *details = NULL;
        if (schema_check(arg, value, &details) != 1 || json_array_size(details) != 2)
            wrong++;
    }
    return wrong ? arg : NULL;
}

static void test_threads(void **state)
{
    (void)state;
    cleanup_schema struct schema *s = compile(shared_schema);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, check_many, s), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_keywords),       cmocka_unit_test(test_refused),
        cmocka_unit_test(test_depth),          cmocka_unit_test(test_any_of_is_linear),
        cmocka_unit_test(test_violations_max), cmocka_unit_test(test_echo),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
