#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

void files_init(struct files *f)
{
    *f = (struct files){.root = -1, .fd = -1};
}

void files_close(struct files *f)
{
    cleanup_close int root = fd_take(&f->root);
    cleanup_close int fd = fd_take(&f->fd);
    (void)root; /* both are closed by their cleanup */
    (void)fd;
    f->left = 0;
}

int files_open(struct files *f, const struct frame_spec *spec, struct err *err)
{
    f->root = open(spec->cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (f->root < 0)
        return err_say(err, -errno, "open working directory %.300s", spec->cwd);
    f->owner = (struct owner){spec->uid, spec->gid};
    return 0;
}

bool files_is_busy(const struct files *f)
{
    return f->fd >= 0;
}

/* Makes the folders of path and sets *ret_dir to the last one (owned), *ret_name to what is left. */
static int make_folders(int root, char *path, int *ret_dir, char **ret_name)
{
    cleanup_close int dir = fcntl(root, F_DUPFD_CLOEXEC, 3);
    if (dir < 0)
        return -errno;
    char *name = path;
    for (char *slash; (slash = strchr(name, '/')); name = slash + 1) {
        *slash = '\0';
        if (mkdirat(dir, name, 0755) < 0 && errno != EEXIST)
            return -errno;
        int next = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0)
            return -errno;
        (void)close(dir); /* a directory: nothing is lost */
        dir = next;
    }
    *ret_dir = fd_take(&dir);
    *ret_name = name;
    return 0;
}

static int make_file(int root, const struct frame_file *file, int *ret_fd)
{
    char path[FRAME_PATH_MAX + 1]; /* the codec refuses longer ones and NUL bytes */
    if (!file->path.ptr || file->path.len > FRAME_PATH_MAX)
        return -ENAMETOOLONG;
    memcpy(path, file->path.ptr, file->path.len);
    path[file->path.len] = '\0';

    cleanup_close int dir = -1;
    char *name = path;
    int r = make_folders(root, path, &dir, &name);
    if (r < 0)
        return r;
    cleanup_close int fd =
        openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 || fchmod(fd, file->mode) < 0)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

static void finish_when_whole(struct files *f)
{
    if (f->left > 0)
        return;
    cleanup_close int fd = fd_take(&f->fd);
    (void)fd; /* closed by its cleanup: on tmpfs close reports nothing that write did not */
}

int files_begin(struct files *f, const struct frame_file *file, struct err *err)
{
    (void)snprintf(f->name, sizeof(f->name), "%.*s",
                   (int)(file->path.len < sizeof(f->name) ? file->path.len : sizeof(f->name) - 1),
                   file->path.ptr); /* cut is fine */
    int r = owner_enter(f->owner, err);
    if (r < 0)
        return r;
    int fd = -1;
    int made = make_file(f->root, file, &fd);
    f->fd = fd;
    r = owner_leave(f->owner, err);
    if (r < 0)
        return r;
    if (made < 0)
        return err_say(err, made, "create file %s", f->name);
    f->left = file->size;
    finish_when_whole(f);
    return 0;
}

int files_data(struct files *f, struct span bytes, struct err *err)
{
    if (bytes.len > f->left)
        return err_say(err, -EPROTO, "DATA of %zu bytes for file %s, %llu are left", bytes.len,
                       f->name, (unsigned long long)f->left);
    int r = fd_write_full(f->fd, bytes.ptr, bytes.len);
    if (r < 0)
        return err_say(err, r, "write file %s", f->name);
    f->left -= bytes.len;
    finish_when_whole(f);
    return 0;
}
