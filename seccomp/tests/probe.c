/* seccomp/tests/probe.c - asks the kernel, from inside a sandbox, what the profile answers.
 *
 * A table of {call, arguments, errno}, then what a table cannot hold: signals for the foreign call
 * tables, and children and threads that must work. Prints "armed", a line for each check and the sum;
 * exit 0 if there was no surprise. Static, so that it runs in any image.
 *
 * The arguments are chosen so that a call that reaches the kernel answers something else than the
 * filter would: bad pointers, or flags the kernel finds contradictory before it looks at rights.
 *
 * As PID 1 it forks and probes in the child, so that PID 1 is a process of the same uid, as it is
 * in a job. Never run it as root outside a sandbox: without the filter some calls would act.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Newer than the headers of Debian 12; numbers from 424 on are the same on every architecture. */
enum {
    NR_cachestat = 451,
    NR_fchmodat2 = 452,
    NR_statmount = 457,
    NR_listmount = 458,
    NR_lsm_get_self_attr = 459,
    NR_setxattrat = 463,
    NR_open_tree_attr = 467,
    NR_unassigned = 999, /* no call has this number */
};

enum {
    ANSWER_DEFAULT = -1, /* the profile's default: ENOSYS, and EPERM where the daemon is older than
                             23.0 and ignores defaultErrnoRet */
    ANSWER_SUCCESS = -2, /* any result but an error */
    ANSWER_KERNEL = -3,  /* anything but ENOSYS and EPERM: the call was let through */
    MAP_HUGETLB_FLAG = 0x40000,
};

#define HIGH (1UL << 32)            /* garbage in the half of a register that the kernel drops */
#define BAD  ((unsigned long)-4096) /* an address that is never mapped */
#define FD   ((unsigned long)-1)    /* no descriptor */

struct check {
    const char *name;
    long number;
    unsigned long args[6];
    int want; /* errno or ANSWER_* */
};

static unsigned long zeros[64]; /* read as a parameter block or a cpu set, by address */
static const unsigned long all_cpus[16] = {~0UL, ~0UL};

#define ADDRESS(object) ((unsigned long)(uintptr_t)(object))
#define REFUSED(call, ...)                                                                         \
    {                                                                                              \
#call, SYS_##call, {__VA_ARGS__ }, ENOSYS                                                  \
    }
#define ANSWERS(text, call, want, ...)                                                             \
    {                                                                                              \
#call " " text, SYS_##call, {__VA_ARGS__ }, want                                           \
    }

