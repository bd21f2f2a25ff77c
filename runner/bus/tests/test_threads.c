/* Many threads on one bus; meant for the thread sanitizer. cmocka's asserts belong to the main
 * thread, so the others count what they find wrong. */
#include "tests/bus_test.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/clock.h"

#define GENEROUS_MS 60000

static atomic_int wrong;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            (void)atomic_fetch_add(&wrong, 1);                                                     \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                  \
        }                                                                                          \
    } while (0)

static pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
    return t;
}

static void join(pthread_t t)
{
    assert_int_equal(pthread_join(t, NULL), 0);
}

static struct bus *real_time_bus(uint32_t depth, uint64_t memory_max_bytes)
{
    const struct bus_memory_options o = {
        .queue_depth_max = depth,
        .job_ttl_ms = GENEROUS_MS,
        .result_ttl_ms = GENEROUS_MS,
        .memory_max_bytes = memory_max_bytes,
    };
    return bus_with(&o);
}

/* ---- the queue ---- */

enum { SUBMITTERS = 4, CLAIMERS = 4, JOBS_EACH = 250, JOBS = SUBMITTERS * JOBS_EACH };

struct fifo {
    struct bus *bus;
    atomic_int next_submitter;
    atomic_int claimed;
    struct fence order[JOBS + 1]; /* by token, which counts claims */
};

static void *fifo_submit(void *arg)
{
    struct fifo *q = arg;
    int me = atomic_fetch_add(&q->next_submitter, 1);
    for (int i = 0; i < JOBS_EACH; i++) {
        char id[JOB_ID_SIZE];
        (void)snprintf(id, sizeof(id), "%d-%d", me, i);
        struct job_spec *spec = new_spec(id);
        int r;
        while ((r = bus_submit_take(q->bus, spec, NULL)) == BUS_FULL)
            (void)sched_yield();
        CHECK(r == 0);
    }
    return NULL;
}

static void *fifo_claim(void *arg)
{
    struct fifo *q = arg;
    struct claim c;
    int r;
    while ((r = bus_claim(q->bus, "w", DEADLINE_NEVER, &c, NULL)) == 0) {
        CHECK(c.fence.token >= 1 && c.fence.token <= JOBS);
        q->order[c.fence.token] = c.fence;
        CHECK(strcmp(c.spec->id, c.fence.job) == 0);
        claim_done(&c);
        if (atomic_fetch_add(&q->claimed, 1) + 1 == JOBS)
            bus_close(q->bus);
    }
    CHECK(r == BUS_CLOSED);
    return NULL;
}

static void each_submitter_is_served_in_order(void **state)
{
    (void)state;
    struct fifo *q = calloc(1, sizeof(*q));
    assert_non_null(q);
    q->bus = real_time_bus(16, 1 << 20);
    pthread_t threads[SUBMITTERS + CLAIMERS];
    for (int i = 0; i < CLAIMERS; i++)
        threads[i] = start(fifo_claim, q);
    for (int i = 0; i < SUBMITTERS; i++)
        threads[CLAIMERS + i] = start(fifo_submit, q);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        join(threads[i]);

    int next[SUBMITTERS] = {0};
    for (int i = 1; i <= JOBS; i++) {
        char *dash = NULL;
        long who = strtol(q->order[i].job, &dash, 10);
        assert_in_range(who, 0, SUBMITTERS - 1);
        assert_non_null(dash);
        assert_int_equal(strtol(dash + 1, NULL, 10), next[who]++);
    }
    bus_free(q->bus);
    free(q);
    assert_int_equal(atomic_load(&wrong), 0);
}

static void *wait_for_a_job(void *arg)
{
    struct claim c;
    if (bus_claim(arg, "w", clock_now_ms() + GENEROUS_MS, &c, NULL) != 0)
        return NULL;
    claim_done(&c);
    return arg;
}

static void a_claim_waits_for_a_job_its_deadline_or_the_end(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = real_time_bus(4, 1 << 20);
    struct claim c;
    int64_t deadline_ms = clock_now_ms() + 20;
    assert_int_equal(bus_claim(b, "w", deadline_ms, &c, NULL), BUS_TIMEOUT);
    assert_true(clock_now_ms() >= deadline_ms);
    assert_int_equal(bus_claim(b, "w", INT64_MIN, &c, NULL), BUS_TIMEOUT);

    void *got = NULL;
    pthread_t t = start(wait_for_a_job, b);
    submit(b, "a");
    assert_int_equal(pthread_join(t, &got), 0);
    assert_ptr_equal(got, b);
    t = start(wait_for_a_job, b);
    bus_close(b);
    assert_int_equal(pthread_join(t, &got), 0);
    assert_null(got);
}

