#include "hub_test.h"

#define RESULT                                                                                     \
    "{\"exitCode\":0,\"signal\":null,\"timedOut\":false,\"idleTimedOut\":false,\"truncated\":"     \
    "false,\"durationMs\":0}"

static void test_connect_and_ping(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer a;
    struct peer b;
    peer_connect(&w, &a);
    peer_connect(&w, &b);
    assert_string_not_equal(a.id, b.id);
    assert_int_equal(hub_connections(w.hub), 2);
    peer_sync(&a);
    peer_frame(&a, (struct frame_shape){.head = 0x89}, "hello", 5);
    assert_int_equal(peer_next(&a), WSLAY_PONG);
    assert_string_equal(a.msg.data, "hello");
    peer_end(&a);
    await_connections(&w, 1);
    world_end(&w);
    assert_int_equal(released, 2);
    peer_end(&b);
}

static void test_extra_bytes(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct buf extra;
    buf_init(&extra, 1 << 20);
    const char *bad = "{\"event\":\"pusher:what\",\"data\":{}}";
    for (int i = 0; i < 2000; i++)
        frame_to(&extra, (struct frame_shape){.head = 0x81}, bad, strlen(bad));
    struct peer p;
    peer_connect_with(&w, &p, buf_span(&extra));
    buf_done(&extra); /* was borrowed for the call */
    for (int i = 0; i < 2000; i++)
        peer_expect(&p, "{\"event\":\"pusher:error\",\"data\":{\"code\":null,\"message\":"
                        "\"event is not one of this protocol\"}}");
    peer_sync(&p);
    peer_end(&p);
    world_end(&w);
}

static void test_unknown_app(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    static const char *const keys[] = {"", "other", "app-ke", "app-key2"};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct peer p;
        assert_int_equal(peer_adopt(&w, &p, keys[i], (struct span){0}), 0);
        peer_expect(&p, "{\"event\":\"pusher:error\",\"data\":{\"code\":4001,\"message\":"
                        "\"there is no app with this key\"}}");
        peer_expect_close(&p, 4001);
        peer_end(&p);
    }
    await_connections(&w, 0);
    assert_int_equal(released, ARRAY_LEN(keys));
    world_end(&w);
}

static void expect_refusal(struct peer *p, bool on_channel, const char *word)
{
    if (on_channel) {
        json_t *m = peer_json(p);
        const json_t *data = json_object_get(m, "data");
        assert_string_equal(field(m, "event"), "pusher:subscription_error");
        assert_string_equal(field(data, "type"), "AuthError");
        assert_int_equal(json_integer_value(json_object_get(data, "status")), 401);
        json_decref(m);
    }
    json_t *m = peer_json(p);
    assert_string_equal(field(m, "event"), "pusher:error");
    const char *message = field(json_object_get(m, "data"), "message");
    if (!strstr(message, word))
        fail_msg("no \"%s\" in: %s", word, message);
    json_decref(m);
}

#define ANY "private-run-" JOB_A

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool on_channel;
        const char *word;
    } cases[] = {
        {"", false, "no JSON"},
        {"{", false, "no JSON"},
        {"[]", false, "must be an object"},
        {"{}", false, "event must be a string"},
        {"{\"event\":7}", false, "event must be a string"},
        {"{\"event\":\"pusher:what\"}", false, "not one of this protocol"},
        {"{\"event\":\"client-type\",\"channel\":\"" ANY "\",\"data\":{}}", false, "client events"},
        {"{\"event\":\"pusher:subscribe\"}", false, "data must be an object"},
        {"{\"event\":\"pusher:subscribe\",\"data\":\"x\"}", false, "data is no JSON"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{}}", false, "data.channel must be a string"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"a b\"}}", false, "1 to 200"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"\"}}", false, "1 to 200"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"public\"}}", true, "begin with"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"presence-run-x\"}}", true,
         "begin with"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"" ANY "\"}}", true, "HMAC"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"" ANY "\",\"auth\":1}}", false,
         "data.auth must be a string"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"" ANY "\",\"auth\":\"\"}}", true,
         "HMAC"},
        {"{\"event\":\"pusher:subscribe\",\"data\":{\"channel\":\"" ANY "\",\"auth\":\"" KEY
         ":0000000000000000000000000000000000000000000000000000000000000000\"}}",
         true, "HMAC"},
        {"\"\\ud800\"", false, "no JSON"},
    };
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        peer_say(&p, cases[i].text);
        expect_refusal(&p, cases[i].on_channel, cases[i].word);
    }
    peer_sync(&p); /* and it goes on */
    peer_end(&p);
    world_end(&w);
}

static void test_signature_of_another(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer a;
    struct peer b;
    peer_connect(&w, &a);
    peer_connect(&w, &b);
    char id[sizeof(a.id)];
    memcpy(id, b.id, sizeof(id));
    memcpy(b.id, a.id, sizeof(id));
    peer_ask(&w, &b, JOB_A);
    expect_refusal(&b, true, "HMAC");
    memcpy(b.id, id, sizeof(id));
    peer_subscribe(&w, &b, JOB_A);
    peer_end(&a);
    peer_end(&b);
    world_end(&w);
}

