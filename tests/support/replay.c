/* Runs a fuzz target over the files of its corpus folder, in every build, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fd.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    DIR *dir = opendir(argv[1]);
    if (!dir) {
        perror(argv[1]);
        return 2;
    }
    unsigned ran = 0;
    for (struct dirent *e; (e = readdir(dir));) { /* NOLINT(concurrency-mt-unsafe): one thread */
        if (e->d_name[0] == '.')
            continue;
        cleanup_buf struct buf path;
        buf_init(&path, 4096);
        cleanup_free char *data = NULL;
        size_t len = 0;
        if (buf_appendf(&path, "%s/%s", argv[1], e->d_name) < 0 ||
            fd_read_file(path.data, 1 << 24, &data, &len) < 0) {
            (void)fprintf(stderr, "cannot read %s\n", e->d_name);
            return 2;
        }
        (void)LLVMFuzzerTestOneInput((const uint8_t *)data, len);
        ran++;
    }
    (void)closedir(dir);
    (void)printf("%u inputs replayed\n", ran);
    return ran > 0 ? 0 : 1; /* an empty corpus tests nothing */
}
