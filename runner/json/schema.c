#include "json/schema.h"

#include <errno.h>
#include <math.h>

#include "base/buf.h"
#include "schema_internal.h"
#include "json/json.h"

#define DIALECT    "https://json-schema.org/draft/2020-12/schema"
#define REF_PREFIX "#/$defs/"
#define PLACE_MAX  256

struct compiler {
    struct schema *schema;
    struct buf place; /* "#/properties/files", for messages */
    struct err *err;
};

static int compile_node(struct compiler *c, struct schema_node *n, json_t *doc);

static int refuse(struct compiler *c, const char *reason)
{
    return err_say(c->err, -EINVAL, "%s: %s", c->place.data ? c->place.data : "#", reason);
}

/* A place too long is cut: it only serves messages. */
static size_t enter(struct compiler *c, const char *step)
{
    size_t before = c->place.len;
    (void)buf_appendf(&c->place, "/%s", step);
    return before;
}

static void leave(struct compiler *c, size_t before)
{
    if (c->place.data) {
        c->place.len = before;
        c->place.data[before] = '\0';
    }
}

static struct schema_node *node_new(struct schema *s)
{
    struct schema_node *n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->next = s->nodes;
    n->max_items = n->max_length = SIZE_MAX;
    n->minimum = -INFINITY;
    n->maximum = INFINITY;
    s->nodes = n;
    return n;
}

static int compile_child(struct compiler *c, const char *step, json_t *doc,
                         struct schema_node **ret)
{
    struct schema_node *n = node_new(c->schema);
    if (!n)
        return -ENOMEM;
    size_t before = enter(c, step);
    int r = compile_node(c, n, doc);
    leave(c, before);
    if (r == 0)
        *ret = n;
    return r;
}

static unsigned type_bit(const char *name)
{
    static const struct {
        const char *name;
        unsigned bit;
    } types[] = {
        {"null", SCHEMA_NULL},     {"boolean", SCHEMA_BOOLEAN}, {"integer", SCHEMA_INTEGER},
        {"number", SCHEMA_NUMBER}, {"string", SCHEMA_STRING},   {"array", SCHEMA_ARRAY},
        {"object", SCHEMA_OBJECT},
    };
    for (size_t i = 0; name && i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, name) == 0)
            return types[i].bit;
    return 0;
}

static int on_type(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (json_is_string(v))
        n->types = type_bit(json_string_value(v));
    size_t i;
    json_t *item;
    json_array_foreach(v, i, item)
    {
        unsigned bit = type_bit(json_string_value(item));
        if (bit == 0)
            return refuse(c, "a type that does not exist");
        n->types |= bit;
    }
    return n->types ? 0 : refuse(c, "not a type, nor a list of types");
}

static struct schema_property *property(struct schema_node *n, const char *name)
{
    for (size_t i = 0; i < n->properties_len; i++)
        if (strcmp(n->properties[i].name, name) == 0)
            return &n->properties[i];
    struct schema_property *more =
        reallocarray(n->properties, n->properties_len + 1, sizeof(*more));
    if (!more)
        return NULL;
    n->properties = more;
    more[n->properties_len] = (struct schema_property){.name = name};
    return &more[n->properties_len++];
}

static int on_properties(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (!json_is_object(v))
        return refuse(c, "not an object");
    const char *name;
    json_t *doc;
    json_object_foreach(v, name, doc)
    {
        struct schema_node *child = NULL;
        int r = compile_child(c, name, doc, &child);
        if (r < 0)
            return r;
        struct schema_property *p = property(n, name);
        if (!p)
            return -ENOMEM;
        p->node = child;
    }
    return 0;
}

static int on_required(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (!json_is_array(v))
        return refuse(c, "not a list of names");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *name = json_string_value(json_array_get(v, i));
        if (!name)
            return refuse(c, "not a list of names");
        struct schema_property *p = property(n, name);
        if (!p)
            return -ENOMEM;
        p->required = true;
    }
    return 0;
}

static int on_additional(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (json_is_false(v)) {
        n->closed = true;
        return 0;
    }
    return compile_node(c, n->additional = node_new(c->schema), v);
}

static int on_items(struct compiler *c, struct schema_node *n, json_t *v)
{
    return compile_node(c, n->items = node_new(c->schema), v);
}

