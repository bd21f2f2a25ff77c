/* seccomp/tests/load.c - runs a program under profile.json, with no container runtime in between.
 *
 *   load PROFILE PROGRAM [ARGUMENT...]
 *
 * Reads the profile the way a runtime does: names this libseccomp does not know are passed over, and
 * so are rules that answer what the default answers. The program becomes PID 1 of a pid namespace of
 * its own, without root's uid; where namespaces are not to be had it runs without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <jansson.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    UID_WITHOUT_RIGHTS = 65534,
    ARGUMENTS_MAX = 6,
    EXIT_CANNOT = 125, /* not an exit code of the probe's */
};

__attribute__((format(printf, 1, 2))) static int complain(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    (void)fputs("load: ", stderr); /* nowhere to report a failure of stderr */
    (void)vfprintf(stderr, fmt, ap);
    (void)fputc('\n', stderr);
    va_end(ap);
    return -EINVAL;
}

static int action_read(const json_t *object, const char *action_key, const char *errno_key,
                       uint32_t *ret)
{
    const char *name = json_string_value(json_object_get(object, action_key));
    const json_t *number = json_object_get(object, errno_key);

    if (name && strcmp(name, "SCMP_ACT_ALLOW") == 0)
        *ret = SCMP_ACT_ALLOW;
    else if (name && strcmp(name, "SCMP_ACT_ERRNO") == 0 && json_is_integer(number))
        *ret = SCMP_ACT_ERRNO((uint32_t)json_integer_value(number));
    else
        return complain("bad %s %s", action_key, name ? name : "(none)");
    return 0;
}

static int comparison_read(const json_t *arg, struct scmp_arg_cmp *ret)
{
    static const struct {
        const char *name;
        enum scmp_compare op;
    } ops[] = {
        {"SCMP_CMP_EQ", SCMP_CMP_EQ},
        {"SCMP_CMP_NE", SCMP_CMP_NE},
        {"SCMP_CMP_MASKED_EQ", SCMP_CMP_MASKED_EQ},
    };
    const char *op = json_string_value(json_object_get(arg, "op"));

    *ret = (struct scmp_arg_cmp){
        .arg = (unsigned int)json_integer_value(json_object_get(arg, "index")),
        .datum_a = (scmp_datum_t)json_integer_value(json_object_get(arg, "value")),
        .datum_b = (scmp_datum_t)json_integer_value(json_object_get(arg, "valueTwo")),
    };
    for (size_t i = 0; op && i < sizeof ops / sizeof *ops; i++) {
        if (strcmp(op, ops[i].name) == 0) {
            ret->op = ops[i].op;
            return 0;
        }
    }
    return complain("bad op %s", op ? op : "(none)");
}

static int rule_add(scmp_filter_ctx ctx, const json_t *rule, uint32_t default_action)
{
    const json_t *args = json_object_get(rule, "args");
    const json_t *names = json_object_get(rule, "names");
    struct scmp_arg_cmp comparisons[ARGUMENTS_MAX];
    uint32_t action = 0;

    if (action_read(rule, "action", "errnoRet", &action) < 0)
        return -EINVAL;
    if (json_array_size(args) > ARGUMENTS_MAX)
        return complain("more than %d conditions", ARGUMENTS_MAX);
    for (size_t i = 0; i < json_array_size(args); i++) {
        if (comparison_read(json_array_get(args, i), &comparisons[i]) < 0)
            return -EINVAL;
    }
    if (action == default_action)
        return 0;
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        int number = name ? seccomp_syscall_resolve_name(name) : __NR_SCMP_ERROR;
        if (number == __NR_SCMP_ERROR)
            continue;
        int r = seccomp_rule_add_array(ctx, action, number, (unsigned int)json_array_size(args),
                                       comparisons);
        if (r < 0)
            return complain("rule for %s: %s", name, strerrordesc_np(-r));
    }
    return 0;
}

static int filter_fill(scmp_filter_ctx ctx, const json_t *profile, uint32_t default_action)
{
    const json_t *map = json_object_get(profile, "archMap");
    const json_t *rules = json_object_get(profile, "syscalls");
    const char *native = seccomp_arch_native() == SCMP_ARCH_X86_64    ? "SCMP_ARCH_X86_64"
                         : seccomp_arch_native() == SCMP_ARCH_AARCH64 ? "SCMP_ARCH_AARCH64"
                                                                      : "another";
    bool found = false;

    /* A new filter is for the native table and kills the callers of others: nothing to add. */
    for (size_t i = 0; i < json_array_size(map); i++) {
        const json_t *entry = json_array_get(map, i);
        const char *name = json_string_value(json_object_get(entry, "architecture"));
        found |= name && strcmp(name, native) == 0;
        if (json_array_size(json_object_get(entry, "subArchitectures")) != 0)
            return complain("%s has a second call table", name ? name : "(none)");
    }
    if (!found)
        return complain("the profile is not for %s", native);
    for (size_t i = 0; i < json_array_size(rules); i++) {
        if (rule_add(ctx, json_array_get(rules, i), default_action) < 0)
            return -EINVAL;
    }
    return json_array_size(rules) ? 0 : complain("no rules");
}