/* ---- readers ---- */

enum { READERS = 3, EVENTS = 2000 };

/* Waits until one watch of w is dirty; false: not for a very long time. */
static bool wait_for_news(struct bus_watcher *w)
{
    struct pollfd p = {.fd = bus_watcher_fd(w), .events = POLLIN};
    void *tag;
    return poll(&p, 1, GENEROUS_MS) == 1 && bus_watcher_next(w, &tag);
}

static void *read_to_the_end(void *arg)
{
    struct bus *b = arg;
    struct bus_watcher *w = NULL;
    struct bus_watch *watch = NULL;
    CHECK(bus_watcher_new(b, &w, NULL) == 0);
    CHECK(bus_watch_add(w, "a", BUS_WATCH_EVENTS, b, &watch) == 0);
    uint64_t after = 0;
    bool end = false;
    while (!end && wait_for_news(w)) {
        struct event_batch batch = {.len = 1};
        while (!end && batch.len > 0) {
            CHECK(bus_event_read(b, "a", after, 1000, &batch) == 0);
            for (size_t i = 0; i < batch.len; i++)
                CHECK(batch.items[i].id == ++after);
            end = batch.end;
            size_t len = batch.len;
            event_batch_done(&batch);
            batch.len = len;
        }
    }
    CHECK(end);
    CHECK(after == EVENTS + 2);
    bus_watcher_free(w);
    return NULL;
}

static void readers_miss_nothing(void **state)
{
    (void)state;
    cleanup_bus struct bus *b = real_time_bus(4, 1 << 20);
    struct fence f = submit_and_claim(b, "a");
    pthread_t readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start(read_to_the_end, b);
    for (uint64_t i = 1; i <= EVENTS; i++)
        say(b, &f, "some output of a program\n", i);
    finish(b, &f);
    for (int i = 0; i < READERS; i++)
        join(readers[i]);
    assert_int_equal(atomic_load(&wrong), 0);
}

/* ---- everything at once ---- */

enum { SESSIONS = 3, CONTROLLERS = 2, WATCHERS = 2, STRESS_JOBS = 200 };

struct stress {
    struct bus *bus;
    atomic_int submitted; /* jobs 0 .. submitted-1 have been accepted */
    atomic_int finished;  /* by a session */
    atomic_bool over;
};

static void stress_id(int i, char id[static JOB_ID_SIZE])
{
    (void)snprintf(id, JOB_ID_SIZE, "stress-%d", i);
}

static void stress_session_job(struct stress *s, struct claim *c)
{
    struct bus_watcher *w = NULL;
    struct bus_watch *watch = NULL;
    void *tag;
    CHECK(bus_watcher_new(s->bus, &w, NULL) == 0);
    CHECK(bus_watch_add(w, c->fence.job, BUS_WATCH_CONTROL, c, &watch) == 0);
    bool killed = false;
    for (uint64_t i = 1; i <= 30 && !killed; i++) {
        const struct event e = output_event("0123456789abcdef", 16, i);
        CHECK(bus_event_append(s->bus, &c->fence, &e, NULL) == 0);
        CHECK(bus_status_set(s->bus, &c->fence, JOB_RUNNING) == 0);
        if (!bus_watcher_next(w, &tag))
            continue;
        struct control_batch batch;
        CHECK(bus_control_take(s->bus, &c->fence, 100, &batch) == 0);
        bus_stdin_taken(s->bus, &c->fence, batch.bytes.len);
        killed = batch.kill;
        control_batch_done(&batch);
    }
    struct job_end end = an_end();
    end.output_json = SPAN_LIT("{}");
    CHECK(bus_finish(s->bus, &c->fence, &end) == 0);
    CHECK(bus_finish(s->bus, &c->fence, &end) == BUS_FENCED);
    (void)atomic_fetch_add(&s->finished, 1);
    bus_watcher_free(w);
}

static void *stress_session(void *arg)
{
    struct stress *s = arg;
    struct claim c;
    while (bus_claim(s->bus, "w", DEADLINE_NEVER, &c, NULL) == 0) {
        stress_session_job(s, &c);
        claim_done(&c);
    }
    return NULL;
}

