#include "manifest/manifest.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "contract/contract.h"
#include "manifests.h"
#include "test.h"

/* A folder of languages for one test. */
struct tree {
    char dir[64];
    int fd;
};

static int setup_contract(void **state)
{
    (void)state;
    return contract_init(NULL);
}

static int teardown_contract(void **state)
{
    (void)state;
    contract_done();
    return 0;
}

static int tree_init(struct tree *t)
{
    (void)snprintf(t->dir, sizeof(t->dir), "/tmp/languages-test-XXXXXX");
    if (!mkdtemp(t->dir))
        return -1;
    t->fd = open(t->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return t->fd < 0 ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static int tree_done(struct tree *t)
{
    (void)close(t->fd);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the test has one thread */
    return nftw(t->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static int setup(void **state)
{
    static struct tree t;
    *state = &t;
    return tree_init(&t);
}

static int teardown(void **state)
{
    return tree_done(*state);
}

static void put(const struct tree *t, const char *path, const char *text, size_t len)
{
    cleanup_close int fd = openat(t->fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(fd_write_full(fd, text, len), 0);
}

static void add(const struct tree *t, const char *folder, const char *text)
{
    assert_int_equal(mkdirat(t->fd, folder, 0755), 0);
    if (!text)
        return;
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/manifest.json", folder);
    put(t, path, text, strlen(text));
}

static void refused(const struct tree *t, int want, const char *const words[])
{
    struct languages *l = NULL;
    struct err err = {0};
    int r = languages_load(t->dir, &l, &err);
    if (r != want || err.code != r || l)
        fail_msg("r=%d, not %d: %s", r, want, err.msg);
    for (; *words; words++)
        if (!strstr(err.msg, *words))
            fail_msg("no \"%s\" in: %s", *words, err.msg);
}
#define REFUSED(t, want, ...) refused(t, want, (const char *const[]){__VA_ARGS__, NULL})

static void the_tree(void **state)
{
    (void)state;
    cleanup_languages struct languages *l = NULL;
    struct err err = {0};
    if (languages_load(PROJECT_SOURCE_DIR "/languages", &l, &err) != 0)
        fail_msg("%s", err.msg);
    const struct language *python = NULL;
    assert_int_equal(languages_find(l, "py", "3", &python), 0);
    assert_string_equal(python->name, "python");
}

static void folder_order_and_skips(void **state)
{
    const struct tree *t = *state;
    add(t, "b", TEST_MANIFEST("one", "2", "[\"uno\"]", ""));
    add(t, "c", TEST_MANIFEST("two", "1", "[\"due\"]", ""));
    add(t, "a", TEST_MANIFEST("one", "1", "[\"uno\",\"one\"]", ""));
    add(t, "a-folder-without", NULL);
    add(t, ".hidden", "{");
    put(t, "README.md", "no folder", 9);

    cleanup_languages struct languages *l = NULL;
    struct err err = {0};
    if (languages_load(t->dir, &l, &err) != 0)
        fail_msg("%s", err.msg);
    assert_int_equal(l->len, 3);
    assert_string_equal(l->items[0].version, "1");
    assert_string_equal(l->items[1].version, "2");
    assert_string_equal(l->items[2].name, "two");
}

static void missing_and_empty(void **state)
{
    struct tree *t = *state;
    struct languages *l = NULL;
    struct err err = {0};
    assert_int_equal(languages_load("/nonexistent/languages", &l, &err), -ENOENT);
    assert_non_null(strstr(err.msg, "/nonexistent/languages"));
    assert_int_equal(languages_load("/dev/null", &l, &err), -ENOTDIR);
    assert_int_equal(languages_load("", &l, &err), -ENOENT);

    REFUSED(t, -ENOENT, t->dir, "manifest.json");
    add(t, "folder", NULL);
    REFUSED(t, -ENOENT, t->dir, "manifest.json");
}

static void first_bad_manifest_is_named(void **state)
{
    const struct tree *t = *state;
    add(t, "a", TEST_MANIFEST("one", "1", "[]", ""));
    add(t, "b", TEST_MANIFEST("two", "1", "[]", ",\"surplus\":1"));
    add(t, "c", "{");
    REFUSED(t, -EINVAL, t->dir, "/b/manifest.json", "surplus");
}

static void duplicates(void **state)
{
    (void)state;
    static const struct {
        const char *name, *a, *b;
        const char *word; /* NULL: accepted */
    } cases[] = {
        {"language and version", TEST_MANIFEST("one", "1", "[]", ""),
         TEST_MANIFEST("one", "1", "[]", ""), "one 1"},
        {"alias is another's name", TEST_MANIFEST("one", "1", "[\"two\"]", ""),
         TEST_MANIFEST("two", "1", "[]", ""), "\"two\""},
        {"name is another's alias", TEST_MANIFEST("one", "1", "[]", ""),
         TEST_MANIFEST("two", "1", "[\"x\",\"one\"]", ""), "\"one\""},
        {"alias is another's alias", TEST_MANIFEST("one", "1", "[\"x\",\"y\"]", ""),
         TEST_MANIFEST("two", "1", "[\"z\",\"y\"]", ""), "\"y\""},
        {"versions share an alias", TEST_MANIFEST("one", "1", "[\"x\"]", ""),
         TEST_MANIFEST("one", "2", "[\"x\"]", ""), NULL},
        {"case matters", TEST_MANIFEST("r", "1", "[\"x\"]", ""),
         TEST_MANIFEST("R", "1", "[\"X\"]", ""), NULL},
        {"other text of one version", TEST_MANIFEST("one", "1.9", "[]", ""),
         TEST_MANIFEST("one", "1.09", "[]", ""), NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tree t;
        assert_int_equal(tree_init(&t), 0);
        add(&t, "a", cases[i].a);
        add(&t, "b", cases[i].b);
        cleanup_languages struct languages *l = NULL;
        struct err err = {0};
        int r = languages_load(t.dir, &l, &err);
        if (r != (cases[i].word ? -EEXIST : 0))
            fail_msg("%s: r=%d %s", cases[i].name, r, err.msg);
        if (cases[i].word && (!strstr(err.msg, cases[i].word) || !strstr(err.msg, "/a ") ||
                              !strstr(err.msg, "/b/manifest.json")))
            fail_msg("%s: %s", cases[i].name, err.msg);
        assert_int_equal(tree_done(&t), 0);
    }
}

static void links_are_refused(void **state)
{
    const struct tree *t = *state;
    add(t, "a", TEST_MANIFEST("one", "1", "[]", ""));
    add(t, "b", NULL);
    assert_int_equal(symlinkat("../a/manifest.json", t->fd, "b/manifest.json"), 0);
    REFUSED(t, -ELOOP, "/b/manifest.json", "symbolic link");
    assert_int_equal(unlinkat(t->fd, "b/manifest.json", 0), 0);

    assert_int_equal(symlinkat("a", t->fd, "c"), 0);
    REFUSED(t, -ELOOP, "/c:", "symbolic link");
}

static void odd_files_are_refused(void **state)
{
    const struct tree *t = *state;
    add(t, "a", NULL);
    assert_int_equal(mkfifoat(t->fd, "a/manifest.json", 0644), 0);
    REFUSED(t, -EINVAL, "/a/manifest.json", "regular file");
    assert_int_equal(unlinkat(t->fd, "a/manifest.json", 0), 0);
    assert_int_equal(mkdirat(t->fd, "a/manifest.json", 0755), 0);
    REFUSED(t, -EINVAL, "/a/manifest.json", "regular file");
}

/* White space after the manifest up to n bytes in all. */
static void put_padded(const struct tree *t, size_t n)
{
    static const char text[] = TEST_MANIFEST("one", "1", "[]", "");
    cleanup_buf struct buf b;
    buf_init(&b, n + 1);
    assert_int_equal(buf_append_str(&b, text), 0);
    while (b.len < n)
        assert_int_equal(buf_append_byte(&b, ' '), 0);
    put(t, "a/manifest.json", b.data, b.len);
}

static void size_of_a_manifest(void **state)
{
    const struct tree *t = *state;
    add(t, "a", NULL);
    put_padded(t, 262144);
    cleanup_languages struct languages *l = NULL;
    assert_int_equal(languages_load(t->dir, &l, NULL), 0);
    put_padded(t, 262145);
    REFUSED(t, -EFBIG, "/a/manifest.json", "262144");
}

static void number_of_folders(void **state)
{
    const struct tree *t = *state;
    add(t, "a", TEST_MANIFEST("one", "1", "[]", ""));
    char name[32];
    for (int i = 1; i < 1000; i++) {
        (void)snprintf(name, sizeof(name), "b%d", i);
        add(t, name, NULL);
    }
    cleanup_languages struct languages *l = NULL;
    assert_int_equal(languages_load(t->dir, &l, NULL), 0);
    add(t, "c", NULL);
    REFUSED(t, -E2BIG, t->dir, "1000");
}

int main(void)
{
#define IN_TREE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tree),     IN_TREE(folder_order_and_skips),
        IN_TREE(missing_and_empty),     IN_TREE(first_bad_manifest_is_named),
        cmocka_unit_test(duplicates),   IN_TREE(links_are_refused),
        IN_TREE(odd_files_are_refused), IN_TREE(size_of_a_manifest),
        IN_TREE(number_of_folders),
    };
    return cmocka_run_group_tests(tests, setup_contract, teardown_contract);
}
