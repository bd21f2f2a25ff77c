#include "worker/worker.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "fake_sandbox.h"
#include "frames/frames.h"
#include "test.h"

#define SLOTS       3
#define JOBS        7
#define PATIENCE_MS 30000

/* How many fake inits are alive; the test lets them end one by one. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned alive, most_alive, may_end;

static void put(int fd, const char *bytes, size_t n)
{
    (void)fd_write_full(fd, bytes, n); /* the session may have gone */
}

static bool took_permission(void)
{
    (void)pthread_mutex_lock(&lock);
    bool ok = may_end > 0;
    may_end -= ok;
    (void)pthread_mutex_unlock(&lock);
    return ok;
}

/* Reads and ignores what the worker says; false once it has closed its side. */
static bool is_wanted(int fd)
{
    char ignored[4096];
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 1) != 1)
        return true;
    return read(fd, ignored, sizeof(ignored)) > 0;
}

static void change_alive(int by)
{
    (void)pthread_mutex_lock(&lock);
    alive += (unsigned)by;
    if (alive > most_alive)
        most_alive = alive;
    (void)pthread_mutex_unlock(&lock);
}

static void init_runs_until_allowed_to_end(int fd)
{
    change_alive(1);
    put(fd, "\x40\0\0\0\0\4\0\0\0\1", 10); /* READY, version 1 */
    bool ends = false;
    while (!ends && is_wanted(fd))
        ends = took_permission();
    if (ends) {
        cleanup_buf struct buf out;
        buf_init(&out, 256);
        const struct frame_exit e = {.code = 0};
        if (frame_u8_encode(&out, FRAME_STAGE, FRAME_STAGE_RUN) == 0 &&
            frame_exit_encode(&out, FRAME_EXITED, &e) == 0)
            put(fd, out.data, out.len);
        while (is_wanted(fd))
            ;
    }
    change_alive(-1);
}

static char *copy(const char *s)
{
    char *c = strdup(s);
    assert_non_null(c);
    return c;
}

static void submit(struct bus *bus, unsigned number, char ret_id[static JOB_ID_SIZE])
{
    (void)snprintf(ret_id, JOB_ID_SIZE, "6ba7b810-9dad-41d1-80b4-%012u", number);
    struct job_spec *spec = calloc(1, sizeof(*spec));
    assert_non_null(spec);
    memcpy(spec->id, ret_id, JOB_ID_SIZE);
    spec->language = copy("python");
    spec->version = copy("3.13");
    spec->image = copy("image");
    spec->entrypoint = copy("main.py");
    spec->run = calloc(2, sizeof(*spec->run));
    assert_non_null(spec->run);
    spec->run[0] = copy("python3");
    spec->limits = (struct limits){60000, 60000, 60000, 64, 8, 64, 1, 1};
    assert_int_equal(bus_submit_take(bus, spec, NULL), 0);
    const struct control start = {.type = CONTROL_START};
    assert_int_equal(bus_control_append(bus, ret_id, &start), 0);
}

static struct bus *make_bus(void)
{
    const struct bus_memory_options o = {.queue_depth_max = JOBS,
                                         .job_ttl_ms = 1000000,
                                         .result_ttl_ms = 1000000,
                                         .memory_max_bytes = 1 << 20};
    struct bus *bus = NULL;
    assert_int_equal(bus_memory_new(&o, &bus, NULL), 0);
    return bus;
}

static struct worker *make_worker(struct bus *bus, struct sandbox_backend *backend)
{
    const struct worker_options o = {.bus = bus,
                                     .backend = backend,
                                     .worker_id = "w",
                                     .max_sandboxes = SLOTS,
                                     .warmup_ms = 60000};
    struct worker *worker = NULL;
    assert_int_equal(worker_start(&o, &worker, NULL), 0);
    return worker;
}