static void test_data_as_string(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    struct buf auth;
    buf_init(&auth, 1000);
    assert_int_equal(hub_sign(w.hub, span_str(p.id), SPAN_LIT(ANY), &auth), 0);
    char text[1000];
    (void)snprintf(text, sizeof(text),
                   "{\"event\":\"pusher:subscribe\",\"data\":\"{\\\"auth\\\":\\\"%s\\\","
                   "\\\"channel\\\":\\\"" ANY "\\\"}\"}",
                   auth.data);
    buf_done(&auth);
    peer_say(&p, text);
    peer_expect_event(&p, JOB_A, "pusher_internal:subscription_succeeded", "{}");
    peer_end(&p);
    world_end(&w);
}

#define MANY 1000

static void expect_many(struct peer *p)
{
    for (int i = 1; i <= MANY; i++) {
        char want[100];
        (void)snprintf(
            want, sizeof(want),
            "{\"chunk\":\"%d \\\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\\\"\\n\",\"seq\":%d}", i, i);
        peer_expect_event(p, JOB_A, "stdout", want);
    }
}

static void say_many(struct bus *b, const struct fence *f)
{
    for (int i = 1; i <= MANY; i++) {
        char text[100];
        (void)snprintf(text, sizeof(text), "%d \"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"\n", i);
        say(b, f, text, (uint64_t)i);
    }
}

static void test_replay_of_ended_job(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence f = new_job(w.bus, JOB_A);
    append(w.bus, &f, EVENT_STAGE, SPAN_LIT("{\"phase\":\"running\"}"), 0);
    say_many(w.bus, &f);
    finish(w.bus, &f);
    struct peer p;
    peer_connect(&w, &p);
    peer_subscribe(&w, &p, JOB_A);
    peer_expect_event(&p, JOB_A, "stage", "{\"phase\":\"running\"}");
    expect_many(&p);
    peer_expect_event(&p, JOB_A, "result", RESULT); /* no report before it */
    peer_sync(&p);                                  /* and no artifact after it */
    peer_end(&p);
    world_end(&w);
}

static void test_live(void **state)
{
    (void)state;
    for (int replay = 0; replay < 2; replay++) {
        struct world w = world_with(replay, 10);
        struct fence f = new_job(w.bus, JOB_A);
        struct peer p;
        peer_connect(&w, &p);
        peer_subscribe(&w, &p, JOB_A);
        say_many(w.bus, &f);
        expect_many(&p);
        finish(w.bus, &f);
        peer_expect_event(&p, JOB_A, "result", RESULT);
        peer_expect_event(&p, JOB_A, "artifact", "{\"name\":\"plot.png\"}");
        peer_sync(&p);
        peer_end(&p);
        world_end(&w);
    }
}

/* Each length of the log that the search for its end can stumble over. */
static void test_no_replay(void **state)
{
    (void)state;
    struct world w = world_with(false, 100);
    struct fence f = new_job(w.bus, JOB_A);
    char text[24];
    for (uint64_t n = 0; n < 40; n++) {
        struct peer p;
        peer_connect(&w, &p);
        peer_subscribe(&w, &p, JOB_A);
        (void)snprintf(text, sizeof(text), "%" PRIu64, n);
        say(w.bus, &f, text, n + 1);
        char want[60];
        (void)snprintf(want, sizeof(want), "{\"chunk\":\"%s\",\"seq\":%" PRIu64 "}", text, n + 1);
        peer_expect_event(&p, JOB_A, "stdout", want);
        peer_end(&p);
    }
    finish(w.bus, &f);
    struct peer p;
    peer_connect(&w, &p);
    peer_subscribe(&w, &p, JOB_A);
    peer_sync(&p); /* it has ended: nothing comes */
    peer_end(&p);
    world_end(&w);
}

static void test_gone_job(void **state)
{
    (void)state;
    for (int replay = 0; replay < 2; replay++) {
        struct world w = world_with(replay, 10);
        struct peer p;
        peer_connect(&w, &p);
        peer_subscribe(&w, &p, JOB_B);
        peer_subscribe(&w, &p, "");
        peer_sync(&p);
        peer_end(&p);
        world_end(&w);
    }
}

static void test_twice_and_unsubscribe(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence f = new_job(w.bus, JOB_A);
    struct peer p;
    peer_connect(&w, &p);
    peer_subscribe(&w, &p, JOB_A);
    peer_ask(&w, &p, JOB_A);
    expect_refusal(&p, false, "already");
    say(w.bus, &f, "x", 1);
    peer_expect_event(&p, JOB_A, "stdout", "{\"chunk\":\"x\",\"seq\":1}"); /* once */

    const char *leave = "{\"event\":\"pusher:unsubscribe\",\"data\":{\"channel\":\"" ANY "\"}}";
    peer_say(&p, leave);
    peer_say(&p, leave); /* no such subscription: no answer */
    peer_sync(&p);
    say(w.bus, &f, "y", 2);
    peer_sync(&p);
    peer_subscribe(&w, &p, JOB_A); /* from the beginning */
    peer_expect_event(&p, JOB_A, "stdout", "{\"chunk\":\"x\",\"seq\":1}");
    peer_expect_event(&p, JOB_A, "stdout", "{\"chunk\":\"y\",\"seq\":2}");
    peer_end(&p);
    world_end(&w);
}

static void test_two_jobs_two_peers(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct fence a = new_job(w.bus, JOB_A);
    struct fence b = new_job(w.bus, JOB_B);
    struct peer p[2];
    for (int i = 0; i < 2; i++) {
        peer_connect(&w, &p[i]);
        peer_subscribe(&w, &p[i], JOB_A);
    }
    peer_subscribe(&w, &p[1], JOB_B);
    say(w.bus, &a, "a", 1);
    for (int i = 0; i < 2; i++)
        peer_expect_event(&p[i], JOB_A, "stdout", "{\"chunk\":\"a\",\"seq\":1}");
    say(w.bus, &b, "b", 1);
    peer_expect_event(&p[1], JOB_B, "stdout", "{\"chunk\":\"b\",\"seq\":1}");
    peer_sync(&p[0]);
    for (int i = 0; i < 2; i++)
        peer_end(&p[i]);
    world_end(&w);
}

static void test_subscriptions_max(void **state)
{
    (void)state;
    struct world w = world_with(true, 10);
    struct peer p;
    peer_connect(&w, &p);
    char job[20];
    for (int i = 0; i < HUB_SUBSCRIPTIONS_MAX; i++) {
        (void)snprintf(job, sizeof(job), "%d", i);
        peer_subscribe(&w, &p, job);
    }
    peer_ask(&w, &p, "one-more");
    expect_refusal(&p, true, "256");
    peer_end(&p);
    world_end(&w);
}

#define CROWD 200

static void test_crowd(void **state)
{
    (void)state;
    struct world w = world_with(true, CROWD);
    struct fence f = new_job(w.bus, JOB_A);
    static struct peer p[CROWD];
    for (int i = 0; i < CROWD; i++) {
        peer_connect(&w, &p[i]);
        peer_subscribe(&w, &p[i], JOB_A);
    }
    struct peer extra;
    assert_int_equal(peer_adopt(&w, &extra, KEY, (struct span){0}), -EBUSY);
    peer_end(&extra);
    say(w.bus, &f, "x", 1);
    finish(w.bus, &f);
    for (int i = 0; i < CROWD; i++) {
        peer_expect_event(&p[i], JOB_A, "stdout", "{\"chunk\":\"x\",\"seq\":1}");
        peer_expect_event(&p[i], JOB_A, "result", RESULT);
        peer_expect_event(&p[i], JOB_A, "artifact", NULL);
    }
    peer_end(&p[0]);
    await_connections(&w, CROWD - 1);
    peer_connect(&w, &p[0]); /* the place is free again */
    released = 0;
    world_end(&w);
    assert_int_equal(released, CROWD);
    for (int i = 0; i < CROWD; i++) {
        peer_expect_close(&p[i], 4200);
        peer_end(&p[i]);
    }
}

static void test_options(void **state)
{
    (void)state;
    struct world w = world_with(true, 1);
    char long_key[HUB_APP_KEY_MAX + 2];
    memset(long_key, 'k', sizeof(long_key) - 1);
    long_key[sizeof(long_key) - 1] = '\0';
    const struct hub_options bad[] = {
        {NULL, KEY, SECRET, true, 1},       {w.bus, "", SECRET, true, 1},
        {w.bus, NULL, SECRET, true, 1},     {w.bus, KEY, "", true, 1},
        {w.bus, KEY, NULL, true, 1},        {w.bus, KEY, SECRET, true, 0},
        {w.bus, long_key, SECRET, true, 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct hub *h = NULL;
        struct err err = {0};
        assert_int_equal(hub_new(&bad[i], &h, &err), -EINVAL);
        assert_null(h);
        assert_int_equal(err.code, -EINVAL);
    }
    struct hub *h = NULL;
    const struct hub_options longest = {w.bus, long_key + 1, SECRET, true, 1};
    assert_int_equal(hub_new(&longest, &h, NULL), 0);
    hub_free(h);
    hub_free(NULL);
    world_end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_connect_and_ping),
        cmocka_unit_test(test_extra_bytes),
        cmocka_unit_test(test_unknown_app),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_signature_of_another),
        cmocka_unit_test(test_data_as_string),
        cmocka_unit_test(test_replay_of_ended_job),
        cmocka_unit_test(test_live),
        cmocka_unit_test(test_no_replay),
        cmocka_unit_test(test_gone_job),
        cmocka_unit_test(test_twice_and_unsubscribe),
        cmocka_unit_test(test_two_jobs_two_peers),
        cmocka_unit_test(test_subscriptions_max),
        cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