static const struct check refused[] = {
    REFUSED(clone3, BAD, 64),
    REFUSED(unshare, 0),
    REFUSED(setns, FD, 0),
    REFUSED(mount, BAD, BAD, BAD, 0, 0),
    REFUSED(umount2, BAD, 0),
    REFUSED(pivot_root, BAD, BAD),
    REFUSED(chroot, BAD),
    REFUSED(fsopen, BAD, 0),
    REFUSED(fsconfig, FD, 0, 0, 0, 0),
    REFUSED(fsmount, FD, 0, 0),
    REFUSED(fspick, FD, BAD, 0),
    REFUSED(open_tree, FD, BAD, 0),
    REFUSED(move_mount, FD, BAD, FD, BAD, 0),
    REFUSED(mount_setattr, FD, BAD, 0, BAD, 0),
    REFUSED(name_to_handle_at, FD, BAD, BAD, BAD, 0),
    REFUSED(open_by_handle_at, FD, BAD, 0),
    {"statmount", NR_statmount, {BAD, BAD, 0, 0}, ENOSYS},
    {"listmount", NR_listmount, {BAD, BAD, 0, 0}, ENOSYS},
    {"open_tree_attr", NR_open_tree_attr, {FD, BAD, 0, BAD, 0}, ENOSYS},
    REFUSED(ptrace, 16, 1, 0, 0), /* PTRACE_ATTACH */
    REFUSED(process_vm_readv, 1, BAD, 1, BAD, 1, 0),
    REFUSED(process_vm_writev, 1, BAD, 1, BAD, 1, 0),
    REFUSED(process_madvise, FD, BAD, 1, 0, 0),
    REFUSED(process_mrelease, FD, 0),
    REFUSED(pidfd_getfd, FD, 0, 0),
    REFUSED(kcmp, 1, 1, 0, 0, 0),
    REFUSED(get_robust_list, 1, BAD, BAD),
    REFUSED(migrate_pages, 1, 0, BAD, BAD),
    REFUSED(move_pages, 1, 1, BAD, BAD, BAD, 0),
    REFUSED(get_mempolicy, BAD, BAD, 0, 0, 0),
    REFUSED(set_mempolicy, 0, BAD, 0),
    REFUSED(mbind, 0, 4096, 99, 0, 0, 0),
    REFUSED(io_uring_setup, 1, BAD),
    REFUSED(io_uring_enter, FD, 0, 0, 0, 0, 0),
    REFUSED(io_uring_register, FD, 0, 0, 0),
    REFUSED(io_setup, 1, BAD),
    REFUSED(io_submit, 0, 0, 0),
    REFUSED(io_getevents, 0, 0, 0, 0, 0),
    REFUSED(io_destroy, 0),
    REFUSED(userfaultfd, 1), /* UFFD_USER_MODE_ONLY */
    REFUSED(memfd_secret, 0),
    REFUSED(remap_file_pages, 0, 0, 0, 0, 0),
    {"cachestat", NR_cachestat, {FD, BAD, BAD, 0}, ENOSYS},
    REFUSED(bpf, 0, BAD, 0),
    REFUSED(perf_event_open, BAD, 0, FD, FD, 0),
    REFUSED(seccomp, 2, 0, 0, 0, 0), /* SECCOMP_GET_ACTION_AVAIL, null pointer */
    REFUSED(landlock_create_ruleset, 0, 0, 1),
    REFUSED(landlock_add_rule, FD, 0, 0, 0),
    REFUSED(landlock_restrict_self, FD, 0),
    REFUSED(fanotify_init, 0, 0),
    REFUSED(fanotify_mark, FD, 0, 0, FD, 0),
    {"lsm_get_self_attr", NR_lsm_get_self_attr, {0, 0, 0, 0}, ENOSYS},
    REFUSED(syslog, 10, 0, 0), /* SYSLOG_ACTION_SIZE_BUFFER */
    REFUSED(add_key, BAD, BAD, BAD, 0, 0),
    REFUSED(request_key, BAD, BAD, BAD, 0),
    REFUSED(keyctl, 0, 0, 0, 0, 0), /* KEYCTL_GET_KEYRING_ID */
    REFUSED(reboot, 0, 0, 0, 0),
    REFUSED(swapon, BAD, 0),
    REFUSED(swapoff, BAD),
    REFUSED(init_module, BAD, 0, BAD),
    REFUSED(finit_module, FD, BAD, 0),
    REFUSED(delete_module, BAD, 0),
    REFUSED(kexec_load, 0, 0, 0, 0),
    REFUSED(quotactl, 0, BAD, 0, BAD),
    REFUSED(quotactl_fd, FD, 0, 0, 0),
    REFUSED(clock_settime, 0, BAD),
    REFUSED(clock_adjtime, 0, BAD),
    REFUSED(adjtimex, BAD),
    REFUSED(settimeofday, BAD, BAD),
    REFUSED(sethostname, BAD, 1),
    REFUSED(setdomainname, BAD, 1),
    REFUSED(acct, BAD),
    REFUSED(vhangup, 0),
    REFUSED(lookup_dcookie, 0, 0, 0),
    REFUSED(nfsservctl, 0, 0, 0),
#ifdef __x86_64__
    REFUSED(kexec_file_load, FD, FD, 0, BAD, 0),
    REFUSED(iopl, 0),
    REFUSED(ioperm, 0, 1, 0),
    REFUSED(modify_ldt, 0, BAD, 0),
    REFUSED(uselib, BAD),
    REFUSED(sysfs, 3),
    REFUSED(ustat, 0, BAD),
#endif
    {"unassigned number", NR_unassigned, {0}, ENOSYS},
};

