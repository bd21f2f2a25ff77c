/* Parsing, printing and reading of JSON values. */
#include "test.h"

#include <errno.h>

#include "json/json.h"

#define ANY_ERROR "" /* refused; the words are jansson's */

static const struct {
    const char *name, *text;
    size_t len; /* 0: strlen */
    const char *print;
    const char *error; /* NULL: accepted */
} parses[] = {
    {"object", "{\"b\":1,\"a\":[true,false,null]}", 0, "{\"b\":1,\"a\":[true,false,null]}", NULL},
    {"white space", " [ 1 ,\t2\r\n] ", 0, "[1,2]", NULL},
    {"bare string", "\"x\"", 0, "\"x\"", NULL},
    {"bare number", "12", 0, "12", NULL},
    {"bare null", "null", 0, "null", NULL},
    {"zero fraction", "1.0", 0, "1.0", NULL},
    {"largest integer", "9223372036854775807", 0, "9223372036854775807", NULL},
    {"NUL in a string", "\"a\\u0000b\"", 0, "\"a\\u0000b\"", NULL},
    {"surrogate pair", "\"\\ud83d\\ude00\"", 0, "\"\xf0\x9f\x98\x80\"", NULL},
    {"raw UTF-8", "\"\xe4\xb8\x96\"", 0, "\"\xe4\xb8\x96\"", NULL},

    {"empty", "", 0, NULL, "line 1, column 0: "},
    {"only space", "  ", 0, NULL, ANY_ERROR},
    {"open object", "{", 0, NULL, "line 1, column 1: "},
    {"second line", "{\n  \"a\" 1}", 0, NULL, "line 2, column 7: "},
    {"two values", "{} {}", 0, NULL, ANY_ERROR},
    {"tail", "{}x", 0, NULL, ANY_ERROR},
    {"NUL after the value", "{}\0", 3, NULL, ANY_ERROR},
    {"raw NUL in a string", "\"a\0b\"", 5, NULL, ANY_ERROR},
    {"NUL in a key", "{\"a\\u0000b\":1}", 0, NULL, ANY_ERROR},
    {"control byte", "\"a\x01\"", 0, NULL, ANY_ERROR},
    {"duplicate key", "{\"a\":1,\"a\":2}", 0, NULL, "line 1, column 10: duplicate object key"},
    {"lone high surrogate", "\"\\ud800\"", 0, NULL, ANY_ERROR},
    {"lone low surrogate", "\"\\udc00\"", 0, NULL, ANY_ERROR},
    {"high twice", "\"\\ud800\\ud800\"", 0, NULL, ANY_ERROR},
    {"encoded surrogate", "\"\xed\xa0\x80\"", 0, NULL, ANY_ERROR},
    {"invalid UTF-8", "\"\xff\"", 0, NULL, ANY_ERROR},
    {"overlong", "\"\xc0\xaf\"", 0, NULL, ANY_ERROR},
    {"byte order mark", "\xef\xbb\xbf{}", 0, NULL, ANY_ERROR},
    {"past the largest integer", "9223372036854775808", 0, NULL, ANY_ERROR},
    {"past the smallest integer", "-9223372036854775809", 0, NULL, ANY_ERROR},
    {"huge real", "1e400", 0, NULL, ANY_ERROR},
    {"NaN", "NaN", 0, NULL, ANY_ERROR},
    {"comment", "{/**/}", 0, NULL, ANY_ERROR},
    {"trailing comma", "[1,]", 0, NULL, ANY_ERROR},
    {"single quotes", "{'a':1}", 0, NULL, ANY_ERROR},
    {"leading zero", "01", 0, NULL, ANY_ERROR},
    {"plus", "+1", 0, NULL, ANY_ERROR},
    {"UTF-16", "{\0}\0", 4, NULL, ANY_ERROR},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(parses); i++) {
        json_t *untouched = json_null();
        json_t *value = untouched;
        struct err err = {0};
        size_t len = parses[i].len ? parses[i].len : strlen(parses[i].text);
        int r = json_parse(parses[i].text, len, &value, &err);
        if (parses[i].error) {
            if (r != -EINVAL || err.code != -EINVAL || value != untouched)
                fail_msg("%s: r=%d", parses[i].name, r);
            if (strncmp(err.msg, "line ", 5) != 0 ||
                strncmp(err.msg, parses[i].error, strlen(parses[i].error)) != 0)
                fail_msg("%s: %s", parses[i].name, err.msg);
            assert_null(strpbrk(err.msg, "\r\n\x01"));
            continue;
        }
        if (r != 0)
            fail_msg("%s: %s", parses[i].name, err.msg);
        cleanup_buf struct buf out;
        buf_init(&out, 1024);
        assert_int_equal(json_print(&out, value), 0);
        assert_string_equal(out.data, parses[i].print);
        json_decref(value);
    }
    struct err err = {0};
    json_t *value = NULL;
    assert_int_equal(json_parse(NULL, 0, &value, &err), -EINVAL);
    assert_int_equal(json_parse("{", 1, &value, NULL), -EINVAL);
}

