#include "frames/frames.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>

#define EXIT_BYTES        40U
#define USAGE_BYTES       24U
#define FILE_FIXED_BYTES  12U
#define FAULT_FIXED_BYTES 4U
#define SIGNAL_MAX        64

static const struct kind {
    const char *name; /* NULL: no such type */
    bool to_init;
    bool from_init;
    uint32_t min;
    uint32_t max;
} kinds[] = {
    [FRAME_SPEC] = {"SPEC", true, false, 0, FRAME_PAYLOAD_MAX},
    [FRAME_FILE] = {"FILE", true, false, FILE_FIXED_BYTES + 1, FILE_FIXED_BYTES + FRAME_PATH_MAX},
    [FRAME_DATA] = {"DATA", true, true, 0, FRAME_PAYLOAD_MAX},
    [FRAME_START] = {"START", true, false, 0, 0},
    [FRAME_STDIN] = {"STDIN", true, false, 0, FRAME_STDIN_CREDIT},
    [FRAME_STDIN_EOF] = {"STDIN_EOF", true, false, 0, 0},
    [FRAME_SIGNAL] = {"SIGNAL", true, false, 1, 1},
    [FRAME_RESIZE] = {"RESIZE", true, false, 4, 4},
    [FRAME_KILL] = {"KILL", true, false, 0, 0},
    [FRAME_COLLECT] = {"COLLECT", true, false, 0, 0},
    [FRAME_READY] = {"READY", false, true, 4, 4},
    [FRAME_STAGE] = {"STAGE", false, true, 1, 1},
    [FRAME_STDOUT] = {"STDOUT", false, true, 0, FRAME_OUTPUT_CHUNK},
    [FRAME_STDERR] = {"STDERR", false, true, 0, FRAME_OUTPUT_CHUNK},
    [FRAME_STDIN_TAKEN] = {"STDIN_TAKEN", false, true, 4, 4},
    [FRAME_USAGE] = {"USAGE", false, true, USAGE_BYTES, USAGE_BYTES},
    [FRAME_COMPILED] = {"COMPILED", false, true, EXIT_BYTES, EXIT_BYTES},
    [FRAME_EXITED] = {"EXITED", false, true, EXIT_BYTES, EXIT_BYTES},
    [FRAME_ARTIFACT] = {"ARTIFACT", false, true, FILE_FIXED_BYTES + 1,
                        FILE_FIXED_BYTES + FRAME_PATH_MAX},
    [FRAME_COLLECTED] = {"COLLECTED", false, true, 4, 4},
    [FRAME_FAULT] = {"FAULT", false, true, FAULT_FIXED_BYTES,
                     FAULT_FIXED_BYTES + FRAME_FAULT_TEXT_MAX},
};

static const struct kind *kind_of(unsigned type)
{
    return type < ARRAY_LEN(kinds) && kinds[type].name ? &kinds[type] : NULL;
}

const char *frame_type_name(enum frame_type type)
{
    const struct kind *kind = kind_of((unsigned)type);
    return kind ? kind->name : "unknown";
}

int frame_decode(struct span in, enum frame_direction direction, struct frame *ret,
                 size_t *ret_used, struct err *err)
{
    if (in.len < FRAME_HEADER_BYTES)
        return FRAME_INCOMPLETE;
    unsigned type = (uint8_t)in.ptr[0];
    unsigned flags = (uint8_t)in.ptr[1];
    uint32_t n = u32be(in.ptr + 2);

    const struct kind *kind = kind_of(type);
    if (!kind)
        return err_set(err, -EBADMSG, "frame type %u is unknown", type);
    if (!(direction == FRAME_TO_INIT ? kind->to_init : kind->from_init))
        return err_set(err, -EBADMSG, "frame %s goes the other way", kind->name);
    if (flags != 0)
        return err_set(err, -EBADMSG, "frame %s has flags 0x%02x, must be 0", kind->name, flags);
    if (n < kind->min || n > kind->max)
        return err_set(err, -EBADMSG, "frame %s has %u bytes, must have %u to %u", kind->name, n,
                       kind->min, kind->max);
    if (in.len - FRAME_HEADER_BYTES < n)
        return FRAME_INCOMPLETE;
    *ret = (struct frame){(enum frame_type)type, {in.ptr + FRAME_HEADER_BYTES, n}};
    *ret_used = FRAME_HEADER_BYTES + n;
    return 0;
}

