#include "docker/docker.h"

#include <errno.h>
#include <inttypes.h>

#include "address.h"
#include "base/fd.h"
#include "base/parse.h"
#include "docker_internal.h"

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_state;

static void start_curl(void)
{
    curl_state = curl_global_init(CURL_GLOBAL_DEFAULT);
}

int docker_new(const char *address, struct docker **ret, struct err *err)
{
    (void)pthread_once(&curl_once, start_curl); /* cannot fail with a valid control */
    if (curl_state != CURLE_OK)
        return err_say(err, -ENOMEM, "start libcurl: %s", curl_easy_strerror(curl_state));

    struct docker_address where;
    int r = docker_address_parse(address, &where, err);
    if (r < 0)
        return r;

    struct docker *d = calloc(1, sizeof(*d));
    char *name = strdup(address);
    if (!d || !name || pthread_mutex_init(&d->lock, NULL) != 0) {
        free(name);
        free(d);
        docker_address_done(&where);
        return err_set(err, -ENOMEM, "make a Docker client");
    }
    d->address = name;
    d->unix_path = where.unix_path;
    d->host = where.host;
    *ret = d;
    return 0;
}

void docker_free(struct docker *d)
{
    if (!d)
        return;
    for (unsigned i = 0; i < d->idle_count; i++)
        curl_easy_cleanup(d->idle[i]);
    (void)pthread_mutex_destroy(&d->lock); /* nobody holds it any more */
    free(d->unix_path);
    free(d->host);
    free(d->address);
    free(d);
}

int64_t docker_timeout(const struct docker *d, int64_t ms)
{
    return d->timeout_ms_max > 0 && d->timeout_ms_max < ms ? d->timeout_ms_max : ms;
}

/* curl's own way to open sockets leaves them open in the programs we start. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *a)
{
    (void)user;
    (void)purpose;
    int fd = fd_socket(a->family, a->socktype, a->protocol);
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

/* A handle is set anew for each call: an option left from the call before would be a trap. The
 * connection stays with the handle. */
static int prepare_handle(const struct docker *d, CURL *h)
{
    curl_easy_reset(h);
    bool ok = curl_easy_setopt(h, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, open_socket) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_PATH_AS_IS, 1L) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_PROXY, "") == CURLE_OK && /* whatever http_proxy says */
              curl_easy_setopt(h, CURLOPT_TCP_NODELAY, 1L) == CURLE_OK;
    if (ok && d->unix_path)
        ok = curl_easy_setopt(h, CURLOPT_UNIX_SOCKET_PATH, d->unix_path) == CURLE_OK;
    return ok ? 0 : -ENOMEM;
}

int docker_handle_take(struct docker *d, CURL **ret, struct err *err)
{
    CURL *h = NULL;
    (void)pthread_mutex_lock(&d->lock);
    if (d->idle_count > 0)
        h = d->idle[--d->idle_count];
    (void)pthread_mutex_unlock(&d->lock);

    if (!h)
        h = curl_easy_init();
    if (!h || prepare_handle(d, h) < 0) {
        curl_easy_cleanup(h);
        return err_set(err, -ENOMEM, "make a connection to the Docker daemon");
    }
    *ret = h;
    return 0;
}

void docker_handle_give(struct docker *d, CURL *handle)
{
    curl_easy_reset(handle); /* no pointer of this call survives it */
    (void)pthread_mutex_lock(&d->lock);
    if (d->idle_count < DOCKER_POOL_MAX) {
        d->idle[d->idle_count++] = handle;
        handle = NULL;
    }
    (void)pthread_mutex_unlock(&d->lock);
    curl_easy_cleanup(handle);
}

/* --- version --------------------------------------------------------------------------------- */

/* "1.41" as 1041; 0 for what is no version. */
static unsigned version_number(const char *s)
{
    uint64_t major, minor;
    const char *dot = strchr(s, '.');
    if (!dot || parse_u64(s, (size_t)(dot - s), 0, 999, &major) < 0 ||
        parse_u64(dot + 1, strlen(dot + 1), 0, 999, &minor) < 0)
        return 0;
    return (unsigned)(major * 1000 + minor);
}