/* Both sides of the parser's depth limit; far beyond it must not reach the end of the stack. */
static void test_depth(void **state)
{
    (void)state;
    static const struct {
        size_t depth;
        int want;
    } depths[] = {{2047, 0}, {2049, -EINVAL}, {1000000, -EINVAL}};
    for (size_t i = 0; i < ARRAY_LEN(depths); i++) {
        size_t n = depths[i].depth;
        char *text = malloc(2 * n);
        assert_non_null(text);
        memset(text, '[', n);
        memset(text + n, ']', n);
        json_t *value = NULL;
        struct err err = {0};
        assert_int_equal(json_parse(text, 2 * n, &value, &err), depths[i].want);
        if (value) {
            cleanup_buf struct buf out;
            buf_init(&out, 2 * n);
            assert_int_equal(json_print(&out, value), 0);
            assert_memory_equal(out.data, text, 2 * n);
        }
        json_decref(value);
        free(text);
    }
}

static void test_print_bound(void **state)
{
    (void)state;
    json_auto_t *value = json_pack("{s:s, s:[i, i]}", "a", "bc", "d", 1, 2);
    assert_non_null(value);
    const char want[] = "x{\"a\":\"bc\",\"d\":[1,2]}";
    for (size_t max = 0; max < sizeof(want) + 1; max++) {
        cleanup_buf struct buf out;
        buf_init(&out, max);
        int before = buf_append_str(&out, "x");
        int r = json_print(&out, value);
        if (max < sizeof(want) - 1) {
            assert_int_equal(r, -EMSGSIZE);
            assert_int_equal(out.len, before == 0 ? 1 : 0);
            if (before == 0)
                assert_string_equal(out.data, "x");
        } else {
            assert_int_equal(r, 0);
            assert_string_equal(out.data, want);
        }
    }
}

static void test_text(void **state)
{
    (void)state;
    json_auto_t *s = json_stringn("a\0b", 3);
    json_auto_t *n = json_integer(1);
    size_t len = 77;
    assert_null(json_text(n, &len));
    assert_null(json_text(NULL, &len));
    assert_int_equal(len, 77);
    assert_memory_equal(json_text(s, &len), "a\0b", 4);
    assert_int_equal(len, 3);
    assert_non_null(json_text(s, NULL));
}

static void test_int(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int want;
        int64_t value;
    } ints[] = {
        {"0", 0, 0},
        {"-0.0", 0, 0},
        {"1.0", 0, 1},
        {"1e3", 0, 1000},
        {"-12", 0, -12},
        {"9007199254740991", 0, JSON_SAFE_INT_MAX},
        {"-9007199254740991", 0, -JSON_SAFE_INT_MAX},
        {"9007199254740991.0", 0, JSON_SAFE_INT_MAX},
        {"9007199254740992", -ERANGE, 0},
        {"-9007199254740992", -ERANGE, 0},
        {"9007199254740992.0", -ERANGE, 0},
        {"9223372036854775807", -ERANGE, 0},
        {"1e18", -ERANGE, 0},
        {"1e300", -ERANGE, 0},
        {"-1e300", -ERANGE, 0},
        {"1.5", -EINVAL, 0},
        {"1e-300", -EINVAL, 0},
        {"\"1\"", -EINVAL, 0},
        {"null", -EINVAL, 0},
        {"true", -EINVAL, 0},
        {"[]", -EINVAL, 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ints); i++) {
        json_t *value = NULL;
        assert_int_equal(json_parse(ints[i].text, strlen(ints[i].text), &value, NULL), 0);
        int64_t got = 77;
        int r = json_int(value, &got);
        if (r != ints[i].want || got != (r < 0 ? 77 : ints[i].value))
            fail_msg("%s: r=%d got=%lld", ints[i].text, r, (long long)got);
        json_decref(value);
    }
    int64_t got = 77;
    assert_int_equal(json_int(NULL, &got), -EINVAL);
}

static void test_lossy(void **state)
{
    (void)state;
#define R "\xef\xbf\xbd"
    static const struct {
        const char *bytes;
        size_t n;
        const char *want;
        size_t want_n;
    } texts[] = {
        {"", 0, "", 0},
        {NULL, 0, "", 0},
        {"plain", 5, "plain", 5},
        {"a\0b", 3, "a\0b", 3},
        {"\xe4\xb8\x96", 3, "\xe4\xb8\x96", 3},
        {"a\xff\xfez", 4, "a" R R "z", 8},
        {"\xe4\xb8", 2, R, 3},
        {"\xe4\xb8z", 3, R "z", 4},
        {"\xed\xa0\x80", 3, R R R, 9},
        {"\xf0\x9f\x98\x80\xf0\x9f", 6, "\xf0\x9f\x98\x80" R, 7},
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        json_auto_t *s = json_string_lossy(texts[i].bytes, texts[i].n);
        assert_non_null(s);
        assert_int_equal(json_string_length(s), texts[i].want_n);
        assert_memory_equal(json_string_value(s), texts[i].want, texts[i].want_n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),       cmocka_unit_test(test_depth),
        cmocka_unit_test(test_print_bound), cmocka_unit_test(test_text),
        cmocka_unit_test(test_int),         cmocka_unit_test(test_lossy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
