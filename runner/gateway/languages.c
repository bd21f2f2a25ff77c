#include "gateway_internal.h"

static json_t *aliases_json(char *const *aliases)
{
    json_t *array = json_array();
    for (size_t i = 0; array && aliases && aliases[i]; i++) {
        if (json_array_append_new(array, json_string(aliases[i])) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static json_t *languages_json(const struct languages *l)
{
    json_t *array = json_array();
    for (size_t i = 0; array && i < l->len; i++) {
        const struct language *item = &l->items[i];
        json_t *o =
            json_pack("{s:s, s:s, s:o, s:b}", "language", item->name, "version", item->version,
                      "aliases", aliases_json(item->aliases), "interactive", item->interactive);
        if (json_array_append_new(array, o) < 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

void languages_get(struct request *r, struct answer *a)
{
    answer_json_take(a, MHD_HTTP_OK, languages_json(r->gateway->options.languages));
}
