/* Queue and records: submit, claim, status, finish, expiry, eviction, drain. */
#include "tests/bus_test.h"

static void a_job_passes_through(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct job_status s;
    struct bus_counts n;
    submit(b, "one");
    assert_int_equal(bus_status(b, "one", &s), 0);
    assert_string_equal(s.id, "one");
    assert_string_equal(s.language, "python");
    assert_string_equal(s.version, "3.13");
    assert_int_equal(s.state, JOB_QUEUED);
    assert_true(s.updated_at_ms > 1500000000000);

    fake_now_ms += 42;
    struct claim c;
    assert_int_equal(bus_claim(b, "w", 0, &c, NULL), 0);
    assert_int_equal(c.queue_ms, 42);
    bus_counts(b, &n);
    assert_int_equal(n.queued, 0);
    assert_int_equal(n.active, 1);

    assert_int_equal(bus_status_set(b, &c.fence, JOB_STARTING), 0);
    assert_int_equal(state_of(b, "one"), JOB_STARTING);
    assert_int_equal(bus_status_set(b, &c.fence, JOB_RUNNING), 0);
    assert_int_equal(state_of(b, "one"), JOB_RUNNING);
    finish(b, &c.fence);
    assert_int_equal(state_of(b, "one"), JOB_DONE);
    bus_counts(b, &n);
    assert_int_equal(n.active, 0);
    assert_int_equal(n.finished, 1);
    assert_true(n.log_bytes > 0);
    claim_done(&c);
}

static void unknown_ids_are_not_found(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    cleanup_buf struct buf text;
    buf_init(&text, 100);
    struct job_status s;
    struct event_batch batch;
    static const char *const ids[] = {
        "", "x", "00000000-0000-4000-8000-000000000000\n",
        "an id that is longer than any id can be, and then some more"};
    submit(b, "y");
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        assert_int_equal(bus_status(b, ids[i], &s), BUS_NOT_FOUND);
        assert_int_equal(bus_output(b, ids[i], &text), BUS_NOT_FOUND);
        assert_int_equal(bus_report(b, ids[i], &text), BUS_NOT_FOUND);
        assert_int_equal(bus_event_read(b, ids[i], 0, 100, &batch), BUS_NOT_FOUND);
        assert_int_equal(control(b, ids[i], CONTROL_START), BUS_NOT_FOUND);
        assert_int_equal(control(b, ids[i], CONTROL_KILL), BUS_NOT_FOUND);
    }
}

static void the_queue_is_first_in_first_out_and_bounded(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    static const char *const ids[DEPTH] = {"a", "b", "c", "d"};
    for (size_t i = 0; i < DEPTH; i++)
        submit(b, ids[i]);
    cleanup_job_spec struct job_spec *more = new_spec("e");
    assert_int_equal(bus_submit_take(b, more, NULL), BUS_FULL);
    struct job_status s;
    assert_int_equal(bus_status(b, "e", &s), BUS_NOT_FOUND);
    (void)claim_job(b, "a");
    assert_int_equal(bus_submit_take(b, ptr_take(&more), NULL), 0);
    for (size_t i = 1; i < DEPTH; i++)
        (void)claim_job(b, ids[i]);
    (void)claim_job(b, "e");
    struct claim c;
    assert_int_equal(bus_claim(b, "w", 0, &c, NULL), BUS_TIMEOUT);
}

static void an_id_is_taken_once(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct err err = {0};
    cleanup_job_spec struct job_spec *again = new_spec("one");
    submit(b, "one");
    assert_int_equal(bus_submit_take(b, again, &err), -EEXIST);
    assert_non_null(strstr(err.msg, "one"));
    struct fence f = claim_job(b, "one");
    assert_int_equal(bus_submit_take(b, again, NULL), -EEXIST);
    finish(b, &f);
    assert_int_equal(bus_submit_take(b, again, NULL), -EEXIST);
}

