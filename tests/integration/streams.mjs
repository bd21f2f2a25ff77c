// streams.mjs - what goes in and comes out: whole, in order, within its bounds.

import { createHash } from "node:crypto";

import { check } from "../e2e/transcript.mjs";

const equal = (got, want, what) =>
  check(JSON.stringify(got) === JSON.stringify(want), `${what} is ${JSON.stringify(got)}, not ${JSON.stringify(want)}`);
const sha = (text) => createHash("sha256").update(text).digest("hex");

export const shared = [
  [
    "a program that prints and exits at once loses nothing",
    async (client) => {
      const source = "import os\nos.write(1, b'x' * 60000)\nos.write(2, b'y' * 60000)\nos._exit(3)\n";
      for (let i = 0; i < 10; i++) {
        const end = await client.run(source);
        equal([end.exitCode, end.stdout.length, end.stderr.length, end.truncated], [3, 60000, 60000, false], "an early exit");
      }
    },
  ],
  [
    "what a grandchild wrote is there too, and the grandchild is not",
    async (client) => {
      const source =
        "import os, time\nif os.fork() == 0:\n    os.write(1, b'child\\n')\n    os.kill(os.getppid(), 0)\n    time.sleep(60)\n" +
        "time.sleep(0.3)\nprint('parent')\n";
      const end = await client.run(source);
      equal([end.stdout, end.exitCode], ["child\nparent\n", 0], "output");
      check(end.report.runMs < 30_000, `it took ${end.report.runMs} ms`);
    },
  ],
  [
    "5 MB arrive whole and in order",
    async (client) => {
      const lines = Array.from({ length: 500_000 }, (_, i) => `${String(i).padStart(9, "0")}\n`).join("");
      const end = await client.run("for i in range(500000): print(f'{i:09}')\n", { limits: { outputKb: 8192 } });
      equal([end.truncated, end.stdout.length], [false, lines.length], "length");
      equal(sha(end.stdout), sha(lines), "contents");
      equal([end.report.stdoutBytes, end.report.stdoutKeptBytes], [lines.length, lines.length], "the report");
    },
  ],
  [
    "the output budget cuts, says so, and does not stop the program",
    async (client) => {
      const end = await client.run("import sys\nfor i in range(10000): print('a' * 1023)\nprint('done', file=sys.stderr)\n", {
        limits: { outputKb: 32 },
      });
      equal([end.truncated, end.stdout.length, end.exitCode, end.stderr], [true, 32 * 1024, 0, ""], "a cut output");
      equal(end.report.stdoutBytes, 10000 * 1024, "bytes written");
    },
  ],
  [
    "stdin sent before start, in many pieces, arrives in order; EOF after it",
    async (client) => {
      const job = await client.submit("import sys, hashlib\nd = sys.stdin.buffer.read()\nprint(len(d), hashlib.sha256(d).hexdigest())\n");
      const pieces = Array.from({ length: 60 }, (_, i) => String(i).padStart(5, "0").repeat(800));
      for (const piece of pieces.slice(0, 10)) await client.stdin(job, piece);
      await client.start(job);
      for (const piece of pieces.slice(10)) await client.stdin(job, piece);
      await client.eof(job);
      const end = await client.end(job);
      const all = pieces.join("");
      equal(end.stdout, `${all.length} ${sha(all)}\n`, "what the program read");
      equal((await client.control(job, "stdin", { chunk: "late" })).status, 200, "stdin to an ended job");
    },
  ],
  [
    "a kill does not wait behind stdin that nobody reads",
    async (client) => {
      const job = await client.submit("import time\ntime.sleep(60)\n");
      await client.start(job);
      await client.until(job, new Set(["running"]));
      // The program's pipe takes 64 KiB, and as much may wait for it.
      let refused;
      for (let i = 0; i < 20 && !refused; i++) {
        const reply = await client.control(job, "stdin", { chunk: "z".repeat(16384) });
        if (reply.body.capBytes) refused = reply;
        else equal(reply.status, 200, "a chunk within the cap");
      }
      equal([refused?.status, refused?.body.capBytes], [429, 65536], "more than may be pending");
      await client.kill(job);
      equal((await client.end(job, 15_000)).report.outcome, "killed", "outcome");
    },
  ],
  [
    "a program that closes its stdin and goes on is not disturbed",
    async (client) => {
      const job = await client.submit("import os, time\nos.close(0)\nprint('closed')\ntime.sleep(1)\nprint('still here')\n");
      await client.start(job);
      await client.until(job, new Set(["running"]));
      for (let i = 0; i < 5; i++) await client.stdin(job, "x".repeat(30_000));
      equal((await client.end(job)).stdout, "closed\nstill here\n", "output");
    },
  ],
];
