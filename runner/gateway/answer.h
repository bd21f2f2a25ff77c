/* answer.h - what a handler says: a status, a body, a few headers.
 *
 * Handlers fill one; connection.c sends it. An answer that could not be built (no memory) becomes
 * the 500 every internal failure becomes. */
#ifndef GATEWAY_ANSWER_H
#define GATEWAY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>
#include <microhttpd.h>

#include "base/buf.h"
#include "base/err.h"

#define RETRY_AFTER_MS     1000
#define ANSWER_HEADERS_MAX 4

struct answer_header {
    const char *name, *value; /* static */
};

struct answer {
    unsigned status; /* 0: nothing said yet */
    const char *content_type;
    struct buf body;
    struct answer_header headers[ANSWER_HEADERS_MAX];
    size_t headers_len;
    bool close;                     /* the connection ends with this answer */
    struct MHD_Response *switching; /* status 101; owned */
};

void answer_init(struct answer *a);
void answer_done(struct answer *a);
static inline void answer_done_slot(struct answer *a)
{
    answer_done(a);
}
#define cleanup_answer CLEANUP(answer_done_slot)

/* Each replaces what was said before. */
void answer_text(struct answer *a, unsigned status, const char *content_type, const char *text);
/* JSON text as it is. */
void answer_json_text(struct answer *a, unsigned status, const char *json);
void answer_json_take(struct answer *a, unsigned status, json_t *value); /* NULL: out of memory */
/* {"error": "..."}; 429 and 503 also get retryAfterMs and the header. Any bytes may be formatted
 * in: what is not UTF-8 becomes U+FFFD. */
void answer_error(struct answer *a, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* {"error": "Validation error", "details": [...]}; owns details. */
void answer_violations_take(struct answer *a, json_t *details);
/* The same with one violation. */
void answer_violation(struct answer *a, const char *path, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void answer_not_found(struct answer *a); /* no such route */
/* Every failure of ours: logged here, once; the client learns nothing but that it happened. */
void answer_failure(struct answer *a, int code, const struct err *err);
void answer_header(struct answer *a, const char *name, const char *value);

/* Queues it; the body is handed over. */
enum MHD_Result answer_send(struct answer *a, struct MHD_Connection *connection);

/* A user's text for an error message: at most SHOWN_BYTES of it, not cutting a code point, with
 * control bytes replaced. */
#define SHOWN_BYTES 100
struct shown {
    char text[SHOWN_BYTES + 4];
};
struct shown shown(const char *bytes, size_t n);

#endif
