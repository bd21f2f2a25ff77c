#include "demux.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"

enum { TYPE_STDIN, TYPE_STDOUT, TYPE_STDERR };

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Once the whole header is here; what can be told earlier is not worth the second check. */
static int judge_header(struct demux *m)
{
    const uint8_t *h = m->header;
    if (h[0] > TYPE_STDERR || h[1] != 0 || h[2] != 0 || h[3] != 0)
        return -EBADMSG;
    m->left = u32be(h + 4);
    if (m->left == 0)
        m->have = 0;
    return 0;
}

static void keep_stderr(struct demux *m, const uint8_t *bytes, size_t n)
{
    n = smaller(n, sizeof(m->stderr_text) - m->stderr_len);
    memcpy(m->stderr_text + m->stderr_len, bytes, n);
    m->stderr_len += n;
}

static void count_down(struct demux *m, size_t n)
{
    m->left -= (uint32_t)n;
    if (m->left == 0)
        m->have = 0;
}

int demux_feed(struct demux *m, const uint8_t *in, size_t n, uint8_t *out, size_t out_size,
               struct demux_step *ret)
{
    struct demux_step step = {0, 0};
    int r = 0;
    while (step.used < n && r == 0) {
        size_t here = n - step.used;
        if (m->have < DEMUX_HEADER_BYTES) {
            size_t take = smaller(here, DEMUX_HEADER_BYTES - m->have);
            memcpy(m->header + m->have, in + step.used, take);
            m->have += (unsigned)take;
            step.used += take;
            if (m->have == DEMUX_HEADER_BYTES)
                r = judge_header(m);
            continue;
        }
        size_t take = smaller(here, m->left);
        if (m->header[0] == TYPE_STDOUT) {
            take = smaller(take, out_size - step.made);
            if (take == 0)
                break;
            memcpy(out + step.made, in + step.used, take);
            step.made += take;
        } else if (m->header[0] == TYPE_STDERR) {
            keep_stderr(m, in + step.used, take);
        }
        step.used += take;
        count_down(m, take);
    }
    *ret = step;
    return r;
}

uint32_t demux_direct(const struct demux *m)
{
    return m->have == DEMUX_HEADER_BYTES && m->header[0] == TYPE_STDOUT ? m->left : 0;
}

void demux_direct_took(struct demux *m, size_t n)
{
    count_down(m, n);
}

int demux_is_between(const struct demux *m)
{
    return m->have == 0;
}
