#include "contract/job.h"

static size_t count(char *const *list)
{
    size_t n = 0;
    while (list[n])
        n++;
    return n;
}

char **strings_dup(char *const *list)
{
    if (!list)
        return NULL;
    size_t n = count(list);
    char **copy = calloc(n + 1, sizeof(*copy));
    for (size_t i = 0; copy && i < n; i++) {
        copy[i] = strdup(list[i]);
        if (!copy[i]) {
            strings_free(copy);
            return NULL;
        }
    }
    return copy;
}

void strings_free(char **list)
{
    for (size_t i = 0; list && list[i]; i++)
        free(list[i]);
    free(list);
}

char **strings_from_json(const json_t *array)
{
    if (!json_is_array(array))
        return NULL;
    size_t n = json_array_size(array);
    char **list = calloc(n + 1, sizeof(*list));
    for (size_t i = 0; list && i < n; i++) {
        const json_t *item = json_array_get(array, i);
        const char *text = json_string_value(item);
        /* A NUL would silently cut the string. */
        if (text && strlen(text) == json_string_length(item))
            list[i] = strdup(text);
        if (!list[i]) {
            strings_free(list);
            return NULL;
        }
    }
    return list;
}

void job_spec_free(struct job_spec *spec)
{
    if (!spec)
        return;
    free(spec->language);
    free(spec->version);
    free(spec->image);
    free(spec->entrypoint);
    strings_free(spec->compile);
    strings_free(spec->run);
    strings_free(spec->env);
    for (size_t i = 0; spec->files && i < spec->files_len; i++) {
        free(spec->files[i].name);
        free(spec->files[i].content);
    }
    free(spec->files);
    free(spec);
}
