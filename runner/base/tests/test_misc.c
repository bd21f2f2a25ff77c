#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/id.h"
#include "test.h"

static void errors_carry_words(void **state)
{
    (void)state;
    struct err err = {0};
    assert_int_equal(err_set(&err, -ENOENT, "open %s", "x"), -ENOENT);
    assert_string_equal(err.msg, "open x: No such file or directory");
    assert_int_equal(err_wrap(&err, -EIO, "load"), -EIO);
    assert_string_equal(err.msg, "load: open x: No such file or directory");
    assert_int_equal(err.code, -EIO);
    assert_int_equal(err_set(&err, -EINVAL, "bad thing"), -EINVAL);
    assert_string_equal(err.msg, "bad thing");
    assert_int_equal(err_say(&err, -EIO, "whole"), -EIO);
    assert_string_equal(err.msg, "whole");
    assert_int_equal(err_set(NULL, -EIO, "nobody reads"), -EIO);
    assert_int_equal(err_wrap(NULL, -EIO, "nobody reads"), -EIO);

    char big[2000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = '\0';
    (void)err_set(&err, -ENOENT, "%s", big);
    (void)err_wrap(&err, -ENOENT, "%s", big);
    assert_int_equal(strlen(err.msg), sizeof(err.msg) - 1);
}

static void ids_are_well_formed_and_differ(void **state)
{
    (void)state;
    char a[ID_UUID_LEN + 1];
    char b[ID_UUID_LEN + 1];
    assert_int_equal(id_uuid4(a), 0);
    assert_int_equal(id_uuid4(b), 0);
    assert_int_equal(strlen(a), 36);
    assert_int_equal(strspn(a, "0123456789abcdef-"), 36);
    assert_true(a[8] == '-' && a[13] == '-' && a[18] == '-' && a[23] == '-' && a[14] == '4');
    assert_non_null(strchr("89ab", a[19]));
    assert_string_not_equal(a, b);
    char hex[33];
    assert_int_equal(id_hex(16, hex), 0);
    assert_int_equal(strlen(hex), 32);
}

static void digests(void **state)
{
    (void)state;
    char hex[DIGEST_SHA256_HEX + 1];
    assert_int_equal(digest_sha256_hex("abc", 3, hex), 0); /* FIPS 180-2, appendix B.1 */
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    /* RFC 4231, test case 2 */
    assert_int_equal(digest_hmac_sha256_hex("Jefe", "what do ya want for nothing?", 28, hex), 0);
    assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    uint8_t sha1[DIGEST_SHA1_BYTES];
    assert_int_equal(digest_sha1("abc", 3, sha1), 0);
    assert_memory_equal(sha1, "\xa9\x99\x3e\x36\x47\x06\x81\x6a\xba\x3e", 10);
    assert_true(digest_secret_eq("token", 5, "token", 5));
    assert_false(digest_secret_eq("token", 5, "tokeN", 5));
    assert_false(digest_secret_eq("token", 5, "token", 4));
    assert_false(digest_secret_eq("", 0, "x", 1));
}

static int is_cloexec(int fd)
{
    return (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
}

static void descriptors_are_close_on_exec(void **state)
{
    (void)state;
    int fds[2];
    assert_int_equal(fd_pipe(fds), 0);
    assert_true(is_cloexec(fds[0]) && is_cloexec(fds[1]));
    (void)close(fds[0]);
    (void)close(fds[1]);
    assert_int_equal(fd_socketpair(fds), 0);
    assert_true(is_cloexec(fds[0]) && is_cloexec(fds[1]));
    assert_int_equal(fd_write_full(fds[0], "hello", 5), 0);
    assert_int_equal(close(fds[0]), 0);
    char in[8];
    assert_int_equal(fd_read_full(fds[1], in, sizeof(in)), 5); /* short only at the end */
    assert_memory_equal(in, "hello", 5);
    (void)close(fds[1]);
    cleanup_close int event = fd_eventfd();
    assert_true(event >= 0 && is_cloexec(event));
    struct pollfd p = {.fd = event, .events = POLLIN};
    fd_drain(event); /* empty: does not block */
    assert_int_equal(poll(&p, 1, 0), 0);
    fd_notify(event);
    fd_notify(event);
    assert_int_equal(poll(&p, 1, 0), 1);
    fd_drain(event);
    assert_int_equal(poll(&p, 1, 0), 0);
    cleanup_close int epoll = fd_epoll();
    assert_true(epoll >= 0 && is_cloexec(epoll));
}

static void small_files(void **state)
{
    (void)state;
    char path[] = "/tmp/code-runner-test-XXXXXX";
    cleanup_close int fd = mkostemp(path, O_CLOEXEC);
    assert_true(fd >= 0);
    char block[8192];
    memset(block, 'z', sizeof(block));
    assert_int_equal(fd_write_full(fd, block, sizeof(block)), 0);
    cleanup_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(fd_read_file(path, sizeof(block) - 1, &data, &len), -EFBIG);
    assert_null(data);
    assert_int_equal(fd_read_file(path, sizeof(block), &data, &len), 0);
    assert_int_equal(len, sizeof(block));
    assert_memory_equal(data, block, sizeof(block));
    assert_int_equal(data[len], '\0');
    assert_int_equal(unlink(path), 0);
    cleanup_free char *none = NULL;
    assert_int_equal(fd_read_file(path, 1, &none, &len), -ENOENT);
}

static void poll_timeouts_round_up(void **state)
{
    (void)state;
    assert_int_equal(clock_poll_timeout(DEADLINE_NEVER), -1);
    assert_int_equal(clock_poll_timeout(clock_now_ms() - 1), 0);
    assert_int_equal(clock_poll_timeout(DEADLINE_NEVER - 1), INT32_MAX);
    int64_t deadline = clock_now_ms() + 1000;
    int timeout = clock_poll_timeout(deadline);
    assert_true(timeout > 0 && timeout <= 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(errors_carry_words),
        cmocka_unit_test(ids_are_well_formed_and_differ),
        cmocka_unit_test(digests),
        cmocka_unit_test(descriptors_are_close_on_exec),
        cmocka_unit_test(small_files),
        cmocka_unit_test(poll_timeouts_round_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
