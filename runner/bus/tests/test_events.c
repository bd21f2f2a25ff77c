/* Event log and watchers. */
#include "tests/bus_test.h"

#include <poll.h>

static void expect_read(struct bus *b, uint64_t after, size_t max_bytes, size_t want_len,
                        bool want_end)
{
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "a", after, max_bytes, &batch), 0);
    if (batch.len != want_len || batch.end != want_end)
        fail_msg("after %" PRIu64 ": len %zu end %d", after, batch.len, batch.end);
    for (size_t i = 0; i < batch.len; i++)
        assert_int_equal(batch.items[i].id, after + 1 + i);
    event_batch_done(&batch);
}

static void events_come_back_as_they_went_in(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    expect_read(b, 0, 100, 0, false);
    const struct event events[] = {
        {.type = EVENT_STAGE, .id = 99, .data = SPAN_LIT("{\"phase\":\"queued\"}")},
        {.type = EVENT_COMPILE_OUTPUT, .seq = 1, .data = SPAN_LIT("warning\n")},
        {.type = EVENT_STDOUT, .seq = 2, .data = {"a\0\xff", 3}},
        {.type = EVENT_STDERR, .seq = UINT64_MAX, .data = {NULL, 0}},
    };
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        uint64_t id = 0;
        assert_int_equal(bus_event_append(b, &f, &events[i], &id), 0);
        assert_int_equal(id, i + 1);
    }
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "a", 0, 65536, &batch), 0);
    assert_int_equal(batch.len, ARRAY_LEN(events));
    assert_false(batch.end);
    for (size_t i = 0; i < batch.len; i++) {
        assert_int_equal(batch.items[i].type, events[i].type);
        assert_int_equal(batch.items[i].id, i + 1);
        assert_int_equal(batch.items[i].seq, events[i].seq);
        assert_int_equal(batch.items[i].data.len, events[i].data.len);
        if (events[i].data.len > 0)
            assert_memory_equal(batch.items[i].data.ptr, events[i].data.ptr, events[i].data.len);
    }
    event_batch_done(&batch);
    expect_read(b, 4, 100, 0, false);
    expect_read(b, UINT64_MAX, 100, 0, false);
}

static void the_end_is_report_result_artifacts(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    say(b, &f, "hello", 1);
    const struct span artifacts[] = {SPAN_LIT("{\"name\":\"x\"}"), SPAN_LIT("{\"name\":\"y\"}")};
    struct job_end end = an_end();
    end.artifacts = artifacts;
    end.artifacts_len = ARRAY_LEN(artifacts);
    assert_int_equal(bus_finish(b, &f, &end), 0);
    assert_int_equal(bus_finish(b, &f, &end), BUS_FENCED);

    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "a", 0, 65536, &batch), 0);
    static const enum event_type want[] = {EVENT_STDOUT, EVENT_REPORT, EVENT_RESULT, EVENT_ARTIFACT,
                                           EVENT_ARTIFACT};
    assert_int_equal(batch.len, ARRAY_LEN(want));
    for (size_t i = 0; i < batch.len; i++)
        assert_int_equal(batch.items[i].type, want[i]);
    assert_true(batch.end);
    assert_true(span_eq(batch.items[2].data,
                        "{\"exitCode\":0,\"signal\":null,\"timedOut\":false,"
                        "\"idleTimedOut\":false,\"truncated\":false,\"durationMs\":12}"));
    cleanup_buf struct buf report;
    buf_init(&report, 4096);
    assert_int_equal(bus_report(b, "a", &report), 0);
    assert_true(span_eq(batch.items[1].data, report.data));
    assert_true(span_eq(batch.items[4].data, "{\"name\":\"y\"}"));
    event_batch_done(&batch);

    /* Replay from anywhere, and by one. */
    for (uint64_t after = 0; after < 5; after++) {
        expect_read(b, after, 65536, 5 - after, true);
        expect_read(b, after, 1, 1, after == 4);
    }
    expect_read(b, 5, 100, 0, true);
    expect_read(b, UINT64_MAX, 100, 0, true);
}

