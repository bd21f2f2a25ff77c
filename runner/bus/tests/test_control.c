/* Control log: order, bounds, rate, what a session takes. */
#include "tests/bus_test.h"

#include <signal.h>

static char big[BUS_STDIN_PENDING_MAX + 1];

static void send_signal(struct bus *b, const char *job, int number, int want)
{
    const struct control c = {.type = CONTROL_SIGNAL, .signal = number};
    assert_int_equal(bus_control_append(b, job, &c), want);
}

/* Writes a batch as one line: "start stdin:ab eof signal:2 kill". */
static const char *describe(const struct control_batch *batch)
{
    static char line[4096];
    size_t n = 0;
    line[0] = '\0';
    for (size_t i = 0; i < batch->len && n < sizeof(line); i++) {
        const struct control *c = &batch->items[i];
        const char *space = i > 0 ? " " : "";
        int k = 0;
        switch (c->type) {
        case CONTROL_START:
            k = snprintf(line + n, sizeof(line) - n, "%sstart", space);
            break;
        case CONTROL_STDIN:
            k = snprintf(line + n, sizeof(line) - n, "%sstdin:%.*s", space, (int)c->data.len,
                         c->data.ptr);
            break;
        case CONTROL_STDIN_EOF:
            k = snprintf(line + n, sizeof(line) - n, "%seof", space);
            break;
        case CONTROL_SIGNAL:
            k = snprintf(line + n, sizeof(line) - n, "%ssignal:%d", space, c->signal);
            break;
        case CONTROL_KILL:
            fail_msg("a kill is no item");
        }
        n += (size_t)k;
    }
    if (batch->kill)
        (void)snprintf(line + n, sizeof(line) - n, "%skill", n > 0 ? " " : "");
    return line;
}

static void expect_take(struct bus *b, const struct fence *f, size_t max_bytes, const char *want)
{
    struct control_batch batch;
    assert_int_equal(bus_control_take(b, f, max_bytes, &batch), 0);
    assert_string_equal(describe(&batch), want);
    control_batch_done(&batch);
}

static void control_is_held_in_order_from_before_the_claim(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    submit(b, "a");
    assert_int_equal(type_in(b, "a", "one\n", 4), 0);
    assert_int_equal(type_in(b, "a", "two", 3), 0);
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    struct fence f = claim_job(b, "a");
    send_signal(b, "a", SIGINT, 0);
    assert_int_equal(type_in(b, "a", "x\0y", 3), 0);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), 0);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), 0);

    struct control_batch batch;
    assert_int_equal(bus_control_take(b, &f, BUS_STDIN_PENDING_MAX, &batch), 0);
    assert_int_equal(batch.len, 5);
    assert_false(batch.kill);
    assert_int_equal(batch.items[0].type, CONTROL_STDIN);
    assert_true(span_eq(batch.items[0].data, "one\ntwo"));
    assert_int_equal(batch.items[1].type, CONTROL_START);
    assert_int_equal(batch.items[2].type, CONTROL_SIGNAL);
    assert_int_equal(batch.items[2].signal, SIGINT);
    assert_int_equal(batch.items[3].type, CONTROL_STDIN);
    assert_int_equal(batch.items[3].data.len, 3);
    assert_memory_equal(batch.items[3].data.ptr, "x\0y", 3);
    assert_int_equal(batch.items[4].type, CONTROL_STDIN_EOF);
    control_batch_done(&batch);
    expect_take(b, &f, 100, "");
    assert_int_equal(control(b, "a", CONTROL_START), 0); /* a second one also after it was taken */
    expect_take(b, &f, 100, "");
}

static void a_kill_overtakes_and_stays(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    assert_int_equal(type_in(b, "a", "abc", 3), 0);
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    expect_take(b, &f, 0, "kill");
    expect_take(b, &f, 100, "stdin:abc kill");
    expect_take(b, &f, 100, "kill");
}

static void stdin_is_split_where_the_taker_wants(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    send_signal(b, "a", SIGHUP, 0);
    assert_int_equal(type_in(b, "a", "abcdef", 6), 0);
    send_signal(b, "a", SIGINT, 0);
    assert_int_equal(type_in(b, "a", "gh", 2), 0);
    expect_take(b, &f, 0, "signal:1");
    expect_take(b, &f, 0, "");
    expect_take(b, &f, 4, "stdin:abcd");
    expect_take(b, &f, 2, "stdin:ef signal:2");
    assert_int_equal(type_in(b, "a", "i", 1), 0);
    expect_take(b, &f, SIZE_MAX, "stdin:ghi");
    expect_take(b, &f, SIZE_MAX, "");
}

