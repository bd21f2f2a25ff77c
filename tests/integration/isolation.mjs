// isolation.mjs - the box as the program sees it. Each hostile program prints `armed` first, so that
// one that died early cannot pass.

import { check } from "../e2e/transcript.mjs";

const equal = (got, want, what) =>
  check(JSON.stringify(got) === JSON.stringify(want), `${what} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);

// Runs a program whose later lines are "name value"; returns them as an object.
async function look(client, source, extra) {
  const end = await client.run(`print('armed', flush=True)\n${source}`, extra);
  const lines = end.stdout.split("\n").filter(Boolean);
  equal(lines[0], "armed", `first line (stderr: ${end.stderr})`);
  equal(end.exitCode, 0, `exit code (stderr: ${end.stderr})`);
  return Object.fromEntries(lines.slice(1).map((line) => [line.slice(0, line.indexOf(" ")), line.slice(line.indexOf(" ") + 1)]));
}

const attempt = `
import errno, os
def attempt(name, action):
    try:
        action()
        print(name, 'allowed')
    except OSError as e:
        print(name, errno.errorcode[e.errno])
`;

export const shared = [
  [
    "no privileges: own uid, no capability, no new privileges, a filter",
    async (client) => {
      const seen = await look(
        client,
        `
import os
status = dict(line.split(':\\t', 1) for line in open('/proc/self/status').read().splitlines() if ':\\t' in line)
for key in ('CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb', 'NoNewPrivs', 'Seccomp'): print(key, status[key])
print('uid', os.getuid()); print('gid', os.getgid()); print('groups', os.getgroups())
`,
      );
      const none = "0000000000000000";
      for (const key of ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"]) equal(seen[key], none, key);
      equal([seen.NoNewPrivs, seen.Seccomp], ["1", "2"], "NoNewPrivs and Seccomp");
      check(["[]", `[${seen.gid}]`].includes(seen.groups), `groups ${seen.groups}`);
      check(Number(seen.uid) >= 1879048192 && seen.uid === seen.gid, `uid ${seen.uid}, gid ${seen.gid}`);
    },
  ],
  [
    "two sandboxes have different uids",
    async (client) => {
      const source = "import os, sys\nprint(os.getuid())\nsys.stdin.read()\n";
      const jobs = [await client.submit(source), await client.submit(source)];
      for (const job of jobs) await client.start(job);
      for (const job of jobs) await client.until(job, new Set(["running"]));
      for (const job of jobs) await client.eof(job);
      const [a, b] = [await client.end(jobs[0]), await client.end(jobs[1])];
      check(Number(a.stdout) > 0 && Number(b.stdout) > 0 && a.stdout !== b.stdout, `uids ${a.stdout} and ${b.stdout}`);
    },
  ],
  [
    "no network, no socket but AF_UNIX",
    async (client) => {
      const seen = await look(
        client,
        `${attempt}
import socket
attempt('inet', lambda: socket.socket(socket.AF_INET, socket.SOCK_STREAM))
attempt('inet6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM))
attempt('netlink', lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW))
attempt('unix', lambda: socket.socketpair())
print('interfaces', sorted(line.split(':')[0].strip() for line in open('/proc/net/dev').read().splitlines()[2:]))
`,
      );
      equal([seen.inet, seen.inet6, seen.netlink, seen.unix], ["EAFNOSUPPORT", "EAFNOSUPPORT", "EAFNOSUPPORT", "allowed"], "sockets");
      equal(seen.interfaces, "['lo']", "interfaces");
    },
  ],
  [
    "a read-only root; memory files of bounded size",
    async (client) => {
      const seen = await look(
        client,
        `${attempt}
def fill(path):
    with open(path, 'wb', buffering=0) as f:
        while True: f.write(b'z' * 65536)
attempt('root', lambda: open('/x', 'w'))
attempt('etc', lambda: open('/etc/passwd', 'a'))
attempt('init', lambda: open('/.code-runner/init', 'r+b'))
attempt('sys', lambda: open('/sys/kernel/uevent_helper', 'w'))
attempt('proc', lambda: open('/proc/sys/kernel/core_pattern', 'w'))
attempt('tmp', lambda: fill('/tmp/big'))
attempt('shm', lambda: fill('/dev/shm/big'))
attempt('workspace', lambda: [fill(f'/workspace/big{i}') for i in range(2)])
os.remove('/tmp/big')
import shutil, subprocess
shutil.copy('/bin/true', '/tmp/true')
os.chmod('/tmp/true', 0o755)
attempt('exec', lambda: subprocess.run(['/tmp/true']))
print('cmdline', repr(open('/proc/cmdline').read()))
`,
      );
      for (const name of ["root", "etc", "init"]) check(["EROFS", "EACCES"].includes(seen[name]), `${name}: ${seen[name]}`);
      check(["EROFS", "EACCES", "ENOENT"].includes(seen.sys) && ["EROFS", "EACCES"].includes(seen.proc), `sys ${seen.sys}, proc ${seen.proc}`);
      equal([seen.tmp, seen.shm], ["ENOSPC", "ENOSPC"], "full memory files");
      check(["ENOSPC", "EFBIG"].includes(seen.workspace), `workspace ${seen.workspace}`);
      equal([seen.exec, seen.cmdline], ["EACCES", "''"], "exec in /tmp, /proc/cmdline");
    },
  ],
  [
    "init cannot be signalled, read, traced, starved or impersonated",
    async (client) => {
      const seen = await look(
        client,
        `${attempt}
import ctypes, resource, signal
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    if libc.syscall(number, *args) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
for s in range(1, 65):
    try: os.kill(1, s)
    except OSError: pass
attempt('fd', lambda: os.listdir('/proc/1/fd'))
attempt('mem', lambda: open('/proc/1/mem', 'rb'))
attempt('environ', lambda: open('/proc/1/environ', 'rb').read())
attempt('ptrace', lambda: call(101, 16, 1, 0, 0))
attempt('process_vm_readv', lambda: call(310, 1, 0, 0, 0, 0, 0))
attempt('prlimit', lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
attempt('prlimit_wrapped', lambda: call(302, (1 << 32) + 1, 7, 0, 0))
attempt('priority', lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
attempt('affinity', lambda: os.sched_setaffinity(1, {0}))
attempt('pidfd_getfd', lambda: call(438, os.pidfd_open(1), 0, 0))
attempt('clone_newuser', lambda: call(56, 0x10000000 | 17, 0, 0, 0, 0))
attempt('clone3', lambda: call(435, 0, 0))
attempt('io_uring', lambda: call(425, 1, 0))
attempt('keyctl', lambda: call(250, 0, -3, 0))
attempt('bpf', lambda: call(321, 0, 0, 0))
print('alive', os.path.exists('/proc/1'))
`,
      );
      const refused = (name, ...answers) => check(answers.includes(seen[name]), `${name} is ${seen[name]}, not ${answers}`);
      for (const name of ["fd", "mem", "environ"]) refused(name, "EACCES", "EPERM");
      for (const name of ["ptrace", "process_vm_readv", "pidfd_getfd", "clone3", "io_uring", "keyctl", "bpf"]) refused(name, "ENOSYS");
      for (const name of ["prlimit", "prlimit_wrapped", "priority", "affinity", "clone_newuser"]) refused(name, "EPERM");
      equal(seen.alive, "True", "init");
    },
  ],
  [
    "processes are limited, and a fork bomb hurts only itself",
    async (client) => {
      const end = await client.run(
        "import os, time\nprint('armed', flush=True)\nn = 0\ntry:\n    while True:\n        if os.fork() == 0:\n            time.sleep(60)\n        n += 1\nexcept OSError as e:\n    print(n, e.errno)\n",
        { limits: { pids: 16 } },
      );
      equal([end.stdout, end.state], ["armed\n15 11\n", "done"], "a fork bomb");
      equal((await client.run("print('alive')")).stdout, "alive\n", "another job");
    },
  ],
  [
    "an environment made from nothing",
    async (client) => {
      const end = await client.run("import os\nprint(sorted(os.environ))\nprint(os.environ['LANG'], os.environ['TZ'])\n");
      check(!/TOKEN|SECRET|DOCKER|STATE_DIR|API_/.test(end.stdout), end.stdout);
      check(end.stdout.endsWith("C.UTF-8 UTC\n"), end.stdout);
    },
  ],
];