void frame_header(enum frame_type type, uint32_t n, uint8_t ret[static FRAME_HEADER_BYTES])
{
    ret[0] = (uint8_t)type;
    ret[1] = 0;
    ret[2] = (uint8_t)(n >> 24);
    ret[3] = (uint8_t)(n >> 16);
    ret[4] = (uint8_t)(n >> 8);
    ret[5] = (uint8_t)n;
}

int frame_encode(struct buf *out, enum frame_type type, const void *payload, size_t n)
{
    if (n > FRAME_PAYLOAD_MAX)
        return -EMSGSIZE;
    uint8_t header[FRAME_HEADER_BYTES];
    frame_header(type, (uint32_t)n, header);
    size_t before = out->len;
    int r = buf_append(out, header, sizeof(header));
    if (r == 0)
        r = buf_append(out, payload, n);
    if (r < 0)
        out->len = before;
    return r;
}

static uint8_t *put_u32(uint8_t *at, uint32_t v)
{
    for (int shift = 24; shift >= 0; shift -= 8)
        *at++ = (uint8_t)(v >> shift);
    return at;
}

static uint8_t *put_u64(uint8_t *at, uint64_t v)
{
    return put_u32(put_u32(at, (uint32_t)(v >> 32)), (uint32_t)v);
}

static int need_exactly(struct span payload, size_t n, struct err *err)
{
    if (payload.len == n)
        return 0;
    return err_set(err, -EBADMSG, "payload has %zu bytes, must have %zu", payload.len, n);
}

/* Why a path may not be below the working directory; NULL when it may. */
static const char *path_fault(struct span path)
{
    if (path.len == 0)
        return "is empty";
    if (path.len > FRAME_PATH_MAX)
        return "is too long";
    if (memchr(path.ptr, '\0', path.len))
        return "has a NUL byte";
    for (size_t at = 0; at <= path.len;) {
        const char *start = path.ptr + at;
        const char *slash = memchr(start, '/', path.len - at);
        size_t n = slash ? (size_t)(slash - start) : path.len - at;
        if (n == 0)
            return "has an empty segment";
        if (start[0] == '.' && (n == 1 || (n == 2 && start[1] == '.')))
            return "has a \".\" or \"..\" segment";
        at += n + 1;
    }
    return NULL;
}

static int check_file(const struct frame_file *file, int code, struct err *err)
{
    const char *fault = path_fault(file->path);
    if (fault)
        return err_set(err, code, "file path \"%.*s\" %s",
                       (int)(file->path.len < 200 ? file->path.len : 200),
                       file->path.ptr ? file->path.ptr : "", fault);
    if (file->mode > 0777)
        return err_set(err, code, "file mode is %o, must be at most 777", (unsigned)file->mode);
    return 0;
}

int frame_file_encode(struct buf *out, enum frame_type type, const struct frame_file *file)
{
    int r = check_file(file, -EINVAL, NULL);
    if (r < 0)
        return r;
    uint8_t head[FRAME_HEADER_BYTES + FILE_FIXED_BYTES];
    frame_header(type, (uint32_t)(FILE_FIXED_BYTES + file->path.len), head);
    (void)put_u64(put_u32(head + FRAME_HEADER_BYTES, file->mode), file->size);
    size_t before = out->len;
    r = buf_append(out, head, sizeof(head));
    if (r == 0)
        r = buf_append(out, file->path.ptr, file->path.len);
    if (r < 0)
        out->len = before;
    return r;
}

int frame_file_decode(struct span payload, struct frame_file *ret, struct err *err)
{
    if (payload.len <= FILE_FIXED_BYTES)
        return err_set(err, -EBADMSG, "file payload has %zu bytes, must have at least %u",
                       payload.len, FILE_FIXED_BYTES + 1);
    struct frame_file file = {
        .mode = u32be(payload.ptr),
        .size = u64be(payload.ptr + 4),
        .path = {payload.ptr + FILE_FIXED_BYTES, payload.len - FILE_FIXED_BYTES},
    };
    int r = check_file(&file, -EBADMSG, err);
    if (r == 0)
        *ret = file;
    return r;
}

static bool is_possible_end(const struct frame_exit *e)
{
    if (e->signal == 0)
        return e->code >= 0 && e->code <= 255;
    return e->code == -1 && e->signal > 0 && e->signal <= SIGNAL_MAX;
}