static void pending_stdin_is_bounded_and_freed_when_taken(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    fake_now_ms += 1000;
    assert_int_equal(type_in(b, "a", big, BUS_STDIN_PENDING_MAX + 1), BUS_STDIN_PENDING);
    assert_int_equal(type_in(b, "a", big, BUS_STDIN_PENDING_MAX), 0);
    assert_int_equal(type_in(b, "a", big, 1), BUS_STDIN_PENDING);

    struct control_batch batch;
    assert_int_equal(bus_control_take(b, &f, 1000, &batch), 0);
    assert_int_equal(batch.items[0].data.len, 1000);
    control_batch_done(&batch);
    assert_int_equal(type_in(b, "a", big, 1), BUS_STDIN_PENDING); /* handed out is not taken */
    bus_stdin_taken(b, &f, 400);
    assert_int_equal(type_in(b, "a", big, 401), BUS_STDIN_PENDING);
    assert_int_equal(type_in(b, "a", big, 400), 0);
    bus_stdin_taken(b, &f, SIZE_MAX); /* never more than was handed out: 600 are left */
    assert_int_equal(type_in(b, "a", big, 601), BUS_STDIN_PENDING);
    assert_int_equal(type_in(b, "a", big, 600), 0);
    assert_int_equal(type_in(b, "a", big, 1), BUS_STDIN_PENDING);

    assert_int_equal(bus_control_take(b, &f, BUS_STDIN_PENDING_MAX, &batch), 0);
    assert_int_equal(batch.len, 1);
    assert_int_equal(batch.items[0].data.len, BUS_STDIN_PENDING_MAX);
    control_batch_done(&batch);
}

static void stdin_frames_have_a_rate(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    submit(b, "a");
    submit(b, "b");
    fake_now_ms = 5000000;
    for (int i = 0; i < BUS_STDIN_RATE_MAX; i++)
        assert_int_equal(type_in(b, "a", "x", i % 3 == 0 ? 0 : 1), 0); /* empty ones count */
    assert_int_equal(type_in(b, "a", "x", 1), BUS_STDIN_RATE);
    assert_int_equal(type_in(b, "b", "x", 1), 0); /* another job's is its own */
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    fake_now_ms = 5000999;
    assert_int_equal(type_in(b, "a", "x", 1), BUS_STDIN_RATE);
    fake_now_ms = 5001000;
    /* Frames refused for another reason count too; the rate is looked at first. */
    for (int i = 0; i < BUS_STDIN_RATE_MAX; i++)
        assert_int_equal(type_in(b, "a", big, sizeof(big)), BUS_STDIN_PENDING);
    assert_int_equal(type_in(b, "a", big, sizeof(big)), BUS_STDIN_RATE);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), 0);
    assert_int_equal(type_in(b, "a", "x", 1), BUS_STDIN_RATE);
    fake_now_ms = 5002000;
    assert_int_equal(type_in(b, "a", "x", 1), BUS_STDIN_CLOSED);
}

static void stdin_after_eof_is_refused(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    submit(b, "a");
    fake_now_ms += 1000;
    assert_int_equal(type_in(b, "a", "x", 1), 0);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), 0);
    assert_int_equal(type_in(b, "a", "y", 1), BUS_STDIN_CLOSED);
    assert_int_equal(type_in(b, "a", "", 0), BUS_STDIN_CLOSED);
    assert_int_equal(type_in(b, "a", big, sizeof(big)), BUS_STDIN_CLOSED);
    struct fence f = claim_job(b, "a");
    expect_take(b, &f, 100, "stdin:x eof");
    assert_int_equal(type_in(b, "a", "y", 1), BUS_STDIN_CLOSED);
}

static void signals_are_bounded(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    fake_now_ms += 1000;
    for (int i = 0; i < BUS_CONTROL_MAX; i++)
        send_signal(b, "a", SIGWINCH, 0);
    send_signal(b, "a", SIGWINCH, BUS_CONTROL_FULL);
    assert_int_equal(type_in(b, "a", "x", 1), 0); /* nothing else is held up by them */
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), 0);
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    struct control_batch batch;
    assert_int_equal(bus_control_take(b, &f, 100, &batch), 0);
    assert_int_equal(batch.len, BUS_CONTROL_MAX + 3);
    assert_true(batch.kill);
    control_batch_done(&batch);
    send_signal(b, "a", SIGWINCH, 0);
    expect_take(b, &f, 100, "signal:28 kill");
}

static void an_ended_job_takes_nothing(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    finish(b, &f);
    assert_int_equal(control(b, "a", CONTROL_START), BUS_ENDED);
    assert_int_equal(control(b, "a", CONTROL_STDIN_EOF), BUS_ENDED);
    assert_int_equal(control(b, "a", CONTROL_KILL), BUS_ENDED);
    send_signal(b, "a", SIGINT, BUS_ENDED);
    for (int i = 0; i < BUS_STDIN_RATE_MAX + 1; i++)
        assert_int_equal(type_in(b, "a", "x", 1), BUS_ENDED);
    assert_int_equal(type_in(b, "a", big, sizeof(big)), BUS_ENDED);
}

static void a_type_out_of_range_is_refused(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    int out_of_range = 99;
    assert_int_equal(control(b, "a", (enum control_type)out_of_range), -EINVAL);
    expect_take(b, &f, 100, "");
}

int main(void)
{
    memset(big, 'x', sizeof(big));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(control_is_held_in_order_from_before_the_claim),
        cmocka_unit_test(a_kill_overtakes_and_stays),
        cmocka_unit_test(stdin_is_split_where_the_taker_wants),
        cmocka_unit_test(pending_stdin_is_bounded_and_freed_when_taken),
        cmocka_unit_test(stdin_frames_have_a_rate),
        cmocka_unit_test(stdin_after_eof_is_refused),
        cmocka_unit_test(signals_are_bounded),
        cmocka_unit_test(an_ended_job_takes_nothing),
        cmocka_unit_test(a_type_out_of_range_is_refused),
    };
    return cmocka_run_group_tests_name("bus.control", tests, NULL, NULL);
}
