/* The Docker backend against a scripted daemon that fails where it is told to. */
#include "docker_backend.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../docker/tests/fake_daemon.h"
#include "base/fd.h"
#include "frames/frames.h"
#include "tar.h"
#include "test.h"

#define UPGRADED       "HTTP/1.1 101 UPGRADED\r\n\r\n"
#define CONTAINERS_MAX 64
#define INIT_BYTES     "\177ELF and so on"

/* A daemon in small: containers by name, and the one volume's file. */
struct model {
    struct {
        char name[80];
        bool alive;
    } containers[CONTAINERS_MAX];
    unsigned made;
    bool has_file;
    char file[4096]; /* the tar that was put */
    size_t file_len;
    const char *image_config;
    const char *info;
    const char *state; /* of each container */
    bool stream_ends;  /* by itself */

    /* The request "METHOD path-part" fails this many times with status and message. */
    struct failure {
        const char *method;
        const char *part;
        int status;
        const char *message;
        unsigned times;
    } failures[2];
};

static unsigned alive(const struct model *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->made; i++)
        n += m->containers[i].alive;
    return n;
}

/* By the id, which is the place in hex, or the name, at the start of text; -1: no such
 * container. */
static int find(const struct model *m, const char *text)
{
    size_t len = strcspn(text, "/?");
    for (unsigned i = 0; i < m->made; i++) {
        char id[DOCKER_ID_SIZE];
        (void)snprintf(id, sizeof(id), "%064x", i);
        const char *name = m->containers[i].name;
        bool same = (len == strlen(name) && strncmp(text, name, len) == 0) ||
                    (len == strlen(id) && strncmp(text, id, len) == 0);
        if (m->containers[i].alive && same)
            return (int)i;
    }
    return -1;
}

static void on_create(struct model *m, const char *name, struct fake_answer *a)
{
    if (m->made == CONTAINERS_MAX) {
        fake_json(a, 500, "{\"message\":\"the test is too small\"}");
        return;
    }
    (void)snprintf(m->containers[m->made].name, sizeof(m->containers[0].name), "%s", name);
    m->containers[m->made].alive = true;
    char json[128];
    (void)snprintf(json, sizeof(json), "{\"Id\":\"%064x\"}", m->made++);
    fake_json(a, 201, json);
}

static void on_list(const struct model *m, struct fake_answer *a)
{
    json_t *list = json_array();
    for (unsigned i = 0; i < m->made; i++) {
        char id[DOCKER_ID_SIZE], name[96];
        (void)snprintf(id, sizeof(id), "%064x", i);
        (void)snprintf(name, sizeof(name), "/%s", m->containers[i].name);
        if (m->containers[i].alive)
            (void)json_array_append_new(list, json_pack("{s:s, s:[s]}", "Id", id, "Names", name));
    }
    cleanup_free char *text = json_dumps(list, 0);
    fake_json(a, 200, text);
    json_decref(list);
}

