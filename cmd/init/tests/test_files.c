/* FILE and DATA: where files go, whose they are, what is refused. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "box.h"
#include "init/init.h"

static char *const run_true[] = {(char[]){"true"}, NULL};

static void file_is(const struct box *b, const char *name, uint32_t mode, const void *bytes,
                    size_t n)
{
    cleanup_buf struct buf path;
    buf_init(&path, 8192);
    assert_int_equal(buf_appendf(&path, "%s/%s", b->cwd, name), 0);
    struct stat st;
    if (lstat(path.data, &st) < 0)
        fail_msg("%s: %s", name, strerrordesc_np(errno));
    assert_int_equal(st.st_mode, S_IFREG | mode);
    assert_int_equal(st.st_uid, BOX_UID);
    assert_int_equal(st.st_gid, BOX_UID);
    cleanup_free char *data = NULL;
    size_t len = 0;
    assert_int_equal(fd_read_file(path.data, 8U << 20, &data, &len), 0);
    assert_int_equal(len, n);
    assert_memory_equal(data, bytes, n);
}

static void any_file_is_written(void **state)
{
    (void)state;
    const size_t big = (3U << 20) + 1;
    cleanup_free char *data = malloc(big);
    assert_non_null(data);
    for (size_t k = 0; k < big; k++)
        data[k] = (char)(k * 7 + k / 256);
    const struct {
        const char *name;
        uint32_t mode;
        size_t n;
    } files[] = {
        {"main.py", 0644, 10},   {"empty", 0600, 0},     {"a/b/c/d/e/f/g.txt", 0640, 256},
        {"a/b/other", 0755, 1},  {"a/b/c/x", 0, 3},      {"open to all", 0777, 3},
        {"\xff\xfe\n", 0644, 5}, {"-rf", 0644, 5},       {"one.mib", 0644, 1U << 20},
        {"...", 0444, 4},        {"big.bin", 0644, big},
    };
    const struct box_options variants[] = {{0}, {.keep_id = true}};
    for (size_t v = 0; v < ARRAY_LEN(variants); v++) {
        struct box b;
        box_open(&b, variants[v]);
        box_spec(&b, NULL, run_true);
        for (size_t k = 0; k < ARRAY_LEN(files); k++)
            box_file(&b, files[k].name, files[k].mode, data, files[k].n);
        box_send(&b, FRAME_DATA, NULL, 0); /* an empty file may bring its empty DATA */
        box_send(&b, FRAME_START, NULL, 0);
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        box_run(&b, &o, "", 0);
        if (o.fault)
            fail_msg("%s: %s", o.fault_text, strerrordesc_np(o.fault));
        for (size_t k = 0; k < ARRAY_LEN(files); k++)
            file_is(&b, files[k].name, files[k].mode, data, files[k].n);
        struct stat st;
        cleanup_buf struct buf path;
        buf_init(&path, 256);
        assert_int_equal(buf_appendf(&path, "%s/a/b", b.cwd), 0);
        assert_int_equal(stat(path.data, &st), 0);
        assert_int_equal(st.st_mode, S_IFDIR | 0755);
        assert_int_equal(st.st_uid, BOX_UID);
        box_close(&b, INIT_STREAM_ENDED);
    }
}

static void the_deepest_path_is_written(void **state)
{
    (void)state;
    char path[FRAME_PATH_MAX + 1];
    for (size_t k = 0; k < FRAME_PATH_MAX; k++)
        path[k] = k % 2 ? '/' : 'd';
    path[FRAME_PATH_MAX - 1] = 'f';
    path[FRAME_PATH_MAX] = '\0';
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){0});
    char *const run[] = {(char[]){"sh"}, (char[]){"-c"}, (char[]){"find . -name df | wc -l"}, NULL};
    box_spec(&b, NULL, run);
    box_file(&b, path, 0644, "x", 1);
    box_send(&b, FRAME_START, NULL, 0);
    box_run(&b, &o, "", 0);
    box_close(&b, INIT_STREAM_ENDED);
    assert_int_equal(o.fault, 0);
    assert_string_equal(o.out.data, "1\n");
}

/* Everything is sent at once and only then is anything read. */
static void fault_of(const char *name, const struct frame_file *files, size_t n, int want,
                     const char *text)
{
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){0});
    box_spec(&b, NULL, run_true);
    for (size_t k = 0; k < n; k++) {
        cleanup_buf struct buf raw;
        buf_init(&raw, 8192);
        assert_int_equal(frame_file_encode(&raw, FRAME_FILE, &files[k]), 0);
        box_send_raw(&b, raw.data, raw.len);
    }
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_FAULTED);
    if (o.fault != want || strcmp(o.fault_text, text) != 0)
        fail_msg("%s: fault %d \"%s\"", name, o.fault, o.fault_text);
}