/* CLONE_THREAD without CLONE_SIGHAND is EINVAL before the kernel looks at a namespace flag. */
#define NAMESPACE(flag) ANSWERS(#flag, clone, EPERM, (unsigned long)(flag) | CLONE_THREAD)

static const struct check arguments[] = {
    NAMESPACE(CLONE_NEWNS),
    NAMESPACE(CLONE_NEWCGROUP),
    NAMESPACE(CLONE_NEWUTS),
    NAMESPACE(CLONE_NEWIPC),
    NAMESPACE(CLONE_NEWUSER),
    NAMESPACE(CLONE_NEWPID),
    NAMESPACE(CLONE_NEWNET),
    NAMESPACE(0x80),
    ANSWERS("high half set", clone, EPERM, HIGH | CLONE_NEWUSER | CLONE_THREAD),
    ANSWERS("no namespace", clone, EINVAL, CLONE_THREAD),
    ANSWERS("AF_UNIX", socket, ANSWER_SUCCESS, AF_UNIX, SOCK_STREAM, 0),
    ANSWERS("AF_INET", socket, EAFNOSUPPORT, AF_INET, SOCK_STREAM, 0),
    ANSWERS("AF_INET6", socket, EAFNOSUPPORT, AF_INET6, SOCK_DGRAM, 0),
    ANSWERS("AF_NETLINK", socket, EAFNOSUPPORT, AF_NETLINK, SOCK_RAW, 0),
    ANSWERS("AF_PACKET", socket, EAFNOSUPPORT, AF_PACKET, SOCK_RAW, 0),
    ANSWERS("AF_ALG", socket, EAFNOSUPPORT, AF_ALG, SOCK_SEQPACKET, 0),
    ANSWERS("AF_VSOCK", socket, EAFNOSUPPORT, AF_VSOCK, SOCK_STREAM, 0),
    ANSWERS("AF_UNIX, high half set", socket, EAFNOSUPPORT, HIGH | AF_UNIX, SOCK_STREAM, 0),
    ANSWERS("AF_INET, high half set", socket, EAFNOSUPPORT, HIGH | AF_INET, SOCK_STREAM, 0),
    ANSWERS("AF_UNIX", socketpair, EFAULT, AF_UNIX, SOCK_STREAM, 0, BAD),
    ANSWERS("AF_TIPC", socketpair, EAFNOSUPPORT, 30, SOCK_SEQPACKET, 0, BAD),

    ANSWERS("self", prlimit64, ANSWER_SUCCESS, 0, RLIMIT_NOFILE, 0, 0),
    ANSWERS("init", prlimit64, EPERM, 1, RLIMIT_NOFILE, 0, 0),
    ANSWERS("init, high half set", prlimit64, EPERM, HIGH | 1, RLIMIT_NOFILE, 0, 0),
    ANSWERS("another", prlimit64, EPERM, 2, RLIMIT_NOFILE, 0, 0),
    ANSWERS("self", sched_setaffinity, ANSWER_SUCCESS, 0, sizeof all_cpus, ADDRESS(all_cpus)),
    ANSWERS("another", sched_setaffinity, ESRCH, 4194000, sizeof all_cpus, ADDRESS(all_cpus)),
    ANSWERS("init", sched_setaffinity, EPERM, 1, sizeof all_cpus, ADDRESS(all_cpus)),
    ANSWERS("init, high half set", sched_setaffinity, EPERM, HIGH | 1, sizeof all_cpus,
            ADDRESS(all_cpus)),
    ANSWERS("self", sched_setscheduler, ANSWER_SUCCESS, 0, SCHED_OTHER, ADDRESS(zeros)),
    ANSWERS("another", sched_setscheduler, ESRCH, 4194000, SCHED_OTHER, ADDRESS(zeros)),
    ANSWERS("init", sched_setscheduler, EPERM, 1, SCHED_IDLE, ADDRESS(zeros)),
    ANSWERS("init, high half set", sched_setscheduler, EPERM, HIGH | 1, SCHED_IDLE, ADDRESS(zeros)),
    ANSWERS("self", sched_setparam, ANSWER_SUCCESS, 0, ADDRESS(zeros)),
    ANSWERS("init", sched_setparam, EPERM, 1, ADDRESS(zeros)),
    ANSWERS("init, high half set", sched_setparam, EPERM, HIGH | 1, ADDRESS(zeros)),
    ANSWERS("init, every high bit set", sched_setaffinity, EPERM, ~0xffffffffUL | 1,
            sizeof all_cpus, ADDRESS(all_cpus)),
    ANSWERS("negative", sched_setaffinity, ANSWER_KERNEL, FD, sizeof all_cpus, ADDRESS(all_cpus)),
    ANSWERS("negative, 64 bits", sched_setscheduler, EINVAL, FD, SCHED_OTHER, ADDRESS(zeros)),
    ANSWERS("self", sched_setattr, EFAULT, 0, BAD, 0),
    ANSWERS("init", sched_setattr, EPERM, 1, BAD, 0),
    ANSWERS("init, high half set", sched_setattr, EPERM, HIGH | 1, BAD, 0),
    ANSWERS("init", sched_getaffinity, ANSWER_SUCCESS, 1, sizeof zeros, ADDRESS(zeros)),
    ANSWERS("self", setpriority, ANSWER_SUCCESS, PRIO_PROCESS, 0, 1),
    ANSWERS("another", setpriority, ESRCH, PRIO_PROCESS, 4194000, 1),
    ANSWERS("init", setpriority, EPERM, PRIO_PROCESS, 1, 1),
    ANSWERS("init, high half set", setpriority, EPERM, PRIO_PROCESS, HIGH | 1, 1),
    ANSWERS("init, both high halves set", setpriority, EPERM, HIGH, HIGH | 1, 1),
    ANSWERS("group", setpriority, EPERM, PRIO_PGRP, 4194000, 1),
    ANSWERS("own group", setpriority, EPERM, PRIO_PGRP, 0, 1),
    ANSWERS("user", setpriority, EPERM, PRIO_USER, 4194000, 1),
    ANSWERS("user, high half set", setpriority, EPERM, HIGH | PRIO_USER, 4194000, 1),
    ANSWERS("self", ioprio_set, ANSWER_SUCCESS, 1, 0, 2UL << 13 | 4),
    ANSWERS("init", ioprio_set, EPERM, 1, 1, 2UL << 13 | 4),
    ANSWERS("init, high half set", ioprio_set, EPERM, 1, HIGH | 1, 2UL << 13 | 4),
    ANSWERS("own group", ioprio_set, EPERM, 2, 0, 2UL << 13 | 4),
    ANSWERS("user", ioprio_set, EPERM, 3, 4194000, 2UL << 13 | 4),

    ANSWERS("TIOCSTI", ioctl, EPERM, FD, 0x5412, BAD),
    ANSWERS("TIOCSTI, high half set", ioctl, EPERM, FD, HIGH | 0x5412, BAD),
    ANSWERS("TIOCLINUX", ioctl, EPERM, FD, 0x541c, BAD),
    ANSWERS("TIOCLINUX, high half set", ioctl, EPERM, FD, ~0xffffffffUL | 0x541c, BAD),
    ANSWERS("TIOCSETD", ioctl, EPERM, FD, 0x5423, BAD),
    ANSWERS("TIOCSETD, high half set", ioctl, EPERM, FD, HIGH | 0x5423, BAD),
    ANSWERS("TCGETS", ioctl, EBADF, FD, 0x5401, BAD),
    ANSWERS("TIOCGWINSZ", ioctl, EBADF, FD, 0x5413, BAD),
    ANSWERS("FIONREAD", ioctl, EBADF, FD, 0x541b, BAD),
    ANSWERS("FIONBIO", ioctl, EBADF, FD, 0x5421, BAD),
    ANSWERS("TIOCGPTN, sign-extended", ioctl, EBADF, FD, ~0xffffffffUL | 0x80045430, BAD),
    ANSWERS("F_GETFD", fcntl, EBADF, FD, F_GETFD, 0),
    ANSWERS("F_GETLEASE", fcntl, EBADF, FD, F_GETLEASE, 0),
    ANSWERS("F_ADD_SEALS", fcntl, EBADF, FD, F_ADD_SEALS, 0),
    ANSWERS("F_SETLEASE", fcntl, EINVAL, FD, F_SETLEASE, F_WRLCK),
    ANSWERS("F_SETDELEG", fcntl, EINVAL, FD, 0x410, BAD),
    ANSWERS("F_SETLEASE, high half set", fcntl, EINVAL, FD, HIGH | F_SETLEASE, F_WRLCK),
    ANSWERS("PR_SET_SECCOMP", prctl, EINVAL, PR_SET_SECCOMP, 2, BAD),
    ANSWERS("PR_SET_SECCOMP, high half set", prctl, EINVAL, HIGH | PR_SET_SECCOMP, 2, BAD),
    ANSWERS("PR_SCHED_CORE", prctl, EINVAL, 62, 0, 0, 0, BAD),
    ANSWERS("PR_SET_MEMORY_MERGE", prctl, EINVAL, 67, 0, 0, 0, 0),
    ANSWERS("PR_SET_MEMORY_MERGE, high half set", prctl, EINVAL, HIGH | 67, 0, 0, 0, 0),
    ANSWERS("PR_SCHED_CORE, high half set", prctl, EINVAL, HIGH | 62, 0, 0, 0, BAD),
    ANSWERS("PR_SET_NAME", prctl, ANSWER_SUCCESS, PR_SET_NAME, ADDRESS("probe")),
    ANSWERS("PR_GET_SECCOMP", prctl, ANSWER_SUCCESS, PR_GET_SECCOMP),
    ANSWERS("MADV_MERGEABLE", madvise, EINVAL, 0, 0, MADV_MERGEABLE),
    ANSWERS("MADV_MERGEABLE, high half set", madvise, EINVAL, 0, 0, HIGH | MADV_MERGEABLE),
    ANSWERS("MADV_DONTNEED", madvise, ANSWER_SUCCESS, 0, 0, MADV_DONTNEED),
    ANSWERS("MAP_HUGETLB", mmap, ENOMEM, 0, 4096, PROT_READ,
            MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB_FLAG, FD, 0),
    ANSWERS("MAP_HUGETLB, bad descriptor", mmap, ENOMEM, 0, 4096, PROT_READ,
            MAP_PRIVATE | MAP_HUGETLB_FLAG, FD, 0),
    ANSWERS("MFD_HUGETLB", memfd_create, ENOSYS, BAD, 4),
    ANSWERS("MFD_HUGETLB, high half set", memfd_create, ENOSYS, BAD, HIGH | 4),
    ANSWERS("plain", memfd_create, EFAULT, BAD, 0),
    ANSWERS("SHM_HUGETLB", shmget, EPERM, 0, 0, 01000 | 04000),
    ANSWERS("SHM_HUGETLB, high half set", shmget, EPERM, 0, 0, HIGH | 01000 | 04000),
    ANSWERS("empty", shmget, EINVAL, 0, 0, 01000),
    ANSWERS("normal", personality, ANSWER_SUCCESS, 0),
    ANSWERS("question", personality, ANSWER_SUCCESS, 0xffffffffUL),
    ANSWERS("ADDR_NO_RANDOMIZE", personality, ANSWER_DEFAULT, 0x0040000),
    ANSWERS("READ_IMPLIES_EXEC", personality, ANSWER_DEFAULT, 0x0400000),
    ANSWERS("high half set", personality, ANSWER_DEFAULT, HIGH | 0x0400000),
    ANSWERS("fifo", mknodat, EFAULT, FD, BAD, S_IFIFO | 0600, 0),
    ANSWERS("file", mknodat, EFAULT, FD, BAD, S_IFREG | 0600, 0),
    ANSWERS("file, no type", mknodat, EFAULT, FD, BAD, 0600, 0),
    ANSWERS("socket", mknodat, EFAULT, FD, BAD, S_IFSOCK | 0600, 0),
    ANSWERS("character device", mknodat, EPERM, FD, BAD, S_IFCHR | 0600, 0),
    ANSWERS("block device", mknodat, EPERM, FD, BAD, S_IFBLK | 0600, 0),
    ANSWERS("block device, high half set", mknodat, EPERM, FD, BAD, HIGH | S_IFBLK, 0),
#ifdef __x86_64__
    ANSWERS("fifo", mknod, EFAULT, BAD, S_IFIFO | 0600, 0),
    ANSWERS("character device", mknod, EPERM, BAD, S_IFCHR | 0600, 0),
    ANSWERS("block device", mknod, EPERM, BAD, S_IFBLK | 0600, 0),
#endif
    ANSWERS("bad path", setxattr, EOPNOTSUPP, BAD, BAD, BAD, 0, 0),
    ANSWERS("bad path", lsetxattr, EOPNOTSUPP, BAD, BAD, BAD, 0, 0),
    ANSWERS("no descriptor", fsetxattr, EOPNOTSUPP, FD, BAD, BAD, 0, 0),
    ANSWERS("no descriptor", fremovexattr, EOPNOTSUPP, FD, BAD),
    ANSWERS("no descriptor", syncfs, ANSWER_SUCCESS, FD),
    ANSWERS("no work", sync, ANSWER_SUCCESS, 0),
};

