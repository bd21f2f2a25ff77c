#include "config/config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <unistd.h>

#include "base/id.h"
#include "base/log.h"
#include "base/parse.h"
#include "config_internal.h"

#define MIB               UINT64_C(1048576)
#define SECRET_BYTES      32
#define SHOWN             "%.64s" /* how much of a bad value an error repeats */
#define PATH_CANDIDATES   2
#define ROOT_STATE_DIR    "/var/lib/code-runner"
#define HOME_STATE_FOLDER ".local/state"

typedef const char *(*getenv_fn_t)(const char *name);

static char **text_of(struct config *c, size_t offset)
{
    return (char **)(void *)((char *)c + offset);
}

static bool is_text(enum setting_type type)
{
    return type <= SETTING_SECRET;
}

void config_free(struct config *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < config_settings_len; i++) {
        const struct setting *s = &config_settings[i];
        if (!is_text(s->type))
            continue;
        char *text = *text_of(c, s->offset);
        if (text && s->type == SETTING_SECRET)
            explicit_bzero(text, strlen(text));
        free(text);
    }
    free(c);
}

static int store_text(struct config *c, const struct setting *s, const char *value, struct err *err)
{
    char *copy = strdup(value);
    if (!copy)
        return err_set(err, -ENOMEM, "%s", s->name);
    *text_of(c, s->offset) = copy;
    return 0;
}

static int bad(const struct setting *s, const char *value, const char *rule, struct err *err)
{
    return err_say(err, -EINVAL, "%s is \"" SHOWN "\"; it must be %s", s->name, value, rule);
}

/* Text. */

static bool all_of(const char *value, bool (*fits)(unsigned char))
{
    for (; *value; value++)
        if (!fits((unsigned char)*value))
            return false;
    return true;
}

static bool fits_text(unsigned char c)
{
    return c >= ' ' && c != 127;
}

static bool fits_visible(unsigned char c)
{
    return c > ' ' && c < 127;
}

static bool fits_word(unsigned char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c && strchr("_-.", c));
}

static bool is_docker_address(const char *value)
{
    return (strncmp(value, "unix:///", 8) == 0 && value[8]) ||
           (strncmp(value, "tcp://", 6) == 0 && value[6]);
}

static bool is_address(const char *value)
{
    struct in_addr v4;
    struct in6_addr v6;
    return inet_pton(AF_INET, value, &v4) == 1 || inet_pton(AF_INET6, value, &v6) == 1;
}