static int choose_version(const struct docker *d, const char *theirs,
                          char ret[static DOCKER_VERSION_MAX], struct err *err)
{
    unsigned number = version_number(theirs);
    if (number == 0)
        return err_say(err, -EPROTO,
                       "what answers at %s is no Docker daemon: it names no API version",
                       d->address);
    if (number < version_number(DOCKER_API_MIN))
        return err_say(err, -ENOTSUP, "the Docker daemon at %s has API %s; at least %s is needed",
                       d->address, theirs, DOCKER_API_MIN);
    bool newer = number > version_number(DOCKER_API_MAX);
    (void)snprintf(ret, DOCKER_VERSION_MAX, "%s", newer ? DOCKER_API_MAX : theirs); /* both fit */
    return 0;
}

/* Asks, and keeps what was chosen. */
static int negotiate(struct docker *d, char ret[static DOCKER_VERSION_MAX], struct err *err)
{
    const struct docker_call call = {
        .method = "GET",
        .path = "/_ping",
        .what = "ask for the API version",
        .timeout_ms = DOCKER_PING_MS,
        .unversioned = true,
    };
    cleanup_docker_answer struct docker_answer answer;
    int r = docker_exchange(d, &call, &answer, err);
    if (r < 0)
        return r;
    if (answer.status != 200)
        return docker_status_error(call.what, answer.status, buf_span(&answer.body), err);

    char version[DOCKER_VERSION_MAX];
    r = choose_version(d, answer.api_version, version, err);
    if (r < 0) {
        docker_version_forget(d);
        return r;
    }
    (void)pthread_mutex_lock(&d->lock);
    memcpy(d->version, version, sizeof(version));
    (void)pthread_mutex_unlock(&d->lock);
    memcpy(ret, version, sizeof(version));
    return 0;
}

int docker_version(struct docker *d, char ret[static DOCKER_VERSION_MAX], struct err *err)
{
    char known[DOCKER_VERSION_MAX];
    (void)pthread_mutex_lock(&d->lock);
    memcpy(known, d->version, sizeof(known));
    (void)pthread_mutex_unlock(&d->lock);
    if (known[0] == '\0')
        return negotiate(d, ret, err);
    memcpy(ret, known, sizeof(known));
    return 0;
}

void docker_version_forget(struct docker *d)
{
    (void)pthread_mutex_lock(&d->lock);
    d->version[0] = '\0';
    (void)pthread_mutex_unlock(&d->lock);
}

bool docker_version_changed(struct docker *d, const char *used, const struct docker_answer *a)
{
    if (a->status != 400 || a->body.len == 0 || !strstr(a->body.data, "client version"))
        return false;
    char now[DOCKER_VERSION_MAX];
    docker_version_forget(d);
    return docker_version(d, now, NULL) == 0 && strcmp(now, used) != 0;
}

int docker_ping(struct docker *d, struct err *err)
{
    char version[DOCKER_VERSION_MAX];
    return negotiate(d, version, err);
}

/* --- pieces of URLs -------------------------------------------------------------------------- */

int docker_append_encoded(struct buf *b, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    int r = 0;
    for (const char *p = text; *p && r == 0; p++)
        r = strchr(plain, *p) ? buf_append(b, p, 1)
                              : buf_appendf(b, "%%%02X", (unsigned)(unsigned char)*p);
    return r;
}

int docker_append_label_filter(struct buf *b, const char *const *labels)
{
    json_t *list = json_array();
    int r = list ? 0 : -ENOMEM;
    for (const char *const *l = labels; r == 0 && *l; l++)
        r = json_array_append_new(list, json_string(*l)) == 0 ? 0 : -ENOMEM;
    json_t *filters = r == 0 ? json_pack("{s:O}", "label", list) : NULL;
    char *text = filters ? json_dumps(filters, JSON_COMPACT) : NULL;
    if (!text)
        r = -ENOMEM;
    if (r == 0)
        r = buf_append_str(b, "filters=");
    if (r == 0)
        r = docker_append_encoded(b, text);
    free(text);
    json_decref(filters);
    json_decref(list);
    return r;
}
