#include "hub_test.h"

static void test_sign(void **state)
{
    (void)state;
    /* The worked example of Pusher's manual on channel authorisation. */
    struct hub h = {.app_key = (char[]){"278d425bdf160c739803"},
                    .app_secret = (char[]){"7ad3773142a6692b25b8"}};
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(hub_sign(&h, SPAN_LIT("1234.1234"), SPAN_LIT("private-foobar"), &out), 0);
    assert_string_equal(out.data,
                        "278d425bdf160c739803:"
                        "58df8b0c36d6982b82c3ecf6b4662e34fe8c25bba48f5369f135bf843651c3a4");
    buf_done(&out);
    buf_init(&out, 50);
    assert_int_equal(hub_sign(&h, SPAN_LIT("1234.1234"), SPAN_LIT("private-foobar"), &out),
                     -EMSGSIZE);
    buf_done(&out);
}

static void test_names(void **state)
{
    (void)state;
    char longest[HUB_CHANNEL_MAX + 2];
    memset(longest, 'a', sizeof(longest));
    char digits[HUB_SOCKET_ID_MAX + 2];
    memset(digits, '1', sizeof(digits));
    digits[1] = '.';
    const struct {
        struct span id;
        struct span channel;
        bool ok;
    } cases[] = {
        {SPAN_LIT("1.2"), SPAN_LIT("x"), true},
        {SPAN_LIT("1.2"), SPAN_LIT("AZaz09_-=@,.;"), true},
        {SPAN_LIT("1.2"), {longest, HUB_CHANNEL_MAX}, true},
        {SPAN_LIT("1.2"), {longest, HUB_CHANNEL_MAX + 1}, false},
        {SPAN_LIT("1.2"), SPAN_LIT(""), false},
        {SPAN_LIT("1.2"), SPAN_LIT("a b"), false},
        {SPAN_LIT("1.2"), SPAN_LIT("a\0"), false},
        {SPAN_LIT("1.2"), SPAN_LIT("a:b"), false},
        {SPAN_LIT("1.2"), SPAN_LIT("\xc3\xa9"), false},
        {{digits, HUB_SOCKET_ID_MAX}, SPAN_LIT("x"), true},
        {{digits, HUB_SOCKET_ID_MAX + 1}, SPAN_LIT("x"), false},
        {SPAN_LIT(""), SPAN_LIT("x"), false},
        {SPAN_LIT("."), SPAN_LIT("x"), false},
        {SPAN_LIT("1."), SPAN_LIT("x"), false},
        {SPAN_LIT(".1"), SPAN_LIT("x"), false},
        {SPAN_LIT("12"), SPAN_LIT("x"), false},
        {SPAN_LIT("123"), SPAN_LIT("x"), false},
        {SPAN_LIT("1.2.3"), SPAN_LIT("x"), false},
        {SPAN_LIT("1.a"), SPAN_LIT("x"), false},
        {SPAN_LIT("1.2\n"), SPAN_LIT("x"), false},
    };
    struct hub h = {.app_key = (char[]){"k"}, .app_secret = (char[]){"s"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        buf_init(&out, 1000);
        int r = hub_sign(&h, cases[i].id, cases[i].channel, &out);
        if (r != (cases[i].ok ? 0 : -EINVAL) || (r < 0 && out.len != 0))
            fail_msg("case %zu: %d", i, r);
        buf_done(&out);
    }
}

static void test_parse(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int want;
        enum message_type type;
        const char *channel;
        const char *auth;
    } cases[] = {
        {"{\"event\":\"pusher:ping\",\"data\":{}}", 0, MESSAGE_PING, "", ""},
        {"{\"event\":\"pusher:ping\"}", 0, MESSAGE_PING, "", ""},
        {"{\"event\":\"pusher:pong\",\"data\":\"\"}", 0, MESSAGE_PONG, "", ""},
        {"{\"event\":\"client-x\"}", 0, MESSAGE_CLIENT_EVENT, "", ""},
        {"{\"event\":\"client\"}", 0, MESSAGE_UNKNOWN, "", ""},
        {"{\"event\":\"pusher:signin\",\"data\":{}}", 0, MESSAGE_UNKNOWN, "", ""},
        {"{\"event\":\"pusher:ping\\u0000\"}", 0, MESSAGE_UNKNOWN, "", ""},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"c\",\"auth\":\"a\",\"x\":1}}", 0,
         MESSAGE_SUBSCRIBE, "c", "a"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"c\",\"auth\":null}}", 0,
         MESSAGE_SUBSCRIBE, "c", ""},
        {"{\"event\":\"pusher:subscribe\",\"data\":\"{\\\"channel\\\":\\\"c\\\"}\"}", 0,
         MESSAGE_SUBSCRIBE, "c", ""},
        {"{\"event\":\"pusher:unsubscribe\",\"data\":{\"channel\":\"c\",\"auth\":1}}", 0,
         MESSAGE_UNSUBSCRIBE, "c", ""},
        {"{\"event\":\"pusher:unsubscribe\",\"data\":{}}", -EINVAL, 0, NULL, NULL},
        {"{\"event\":\"pusher:unsubscribe\",\"data\":\"[]\"}", -EINVAL, 0, NULL, NULL},
        {"{\"event\":null}", -EINVAL, 0, NULL, NULL},
        {"{\"event\":\"pusher:ping\",\"event\":\"pusher:pong\"}", -EINVAL, 0, NULL, NULL},
        {"{\"event\":\"pusher:ping\"} x", -EINVAL, 0, NULL, NULL},
        {"null", -EINVAL, 0, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct message m = {0};
        struct err err = {0};
        int r = message_parse(cases[i].text, strlen(cases[i].text), &m, &err);
        if (r != cases[i].want || err.code != cases[i].want)
            fail_msg("%s: %d %s", cases[i].text, r, err.msg);
        if (r == 0) {
            assert_int_equal(m.type, cases[i].type);
            assert_true(m.channel.ptr ? span_eq(m.channel, cases[i].channel)
                                      : cases[i].channel[0] == '\0');
            assert_true(m.auth.ptr ? span_eq(m.auth, cases[i].auth) : cases[i].auth[0] == '\0');
        }
        message_done(&m);
    }
}

static void test_texts(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 1000);
    assert_int_equal(message_event(&out, "stdout", "c", SPAN_LIT("{\"a\":\"\\n\xff\"}")), 0);
    assert_string_equal(out.data, "{\"event\":\"stdout\",\"channel\":\"c\",\"data\":"
                                  "\"{\\\"a\\\":\\\"\\\\n\xef\xbf\xbd\\\"}\"}");
    buf_clear(&out);
    assert_int_equal(message_established(&out, "1.2", 120), 0);
    assert_string_equal(out.data,
                        "{\"event\":\"pusher:connection_established\",\"data\":"
                        "\"{\\\"socket_id\\\":\\\"1.2\\\",\\\"activity_timeout\\\":120}\"}");
    buf_clear(&out);
    assert_int_equal(message_error(&out, PUSHER_NO_CODE, "say \"x\""), 0);
    assert_string_equal(
        out.data,
        "{\"event\":\"pusher:error\",\"data\":{\"code\":null,\"message\":\"say \\\"x\\\"\"}}");
    buf_done(&out);
    buf_init(&out, 20);
    assert_int_equal(message_pong(&out), -EMSGSIZE);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sign),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