static void closing_stops_submit_and_claim_only(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "active");
    submit(b, "queued");
    bus_close(b);
    bus_close(b);
    struct claim c;
    assert_int_equal(bus_claim(b, "w", INT64_MAX, &c, NULL), BUS_CLOSED);
    cleanup_job_spec struct job_spec *late = new_spec("late");
    assert_int_equal(bus_submit_take(b, late, NULL), BUS_CLOSED);
    assert_int_equal(state_of(b, "queued"), JOB_QUEUED);
    say(b, &f, "still", 1);
    assert_int_equal(control(b, "active", CONTROL_START), 0);
    finish(b, &f);
    assert_int_equal(state_of(b, "active"), JOB_DONE);
}

static void draining_ends_what_is_queued(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "active");
    submit(b, "q1");
    submit(b, "q2");
    bus_close(b);
    assert_int_equal(bus_drain(b), 2);
    assert_int_equal(bus_drain(b), 0);
    assert_int_equal(state_of(b, "q1"), JOB_ERROR);
    assert_int_equal(state_of(b, "q2"), JOB_ERROR);
    assert_int_equal(state_of(b, "active"), JOB_QUEUED);
    json_auto_t *report = report_of(b, "q2");
    assert_string_equal(json_string_value(json_object_get(report, "outcome")), "drained");
    assert_true(json_is_null(json_object_get(report, "queueMs")));
    assert_true(json_is_string(json_object_get(report, "reason")));
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "q1", 0, 65536, &batch), 0);
    assert_int_equal(batch.len, 2);
    assert_true(batch.end);
    event_batch_done(&batch);
    finish(b, &f);
    struct bus_counts n;
    bus_counts(b, &n);
    assert_int_equal(n.queued, 0);
    assert_int_equal(n.finished, 3);
}

static void killing_a_queued_job_ends_it_at_once(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    submit(b, "a");
    submit(b, "b");
    submit(b, "c");
    assert_int_equal(type_in(b, "b", "x", 1), 0);
    assert_int_equal(control(b, "b", CONTROL_KILL), 0);
    assert_int_equal(state_of(b, "b"), JOB_KILLED);
    assert_int_equal(control(b, "b", CONTROL_KILL), BUS_ENDED);

    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "b", 0, 65536, &batch), 0);
    assert_int_equal(batch.len, 2);
    assert_true(batch.end);
    assert_int_equal(batch.items[0].type, EVENT_REPORT);
    assert_int_equal(batch.items[1].type, EVENT_RESULT);
    json_auto_t *result =
        json_loadb(batch.items[1].data.ptr, batch.items[1].data.len, JSON_REJECT_DUPLICATES, NULL);
    assert_int_equal(json_object_size(result), 6);
    assert_true(json_is_null(json_object_get(result, "exitCode")));
    assert_true(json_is_null(json_object_get(result, "signal")));
    event_batch_done(&batch);
    json_auto_t *report = report_of(b, "b");
    assert_string_equal(json_string_value(json_object_get(report, "outcome")), "killed");
    assert_true(json_is_null(json_object_get(report, "queueMs")));

    cleanup_buf struct buf text;
    buf_init(&text, 4096);
    assert_int_equal(bus_output(b, "b", &text), BUS_OUTPUT_MISSING);
    (void)claim_job(b, "a");
    (void)claim_job(b, "c");
    struct bus_counts n;
    bus_counts(b, &n);
    assert_int_equal(n.active, 2);
    assert_int_equal(n.finished, 1);
}

static void a_killed_queued_job_has_the_output_it_promised(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct job_spec *spec = new_spec("a");
    spec->collect_output = true;
    assert_int_equal(bus_submit_take(b, spec, NULL), 0);
    assert_int_equal(control(b, "a", CONTROL_KILL), 0);
    cleanup_buf struct buf text;
    buf_init(&text, 4096);
    assert_int_equal(bus_output(b, "a", &text), 0);
    assert_string_equal(text.data, "{\"exitCode\":null,\"signal\":null,\"timedOut\":false,"
                                   "\"idleTimedOut\":false,\"truncated\":false,\"durationMs\":0,"
                                   "\"stdout\":\"\",\"stderr\":\"\",\"artifacts\":[],"
                                   "\"artifactsTruncated\":false}");
}

