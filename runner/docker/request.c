#include <errno.h>
#include <inttypes.h>

#include "docker_internal.h"

#define REASON_MAX 300 /* bytes of the daemon's words in a message of ours */

struct transfer {
    struct docker_answer *answer;
    size_t header_bytes;
    int failed; /* -EMSGSIZE or -ENOMEM: why a callback stopped it */
};

void docker_answer_done(struct docker_answer *a)
{
    buf_done(&a->body);
}

static size_t on_body(char *bytes, size_t size, size_t n, void *user)
{
    struct transfer *t = user;
    t->failed = buf_append(&t->answer->body, bytes, size * n);
    return t->failed < 0 ? 0 : size * n;
}

static size_t on_header(char *bytes, size_t size, size_t n, void *user)
{
    static const char name[] = "api-version:";
    struct transfer *t = user;
    size_t len = size * n;
    t->header_bytes += len;
    if (t->header_bytes > DOCKER_HEADERS_MAX) {
        t->failed = -EMSGSIZE;
        return 0;
    }
    if (len < sizeof(name) || strncasecmp(bytes, name, sizeof(name) - 1) != 0)
        return len;

    const char *p = bytes + sizeof(name) - 1, *end = bytes + len;
    while (p < end && *p == ' ')
        p++;
    size_t digits = 0;
    while (p + digits < end && p[digits] > ' ')
        digits++;
    if (digits < sizeof(t->answer->api_version)) {
        memcpy(t->answer->api_version, p, digits);
        t->answer->api_version[digits] = '\0';
    }
    return len;
}

int docker_transfer_error(struct docker *d, CURL *handle, CURLcode code, const char *what,
                          struct err *err)
{
    long os_errno = 0;
    if (curl_easy_getinfo(handle, CURLINFO_OS_ERRNO, &os_errno) != CURLE_OK)
        os_errno = 0;

    switch (code) {
    case CURLE_COULDNT_CONNECT:
    case CURLE_COULDNT_RESOLVE_HOST:
        docker_version_forget(d);
        if (os_errno == 0)
            return err_say(err, -EHOSTDOWN, "no Docker daemon at %s: %s", d->address,
                           curl_easy_strerror(code));
        (void)err_set(err, -(int)os_errno, "no Docker daemon at %s", d->address);
        if (err)
            err->code = -EHOSTDOWN;
        return -EHOSTDOWN;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_PARTIAL_FILE:
        docker_version_forget(d);
        return err_say(err, -EHOSTDOWN, "cannot %s: the Docker daemon at %s hung up", what,
                       d->address);
    case CURLE_OPERATION_TIMEDOUT:
        docker_version_forget(d);
        return err_say(err, -ETIMEDOUT,
                       "cannot %s: the Docker daemon at %s does not answer in time", what,
                       d->address);
    case CURLE_OUT_OF_MEMORY:
        return err_set(err, -ENOMEM, "cannot %s", what);
    default:
        return err_say(err, -EIO, "cannot %s: Docker daemon at %s: %s", what, d->address,
                       curl_easy_strerror(code));
    }
}

static int set_body(CURL *h, const struct docker_call *call, struct curl_slist **headers)
{
    char type[128];
    int n = snprintf(type, sizeof(type),
                     call->content_type ? "Content-Type: %s" : "Content-Type:", call->content_type);
    if (n < 0 || (size_t)n >= sizeof(type))
        return -ENOMEM;
    /* Expect costs a round trip and a second of waiting with servers that ignore it. */
    static const char no_expect[] = "Expect:";
    const char *const lines[] = {type, no_expect};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct curl_slist *longer = curl_slist_append(*headers, lines[i]);
        if (!longer)
            return -ENOMEM;
        *headers = longer;
    }
    bool ok =
        curl_easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body_len) == CURLE_OK &&
        curl_easy_setopt(h, CURLOPT_POSTFIELDS, call->body ? call->body : "") == CURLE_OK &&
        curl_easy_setopt(h, CURLOPT_HTTPHEADER, *headers) == CURLE_OK;
    return ok ? 0 : -ENOMEM;
}

static int set_call(const struct docker *d, CURL *h, const char *url,
                    const struct docker_call *call, struct transfer *t)
{
    bool ok = curl_easy_setopt(h, CURLOPT_URL, url) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_CUSTOMREQUEST, call->method) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)docker_timeout(d, call->timeout_ms)) ==
                  CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_WRITEFUNCTION, on_body) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_WRITEDATA, t) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
              curl_easy_setopt(h, CURLOPT_HEADERDATA, t) == CURLE_OK;
    /* curl sends a request again when a kept connection turns out to be closed before any byte of
     * an answer. That is right for all that can be done twice. */
    if (ok && call->once)
        ok = curl_easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK;
    return ok ? 0 : -ENOMEM;
}

