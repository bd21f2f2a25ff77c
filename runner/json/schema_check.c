#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "schema_internal.h"
#include "json/json.h"
#include "json/schema.h"

#define DEPTH_MAX       200 /* of the walk; a schema that refers to itself is what gets there */
#define PATH_BYTES_MAX  1024
#define MESSAGE_MAX     2048
#define ECHO_BYTES_MAX  64 /* of one value of the user's, in a message or a path */
#define UNKNOWN_KEY_MAX 8  /* named in one message */

/* Where the value is: a chain on the stack, towards the root. */
struct place {
    const struct place *up;
    const char *key; /* NULL: index */
    size_t index;
};

struct check {
    json_t *details;
    unsigned depth;
    bool out_of_memory;
};

static void check_node(struct check *c, const struct schema_node *n, const json_t *v,
                       const struct place *at);

static bool is_over(const struct check *c)
{
    return c->out_of_memory || json_array_size(c->details) >= SCHEMA_VIOLATIONS_MAX;
}

/* jansson's iterators ask for a mutable object but change nothing. */
static json_t *iterable(const json_t *v)
{
    return (json_t *)(uintptr_t)v;
}

/* Appends a user's text, cut to something short and without control bytes. The texts built here may
 * be cut at their maximum as well, so append errors are dropped throughout. */
static void echo(struct buf *out, const char *text, size_t len)
{
    size_t end = 0;
    while (end < len) {
        uint32_t cp = 0;
        int k = utf8_next(text + end, len - end, &cp);
        size_t n = k > 0 ? (size_t)k : 1;
        if (end + n > ECHO_BYTES_MAX)
            break;
        if (k <= 0 || cp < 0x20 || cp == 0x7f)
            (void)buf_append_byte(out, '?');
        else
            (void)buf_append(out, text + end, n);
        end += n;
    }
    if (end < len)
        (void)buf_append_str(out, "...");
}

/* The words for a value in a message: 'text', 12, true, null, array, object. */
static void echo_value(struct buf *out, const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_STRING:
        (void)buf_append_byte(out, '\'');
        echo(out, json_string_value(v), json_string_length(v));
        (void)buf_append_byte(out, '\'');
        return;
    case JSON_INTEGER:
        (void)buf_appendf(out, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return;
    case JSON_REAL:
        (void)buf_appendf(out, "%.15g", json_real_value(v));
        return;
    case JSON_TRUE:
        (void)buf_append_str(out, "true");
        return;
    case JSON_FALSE:
        (void)buf_append_str(out, "false");
        return;
    case JSON_NULL:
        (void)buf_append_str(out, "null");
        return;
    case JSON_ARRAY:
        (void)buf_append_str(out, "array");
        return;
    case JSON_OBJECT:
        (void)buf_append_str(out, "object");
        return;
    }
}

static void echo_path(struct buf *out, const struct place *at)
{
    if (!at)
        return;
    echo_path(out, at->up);
    if (at->up)
        (void)buf_append_byte(out, '.');
    if (at->key)
        echo(out, at->key, strlen(at->key));
    else
        (void)buf_appendf(out, "%zu", at->index);
}

static void add(struct check *c, const struct place *at, const struct buf *message)
{
    if (is_over(c))
        return;
    cleanup_buf struct buf path;
    buf_init(&path, PATH_BYTES_MAX);
    echo_path(&path, at);
    json_t *detail = json_object();
    if (!c->details)
        c->details = json_array();
    if (!detail || !c->details || !message->data ||
        json_object_set_new(detail, "path", json_string_lossy(path.data, path.len)) < 0 ||
        json_object_set_new(detail, "message", json_string_lossy(message->data, message->len)) <
            0 ||
        json_array_append(c->details, detail) < 0)
        c->out_of_memory = true;
    json_decref(detail);
}

static void add_text(struct check *c, const struct place *at, const char *text)
{
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_append_str(&message, text);
    add(c, at, &message);
}

/* "String must contain at least 1 character(s), received 0" */
static void add_count(struct check *c, const struct place *at, const char *what, size_t bound,
                      size_t got)
{
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_appendf(&message, "%s %zu %s, received %zu", what, bound,
                      strncmp(what, "String", 6) == 0 ? "character(s)" : "element(s)", got);
    add(c, at, &message);
}

static void add_bound(struct check *c, const struct place *at, const char *what, double bound,
                      const json_t *got)
{
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_appendf(&message, "Number must be %s than or equal to %.16g, received ", what, bound);
    echo_value(&message, got);
    add(c, at, &message);
}

static bool is_whole(double v)
{
    return v == floor(v);
}

/* The bits of every type the value has. */
static unsigned types_of(const json_t *v)
{
    switch (json_typeof(v)) {
    case JSON_NULL:
        return SCHEMA_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return SCHEMA_BOOLEAN;
    case JSON_INTEGER:
        return SCHEMA_INTEGER | SCHEMA_NUMBER;
    case JSON_REAL:
        return is_whole(json_real_value(v)) ? SCHEMA_INTEGER | SCHEMA_NUMBER : SCHEMA_NUMBER;
    case JSON_STRING:
        return SCHEMA_STRING;
    case JSON_ARRAY:
        return SCHEMA_ARRAY;
    case JSON_OBJECT:
        return SCHEMA_OBJECT;
    }
    return 0;
}