static const struct check allowed[] = {
    ANSWERS("bad path", getxattr, EFAULT, BAD, BAD, BAD, 0),
    ANSWERS("bad path", openat2, ANSWER_KERNEL, FD, BAD, BAD, 24),
    ANSWERS("bad path", faccessat2, ANSWER_KERNEL, FD, BAD, 0, 0),
    ANSWERS("bad path", statx, ANSWER_KERNEL, FD, BAD, 0, 0, BAD),
    ANSWERS("bad path", execveat, EFAULT, FD, BAD, 0, 0, 0),
    ANSWERS("backwards", close_range, EINVAL, 9, 8, 0),
    ANSWERS("no descriptor", copy_file_range, EBADF, FD, 0, FD, 0, 1, 0),
    ANSWERS("no descriptor", splice, EBADF, FD, 0, FD, 0, 1, 0),
    ANSWERS("no descriptor", fsync, EBADF, FD),
    ANSWERS("no descriptor", pidfd_send_signal, EBADF, FD, 0, 0, 0),
    ANSWERS("no process", pidfd_open, EINVAL, FD, 0),
    ANSWERS("query", membarrier, ANSWER_SUCCESS, 0, 0, 0),
    ANSWERS("bad flags", rseq, ANSWER_KERNEL, BAD, 0, 99, 0),
    ANSWERS("bad flags", futex_waitv, EINVAL, BAD, 0, 99, 0, 0),
    ANSWERS("bad flags", getrandom, EINVAL, BAD, 1, 0xff),
    ANSWERS("bad flags", inotify_init1, EINVAL, FD),
    ANSWERS("bad rights", pkey_alloc, ANSWER_KERNEL, FD, FD),
    ANSWERS("private", semget, EINVAL, 0, FD, 0),
    ANSWERS("nothing", setgroups, EPERM, 0, 0), /* the kernel's own answer without a capability */
    ANSWERS("self", kill, ANSWER_SUCCESS, 0, 0),
};

