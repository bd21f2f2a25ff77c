/* json/json.h - parsing and printing with our rules, over jansson. */
#ifndef JSON_JSON_H
#define JSON_JSON_H

#include <stddef.h>

#include <jansson.h>

#include "base/buf.h"
#include "base/err.h"

/* Parses one whole JSON text. Duplicate keys, lone surrogates, numbers out of range and nesting deeper
 * than jansson's limit are refused; NUL inside strings is allowed. -EINVAL with "line L, column C:
 * reason" in err. Any top-level value is accepted. */
int json_parse(const char *text, size_t len, json_t **ret, struct err *err);

/* Compact text of value, appended. 0, -EMSGSIZE, -ENOMEM. */
int json_print(struct buf *out, const json_t *value);

/* Borrowed text of a string value and its length; NULL for anything else. */
const char *json_text(const json_t *value, size_t *ret_len);

/* New string value from any bytes: invalid UTF-8 becomes U+FFFD. */
json_t *json_string_lossy(const char *bytes, size_t n);

#endif
