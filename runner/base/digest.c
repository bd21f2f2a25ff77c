#include "base/digest.h"

#include <errno.h>
#include <limits.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/parse.h"

static int digest(const EVP_MD *md, const void *bytes, size_t n, uint8_t *ret)
{
    return EVP_Digest(bytes, n, ret, NULL, md, NULL) == 1 ? 0 : -ENOMEM;
}

int digest_sha256(const void *bytes, size_t n, uint8_t ret[static DIGEST_SHA256_BYTES])
{
    return digest(EVP_sha256(), bytes, n, ret);
}

int digest_sha1(const void *bytes, size_t n, uint8_t ret[static DIGEST_SHA1_BYTES])
{
    return digest(EVP_sha1(), bytes, n, ret);
}

int digest_sha256_hex(const void *bytes, size_t n, char ret[static DIGEST_SHA256_HEX + 1])
{
    uint8_t sum[DIGEST_SHA256_BYTES];
    int r = digest_sha256(bytes, n, sum);
    if (r == 0)
        hex_encode(sum, sizeof(sum), ret);
    return r;
}

int digest_hmac_sha256_hex(const char *key, const void *bytes, size_t n,
                           char ret[static DIGEST_SHA256_HEX + 1])
{
    uint8_t sum[DIGEST_SHA256_BYTES];
    size_t key_len = strlen(key);
    if (key_len > INT_MAX)
        return -ENOMEM;
    if (!HMAC(EVP_sha256(), key, (int)key_len, bytes, n, sum, NULL))
        return -ENOMEM;
    hex_encode(sum, sizeof(sum), ret);
    return 0;
}

int digest_secret_eq(const char *a, size_t a_len, const char *b, size_t b_len)
{
    uint8_t sums[2][DIGEST_SHA256_BYTES];
    if (digest_sha256(a, a_len, sums[0]) < 0 || digest_sha256(b, b_len, sums[1]) < 0)
        return 0;
    return CRYPTO_memcmp(sums[0], sums[1], sizeof(sums[0])) == 0;
}