static void on_archive(struct model *m, const struct fake_request *q, struct fake_answer *a)
{
    if (strcmp(q->method, "PUT") == 0) {
        m->file_len = q->body.len < sizeof(m->file) ? q->body.len : sizeof(m->file);
        memcpy(m->file, q->body.ptr, m->file_len);
        m->has_file = true;
        fake_json(a, 200, "");
    } else if (m->has_file) {
        (void)buf_appendf(&a->bytes, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", m->file_len);
        (void)buf_append(&a->bytes, m->file, m->file_len);
    } else {
        fake_json(a, 404, "{\"message\":\"Could not find the file\"}");
    }
}

static void on_container(struct model *m, const struct fake_request *q, const char *rest,
                         struct fake_answer *a)
{
    int i = find(m, rest);
    if (i < 0) {
        fake_json(a, 404, "{\"message\":\"No such container\"}");
    } else if (strcmp(q->method, "DELETE") == 0) {
        m->containers[i].alive = false;
        fake_json(a, 204, "");
    } else if (strstr(rest, "/archive")) {
        on_archive(m, q, a);
    } else if (strstr(rest, "/attach")) {
        (void)buf_append_str(&a->bytes, UPGRADED);
        a->then = m->stream_ends ? FAKE_CLOSE : FAKE_ECHO;
    } else if (strstr(rest, "/json")) {
        fake_json(a, 200, m->state);
    } else {
        fake_json(a, 204, "");
    }
}

static struct failure *find_failure(struct model *m, const struct fake_request *q)
{
    for (size_t i = 0; i < ARRAY_LEN(m->failures); i++) {
        struct failure *f = &m->failures[i];
        if (f->times > 0 && strcmp(q->method, f->method) == 0 && strstr(q->path, f->part))
            return f;
    }
    return NULL;
}

static void on_request(void *user, const struct fake_request *q, struct fake_answer *a)
{
    struct model *m = user;
    const char *path = q->path + strlen("/v1.41");
    struct failure *f = find_failure(m, q);
    if (f) {
        char json[256];
        (void)snprintf(json, sizeof(json), "{\"message\":\"%s\"}", f->message);
        f->times--;
        fake_json(a, f->status, json);
    } else if (strncmp(path, "/images/", 8) == 0) {
        fake_json(a, 200, m->image_config);
    } else if (strcmp(path, "/volumes/create") == 0) {
        fake_json(a, 201, "{}");
    } else if (strcmp(path, "/info") == 0) {
        fake_json(a, 200, m->info);
    } else if (strcmp(path, "/version") == 0) {
        fake_json(a, 200, "{}");
    } else if (strncmp(path, "/containers/create?name=", 24) == 0) {
        on_create(m, path + 24, a);
    } else if (strncmp(path, "/containers/json", 16) == 0) {
        on_list(m, a);
    } else if (strncmp(path, "/containers/", 12) == 0) {
        on_container(m, q, path + 12, a);
    } else {
        fake_json(a, 404, "{\"message\":\"page not found\"}");
    }
}

/* --- the world of a test --------------------------------------------------------------------- */

static const struct limits limits = {
    .wall_ms = 1000,
    .idle_ms = 1000,
    .cpu_ms = 1000,
    .memory_mb = 64,
    .pids = 8,
    .output_kb = 64,
    .max_artifacts = 1,
    .max_artifact_bytes = 1,
};

static const struct sandbox_request request = {
    .job_id = "job", .language = "python", .version = "3.13", .image = "img:1", .limits = &limits};

struct world {
    struct model model;
    struct fake_daemon *daemon;
    char init_path[40];
    struct sandbox_docker_options options;
    struct sandbox_backend *backend;
    struct err err;
};

static void begin(struct world *w)
{
    *w = (struct world){
        .model =
            {
                .image_config = "{\"Id\":\"sha256:1\",\"Config\":{\"Env\":[\"A=1\"]}}",
                .info = "{\"MemoryLimit\":true,\"PidsLimit\":true,\"CpuCfsQuota\":true,"
                        "\"SecurityOptions\":[\"name=apparmor\",\"name=seccomp,profile=default\"],"
                        "\"Runtimes\":{\"runc\":{},\"crun\":{}}}",
                .state = "{\"State\":{\"Running\":false,\"OOMKilled\":false}}",
            },
        .init_path = "/tmp/fake-init-XXXXXX",
    };
    int fd = mkstemp(w->init_path);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, INIT_BYTES, sizeof(INIT_BYTES) - 1), 0);
    (void)close(fd);
    w->daemon = fake_start("1.41", on_request, &w->model);
    w->options = (struct sandbox_docker_options){
        .address = fake_address(w->daemon),
        .runtime = "",
        .init_path = w->init_path,
        .seccomp_json = "{}",
        .deployment_id = "dep",
        .worker_id = "wrk",
        .uid_base = 5000,
        .uid_count = 1,
        .cpus_milli = 1000,
    };
    assert_int_equal(sandbox_docker_new(&w->options, &w->backend, &w->err), 0);
}

static void end(struct world *w)
{
    sandbox_backend_free(w->backend);
    fake_stop(w->daemon);
    assert_int_equal(unlink(w->init_path), 0);
}

static void fail_next(struct world *w, const char *method, const char *part, int status,
                      const char *message, unsigned times)
{
    w->model.failures[0] = (struct failure){method, part, status, message, times};
    w->model.failures[1].times = 0;
}

static void fail_also(struct world *w, const char *method, const char *part)
{
    w->model.failures[1] = (struct failure){method, part, 500, "fails as well", 1};
}