static void a_fence_is_good_for_one_claim(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    struct fence other = submit_and_claim(b, "b");
    struct fence mixed = f;
    mixed.token = other.token;
    struct fence none = f;
    none.token = 0;
    struct fence gone = f;
    (void)snprintf(gone.job, sizeof(gone.job), "gone");
    struct fence ended = submit_and_claim(b, "c");
    finish(b, &ended);
    submit(b, "queued");
    struct fence guessed = {.job = "queued", .token = 0};

    const struct fence *const bad[] = {&mixed, &none, &gone, &ended, &guessed};
    const struct event e = output_event("x", 1, 1);
    const struct job_end end = an_end();
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        uint64_t id = 77;
        struct control_batch batch;
        assert_int_equal(bus_status_set(b, bad[i], JOB_RUNNING), BUS_FENCED);
        assert_int_equal(bus_event_append(b, bad[i], &e, &id), BUS_FENCED);
        assert_int_equal(id, 77);
        assert_int_equal(bus_control_take(b, bad[i], 10, &batch), BUS_FENCED);
        bus_stdin_taken(b, bad[i], 10);
        assert_int_equal(bus_finish(b, bad[i], &end), BUS_FENCED);
    }
    assert_int_equal(state_of(b, "a"), JOB_QUEUED);
    finish(b, &f);
    finish(b, &other);
}

static void output_and_report_are_stored_at_the_end(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "a");
    struct fence plain = submit_and_claim(b, "plain");
    cleanup_buf struct buf text;
    buf_init(&text, 4096);
    assert_int_equal(bus_output(b, "a", &text), BUS_OUTPUT_MISSING);
    assert_int_equal(bus_report(b, "a", &text), BUS_OUTPUT_MISSING);
    struct job_end end = an_end();
    end.output_json = SPAN_LIT("{\"stdout\":\"hi\"}");
    assert_int_equal(bus_finish(b, &f, &end), 0);
    finish(b, &plain);

    assert_int_equal(buf_append_str(&text, "before:"), 0);
    assert_int_equal(bus_output(b, "a", &text), 0);
    assert_string_equal(text.data, "before:{\"stdout\":\"hi\"}");
    assert_int_equal(bus_output(b, "plain", &text), BUS_OUTPUT_MISSING);
    json_auto_t *report = report_of(b, "a");
    assert_string_equal(json_string_value(json_object_get(report, "outcome")), "exited");
    cleanup_buf struct buf small;
    buf_init(&small, end.output_json.len - 1);
    assert_int_equal(bus_output(b, "a", &small), -EMSGSIZE);
    assert_int_equal(small.len, 0);
    cleanup_buf struct buf exact;
    buf_init(&exact, end.output_json.len);
    assert_int_equal(bus_output(b, "a", &exact), 0);
}

/* ---- time ---- */

struct seen {
    int status, output, report, log, control;
};

static struct seen look(struct bus *b, const char *job)
{
    cleanup_buf struct buf text;
    buf_init(&text, 65536);
    struct job_status s;
    struct event_batch batch = {0};
    struct seen seen = {
        .status = bus_status(b, job, &s),
        .output = bus_output(b, job, &text),
        .report = bus_report(b, job, &text),
        .log = bus_event_read(b, job, 0, 65536, &batch),
        .control = control(b, job, CONTROL_START),
    };
    event_batch_done(&batch);
    return seen;
}

static void expect_seen(struct bus *b, const char *job, const struct seen *want, const char *name)
{
    struct seen got = look(b, job);
    if (memcmp(&got, want, sizeof(got)) != 0)
        fail_msg("%s: status %d output %d report %d log %d control %d", name, got.status,
                 got.output, got.report, got.log, got.control);
}

#define ALL                                                                                        \
    {                                                                                              \
        0, 0, 0, 0, BUS_ENDED                                                                      \
    }
#define NO_DATA                                                                                    \
    {                                                                                              \
        0, BUS_OUTPUT_MISSING, BUS_OUTPUT_MISSING, BUS_NOT_FOUND, BUS_ENDED                        \
    }
#define NO_STATE                                                                                   \
    {                                                                                              \
        BUS_NOT_FOUND, 0, 0, 0, BUS_NOT_FOUND                                                      \
    }
