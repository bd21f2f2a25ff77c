#include "manifest/manifest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"

#define MANIFEST_FILE      "manifest.json"
#define MANIFEST_BYTES_MAX 262144 /* its commands and env fit a frame then, with room to spare */
#define LANGUAGES_MAX      1000
#define PATH_BYTES_MAX     8192

/* Folder names, sorted, and beside them what was loaded from each; only while loading. */
struct loading {
    const char *dir;
    int dir_fd;
    char **folders;
    size_t folders_len;
    const char **origins; /* origins[i]: the folder of languages->items[i] */
    struct languages *languages;
};

void languages_free(struct languages *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->len; i++)
        language_done(&l->items[i]);
    free(l->items);
    free(l);
}

static void close_dir_slot(DIR **dir)
{
    int saved = errno;
    if (*dir)
        (void)closedir(*dir); /* only read from */
    errno = saved;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_folder(struct loading *l, const char *name, struct err *err)
{
    struct stat st;
    if (fstatat(l->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return err_set(err, -errno, "%s/%s", l->dir, name);
    if (S_ISLNK(st.st_mode))
        return err_say(err, -ELOOP, "%s/%s: is a symbolic link; a language is a folder", l->dir,
                       name);
    if (!S_ISDIR(st.st_mode))
        return 0;
    if (l->folders_len == LANGUAGES_MAX)
        return err_say(err, -E2BIG, "%s: has more than %d folders", l->dir, LANGUAGES_MAX);
    char *copy = strdup(name);
    if (!copy)
        return err_set(err, -ENOMEM, "%s", l->dir);
    l->folders[l->folders_len++] = copy;
    return 0;
}

/* Names that begin with a dot are hidden, as for the shell. */
static int list_folders(struct loading *l, struct err *err)
{
    int copy = fcntl(l->dir_fd, F_DUPFD_CLOEXEC, 3); /* fdopendir() takes it */
    if (copy < 0)
        return err_set(err, -errno, "%s", l->dir);
    CLEANUP(close_dir_slot) DIR *dir = fdopendir(copy);
    if (!dir) {
        int r = -errno;
        (void)close(copy); /* only read from */
        return err_set(err, r, "%s", l->dir);
    }
    for (;;) {
        errno = 0;
        const struct dirent *e = readdir(dir); /* NOLINT(concurrency-mt-unsafe): our own stream */
        if (!e && errno != 0)
            return err_set(err, -errno, "read %s", l->dir);
        if (!e)
            break;
        int r = e->d_name[0] == '.' ? 0 : add_folder(l, e->d_name, err);
        if (r < 0)
            return r;
    }
    qsort(l->folders, l->folders_len, sizeof(*l->folders), by_name);
    return 0;
}

/* 0 and -1 in *ret_fd when the folder has no manifest. */
static int open_manifest(int dir_fd, const char *folder, int *ret_fd)
{
    cleanup_close int folder_fd =
        openat(dir_fd, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder_fd < 0)
        return -errno;
    /* Not blocking: a fifo in that place would stop the start for ever. */
    cleanup_close int fd =
        openat(folder_fd, MANIFEST_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 && errno != ENOENT)
        return -errno;
    *ret_fd = fd_take(&fd);
    return 0;
}

/* 1: there is none. */
static int read_manifest(const struct loading *l, const char *folder, const char *where, char **ret,
                         size_t *ret_len, struct err *err)
{
    cleanup_close int fd = -1;
    int r = open_manifest(l->dir_fd, folder, &fd);
    if (r == -ELOOP)
        return err_say(err, r, "%s: is a symbolic link; it must be a file", where);
    if (r < 0)
        return err_set(err, r, "open %s", where);
    if (fd < 0)
        return 1;

    struct stat st;
    if (fstat(fd, &st) < 0)
        return err_set(err, -errno, "%s", where);
    if (!S_ISREG(st.st_mode))
        return err_say(err, -EINVAL, "%s: is not a regular file", where);

    cleanup_free char *text = malloc(MANIFEST_BYTES_MAX + 1);
    if (!text)
        return err_set(err, -ENOMEM, "%s", where);
    ssize_t n = fd_read_full(fd, text, MANIFEST_BYTES_MAX + 1);
    if (n < 0)
        return err_set(err, (int)n, "read %s", where);
    if (n > MANIFEST_BYTES_MAX)
        return err_say(err, -EFBIG, "%s: is larger than %d bytes", where, MANIFEST_BYTES_MAX);
    *ret = ptr_take(&text);
    *ret_len = (size_t)n;
    return 0;
}

/* The word both languages answer to, or NULL. */
static const char *shared_name(const struct language *a, const struct language *b)
{
    if (strcmp(a->name, b->name) == 0)
        return NULL; /* versions of one language share what they like */
    for (char **x = a->aliases; *x; x++) {
        if (strcmp(*x, b->name) == 0)
            return *x;
        for (char **y = b->aliases; *y; y++)
            if (strcmp(*x, *y) == 0)
                return *x;
    }
    for (char **y = b->aliases; *y; y++)
        if (strcmp(*y, a->name) == 0)
            return *y;
    return NULL;
}

static int check_against_earlier(const struct loading *l, const struct language *it,
                                 const char *where, struct err *err)
{
    for (size_t i = 0; i < l->languages->len; i++) {
        const struct language *other = &l->languages->items[i];
        /* NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker): items below len are filled */
        if (strcmp(it->name, other->name) == 0 && strcmp(it->version, other->version) == 0)
            return err_say(err, -EEXIST, "%s: %s %s is the language of %s/%s already", where,
                           it->name, it->version, l->dir, l->origins[i]);
        const char *name = shared_name(it, other);
        if (name)
            return err_say(err, -EEXIST, "%s: the name or alias \"%s\" is one of %s/%s already",
                           where, name, l->dir, l->origins[i]);
    }
    return 0;
}

static int load_folder(struct loading *l, const char *folder, struct err *err)
{
    cleanup_buf struct buf where;
    buf_init(&where, PATH_BYTES_MAX);
    int r = buf_appendf(&where, "%s/%s/" MANIFEST_FILE, l->dir, folder);
    if (r < 0)
        return err_set(err, r, "%s/%s", l->dir, folder);

    cleanup_free char *text = NULL;
    size_t len = 0;
    r = read_manifest(l, folder, where.data, &text, &len, err);
    if (r != 0)
        return r < 0 ? r : 0;

    struct language it;
    r = manifest_parse(text, len, where.data, &it, err);
    if (r < 0)
        return r;
    r = check_against_earlier(l, &it, where.data, err);
    if (r < 0) {
        language_done(&it);
        return r;
    }
    l->origins[l->languages->len] = folder;
    l->languages->items[l->languages->len++] = it;
    return 0;
}

static int load_all(struct loading *l, struct err *err)
{
    l->folders = calloc(LANGUAGES_MAX, sizeof(*l->folders));
    l->languages = calloc(1, sizeof(*l->languages));
    if (!l->folders || !l->languages)
        return err_set(err, -ENOMEM, "%s", l->dir);
    int r = list_folders(l, err);
    if (r < 0)
        return r;

    l->origins = calloc(l->folders_len + 1, sizeof(*l->origins));
    l->languages->items = calloc(l->folders_len + 1, sizeof(*l->languages->items));
    if (!l->origins || !l->languages->items)
        return err_set(err, -ENOMEM, "%s", l->dir);
    for (size_t i = 0; i < l->folders_len; i++) {
        r = load_folder(l, l->folders[i], err);
        if (r < 0)
            return r;
    }
    if (l->languages->len == 0)
        return err_say(err, -ENOENT, "%s: no folder in it has a " MANIFEST_FILE, l->dir);
    return 0;
}

int languages_load(const char *dir, struct languages **ret, struct err *err)
{
    cleanup_close int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir_fd < 0)
        return err_set(err, -errno, "open the languages folder %s", dir);

    struct loading l = {.dir = dir, .dir_fd = dir_fd};
    int r = load_all(&l, err);
    if (r == 0)
        *ret = ptr_take(&l.languages);

    languages_free(l.languages);
    free(l.origins);
    for (size_t i = 0; i < l.folders_len; i++)
        free(l.folders[i]);
    free(l.folders);
    return r;
}
