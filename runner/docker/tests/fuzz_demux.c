/* The first byte chooses how large the pieces are; the rest is the stream. However it is cut, the
 * same bytes come out and the same error. */
#include <assert.h>
#include <string.h>

#include "../demux.h"
#include "base/buf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int run(const uint8_t *in, size_t n, size_t piece, size_t room, struct buf *out)
{
    struct demux m = {0};
    while (n > 0) {
        uint8_t made[256];
        struct demux_step step;
        size_t here = piece < n ? piece : n;
        int r = demux_feed(&m, in, here, made, room, &step);
        assert(step.used <= here && step.made <= room);
        assert(m.stderr_len <= DEMUX_STDERR_KEPT);
        if (buf_append(out, made, step.made) < 0)
            return 1;
        if (r < 0)
            return r;
        assert(step.used == here || step.made == room);
        in += step.used;
        n -= step.used;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct buf whole, cut;
    buf_init(&whole, size + 1);
    buf_init(&cut, size + 1);
    int a = run(data + 1, size - 1, size, 256, &whole);
    int b = run(data + 1, size - 1, (size_t)(data[0] & 15) + 1, (size_t)(data[0] >> 4) + 1, &cut);
    assert(a == b);
    assert(whole.len == cut.len);
    assert(whole.len == 0 || memcmp(whole.data, cut.data, whole.len) == 0);
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