static void names_that_clash_are_faults(void **state)
{
    (void)state;
    static char long_name[300];
    memset(long_name, 'n', sizeof(long_name));
    const struct frame_file twice[] = {{0644, 0, {"a", 1}}, {0644, 0, {"a", 1}}};
    const struct frame_file below_a_file[] = {{0644, 0, {"a", 1}}, {0644, 0, {"a/b", 3}}};
    const struct frame_file over_a_folder[] = {{0644, 0, {"a/b", 3}}, {0644, 0, {"a", 1}}};
    const struct frame_file too_long[] = {{0644, 0, {long_name, sizeof(long_name)}}};
    fault_of("twice", twice, 2, EEXIST, "create file a");
    fault_of("below a file", below_a_file, 2, ENOTDIR, "create file a/b");
    fault_of("over a folder", over_a_folder, 2, EEXIST, "create file a");
    char want[300];
    (void)snprintf(want, sizeof(want), "create file %.255s", long_name);
    fault_of("name too long", too_long, 1, ENAMETOOLONG, want);
}

static void links_are_not_followed(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int want;
    } cases[] = {
        {"out/file", ENOTDIR},
        {"out", EEXIST},
        {"out/deeper/file", ENOTDIR},
    };
    char target[] = "/tmp/init-target-XXXXXX";
    assert_non_null(mkdtemp(target));
    assert_int_equal(chmod(target, 0777), 0);
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        struct box b;
        box_open(&b, (struct box_options){0});
        char link[128];
        (void)snprintf(link, sizeof(link), "%s/out", b.cwd);
        assert_int_equal(symlink(target, link), 0);
        box_spec(&b, NULL, run_true);
        box_file(&b, cases[k].file, 0644, NULL, 0);
        box_run(&b, &o, NULL, 0);
        box_close(&b, INIT_FAULTED);
        assert_int_equal(o.fault, cases[k].want);
        assert_int_equal(rmdir(target), 0); /* nothing came into it */
        assert_int_equal(mkdir(target, 0777), 0);
    }
    assert_int_equal(rmdir(target), 0);
}

static void paths_that_lead_out_are_faults(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        size_t n;
    } cases[] = {
        {"/etc/x", 6}, {"../x", 4}, {"a/../../x", 9}, {"..", 2},  {".", 1},
        {"a//b", 4},   {"a/", 2},   {"a\0b", 3},      {"./a", 3},
    };
    for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
        cleanup_outcome struct outcome o;
        outcome_init(&o);
        cleanup_buf struct buf payload;
        buf_init(&payload, 64);
        assert_int_equal(buf_append_u32be(&payload, 0644), 0);
        assert_int_equal(buf_append_u64be(&payload, 0), 0);
        assert_int_equal(buf_append(&payload, cases[k].path, cases[k].n), 0);
        struct box b;
        box_open(&b, (struct box_options){0});
        box_spec(&b, NULL, run_true);
        box_send(&b, FRAME_FILE, payload.data, payload.len);
        box_run(&b, &o, NULL, 0);
        box_close(&b, INIT_FAULTED);
        if (o.fault != EBADMSG || !strstr(o.fault_text, "path"))
            fail_msg("%s: fault %d \"%s\"", cases[k].path, o.fault, o.fault_text);
    }
}

static void a_file_that_does_not_fit_is_a_fault(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){.small_files = true});
    box_spec(&b, NULL, run_true);
    static const char data[8192];
    box_file(&b, "fits", 0644, data, 4096);
    box_file(&b, "too-big", 0644, data, 4097);
    box_run(&b, &o, NULL, 0);
    file_is(&b, "fits", 0644, data, 4096);
    box_close(&b, INIT_FAULTED);
    assert_int_equal(o.fault, EFBIG);
    assert_string_equal(o.fault_text, "write file too-big");
}

static void a_folder_that_is_not_theirs_is_a_fault(void **state)
{
    (void)state;
    cleanup_outcome struct outcome o;
    outcome_init(&o);
    struct box b;
    box_open(&b, (struct box_options){0});
    assert_int_equal(chown(b.cwd, 0, 0), 0);
    assert_int_equal(chmod(b.cwd, 0755), 0);
    box_spec(&b, NULL, run_true);
    box_file(&b, "a", 0644, NULL, 0);
    box_run(&b, &o, NULL, 0);
    box_close(&b, INIT_FAULTED);
    assert_int_equal(o.fault, EACCES); /* root in the box, but not in the program's name */
    assert_string_equal(o.fault_text, "create file a");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        box_use_program(argv[1]);
    box_need_namespaces();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_file_is_written),
        cmocka_unit_test(the_deepest_path_is_written),
        cmocka_unit_test(names_that_clash_are_faults),
        cmocka_unit_test(links_are_not_followed),
        cmocka_unit_test(paths_that_lead_out_are_faults),
        cmocka_unit_test(a_file_that_does_not_fit_is_a_fault),
        cmocka_unit_test(a_folder_that_is_not_theirs_is_a_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
