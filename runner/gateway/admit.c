#include "admit.h"

#include <errno.h>

#include "base/clock.h"
#include "base/id.h"
#include "json/json.h"

/* The smallest memory a sandbox can be made with (Docker refuses less). */
#define MEMORY_MB_MIN 6

/* Sets *ret to a copy; false when out of memory. */
static bool copy(const char *s, char **ret)
{
    *ret = s ? strdup(s) : NULL;
    return !s || *ret;
}

static bool copy_list(char *const *list, char ***ret)
{
    *ret = strings_dup(list);
    return !list || *ret;
}

static int language_find(const struct admit_rules *rules, const json_t *body,
                         const struct language **ret, struct answer *a)
{
    size_t name_len = 0, version_len = 0;
    const char *name = json_text(json_object_get(body, "language"), &name_len);
    const char *version = json_text(json_object_get(body, "version"), &version_len);
    int found = LANGUAGE_UNKNOWN;
    if (strlen(name) == name_len)
        found = languages_find(rules->languages, name, version, ret);
    if (found == 0 && version && strlen(version) != version_len)
        found = LANGUAGE_VERSION_UNKNOWN; /* a NUL inside matches nothing */
    struct shown n = shown(name, name_len);
    if (found == LANGUAGE_UNKNOWN) {
        answer_error(a, MHD_HTTP_BAD_REQUEST,
                     "Unknown language \"%s\". GET /v1/languages lists all there are.", n.text);
    } else if (found == LANGUAGE_VERSION_UNKNOWN) {
        struct shown v = shown(version ? version : "", version_len);
        answer_error(
            a, MHD_HTTP_BAD_REQUEST,
            "Unknown version \"%s\" for language \"%s\". GET /v1/languages lists all there are.",
            v.text, n.text);
    }
    return found;
}

static int limits_check(const struct admit_rules *rules, const struct limits *limits,
                        struct answer *a)
{
    const struct limit_field *f = limits_above(limits, rules->limits_max);
    if (f) {
        answer_error(a, MHD_HTTP_BAD_REQUEST,
                     "Limit %s is %lld, the maximum on this server is %lld", f->name,
                     (long long)limit_get(limits, f), (long long)limit_get(rules->limits_max, f));
        return 1;
    }
    if (limits->memory_mb < MEMORY_MB_MIN) {
        answer_error(a, MHD_HTTP_BAD_REQUEST, "Limit memoryMb is %lld, the minimum is %d",
                     (long long)limits->memory_mb, MEMORY_MB_MIN);
        return 1;
    }
    return 0;
}

static int spec_fill(struct job_spec *spec, const struct language *l, const json_t *body)
{
    int e = id_uuid4(spec->id);
    if (e < 0)
        return e;
    spec->interactive = l->interactive;
    spec->collect_output = json_is_true(json_object_get(body, "collectOutput"));
    spec->limits = l->defaults;
    limits_override(&spec->limits, json_object_get(body, "limits"));
    spec->enqueued_at_ms = clock_realtime_ms();
    bool done = copy(l->name, &spec->language) && copy(l->version, &spec->version) &&
                copy(l->image, &spec->image) && copy(l->entrypoint, &spec->entrypoint) &&
                copy_list(l->compile, &spec->compile) && copy_list(l->run, &spec->run) &&
                copy_list(l->env, &spec->env);
    return done ? 0 : -ENOMEM;
}

static int admit(const struct admit_rules *rules, const json_t *body, struct job_spec *spec,
                 struct answer *a)
{
    const struct language *l = NULL;
    bool has_refs = false;
    int e = language_find(rules, body, &l, a);
    if (e == 0)
        e = admit_files(json_object_get(body, "files"), rules->max_files_bytes, spec, &has_refs, a);
    if (e == 0)
        e = spec_fill(spec, l, body);
    if (e == 0)
        e = limits_check(rules, &spec->limits, a);
    if (e == 0 && has_refs) {
        answer_error(a, MHD_HTTP_NOT_IMPLEMENTED,
                     "blob store not configured: send files with their content");
        e = 1;
    }
    return e;
}

int admit_execute(const struct admit_rules *rules, const json_t *body, struct job_spec **ret,
                  struct answer *refusal)
{
    cleanup_job_spec struct job_spec *spec = calloc(1, sizeof(*spec));
    int e = spec ? admit(rules, body, spec, refusal) : -ENOMEM;
    if (e < 0)
        answer_failure(refusal, e, NULL);
    if (e != 0)
        return 1;
    *ret = ptr_take(&spec);
    return 0;
}