static bool is_loopback(const char *host)
{
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, host, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == IN_LOOPBACKNET;
    return inet_pton(AF_INET6, host, &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* The value of a secret is in no message. */
static int store_secret(struct config *c, const struct setting *s, const char *value,
                        struct err *err)
{
    size_t len = strlen(value);
    if (len == 0)
        return err_say(err, -EINVAL, "%s is empty; unset it or give it a value", s->name);
    if (len < s->min || len > s->max)
        return err_say(err, -ERANGE, "%s has %zu bytes; it must have from %" PRIu64 " to %" PRIu64,
                       s->name, len, s->min, s->max);
    if (!all_of(value, fits_visible))
        return err_say(err, -EINVAL, "%s has a character other than visible ASCII", s->name);
    return store_text(c, s, value, err);
}

static int store_checked_text(struct config *c, const struct setting *s, const char *value,
                              struct err *err)
{
    size_t len = strlen(value);
    enum log_level level;
    if (len < s->min || len > s->max)
        return err_say(err, -ERANGE,
                       "%s is \"" SHOWN "\" of %zu bytes; it must have from %" PRIu64
                       " to %" PRIu64,
                       s->name, value, len, s->min, s->max);
    if (!all_of(value, fits_text))
        return err_say(err, -EINVAL, "%s has a control character", s->name);
    if (s->type == SETTING_WORD && !all_of(value, fits_word))
        return bad(s, value, "letters, digits, \"_\", \"-\" and \".\" only", err);
    if (s->type == SETTING_DOCKER && !is_docker_address(value))
        return bad(s, value, "unix:///path or tcp://host:port", err);
    if (s->type == SETTING_LEVEL && log_level_parse(value, &level) < 0)
        return bad(s, value, "debug, info, warn, error or off", err);
    if (s->type == SETTING_HOST && strcmp(value, "localhost") == 0)
        value = "127.0.0.1";
    if (s->type == SETTING_HOST && !is_address(value))
        return bad(s, value, "an IPv4 or IPv6 address, or localhost", err);
    return store_text(c, s, value, err);
}

/* Numbers and switches. */

static int parse_number(const struct setting *s, const char *value, uint64_t *ret, struct err *err)
{
    int r = parse_u64(value, strlen(value), s->min, s->max, ret);
    if (r < 0)
        return err_say(
            err, r,
            "%s is \"" SHOWN "\"; it must be a whole number%s%s from %" PRIu64 " to %" PRIu64,
            s->name, value, s->unit ? " of " : "", s->unit ? s->unit : "", s->min, s->max);
    return 0;
}

static int store_number(struct config *c, const struct setting *s, const char *value,
                        struct err *err)
{
    uint64_t v = 0;
    int r = parse_number(s, value, &v, err);
    if (r < 0)
        return r;

    void *to = (char *)c + s->offset;
    if (s->type == SETTING_U16)
        *(uint16_t *)to = (uint16_t)v;
    else if (s->type == SETTING_U32)
        *(uint32_t *)to = (uint32_t)v;
    else if (s->type == SETTING_U64)
        *(uint64_t *)to = v;
    else
        *(int64_t *)to = (int64_t)v * (s->type == SETTING_SECONDS ? 1000 : 1);
    return 0;
}

static int store_bool(struct config *c, const struct setting *s, const char *value, struct err *err)
{
    bool is_switch = s->type == SETTING_SWITCH;
    bool yes = strcmp(value, is_switch ? "on" : "true") == 0;
    if (!yes && strcmp(value, is_switch ? "off" : "false") != 0)
        return bad(s, value, is_switch ? "on or off" : "true or false", err);
    bool *to = (bool *)(void *)((char *)c + s->offset);
    *to = yes;
    return 0;
}

static int store(struct config *c, const struct setting *s, const char *value, struct err *err)
{
    switch (s->type) {
    case SETTING_TEXT:
    case SETTING_WORD:
    case SETTING_HOST:
    case SETTING_DOCKER:
    case SETTING_LEVEL:
        return store_checked_text(c, s, value, err);
    case SETTING_SECRET:
        return store_secret(c, s, value, err);
    case SETTING_U16:
    case SETTING_U32:
    case SETTING_U64:
    case SETTING_I64:
    case SETTING_SECONDS:
        return store_number(c, s, value, err);
    case SETTING_BOOL:
    case SETTING_SWITCH:
        return store_bool(c, s, value, err);
    case SETTING_REFUSED:
        return err_say(err, -ENOTSUP, "%s is set; this build does not support it: unset it",
                       s->name);
    }
    return -EINVAL;
}

/* What is given, else the default; what has neither stays empty for finish(). */
static int load_setting(struct config *c, const struct setting *s, getenv_fn_t getenv_fn,
                        struct err *err)
{
    const char *value = getenv_fn(s->name);
    if (value && !*value && s->type != SETTING_SECRET)
        value = NULL;
    if (!value)
        value = s->value;
    return value ? store(c, s, value, err) : 0;
}

/* Defaults that depend on something. */

static int first_existing(const char *name, const char *exe_dir,
                          const char *const candidates[PATH_CANDIDATES], char **ret,
                          struct err *err)
{
    if (*ret)
        return 0;
    for (size_t i = 0; i < PATH_CANDIDATES; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", exe_dir, candidates[i]) < 0)
            return err_set(err, -ENOMEM, "%s", name);
        if (access(path, F_OK) == 0) {
            *ret = path;
            return 0;
        }
        free(path);
    }
    return err_say(err, -ENOENT, "%s is not set, and neither %s/%s nor %s/%s exists", name, exe_dir,
                   candidates[0], exe_dir, candidates[1]);
}

static int find_files(struct config *c, const char *exe_dir, struct err *err)
{
    static const char *const init[PATH_CANDIDATES] = {"code-runner-init",
                                                      "../share/code-runner/code-runner-init"};
    static const char *const profile[PATH_CANDIDATES] = {
        "../seccomp/profile.json", "../share/code-runner/seccomp/profile.json"};
    static const char *const languages[PATH_CANDIDATES] = {"../languages",
                                                           "../share/code-runner/languages"};
    int r = first_existing("SECCOMP_PROFILE_PATH", exe_dir, profile, &c->seccomp_path, err);
    r = r ? r : first_existing("INIT_PATH", exe_dir, init, &c->init_path, err);
    return r ? r : first_existing("LANGUAGES_DIR", exe_dir, languages, &c->languages_dir, err);
}

int config_state_dir(getenv_fn_t getenv_fn, bool is_root, char **ret, struct err *err)
{
    /* A relative XDG_STATE_HOME is to be ignored (XDG base directory specification). */
    const char *xdg = getenv_fn("XDG_STATE_HOME");
    const char *home = getenv_fn("HOME");
    char *path = NULL;
    int n = 0;
    if (is_root)
        n = asprintf(&path, ROOT_STATE_DIR);
    else if (xdg && *xdg == '/')
        n = asprintf(&path, "%s/code-runner", xdg);
    else if (home && *home == '/')
        n = asprintf(&path, "%s/" HOME_STATE_FOLDER "/code-runner", home);
    else
        return err_say(err, -EINVAL,
                       "STATE_DIR is not set, and HOME gives no absolute folder for it");
    if (n < 0)
        return err_set(err, -ENOMEM, "STATE_DIR");
    *ret = path;
    return 0;
}

static int random_secret(struct config *c, struct err *err)
{
    c->app_secret = malloc(2 * SECRET_BYTES + 1);
    if (!c->app_secret)
        return err_set(err, -ENOMEM, "SOKETI_APP_SECRET");
    c->app_secret[0] = '\0';
    int r = id_hex(SECRET_BYTES, c->app_secret);
    if (r < 0)
        return err_set(err, r, "make a random SOKETI_APP_SECRET");
    c->app_secret_random = true;
    return 0;
}

static int finish(struct config *c, getenv_fn_t getenv_fn, const char *exe_dir, struct err *err)
{
    if (!c->api_token)
        return err_say(err, -EINVAL, "EXECUTOR_API_TOKEN is not set; it is required");
    if (strcmp(c->api_token, CONFIG_DEV_TOKEN) == 0 && !is_loopback(c->api_host))
        return err_say(err, -EINVAL,
                       "EXECUTOR_API_TOKEN is the development token, which everybody knows, and "
                       "API_HOST is \"" SHOWN "\"; it must be a loopback address then",
                       c->api_host);
    if (c->max_body_bytes == 0)
        c->max_body_bytes = 2 * c->max_files_bytes + MIB;

    int r = c->app_secret ? 0 : random_secret(c, err);
    if (r == 0 && !c->state_dir)
        r = config_state_dir(getenv_fn, geteuid() == 0, &c->state_dir, err);
    return r ? r : find_files(c, exe_dir, err);
}

int config_load(getenv_fn_t getenv_fn, const char *exe_dir, struct config **ret, struct err *err)
{
    cleanup_config struct config *c = calloc(1, sizeof(*c));
    if (!c)
        return err_set(err, -ENOMEM, "configuration");
    for (size_t i = 0; i < config_settings_len; i++) {
        int r = load_setting(c, &config_settings[i], getenv_fn, err);
        if (r < 0)
            return r;
    }
    int r = finish(c, getenv_fn, exe_dir, err);
    if (r < 0)
        return r; /* NOLINT(clang-analyzer-unix.Malloc): it knows nothing of cleanup variables */
    *ret = ptr_take(&c);
    return 0;
}
