/* bus/tests/bus_test.h - what the test programs of the bus share. */
#ifndef BUS_TEST_H
#define BUS_TEST_H

#include "test.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "bus/bus.h"

#define JOB_TTL_MS    3600000
#define RESULT_TTL_MS 600000
#define DEPTH         4

static int64_t fake_now_ms = 1000000;

static inline int64_t fake_now(void)
{
    return fake_now_ms;
}

static inline struct bus_memory_options default_options(void)
{
    return (struct bus_memory_options){
        .queue_depth_max = DEPTH,
        .job_ttl_ms = JOB_TTL_MS,
        .result_ttl_ms = RESULT_TTL_MS,
        .memory_max_bytes = 1 << 20,
        .now_ms = fake_now,
    };
}

static inline struct bus *bus_with(const struct bus_memory_options *o)
{
    struct bus *b = NULL;
    struct err err = {0};
    if (bus_memory_new(o, &b, &err) != 0)
        fail_msg("bus_memory_new: %s", err.msg);
    return b;
}

static inline struct bus *new_bus(void)
{
    const struct bus_memory_options o = default_options();
    return bus_with(&o);
}

static inline char *copy_of(const char *s)
{
    char *copy = strdup(s);
    assert_non_null(copy);
    return copy;
}

static inline struct job_spec *new_spec(const char *id)
{
    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    (void)snprintf(spec->id, sizeof(spec->id), "%s", id);
    spec->language = copy_of("python");
    spec->version = copy_of("3.13");
    return spec;
}

static inline void submit(struct bus *b, const char *id)
{
    assert_int_equal(bus_submit_take(b, new_spec(id), NULL), 0);
}

/* Claims the next job, which must be id. */
static inline struct fence claim_job(struct bus *b, const char *id)
{
    struct claim c = {0};
    assert_int_equal(bus_claim(b, "w", 0, &c, NULL), 0);
    assert_string_equal(c.fence.job, id);
    assert_non_null(c.spec);
    assert_string_equal(c.spec->id, id);
    struct fence f = c.fence;
    claim_done(&c);
    return f;
}

static inline struct fence submit_and_claim(struct bus *b, const char *id)
{
    submit(b, id);
    return claim_job(b, id);
}

static inline struct job_end an_end(void)
{
    struct job_end end = {0};
    job_report_init(&end.report);
    end.report.outcome = OUTCOME_EXITED;
    end.report.exit_code = 0;
    end.report.run_ms = 12;
    job_result_from_report(&end.report, &end.result, &end.state);
    return end;
}

static inline void finish(struct bus *b, const struct fence *f)
{
    const struct job_end end = an_end();
    assert_int_equal(bus_finish(b, f, &end), 0);
}

static inline struct event output_event(const char *bytes, size_t n, uint64_t seq)
{
    return (struct event){.type = EVENT_STDOUT, .seq = seq, .data = {bytes, n}};
}

static inline void say(struct bus *b, const struct fence *f, const char *text, uint64_t seq)
{
    const struct event e = output_event(text, strlen(text), seq);
    assert_int_equal(bus_event_append(b, f, &e, NULL), 0);
}

static inline int control(struct bus *b, const char *job, enum control_type type)
{
    return bus_control_append(b, job, &(struct control){.type = type});
}

static inline int type_in(struct bus *b, const char *job, const char *bytes, size_t n)
{
    const struct control c = {.type = CONTROL_STDIN, .data = {bytes, n}};
    return bus_control_append(b, job, &c);
}

static inline enum job_state state_of(struct bus *b, const char *job)
{
    struct job_status s;
    assert_int_equal(bus_status(b, job, &s), 0);
    return s.state;
}

/* The report as JSON; the caller drops it. */
static inline json_t *report_of(struct bus *b, const char *job)
{
    cleanup_buf struct buf text;
    buf_init(&text, 65536);
    assert_int_equal(bus_report(b, job, &text), 0);
    json_t *report = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(report);
    return report;
}

#endif
