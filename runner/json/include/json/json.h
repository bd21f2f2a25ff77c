/* json/json.h - parsing and printing with our rules, over jansson. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Parses one whole JSON text. Duplicate keys, lone surrogates, numbers out of range and nesting
 * deeper than jansson's limit (2048) are refused; NUL is allowed inside string values, not in keys.
 * -EINVAL with "line L, column C: reason" in err, or -ENOMEM (which jansson's tokeniser may report as a bad token). Any top-level
 * value is accepted. */
int json_parse(const char *text, size_t len, json_t **ret, struct err *err);

/* Compact text of value, appended. 0, -EMSGSIZE, -ENOMEM; on failure nothing is appended. */
int json_print(struct buf *out, const json_t *value);

/* Borrowed text of a string value and its length (ret_len may be NULL); NULL for anything else. */
const char *json_text(const json_t *value, size_t *ret_len);

/* The largest integer every JSON reader agrees on: 2^53 - 1. */
#define JSON_SAFE_INT_MAX INT64_C(9007199254740991)

/* Reads an integer; a number with a zero fraction (1.0, 1e3) is one. -EINVAL: not an integer;
 * -ERANGE: beyond JSON_SAFE_INT_MAX on either side. *ret is written only on success. */
int json_int(const json_t *value, int64_t *ret);

/* New string value from any bytes: invalid UTF-8 becomes U+FFFD, one for each maximal
 * subpart as in buf_append_json_text(). NULL when out of memory. */
json_t *json_string_lossy(const char *bytes, size_t n);

#endif
