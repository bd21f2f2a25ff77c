/* fake_daemon.h - an HTTP server on a unix socket, in a thread of the test program.
 *
 * A handler answers each request with bytes of its own choice. Connections stay open unless the
 * answer says otherwise. The handler runs in the server's thread, one request at a time. */
#ifndef TESTS_FAKE_DAEMON_H
#define TESTS_FAKE_DAEMON_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct fake_request {
    const char *method;
    const char *path; /* with the query */
    struct span body;
    unsigned connection; /* counts from 1 */
};

enum fake_then {
    FAKE_KEEP,  /* wait for the next request */
    FAKE_CLOSE, /* hang up after the bytes */
    FAKE_HOLD,  /* say nothing more, but stay connected */
    FAKE_ECHO,  /* send back each byte that comes in as a stdout frame, until the end of input */
};

struct fake_answer {
    struct buf bytes; /* as they go over the wire */
    /* The bytes from here on are sent when the client has taken those before (0: all at once). */
    size_t split_at;
    enum fake_then then;
};

/* Appends a whole answer with this status and JSON body. */
void fake_json(struct fake_answer *a, int status, const char *json);

typedef void (*fake_handler)(void *user, const struct fake_request *q, struct fake_answer *a);

struct fake_daemon;

/* Answers GET /_ping itself, with version, when version is not NULL. */
struct fake_daemon *fake_start(const char *version, fake_handler handler, void *user);
const char *fake_address(const struct fake_daemon *f); /* unix:///... */
/* Hangs up on everybody and listens no more; fake_up() starts again at the same address. */
void fake_down(struct fake_daemon *f);
void fake_up(struct fake_daemon *f, const char *version);
void fake_stop(struct fake_daemon *f); /* and frees it */

/* What was asked so far, "METHOD path\n" each; a copy that the caller frees. */
char *fake_log(struct fake_daemon *f);
unsigned fake_count(struct fake_daemon *f, const char *line_start); /* lines that start like this */

#endif
