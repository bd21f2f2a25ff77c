/* gateway_internal.h - one gateway, one request, and the handlers of all routes. */
#ifndef GATEWAY_INTERNAL_H
#define GATEWAY_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include <microhttpd.h>

#include "answer.h"
#include "contract/contract.h"
#include "gateway/gateway.h"

struct request;
struct peer;

/* One path of the API; the table is in route.c. */
struct route {
    const char *method; /* GET routes answer HEAD too */
    const char *path;   /* ":name" matches one segment, not an empty one */
    void (*handle)(struct request *r, struct answer *a);
    /* Called when the body is not what schema says, with the answer already there; may say
     * something else. NULL: nothing to add. */
    void (*refused)(struct request *r, struct answer *a);
    bool (*is_enabled)(const struct gateway_options *o); /* NULL: always */
    enum contract_schema schema; /* of the JSON body; CONTRACT_COUNT: there is none */
    bool has_raw_body;           /* the handler wants the body's bytes itself */
};

/* One request. Lives from its headers to its answer's last byte. */
struct request {
    struct gateway *gateway;
    struct MHD_Connection *connection;
    const struct route *route;
    const char *method;
    char *path;        /* decoded, its segments NUL-terminated */
    struct span param; /* the ":name" segment; ptr is NUL-terminated, len tells of NULs inside */
    struct buf body;
    uint64_t discarded_bytes;
    bool too_large;
    json_t *json;          /* the body, checked by the route's schema */
    struct answer refusal; /* status != 0: decided at the headers, sent when the body is through */
    bool answered;
    bool is_upgraded; /* the hub has the socket; not counted any more */
};

/* A connection before and between its requests, for the deadline keeper. */
struct peer {
    struct peer *next, *prev;
    int fd;
    int64_t deadline_ms; /* DEADLINE_NEVER while we are answering or it was upgraded */
    bool is_cut;
};

struct gateway {
    struct gateway_options options;
    char *token;
    struct MHD_Daemon *daemon;
    uint16_t port;
    int quiesced_fd; /* the listening socket after gateway_quiesce(), else -1 */

    pthread_mutex_t hub_lock; /* held around every call of the hub */
    bool is_quiesced;         /* under hub_lock */

    pthread_mutex_t peers_lock;
    struct peer peers; /* list head; under peers_lock */
    pthread_t keeper;
    bool has_keeper;
    int keeper_stop; /* eventfd */

    atomic_uint requests; /* between their headers and their answer's last byte */
};

/* route.c */
enum route_outcome { ROUTE_FOUND, ROUTE_UNKNOWN };
/* Splits and decodes the path and finds the route; *ret_is_private says whether the path is behind
 * the bearer, known or not. Sets r->path, r->param and r->route. ROUTE_FOUND, ROUTE_UNKNOWN or
 * -ENOMEM. */
int route_find(struct request *r, const char *url, const char *method, bool *ret_is_private);

/* connection.c: the callbacks of the library */
enum MHD_Result connection_access(void *cls, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload_data,
                                  size_t *upload_data_size, void **con_cls);
void connection_completed(void *cls, struct MHD_Connection *connection, void **con_cls,
                          enum MHD_RequestTerminationCode why);
void connection_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode what);
size_t connection_unescape(void *cls, struct MHD_Connection *connection, char *s);
/* The value of a request header, or NULL. */
const char *request_header(const struct request *r, const char *name);
bool content_type_is(const char *value, const char *type);

/* keeper.c: cuts off connections that take too long over a request */
int keeper_start(struct gateway *g, struct err *err);
void keeper_stop(struct gateway *g);
struct peer *keeper_add(struct gateway *g, int fd); /* NULL: out of memory */
void keeper_remove(struct gateway *g, struct peer *p);
void keeper_set(struct gateway *g, struct peer *p, int64_t deadline_ms);

/* handlers */
void health_get(struct request *r, struct answer *a);
void ready_get(struct request *r, struct answer *a);
void metrics_get(struct request *r, struct answer *a);
void languages_get(struct request *r, struct answer *a);
void execute_post(struct request *r, struct answer *a);
void job_start(struct request *r, struct answer *a);
void job_stdin(struct request *r, struct answer *a);
void job_stdin_refused(struct request *r, struct answer *a);
void job_stdin_close(struct request *r, struct answer *a);
void job_kill(struct request *r, struct answer *a);
void job_status_get(struct request *r, struct answer *a);
void job_output_get(struct request *r, struct answer *a);
void job_report_get(struct request *r, struct answer *a);
void blobs_post(struct request *r, struct answer *a);
void channel_auth_post(struct request *r, struct answer *a);
bool channel_auth_is_enabled(const struct gateway_options *o);
void app_get(struct request *r, struct answer *a);
bool app_is_enabled(const struct gateway_options *o);

#endif
