// run.mjs - end to end: a real server, a real Docker daemon, the published Node SDK and an
// unmodified pusher-js. Prints a transcript, then one line PASS or FAIL.

import { createChannelAuthorizer } from "@teovilla/code-runner-sdk-node";
import { setTimeout as sleep } from "node:timers/promises";

import { Job } from "./job.mjs";
import { Server } from "./server.mjs";
import { check, note, within } from "./transcript.mjs";

const SCENARIO_MS = 60_000;
const STEP_MS = 15_000;

const python = (source) => ({ language: "python", files: [{ name: "main.py", content: source }] });

// The customer's backend asks us to sign, or signs by itself; clients cannot tell the difference.
const signedByServer = (server) => async (socketId, channelName) => {
  const reply = await fetch(`${server.baseUrl}/v1/channel-auth`, {
    method: "POST",
    headers: { authorization: `Bearer ${server.token}`, "content-type": "application/json" },
    body: JSON.stringify({ socket_id: socketId, channel_name: channelName }),
    signal: AbortSignal.timeout(STEP_MS),
  });
  check(reply.status === 200, `channel-auth answered ${reply.status}: ${await reply.clone().text()}`);
  return reply.json();
};
const signedBySdk = (server) => {
  const authorize = createChannelAuthorizer({ appKey: server.appKey, appSecret: server.appSecret });
  return async (socketId, channelName) => authorize(socketId, channelName);
};

const scenarios = [
  {
    name: "a program asks, a person answers",
    authorize: signedByServer,
    request: python('name = input("name? ")\nprint(f"hello {name}")\n'),
    async play(job) {
      await job.subscribe();
      await sleep(300);
      check(!job.has("stdout") && !job.has("stderr"), "the program ran before start");

      await job.start();
      await job.until(STEP_MS, "prompt", () => job.text("stdout") === "name? ");
      await job.sendStdin("World\n");
      await job.finish(STEP_MS);

      check(job.has("stage", (data) => data.phase === "running"), "no stage event said running");
      check(job.text("stdout") === "name? hello World\n", `stdout was ${JSON.stringify(job.text("stdout"))}`);
      check(job.text("stderr") === "", `stderr was ${JSON.stringify(job.text("stderr"))}`);
    },
  },
  {
    name: "the end of input is not the end of output",
    authorize: signedBySdk,
    request: python(
      "import sys, time\n" +
        "text = sys.stdin.read()\n" +
        'print(f"read {text!r}")\n' +
        "time.sleep(1)\n" +
        'print("a second later")\n',
    ),
    async play(job) {
      await job.subscribe();
      await job.start();
      await job.until(STEP_MS, "stage running", () => job.has("stage", (data) => data.phase === "running"));
      await job.sendStdin("grüße ");
      await job.sendStdin("🌍");
      await sleep(300);
      check(job.text("stdout") === "", "read() returned before stdin was closed");

      await job.closeStdin();
      await job.until(STEP_MS, "what read() returned", () => job.text("stdout").includes("read 'grüße 🌍'\n"));
      await job.until(STEP_MS, "line printed a second later", () => job.text("stdout").endsWith("a second later\n"));
      await job.finish(STEP_MS);

      check(job.result.durationMs >= 1000, `durationMs is ${job.result.durationMs}, but the program slept a second`);
    },
  },
  {
    name: "a character written byte by byte arrives whole",
    authorize: signedByServer,
    request: python('import os, time\nfor byte in "😀é".encode():\n    os.write(1, bytes([byte]))\n    time.sleep(0.05)\n'),
    async play(job) {
      await job.subscribe();
      await job.start();
      await job.finish(STEP_MS);
      const chunks = job.events.filter((seen) => seen.event === "stdout").map((seen) => seen.data.chunk);
      check(JSON.stringify(chunks) === '["😀","é"]', `chunks were ${JSON.stringify(chunks)}`);
    },
  },
  {
    name: "who comes late sees everything",
    authorize: signedBySdk,
    request: python("import sys\nprint('out')\nprint('err', file=sys.stderr)\n"),
    async play(job) {
      await job.start();
      while (!["done", "killed", "error"].includes((await job.status()).state)) await sleep(250);
      await job.subscribe();
      await job.finish(STEP_MS);
      check(job.text("stdout") === "out\n" && job.text("stderr") === "err\n", "the replay is not whole");
    },
  },
];

async function runScenario(server, scenario) {
  let job;
  try {
    await within(
      SCENARIO_MS,
      "end of the scenario",
      (async () => {
        job = await Job.submit(server, scenario.authorize(server), scenario.request);
        await scenario.play(job);
      })(),
    );
  } finally {
    job?.leave();
  }
}

async function main() {
  const server = new Server();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"])
    process.once(signal, () => {
      server.killNow();
      console.log(`FAIL: interrupted by ${signal}`);
      process.exit(1);
    });

  const failures = [];
  let passed = 0;
  const attempt = async (name, action) => {
    try {
      await action();
      return true;
    } catch (error) {
      failures.push(`${name}: ${error.message.replace(/\s+/g, " ")}`);
      const ours = (error.stack ?? String(error)).split("\n").filter((frame) => !/node_modules|node:/.test(frame));
      note("failed", ours.join("\n"));
      return false;
    }
  };

  if (await attempt("server", () => server.start())) {
    for (const scenario of scenarios) {
      console.log(`\n== ${scenario.name}`);
      if (await attempt(scenario.name, () => runScenario(server, scenario))) passed++;
      if (server.exit !== undefined) break;
    }
    console.log("");
  }
  const tail = server.logTail();
  await attempt("server", () => server.stop());

  if (failures.length > 0) {
    console.log(`\nThe end of the server's log:\n${server.logTail() || tail || "(empty)"}\n`);
  }
  console.log(`${passed} passed, ${scenarios.length - passed} failed`);
  console.log(failures.length === 0 ? "PASS" : `FAIL: ${failures[0]}`);
  process.exit(failures.length === 0 ? 0 : 1);
}

await main();
