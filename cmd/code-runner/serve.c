/* Wires the layers together and takes them apart again in the other order.
 *
 *   main thread    start, wait for a signal, stop
 *   housekeeping   health.c
 *   and those of gateway (1), hub (1) and worker (1, and one for each session) */
#include "serve.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/id.h"
#include "base/log.h"
#include "config/config.h"
#include "contract/contract.h"
#include "gateway/gateway.h"
#include "health.h"
#include "hub/hub.h"
#include "state.h"
#include "worker/worker.h"
#include "json/json.h"

#define SECCOMP_MAX_BYTES  (4U << 20)
#define UID_COUNT          4096U /* more than can be alive: an id whose removal failed stays taken */
#define CONNECTIONS_MAX    4096U
#define DESCRIPTORS_WANTED 65536U

struct server {
    struct config *config;
    struct state state;
    char worker_id[33];
    char *seccomp_json;
    struct languages *languages;
    struct sandbox_backend *backend;
    struct bus *bus;
    struct hub *hub;
    struct worker *worker;
    struct health *health;
    struct gateway *gateway;
    int signal_fd;
};

static const char *read_environment(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): before any thread */
}

static int exe_dir(char *ret, size_t size, struct err *err)
{
    ssize_t n = readlink("/proc/self/exe", ret, size - 1);
    if (n < 0)
        return err_set(err, -errno, "read /proc/self/exe");
    ret[n] = '\0';
    char *slash = strrchr(ret, '/');
    if (slash)
        *slash = '\0';
    return 0;
}

static int load_config(struct server *s, struct err *err)
{
    char dir[PATH_MAX];
    int r = exe_dir(dir, sizeof(dir), err);
    if (r == 0)
        r = config_load(read_environment, dir, &s->config, err);
    enum log_level level = LOG_LEVEL_INFO;
    if (r == 0 && log_level_parse(s->config->log_level, &level) == 0)
        log_set_level(level);
    return r;
}

/* A language whose defaults the server would refuse from a caller cannot be run: say it at start. */
static int check_defaults(const struct server *s, struct err *err)
{
    for (size_t i = 0; i < s->languages->len; i++) {
        const struct language *l = &s->languages->items[i];
        const struct limit_field *f = limits_above(&l->defaults, &s->config->limits_max);
        if (f)
            return err_set(
                err, -ERANGE,
                "language %s %s: its default %s is %lld, above the server's maximum %lld", l->name,
                l->version, f->name, (long long)limit_get(&l->defaults, f),
                (long long)limit_get(&s->config->limits_max, f));
    }
    return 0;
}

static int load_files(struct server *s, struct err *err)
{
    int r = contract_init(err);
    if (r == 0)
        r = languages_load(s->config->languages_dir, &s->languages, err);
    if (r == 0)
        r = check_defaults(s, err);
    if (r < 0)
        return r;
    size_t len = 0;
    r = fd_read_file(s->config->seccomp_path, SECCOMP_MAX_BYTES, &s->seccomp_json, &len);
    if (r < 0)
        return err_set(err, r, "SECCOMP_PROFILE_PATH: read %s", s->config->seccomp_path);
    json_t *profile = NULL;
    r = json_parse(s->seccomp_json, len, &profile, err);
    if (r == 0 && !json_is_object(profile))
        r = err_set(err, -EINVAL, "not an object");
    json_decref(profile);
    return r < 0 ? err_wrap(err, r, "SECCOMP_PROFILE_PATH: %s", s->config->seccomp_path) : 0;
}

static int make_backend(struct server *s, struct err *err)
{
    int r = id_hex(16, s->worker_id);
    if (r < 0)
        return err_set(err, r, "make a worker id");
    const struct sandbox_docker_options o = {
        .address = s->config->docker_host,
        .runtime = s->config->sandbox_runtime,
        .init_path = s->config->init_path,
        .seccomp_json = s->seccomp_json,
        .deployment_id = s->state.deployment_id,
        .worker_id = s->worker_id,
        .uid_base = s->config->uid_base,
        .uid_count = UID_COUNT,
        .cpus_milli = s->config->cpus_milli,
    };
    return sandbox_docker_new(&o, &s->backend, err);
}

static int make_bus(struct server *s, struct err *err)
{
    const struct bus_memory_options o = {
        .queue_depth_max = (uint32_t)s->config->max_queue_depth,
        .job_ttl_ms = s->config->job_ttl_ms,
        .result_ttl_ms = s->config->result_ttl_ms,
        .memory_max_bytes = s->config->bus_memory_max_bytes,
    };
    return bus_memory_new(&o, &s->bus, err);
}

static int make_hub(struct server *s, struct err *err)
{
    const struct hub_options o = {
        .bus = s->bus,
        .app_key = s->config->app_key,
        .app_secret = s->config->app_secret,
        .replay = s->config->hub_replay,
        .connections_max = CONNECTIONS_MAX,
    };
    return hub_new(&o, &s->hub, err);
}

static int make_worker(struct server *s, struct err *err)
{
    const struct worker_options o = {
        .bus = s->bus,
        .backend = s->backend,
        .worker_id = s->worker_id,
        .max_sandboxes = (uint32_t)s->config->max_sandboxes,
        .warmup_ms = s->config->warmup_ms,
    };
    return worker_start(&o, &s->worker, err);
}

