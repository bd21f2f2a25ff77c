#include "tar.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct header {
    char name[100];
    char mode[8];
    char uid[8];
    char gid[8];
    char size[12];
    char mtime[12];
    char checksum[8];
    char type;
    char linkname[100];
    char magic[6];
    char version[2];
    char user[32];
    char group[32];
    char device_major[8];
    char device_minor[8];
    char prefix[155];
    char padding[12];
};
static_assert(sizeof(struct header) == TAR_BLOCK, "a header is one block");

enum { TYPE_FILE = '0', TYPE_FILE_OLD = '\0' };

/* Octal digits to the field's last byte, which stays NUL. */
static void put_octal(char *field, size_t size, uint64_t v)
{
    for (size_t i = size - 1; i-- > 0; v >>= 3)
        field[i] = (char)('0' + (v & 7));
}

/* The sum of all bytes, with the sum's own field as blanks. */
static uint32_t checksum(const struct header *h)
{
    const unsigned char *p = (const unsigned char *)h;
    size_t from = offsetof(struct header, checksum);
    uint32_t sum = 0;
    for (size_t i = 0; i < sizeof(*h); i++)
        sum += i >= from && i < from + sizeof(h->checksum) ? ' ' : p[i];
    return sum;
}

static int pad(struct buf *out, size_t n)
{
    static const char zeros[TAR_BLOCK];
    return n % TAR_BLOCK ? buf_append(out, zeros, TAR_BLOCK - n % TAR_BLOCK) : 0;
}

int tar_add_file(struct buf *out, const char *name, uint32_t mode, struct span bytes)
{
    size_t name_len = strlen(name);
    if (name_len == 0 || name_len > TAR_NAME_MAX || bytes.len >> 33) /* 11 octal digits */
        return -EINVAL;
    struct header h;
    memset(&h, 0, sizeof(h));
    memcpy(h.name, name, name_len);
    put_octal(h.mode, sizeof(h.mode), mode & 07777);
    put_octal(h.uid, sizeof(h.uid), 0);
    put_octal(h.gid, sizeof(h.gid), 0);
    put_octal(h.size, sizeof(h.size), bytes.len);
    put_octal(h.mtime, sizeof(h.mtime), 0); /* the same bytes for the same file */
    h.type = TYPE_FILE;
    memcpy(h.magic, "ustar", sizeof(h.magic));
    memset(h.version, '0', sizeof(h.version));
    put_octal(h.checksum, sizeof(h.checksum) - 1, checksum(&h)); /* NUL, then a blank */
    h.checksum[sizeof(h.checksum) - 1] = ' ';

    size_t before = out->len;
    int r = buf_append(out, &h, sizeof(h));
    if (r == 0)
        r = buf_append(out, bytes.ptr, bytes.len);
    if (r == 0)
        r = pad(out, bytes.len);
    if (r < 0)
        out->len = before;
    return r;
}

int tar_end(struct buf *out)
{
    static const char zeros[2 * TAR_BLOCK];
    return buf_append(out, zeros, sizeof(zeros));
}

/* Octal digits that a NUL or a blank ends; blanks may come first. */
static bool get_octal(const char *field, size_t size, uint64_t *ret)
{
    size_t i = 0;
    uint64_t v = 0;
    while (i < size && field[i] == ' ')
        i++;
    size_t first = i;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        v = v * 8 + (uint64_t)(field[i] - '0');
    if (i == first || (i < size && field[i] != '\0' && field[i] != ' '))
        return false;
    *ret = v;
    return true;
}

int tar_first_file(struct span tar, uint32_t *ret_mode, struct span *ret_bytes)
{
    while (tar.len >= TAR_BLOCK) {
        struct header h;
        memcpy(&h, tar.ptr, sizeof(h));
        if (h.name[0] == '\0')
            return -ENOENT; /* the end */
        uint64_t size, mode, sum;
        if (!get_octal(h.size, sizeof(h.size), &size) ||
            !get_octal(h.mode, sizeof(h.mode), &mode) ||
            !get_octal(h.checksum, sizeof(h.checksum), &sum) || sum != checksum(&h))
            return -EBADMSG;
        tar.ptr += TAR_BLOCK;
        tar.len -= TAR_BLOCK;
        if (size > tar.len)
            return -EBADMSG;
        if (h.type == TYPE_FILE || h.type == TYPE_FILE_OLD) {
            *ret_mode = (uint32_t)mode & 07777;
            *ret_bytes = (struct span){tar.ptr, (size_t)size};
            return 0;
        }
        size_t whole = ((size_t)size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
        if (whole > tar.len)
            return -EBADMSG;
        tar.ptr += whole;
        tar.len -= whole;
    }
    return tar.len == 0 ? -ENOENT : -EBADMSG;
}
