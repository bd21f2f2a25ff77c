/* A sandbox backend without a sandbox: init is a function of the test, in a thread, at the other end
 * of a socket pair. Defines the functions of sandbox/sandbox.h that a session calls. */
#ifndef SESSION_FAKE_SANDBOX_H
#define SESSION_FAKE_SANDBOX_H

#include <stdbool.h>

#include "sandbox/sandbox.h"

struct sandbox_backend {
    void (*init)(int fd); /* blocking; returns when it is done with the stream */
    int open_error;       /* sandbox_open() fails with it */
    bool out_of_memory;   /* what the verdict says */
    unsigned opened, killed, closed;
};

#endif