static struct sandbox *open_one(struct world *w)
{
    struct sandbox *s = NULL;
    if (sandbox_open(w->backend, &request, &s, &w->err) < 0)
        fail_msg("%s", w->err.msg);
    return s;
}

static void expect_words(const struct world *w, const char *words)
{
    if (!strstr(w->err.msg, words))
        fail_msg("\"%s\" is not in \"%s\"", words, w->err.msg);
}

static void test_life(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_string_equal(sandbox_backend_name(w.backend), "docker");
    assert_string_equal(sandbox_backend_runtime(w.backend), "");
    for (int i = 0; i < 3; i++) {
        struct sandbox *s = open_one(&w);
        assert_int_equal(sandbox_program_uid(s), FRAME_KEEP_ID);
        assert_string_equal(sandbox_image_env(s)[0], "A=1");
        assert_null(sandbox_image_env(s)[1]);
        assert_int_equal(alive(&w.model), 1);
        assert_int_equal(sandbox_write(s, "ping", 4), 4);
        char bytes[8];
        ssize_t n;
        while ((n = sandbox_read(s, bytes, sizeof(bytes))) == -EAGAIN)
            ; /* the echo is on its way; ctest bounds the wait */
        assert_true(n > 0);

        struct sandbox *second = NULL; /* there is one uid */
        assert_int_equal(sandbox_open(w.backend, &request, &second, &w.err), -EAGAIN);
        assert_null(second);
        assert_int_equal(sandbox_kill(s, &w.err), 0);
        struct verdict v = {0};
        assert_int_equal(sandbox_close(s, &v, &w.err), 0);
        assert_false(v.ended_by_itself);
        assert_int_equal(alive(&w.model), 0);
    }
    assert_int_equal(fake_count(w.daemon, "PUT "), 1);               /* init, once */
    assert_int_equal(fake_count(w.daemon, "GET /v1.41/images/"), 1); /* remembered */
    cleanup_free char *log = fake_log(w.daemon);
    const char *create = strstr(log, "create?name=code-runner-"), *attach = strstr(log, "/attach?");
    const char *start = strstr(log, "/start");
    assert_true(create && attach && start && create < attach && attach < start);
    end(&w);
}

static void test_failures_leave_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *method, *part;
        int status, want;
        const char *message;
    } cases[] = {
        {"GET", "/images/", 404, -ENOENT, "No such image: img:1"},
        {"GET", "/images/", 500, -EIO, "disk on fire"},
        {"POST", "/volumes/create", 500, -EIO, "no space left"},
        {"PUT", "/archive", 500, -EIO, "no space left"},
        {"GET", "/archive", 500, -EIO, "cannot mount"},
        {"POST", "/containers/create", 400, -EIO, "invalid tmpfs option"},
        {"POST", "/containers/create", 409, -EIO, "name in use"},
        {"POST", "/containers/create", 500, -EIO, "no space left"},
        {"POST", "/attach", 404, -EIO, "No such container"},
        {"POST", "/attach", 500, -EIO, "it broke"},
        {"POST", "/start", 404, -EIO, "not there"},
        {"POST", "/start", 500, -EIO, "OCI runtime create failed"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        begin(&w);
        fail_next(&w, cases[i].method, cases[i].part, cases[i].status, cases[i].message, 2);
        struct sandbox *s = NULL;
        int r = sandbox_open(w.backend, &request, &s, &w.err);
        if (s || r != cases[i].want)
            fail_msg("%s %s: %d %s", cases[i].method, cases[i].part, r, w.err.msg);
        expect_words(&w, cases[i].message);
        assert_int_equal(alive(&w.model), 0);
        assert_true(fake_count(w.daemon, "DELETE ") >=
                    (fake_count(w.daemon, "POST /v1.41/containers/create") ? 1U : 0U));
        w.model.failures[0].times = 0;
        assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0); /* the uid is free */
        end(&w);
    }
}

static void test_create_of_the_sandbox_fails(void **state)
{
    (void)state;
    static const struct {
        int status, want;
    } cases[] = {{400, -EIO}, {409, -EIO}, {500, -EIO}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        begin(&w);
        assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0); /* init is in place */
        fail_next(&w, "POST", "/containers/create", cases[i].status, "refused", 1);
        struct sandbox *s = NULL;
        assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), cases[i].want);
        expect_words(&w, "refused");
        assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
        end(&w);
    }
}

