#include <inttypes.h>

#include "base/utf8.h"
#include "contract/job.h"

/* An output payload is HEAD chunk MIDDLE seq TAIL. */
#define HEAD   "{\"chunk\":\""
#define MIDDLE "\",\"seq\":"
#define TAIL   "}"

const char *event_type_name(enum event_type t)
{
    switch (t) {
    case EVENT_STAGE:
        return "stage";
    case EVENT_STDOUT:
        return "stdout";
    case EVENT_STDERR:
        return "stderr";
    case EVENT_COMPILE_OUTPUT:
        return "compile_output";
    case EVENT_REPORT:
        return "report";
    case EVENT_RESULT:
        return "result";
    case EVENT_ARTIFACT:
        return "artifact";
    }
    return NULL;
}

static size_t decimal_digits(uint64_t v)
{
    size_t n = 1;
    for (; v >= 10; v /= 10)
        n++;
    return n;
}

/* How long buf_append_json_text() makes the code point that takes k bytes. */
static size_t escaped_len(uint32_t cp, size_t k)
{
    switch (cp) {
    case '"':
    case '\\':
    case '\b':
    case '\f':
    case '\n':
    case '\r':
    case '\t':
        return 2;
    case 0x7f:
        return 6;
    default:
        return cp < 0x20 ? 6 : k;
    }
}

size_t event_fit(const char *bytes, size_t n, uint64_t seq)
{
    size_t room = EVENT_PAYLOAD_MAX - (sizeof(HEAD MIDDLE TAIL) - 1) - decimal_digits(seq);
    size_t at = 0;
    while (at < n) {
        uint32_t cp = 0;
        int k = utf8_next(bytes + at, n - at, &cp);
        size_t need = k > 0 ? escaped_len(cp, (size_t)k) : 3; /* 3: U+FFFD */
        if (need > room)
            break;
        room -= need;
        at += k > 0 ? (size_t)k : k < 0 ? (size_t)-k : n - at;
    }
    return at;
}

static int output_payload(struct buf *out, const struct event *e)
{
    int r = buf_append_str(out, HEAD);
    if (r == 0)
        r = buf_append_json_text(out, e->data.ptr, e->data.len);
    if (r == 0)
        r = buf_appendf(out, MIDDLE "%" PRIu64 TAIL, e->seq);
    return r;
}

int event_payload(struct buf *out, const struct event *e)
{
    if (!event_is_output(e->type))
        return buf_append(out, e->data.ptr, e->data.len);
    size_t before = out->len;
    int r = output_payload(out, e);
    if (r < 0 && out->data) {
        out->len = before;
        out->data[before] = '\0';
    }
    return r;
}