static int make_gateway(struct server *s, struct err *err)
{
    const struct gateway_options o = {
        .host = s->config->api_host,
        .port = s->config->api_port,
        .token = s->config->api_token,
        .bus = s->bus,
        .hub = s->hub,
        .languages = s->languages,
        .max_files_bytes = s->config->max_files_bytes,
        .max_body_bytes = s->config->max_body_bytes,
        .limits_max = s->config->limits_max,
        .channel_auth = s->config->enable_channel_auth,
        .connections_max = CONNECTIONS_MAX,
        .health = health_checks,
        .health_arg = s->health,
    };
    return gateway_start(&o, &s->gateway, err);
}

/* Signals are blocked before any thread exists and read from one descriptor. */
static int take_signals(struct server *s, struct err *err)
{
    sigset_t set;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    int r = pthread_sigmask(SIG_BLOCK, &set, NULL);
    if (r != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR)
        return err_set(err, -EINVAL, "signal mask");
    s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    return s->signal_fd < 0 ? err_set(err, -errno, "signalfd") : 0;
}

/* Every subscriber and sandbox is a descriptor; take what the hard limit gives. */
static void raise_descriptor_limit(void)
{
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) < 0 || l.rlim_cur >= DESCRIPTORS_WANTED)
        return;
    l.rlim_cur = l.rlim_max < DESCRIPTORS_WANTED ? l.rlim_max : DESCRIPTORS_WANTED;
    (void)setrlimit(RLIMIT_NOFILE, &l); /* going on with what we have */
}

static int start(struct server *s, struct err *err)
{
    int r = take_signals(s, err);
    raise_descriptor_limit();
    if (r == 0)
        r = state_open(s->config->state_dir, &s->state, err);
    if (r == 0)
        r = load_files(s, err);
    if (r == 0)
        r = make_backend(s, err);
    if (r == 0)
        r = make_bus(s, err);
    if (r == 0)
        r = make_hub(s, err);
    if (r == 0)
        r = health_start(s->bus, s->backend, s->languages, &s->health, err);
    if (r == 0)
        r = make_worker(s, err);
    if (r == 0)
        r = make_gateway(s, err);
    return r;
}

struct hurry {
    struct server *server;
    int done_fd; /* readable: nobody is left to hurry */
};

static void *hurry_main(void *arg)
{
    struct hurry *h = arg;
    struct pollfd fds[] = {{.fd = h->server->signal_fd, .events = POLLIN},
                           {.fd = h->done_fd, .events = POLLIN}};
    int n;
    do
        n = poll(fds, 2, -1);
    while (n < 0 && errno == EINTR);
    if (fds[0].revents)
        worker_hurry(h->server->worker);
    return NULL;
}

/* Jobs under way may finish until the drain time is over; a second signal ends them at once. Callers
 * keep their streams and control until the last result is out. */
static void drain(struct server *s)
{
    bus_close(s->bus);
    while (bus_drain(s->bus) < 0)
        (void)poll(NULL, 0, 100); /* out of memory: jobs that end give some back */
    cleanup_close int done_fd = fd_eventfd();
    struct hurry hurry = {s, done_fd};
    pthread_t thread;
    bool listening = done_fd >= 0 && pthread_create(&thread, NULL, hurry_main, &hurry) == 0;
    worker_stop(s->worker, s->config->drain_ms);
    if (listening) {
        fd_notify(done_fd);
        (void)pthread_join(thread, NULL);
    }
}

static void stop(struct server *s)
{
    if (s->worker)
        drain(s);
    if (s->gateway)
        gateway_quiesce(s->gateway);
    hub_free(s->hub);
    gateway_free(s->gateway);
    health_stop(s->health);
    worker_free(s->worker);
    bus_free(s->bus);
    sandbox_backend_free(s->backend);
    languages_free(s->languages);
    contract_done();
    free(s->seccomp_json);
    state_close(&s->state);
    config_free(s->config);
    cleanup_close_slot(&s->signal_fd);
}

static void say_where(const struct server *s)
{
    const char *host = s->config->api_host;
    bool v6 = strchr(host, ':') != NULL;
    (void)printf("code-runner: http://%s%s%s:%u\n", v6 ? "[" : "", host, v6 ? "]" : "",
                 gateway_port(s->gateway));
    if (s->config->app_secret_random)
        (void)puts(
            "code-runner: SOKETI_APP_SECRET is not set, so only this process can sign channel "
            "subscriptions (POST /v1/channel-auth)");
    (void)fflush(stdout);
}

int serve(void)
{
    struct server s = {.signal_fd = -1, .state = {.lock_fd = -1}};
    struct err err = {0};
    int r = load_config(&s, &err);
    if (r < 0) {
        (void)fprintf(stderr, "code-runner: %s\n", err.msg);
        return 2;
    }
    assert(s.config);
    r = start(&s, &err);
    if (r < 0) {
        (void)fprintf(stderr, "code-runner: %s\n", err.msg);
    } else {
        say_where(&s);
        log_info("server.started", LOG_STR("host", s.config->api_host),
                 LOG_INT("port", gateway_port(s.gateway)), LOG_STR("worker", s.worker_id));
        struct signalfd_siginfo info = {0};
        ssize_t n;
        do
            n = read(s.signal_fd, &info, sizeof(info));
        while (n < 0 && errno == EINTR);
        log_info("server.stopping", LOG_INT("signal", info.ssi_signo));
    }
    stop(&s);
    return r < 0 ? 1 : 0;
}
