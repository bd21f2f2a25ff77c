#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/id.h"

#define DIR_MODE  0700
#define FILE_MODE 0600

static int make_folders(const char *dir, struct err *err)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s", dir);
    if (n < 0 || (size_t)n >= sizeof(path))
        return err_set(err, -ENAMETOOLONG, "STATE_DIR");
    for (char *p = path + 1; *p; p++) {
        if (*p != '/')
            continue;
        *p = '\0';
        if (mkdir(path, DIR_MODE) < 0 && errno != EEXIST)
            return err_set(err, -errno, "STATE_DIR: make folder %s", path);
        *p = '/';
    }
    if (mkdir(path, DIR_MODE) < 0 && errno != EEXIST)
        return err_set(err, -errno, "STATE_DIR: make folder %s", path);
    return 0;
}

static int is_id(const char *text, size_t n)
{
    return n == STATE_ID_SIZE && text[n - 1] == '\n' &&
           strspn(text, "0123456789abcdef") == STATE_ID_SIZE - 1;
}

static int read_id(int dir_fd, char ret[static STATE_ID_SIZE], struct err *err)
{
    cleanup_close int fd =
        openat(dir_fd, "deployment-id", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? -ENOENT : err_set(err, -errno, "STATE_DIR: open deployment-id");
    char text[STATE_ID_SIZE + 2] = {0};
    ssize_t n = fd_read_full(fd, text, sizeof(text) - 1);
    if (n < 0 || !is_id(text, (size_t)n))
        return err_set(
            err, -EINVAL,
            "STATE_DIR: deployment-id is not a line of %d hex digits; remove it to get a "
            "new one (what the old one labelled is then not cleaned up)",
            STATE_ID_SIZE - 1);
    memcpy(ret, text, STATE_ID_SIZE - 1);
    ret[STATE_ID_SIZE - 1] = '\0';
    return 0;
}

/* Written beside and renamed, so that a crash leaves a whole one or none. We hold the lock. */
static int make_id(int dir_fd, char ret[static STATE_ID_SIZE], struct err *err)
{
    int r = id_hex((STATE_ID_SIZE - 1) / 2, ret);
    if (r < 0)
        return err_set(err, r, "make a deployment id");
    (void)unlinkat(dir_fd, "deployment-id.new", 0); /* of a crash; absent is the usual case */
    cleanup_close int fd = openat(dir_fd, "deployment-id.new",
                                  O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (fd < 0)
        return err_set(err, -errno, "STATE_DIR: make deployment-id");
    char line[STATE_ID_SIZE + 1];
    (void)snprintf(line, sizeof(line), "%s\n", ret); /* exactly fits */
    r = fd_write_full(fd, line, STATE_ID_SIZE);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dir_fd, "deployment-id.new", dir_fd, "deployment-id") < 0)
        r = -errno;
    return r < 0 ? err_set(err, r, "STATE_DIR: write deployment-id") : 0;
}

int state_open(const char *dir, struct state *ret, struct err *err)
{
    int r = make_folders(dir, err);
    if (r < 0)
        return r;
    cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_set(err, -errno, "STATE_DIR: open %s", dir);
    cleanup_close int lock =
        openat(dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, FILE_MODE);
    if (lock < 0)
        return err_set(err, -errno, "STATE_DIR: open %s/lock", dir);
    if (flock(lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno == EWOULDBLOCK)
            return err_say(err, -EBUSY, "STATE_DIR: another server is running on %s", dir);
        return err_set(err, -errno, "STATE_DIR: lock %s/lock", dir);
    }
    r = read_id(dir_fd, ret->deployment_id, err);
    if (r == -ENOENT)
        r = make_id(dir_fd, ret->deployment_id, err);
    if (r < 0)
        return r;
    ret->lock_fd = fd_take(&lock);
    return 0;
}

void state_close(struct state *s)
{
    cleanup_close_slot(&s->lock_fd);
    s->lock_fd = -1;
}