static const char *type_name(unsigned bits)
{
    switch (bits & ~(unsigned)SCHEMA_INTEGER) {
    case SCHEMA_NULL:
        return "null";
    case SCHEMA_BOOLEAN:
        return "boolean";
    case SCHEMA_STRING:
        return "string";
    case SCHEMA_ARRAY:
        return "array";
    case SCHEMA_OBJECT:
        return "object";
    default:
        return "number"; /* an integer is one too */
    }
}

/* "Expected string | null, received number"; of a fraction: "Expected integer, received float". */
static void add_type(struct check *c, const struct place *at, const struct schema_node *n,
                     const json_t *v)
{
    bool is_fraction = json_is_real(v) && (n->types & SCHEMA_INTEGER);
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_append_str(&message, "Expected ");
    const char *between = "";
    for (unsigned bit = SCHEMA_OBJECT; bit > 0; bit >>= 1) {
        if (!(n->types & bit))
            continue;
        bool is_integer = bit == SCHEMA_INTEGER;
        (void)buf_appendf(&message, "%s%s", between,
                          is_integer && is_fraction ? "integer" : type_name(bit));
        between = " | ";
    }
    (void)buf_appendf(&message, ", received %s", is_fraction ? "float" : type_name(types_of(v)));
    add(c, at, &message);
}

/* As JSON Schema compares: 1 equals 1.0. */
static bool is_equal(const json_t *a, const json_t *b)
{
    int64_t x;
    int64_t y;
    if (json_int(a, &x) == 0 && json_int(b, &y) == 0)
        return x == y;
    return json_equal(a, b);
}

static void check_choices(struct check *c, const struct schema_node *n, const json_t *v,
                          const struct place *at)
{
    for (size_t i = 0; i < json_array_size(n->choices); i++)
        if (is_equal(json_array_get(n->choices, i), v))
            return;
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_append_str(&message, "Invalid enum value. Expected ");
    for (size_t i = 0; i < json_array_size(n->choices); i++) {
        (void)buf_append_str(&message, i > 0 ? " | " : "");
        echo_value(&message, json_array_get(n->choices, i));
    }
    (void)buf_append_str(&message, ", received ");
    echo_value(&message, v);
    add(c, at, &message);
}

static void check_constant(struct check *c, const struct schema_node *n, const json_t *v,
                           const struct place *at)
{
    if (is_equal(n->constant, v))
        return;
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_append_str(&message, "Invalid literal value, expected ");
    echo_value(&message, n->constant);
    (void)buf_append_str(&message, ", received ");
    echo_value(&message, v);
    add(c, at, &message);
}

static void check_number(struct check *c, const struct schema_node *n, const json_t *v,
                         const struct place *at)
{
    /* Bounds are within 2^53, so rounding a larger integer can't move it across one. */
    double number = json_number_value(v);
    if (number < n->minimum)
        add_bound(c, at, "greater", n->minimum, v);
    if (number > n->maximum)
        add_bound(c, at, "less", n->maximum, v);
}

static bool matches(const struct schema_node *n, const char *text, size_t len)
{
    /* With the length given, a NUL in the text doesn't end it. */
    regmatch_t range = {.rm_so = 0, .rm_eo = (regoff_t)len};
    return regexec(&n->regex, text, 1, &range, REG_STARTEND) == 0;
}

static void check_string(struct check *c, const struct schema_node *n, const json_t *v,
                         const struct place *at)
{
    const char *text = json_string_value(v);
    size_t len = json_string_length(v);
    bool is_bounded = n->min_length > 0 || n->max_length < SIZE_MAX;
    size_t units = is_bounded ? utf8_utf16_units(text, len) : 0; /* counting reads all of it */
    if (units < n->min_length)
        add_count(c, at, "String must contain at least", n->min_length, units);
    if (units > n->max_length) {
        add_count(c, at, "String must contain at most", n->max_length, units);
        return; /* the pattern would read all of it */
    }
    if (!n->pattern || matches(n, text, len))
        return;
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    (void)buf_appendf(&message, "Invalid, must match %s, received ", n->pattern);
    echo_value(&message, v);
    add(c, at, &message);
}

static void check_array(struct check *c, const struct schema_node *n, const json_t *v,
                        const struct place *at)
{
    size_t len = json_array_size(v);
    if (len < n->min_items)
        add_count(c, at, "Array must contain at least", n->min_items, len);
    if (len > n->max_items)
        add_count(c, at, "Array must contain at most", n->max_items, len);
    for (size_t i = 0; n->items && i < len && !is_over(c); i++) {
        struct place here = {.up = at, .index = i};
        check_node(c, n->items, json_array_get(v, i), &here);
    }
}

