#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "test.h"

static int saved_stderr = -1;

/* stderr becomes the write end of a pipe; returns the read end. */
static int capture(void)
{
    int fds[2];
    assert_int_equal(fd_pipe(fds), 0);
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
    assert_true(saved_stderr >= 0);
    assert_true(dup2(fds[1], STDERR_FILENO) >= 0);
    assert_int_equal(close(fds[1]), 0);
    return fds[0];
}

static void release(void)
{
    assert_true(dup2(saved_stderr, STDERR_FILENO) >= 0);
    assert_int_equal(close(saved_stderr), 0);
}

static size_t take(int fd, char *line, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (poll(&p, 1, 0) != 1)
        return 0;
    ssize_t n = read(fd, line, size - 1);
    assert_true(n >= 0);
    line[n] = '\0';
    return (size_t)n;
}

static void one_object_per_line(void **state)
{
    (void)state;
    cleanup_close int fd = capture();
    errno = EPIPE;
    log_info("test.happened", LOG_STR("text", "a\"b\n"), LOG_INT("number", -5),
             LOG_STR("none", NULL));
    int kept = errno;
    release();
    char line[PIPE_BUF + 1];
    assert_true(take(fd, line, sizeof(line)) > 0);
    assert_non_null(strstr(line,
                           "\"level\":\"info\",\"event\":\"test.happened\",\"text\":\"a\\\"b\\n\","
                           "\"number\":-5,\"none\":\"\"}\n"));
    assert_int_equal(kept, EPIPE);
}

static void levels(void **state)
{
    (void)state;
    enum log_level level = LOG_LEVEL_OFF;
    assert_int_equal(log_level_parse("debug", &level), 0);
    assert_int_equal(level, LOG_LEVEL_DEBUG);
    assert_int_equal(log_level_parse("loud", &level), -EINVAL);
    cleanup_close int fd = capture();
    log_set_level(LOG_LEVEL_WARN);
    log_info("test.quiet");
    log_warn("test.loud");
    log_set_level(LOG_LEVEL_INFO);
    release();
    char line[PIPE_BUF + 1];
    assert_true(take(fd, line, sizeof(line)) > 0);
    assert_null(strstr(line, "test.quiet"));
    assert_non_null(strstr(line, "test.loud"));
}

static void long_values_are_cut_and_a_line_fits_a_pipe(void **state)
{
    (void)state;
    char big[4000];
    memset(big, 1, sizeof(big) - 1); /* each becomes six characters */
    big[sizeof(big) - 1] = '\0';
    cleanup_close int fd = capture();
    log_info("test.big", LOG_STR("a", big), LOG_STR("b", big), LOG_STR("c", "short"));
    release();
    char line[2 * PIPE_BUF];
    size_t n = take(fd, line, sizeof(line));
    assert_true(n > 0 && n <= PIPE_BUF);
    assert_non_null(strstr(line, "\"c\":\"short\"}\n"));
}

static void a_full_stderr_drops_and_counts(void **state)
{
    (void)state;
    cleanup_close int fd = capture();
    for (int i = 0; i < 2000; i++) /* far more than a pipe holds; must not block */
        log_info("test.flood", LOG_STR("padding", "0123456789012345678901234567890123456789"));
    char line[1 << 17];
    while (take(fd, line, sizeof(line)) > 0)
        ;
    log_info("test.after");
    release();
    assert_true(take(fd, line, sizeof(line)) > 0);
    assert_non_null(strstr(line, "\"log_lines_dropped\":"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_object_per_line),
        cmocka_unit_test(levels),
        cmocka_unit_test(long_values_are_cut_and_a_line_fits_a_pipe),
        cmocka_unit_test(a_full_stderr_drops_and_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
