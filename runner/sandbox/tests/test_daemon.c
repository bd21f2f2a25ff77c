/* Sandboxes on the real daemon. Needs the Python image and code-runner-init of this build. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/id.h"
#include "docker/docker.h"
#include "frames/frames.h"
#include "require.h"
#include "sandbox/sandbox.h"
#include "test.h"

#define IMAGE       "code-runner/python:3.13"
#define DEADLINE_MS 60000
#define UID_BASE    1879300000U /* not the server's default, which may run beside us */

static const char *address, *init_path;
static char *seccomp;
static char deployment[33];

static const struct limits limits = {
    .wall_ms = 60000,
    .idle_ms = 60000,
    .cpu_ms = 60000,
    .memory_mb = 64,
    .pids = 16,
    .output_kb = 64,
    .max_artifacts = 1,
    .max_artifact_bytes = 1024,
};

static const struct sandbox_request request = {
    .job_id = "00000000-0000-4000-8000-000000000000",
    .language = "python",
    .version = "3.13",
    .image = IMAGE,
    .limits = &limits,
};

static struct sandbox_backend *backend_new(const char *worker)
{
    const struct sandbox_docker_options o = {
        .address = address,
        .runtime = "",
        .init_path = init_path,
        .seccomp_json = seccomp,
        .deployment_id = deployment,
        .worker_id = worker,
        .uid_base = UID_BASE,
        .uid_count = 32,
        .cpus_milli = 1000,
    };
    struct sandbox_backend *b = NULL;
    struct err err = {0};
    if (sandbox_docker_new(&o, &b, &err) < 0)
        fail_msg("%s", err.msg);
    return b;
}

static unsigned containers(void)
{
    char label[80];
    (void)snprintf(label, sizeof(label), "code-runner.deployment=%s", deployment);
    const char *const labels[] = {label, NULL};
    cleanup_docker struct docker *d = NULL;
    json_t *list = NULL;
    struct err err = {0};
    if (docker_new(address, &d, &err) < 0 || docker_container_list(d, labels, &list, &err) < 0)
        fail_msg("%s", err.msg);
    size_t n = json_array_size(list);
    json_decref(list);
    return (unsigned)n;
}

/* Appends to in until something is there to decode; the end of the stream is an error here. */
static void read_some(struct sandbox *s, struct buf *in, int64_t deadline_ms)
{
    char bytes[4096];
    ssize_t n = sandbox_read(s, bytes, sizeof(bytes));
    if (n > 0) {
        assert_int_equal(buf_append(in, bytes, (size_t)n), 0);
        return;
    }
    assert_int_equal(n, -EAGAIN);
    struct pollfd p = {.fd = sandbox_poll_fd(s), .events = POLLIN};
    assert_true(poll(&p, 1, clock_poll_timeout(deadline_ms)) > 0);
}

static void expect_ready(struct sandbox *s)
{
    int64_t deadline_ms = clock_now_ms() + DEADLINE_MS;
    cleanup_buf struct buf in;
    buf_init(&in, 1U << 16);
    for (;;) {
        struct frame frame;
        size_t used;
        struct err err = {0};
        int r = frame_decode(buf_span(&in), FRAME_FROM_INIT, &frame, &used, &err);
        if (r < 0)
            fail_msg("%s", err.msg);
        if (r == 0) {
            uint32_t version = 0;
            assert_int_equal(frame.type, FRAME_READY);
            assert_int_equal(frame_u32_decode(frame.payload, &version, &err), 0);
            assert_int_equal(version, FRAME_VERSION);
            return;
        }
        read_some(s, &in, deadline_ms);
    }
}

/* Waits for the end of the stream, whatever comes before it. */
static void expect_end(struct sandbox *s)
{
    int64_t deadline_ms = clock_now_ms() + DEADLINE_MS;
    for (;;) {
        char bytes[4096];
        ssize_t n = sandbox_read(s, bytes, sizeof(bytes));
        if (n == 0)
            return;
        if (n > 0)
            continue;
        assert_int_equal(n, -EAGAIN);
        struct pollfd p = {.fd = sandbox_poll_fd(s), .events = POLLIN};
        assert_true(poll(&p, 1, clock_poll_timeout(deadline_ms)) > 0);
    }
}

static struct sandbox *open_one(struct sandbox_backend *b)
{
    struct sandbox *s = NULL;
    struct err err = {0};
    if (sandbox_open(b, &request, &s, &err) < 0)
        fail_msg("%s", err.msg);
    return s;
}

static void close_one(struct sandbox *s, struct verdict *v)
{
    struct err err = {0};
    if (sandbox_close(s, v, &err) < 0)
        fail_msg("%s", err.msg);
}