static bool is_known(const struct schema_node *n, const char *key)
{
    for (size_t i = 0; i < n->properties_len; i++)
        if (n->properties[i].node && strcmp(n->properties[i].name, key) == 0)
            return true;
    return false;
}

static void check_closed(struct check *c, const struct schema_node *n, const json_t *v,
                         const struct place *at)
{
    cleanup_buf struct buf message;
    buf_init(&message, MESSAGE_MAX);
    size_t unknown = 0;
    const char *key;
    json_t *value;
    json_object_foreach(iterable(v), key, value)
    {
        if (is_known(n, key) || unknown++ >= UNKNOWN_KEY_MAX)
            continue;
        (void)buf_append_str(&message, unknown == 1 ? "Unrecognized key(s) in object: '" : ", '");
        echo(&message, key, strlen(key));
        (void)buf_append_byte(&message, '\'');
    }
    if (unknown > UNKNOWN_KEY_MAX)
        (void)buf_appendf(&message, " and %zu more", unknown - UNKNOWN_KEY_MAX);
    if (unknown > 0)
        add(c, at, &message);
}

static void check_object(struct check *c, const struct schema_node *n, const json_t *v,
                         const struct place *at)
{
    for (size_t i = 0; i < n->properties_len && !is_over(c); i++) {
        const struct schema_property *p = &n->properties[i];
        struct place here = {.up = at, .key = p->name};
        const json_t *value = json_object_get(v, p->name);
        if (value && p->node)
            check_node(c, p->node, value, &here);
        else if (!value && p->required)
            add_text(c, &here, "Required");
    }
    if (n->closed)
        check_closed(c, n, v, at);
    if (!n->additional)
        return;
    const char *key;
    json_t *value;
    json_object_foreach(iterable(v), key, value)
    {
        struct place here = {.up = at, .key = key};
        if (!is_known(n, key))
            check_node(c, n->additional, value, &here);
        if (is_over(c))
            return;
    }
}

/* Whether the value has a type the node allows, looking through $ref. */
static bool takes_type(const struct schema_node *n, const json_t *v)
{
    for (; n; n = n->ref)
        if (n->types && !(n->types & types_of(v)))
            return false;
    return true;
}

/* One alternative must hold. When the type leaves a single candidate its violations are the useful
 * ones; else all that can be said is that none fits. */
static void check_any_of(struct check *c, const struct schema_node *n, const json_t *v,
                         const struct place *at)
{
    json_t *likely = NULL;
    size_t candidates = 0;
    for (size_t i = 0; i < n->any_of_len; i++) {
        struct check branch = {.depth = c->depth};
        check_node(&branch, n->any_of[i], v, at);
        if (branch.out_of_memory)
            c->out_of_memory = true;
        bool holds = !branch.details;
        if (!holds && takes_type(n->any_of[i], v) && candidates++ == 0)
            likely = branch.details;
        else
            json_decref(branch.details);
        if (holds || c->out_of_memory) {
            json_decref(likely);
            return;
        }
    }
    if (candidates != 1)
        add_text(c, at, "Invalid input");
    for (size_t i = 0; candidates == 1 && i < json_array_size(likely) && !is_over(c); i++) {
        if (!c->details)
            c->details = json_array();
        if (json_array_append(c->details, json_array_get(likely, i)) < 0)
            c->out_of_memory = true;
    }
    json_decref(likely);
}

static void check_by_type(struct check *c, const struct schema_node *n, const json_t *v,
                          const struct place *at)
{
    switch (json_typeof(v)) {
    case JSON_INTEGER:
    case JSON_REAL:
        check_number(c, n, v, at);
        return;
    case JSON_STRING:
        check_string(c, n, v, at);
        return;
    case JSON_ARRAY:
        check_array(c, n, v, at);
        return;
    case JSON_OBJECT:
        check_object(c, n, v, at);
        return;
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return;
    }
}

static void check_node(struct check *c, const struct schema_node *n, const json_t *v,
                       const struct place *at)
{
    if (c->depth >= DEPTH_MAX) {
        add_text(c, at, "Nested too deeply");
        return;
    }
    if (n->types && !(n->types & types_of(v))) {
        add_type(c, at, n, v);
        return; /* every other rule would complain about the same thing */
    }
    c->depth++;
    if (n->ref)
        check_node(c, n->ref, v, at);
    if (n->choices)
        check_choices(c, n, v, at);
    if (n->constant)
        check_constant(c, n, v, at);
    check_by_type(c, n, v, at);
    if (n->any_of)
        check_any_of(c, n, v, at);
    c->depth--;
}

int schema_check(const struct schema *s, const json_t *value, json_t **ret_details)
{
    struct check c = {.details = NULL};
    check_node(&c, s->root, value, NULL);
    if (c.out_of_memory) {
        json_decref(c.details);
        return -ENOMEM;
    }
    if (!c.details)
        return 0;
    *ret_details = c.details;
    return 1;
}
