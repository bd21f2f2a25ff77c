/* schema_internal.h - a compiled schema: what schema.c builds and schema_check.c walks. */
#ifndef JSON_SCHEMA_INTERNAL_H
#define JSON_SCHEMA_INTERNAL_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "json/schema.h"

enum schema_type {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_NUMBER = 8,
    SCHEMA_STRING = 16,
    SCHEMA_ARRAY = 32,
    SCHEMA_OBJECT = 64,
};

struct schema_property {
    const char *name;         /* borrowed from the document */
    struct schema_node *node; /* NULL: only required */
    bool required;
};

/* Whether a chain of $ref and anyOf leads back to where it began. */
enum schema_mark { SCHEMA_UNSEEN, SCHEMA_ON_PATH, SCHEMA_SEEN };

struct schema_node {
    struct schema_node *next; /* all nodes of the schema, to free them */
    enum schema_mark mark;
    unsigned types; /* enum schema_type bits; 0: any */
    struct schema_property *properties;
    size_t properties_len;
    bool closed; /* additionalProperties: false */
    struct schema_node *additional;
    struct schema_node *items;
    struct schema_node *ref;
    struct schema_node **any_of;
    size_t any_of_len;
    size_t min_items, max_items;
    size_t min_length, max_length;
    double minimum, maximum;
    const char *pattern; /* NULL: none, and regex is not compiled */
    regex_t regex;
    const json_t *choices; /* enum: an array */
    const json_t *constant;
};

struct schema_def {
    const char *name;
    struct schema_node *node;
};

struct schema {
    json_t *document; /* names, patterns and values are borrowed from it */
    struct schema_node *nodes;
    struct schema_node *root;
    struct schema_def *defs;
    size_t defs_len;
};

#endif