/* Lengths around the sizes of blocks, read back whole, in small portions and from each position. */
static void logs_of_many_blocks_are_contiguous(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    enum { N = 600 };
    size_t max_len = 70000;
    char *bytes = malloc(max_len);
    assert_non_null(bytes);
    for (unsigned i = 0; i < N; i++) {
        size_t len = i % 100 == 99 ? max_len : (size_t)(i * 37 % 900);
        memset(bytes, (int)('a' + i % 26), len);
        const struct event e = output_event(bytes, len, i + 1);
        uint64_t id;
        assert_int_equal(bus_event_append(b, &f, &e, &id), 0);
        assert_int_equal(id, i + 1);
    }
    free(bytes);
    finish(b, &f);

    uint64_t after = 0;
    for (bool end = false; !end;) {
        struct event_batch batch;
        assert_int_equal(bus_event_read(b, "a", after, 3000, &batch), 0);
        assert_true(batch.len > 0);
        assert_true(batch.len == 1 || batch.bytes.len <= 3000);
        for (size_t i = 0; i < batch.len; i++) {
            const struct event *e = &batch.items[i];
            assert_int_equal(e->id, ++after);
            if (after > N)
                continue;
            assert_int_equal(e->seq, after);
            unsigned n = (unsigned)after - 1;
            assert_int_equal(e->data.len, n % 100 == 99 ? max_len : (size_t)(n * 37 % 900));
            for (size_t k = 0; k < e->data.len; k++)
                if (e->data.ptr[k] != (char)('a' + n % 26))
                    fail_msg("event %" PRIu64 " byte %zu", after, k);
        }
        end = batch.end;
        event_batch_done(&batch);
    }
    assert_int_equal(after, N + 2);
    for (uint64_t from = 0; from < N + 2; from++) {
        struct event_batch batch;
        assert_int_equal(bus_event_read(b, "a", from, 0, &batch), 0);
        assert_int_equal(batch.len, 1);
        assert_int_equal(batch.items[0].id, from + 1);
        event_batch_done(&batch);
    }
}

static void a_batch_is_bounded_by_what_it_costs(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    for (uint64_t i = 1; i <= 10; i++)
        say(b, &f, "0123456789", i);
    size_t one = sizeof(struct event) + 10;
    expect_read(b, 0, 0, 1, false);
    expect_read(b, 0, one, 1, false);
    expect_read(b, 0, 2 * one - 1, 1, false);
    expect_read(b, 0, 2 * one, 2, false);
    expect_read(b, 0, 10 * one - 1, 9, false);
    expect_read(b, 0, 10 * one, 10, false);
    expect_read(b, 0, SIZE_MAX, 10, false);
}

static void a_log_has_a_hard_bound(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    size_t len = 1 << 20;
    char *bytes = calloc(1, len);
    assert_non_null(bytes);
    const struct event e = output_event(bytes, len, 1);
    int n = 0;
    int r = 0;
    while (n < 1000 && (r = bus_event_append(b, &f, &e, NULL)) == 0)
        n++;
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(n, BUS_LOG_BYTES_MAX / (1 << 20) - 1);
    struct event huge = e;
    huge.data.len = (size_t)BUS_LOG_BYTES_MAX + 1;
    assert_int_equal(bus_event_append(b, &f, &huge, NULL), -ENOSPC);
    struct bus_counts counts;
    bus_counts(b, &counts);
    assert_true(counts.log_bytes <= BUS_LOG_BYTES_MAX);
    say(b, &f, "a small one still fits", 2);
    finish(b, &f);
    expect_read(b, (uint64_t)n + 1, 65536, 2, true);
    free(bytes);
}

static uint64_t bytes_after_job(struct bus *b, const char *id, const char *text)
{
    struct bus_counts n;
    struct fence f = submit_and_claim(b, id);
    if (*text)
        say(b, &f, text, 1);
    finish(b, &f);
    bus_counts(b, &n);
    return n.log_bytes;
}

/* What a block has left is given back at the end. */
static void a_small_job_costs_little(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    uint64_t silent = bytes_after_job(b, "a", "");
    uint64_t both = bytes_after_job(b, "b", "hello\n");
    assert_in_range(silent, 500, 4096);
    assert_in_range(both - 2 * silent, 6, 128);
}

/* ---- watchers ---- */

static bool is_readable(const struct bus_watcher *w)
{
    struct pollfd p = {.fd = bus_watcher_fd(w), .events = POLLIN};
    return poll(&p, 1, 0) == 1;
}

/* The tags that are dirty, as text: "ab". */
static const char *dirty(struct bus_watcher *w)
{
    static char tags[16];
    size_t n = 0;
    void *tag;
    bool was_readable = is_readable(w);
    while (n + 1 < sizeof(tags) && bus_watcher_next(w, &tag))
        tags[n++] = *(const char *)tag;
    tags[n] = '\0';
    assert_int_equal(was_readable, n > 0);
    assert_false(is_readable(w));
    return tags;
}

static char tag_e[] = "e";
static char tag_c[] = "c";