static void await_counts(struct bus *bus, uint64_t queued, uint64_t active, uint64_t finished)
{
    struct bus_counts c = {0};
    int64_t end_ms = clock_now_ms() + PATIENCE_MS;
    while (clock_now_ms() < end_ms) {
        bus_counts(bus, &c);
        if (c.queued == queued && c.active == active && c.finished == finished)
            return;
        (void)poll(NULL, 0, 1);
    }
    fail_msg("queued %u, active %u, finished %u", (unsigned)c.queued, (unsigned)c.active,
             (unsigned)c.finished);
}

static void await_alive(unsigned n)
{
    int64_t end_ms = clock_now_ms() + PATIENCE_MS;
    unsigned now = 0;
    do {
        (void)poll(NULL, 0, 1);
        (void)pthread_mutex_lock(&lock);
        now = alive;
        (void)pthread_mutex_unlock(&lock);
    } while (now != n && clock_now_ms() < end_ms);
    assert_int_equal(now, n);
}

static void allow_ends(unsigned n)
{
    (void)pthread_mutex_lock(&lock);
    may_end += n;
    (void)pthread_mutex_unlock(&lock);
}

static void assert_state(struct bus *bus, const char *id, enum job_state want)
{
    struct job_status status;
    assert_int_equal(bus_status(bus, id, &status), 0);
    assert_int_equal(status.state, want);
}

static void no_more_jobs_than_slots(void **state)
{
    (void)state;
    struct bus *bus = make_bus();
    struct sandbox_backend backend = {.init = init_runs_until_allowed_to_end};
    struct worker *worker = make_worker(bus, &backend);
    char ids[JOBS][JOB_ID_SIZE];
    for (unsigned i = 0; i < JOBS; i++)
        submit(bus, i, ids[i]);
    await_counts(bus, JOBS - SLOTS, SLOTS, 0);
    await_alive(SLOTS);
    allow_ends(1);
    await_counts(bus, JOBS - SLOTS - 1, SLOTS, 1);
    allow_ends(JOBS - 1);
    await_counts(bus, 0, 0, JOBS);
    for (unsigned i = 0; i < JOBS; i++)
        assert_state(bus, ids[i], JOB_DONE);
    bus_close(bus);
    worker_stop(worker, PATIENCE_MS);
    worker_free(worker);
    assert_int_equal(most_alive, SLOTS);
    assert_int_equal(alive, 0);
    bus_free(bus);
}

static void stopping_ends_what_is_left_when_the_drain_time_is_over(void **state)
{
    (void)state;
    struct bus *bus = make_bus();
    struct sandbox_backend backend = {.init = init_runs_until_allowed_to_end};
    struct worker *worker = make_worker(bus, &backend);
    char ids[SLOTS + 1][JOB_ID_SIZE];
    for (unsigned i = 0; i < ARRAY_LEN(ids); i++)
        submit(bus, i, ids[i]);
    await_counts(bus, 1, SLOTS, 0);
    bus_close(bus);
    worker_stop(worker, 0);
    worker_free(worker);
    assert_int_equal(alive, 0);
    for (unsigned i = 0; i < SLOTS; i++)
        assert_state(bus, ids[i], JOB_ERROR);
    assert_state(bus, ids[SLOTS], JOB_QUEUED); /* the bus drains what nobody claimed */
    assert_int_equal(bus_drain(bus), 1);
    bus_free(bus);
}

static void an_idle_worker_stops_at_once(void **state)
{
    (void)state;
    struct bus *bus = make_bus();
    struct sandbox_backend backend = {.init = init_runs_until_allowed_to_end};
    struct worker *worker = make_worker(bus, &backend);
    bus_close(bus);
    worker_stop(worker, INT32_MAX);
    worker_free(worker);
    worker_free(NULL);
    bus_free(bus);
}

int main(void)
{
    (void)signal(SIGPIPE, SIG_IGN); /* the fake init may write to a session that has gone */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_jobs_than_slots),
        cmocka_unit_test(stopping_ends_what_is_left_when_the_drain_time_is_over),
        cmocka_unit_test(an_idle_worker_stops_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
