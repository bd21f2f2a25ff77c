/* The client against the real daemon. Needs the Python image, for its /bin/cat and /bin/sh. */
#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/id.h"
#include "docker/docker.h"
#include "require.h"
#include "test.h"

#define IMAGE       "code-runner/python:3.13"
#define DEADLINE_MS 60000
#define LABEL       "code-runner.test"

static struct docker *docker;
static char mark[33]; /* this run's value of the label */

static json_t *config(const char *command)
{
    return json_pack("{s:s, s:[s,s,s], s:b, s:b, s:b, s:b, s:b, s:b, s:{s:s}, s:{s:s, s:{s:s}}}",
                     "Image", IMAGE, "Cmd", "sh", "-c", command, "OpenStdin", 1, "StdinOnce", 1,
                     "AttachStdin", 1, "AttachStdout", 1, "AttachStderr", 1, "NetworkDisabled", 1,
                     "Labels", LABEL, mark, "HostConfig", "NetworkMode", "none", "LogConfig",
                     "Type", "none");
}

static void create(const char *command, char id[static DOCKER_ID_SIZE])
{
    struct err err = {0};
    json_t *c = config(command);
    assert_non_null(c);
    if (docker_container_create(docker, NULL, c, id, &err) < 0)
        fail_msg("%s", err.msg);
    json_decref(c);
}

static unsigned containers(void)
{
    char label[64];
    (void)snprintf(label, sizeof(label), LABEL "=%s", mark);
    const char *const labels[] = {label, NULL};
    json_t *list = NULL;
    struct err err = {0};
    if (docker_container_list(docker, labels, &list, &err) < 0)
        fail_msg("%s", err.msg);
    size_t n = json_array_size(list);
    json_decref(list);
    return (unsigned)n;
}

static void read_to_end(struct docker_stream *s, struct buf *out)
{
    int64_t deadline_ms = clock_now_ms() + DEADLINE_MS;
    for (;;) {
        char bytes[4096];
        ssize_t n = docker_stream_read(s, bytes, sizeof(bytes));
        if (n == 0)
            return;
        if (n > 0) {
            assert_int_equal(buf_append(out, bytes, (size_t)n), 0);
            continue;
        }
        assert_int_equal(n, -EAGAIN);
        struct pollfd p = {.fd = docker_stream_fd(s), .events = POLLIN};
        assert_true(poll(&p, 1, clock_poll_timeout(deadline_ms)) > 0);
    }
}

static void test_attach(void **state)
{
    (void)state;
    char id[DOCKER_ID_SIZE];
    create("cat; echo problem >&2; printf done", id);
    cleanup_docker_stream struct docker_stream *s = NULL;
    struct err err = {0};
    if (docker_container_attach(docker, id, &s, &err) < 0 ||
        docker_container_start(docker, id, &err) < 0)
        fail_msg("%s", err.msg);
    assert_int_equal(docker_stream_write(s, "a\0b\n", 4), 4);
    assert_int_equal(docker_stream_shutdown(s), 0);
    cleanup_buf struct buf out;
    buf_init(&out, 1024);
    read_to_end(s, &out);
    assert_int_equal(out.len, 8);
    assert_memory_equal(out.data, "a\0b\ndone", 8);
    assert_true(span_eq(docker_stream_stderr(s), "problem\n"));

    assert_int_equal(docker_container_start(docker, id, &err), 0); /* a second start is harmless */
    json_t *state_json = NULL;
    assert_int_equal(docker_container_inspect(docker, id, &state_json, &err), 0);
    assert_string_equal(json_string_value(json_object_get(state_json, "Id")), id);
    json_decref(state_json);
    assert_int_equal(containers(), 1);
    assert_int_equal(docker_container_remove(docker, id, &err), 0);
    assert_int_equal(containers(), 0);
    assert_int_equal(docker_container_remove(docker, id, &err), 0);
}

static void test_kill(void **state)
{
    (void)state;
    char id[DOCKER_ID_SIZE];
    create("exec cat", id);
    struct err err = {0};
    cleanup_docker_stream struct docker_stream *s = NULL;
    assert_int_equal(docker_container_kill(docker, id, &err), 0); /* not started yet */
    assert_int_equal(docker_container_attach(docker, id, &s, &err), 0);
    assert_int_equal(docker_container_start(docker, id, &err), 0);
    assert_int_equal(docker_container_kill(docker, id, &err), 0);
    cleanup_buf struct buf out;
    buf_init(&out, 1024);
    read_to_end(s, &out);
    assert_int_equal(out.len, 0);
    assert_int_equal(docker_container_remove(docker, id, &err), 0);
    assert_int_equal(docker_container_kill(docker, id, &err), -ENOENT);
}

