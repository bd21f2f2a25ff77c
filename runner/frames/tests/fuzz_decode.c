/* Any bytes as a stream in either direction (the first byte chooses): what is taken never exceeds
 * what is there, and decoding then encoding is the identity on frames and on every payload. */
#include <assert.h>
#include <errno.h>

#include "frames/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The first number of the payload, if it has one. */
static uint32_t first_u32(struct span p)
{
    return p.len >= 4 ? u32be(p.ptr) : 0;
}

/* Encodes again what decodes; -EBADMSG when it does not. */
static int again(const struct frame *frame, struct buf *out)
{
    struct span p = frame->payload;
    struct frame_file file;
    struct frame_exit end;
    struct frame_usage usage;
    struct frame_fault fault;
    uint8_t narrow;
    uint32_t wide;
    switch (frame->type) {
    case FRAME_FILE:
    case FRAME_ARTIFACT:
        return frame_file_decode(p, &file, NULL) < 0 ? -EBADMSG
                                                     : frame_file_encode(out, frame->type, &file);
    case FRAME_COMPILED:
    case FRAME_EXITED:
        return frame_exit_decode(p, &end, NULL) < 0 ? -EBADMSG
                                                    : frame_exit_encode(out, frame->type, &end);
    case FRAME_USAGE:
        return frame_usage_decode(p, &usage, NULL) < 0 ? -EBADMSG : frame_usage_encode(out, &usage);
    case FRAME_FAULT:
        return frame_fault_decode(p, &fault, NULL) < 0 ? -EBADMSG : frame_fault_encode(out, &fault);
    case FRAME_SIGNAL:
    case FRAME_STAGE:
        assert(frame_u8_decode(p, &narrow, NULL) == 0);
        return frame_u8_encode(out, frame->type, narrow);
    case FRAME_READY:
    case FRAME_STDIN_TAKEN:
    case FRAME_COLLECTED:
        assert(frame_u32_decode(p, &wide, NULL) == 0);
        assert(wide == first_u32(p));
        return frame_u32_encode(out, frame->type, wide);
    case FRAME_SPEC: /* has a target of its own */
    case FRAME_DATA:
    case FRAME_START:
    case FRAME_STDIN:
    case FRAME_STDIN_EOF:
    case FRAME_RESIZE:
    case FRAME_KILL:
    case FRAME_COLLECT:
    case FRAME_STDOUT:
    case FRAME_STDERR:
        return frame_encode(out, frame->type, p.ptr, p.len);
    }
    abort(); /* the decoder let an unknown type through */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum frame_direction direction = data[0] & 1 ? FRAME_FROM_INIT : FRAME_TO_INIT;
    struct span in = {(const char *)data + 1, size - 1};
    struct frame frame;
    size_t used;
    while (frame_decode(in, direction, &frame, &used, NULL) == 0) {
        assert(used >= FRAME_HEADER_BYTES && used <= in.len);
        assert(frame.payload.ptr == in.ptr + FRAME_HEADER_BYTES);
        cleanup_buf struct buf out;
        buf_init(&out, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
        int r = again(&frame, &out);
        assert(r == 0 || r == -EBADMSG);
        assert(r < 0 || (out.len == used && memcmp(out.data, in.ptr, used) == 0));
        in = (struct span){in.ptr + used, in.len - used};
    }
    return 0;
}
