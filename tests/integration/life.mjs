// life.mjs - how jobs begin and end, and that nothing outlives them.

import { execFile } from "node:child_process";
import { readdir, readFile, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { Server } from "../e2e/server.mjs";
import { check } from "../e2e/transcript.mjs";
import { Client, FINAL } from "./client.mjs";

const run = promisify(execFile);
const docker = async (...args) => (await run("docker", args, { timeout: 30_000 })).stdout.trim();

const equal = (got, want, what) =>
  check(JSON.stringify(got) === JSON.stringify(want), `${what} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);

async function deployment(server) {
  return (await readFile(`${server.stateDir}/deployment-id`, "utf8")).trim();
}

async function idOf(server, job) {
  return docker("ps", "--quiet", "--no-trunc", "--filter", `label=code-runner.job=${job}`);
}

// Names of the processes in a job's container.
async function processes(server, job) {
  const rows = (await docker("top", await idOf(server, job), "-o", "pid,comm")).split("\n").slice(1);
  return rows.map((row) => row.trim().split(/\s+/)[1]);
}

async function use(pid) {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return {
    descriptors: (await readdir(`/proc/${pid}/fd`)).length,
    threads: Number(/^Threads:\s+(\d+)/m.exec(status)[1]),
  };
}

export async function nothingLeft(server) {
  equal(await server.containers(), [], "what is left");
  equal(await docker("volume", "ls", "--quiet", "--filter", `label=code-runner.deployment=${await deployment(server)}`), "", "volumes left");
}

async function goneAt(client, server, job) {
  await client.until(job, FINAL);
  equal(await server.containers(), [], "containers when the result is there");
}

export const shared = [
  [
    "nothing of the program runs before start",
    async (client, server) => {
      const job = await client.submit("import time\nprint('ran')\ntime.sleep(60)\n");
      const end = Date.now() + 20_000;
      while (!(await idOf(server, job)) && Date.now() < end) await sleep(20);
      await sleep(500);
      equal(await processes(server, job), ["init"], "processes at the gate");
      equal(await client.state(job), "queued", "state at the gate");
      await client.start(job);
      await client.until(job, new Set(["running"]));
      equal((await processes(server, job)).length, 2, "processes of a running job");
      await client.kill(job);
      await goneAt(client, server, job);
    },
  ],
  [
    "the container is gone when the result is there: exit, kill, wall time-out",
    async (client, server) => {
      const exits = await client.submit("print('x')");
      await client.start(exits);
      await goneAt(client, server, exits);

      const killed = await client.submit("import time\nprint('up')\ntime.sleep(60)\n");
      await client.start(killed);
      await client.until(killed, new Set(["running"]));
      await client.kill(killed);
      await goneAt(client, server, killed);
      const end = await client.end(killed);
      equal([end.state, end.exitCode, end.signal, end.report.outcome], ["killed", null, "SIGKILL", "killed"], "a kill");

      const slow = await client.submit("import time\nprint('up')\ntime.sleep(60)\n", { limits: { wallTimeMs: 500 } });
      await client.start(slow);
      await goneAt(client, server, slow);
      const late = await client.end(slow);
      equal([late.state, late.exitCode, late.timedOut, late.stdout], ["error", null, true, "up\n"], "a time-out");
      equal(late.report.limit, { name: "wallTimeMs", value: 500 }, "the limit");
    },
  ],
  [
    "idle time and memory end a job with their own words",
    async (client) => {
      const idle = await client.run("input()", { limits: { idleMs: 300 } });
      equal([idle.state, idle.idleTimedOut, idle.timedOut, idle.report.outcome], ["error", true, false, "idle_timeout"], "idle");
      const memory = await client.run("b = []\nwhile True: b.append(bytearray(1 << 20))\n", { limits: { memoryMb: 32 } });
      equal([memory.state, memory.signal, memory.report.outcome], ["done", "SIGKILL", "out_of_memory"], "memory");
    },
  ],
  [
    "200 runs give 200 exact results and leave nothing behind",
    async (client, server) => {
      const volumes = await docker("volume", "ls", "--quiet");
      let left = 0;
      const worker = async () => {
        while (left-- > 0) {
          const { state, stdout, stderr, exitCode } = await client.run('print("x")');
          equal([state, stdout, stderr, exitCode], ["done", "x\n", "", 0], "a run");
        }
      };
      const runs = async (n) => {
        left = n;
        await Promise.all(Array.from({ length: 6 }, worker));
      };
      await runs(20); // connections to the daemon are kept: make them first
      const before = await use(server.pid);
      await runs(200);
      equal(await server.containers(), [], "what is left");
      equal(await docker("volume", "ls", "--quiet"), volumes, "volumes");
      // Connections of ours come and go: ask until it is quiet.
      let after;
      for (let i = 0; i < 100; i++) {
        after = await use(server.pid);
        if (after.descriptors <= before.descriptors && after.threads <= before.threads) return;
        await sleep(100);
      }
      equal(after, before, "descriptors and threads");
    },
  ],
  [
    "files of any depth, any bytes",
    async (client) => {
      const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
      const source =
        "import os, sys\n" +
        "data = open('a/b/c/d/e/f.bin', 'rb').read()\n" +
        "print(data == bytes(range(256)), oct(os.stat('main.py').st_mode & 0o777), os.getcwd())\n" +
        "open('a/b/new', 'w').write('mine')\nos.remove('a/b/c/d/e/f.bin')\nprint(os.listdir('a/b/c/d/e'))\n";
      const end = await client.run(source, {
        files: [{ name: "a/b/c/d/e/f.bin", content: bytes.toString("base64"), encoding: "base64" }],
      });
      equal([end.stdout, end.stderr], ["True 0o644 /workspace\n[]\n", ""], "output");
    },
  ],
];

const sleeper = "import sys\nprint('up')\nsys.stdin.read()\n";

export const alone = [
  [
    "with eight sandboxes a ninth job waits",
    async () => {
      const server = new Server({ env: { WORKER_MAX_SANDBOXES: "8" } });
      await server.start();
      try {
        const client = new Client(server);
        const jobs = [];
        for (let i = 0; i < 9; i++) {
          const job = await client.submit(sleeper, { limits: { idleMs: 120_000, wallTimeMs: 120_000 } });
          await client.start(job);
          jobs.push(job);
        }
        for (const job of jobs.slice(0, 8)) await client.until(job, new Set(["running"]));
        await sleep(500);
        equal(await client.state(jobs[8]), "queued", "the ninth");
        equal((await server.containers()).length, 8, "containers");
        await client.eof(jobs[0]);
        await client.until(jobs[8], new Set(["running"]));
        for (const job of jobs.slice(1)) await client.eof(job);
        for (const job of jobs) equal((await client.end(job)).stdout, "up\n", "output");
      } finally {
        await server.stop();
      }
    },
  ],
  [
    "when the server is killed every sandbox ends by itself, and the next server cleans up",
    async () => {
      const server = new Server();
      await server.start();
      const client = new Client(server);
      const id = await deployment(server);
      const jobs = [];
      for (let i = 0; i < 3; i++) {
        jobs.push(await client.submit("import signal, time\nfor s in range(1, 32):\n    try: signal.signal(s, signal.SIG_IGN)\n    except OSError: pass\nprint('up')\ntime.sleep(60)\n"));
        if (i < 2) await client.start(jobs[i]);
      }
      for (const job of jobs.slice(0, 2)) await client.until(job, new Set(["running"]));
      const { stateDir } = server;
      server.killNow();
      const running = () => docker("ps", "--quiet", "--filter", `label=code-runner.deployment=${id}`);
      const end = Date.now() + 10_000;
      while ((await running()) && Date.now() < end) await sleep(50);
      equal(await running(), "", "sandboxes still running");
      const next = new Server({ stateDir });
      await next.start();
      try {
        equal(await next.containers(), [], "what the next server left of them");
        equal((await new Client(next).run("print(1)")).stdout, "1\n", "a job of the next server");
      } finally {
        await next.stop();
      }
    },
  ],
  [
    "a server that is told to stop ends its jobs first, and callers see it",
    async () => {
      const server = new Server({ env: { WORKER_DRAIN_TIMEOUT_MS: "1000" } });
      await server.start();
      const client = new Client(server);
      const job = await client.submit(sleeper, { limits: { idleMs: 120_000, wallTimeMs: 120_000 } });
      await client.start(job);
      await client.until(job, new Set(["running"]));
      server.signal("SIGTERM");
      await sleep(200);
      const refused = await client.call("POST", "/v1/execute", { language: "python", files: [{ name: "main.py", content: "" }] });
      equal(refused.status, 503, "a new job while stopping");
      await server.ended;
      equal(server.exit.code, 0, "exit code");
      equal(await server.containers(), [], "what is left");
      await rm(server.stateDir, { recursive: true, force: true });
    },
  ],
  [
    "a second server on the same state, and bad settings, are refused by name",
    async () => {
      const server = new Server();
      await server.start();
      try {
        const second = new Server({ stateDir: server.stateDir });
        await second.start().then(
          () => check(false, "a second server started"),
          () => check(/STATE_DIR: another server is running/.test(second.logTail()), second.logTail()),
        );
        for (const [env, words] of [
          [{ WORKER_MAX_SANDBOXES: "0" }, /WORKER_MAX_SANDBOXES.*0/],
          [{ API_PORT: "http" }, /API_PORT.*http/],
          [{ EXECUTOR_API_TOKEN: "" }, /EXECUTOR_API_TOKEN/],
          [{ REDIS_URL: "redis://x" }, /REDIS_URL/],
        ]) {
          const bad = new Server({ env, stateDir: server.stateDir });
          await bad.start().then(
            () => check(false, `started with ${JSON.stringify(env)}`),
            () => check(words.test(bad.logTail()), bad.logTail()),
          );
        }
      } finally {
        await server.stop();
      }
    },
  ],
];
