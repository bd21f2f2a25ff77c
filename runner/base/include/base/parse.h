/* base/parse.h - numbers and encodings from outside. Pure: bytes in, value out. */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stddef.h>
#include <stdint.h>

/* Decimal digits only: no sign, space or tail. -EINVAL (not a number), -ERANGE (outside min..max or
 * 64 bits); *ret is written only on success. */
int parse_u64(const char *s, size_t len, uint64_t min, uint64_t max, uint64_t *ret);

/* Standard base64 (RFC 4648 section 4), padded, no white space; the empty string is valid. Returns
 * the decoded length, or -EINVAL. out may be NULL to only check and measure; otherwise it has room for
 * len / 4 * 3 bytes. */
int64_t parse_base64(const char *s, size_t len, uint8_t *out);

/* Lower-case hex of n bytes; out has 2 * n + 1 bytes. */
void hex_encode(const void *bytes, size_t n, char *out);

#endif