static int filter_make(const char *path, scmp_filter_ctx *ret)
{
    json_error_t error;
    json_auto_t *profile = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    uint32_t default_action = 0;

    if (!profile)
        return complain("%s:%d: %s", path, error.line, error.text);
    if (action_read(profile, "defaultAction", "defaultErrnoRet", &default_action) < 0)
        return -EINVAL;
    scmp_filter_ctx ctx = seccomp_init(default_action);
    if (!ctx)
        return complain("no memory");
    if (filter_fill(ctx, profile, default_action) < 0) {
        seccomp_release(ctx);
        return -EINVAL;
    }
    *ret = ctx;
    return 0;
}

static bool file_put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd); /* a short write was seen already */
    return ok;
}

/* Children are PID 1 of a new pid namespace from here on, if the machine lets us. */
static void namespace_enter(void)
{
    char uid_map[64], gid_map[64];
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (uid == 0 && unshare(CLONE_NEWPID) == 0)
        return;
    if (uid != 0 && unshare(CLONE_NEWPID | CLONE_NEWUSER) == 0) {
        (void)snprintf(uid_map, sizeof uid_map, "%u %u 1", uid, uid); /* always fits */
        (void)snprintf(gid_map, sizeof gid_map, "%u %u 1", gid, gid);
        if (file_put("/proc/self/setgroups", "deny") && file_put("/proc/self/uid_map", uid_map) &&
            file_put("/proc/self/gid_map", gid_map))
            return;
    }
    (void)printf("without a pid namespace of its own: %s\n", strerrordesc_np(errno));
    (void)fflush(stdout);
}

static int rights_drop(void)
{
    if (geteuid() != 0)
        return 0;
    if (setgroups(0, NULL) < 0 || setgid(UID_WITHOUT_RIGHTS) < 0 || setuid(UID_WITHOUT_RIGHTS) < 0)
        return complain("give up root's uid: %s", strerrordesc_np(errno));
    return 0;
}

/* Says why the program could not be run; the exit code. */
static int cannot(const char *what, const char *why)
{
    (void)complain("%s: %s", what, why);
    return EXIT_CANNOT;
}

static int child(scmp_filter_ctx ctx, int program, char **argv)
{
    if (rights_drop() < 0)
        return EXIT_CANNOT;
    int r = seccomp_load(ctx); /* sets no_new_privs too */
    if (r < 0)
        return cannot("load the filter", strerrordesc_np(-r));
    (void)fexecve(program, argv, (char *[]){NULL});
    return cannot(argv[0], strerrordesc_np(errno));
}

static int wait_for(pid_t pid, const char *name)
{
    int status = 0;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return cannot("start a child", strerrordesc_np(errno));
    if (WIFSIGNALED(status))
        return cannot(name, sigdescr_np(WTERMSIG(status)));
    return WEXITSTATUS(status);
}

static int middle(scmp_filter_ctx ctx, int program, char **argv)
{
    namespace_enter();
    pid_t pid = fork();
    if (pid == 0)
        _exit(child(ctx, program, argv));
    return wait_for(pid, argv[0]);
}

int main(int argc, char **argv)
{
    scmp_filter_ctx ctx = NULL;

    if (argc < 3) {
        (void)fprintf(stderr, "usage: %s PROFILE PROGRAM [ARGUMENT...]\n", argv[0]);
        return EXIT_CANNOT;
    }
    if (filter_make(argv[1], &ctx) < 0)
        return EXIT_CANNOT;
    /* The program's uid may not be allowed into the folders on its path: open it as who we are. */
    int program = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (program < 0)
        return cannot(argv[2], strerrordesc_np(errno));

    /* A sanitizer that looks for leaks as the program ends cannot do so from between two namespaces:
     * a process of its own stands there. */
    pid_t pid = fork();
    if (pid == 0)
        _exit(middle(ctx, program, argv + 2));
    seccomp_release(ctx);
    (void)close(program); /* only read */
    return wait_for(pid, "load");
}
