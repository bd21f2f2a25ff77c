/* The files of a request. Names are relative paths: empty and "." segments are dropped, ".." and a
 * leading slash are refused, every other byte but NUL stays as it is, a backslash too. */
#include <errno.h>

#include "admit.h"
#include "base/parse.h"
#include "json/json.h"

#define SEGMENT_BYTES_MAX 255 /* NAME_MAX of every Linux file system */

static int refuse_path(struct answer *a, const char *name, size_t len, const char *why)
{
    struct shown s = shown(name, len);
    answer_error(a, MHD_HTTP_BAD_REQUEST, "Invalid file path: \"%s\" %s", s.text, why);
    return 1;
}

/* Sets *ret to the normalised name; 0, 1 (refused) or -ENOMEM. */
static int path_normalise(const char *name, size_t len, char **ret, struct answer *a)
{
    if (memchr(name, '\0', len))
        return refuse_path(a, name, strlen(name), "contains a NUL");
    if (name[0] == '/')
        return refuse_path(a, name, len, "is not relative");
    cleanup_free char *out = calloc(1, len + 1);
    if (!out)
        return -ENOMEM;
    size_t used = 0;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, "/");
        const char *segment = p;
        p += n + (p[n] == '/');
        if (n == 0 || (n == 1 && segment[0] == '.'))
            continue;
        if (n == 2 && memcmp(segment, "..", 2) == 0)
            return refuse_path(a, name, len, "leads out of the working folder");
        if (n > SEGMENT_BYTES_MAX)
            return refuse_path(a, name, len, "has a part of more than 255 bytes");
        if (used > 0)
            out[used++] = '/';
        memcpy(out + used, segment, n);
        used += n;
    }
    if (used == 0)
        return refuse_path(a, name, len, "names no file");
    *ret = ptr_take(&out);
    return 0;
}

static int content_decode(const json_t *file, struct job_file *ret, struct answer *a)
{
    size_t len = 0;
    const char *text = json_text(json_object_get(file, "content"), &len);
    const char *encoding = json_text(json_object_get(file, "encoding"), NULL);
    bool is_base64 = encoding && strcmp(encoding, "base64") == 0;
    ret->content = malloc(len + 1);
    if (!ret->content)
        return -ENOMEM;
    if (!is_base64) {
        memcpy(ret->content, text, len);
        ret->content_len = len;
        return 0;
    }
    int64_t n = parse_base64(text, len, (uint8_t *)ret->content);
    if (n < 0) {
        struct shown s = shown(ret->name, strlen(ret->name));
        answer_error(a, MHD_HTTP_BAD_REQUEST,
                     "Invalid file content: \"%s\" is not standard padded base64", s.text);
        return 1;
    }
    ret->content_len = (size_t)n;
    return 0;
}

static int file_admit(const json_t *file, struct job_file *ret, bool *ret_has_refs,
                      struct answer *a)
{
    size_t len = 0;
    const char *name = json_text(json_object_get(file, "name"), &len);
    int e = path_normalise(name, len, &ret->name, a);
    if (e != 0)
        return e;
    bool has_content = json_object_get(file, "content") != NULL;
    bool has_ref = json_object_get(file, "ref") != NULL;
    if (has_content == has_ref) {
        struct shown s = shown(ret->name, strlen(ret->name));
        answer_error(a, MHD_HTTP_BAD_REQUEST,
                     "Invalid file ref: \"%s\" must have exactly one of content and ref", s.text);
        return 1;
    }
    if (has_content)
        return content_decode(file, ret, a);
    *ret_has_refs = true;
    return 0;
}

/* Byte order, but a slash before everything: what lies in a folder follows it at once. */
static int name_order(const void *x, const void *y)
{
    const char *a = *(const char *const *)x, *b = *(const char *const *)y;
    while (*a && *a == *b) {
        a++;
        b++;
    }
    int ka = *a == '/' ? 1 : (unsigned char)*a + (*a ? 1 : 0);
    int kb = *b == '/' ? 1 : (unsigned char)*b + (*b ? 1 : 0);
    return (ka > kb) - (ka < kb);
}

static int names_check(const struct job_spec *spec, struct answer *a)
{
    if (spec->files_len < 2)
        return 0;
    cleanup_free const char **names = calloc(spec->files_len, sizeof(*names));
    if (!names)
        return -ENOMEM;
    for (size_t i = 0; i < spec->files_len; i++)
        names[i] = spec->files[i].name;
    qsort(names, spec->files_len, sizeof(*names), name_order);
    for (size_t i = 1; i < spec->files_len; i++) {
        size_t n = strlen(names[i - 1]);
        if (strncmp(names[i - 1], names[i], n) != 0)
            continue;
        if (names[i][n] == '\0')
            return refuse_path(a, names[i], n, "is there twice");
        if (names[i][n] == '/')
            return refuse_path(a, names[i - 1], n, "is a file and a folder");
    }
    return 0;
}

static int sizes_check(const struct job_spec *spec, uint64_t max_bytes, struct answer *a)
{
    uint64_t total = 0; /* cannot overflow: all of it is in memory */
    for (size_t i = 0; i < spec->files_len; i++)
        total += spec->files[i].content_len;
    if (total <= max_bytes)
        return 0;
    answer_error(a, MHD_HTTP_CONTENT_TOO_LARGE,
                 "Input files too large: %llu bytes, the maximum is %llu",
                 (unsigned long long)total, (unsigned long long)max_bytes);
    return 1;
}

int admit_files(const json_t *files, uint64_t max_bytes, struct job_spec *spec, bool *ret_has_refs,
                struct answer *refusal)
{
    size_t n = json_array_size(files);
    spec->files = calloc(n, sizeof(*spec->files));
    if (!spec->files)
        return -ENOMEM;
    int e = 0;
    for (size_t i = 0; e == 0 && i < n; i++) {
        spec->files_len = i + 1;
        e = file_admit(json_array_get(files, i), &spec->files[i], ret_has_refs, refusal);
    }
    if (e == 0)
        e = names_check(spec, refusal);
    return e == 0 ? sizes_check(spec, max_bytes, refusal) : e;
}