static void test_archive(void **state)
{
    (void)state;
    char id[DOCKER_ID_SIZE];
    create("true", id);
    struct err err = {0};
    cleanup_buf struct buf tar;
    buf_init(&tar, 1U << 20);
    assert_int_equal(docker_container_get_archive(docker, id, "/etc/passwd", &tar, &err), 0);
    assert_true(tar.len > 512 && strcmp(tar.data, "passwd") == 0);
    if (docker_container_put_archive(docker, id, "/tmp", tar.data, tar.len, &err) < 0)
        fail_msg("%s", err.msg);
    cleanup_buf struct buf again;
    buf_init(&again, 1U << 20);
    assert_int_equal(docker_container_get_archive(docker, id, "/tmp/passwd", &again, &err), 0);
    assert_int_equal(docker_container_get_archive(docker, id, "/tmp/none", &again, &err), -ENOENT);
    assert_int_equal(docker_container_put_archive(docker, id, "/tmp", "no tar", 6, &err) < 0, 1);
    assert_int_equal(docker_container_remove(docker, id, &err), 0);
}

static void test_refusals(void **state)
{
    (void)state;
    char id[DOCKER_ID_SIZE] = "untouched";
    struct err err = {0};
    json_t *c = json_pack("{s:s}", "Image", "code-runner/no-such-image:1");
    assert_int_equal(docker_container_create(docker, NULL, c, id, &err), -ENOENT);
    json_decref(c);
    c = json_pack("{s:s, s:s}", "Image", IMAGE, "User", "a:b:c");
    assert_int_equal(docker_container_create(docker, "bad name!", c, id, &err), -EINVAL);
    json_decref(c);
    assert_string_equal(id, "untouched");
    cleanup_docker_stream struct docker_stream *s = NULL;
    assert_int_equal(docker_container_attach(docker, "none", &s, &err), -ENOENT);
    if (!strstr(err.msg, "No such container"))
        fail_msg("%s", err.msg);
    assert_int_equal(docker_image_exists(docker, "code-runner/no-such-image:1", &err), -ENOENT);
    assert_int_equal(docker_image_exists(docker, IMAGE, &err), 0);
}

static void test_volumes(void **state)
{
    (void)state;
    char name[64], label[64];
    (void)snprintf(name, sizeof(name), "code-runner-test-%s", mark);
    (void)snprintf(label, sizeof(label), LABEL "=%s", mark);
    const char *const labels[] = {label, NULL};
    struct err err = {0};
    json_t *c = json_pack("{s:s, s:{s:s}}", "Name", name, "Labels", LABEL, mark);
    assert_int_equal(docker_volume_exists(docker, name, &err), -ENOENT);
    assert_int_equal(docker_volume_create(docker, c, &err), 0);
    assert_int_equal(docker_volume_create(docker, c, &err), 0); /* the same again is fine */
    json_decref(c);
    assert_int_equal(docker_volume_exists(docker, name, &err), 0);
    json_t *list = NULL;
    assert_int_equal(docker_volume_list(docker, labels, &list, &err), 0);
    assert_int_equal(json_array_size(list), 1);
    json_decref(list);
    assert_int_equal(docker_volume_remove(docker, name, &err), 0);
    assert_int_equal(docker_volume_remove(docker, name, &err), 0);
    assert_int_equal(docker_volume_list(docker, labels, &list, &err), 0);
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
}

static void test_info(void **state)
{
    (void)state;
    json_t *info = NULL;
    struct err err = {0};
    assert_int_equal(docker_info(docker, &info, &err), 0);
    assert_non_null(json_object_get(json_object_get(info, "info"), "Runtimes"));
    assert_non_null(json_object_get(json_object_get(info, "version"), "ApiVersion"));
    json_decref(info);
}

int main(void)
{
    const char *address = getenv("DOCKER_HOST"); /* NOLINT(concurrency-mt-unsafe): no threads yet */
    struct err err = {0};
    assert_int_equal(id_hex(16, mark), 0);
    if (docker_new(address && *address ? address : "unix:///var/run/docker.sock", &docker, &err) <
            0 ||
        docker_ping(docker, &err) < 0 || docker_image_exists(docker, IMAGE, &err) < 0) {
        docker_free(docker);
        skip_without("docker", err.msg);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attach),  cmocka_unit_test(test_kill),
        cmocka_unit_test(test_archive), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_volumes), cmocka_unit_test(test_info),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    docker_free(docker);
    return failed;
}
