#include "base/buf.h"

#include <errno.h>

#include "test.h"

static void append_stays_within_its_maximum(void **state)
{
    (void)state;
    cleanup_buf struct buf b;
    buf_init(&b, 5);
    assert_int_equal(buf_append(&b, "abc", 3), 0);
    assert_int_equal(buf_append(&b, "xyz", 3), -EMSGSIZE);
    assert_string_equal(b.data, "abc"); /* untouched by the refusal */
    assert_int_equal(buf_append(&b, "de", 2), 0);
    assert_string_equal(b.data, "abcde");
    assert_int_equal(buf_append_byte(&b, 'f'), -EMSGSIZE);
    assert_int_equal(buf_append(&b, NULL, 0), 0);
    assert_null(buf_reserve(&b, 1));
    assert_int_equal(errno, EMSGSIZE);
}

static void consume_and_clear(void **state)
{
    (void)state;
    cleanup_buf struct buf b;
    buf_init(&b, 1 << 20);
    buf_clear(&b); /* of a buffer that never held anything */
    for (int i = 0; i < 1000; i++)
        assert_int_equal(buf_appendf(&b, "%04d", i), 0);
    assert_int_equal(b.len, 4000);
    buf_consume(&b, 3996);
    assert_string_equal(b.data, "0999");
    buf_clear(&b);
    assert_string_equal(b.data, "");
    buf_done(&b);
    assert_int_equal(buf_append_str(&b, "again"), 0); /* usable after done */
    assert_string_equal(b.data, "again");
}

static void formatting_is_whole_or_nothing(void **state)
{
    (void)state;
    cleanup_buf struct buf b;
    buf_init(&b, 8);
    assert_int_equal(buf_appendf(&b, "%s", "1234567"), 0);
    assert_int_equal(buf_appendf(&b, "%d", 89), -EMSGSIZE);
    assert_string_equal(b.data, "1234567");
    assert_int_equal(buf_appendf(&b, "%d", 8), 0);
    assert_string_equal(b.data, "12345678");
}

static void numbers_are_big_endian(void **state)
{
    (void)state;
    cleanup_buf struct buf b;
    buf_init(&b, 15);
    assert_int_equal(buf_append_u64be(&b, 0x0102030405060708), 0);
    assert_int_equal(buf_append_u32be(&b, 0xfffefdfc), 0);
    assert_memory_equal(b.data, "\x01\x02\x03\x04\x05\x06\x07\x08\xff\xfe\xfd\xfc", 12);
    assert_true(u64be(b.data) == 0x0102030405060708);
    assert_int_equal(u32be(b.data + 8), 0xfffefdfc);
    assert_int_equal(buf_append_u64be(&b, 1), -EMSGSIZE); /* nor its first half */
    assert_int_equal(b.len, 12);
}

static void json_text(void **state)
{
    (void)state;
    static const struct {
        const char *name, *in;
        size_t n;
        const char *want;
    } cases[] = {
        {"plain", "abc", 3, "abc"},
        {"quote and backslash", "a\"b\\c", 5, "a\\\"b\\\\c"},
        {"short escapes", "\b\f\n\r\t", 5, "\\b\\f\\n\\r\\t"},
        {"other control bytes", "\0\x01\x1f\x7f", 4, "\\u0000\\u0001\\u001f\\u007f"},
        {"two, three and four bytes", "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80", 9,
         "\xc3\xa9\xe4\xb8\x96\xf0\x9f\x98\x80"},
        {"lone continuation", "a\x80z", 3, "a\xef\xbf\xbdz"},
        {"overlong", "\xc0\xaf", 2, "\xef\xbf\xbd\xef\xbf\xbd"},
        {"surrogate", "\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
        {"maximal subpart is one", "\xf0\x9f\x98z", 4, "\xef\xbf\xbdz"},
        {"cut at the end is one", "a\xf0\x9f\x98", 4, "a\xef\xbf\xbd"},
        {"above U+10FFFF", "\xf4\x90\x80\x80", 4,
         "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf b;
        buf_init(&b, 4096);
        assert_int_equal(buf_append_json_text(&b, cases[i].in, cases[i].n), 0);
        if (!b.data || strcmp(b.data, cases[i].want) != 0)
            fail_msg("%s: %s", cases[i].name, b.data ? b.data : "(nothing)");
    }
    cleanup_buf struct buf b;
    buf_init(&b, 8);
    assert_int_equal(buf_append_str(&b, "12"), 0);
    assert_int_equal(buf_append_json_text(&b, "ab\x01", 3), -EMSGSIZE);
    assert_int_equal(b.len, 2);
}

static void base64(void **state)
{
    (void)state;
    /* RFC 4648, section 10 */
    static const char *const cases[][2] = {{"", ""},
                                           {"f", "Zg=="},
                                           {"fo", "Zm8="},
                                           {"foo", "Zm9v"},
                                           {"foob", "Zm9vYg=="},
                                           {"fooba", "Zm9vYmE="},
                                           {"foobar", "Zm9vYmFy"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        cleanup_buf struct buf b;
        buf_init(&b, 64);
        assert_int_equal(buf_append_str(&b, ""), 0);
        assert_int_equal(buf_append_base64(&b, cases[i][0], strlen(cases[i][0])), 0);
        assert_string_equal(b.data, cases[i][1]);
    }
    cleanup_buf struct buf b;
    buf_init(&b, 3);
    assert_int_equal(buf_append_base64(&b, "f", 1), -EMSGSIZE);
}

static void spans(void **state)
{
    (void)state;
    assert_int_equal(span_str(NULL).len, 0);
    assert_true(span_eq(span_str("abc"), "abc"));
    assert_false(span_eq(span_str("abc"), "ab"));
    assert_false(span_eq((struct span){"ab\0", 3}, "ab"));
    assert_true(span_eq((struct span){NULL, 0}, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(append_stays_within_its_maximum),
        cmocka_unit_test(consume_and_clear),
        cmocka_unit_test(formatting_is_whole_or_nothing),
        cmocka_unit_test(numbers_are_big_endian),
        cmocka_unit_test(json_text),
        cmocka_unit_test(base64),
        cmocka_unit_test(spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
