/* base/utf8.h - code points in byte streams (Unicode 15, table 3-7). */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Looks at the start of bytes[0..n): returns the length (1..4) of a whole code point and sets
 * *ret_cp; or -k, k >= 1: the first k bytes are invalid and stand for one U+FFFD; or 0: the n bytes
 * are the beginning of a code point that is not complete yet. n must be >= 1. */
int utf8_next(const char *bytes, size_t n, uint32_t *ret_cp);

/* How many bytes at the end of bytes[0..n) are an incomplete code point (0..3). */
size_t utf8_incomplete_tail(const char *bytes, size_t n);

/* Whether all of it is valid UTF-8. */
int utf8_is_valid(const char *bytes, size_t n);

/* Length in UTF-16 units; invalid bytes count one unit each. */
size_t utf8_utf16_units(const char *bytes, size_t n);

#endif