#define NOTHING                                                                                    \
    {                                                                                              \
        BUS_NOT_FOUND, BUS_NOT_FOUND, BUS_NOT_FOUND, BUS_NOT_FOUND, BUS_NOT_FOUND                  \
    }

static void finished_records_expire(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t job_ttl_ms, result_ttl_ms, after_ms;
        struct seen want;
    } cases[] = {
        {"at the end", 3000, 600, 0, ALL},
        {"just before the result's", 3000, 600, 599, ALL},
        {"the result's", 3000, 600, 600, NO_DATA},
        {"just before the job's", 3000, 600, 2999, NO_DATA},
        {"the job's", 3000, 600, 3000, NOTHING},
        {"result outlives status", 600, 3000, 600, NO_STATE},
        {"just before both are over", 600, 3000, 2999, NO_STATE},
        {"both are over", 600, 3000, 3000, NOTHING},
        {"equal, before", 500, 500, 499, ALL},
        {"equal, after", 500, 500, 500, NOTHING},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bus_memory_options o = default_options();
        o.job_ttl_ms = cases[i].job_ttl_ms;
        o.result_ttl_ms = cases[i].result_ttl_ms;
        cleanup_bus struct bus *b = bus_with(&o);
        struct fence f = submit_and_claim(b, "a");
        struct job_end end = an_end();
        end.output_json = SPAN_LIT("{}");
        assert_int_equal(bus_finish(b, &f, &end), 0);
        fake_now_ms += cases[i].after_ms;
        expect_seen(b, "a", &cases[i].want, cases[i].name);
        bus_housekeep(b);
        expect_seen(b, "a", &cases[i].want, cases[i].name);
        struct bus_counts n;
        bus_counts(b, &n);
        bool gone = cases[i].want.status != 0 && cases[i].want.log != 0;
        assert_int_equal(n.finished, gone ? 0 : 1);
        assert_int_equal(n.log_bytes != 0, cases[i].want.log == 0);
        if (gone)
            (void)submit_and_claim(b, "a"); /* even the id is free again */
    }
}

static void queued_and_active_jobs_never_expire(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = new_bus();
    struct fence f = submit_and_claim(b, "active");
    submit(b, "queued");
    say(b, &f, "hello", 1);
    fake_now_ms += 100 * (int64_t)JOB_TTL_MS;
    bus_housekeep(b);
    assert_int_equal(state_of(b, "queued"), JOB_QUEUED);
    struct claim c;
    assert_int_equal(bus_claim(b, "w", 0, &c, NULL), 0);
    assert_int_equal(c.queue_ms, 100 * (int64_t)JOB_TTL_MS);
    claim_done(&c);
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "active", 0, 100, &batch), 0);
    assert_int_equal(batch.len, 1);
    event_batch_done(&batch);
    finish(b, &f); /* only now its time begins to run */
    fake_now_ms += JOB_TTL_MS - 1;
    bus_housekeep(b);
    assert_int_equal(state_of(b, "active"), JOB_DONE);
}

/* ---- memory ---- */

static void finish_with_output(struct bus *b, const char *id, size_t n)
{
    char *bytes = malloc(n);
    assert_non_null(bytes);
    memset(bytes, 'x', n);
    struct fence f = submit_and_claim(b, id);
    const struct event e = output_event(bytes, n, 1);
    assert_int_equal(bus_event_append(b, &f, &e, NULL), 0);
    free(bytes);
    finish(b, &f);
}

static void the_oldest_logs_go_first(void **state)
{
    (void)state;
    struct bus_memory_options o = default_options();
    o.memory_max_bytes = 100000;
    cleanup_bus struct bus *b = bus_with(&o);
    finish_with_output(b, "a", 40000);
    finish_with_output(b, "b", 40000);
    assert_int_equal(look(b, "a").log, 0);
    finish_with_output(b, "c", 40000);
    const struct seen no_data = NO_DATA;
    struct seen a = look(b, "a");
    a.output = BUS_OUTPUT_MISSING;
    assert_memory_equal(&a, &no_data, sizeof(a));
    assert_int_equal(look(b, "b").log, 0);
    assert_int_equal(look(b, "c").log, 0);
    struct bus_counts n;
    bus_counts(b, &n);
    assert_true(n.log_bytes <= 100000);
    assert_int_equal(n.finished, 3);

    finish_with_output(b, "big",
                       200000); /* more than all that is allowed, but nobody has read it */
    assert_int_equal(look(b, "b").log, BUS_NOT_FOUND);
    assert_int_equal(look(b, "c").log, BUS_NOT_FOUND);
    assert_int_equal(look(b, "big").log, 0);
    finish_with_output(b, "small", 10);
    assert_int_equal(look(b, "big").log, BUS_NOT_FOUND);
    assert_int_equal(look(b, "small").log, 0);
}

