/* base/id.h - random identifiers. */
#ifndef BASE_ID_H
#define BASE_ID_H

#include <stddef.h>

#define ID_UUID_LEN 36

/* Fills with bytes from getrandom(2); 0 or a negative errno. */
int id_random(void *bytes, size_t n);

/* Random UUID version 4 (RFC 9562), lower case, NUL-terminated. */
int id_uuid4(char ret[static ID_UUID_LEN + 1]);

/* n random bytes as lower-case hex; ret has 2 * n + 1 bytes, n <= 64. */
int id_hex(size_t n, char *ret);

#endif
