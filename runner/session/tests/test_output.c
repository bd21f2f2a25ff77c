#include "output.h"

#include <string.h>

#include "base/clock.h"
#include "test.h"

/* A claimed job on a bus of its own, and an output that writes to it. */
struct fixture {
    struct bus *bus;
    struct claim claim;
    struct output output;
};

static char *copy(const char *s)
{
    char *c = strdup(s);
    assert_non_null(c);
    return c;
}

static void open_fixture(struct fixture *f, bool collect, uint64_t budget)
{
    const struct bus_memory_options o = {.queue_depth_max = 1,
                                         .job_ttl_ms = 1000000,
                                         .result_ttl_ms = 1000000,
                                         .memory_max_bytes = 1 << 20};
    assert_int_equal(bus_memory_new(&o, &f->bus, NULL), 0);
    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    memcpy(spec->id, "6ba7b810-9dad-41d1-80b4-00c04fd430c8", JOB_ID_SIZE);
    spec->language = copy("python");
    spec->version = copy("3.13");
    spec->image = copy("image");
    spec->entrypoint = copy("main.py");
    assert_int_equal(bus_submit_take(f->bus, spec, NULL), 0);
    assert_int_equal(bus_claim(f->bus, "w", 0, &f->claim, NULL), 0);
    output_init(&f->output, f->bus, &f->claim.fence, collect, budget);
    assert_int_equal(output_stage(&f->output, false, budget), 0);
}

static void close_fixture(struct fixture *f)
{
    output_done(&f->output);
    claim_done(&f->claim);
    bus_free(f->bus);
}

static bool add(struct fixture *f, enum output_stream stream, const char *bytes, size_t n)
{
    bool kept = false;
    assert_int_equal(output_add(&f->output, stream, (struct span){bytes, n}, &kept), 0);
    return kept;
}

/* All events as "1:text|E2:text|": seq and raw bytes, E marks stderr and C compile output. */
static void assert_events(struct fixture *f, const char *want)
{
    struct event_batch batch;
    assert_int_equal(bus_event_read(f->bus, f->claim.fence.job, 0, 1 << 20, &batch), 0);
    cleanup_buf struct buf got;
    buf_init(&got, 1 << 20);
    assert_int_equal(buf_append_str(&got, ""), 0);
    for (size_t i = 0; i < batch.len; i++) {
        const struct event *e = &batch.items[i];
        const char *mark = e->type == EVENT_STDERR           ? "E"
                           : e->type == EVENT_COMPILE_OUTPUT ? "C"
                                                             : "";
        assert_int_equal(
            buf_appendf(&got, "%s%u:%.*s|", mark, (unsigned)e->seq, (int)e->data.len, e->data.ptr),
            0);
    }
    event_batch_done(&batch);
    assert_string_equal(got.data, want);
}

static void an_emoji_byte_by_byte_is_one_character(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, true, 100);
    static const char emoji[] = "\xf0\x9f\x98\x80";
    for (int i = 0; i < 4; i++) {
        assert_true(add(&f, OUTPUT_STDOUT, emoji + i, 1));
        assert_int_equal(output_flush(&f.output), 0); /* as if a pause had come after each */
    }
    assert_int_equal(output_end(&f.output), 0);
    assert_events(&f, "1:\xf0\x9f\x98\x80|");
    assert_int_equal(f.output.counts[OUTPUT_STDOUT].kept, 4);
    assert_string_equal(f.output.collected[OUTPUT_STDOUT].data, emoji);
    close_fixture(&f);
}

static void streams_do_not_mix_their_halves(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, false, 100);
    (void)add(&f, OUTPUT_STDOUT, "\xc3", 1);
    (void)add(&f, OUTPUT_STDERR, "\xe2\x82", 2);
    (void)add(&f, OUTPUT_STDOUT, "\xa9", 1);
    (void)add(&f, OUTPUT_STDERR, "\xac", 1);
    assert_int_equal(output_end(&f.output), 0);
    assert_events(&f, "1:\xc3\xa9|E2:\xe2\x82\xac|");
    close_fixture(&f);
}

