#include "policy/policy.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>

#define MIB (UINT64_C(1) << 20)
#define MEMORY_MB_MAX                                                                              \
    (INT64_MAX / INT64_C(1048576)) /* what fits the daemon's signed 64-bit field */
#define PIDS_KERNEL_MAX 4194304    /* PID_MAX_LIMIT of 64-bit kernels */
#define INIT_PIDS       1
#define CPUS_MILLI_MIN  10 /* 1 ms in 100 ms: the kernel's smallest quota, and the daemon's */
#define CPU_PERIOD_US   100000
#define NOFILE_MAX      1024      /* more breaks programs that still call select(2) */
#define UID_MAX         INT32_MAX /* the daemon refuses ids beyond it */

/* The kernel rounds a tmpfs up to whole pages. 64 KiB is the largest page of the machines we run
 * on and a multiple of all others, so a size in these units stays what it is. Limits come in MiB
 * and the shares below are whole sixteenths of them: always whole units. */
#define TMPFS_UNIT UINT64_C(65536)
/* The inode and the name of a tmpfs file cost about 1 KiB of the sandbox's memory beside its pages.
 * With one inode for each 8 KiB a tmpfs full of empty files costs an eighth of its size: all three
 * of them, full of files, still leave the program a good third of its memory. */
#define TMPFS_BYTES_PER_INODE 8192
#define TMPFS_INODES_MIN      256 /* also: 0 would mean no bound at all */
#define TMPFS_INODES_MAX      (UINT64_C(1) << 20)
#define SHM_MAX               (64 * MIB) /* the daemon's default size of /dev/shm */

/* HOME is /tmp and not the workspace: caches and dot files that programs leave at home are no
 * results of theirs, and everything new in the workspace may be collected as an artifact. */
const char *const policy_base_env[] = {
    "HOME=/tmp", "LANG=C.UTF-8",
    "TZ=UTC",    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    NULL,
};

static const char *const masked[] = {
    /* the daemon's own list, which giving ours would replace */
    "/proc/acpi",
    "/proc/asound",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/devices/virtual/powercap",
    "/sys/firmware",
    /* which machine this is, and what it was started with */
    "/proc/cmdline",
    "/proc/sys/kernel/random/boot_id",
    "/sys/devices/virtual/dmi",
    /* its disks, modules and other users */
    "/proc/diskstats",
    "/proc/key-users",
    "/proc/modules",
    "/proc/partitions",
    "/proc/swaps",
    /* counters of the whole kernel, through which one job could watch another */
    "/proc/buddyinfo",
    "/proc/pagetypeinfo",
    "/proc/schedstat",
    "/proc/slabinfo",
    "/proc/softirqs",
    "/proc/vmallocinfo",
    "/proc/zoneinfo",
    NULL,
};

static const char *const readonly[] = {
    "/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger", NULL,
};

static uint64_t between(uint64_t v, uint64_t min, uint64_t max)
{
    if (v < min)
        return min;
    return v > max ? max : v;
}

static struct policy_tmpfs tmpfs(const char *path, uint64_t size_bytes, uint32_t mode)
{
    assert(size_bytes > 0 && size_bytes % TMPFS_UNIT == 0);
    return (struct policy_tmpfs){
        .path = path,
        .size_bytes = size_bytes,
        .inodes = between(size_bytes / TMPFS_BYTES_PER_INODE, TMPFS_INODES_MIN, TMPFS_INODES_MAX),
        .mode = mode,
    };
}

/* An eighth of the half is shared memory, a quarter is /tmp, the rest is the workspace. */
static void split_memory(struct policy *p)
{
    uint64_t half = p->memory_bytes / 2;
    uint64_t shm = half / 8 < SHM_MAX ? half / 8 : SHM_MAX;
    uint64_t tmp = half / 4;

    /* 0755: the one user in there owns it, so nobody is kept out by less, and an init with another
     * uid (gVisor) can enter it. */
    p->tmpfs[0] = tmpfs(POLICY_WORKSPACE, half - tmp - shm, 0755);
    p->tmpfs[0].exec = true;
    p->tmpfs[0].owned = true;
    p->tmpfs[1] = tmpfs("/tmp", tmp, 01777);
    p->tmpfs[2] = tmpfs("/dev/shm", shm, 01777);
}

static int check(const struct limits *l, const struct policy_settings *settings, uint32_t uid,
                 struct err *err)
{
    if (l->memory_mb < POLICY_MEMORY_MB_MIN || l->memory_mb > MEMORY_MB_MAX)
        return err_say(err, -ERANGE, "memoryMb is %" PRId64 "; it must be from %d to %" PRId64,
                       l->memory_mb, POLICY_MEMORY_MB_MIN, MEMORY_MB_MAX);
    if (l->pids < 1 || l->pids > PIDS_KERNEL_MAX - INIT_PIDS)
        return err_say(err, -ERANGE, "pids is %" PRId64 "; it must be from 1 to %d", l->pids,
                       PIDS_KERNEL_MAX - INIT_PIDS);
    if (settings->cpus_milli < CPUS_MILLI_MIN)
        return err_say(err, -ERANGE, "the CPU quota is %" PRIu32 " thousandths; the minimum is %d",
                       settings->cpus_milli, CPUS_MILLI_MIN);
    if (uid == 0 || uid > UID_MAX)
        return err_say(err, -EINVAL, "uid %" PRIu32 " is no user for a sandbox", uid);
    return 0;
}

int policy_make(const struct limits *limits, const struct policy_settings *settings, uint32_t uid,
                struct policy *ret, struct err *err)
{
    int r = check(limits, settings, uid, err);
    if (r < 0)
        return r;

    struct policy p = {
        .uid = uid,
        .gid = uid,
        .memory_bytes = (uint64_t)limits->memory_mb * MIB,
        .pids_max = (uint64_t)limits->pids + INIT_PIDS,
        .cpu_quota_us = (uint64_t)settings->cpus_milli * (CPU_PERIOD_US / 1000),
        .cpu_period_us = CPU_PERIOD_US,
        .nofile_max = NOFILE_MAX,
        .masked_paths = masked,
        .readonly_paths = readonly,
        .seccomp_json = settings->seccomp_json,
        .runtime = settings->runtime ? settings->runtime : "",
    };
    split_memory(&p);
    p.fsize_bytes = p.tmpfs[0].size_bytes;
    *ret = p;
    return 0;
}
