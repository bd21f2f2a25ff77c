/* Everything under /v1/jobs/:id. */
#include <errno.h>

#include "gateway_internal.h"
#include "json/json.h"

static bool is_uuid(struct span s)
{
    static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
    if (s.len != ID_UUID_LEN)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool is_hex = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
        if (form[i] == 'x' ? !is_hex : c != '-')
            return false;
    }
    return true;
}

static void not_found(struct request *r, struct answer *a, const char *what)
{
    struct shown id = shown(r->param.ptr, r->param.len);
    answer_error(a, MHD_HTTP_NOT_FOUND, "%s not found: %s", what, id.text);
}

static void ok(struct answer *a, unsigned status)
{
    answer_json_text(a, status, "{\"ok\":true}");
}

/* ---- control ---- */

static int control_append(struct request *r, const struct control *c)
{
    return is_uuid(r->param) ? bus_control_append(r->gateway->options.bus, r->param.ptr, c)
                             : BUS_NOT_FOUND;
}

static void control_answer(struct request *r, struct answer *a, int outcome, unsigned status)
{
    switch (outcome) {
    case 0:
    case BUS_ENDED: /* no effect, and no error */
        ok(a, status);
        break;
    case BUS_NOT_FOUND:
        not_found(r, a, "Job");
        break;
    case BUS_STDIN_CLOSED:
        answer_error(a, MHD_HTTP_CONFLICT, "Stdin is closed");
        break;
    case BUS_STDIN_RATE:
        answer_error(a, MHD_HTTP_TOO_MANY_REQUESTS, "Too many stdin frames");
        break;
    case BUS_CONTROL_FULL:
        answer_error(a, MHD_HTTP_TOO_MANY_REQUESTS, "Too many control messages are waiting");
        break;
    case BUS_STDIN_PENDING:
        answer_json_take(a, MHD_HTTP_TOO_MANY_REQUESTS,
                         json_pack("{s:s, s:i}", "error",
                                   "Stdin pending-byte cap exceeded: the program has not taken "
                                   "what it was sent before",
                                   "capBytes", BUS_STDIN_PENDING_MAX));
        answer_header(a, MHD_HTTP_HEADER_RETRY_AFTER, "1");
        break;
    default:
        answer_failure(a, outcome < 0 ? outcome : -EPROTO, NULL);
    }
}

static void control_simple(struct request *r, struct answer *a, enum control_type type,
                           unsigned status)
{
    control_answer(r, a, control_append(r, &(struct control){.type = type}), status);
}

void job_start(struct request *r, struct answer *a)
{
    control_simple(r, a, CONTROL_START, MHD_HTTP_ACCEPTED);
}

void job_stdin_close(struct request *r, struct answer *a)
{
    control_simple(r, a, CONTROL_STDIN_EOF, MHD_HTTP_OK);
}

void job_kill(struct request *r, struct answer *a)
{
    control_simple(r, a, CONTROL_KILL, MHD_HTTP_OK);
}

void job_stdin(struct request *r, struct answer *a)
{
    size_t len = 0;
    const char *text = json_text(json_object_get(r->json, "chunk"), &len);
    struct control c = {.type = CONTROL_STDIN, .data = {text, len}};
    control_answer(r, a, control_append(r, &c), MHD_HTTP_OK);
}

/* A frame that is refused counts against the rate all the same, as an empty one does; an unknown job
 * and a spent rate come before what is wrong with the body. */
void job_stdin_refused(struct request *r, struct answer *a)
{
    struct control c = {.type = CONTROL_STDIN, .data = {"", 0}};
    int outcome = control_append(r, &c);
    if (outcome == BUS_NOT_FOUND || outcome == BUS_STDIN_RATE || outcome < 0)
        control_answer(r, a, outcome, MHD_HTTP_OK);
}

/* ---- records ---- */

void job_status_get(struct request *r, struct answer *a)
{
    struct job_status s;
    int outcome =
        is_uuid(r->param) ? bus_status(r->gateway->options.bus, r->param.ptr, &s) : BUS_NOT_FOUND;
    if (outcome == 0)
        answer_json_take(a, MHD_HTTP_OK, job_status_json(&s));
    else if (outcome == BUS_NOT_FOUND)
        not_found(r, a, "Job");
    else
        answer_failure(a, outcome, NULL);
}

static void stored_get(struct request *r, struct answer *a, const char *what,
                       int (*read)(struct bus *, const char *, struct buf *))
{
    answer_json_text(a, MHD_HTTP_OK, "");
    int outcome =
        is_uuid(r->param) ? read(r->gateway->options.bus, r->param.ptr, &a->body) : BUS_NOT_FOUND;
    if (outcome == BUS_NOT_FOUND || outcome == BUS_OUTPUT_MISSING)
        not_found(r, a, what);
    else if (outcome != 0)
        answer_failure(a, outcome, NULL);
}

void job_output_get(struct request *r, struct answer *a)
{
    stored_get(r, a, "Job output", bus_output);
}

void job_report_get(struct request *r, struct answer *a)
{
    stored_get(r, a, "Job report", bus_report);
}
