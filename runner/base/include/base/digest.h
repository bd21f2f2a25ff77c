/* base/digest.h - hashes and comparisons for secrets (OpenSSL's libcrypto). */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#define DIGEST_SHA256_BYTES 32
#define DIGEST_SHA256_HEX   64
#define DIGEST_SHA1_BYTES   20

/* 0 or -ENOMEM. */
int digest_sha256(const void *bytes, size_t n, uint8_t ret[static DIGEST_SHA256_BYTES]);
int digest_sha256_hex(const void *bytes, size_t n, char ret[static DIGEST_SHA256_HEX + 1]);
int digest_sha1(const void *bytes, size_t n, uint8_t ret[static DIGEST_SHA1_BYTES]);
int digest_hmac_sha256_hex(const char *key, const void *bytes, size_t n,
                           char ret[static DIGEST_SHA256_HEX + 1]);

/* Whether two strings are equal, in time that tells nothing about either: both are hashed first. */
int digest_secret_eq(const char *a, size_t a_len, const char *b, size_t b_len);

#endif
