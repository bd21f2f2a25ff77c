#include "base/parse.h"

#include <errno.h>

int parse_u64(const char *s, size_t len, uint64_t min, uint64_t max, uint64_t *ret)
{
    if (len == 0)
        return -EINVAL;
    uint64_t v = 0;
    int overflow = 0;
    for (size_t i = 0; i < len; i++) {
        if (s[i] < '0' || s[i] > '9')
            return -EINVAL;
        overflow |= __builtin_mul_overflow(v, (uint64_t)10, &v);
        overflow |= __builtin_add_overflow(v, (uint64_t)(s[i] - '0'), &v);
    }
    if (overflow || v < min || v > max)
        return -ERANGE;
    *ret = v;
    return 0;
}

static int base64_digit(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+')
        return 62;
    return c == '/' ? 63 : -1;
}

int64_t parse_base64(const char *s, size_t len, uint8_t *out)
{
    if (len % 4 != 0 || len > INT64_MAX / 4)
        return -EINVAL;
    size_t pad = 0;
    while (pad < 2 && pad < len && s[len - 1 - pad] == '=')
        pad++;
    size_t n = 0;
    for (size_t i = 0; i < len; i += 4) {
        uint32_t v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = i + k >= len - pad ? 0 : base64_digit(s[i + k]);
            if (d < 0)
                return -EINVAL;
            v = v << 6 | (uint32_t)d;
        }
        size_t bytes = i + 4 == len ? 3 - pad : 3;
        for (size_t k = 0; out && k < bytes; k++)
            out[n + k] = (uint8_t)(v >> (16 - 8 * k));
        n += bytes;
    }
    return (int64_t)n;
}

void hex_encode(const void *bytes, size_t n, char *out)
{
    static const char hex[] = "0123456789abcdef";
    const uint8_t *p = bytes;
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = hex[p[i] >> 4];
        out[2 * i + 1] = hex[p[i] & 15];
    }
    out[2 * n] = '\0';
}