static int on_any_of(struct compiler *c, struct schema_node *n, json_t *v)
{
    size_t len = json_array_size(v);
    if (len == 0)
        return refuse(c, "not a list of schemas");
    n->any_of = calloc(len, sizeof(struct schema_node *));
    if (!n->any_of)
        return -ENOMEM;
    for (size_t i = 0; i < len; i++) {
        char step[24];
        (void)snprintf(step, sizeof(step), "%zu", i); /* it fits */
        int r = compile_child(c, step, json_array_get(v, i), &n->any_of[i]);
        if (r < 0)
            return r;
        n->any_of_len++;
    }
    return 0;
}

static int on_ref(struct compiler *c, struct schema_node *n, json_t *v)
{
    const char *text = json_string_value(v);
    if (!text || strncmp(text, REF_PREFIX, strlen(REF_PREFIX)) != 0)
        return refuse(c, "only " REF_PREFIX "name is understood");
    for (size_t i = 0; i < c->schema->defs_len; i++)
        if (strcmp(c->schema->defs[i].name, text + strlen(REF_PREFIX)) == 0)
            n->ref = c->schema->defs[i].node;
    return n->ref ? 0 : refuse(c, "no such entry in $defs");
}

static int read_size(struct compiler *c, const json_t *v, size_t *ret)
{
    int64_t n;
    if (json_int(v, &n) < 0 || n < 0)
        return refuse(c, "not an integer >= 0");
    *ret = (size_t)n;
    return 0;
}

static int on_min_items(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_size(c, v, &n->min_items);
}

static int on_max_items(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_size(c, v, &n->max_items);
}

static int on_min_length(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_size(c, v, &n->min_length);
}

static int on_max_length(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_size(c, v, &n->max_length);
}

/* Past 2^53 a bound would not be the number that was written. */
static int read_bound(struct compiler *c, const json_t *v, double *ret)
{
    if (!json_is_number(v) || !(fabs(json_number_value(v)) <= (double)JSON_SAFE_INT_MAX))
        return refuse(c, "not a number within 2^53 - 1");
    *ret = json_number_value(v);
    return 0;
}

static int on_minimum(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_bound(c, v, &n->minimum);
}

static int on_maximum(struct compiler *c, struct schema_node *n, json_t *v)
{
    return read_bound(c, v, &n->maximum);
}

static int on_pattern(struct compiler *c, struct schema_node *n, json_t *v)
{
    const char *text = json_string_value(v);
    if (!text || strlen(text) != json_string_length(v))
        return refuse(c, "not a pattern");
    int r = regcomp(&n->regex, text, REG_EXTENDED | REG_NOSUB);
    if (r == REG_ESPACE)
        return -ENOMEM;
    if (r != 0) {
        char reason[128];
        (void)regerror(r, &n->regex, reason, sizeof(reason)); /* cut is fine */
        return refuse(c, reason);
    }
    n->pattern = text;
    return 0;
}

static int on_enum(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (json_array_size(v) == 0)
        return refuse(c, "not a list of values");
    n->choices = v;
    return 0;
}

static int on_const(struct compiler *c, struct schema_node *n, json_t *v)
{
    (void)c; /* any value will do */
    n->constant = v;
    return 0;
}

static int on_annotation(struct compiler *c, struct schema_node *n, json_t *v)
{
    (void)c; /* for readers only */
    (void)n;
    (void)v;
    return 0;
}

static int on_dialect(struct compiler *c, struct schema_node *n, json_t *v)
{
    const char *text = json_string_value(v);
    if (n != c->schema->root || !text || strcmp(text, DIALECT) != 0)
        return refuse(c, "only " DIALECT " at the root is understood");
    return 0;
}

static int on_id(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (n != c->schema->root || !json_is_string(v))
        return refuse(c, "only a string at the root is understood");
    return 0;
}

static int on_defs(struct compiler *c, struct schema_node *n, json_t *v)
{
    if (n != c->schema->root)
        return refuse(c, "only at the root");
    for (size_t i = 0; i < c->schema->defs_len; i++) {
        const struct schema_def *def = &c->schema->defs[i];
        size_t before = enter(c, def->name);
        int r = compile_node(c, def->node, json_object_get(v, def->name));
        leave(c, before);
        if (r < 0)
            return r;
    }
    return 0;
}

/* In the order they are compiled: properties before required, so that violations come in the order
 * in which the document lists the properties. */
