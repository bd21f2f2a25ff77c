#include "answer.h"

#include <errno.h>
#include <stdarg.h>

#include "base/log.h"
#include "base/utf8.h"
#include "json/json.h"

#define JSON_TYPE         "application/json"
#define TEXT_TYPE         "text/plain; charset=UTF-8"
#define ANSWER_BYTES_MAX  (256 << 20) /* a stored output is bounded by its own budget, far below */
#define MESSAGE_BYTES_MAX 1024

void answer_init(struct answer *a)
{
    *a = (struct answer){0};
    buf_init(&a->body, ANSWER_BYTES_MAX);
}

void answer_done(struct answer *a)
{
    buf_done(&a->body);
    if (a->switching)
        MHD_destroy_response(a->switching);
    a->switching = NULL;
}

static void answer_begin(struct answer *a, unsigned status, const char *content_type)
{
    buf_clear(&a->body);
    a->headers_len = 0;
    a->status = status;
    a->content_type = content_type;
}

void answer_header(struct answer *a, const char *name, const char *value)
{
    if (a->headers_len < ANSWER_HEADERS_MAX)
        a->headers[a->headers_len++] = (struct answer_header){name, value};
}

void answer_failure(struct answer *a, int code, const struct err *err)
{
    struct err ours = {0};
    if (!err || err->code == 0)
        (void)err_set(&ours, code, "answer a request"); /* only the text is wanted */
    log_error("gateway.request_failed", LOG_ERR(err && err->code != 0 ? err : &ours));
    answer_begin(a, MHD_HTTP_INTERNAL_SERVER_ERROR, JSON_TYPE);
    buf_done(&a->body); /* answer_send() has the text at hand, without memory */
}

void answer_text(struct answer *a, unsigned status, const char *content_type, const char *text)
{
    answer_begin(a, status, content_type);
    int r = buf_append_str(&a->body, text);
    if (r < 0)
        answer_failure(a, r, NULL);
}

void answer_json_text(struct answer *a, unsigned status, const char *json)
{
    answer_text(a, status, JSON_TYPE, json);
}

void answer_not_found(struct answer *a)
{
    answer_text(a, MHD_HTTP_NOT_FOUND, TEXT_TYPE, "404 Not Found");
}

void answer_json_take(struct answer *a, unsigned status, json_t *value)
{
    answer_begin(a, status, JSON_TYPE);
    int r = value ? json_print(&a->body, value) : -ENOMEM;
    json_decref(value);
    if (r < 0)
        answer_failure(a, r, NULL);
}

static json_t *message_json(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));
static json_t *message_json(const char *fmt, va_list args)
{
    char text[MESSAGE_BYTES_MAX];
    int n = vsnprintf(text, sizeof(text), fmt, args);
    if (n < 0)
        return NULL;
    size_t len = strlen(text);
    return json_string_lossy(text, len - utf8_incomplete_tail(text, len));
}

void answer_error(struct answer *a, unsigned status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    json_t *message = message_json(fmt, args);
    va_end(args);
    bool later = status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE;
    json_t *body = later ? json_pack("{s:o, s:i}", "error", message, "retryAfterMs", RETRY_AFTER_MS)
                         : json_pack("{s:o}", "error", message);
    answer_json_take(a, status, body);
    if (later && a->status == status)
        answer_header(a, MHD_HTTP_HEADER_RETRY_AFTER, "1");
}

void answer_violations_take(struct answer *a, json_t *details)
{
    answer_json_take(a, MHD_HTTP_BAD_REQUEST,
                     json_pack("{s:s, s:o}", "error", "Validation error", "details", details));
}

void answer_violation(struct answer *a, const char *path, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    json_t *message = message_json(fmt, args);
    va_end(args);
    answer_violations_take(a, json_pack("[{s:s, s:o}]", "path", path, "message", message));
}

static struct MHD_Response *answer_response(struct answer *a)
{
    if (a->switching)
        return ptr_take(&a->switching);
    struct MHD_Response *response;
    if (a->body.len > 0) {
        response =
            MHD_create_response_from_buffer(a->body.len, a->body.data, MHD_RESPMEM_MUST_FREE);
        if (response)
            buf_init(&a->body, ANSWER_BYTES_MAX); /* the response owns the bytes now */
        return response;
    }
    static char text[] = "{\"error\":\"Internal server error\"}"; /* only read */
    bool failed = a->status == MHD_HTTP_INTERNAL_SERVER_ERROR;
    return MHD_create_response_from_buffer(failed ? sizeof(text) - 1 : 0, text,
                                           MHD_RESPMEM_PERSISTENT);
}

enum MHD_Result answer_send(struct answer *a, struct MHD_Connection *connection)
{
    struct MHD_Response *response = answer_response(a);
    if (!response)
        return MHD_NO;
    enum MHD_Result r = MHD_YES;
    if (a->content_type)
        r = MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, a->content_type);
    for (size_t i = 0; r == MHD_YES && i < a->headers_len; i++)
        r = MHD_add_response_header(response, a->headers[i].name, a->headers[i].value);
    if (r == MHD_YES && a->close)
        r = MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    if (r == MHD_YES)
        r = MHD_queue_response(connection, a->status, response);
    MHD_destroy_response(response);
    return r;
}

struct shown shown(const char *bytes, size_t n)
{
    struct shown s = {0};
    size_t kept = n < SHOWN_BYTES ? n : SHOWN_BYTES;
    if (kept < n)
        kept -= utf8_incomplete_tail(bytes, kept);
    memcpy(s.text, bytes, kept);
    for (size_t i = 0; i < kept; i++)
        if ((unsigned char)s.text[i] < ' ' || s.text[i] == 0x7f)
            s.text[i] = '?';
    if (kept < n)
        memcpy(s.text + kept, "...", 3);
    return s;
}