static void watches_become_dirty_when_there_is_news(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    cleanup_bus_watcher struct bus_watcher *w = NULL;
    assert_int_equal(bus_watcher_new(b, &w, NULL), 0);
    struct bus_watch *events = NULL;
    struct bus_watch *controls = NULL;
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &events), BUS_NOT_FOUND);
    assert_null(events);
    assert_string_equal(dirty(w), "");
    submit(b, "a");
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &events), 0);
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_CONTROL, tag_c, &controls), 0);
    assert_string_equal(dirty(w), "ec"); /* born dirty */
    assert_string_equal(dirty(w), "");

    fake_now_ms += 1000;
    struct fence f = claim_job(b, "a");
    assert_string_equal(dirty(w), "");
    assert_int_equal(type_in(b, "a", "abc", 3), 0);
    assert_int_equal(type_in(b, "a", "", 0), 0);
    assert_string_equal(dirty(w), "c");
    assert_int_equal(type_in(b, "a", "", 0), 0);
    assert_string_equal(dirty(w), ""); /* nothing was added */
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    assert_string_equal(dirty(w), "c");
    assert_int_equal(control(b, "a", CONTROL_START), 0);
    assert_string_equal(dirty(w), "");
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    assert_string_equal(dirty(w), "c");
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    assert_string_equal(dirty(w), "");

    struct control_batch batch;
    assert_int_equal(bus_control_take(b, &f, 2, &batch), 0);
    control_batch_done(&batch);
    bus_stdin_taken(b, &f, 2);
    assert_string_equal(dirty(w), "c"); /* one byte and the start are still waiting */
    assert_int_equal(bus_control_take(b, &f, 2, &batch), 0);
    control_batch_done(&batch);
    bus_stdin_taken(b, &f, 1);
    assert_string_equal(dirty(w), "");

    say(b, &f, "x", 1);
    say(b, &f, "y", 2);
    assert_string_equal(dirty(w), "e");
    bus_watch_remove(controls);
    finish(b, &f);
    assert_string_equal(dirty(w), "e");
    bus_watch_remove(events);
    bus_watch_remove(NULL);
}

static void removing_a_dirty_watch_clears_the_descriptor(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    cleanup_bus_watcher struct bus_watcher *w = NULL;
    assert_int_equal(bus_watcher_new(b, &w, NULL), 0);
    submit(b, "a");
    struct bus_watch *one = NULL;
    struct bus_watch *two = NULL;
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &one), 0);
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_CONTROL, tag_c, &two), 0);
    bus_watch_remove(one);
    assert_true(is_readable(w));
    bus_watch_remove(two);
    assert_false(is_readable(w));
    assert_string_equal(dirty(w), "");
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    assert_string_equal(dirty(w), "");
}

static void watches_learn_that_the_record_went_away(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    cleanup_bus_watcher struct bus_watcher *w = NULL;
    assert_int_equal(bus_watcher_new(b, &w, NULL), 0);
    struct fence f = submit_and_claim(b, "a");
    struct bus_watch *events = NULL;
    struct bus_watch *controls = NULL;
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &events), 0);
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_CONTROL, tag_c, &controls), 0);
    finish(b, &f);
    assert_string_equal(dirty(w), "ec");
    fake_now_ms += RESULT_TTL_MS;
    bus_housekeep(b);
    assert_string_equal(dirty(w), "e"); /* the log is gone */
    struct bus_watch *late = NULL;
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &late), BUS_NOT_FOUND);
    fake_now_ms += JOB_TTL_MS;
    bus_housekeep(b);
    assert_string_equal(dirty(w), "ec"); /* and now all of it */
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "a", 0, 100, &batch), BUS_NOT_FOUND);
    bus_watch_remove(events); /* the other one goes with its watcher */
}

static void killing_a_queued_job_wakes_its_readers(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    cleanup_bus_watcher struct bus_watcher *w = NULL;
    assert_int_equal(bus_watcher_new(b, &w, NULL), 0);
    submit(b, "a");
    struct bus_watch *events = NULL;
    assert_int_equal(bus_watch_add(w, "a", BUS_WATCH_EVENTS, tag_e, &events), 0);
    assert_string_equal(dirty(w), "e");
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    assert_string_equal(dirty(w), "e");
    expect_read(b, 0, 65536, 2, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_come_back_as_they_went_in),
        cmocka_unit_test(the_end_is_report_result_artifacts),
        cmocka_unit_test(logs_of_many_blocks_are_contiguous),
        cmocka_unit_test(a_batch_is_bounded_by_what_it_costs),
        cmocka_unit_test(a_log_has_a_hard_bound),
        cmocka_unit_test(a_small_job_costs_little),
        cmocka_unit_test(watches_become_dirty_when_there_is_news),
        cmocka_unit_test(removing_a_dirty_watch_clears_the_descriptor),
        cmocka_unit_test(watches_learn_that_the_record_went_away),
        cmocka_unit_test(killing_a_queued_job_wakes_its_readers),
    };
    return cmocka_run_group_tests_name("bus.events", tests, NULL, NULL);
}
