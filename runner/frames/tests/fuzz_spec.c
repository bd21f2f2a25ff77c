/* Any bytes as a SPEC payload: what decodes can be encoded, and decodes to the same again. */
#include <assert.h>

#include "frames/frames.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    cleanup_frame_spec struct frame_spec first = {0};
    if (frame_spec_decode((struct span){(const char *)data, size}, &first, NULL) < 0)
        return 0;
    cleanup_buf struct buf one;
    buf_init(&one, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
    assert(frame_spec_encode(&one, &first) == 0);

    struct frame frame;
    size_t used;
    assert(frame_decode(buf_span(&one), FRAME_TO_INIT, &frame, &used, NULL) == 0);
    cleanup_frame_spec struct frame_spec second = {0};
    assert(frame_spec_decode(frame.payload, &second, NULL) == 0);
    cleanup_buf struct buf two;
    buf_init(&two, FRAME_PAYLOAD_MAX + FRAME_HEADER_BYTES);
    assert(frame_spec_encode(&two, &second) == 0);
    assert(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
    return 0;
}