static unsigned int passed, failed;

static void judge(bool good, const char *name, const char *got)
{
    if (good)
        passed++;
    else
        failed++;
    (void)printf("%s %s: %s\n", good ? "ok  " : "FAIL", name, got);
}

static void check_run(const struct check *c)
{
    errno = 0;
    const unsigned long *a = c->args;
    long result = syscall(c->number, a[0], a[1], a[2], a[3], a[4], a[5]);
    int got = result < 0 ? errno : 0;
    bool good = false;

    switch (c->want) {
    case ANSWER_SUCCESS:
        good = result >= 0;
        break;
    case ANSWER_KERNEL:
        good = got != ENOSYS && got != EPERM;
        break;
    case ANSWER_DEFAULT:
        good = got == ENOSYS || got == EPERM;
        break;
    default:
        good = got == c->want;
        break;
    }
    judge(good, c->name, got ? strerrorname_np(got) : "success");
}

static void checks_run(const struct check *checks, size_t n)
{
    for (size_t i = 0; i < n; i++)
        check_run(&checks[i]);
}

/* --- what needs a child ------------------------------------------------------------------------ */

static int child_status(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();
    if (pid == 0) {
        body();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return status;
}

#ifdef __x86_64__
static void call_by_int80(void)
{
    long result = 20; /* getpid of the 32-bit table */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
}

static void call_by_x32(void)
{
    (void)syscall(0x40000000L | SYS_getpid); /* must not return */
}

/* The filter kills with SIGSYS. A kernel without the 32-bit table raises SIGSEGV at the instruction
 * before any filter is asked. */
static void check_killed(const char *name, void (*body)(void))
{
    int status = child_status(body);
    int sig = status >= 0 && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    judge(sig == SIGSYS || sig == SIGSEGV, name, sig ? sigabbrev_np(sig) : "was answered");
}
#endif

static void *thread_body(void *arg)
{
    return arg;
}

static void check_works(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    cpu_set_t cpus;
    void *result = NULL;

    int r = pthread_create(&thread, NULL, thread_body, &cpus);
    if (r == 0)
        r = pthread_join(thread, &result);
    judge(r == 0 && result == &cpus, "thread", strerrordesc_np(r));

    /* libc sets the new thread's affinity by its id, not by 0 */
    r = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? 0 : errno;
    (void)pthread_attr_init(&attr); /* cannot fail on Linux */
    if (r == 0)
        r = pthread_attr_setaffinity_np(&attr, sizeof cpus, &cpus);
    if (r == 0)
        r = pthread_create(&thread, &attr, thread_body, &cpus);
    if (r == 0)
        r = pthread_join(thread, &result);
    (void)pthread_attr_destroy(&attr);
    judge(r == 0, "thread bound to cpus", strerrordesc_np(r));
}

static void nothing(void)
{
}

static int probe(void)
{
    checks_run(refused, sizeof refused / sizeof *refused);
    checks_run(arguments, sizeof arguments / sizeof *arguments);
    checks_run(allowed, sizeof allowed / sizeof *allowed);
    judge(child_status(nothing) == 0, "fork", "done");
    check_works();
#ifdef __x86_64__
    check_killed("32-bit call by int 0x80", call_by_int80);
    check_killed("x32 call", call_by_x32);
#endif
    (void)printf("%u passed, %u failed\n", passed, failed);
    (void)fflush(stdout); /* the exit code is the verdict */
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(void)
{
    if (geteuid() == 0) {
        (void)fputs("probe: not as root\n", stderr);
        return 2;
    }
    if (prctl(PR_GET_SECCOMP) != 2 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1) {
        (void)fputs("probe: not under a filter, or without no_new_privs\n", stderr);
        return 2;
    }
    (void)puts("armed");
    (void)fflush(stdout); /* before the fork, or both would print it */
    if (getpid() != 1)
        return probe();

    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(probe());
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return EXIT_FAILURE;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILURE;
}
