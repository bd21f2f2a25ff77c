/* docker_internal.h - what the files of this library share. Not installed, not for other layers. */
#ifndef DOCKER_INTERNAL_H
#define DOCKER_INTERNAL_H

#include <pthread.h>

#include <curl/curl.h>

#include "docker/docker.h"

#define DOCKER_POOL_MAX    8U          /* idle connections that are kept */
#define DOCKER_ANSWER_MAX  (8U << 20)  /* bytes of an answer's body */
#define DOCKER_HEADERS_MAX (64U << 10) /* bytes of an answer's headers */
#define DOCKER_URL_MAX     (16U << 10)
#define DOCKER_VERSION_MAX 16U

struct docker {
    char *address;   /* as given, for messages */
    char *unix_path; /* NULL: TCP */
    char *host;      /* host[:port] of the URL and of the Host header */

    /* Tests only, set before any call: no call may take longer. 0 = as the table says. */
    int64_t timeout_ms_max;

    pthread_mutex_t lock; /* guards what follows */
    CURL *idle[DOCKER_POOL_MAX];
    unsigned idle_count;
    char version[DOCKER_VERSION_MAX]; /* "" = ask the daemon first */
};

/* One request. path starts with "/", is already percent-encoded and has no version. */
struct docker_call {
    const char *method;
    const char *path;
    const char *what; /* "start container abc": follows "cannot" in messages */
    int64_t timeout_ms;
    const void *body; /* NULL: none */
    size_t body_len;
    const char *content_type;
    bool once; /* must not be sent again on a second connection */
    bool unversioned;
};

struct docker_answer {
    long status;
    struct buf body;
    char api_version[DOCKER_VERSION_MAX]; /* of the Api-Version header */
};
void docker_answer_done(struct docker_answer *a);
static inline void docker_answer_done_slot(struct docker_answer *a)
{
    docker_answer_done(a);
}
#define cleanup_docker_answer CLEANUP(docker_answer_done_slot)

/* Sends it and fills *ret, whose body is initialised in any case. 0 for every status: -EHOSTDOWN,
 * -ETIMEDOUT, -EMSGSIZE (the answer), -ENOMEM otherwise. */
int docker_exchange(struct docker *d, const struct docker_call *call, struct docker_answer *ret,
                    struct err *err);

/* The same, with a status of 2xx or 304 as success and every other one as an error with the
 * daemon's words. ret_json may be NULL; a body that is not JSON is -EBADMSG. */
int docker_request(struct docker *d, const struct docker_call *call, json_t **ret_json,
                   struct err *err);

/* The errno for a status, with the message of a body like {"message":"..."} in the words. */
int docker_status_error(const char *what, long status, struct span body, struct err *err);

/* Takes an easy handle that points at the daemon, with every option at its start value. */
int docker_handle_take(struct docker *d, CURL **ret, struct err *err);
void docker_handle_give(struct docker *d, CURL *handle);
/* The words for a failed transfer; forgets the version when the daemon was not there. */
int docker_transfer_error(struct docker *d, CURL *handle, CURLcode code, const char *what,
                          struct err *err);

/* Copies the negotiated version, after asking for it when it is not known. */
int docker_version(struct docker *d, char ret[static DOCKER_VERSION_MAX], struct err *err);
void docker_version_forget(struct docker *d);
/* Whether the daemon refused a request because of its version and another version is to be had:
 * then it did nothing, and the request may be sent again. */
bool docker_version_changed(struct docker *d, const char *used, const struct docker_answer *a);

int64_t docker_timeout(const struct docker *d, int64_t ms);

/* Appends text as one piece of a path or a query value: all but unreserved characters encoded. */
int docker_append_encoded(struct buf *b, const char *text);
/* Appends the query "filters={"label":[...]}". */
int docker_append_label_filter(struct buf *b, const char *const *labels);

/* Time-outs, in milliseconds. Removal and start wait for the kernel and for other removals. */
enum {
    DOCKER_PING_MS = 5000,
    DOCKER_READ_MS = 10000, /* inspect, list */
    DOCKER_INFO_MS = 20000,
    DOCKER_KILL_MS = 20000,
    DOCKER_WORK_MS = 60000, /* create, start, remove, archive */
    DOCKER_ATTACH_MS = 20000,
};

#endif
