/* Fails the first, second, ... allocation of each operation (linked with --wrap): it must answer
 * -ENOMEM, change nothing, and work when it is tried again. */
#include "tests/bus_test.h"

static long countdown = -1; /* allocations that still succeed; -1: all of them */
static bool keep_failing;
static bool fired;

static bool is_to_fail(void)
{
    if (countdown < 0)
        return false;
    if (countdown > 0) {
        countdown--;
        return false;
    }
    fired = true;
    if (!keep_failing)
        countdown = -1;
    return true;
}

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);

void *__wrap_malloc(size_t n)
{
    return is_to_fail() ? NULL : __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return is_to_fail() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    return is_to_fail() ? NULL : __real_realloc(p, n);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
    return is_to_fail() ? NULL : __real_reallocarray(p, n, size);
}

/* ---- the scene: "a" is active with an event and three bytes of stdin, "q" is queued ---- */

struct scene {
    struct bus *bus;
    struct fence fence; /* a's */
    struct bus_watcher *watcher;
};

static void scene_open(struct scene *s)
{
    s->bus = new_bus();
    fake_now_ms += 1000;
    s->fence = submit_and_claim(s->bus, "a");
    say(s->bus, &s->fence, "hello", 1);
    assert_int_equal(type_in(s->bus, "a", "abc", 3), 0);
    struct job_spec *q = new_spec("q");
    q->collect_output = true;
    assert_int_equal(bus_submit_take(s->bus, q, NULL), 0);
    assert_int_equal(bus_watcher_new(s->bus, &s->watcher, NULL), 0);
}

static void scene_close(struct scene *s)
{
    bus_watcher_free(s->watcher);
    bus_free(s->bus);
}

static size_t events_of(struct bus *b, const char *job)
{
    struct event_batch batch;
    assert_int_equal(bus_event_read(b, job, 0, SIZE_MAX, &batch), 0);
    size_t n = batch.len;
    event_batch_done(&batch);
    return n;
}

#define FACTS_SIZE 256

/* What an operation that failed must not have changed. */
static void facts_of(const struct scene *s, char ret[static FACTS_SIZE])
{
    cleanup_buf struct buf text;
    buf_init(&text, 65536);
    void *tag;
    struct bus_counts n;
    bus_counts(s->bus, &n);
    int len = snprintf(ret, FACTS_SIZE,
                       "queued %" PRIu64 " active %" PRIu64 " finished %" PRIu64 " bytes %" PRIu64
                       " states %d %d events %zu %zu output %d report %d watch %d",
                       n.queued, n.active, n.finished, n.log_bytes, (int)state_of(s->bus, "a"),
                       (int)state_of(s->bus, "q"), events_of(s->bus, "a"), events_of(s->bus, "q"),
                       bus_output(s->bus, "a", &text), bus_report(s->bus, "q", &text),
                       bus_watcher_next(s->watcher, &tag));
    assert_in_range(len, 1, FACTS_SIZE - 1);
}

/* ---- operations: the caller arms them; what they need beforehand is made by them unarmed ---- */

static long armed;

static void arm(void)
{
    countdown = armed;
}

static int op_submit(struct scene *s)
{
    cleanup_job_spec struct job_spec *spec = new_spec("new");
    arm();
    int r = bus_submit_take(s->bus, spec, NULL);
    if (r == 0)
        (void)ptr_take(&spec);
    return r;
}

static int op_stdin(struct scene *s)
{
    static char bytes[1000];
    arm();
    return type_in(s->bus, "a", bytes, sizeof(bytes));
}

static int op_first_stdin(struct scene *s)
{
    arm();
    return type_in(s->bus, "q", "x", 1);
}

static int op_start(struct scene *s)
{
    arm();
    return control(s->bus, "q", CONTROL_START);
}

static int op_signals(struct scene *s)
{
    const struct control c = {.type = CONTROL_SIGNAL, .signal = 2};
    arm();
    int r = 0;
    for (int i = 0; r == 0 && i < 8; i++)
        r = bus_control_append(s->bus, "a", &c);
    return r;
}

static int op_kill_queued(struct scene *s)
{
    arm();
    return control(s->bus, "q", CONTROL_KILL);
}

static int op_drain(struct scene *s)
{
    arm();
    int r = bus_drain(s->bus);
    return r == 1 ? 0 : r;
}

static int op_take(struct scene *s)
{
    struct control_batch batch;
    arm();
    int r = bus_control_take(s->bus, &s->fence, 100, &batch);
    if (r == 0) {
        assert_int_equal(batch.len, 1);
        assert_true(span_eq(batch.items[0].data, "abc"));
        control_batch_done(&batch);
    }
    return r;
}

static int op_append(struct scene *s)
{
    static char bytes[4000];
    const struct event e = output_event(bytes, sizeof(bytes), 2);
    uint64_t id = 77;
    arm();
    int r = bus_event_append(s->bus, &s->fence, &e, &id);
    assert_int_equal(id, r == 0 ? 2 : 77);
    return r;
}

static int op_read(struct scene *s)
{
    struct event_batch batch;
    arm();
    int r = bus_event_read(s->bus, "a", 0, 100, &batch);
    if (r == 0)
        event_batch_done(&batch);
    return r;
}