/* The tag moved and the old image was removed: asked anew, once. */
static void test_image_changed(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
    w.model.image_config = "{\"Id\":\"sha256:2\",\"Config\":{\"Env\":[\"A=2\"]}}";
    fail_next(&w, "POST", "/containers/create", 404, "No such image: sha256:1", 1);
    struct sandbox *s = open_one(&w);
    assert_string_equal(sandbox_image_env(s)[0], "A=2");
    assert_int_equal(sandbox_close(s, NULL, &w.err), 0);
    fail_next(&w, "POST", "/containers/create", 404, "No such image: sha256:2", 2);
    assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), -ENOENT);
    assert_int_equal(alive(&w.model), 0);
    end(&w);
}

static void test_init_volume(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
    uint32_t mode = 0;
    struct span file = {NULL, 0};
    assert_int_equal(tar_first_file((struct span){w.model.file, w.model.file_len}, &mode, &file),
                     0);
    assert_int_equal(mode, 0555);
    assert_true(span_eq(file, INIT_BYTES));
    assert_int_equal(fake_count(w.daemon, "PUT "), 1);

    /* Another server finds it whole and leaves it alone. */
    struct sandbox_backend *first = w.backend;
    assert_int_equal(sandbox_docker_new(&w.options, &w.backend, &w.err), 0);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
    assert_int_equal(fake_count(w.daemon, "PUT "), 1);
    sandbox_backend_free(first);

    /* Cut short by one byte: filled again. */
    cleanup_buf struct buf tar;
    buf_init(&tar, sizeof(w.model.file));
    assert_int_equal(
        tar_add_file(&tar, "init", 0555, (struct span){INIT_BYTES, sizeof(INIT_BYTES) - 2}), 0);
    memcpy(w.model.file, tar.data, tar.len);
    w.model.file_len = tar.len;
    first = w.backend;
    assert_int_equal(sandbox_docker_new(&w.options, &w.backend, &w.err), 0);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
    assert_int_equal(fake_count(w.daemon, "PUT "), 2);
    sandbox_backend_free(first);

    /* Somebody pruned it under a running server: the start names init, and is tried again. */
    w.model.has_file = false;
    fail_next(&w, "POST", "/start", 400, "exec: \\\"/.code-runner/init\\\": no such file", 1);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);
    assert_int_equal(fake_count(w.daemon, "PUT "), 3);
    fail_next(&w, "POST", "/start", 400, "exec: \\\"/.code-runner/init\\\": no such file", 2);
    struct sandbox *s = NULL;
    assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), -EIO);
    expect_words(&w, "no such file");
    assert_int_equal(alive(&w.model), 0);
    end(&w);
}

static void test_failed_removal_is_swept_later(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    struct sandbox *s = open_one(&w);
    fail_next(&w, "DELETE", "/containers/", 500, "device is busy", 2);
    assert_int_equal(sandbox_close(s, NULL, &w.err), -EIO);
    expect_words(&w, "device is busy");
    assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), -EAGAIN); /* its uid may live */

    unsigned removed = 77;
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), -EIO);
    assert_int_equal(removed, 0);
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(alive(&w.model), 0);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);

    /* The same for a start that failed and could not be cleaned up. */
    fail_next(&w, "POST", "/start", 500, "did not start", 1);
    fail_also(&w, "DELETE", "/containers/");
    assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), -EIO);
    expect_words(&w, "did not start"); /* the first failure is the one that counts */
    assert_int_equal(alive(&w.model), 1);
    assert_int_equal(sandbox_open(w.backend, &request, &s, &w.err), -EAGAIN);
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);

    /* Never swept: the backend forgets it with the rest. */
    s = open_one(&w);
    fail_next(&w, "DELETE", "/containers/", 500, "device is busy", 1);
    assert_int_equal(sandbox_close(s, NULL, &w.err), -EIO);
    end(&w);
}

