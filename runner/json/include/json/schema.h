/* json/schema.h - a small JSON Schema (2020-12) validator over jansson.
 *
 * Keywords understood: type, properties, required, additionalProperties (false or schema), items,
 * minItems, maxItems, minLength, maxLength (UTF-16 units, as the published clients count), pattern
 * (POSIX extended), enum, const, minimum, maximum, anyOf, $ref to "#/$defs/name", and the
 * annotations $schema, $id, $defs, title, description, default, examples. Any other keyword is
 * refused when the schema is compiled, so that no rule is silently skipped.
 *
 * A number with a zero fraction (1.0) is an integer. Every violation is reported, with the dotted path
 * of the value ("files.0.name"; "" for the root), in the order of the schema's properties. Messages
 * begin with zod 3's words ("Required", "Expected string, received number") and name bound and value;
 * what they quote of the value is cut short. A value that fails its type is not looked at further; a
 * pattern is not tried on a string that is too long; of anyOf the violations of the only alternative
 * with the right type are reported, else "Invalid input". A walk deeper than 200 steps, which only a
 * schema that refers to itself can ask for, is a violation.
 * Threads: a compiled schema is read-only. */
#ifndef JSON_SCHEMA_H
#define JSON_SCHEMA_H

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"

struct schema;

/* text is a whole schema document. -EINVAL with the place and reason, -ENOMEM. */
int schema_compile(const char *text, struct schema **ret, struct err *err);
void schema_free(struct schema *s);
DEFINE_CLEANUP(struct schema *, schema_free)
#define cleanup_schema CLEANUP(schema_free_slot)

#define SCHEMA_VIOLATIONS_MAX 100

/* 0: valid. 1: *ret_details is a new array of {"path","message"}, at most SCHEMA_VIOLATIONS_MAX.
 * Negative: -ENOMEM. */
int schema_check(const struct schema *s, const json_t *value, json_t **ret_details);

#endif