/* One transfer; the body is empty before it. */
static int perform(struct docker *d, const char *url, const struct docker_call *call,
                   struct docker_answer *answer, struct err *err)
{
    CURL *h = NULL;
    int r = docker_handle_take(d, &h, err);
    if (r < 0)
        return r;

    struct transfer t = {.answer = answer};
    struct curl_slist *headers = NULL;
    r = set_call(d, h, url, call, &t);
    if (r == 0 && strcmp(call->method, "GET") != 0 && strcmp(call->method, "DELETE") != 0)
        r = set_body(h, call, &headers);
    if (r < 0) {
        r = err_set(err, r, "cannot %s", call->what);
    } else {
        CURLcode code = curl_easy_perform(h);
        if (t.failed == -EMSGSIZE)
            r = err_say(err, -EMSGSIZE, "cannot %s: the Docker daemon's answer is above %u bytes",
                        call->what, DOCKER_ANSWER_MAX);
        else if (t.failed < 0)
            r = err_set(err, t.failed, "cannot %s", call->what);
        else if (code != CURLE_OK)
            r = docker_transfer_error(d, h, code, call->what, err);
        else if (curl_easy_getinfo(h, CURLINFO_RESPONSE_CODE, &answer->status) != CURLE_OK)
            r = err_say(err, -EPROTO, "cannot %s: an answer without a status", call->what);
    }
    docker_handle_give(d, h);
    curl_slist_free_all(headers);
    return r;
}

int docker_exchange(struct docker *d, const struct docker_call *call, struct docker_answer *ret,
                    struct err *err)
{
    *ret = (struct docker_answer){0};
    buf_init(&ret->body, DOCKER_ANSWER_MAX);

    cleanup_buf struct buf url;
    buf_init(&url, DOCKER_URL_MAX);
    for (unsigned attempt = 0;; attempt++) {
        char version[DOCKER_VERSION_MAX] = "";
        int r = call->unversioned ? 0 : docker_version(d, version, err);
        if (r < 0)
            return r;
        buf_clear(&url);
        r = buf_appendf(&url, "http://%s%s%s%s", d->host, version[0] ? "/v" : "", version,
                        call->path);
        if (r < 0)
            return err_set(err, r, "cannot %s", call->what);
        r = perform(d, url.data, call, ret, err);
        if (r < 0)
            return r;
        if (attempt > 0 || call->unversioned || !docker_version_changed(d, version, ret))
            return 0;
        buf_clear(&ret->body);
    }
}

/* --- answers --------------------------------------------------------------------------------- */

static int status_errno(long status)
{
    switch (status) {
    case 400:
        return -EINVAL;
    case 404:
        return -ENOENT;
    case 409:
        return -EEXIST;
    default:
        return -EIO;
    }
}

int docker_status_error(const char *what, long status, struct span body, struct err *err)
{
    json_t *json = json_loadb(body.ptr ? body.ptr : "", body.len, JSON_DISABLE_EOF_CHECK, NULL);
    const char *message = json_string_value(json_object_get(json, "message"));
    int len = message ? (int)strnlen(message, REASON_MAX) : 0;
    if (!message && body.ptr) { /* attach of API 1.41 answers plain text; one line of it */
        message = body.ptr;
        while (len < REASON_MAX && (size_t)len < body.len && (unsigned char)message[len] >= ' ')
            len++;
    }
    int r = err_say(err, status_errno(status), "cannot %s: %.*s (Docker daemon, status %ld)", what,
                    len > 0 ? len : 15, len > 0 ? message : "no reason given", status);
    json_decref(json);
    return r;
}

int docker_request(struct docker *d, const struct docker_call *call, json_t **ret_json,
                   struct err *err)
{
    cleanup_docker_answer struct docker_answer answer;
    int r = docker_exchange(d, call, &answer, err);
    if (r < 0)
        return r;
    if (answer.status != 304 && (answer.status < 200 || answer.status > 299))
        return docker_status_error(call->what, answer.status, buf_span(&answer.body), err);
    if (!ret_json)
        return 0;

    json_error_t why;
    json_t *json =
        json_loadb(answer.body.data ? answer.body.data : "", answer.body.len, JSON_ALLOW_NUL, &why);
    if (!json)
        return err_say(err, -EBADMSG, "cannot %s: the Docker daemon's answer is not JSON: %s",
                       call->what, why.text);
    *ret_json = json;
    return 0;
}
