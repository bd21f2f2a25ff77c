#include "owner.h"

#include <errno.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "frames/frames.h"

/* A change of ids may make a process dumpable again (fs.suid_dumpable). */
static int stay_closed(struct err *err)
{
    return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? err_say(err, -errno, "prctl dumpable") : 0;
}

int owner_enter(struct owner o, struct err *err)
{
    if (o.uid == FRAME_KEEP_ID)
        return 0;
    if (setegid(o.gid) < 0 || seteuid(o.uid) < 0)
        return err_say(err, -errno, "become %u:%u to make what is theirs", o.uid, o.gid);
    return stay_closed(err);
}

int owner_leave(struct owner o, struct err *err)
{
    if (o.uid == FRAME_KEEP_ID)
        return 0;
    if (seteuid(getuid()) < 0 || setegid(getgid()) < 0)
        return err_say(err, -errno, "become %u:%u again", getuid(), getgid());
    return stay_closed(err);
}