static const struct keyword {
    const char *name;
    int (*compile)(struct compiler *c, struct schema_node *n, json_t *v);
} keywords[] = {
    {"$schema", on_dialect},
    {"$id", on_id},
    {"$defs", on_defs},
    {"$ref", on_ref},
    {"type", on_type},
    {"properties", on_properties},
    {"required", on_required},
    {"additionalProperties", on_additional},
    {"items", on_items},
    {"minItems", on_min_items},
    {"maxItems", on_max_items},
    {"minLength", on_min_length},
    {"maxLength", on_max_length},
    {"pattern", on_pattern},
    {"enum", on_enum},
    {"const", on_const},
    {"minimum", on_minimum},
    {"maximum", on_maximum},
    {"anyOf", on_any_of},
    {"title", on_annotation},
    {"description", on_annotation},
    {"default", on_annotation},
    {"examples", on_annotation},
};

static bool is_keyword(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
        if (strcmp(keywords[i].name, name) == 0)
            return true;
    return false;
}

static int compile_node(struct compiler *c, struct schema_node *n, json_t *doc)
{
    if (!n)
        return -ENOMEM;
    if (!json_is_object(doc))
        return refuse(c, "a schema is an object");
    const char *name;
    json_t *value;
    json_object_foreach(doc, name, value)
    {
        if (!is_keyword(name)) {
            (void)enter(c, name);
            return refuse(c, "unknown keyword");
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(keywords); i++) {
        value = json_object_get(doc, keywords[i].name);
        if (!value)
            continue;
        size_t before = enter(c, keywords[i].name);
        int r = keywords[i].compile(c, n, value);
        if (r < 0)
            return r;
        leave(c, before);
    }
    return 0;
}

/* Makes a node for every definition first, so that they may refer to each other in any order. */
static int declare_defs(struct compiler *c)
{
    struct schema *s = c->schema;
    json_t *defs = json_object_get(s->document, "$defs");
    if (!defs)
        return 0;
    if (!json_is_object(defs))
        return err_say(c->err, -EINVAL, "#/$defs: not an object");
    s->defs = calloc(json_object_size(defs) + 1, sizeof(*s->defs));
    if (!s->defs)
        return -ENOMEM;
    const char *name;
    json_t *doc;
    json_object_foreach(defs, name, doc)
    {
        if (strpbrk(name, "/~%"))
            return err_say(c->err, -EINVAL, "#/$defs: a name with /, ~ or %%");
        struct schema_node *n = node_new(s);
        if (!n)
            return -ENOMEM;
        s->defs[s->defs_len++] = (struct schema_def){name, n};
    }
    return 0;
}

/* $ref and anyOf look at the same value again: a loop made of them alone would never end. */
static bool has_loop(struct schema_node *n)
{
    if (n->mark != SCHEMA_UNSEEN)
        return n->mark == SCHEMA_ON_PATH;
    n->mark = SCHEMA_ON_PATH;
    bool loop = n->ref && has_loop(n->ref);
    for (size_t i = 0; !loop && i < n->any_of_len; i++)
        loop = has_loop(n->any_of[i]);
    n->mark = SCHEMA_SEEN;
    return loop;
}

static int compile(struct compiler *c, const char *text)
{
    struct schema *s = c->schema;
    int r = json_parse(text, strlen(text), &s->document, c->err);
    if (r < 0)
        return r;
    /* All of its room at once: from here on a place can be cut, but not fail. */
    if (!buf_reserve(&c->place, PLACE_MAX))
        return -ENOMEM;
    (void)buf_append_str(&c->place, "#"); /* it fits */
    r = declare_defs(c);
    if (r == 0)
        r = compile_node(c, s->root = node_new(s), s->document);
    if (r < 0)
        return r;
    for (struct schema_node *n = s->nodes; n; n = n->next)
        if (has_loop(n))
            return err_say(c->err, -EINVAL, "a $ref leads back to itself");
    return 0;
}

int schema_compile(const char *text, struct schema **ret, struct err *err)
{
    cleanup_schema struct schema *s = calloc(1, sizeof(*s));
    struct compiler c = {.schema = s, .err = err};
    buf_init(&c.place, PLACE_MAX);
    int r = s ? compile(&c, text) : -ENOMEM;
    buf_done(&c.place);
    if (r == -ENOMEM)
        return err_set(err, r, "compile a schema");
    if (r < 0)
        return r;
    *ret = ptr_take(&s);
    return 0;
}

void schema_free(struct schema *s)
{
    if (!s)
        return;
    while (s->nodes) {
        struct schema_node *n = s->nodes;
        s->nodes = n->next;
        if (n->pattern)
            regfree(&n->regex);
        free(n->properties);
        free(n->any_of);
        free(n);
    }
    free(s->defs);
    json_decref(s->document);
    free(s);
}
