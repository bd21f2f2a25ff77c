/* demux.h - the multiplexed stream of an attached container without a terminal.
 *
 * Docker API, "Attach to a container": each frame has 8 header bytes - stream type (0 stdin, 1
 * stdout, 2 stderr), three zeros, the payload's length as u32 big-endian - and then the payload.
 * Frames come in any pieces. Nothing is allocated: a length is only a number to count down.
 * Pure, on the caller's memory. */
#ifndef DOCKER_DEMUX_H
#define DOCKER_DEMUX_H

#include <stddef.h>
#include <stdint.h>

#define DEMUX_HEADER_BYTES 8U
#define DEMUX_STDERR_KEPT  4096U

struct demux {
    uint8_t header[DEMUX_HEADER_BYTES];
    unsigned have; /* bytes of the header that are here */
    uint32_t left; /* bytes of the payload that are missing; only when the header is whole */
    size_t stderr_len;
    char stderr_text[DEMUX_STDERR_KEPT]; /* the first bytes of stderr */
};

struct demux_step {
    size_t used; /* of in */
    size_t made; /* bytes written to out */
};

/* All zeros is the start state. Takes bytes from in until it is empty or out is full, so one of
 * both is true after it. 0 or -EBADMSG: no frame of this protocol; the stream cannot be used any
 * further. */
int demux_feed(struct demux *m, const uint8_t *in, size_t n, uint8_t *out, size_t out_size,
               struct demux_step *ret);

/* How many of the next bytes are stdout's and may be read straight into the caller's memory. */
uint32_t demux_direct(const struct demux *m);
void demux_direct_took(struct demux *m, size_t n); /* n <= demux_direct() */

/* Whether the stream may end here: between two frames. */
int demux_is_between(const struct demux *m);

#endif