static void test_sweep_spares_the_living(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    static const char *const strangers[] = {"code-runner-old", "other-name"};
    for (size_t i = 0; i < ARRAY_LEN(strangers); i++) {
        (void)snprintf(w.model.containers[i].name, sizeof(w.model.containers[i].name), "%s",
                       strangers[i]);
        w.model.containers[i].alive = true;
    }
    w.model.made = ARRAY_LEN(strangers);
    struct sandbox *s = open_one(&w);
    unsigned removed = 77;
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), 0);
    assert_int_equal(removed, 2);
    assert_int_equal(alive(&w.model), 1);
    assert_int_equal(fake_count(w.daemon, "GET /v1.41/containers/json?all=1&filters=%7B%22label%22%"
                                          "3A%5B%22code-runner.deployment%3Ddep%22%5D%7D\n"),
                     1);
    assert_int_equal(sandbox_close(s, NULL, &w.err), 0);
    fail_next(&w, "GET", "/containers/json", 500, "no list", 1);
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), -EIO);
    expect_words(&w, "no list");
    assert_int_equal(removed, 0);
    end(&w);
}

static void wait_for_end(struct sandbox *s)
{
    char byte;
    ssize_t n;
    while ((n = sandbox_read(s, &byte, 1)) == -EAGAIN)
        ; /* the end is on its way; ctest bounds the wait */
    assert_int_equal(n, 0);
}

static void test_verdicts(void **state)
{
    (void)state;
    static const struct {
        const char *json;
        bool kill, stream_ends, oom, by_itself;
    } cases[] = {
        {"{\"State\":{\"Running\":false,\"OOMKilled\":true}}", false, true, true, true},
        {"{\"State\":{\"Running\":false,\"OOMKilled\":false}}", false, true, false, true},
        {"{\"State\":{\"Running\":false,\"OOMKilled\":true}}", false, false, true, false},
        {"{\"State\":{\"Running\":true,\"OOMKilled\":true}}", false, false, true, false},
        {"{\"State\":{\"Running\":false,\"OOMKilled\":true}}", true, true, true, false},
        {"{\"State\":{\"Running\":false,\"OOMKilled\":false}}", true, false, false, false},
    };
    struct world w;
    begin(&w);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        w.model.state = cases[i].json;
        w.model.stream_ends = cases[i].stream_ends;
        struct sandbox *s = open_one(&w);
        if (cases[i].stream_ends)
            wait_for_end(s);
        if (cases[i].kill)
            assert_int_equal(sandbox_kill(s, &w.err), 0);
        struct verdict v = {.memory_peak_bytes = 7, .cpu_us = 7, .pids_peak = 7};
        assert_int_equal(sandbox_close(s, &v, &w.err), 0);
        if (v.out_of_memory != cases[i].oom || v.ended_by_itself != cases[i].by_itself)
            fail_msg("%s: %d %d", cases[i].json, v.out_of_memory, v.ended_by_itself);
        assert_true(v.memory_peak_bytes == -1 && v.cpu_us == -1 && v.pids_peak == -1);
    }
    /* Without a look at it nothing is known, and it is removed all the same. */
    struct sandbox *s = open_one(&w);
    fail_next(&w, "GET", "/json", 500, "no", 1);
    struct verdict v = {.out_of_memory = true, .ended_by_itself = true};
    assert_int_equal(sandbox_close(s, &v, &w.err), 0);
    assert_false(v.out_of_memory || v.ended_by_itself);
    assert_int_equal(alive(&w.model), 0);
    end(&w);
}

