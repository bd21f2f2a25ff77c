/* What a client may say: any text. A message that was read answers to its type, and a channel that
 * passed the check goes into an event that is JSON again. */
#include <assert.h>
#include <errno.h>

#include "hub_internal.h"
#include "json/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_answer(const char *channel)
{
    cleanup_buf struct buf out;
    buf_init(&out, 4096);
    int r = message_subscription_error(&out, channel, "no");
    assert(r == 0);
    json_t *root = NULL;
    r = json_parse(out.data, out.len, &root, NULL);
    assert(r == 0);
    const char *told = json_text(json_object_get(root, "channel"), NULL);
    assert(told && strcmp(told, channel) == 0);
    json_decref(root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct message m = {0};
    struct err err = {0};
    int r = message_parse((const char *)data, size, &m, &err);
    if (r < 0) {
        assert(!m.root && !m.data && err.code == r);
        return 0;
    }
    assert(m.event.ptr);
    bool has_channel = m.type == MESSAGE_SUBSCRIBE || m.type == MESSAGE_UNSUBSCRIBE;
    assert((m.channel.ptr != NULL) == has_channel);
    if (has_channel && channel_is_valid(m.channel)) {
        char channel[HUB_CHANNEL_MAX + 1] = {0};
        memcpy(channel, m.channel.ptr, m.channel.len);
        assert(strlen(channel) == m.channel.len);
        check_answer(channel);
    }
    if (m.auth.ptr)
        (void)socket_id_is_valid(m.auth);
    message_done(&m);
    return 0;
}