static void test_open_ready_kill_close(void **state)
{
    (void)state;
    cleanup_sandbox_backend struct sandbox_backend *b = backend_new("w1");
    struct err err = {0};
    if (sandbox_backend_check(b, &err) < 0 || sandbox_backend_check_image(b, IMAGE, &err) < 0)
        fail_msg("%s", err.msg);
    for (int i = 0; i < 20; i++) {
        struct sandbox *s = open_one(b);
        expect_ready(s);
        assert_int_equal(sandbox_program_uid(s), FRAME_KEEP_ID);
        assert_non_null(sandbox_image_env(s)[0]);
        assert_int_equal(containers(), 1);
        struct verdict v = {0};
        if (i % 2 == 0) {
            assert_int_equal(sandbox_kill(s, &err), 0);
            expect_end(s);
        }
        close_one(s, &v);
        assert_false(v.out_of_memory);
        assert_false(v.ended_by_itself);
        assert_int_equal(v.cpu_us, -1);
        assert_int_equal(containers(), 0);
    }
}

/* A frame that does not exist: init says so and leaves. */
static void test_init_ends_by_itself(void **state)
{
    (void)state;
    cleanup_sandbox_backend struct sandbox_backend *b = backend_new("w1");
    struct sandbox *s = open_one(b);
    expect_ready(s);
    static const char broken[] = "\377\0\0\0\0\0";
    assert_int_equal(sandbox_write(s, broken, sizeof(broken) - 1), sizeof(broken) - 1);
    expect_end(s);
    struct verdict v = {0};
    close_one(s, &v);
    assert_true(v.ended_by_itself);
    assert_int_equal(containers(), 0);
}

static void test_sweep_of_an_earlier_run(void **state)
{
    (void)state;
    cleanup_sandbox_backend struct sandbox_backend *old = backend_new("w1");
    cleanup_sandbox_backend struct sandbox_backend *b = backend_new("w2");
    struct sandbox *lost = open_one(old); /* as of a server that died */
    expect_ready(lost);
    struct sandbox *mine = open_one(b);
    unsigned removed = 77;
    struct err err = {0};
    if (sandbox_backend_sweep(b, &removed, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(removed, 1);
    expect_ready(mine);
    expect_end(lost);
    close_one(lost, NULL);
    assert_int_equal(containers(), 1);
    close_one(mine, NULL);
    assert_int_equal(sandbox_backend_sweep(b, &removed, &err), 0);
    assert_int_equal(removed, 0);
}

static void test_missing_image(void **state)
{
    (void)state;
    cleanup_sandbox_backend struct sandbox_backend *b = backend_new("w1");
    struct sandbox_request r = request;
    r.image = "code-runner/no-such-image:1";
    struct sandbox *s = NULL;
    struct err err = {0};
    assert_int_equal(sandbox_open(b, &r, &s, &err), -ENOENT);
    assert_null(s);
    assert_non_null(strstr(err.msg, r.image));
    assert_int_equal(sandbox_backend_check_image(b, r.image, &err), -ENOENT);
    assert_int_equal(containers(), 0);
}

static void *open_and_close(void *arg)
{
    struct sandbox *s = NULL;
    for (int i = 0; i < 3; i++) {
        if (sandbox_open(arg, &request, &s, NULL) < 0 || sandbox_close(s, NULL, NULL) < 0)
            return arg;
    }
    return NULL;
}

static void test_many_at_once(void **state)
{
    (void)state;
    cleanup_sandbox_backend struct sandbox_backend *b = backend_new("w1");
    pthread_t threads[6];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, b), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(containers(), 0);
}

static void need_everything(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): no threads yet */
    const char *host = getenv("DOCKER_HOST"), *init = getenv("CODE_RUNNER_INIT");
    /* NOLINTEND(concurrency-mt-unsafe) */
    address = host && *host ? host : "unix:///var/run/docker.sock";
    init_path = init && *init ? init : PROJECT_BINARY_DIR "/code-runner-init";

    struct err err = {0};
    struct docker *d = NULL;
    int r = docker_new(address, &d, &err);
    if (r == 0)
        r = docker_image_exists(d, IMAGE, &err);
    docker_free(d);
    if (r < 0)
        skip_without("docker", err.msg);
    if (access(init_path, R_OK) < 0)
        skip_without("init", init_path);
}

int main(void)
{
    need_everything();
    size_t len;
    if (fd_read_file(PROJECT_SOURCE_DIR "/seccomp/profile.json", 1U << 20, &seccomp, &len) < 0 ||
        id_hex(16, deployment) < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_ready_kill_close),
        cmocka_unit_test(test_init_ends_by_itself),
        cmocka_unit_test(test_sweep_of_an_earlier_run),
        cmocka_unit_test(test_missing_image),
        cmocka_unit_test(test_many_at_once),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    free(seccomp);
    return failed;
}