static void test_checks(void **state)
{
    (void)state;
    static const struct {
        const char *info, *runtime;
        int want;
        const char *words;
    } cases[] = {
        {NULL, "", 0, ""},
        {NULL, "crun", 0, ""},
        {NULL, "runsc", -ENOTSUP, "no runtime \"runsc\""},
        {"{\"MemoryLimit\":false,\"SecurityOptions\":[\"name=seccomp\"]}", "", -ENOTSUP, "memory"},
        {"{\"PidsLimit\":false,\"SecurityOptions\":[\"name=seccomp\"]}", "", -ENOTSUP, "processes"},
        {"{\"CpuCfsQuota\":false,\"SecurityOptions\":[\"name=seccomp\"]}", "", -ENOTSUP, "CPU"},
        {"{\"SecurityOptions\":[\"name=apparmor\"]}", "", -ENOTSUP, "seccomp"},
        {"{}", "", -ENOTSUP, "seccomp"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct world w;
        begin(&w);
        sandbox_backend_free(w.backend);
        w.options.runtime = cases[i].runtime;
        assert_int_equal(sandbox_docker_new(&w.options, &w.backend, &w.err), 0);
        if (cases[i].info)
            w.model.info = cases[i].info;
        int r = sandbox_backend_check(w.backend, &w.err);
        if (r != cases[i].want)
            fail_msg("%zu: %d %s", i, r, w.err.msg);
        expect_words(&w, cases[i].words);
        assert_int_equal(sandbox_backend_check(w.backend, &w.err), cases[i].want);
        if (r == 0)
            assert_int_equal(fake_count(w.daemon, "GET /v1.41/info"), 1); /* remembered */
        end(&w);
    }
}

static void test_no_daemon(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    assert_int_equal(sandbox_backend_check(w.backend, &w.err), 0);
    struct sandbox *s = open_one(&w);
    fake_down(w.daemon);
    assert_int_equal(sandbox_backend_check(w.backend, &w.err), -EHOSTDOWN);
    expect_words(&w, "no Docker daemon at unix:///");
    struct sandbox *second = NULL;
    assert_int_equal(sandbox_open(w.backend, &request, &second, &w.err), -EAGAIN);
    unsigned removed = 77;
    assert_int_equal(sandbox_close(s, NULL, &w.err), -EHOSTDOWN);
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), -EHOSTDOWN);
    assert_int_equal(removed, 0);
    fake_up(w.daemon, "1.41");
    assert_int_equal(sandbox_backend_sweep(w.backend, &removed, &w.err), 0);
    assert_int_equal(removed, 1);
    assert_int_equal(sandbox_backend_check(w.backend, &w.err), 0);
    assert_int_equal(fake_count(w.daemon, "GET /v1.41/info"), 2); /* it may be another one */
    assert_int_equal(alive(&w.model), 0);
    end(&w);
}

static void test_limits_and_options(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    struct limits small = limits;
    small.memory_mb = 1;
    struct sandbox_request r = request;
    r.limits = &small;
    struct sandbox *s = NULL;
    assert_int_equal(sandbox_open(w.backend, &r, &s, &w.err), -ERANGE);
    expect_words(&w, "memoryMb");
    assert_int_equal(sandbox_close(open_one(&w), NULL, &w.err), 0);

    struct sandbox_docker_options bad[7];
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        bad[i] = w.options;
    bad[0].uid_base = 0;
    bad[1].uid_count = 0;
    bad[2].address = "docker.sock";
    bad[3].seccomp_json = "";
    bad[4].deployment_id = "";
    bad[5].init_path = "/nonexistent/init";
    bad[6].init_path = "/proc/version";
    static const int want[] = {-EINVAL, -EINVAL, -EINVAL, -EINVAL, -EINVAL, -ENOENT, -ENOEXEC};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct sandbox_backend *b = NULL;
        int code = sandbox_docker_new(&bad[i], &b, &w.err);
        if (code != want[i] || b || !w.err.msg[0])
            fail_msg("%zu: %d %s", i, code, w.err.msg);
    }
    end(&w);
}

static void *open_and_close(void *arg)
{
    struct sandbox *s = NULL;
    if (sandbox_open(arg, &request, &s, NULL) < 0 || sandbox_close(s, NULL, NULL) < 0)
        return arg;
    return NULL;
}

static void test_threads_fill_once(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    sandbox_backend_free(w.backend);
    w.options.uid_count = 8;
    assert_int_equal(sandbox_docker_new(&w.options, &w.backend, &w.err), 0);
    pthread_t threads[8];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, w.backend), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_int_equal(fake_count(w.daemon, "PUT "), 1);
    assert_int_equal(alive(&w.model), 0);
    end(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life),
        cmocka_unit_test(test_failures_leave_nothing),
        cmocka_unit_test(test_create_of_the_sandbox_fails),
        cmocka_unit_test(test_image_changed),
        cmocka_unit_test(test_init_volume),
        cmocka_unit_test(test_failed_removal_is_swept_later),
        cmocka_unit_test(test_sweep_spares_the_living),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_checks),
        cmocka_unit_test(test_no_daemon),
        cmocka_unit_test(test_limits_and_options),
        cmocka_unit_test(test_threads_fill_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
