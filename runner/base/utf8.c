#include "base/utf8.h"

/* The allowed range of the second byte and the length, for each lead byte (Unicode 15, table 3-7).
 */
static int lead(uint8_t b, uint8_t *lo, uint8_t *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (b >= 0xc2 && b <= 0xdf)
        return 2;
    if (b >= 0xe0 && b <= 0xef) {
        if (b == 0xe0)
            *lo = 0xa0;
        if (b == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (b >= 0xf0 && b <= 0xf4) {
        if (b == 0xf0)
            *lo = 0x90;
        if (b == 0xf4)
            *hi = 0x8f;
        return 4;
    }
    return 0;
}

int utf8_next(const char *bytes, size_t n, uint32_t *ret_cp)
{
    const uint8_t *p = (const uint8_t *)bytes;
    if (p[0] < 0x80) {
        *ret_cp = p[0];
        return 1;
    }
    uint8_t lo;
    uint8_t hi;
    int len = lead(p[0], &lo, &hi);
    if (len == 0)
        return -1;
    uint32_t cp = p[0] & (0x7fU >> len);
    for (int i = 1; i < len; i++) {
        if ((size_t)i >= n)
            return 0;
        if (p[i] < lo || p[i] > hi)
            return -i;
        cp = cp << 6 | (p[i] & 0x3fU);
        lo = 0x80;
        hi = 0xbf;
    }
    *ret_cp = cp;
    return len;
}

size_t utf8_incomplete_tail(const char *bytes, size_t n)
{
    for (size_t back = 1; back <= 3 && back <= n; back++) {
        uint8_t b = (uint8_t)bytes[n - back];
        if (b < 0x80)
            return 0;
        if (b < 0xc0)
            continue;
        uint32_t cp;
        return utf8_next(bytes + n - back, back, &cp) == 0 ? back : 0;
    }
    return 0;
}

int utf8_is_valid(const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        uint32_t cp;
        int k = utf8_next(bytes + at, n - at, &cp);
        if (k <= 0)
            return 0;
        at += (size_t)k;
    }
    return 1;
}

size_t utf8_utf16_units(const char *bytes, size_t n)
{
    size_t units = 0;
    for (size_t at = 0; at < n;) {
        uint32_t cp = 0;
        int k = utf8_next(bytes + at, n - at, &cp);
        units += k == 4 ? 2 : 1;
        at += k > 0 ? (size_t)k : 1;
    }
    return units;
}
