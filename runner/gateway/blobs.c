/* /v1/blobs/: contents kept by hash. There is no store behind it yet, which is said after the body
 * was found right. */
#include "gateway_internal.h"

void blobs_post(struct request *r, struct answer *a)
{
    (void)r;
    answer_error(a, MHD_HTTP_NOT_IMPLEMENTED,
                 "blob store not configured: send files with their content");
}
