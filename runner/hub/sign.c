#include <errno.h>

#include "base/digest.h"
#include "hub_internal.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_channel_char(char c)
{
    return is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (c != '\0' && strchr("_-=@,.;", c));
}

bool channel_is_valid(struct span channel)
{
    if (channel.len == 0 || channel.len > HUB_CHANNEL_MAX)
        return false;
    for (size_t i = 0; i < channel.len; i++)
        if (!is_channel_char(channel.ptr[i]))
            return false;
    return true;
}

bool socket_id_is_valid(struct span id)
{
    size_t dots = 0;
    if (id.len > HUB_SOCKET_ID_MAX || id.len < 3)
        return false;
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] == '.')
            dots++;
        else if (!is_digit(id.ptr[i]))
            return false;
    }
    return dots == 1 && id.ptr[0] != '.' && id.ptr[id.len - 1] != '.';
}

int hub_sign(const struct hub *h, struct span socket_id, struct span channel, struct buf *ret)
{
    if (!socket_id_is_valid(socket_id) || !channel_is_valid(channel))
        return -EINVAL;

    char text[HUB_SOCKET_ID_MAX + 1 + HUB_CHANNEL_MAX];
    memcpy(text, socket_id.ptr, socket_id.len);
    text[socket_id.len] = ':';
    memcpy(text + socket_id.len + 1, channel.ptr, channel.len);
    char hex[DIGEST_SHA256_HEX + 1];
    int r = digest_hmac_sha256_hex(h->app_secret, text, socket_id.len + 1 + channel.len, hex);
    if (r < 0)
        return r;
    return buf_appendf(ret, "%s:%s", h->app_key, hex);
}