static void *stress_controller(void *arg)
{
    struct stress *s = arg;
    for (int i = 0; !atomic_load(&s->over); i++) {
        int n = atomic_load(&s->submitted);
        if (n == 0)
            continue;
        char id[JOB_ID_SIZE];
        stress_id(n - 1 - i % (n < 8 ? n : 8), id);
        (void)control(s->bus, id, CONTROL_START); /* each may be refused, which is the point */
        (void)type_in(s->bus, id, "hello\n", 6);
        if (i % 16 == 0)
            (void)control(s->bus, id, CONTROL_KILL);
        bus_housekeep(s->bus);
        struct bus_counts counts;
        bus_counts(s->bus, &counts);
    }
    return NULL;
}

static void *stress_watcher(void *arg)
{
    struct stress *s = arg;
    struct bus_watcher *w = NULL;
    CHECK(bus_watcher_new(s->bus, &w, NULL) == 0);
    for (int i = 0; !atomic_load(&s->over); i++) {
        int n = atomic_load(&s->submitted);
        char id[JOB_ID_SIZE];
        stress_id(n > 0 ? n - 1 - i % n : 0, id);
        struct bus_watch *watch = NULL;
        struct event_batch batch;
        cleanup_buf struct buf text;
        buf_init(&text, 65536);
        void *tag;
        (void)bus_watch_add(w, id, BUS_WATCH_EVENTS, s, &watch); /* it may be gone already */
        if (bus_event_read(s->bus, id, 0, 500, &batch) == 0)
            event_batch_done(&batch);
        (void)bus_output(s->bus, id, &text);
        (void)bus_watcher_next(w, &tag);
        if (i % 3 != 0)
            bus_watch_remove(watch);
        if (i % 64 == 0) { /* those left over go with their watcher */
            bus_watcher_free(w);
            CHECK(bus_watcher_new(s->bus, &w, NULL) == 0);
        }
    }
    bus_watcher_free(w);
    return NULL;
}

/* Every job ends once: by a session, by a kill in the queue, or drained. */
static void everything_at_once(void **state)
{
    (void)state;
    struct stress s = {.bus = real_time_bus(8, 200000)};
    pthread_t sessions[SESSIONS];
    pthread_t others[CONTROLLERS + WATCHERS];
    for (int i = 0; i < SESSIONS; i++)
        sessions[i] = start(stress_session, &s);
    for (int i = 0; i < CONTROLLERS + WATCHERS; i++)
        others[i] = start(i < CONTROLLERS ? stress_controller : stress_watcher, &s);
    for (int i = 0; i < STRESS_JOBS; i++) {
        char id[JOB_ID_SIZE];
        stress_id(i, id);
        struct job_spec *spec = new_spec(id);
        spec->collect_output = i % 2;
        int r;
        while ((r = bus_submit_take(s.bus, spec, NULL)) == BUS_FULL)
            (void)sched_yield();
        assert_int_equal(r, 0);
        (void)atomic_fetch_add(&s.submitted, 1);
    }
    bus_close(s.bus);
    int drained = bus_drain(s.bus);
    assert_true(drained >= 0);
    for (int i = 0; i < SESSIONS; i++)
        join(sessions[i]);
    atomic_store(&s.over, true);
    for (int i = 0; i < CONTROLLERS + WATCHERS; i++)
        join(others[i]);

    int killed_in_queue = 0;
    for (int i = 0; i < STRESS_JOBS; i++) {
        char id[JOB_ID_SIZE];
        stress_id(i, id);
        enum job_state end = state_of(s.bus, id);
        assert_true(job_state_is_final(end));
        killed_in_queue += end == JOB_KILLED;
    }
    assert_int_equal(atomic_load(&s.finished) + killed_in_queue + drained, STRESS_JOBS);
    struct bus_counts n;
    bus_counts(s.bus, &n);
    assert_int_equal(n.queued + n.active, 0);
    assert_int_equal(n.finished, STRESS_JOBS);
    bus_free(s.bus);
    assert_int_equal(atomic_load(&wrong), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_submitter_is_served_in_order),
        cmocka_unit_test(a_claim_waits_for_a_job_its_deadline_or_the_end),
        cmocka_unit_test(readers_miss_nothing),
        cmocka_unit_test(everything_at_once),
    };
    return cmocka_run_group_tests_name("bus.threads", tests, NULL, NULL);
}
