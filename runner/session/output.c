#include "output.h"

#include <errno.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "frames/frames.h"

void output_init(struct output *o, struct bus *bus, const struct fence *fence, bool collect,
                 uint64_t budget_bytes)
{
    *o = (struct output){.bus = bus, .fence = fence, .collect = collect, .budget = budget_bytes};
    buf_init(&o->joined, OUTPUT_JOIN_BYTES + FRAME_OUTPUT_CHUNK + sizeof(o->tail[0]));
    for (int i = 0; i < 2; i++) {
        buf_init(&o->collected[i], budget_bytes);
        buf_init(&o->compile_collected[i], budget_bytes);
    }
    buf_init(&o->compile_all, budget_bytes);
}

void output_done(struct output *o)
{
    buf_done(&o->joined);
    for (int i = 0; i < 2; i++) {
        buf_done(&o->collected[i]);
        buf_done(&o->compile_collected[i]);
    }
    buf_done(&o->compile_all);
}

static enum event_type event_of(const struct output *o, enum output_stream stream)
{
    if (o->compile)
        return EVENT_COMPILE_OUTPUT;
    return stream == OUTPUT_STDOUT ? EVENT_STDOUT : EVENT_STDERR;
}

static int emit(struct output *o, enum output_stream stream, struct span bytes)
{
    while (bytes.len > 0) {
        size_t n = event_fit(bytes.ptr, bytes.len, o->seq + 1);
        struct event e = {.type = event_of(o, stream), .seq = o->seq + 1, .data = {bytes.ptr, n}};
        int r = bus_event_append(o->bus, o->fence, &e, NULL);
        if (r == -ENOSPC) { /* the log is full: the same as a spent budget */
            o->budget = 0;
            o->truncated = o->truncated || !o->compile;
            return 0;
        }
        if (r != 0)
            return r;
        o->seq++;
        if (!o->compile)
            o->counts[stream].kept += n;
        bytes.ptr += n;
        bytes.len -= n;
    }
    return 0;
}

int output_flush(struct output *o)
{
    if (o->joined.len == 0)
        return 0;
    int r = emit(o, o->joined_stream, buf_span(&o->joined));
    buf_clear(&o->joined);
    o->last_event_ms = clock_now_ms();
    return r;
}

int64_t output_deadline_ms(const struct output *o)
{
    return o->joined.len == 0 ? DEADLINE_NEVER : o->last_event_ms + OUTPUT_JOIN_MS;
}

static int join(struct output *o, enum output_stream stream, struct span bytes)
{
    if (bytes.len == 0)
        return 0;
    int r = 0;
    if (stream != o->joined_stream)
        r = output_flush(o);
    o->joined_stream = stream;
    if (r == 0)
        r = buf_append(&o->joined, bytes.ptr, bytes.len);
    if (r == 0 && (o->joined.len >= OUTPUT_JOIN_BYTES || output_deadline_ms(o) <= clock_now_ms()))
        r = output_flush(o);
    return r;
}

static int collect(struct output *o, enum output_stream stream, struct span bytes)
{
    if (!o->collect)
        return 0;
    int r = buf_append(o->compile ? &o->compile_collected[stream] : &o->collected[stream],
                       bytes.ptr, bytes.len);
    if (r == 0 && o->compile)
        r = buf_append(&o->compile_all, bytes.ptr, bytes.len);
    return r;
}

/* Puts what waited in front of the new bytes and keeps back what is incomplete at their end. */
static int whole_code_points(struct output *o, enum output_stream stream, struct span bytes)
{
    cleanup_buf struct buf text;
    buf_init(&text, bytes.len + sizeof(o->tail[0]));
    int r = buf_append(&text, o->tail[stream], o->tail_len[stream]);
    if (r == 0)
        r = buf_append(&text, bytes.ptr, bytes.len);
    if (r < 0)
        return r;
    size_t back = utf8_incomplete_tail(text.data, text.len);
    memcpy(o->tail[stream], text.data + text.len - back, back);
    o->tail_len[stream] = back;
    return join(o, stream, (struct span){text.data, text.len - back});
}

int output_add(struct output *o, enum output_stream stream, struct span bytes, bool *ret_kept)
{
    *ret_kept = false;
    if (!o->compile)
        o->counts[stream].bytes += bytes.len;
    bool cut = bytes.len > o->budget;
    struct span kept = {bytes.ptr, cut ? (size_t)o->budget : bytes.len};
    o->budget -= kept.len;
    int r = 0;
    if (kept.len > 0) {
        *ret_kept = true;
        r = collect(o, stream, kept);
        if (r == 0)
            r = whole_code_points(o, stream, kept);
    }
    if (cut) {
        o->tail_len[stream] = 0; /* its rest will never come */
        o->truncated = o->truncated || !o->compile;
    }
    return r;
}

int output_end(struct output *o)
{
    int r = 0;
    for (int i = 0; i < 2; i++) {
        size_t n = o->tail_len[i];
        o->tail_len[i] = 0;
        if (r == 0)
            r = join(o, (enum output_stream)i, (struct span){o->tail[i], n});
    }
    return r == 0 ? output_flush(o) : r;
}

int output_stage(struct output *o, bool compile, uint64_t budget_bytes)
{
    int r = output_end(o);
    o->compile = compile;
    o->budget = budget_bytes;
    return r;
}