int frame_exit_encode(struct buf *out, enum frame_type type, const struct frame_exit *e)
{
    if (!is_possible_end(e))
        return -EINVAL;
    uint8_t bytes[EXIT_BYTES];
    uint8_t *at = put_u32(bytes, (uint32_t)e->code);
    at = put_u32(at, (uint32_t)e->signal);
    at = put_u64(at, e->cpu_user_us);
    at = put_u64(at, e->cpu_system_us);
    at = put_u64(at, e->max_rss_bytes);
    at = put_u64(at, e->wall_us);
    assert(at == bytes + sizeof(bytes));
    return frame_encode(out, type, bytes, sizeof(bytes));
}

int frame_exit_decode(struct span payload, struct frame_exit *ret, struct err *err)
{
    int r = need_exactly(payload, EXIT_BYTES, err);
    if (r < 0)
        return r;
    struct frame_exit e = {
        .code = (int32_t)u32be(payload.ptr),
        .signal = (int32_t)u32be(payload.ptr + 4),
        .cpu_user_us = u64be(payload.ptr + 8),
        .cpu_system_us = u64be(payload.ptr + 16),
        .max_rss_bytes = u64be(payload.ptr + 24),
        .wall_us = u64be(payload.ptr + 32),
    };
    if (!is_possible_end(&e))
        return err_set(err, -EBADMSG, "no process ends with code %d and signal %d", e.code,
                       e.signal);
    *ret = e;
    return 0;
}

int frame_usage_encode(struct buf *out, const struct frame_usage *usage)
{
    uint8_t bytes[USAGE_BYTES];
    uint8_t *at = put_u64(bytes, usage->cpu_us);
    at = put_u64(at, usage->memory_peak_bytes);
    at = put_u64(at, usage->pids);
    assert(at == bytes + sizeof(bytes));
    return frame_encode(out, FRAME_USAGE, bytes, sizeof(bytes));
}

int frame_usage_decode(struct span payload, struct frame_usage *ret, struct err *err)
{
    int r = need_exactly(payload, USAGE_BYTES, err);
    if (r < 0)
        return r;
    *ret = (struct frame_usage){
        .cpu_us = u64be(payload.ptr),
        .memory_peak_bytes = u64be(payload.ptr + 8),
        .pids = u64be(payload.ptr + 16),
    };
    return 0;
}

int frame_fault_encode(struct buf *out, const struct frame_fault *fault)
{
    if (fault->error <= 0)
        return -EINVAL;
    size_t n = fault->text.len < FRAME_FAULT_TEXT_MAX ? fault->text.len : FRAME_FAULT_TEXT_MAX;
    uint8_t bytes[FAULT_FIXED_BYTES + FRAME_FAULT_TEXT_MAX];
    (void)put_u32(bytes, (uint32_t)fault->error);
    if (n > 0)
        memcpy(bytes + FAULT_FIXED_BYTES, fault->text.ptr, n);
    return frame_encode(out, FRAME_FAULT, bytes, FAULT_FIXED_BYTES + n);
}

int frame_fault_decode(struct span payload, struct frame_fault *ret, struct err *err)
{
    if (payload.len < FAULT_FIXED_BYTES || payload.len > FAULT_FIXED_BYTES + FRAME_FAULT_TEXT_MAX)
        return err_set(err, -EBADMSG, "fault payload has %zu bytes, must have %u to %u",
                       payload.len, FAULT_FIXED_BYTES, FAULT_FIXED_BYTES + FRAME_FAULT_TEXT_MAX);
    uint32_t error = u32be(payload.ptr);
    if (error == 0 || error > INT_MAX)
        return err_set(err, -EBADMSG, "fault error is %u, must be 1 to %d", error, INT_MAX);
    *ret = (struct frame_fault){
        .error = (int32_t)error,
        .text = {payload.ptr + FAULT_FIXED_BYTES, payload.len - FAULT_FIXED_BYTES},
    };
    return 0;
}

int frame_u8_encode(struct buf *out, enum frame_type type, uint8_t v)
{
    return frame_encode(out, type, &v, 1);
}

int frame_u8_decode(struct span payload, uint8_t *ret, struct err *err)
{
    int r = need_exactly(payload, 1, err);
    if (r == 0)
        *ret = (uint8_t)payload.ptr[0];
    return r;
}

int frame_u32_encode(struct buf *out, enum frame_type type, uint32_t v)
{
    uint8_t bytes[4];
    (void)put_u32(bytes, v);
    return frame_encode(out, type, bytes, sizeof(bytes));
}

int frame_u32_decode(struct span payload, uint32_t *ret, struct err *err)
{
    int r = need_exactly(payload, 4, err);
    if (r == 0)
        *ret = u32be(payload.ptr);
    return r;
}
