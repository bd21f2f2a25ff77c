#include "base/id.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

#include "base/parse.h"

int id_random(void *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t got = getrandom((char *)bytes + at, n - at, 0);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got > 0)
            at += (size_t)got;
    }
    return 0;
}

int id_uuid4(char ret[static ID_UUID_LEN + 1])
{
    uint8_t b[16];
    int r = id_random(b, sizeof(b));
    if (r < 0)
        return r;
    b[6] = (uint8_t)((b[6] & 0x0f) | 0x40); /* version 4 */
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80); /* variant 10 */
    char hex[33];
    hex_encode(b, sizeof(b), hex);
    (void)snprintf(ret, ID_UUID_LEN + 1, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
                   hex + 16, hex + 20); /* exactly 36 characters */
    return 0;
}

int id_hex(size_t n, char *ret)
{
    uint8_t bytes[64];
    assert(n <= sizeof(bytes));
    int r = id_random(bytes, n);
    if (r < 0)
        return r;
    hex_encode(bytes, n, ret);
    return 0;
}