static void logs_of_active_jobs_are_not_evicted(void **state)
{
    (void)state;
    struct bus_memory_options o = default_options();
    o.memory_max_bytes = 20000;
    cleanup_bus struct bus *b = bus_with(&o);
    struct fence f = submit_and_claim(b, "active");
    say(b, &f, "hello", 1);
    for (int i = 0; i < 10; i++) {
        char id[16];
        (void)snprintf(id, sizeof(id), "job-%d", i);
        finish_with_output(b, id, 15000);
    }
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, "active", 0, 100, &batch), 0);
    assert_int_equal(batch.len, 1);
    event_batch_done(&batch);
}

/* Also the records themselves are bounded; the table has grown and shrunk by then. */
static void even_statuses_are_bounded(void **state)
{
    (void)state;
    struct bus_memory_options o = default_options();
    o.memory_max_bytes = 100000;
    cleanup_bus struct bus *b = bus_with(&o);
    char id[16];
    for (int i = 0; i < 1000; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        struct fence f = submit_and_claim(b, id);
        finish(b, &f);
        assert_int_equal(look(b, id).log, 0);
    }
    struct bus_counts n;
    bus_counts(b, &n);
    assert_true(n.finished > 10 && n.finished < 1000);
    assert_true(n.log_bytes <= 100000);
    struct job_status s;
    assert_int_equal(bus_status(b, "job-0", &s), BUS_NOT_FOUND);
    for (int i = 1000 - (int)n.finished; i < 1000; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        assert_int_equal(bus_status(b, id, &s), 0);
    }
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        struct bus_memory_options o;
    } cases[] = {
        {"queue_depth_max", {0, 1, 1, 1, NULL}},   {"job_ttl_ms", {1, 0, 1, 1, NULL}},
        {"job_ttl_ms is -1", {1, -1, 1, 1, NULL}}, {"result_ttl_ms", {1, 1, 0, 1, NULL}},
        {"memory_max_bytes", {1, 1, 1, 0, NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bus *b = NULL;
        struct err err = {0};
        assert_int_equal(bus_memory_new(&cases[i].o, &b, &err), -EINVAL);
        assert_null(b);
        if (!strstr(err.msg, cases[i].word))
            fail_msg("%s: %s", cases[i].word, err.msg);
    }
    const struct bus_memory_options least = {1, 1, 1, 1, NULL};
    bus_free(bus_with(&least));
    bus_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_passes_through),
        cmocka_unit_test(unknown_ids_are_not_found),
        cmocka_unit_test(the_queue_is_first_in_first_out_and_bounded),
        cmocka_unit_test(an_id_is_taken_once),
        cmocka_unit_test(closing_stops_submit_and_claim_only),
        cmocka_unit_test(draining_ends_what_is_queued),
        cmocka_unit_test(killing_a_queued_job_ends_it_at_once),
        cmocka_unit_test(a_killed_queued_job_has_the_output_it_promised),
        cmocka_unit_test(a_fence_is_good_for_one_claim),
        cmocka_unit_test(output_and_report_are_stored_at_the_end),
        cmocka_unit_test(finished_records_expire),
        cmocka_unit_test(queued_and_active_jobs_never_expire),
        cmocka_unit_test(the_oldest_logs_go_first),
        cmocka_unit_test(logs_of_active_jobs_are_not_evicted),
        cmocka_unit_test(even_statuses_are_bounded),
        cmocka_unit_test(bad_options_are_refused),
    };
    return cmocka_run_group_tests_name("bus.jobs", tests, NULL, NULL);
}