static int op_finish(struct scene *s)
{
    const struct span artifacts[] = {SPAN_LIT("{}")};
    struct job_end end = an_end();
    end.output_json = SPAN_LIT("{}");
    end.artifacts = artifacts;
    end.artifacts_len = 1;
    arm();
    return bus_finish(s->bus, &s->fence, &end);
}

static int op_report(struct scene *s)
{
    cleanup_buf struct buf text;
    buf_init(&text, 65536);
    struct fence f = claim_job(s->bus, "q");
    finish(s->bus, &f);
    arm();
    return bus_report(s->bus, "q", &text);
}

static int op_watcher(struct scene *s)
{
    struct bus_watcher *w = NULL;
    arm();
    int r = bus_watcher_new(s->bus, &w, NULL);
    assert_true((r == 0) == (w != NULL));
    bus_watcher_free(w);
    return r;
}

static int op_watch(struct scene *s)
{
    struct bus_watch *watch = NULL;
    arm();
    int r = bus_watch_add(s->watcher, "a", BUS_WATCH_EVENTS, s, &watch);
    assert_true((r == 0) == (watch != NULL));
    return r;
}

static int op_new(struct scene *s)
{
    (void)s;
    const struct bus_memory_options o = default_options();
    struct bus *b = NULL;
    arm();
    int r = bus_memory_new(&o, &b, NULL);
    assert_true((r == 0) == (b != NULL));
    bus_free(b);
    return r;
}

static const struct {
    const char *name;
    int (*run)(struct scene *s);
    long allocations_min; /* what it fails at least when each of them does */
    bool changes_before;  /* it made something of its own before it was armed, or does parts */
} operations[] = {
    {"new", op_new, 2, false},
    {"submit", op_submit, 1, false},
    {"stdin", op_stdin, 1, false},
    {"first stdin", op_first_stdin, 2, false},
    {"start", op_start, 1, false},
    {"signals", op_signals, 1, true},
    {"kill queued", op_kill_queued, 5, false},
    {"drain", op_drain, 5, false},
    {"take", op_take, 2, false},
    {"append", op_append, 1, false},
    {"read", op_read, 2, false},
    {"finish", op_finish, 5, false},
    {"report", op_report, 1, true},
    {"watcher", op_watcher, 1, false},
    {"watch", op_watch, 1, false},
};

/* Runs one operation with allocation n failing; false: it does not make that many. */
static bool fail_nth(size_t which, long n)
{
    const char *name = operations[which].name;
    struct scene s;
    scene_open(&s);
    char before[FACTS_SIZE];
    facts_of(&s, before);
    armed = n;
    fired = false;
    int r = operations[which].run(&s);
    countdown = -1;
    bool does_without = operations[which].run == op_finish; /* giving unused room back may fail */
    if (fired ? r != -ENOMEM && !(r == 0 && does_without) : r != 0)
        fail_msg("%s, allocation %ld: %d", name, n, r);
    if (r == -ENOMEM && !operations[which].changes_before) {
        char after[FACTS_SIZE];
        facts_of(&s, after);
        if (strcmp(before, after) != 0)
            fail_msg("%s, allocation %ld: before %s, after %s", name, n, before, after);
        armed = -1;
        r = operations[which].run(&s);
        if (r != 0)
            fail_msg("%s after failure %ld: %d", name, n, r);
    }
    scene_close(&s);
    return fired;
}

static void every_allocation_may_fail(void **state)
{
    keep_failing = *state != NULL;
    for (size_t i = 0; i < ARRAY_LEN(operations); i++) {
        long n = 0;
        while (fail_nth(i, n))
            n++;
        if (n < operations[i].allocations_min)
            fail_msg("%s: only %ld allocations were seen", operations[i].name, n);
    }
}

/* The table of records does without growing when it has to. */
static void a_table_that_cannot_grow_still_finds(void **state)
{
    (void)state;
    struct bus_memory_options o = default_options();
    o.queue_depth_max = 1000;
    cleanup_bus struct bus *b = bus_with(&o);
    char id[16];
    for (int i = 0; i < 500; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        struct job_spec *spec = new_spec(id);
        keep_failing = true;
        countdown = 1; /* the record, then no more */
        int r = bus_submit_take(b, spec, NULL);
        countdown = -1;
        assert_int_equal(r, 0);
    }
    for (int i = 0; i < 500; i++) {
        (void)snprintf(id, sizeof(id), "job-%d", i);
        assert_int_equal(state_of(b, id), JOB_QUEUED);
        (void)claim_job(b, id);
    }
}

int main(void)
{
    json_set_alloc_funcs(malloc, free); /* ours, so that jansson's fail too */
    static int from_then_on;
    const struct CMUnitTest tests[] = {
        {"one_allocation_fails", every_allocation_may_fail, NULL, NULL, NULL},
        {"all_fail_from_then_on", every_allocation_may_fail, NULL, NULL, &from_then_on},
        cmocka_unit_test(a_table_that_cannot_grow_still_finds),
    };
    return cmocka_run_group_tests_name("bus.torture", tests, NULL, NULL);
}
