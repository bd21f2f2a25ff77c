/* config_document FILE          writes the documentation of all settings
 * config_document --check FILE  fails when FILE is not what would be written */
#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "config/config.h"

#define PAGE_MAX (1 << 20)

static int check(const char *path, const struct buf *page)
{
    cleanup_free char *text = NULL;
    size_t len = 0;
    int r = fd_read_file(path, PAGE_MAX, &text, &len);
    if (r == 0 && len == page->len && memcmp(text, page->data, len) == 0)
        return 0;
    (void)fprintf(stderr, "%s %s: run `ninja config_docs`\n", path,
                  r < 0 ? "cannot be read" : "differs from the table of settings");
    return 1;
}

static int write_page(const char *path, const struct buf *page)
{
    struct err err = {0};
    FILE *f = fopen(path, "we");
    if (f && fwrite(page->data, 1, page->len, f) == page->len && fclose(f) == 0)
        return 0; /* otherwise the program ends, and f with it */
    (void)err_set(&err, -errno, "write %s", path);
    (void)fprintf(stderr, "%s\n", err.msg);
    return 1;
}

int main(int argc, char **argv)
{
    cleanup_buf struct buf page;
    buf_init(&page, PAGE_MAX);
    if (config_markdown(&page) < 0)
        return 1;
    if (argc == 3 && strcmp(argv[1], "--check") == 0)
        return check(argv[2], &page);
    return argc == 2 ? write_page(argv[1], &page) : 2;
}