static void an_unfinished_code_point_comes_out_at_the_end(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, false, 100);
    (void)add(&f, OUTPUT_STDOUT, "a\xf0\x9f", 3);
    assert_int_equal(output_end(&f.output), 0);
    assert_int_equal(f.output.counts[OUTPUT_STDOUT].kept, 3);
    close_fixture(&f);
}

static void the_budget_is_shared_and_exact(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, true, 6);
    assert_true(add(&f, OUTPUT_STDOUT, "abcd", 4));
    assert_true(add(&f, OUTPUT_STDERR, "ef", 2));
    assert_false(f.output.truncated); /* exactly spent is not cut */
    assert_false(add(&f, OUTPUT_STDOUT, "g", 1));
    assert_true(f.output.truncated);
    assert_int_equal(output_end(&f.output), 0);
    assert_int_equal(f.output.counts[OUTPUT_STDOUT].bytes, 5);
    assert_int_equal(f.output.counts[OUTPUT_STDOUT].kept, 4);
    assert_int_equal(f.output.counts[OUTPUT_STDERR].kept, 2);
    assert_string_equal(f.output.collected[OUTPUT_STDOUT].data, "abcd");
    close_fixture(&f);
}

static void the_budget_never_cuts_a_code_point(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, false, 3);
    assert_true(add(&f, OUTPUT_STDOUT, "a\xf0\x9f\x98\x80z", 6));
    assert_int_equal(output_end(&f.output), 0);
    assert_events(&f, "1:a|");
    assert_true(f.output.truncated);
    close_fixture(&f);
}

static void large_writes_become_events_that_fit(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, false, 1 << 20);
    static char big[32768];
    memset(big, 1, sizeof(big)); /* six characters each when serialised */
    for (int i = 0; i < 4; i++)
        (void)add(&f, OUTPUT_STDOUT, big, sizeof(big));
    assert_int_equal(output_end(&f.output), 0);
    struct event_batch batch;
    assert_int_equal(bus_event_read(f.bus, f.claim.fence.job, 0, 1 << 20, &batch), 0);
    size_t total = 0;
    for (size_t i = 0; i < batch.len; i++) {
        assert_int_equal(batch.items[i].seq, i + 1);
        cleanup_buf struct buf payload;
        buf_init(&payload, EVENT_PAYLOAD_MAX);
        assert_int_equal(event_payload(&payload, &batch.items[i]), 0);
        total += batch.items[i].data.len;
    }
    assert_int_equal(total, 4 * sizeof(big));
    event_batch_done(&batch);
    close_fixture(&f);
}

static void stages_have_budgets_of_their_own_and_one_seq(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, true, 4);
    assert_int_equal(output_stage(&f.output, true, 4), 0);
    (void)add(&f, OUTPUT_STDERR, "warn!", 5);
    assert_int_equal(output_stage(&f.output, false, 4), 0);
    (void)add(&f, OUTPUT_STDOUT, "run", 3);
    assert_int_equal(output_end(&f.output), 0);
    assert_events(&f, "C1:warn|2:run|");
    assert_false(f.output.truncated); /* speaks of the run alone */
    assert_string_equal(f.output.compile_all.data, "warn");
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_emoji_byte_by_byte_is_one_character),
        cmocka_unit_test(streams_do_not_mix_their_halves),
        cmocka_unit_test(an_unfinished_code_point_comes_out_at_the_end),
        cmocka_unit_test(the_budget_is_shared_and_exact),
        cmocka_unit_test(the_budget_never_cuts_a_code_point),
        cmocka_unit_test(large_writes_become_events_that_fit),
        cmocka_unit_test(stages_have_budgets_of_their_own_and_one_seq),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
