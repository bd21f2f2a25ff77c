#include "manifest/manifest.h"

#include <ctype.h>
#include <errno.h>

#include "contract/contract.h"
#include "contract/job.h"
#include "json/json.h"

#define ENV_BYTES_MAX 65536 /* NAME=VALUE and its NUL, all of them; the bound requests have too */
#define ALIAS_MAX     127   /* as for language names */

void language_done(struct language *l)
{
    free(l->name);
    free(l->version);
    free(l->image);
    free(l->entrypoint);
    strings_free(l->aliases);
    strings_free(l->compile);
    strings_free(l->run);
    strings_free(l->env);
    *l = (struct language){0};
}

/* What the schema can't say: a NUL would cut the string without a word later on. */
static int copy_text(const json_t *manifest, const char *key, char **ret, struct err *err)
{
    size_t len = 0;
    const char *text = json_text(json_object_get(manifest, key), &len);
    if (!text || strlen(text) != len)
        return err_say(err, -EINVAL, "%s: contains a NUL character", key);
    char *copy = strdup(text);
    if (!copy)
        return err_set(err, -ENOMEM, "%s", key);
    *ret = copy;
    return 0;
}

static int copy_list(const json_t *list, const char *key, char ***ret, struct err *err)
{
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(list, i, item)
    {
        size_t len = 0;
        const char *text = json_text(item, &len);
        if (!text || strlen(text) != len)
            return err_say(err, -EINVAL, "%s.%zu: contains a NUL character", key, i);
    }
    char **copy = calloc(json_array_size(list) + 1, sizeof(*copy));
    if (!copy)
        return err_set(err, -ENOMEM, "%s", key);
    json_array_foreach(list, i, item)
    {
        copy[i] = strdup(json_string_value(item));
        if (!copy[i]) {
            strings_free(copy);
            return err_set(err, -ENOMEM, "%s", key);
        }
    }
    *ret = copy;
    return 0;
}

/* A command: a list whose first item, the program, has a name. */
static int copy_command(const json_t *manifest, const char *key, char ***ret, struct err *err)
{
    const json_t *list = json_object_get(manifest, key);
    if (json_is_null(list))
        return 0;
    const char *program = json_string_value(json_array_get(list, 0));
    if (!program || !*program)
        return err_say(err, -EINVAL, "%s.0: the program has no name", key);
    return copy_list(list, key, ret, err);
}

static int copy_aliases(const json_t *manifest, char ***ret, struct err *err)
{
    const json_t *list = json_object_get(manifest, "aliases");
    size_t i = 0;
    const json_t *item = NULL;
    json_array_foreach(list, i, item)
    {
        if (json_string_length(item) > ALIAS_MAX)
            return err_say(err, -EINVAL, "aliases.%zu: is longer than %d bytes", i, ALIAS_MAX);
    }
    return copy_list(list, "aliases", ret, err);
}

static int is_env_name(const char *name)
{
    if (!isalpha((unsigned char)*name) && *name != '_')
        return 0;
    for (; *name; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return 0;
    return 1;
}

static int env_item(const char *name, const json_t *value, char **ret, struct err *err)
{
    size_t len = 0;
    const char *text = json_text(value, &len);
    if (!is_env_name(name))
        return err_say(err, -EINVAL,
                       "env: \"%.64s\" is no name of a variable; letters, digits and _", name);
    if (!text || strlen(text) != len)
        return err_say(err, -EINVAL, "env.%.64s: contains a NUL character", name);
    if (asprintf(ret, "%s=%s", name, text) < 0) {
        *ret = NULL; /* what a failed asprintf leaves there is unspecified */
        return err_set(err, -ENOMEM, "env");
    }
    return 0;
}

static int copy_env(const json_t *manifest, char ***ret, struct err *err)
{
    json_t *object = json_object_get(manifest, "env");
    char **list = calloc(json_object_size(object) + 1, sizeof(*list));
    if (!list)
        return err_set(err, -ENOMEM, "env");
    *ret = list; /* language_done() releases it, whatever follows */

    size_t bytes = 0;
    const char *name = NULL;
    json_t *value = NULL;
    json_object_foreach(object, name, value)
    {
        int r = env_item(name, value, list++, err);
        if (r < 0)
            return r;
        bytes += strlen(name) + strlen("=") + json_string_length(value) + 1;
    }
    if (bytes > ENV_BYTES_MAX)
        return err_say(err, -EINVAL, "env: is %zu bytes; the maximum is %d", bytes, ENV_BYTES_MAX);
    return 0;
}

static int fill(const json_t *manifest, struct language *l, struct err *err)
{
    int r = copy_text(manifest, "language", &l->name, err);
    r = r ? r : copy_text(manifest, "version", &l->version, err);
    r = r ? r : copy_text(manifest, "image", &l->image, err);
    r = r ? r : copy_text(manifest, "entrypoint", &l->entrypoint, err);
    r = r ? r : copy_aliases(manifest, &l->aliases, err);
    r = r ? r : copy_command(manifest, "compile", &l->compile, err);
    r = r ? r : copy_command(manifest, "run", &l->run, err);
    r = r ? r : copy_env(manifest, &l->env, err);
    l->interactive = json_is_true(json_object_get(manifest, "interactive"));
    limits_override(&l->defaults, json_object_get(manifest, "defaultLimits"));
    return r;
}

/* The first violation, and how many more there are. */
static int say_violations(const json_t *details, struct err *err)
{
    const json_t *first = json_array_get(details, 0);
    const char *path = json_string_value(json_object_get(first, "path"));
    const char *message = json_string_value(json_object_get(first, "message"));
    size_t n = json_array_size(details);
    char more[48] = "";
    if (n > 1)
        (void)snprintf(more, sizeof(more), " (and %zu more)", n - 1);
    return err_say(err, -EINVAL, "%.128s%s%.256s%s", path ? path : "", path && *path ? ": " : "",
                   message ? message : "does not match the schema", more);
}

static int parse(const char *text, size_t len, struct language *ret, struct err *err)
{
    json_auto_t *manifest = NULL;
    int r = json_parse(text, len, &manifest, err);
    if (r < 0)
        return r;

    json_auto_t *details = NULL;
    r = contract_check(CONTRACT_MANIFEST, manifest, &details);
    if (r < 0)
        return err_set(err, r, "check against the schema");
    if (r > 0)
        return say_violations(details, err);

    struct language l = {0};
    r = fill(manifest, &l, err);
    if (r < 0) {
        language_done(&l);
        return r;
    }
    *ret = l;
    return 0;
}

int manifest_parse(const char *text, size_t len, const char *where, struct language *ret,
                   struct err *err)
{
    int r = parse(text, len, ret, err);
    return r < 0 ? err_wrap(err, r, "%s", where) : 0;
}
