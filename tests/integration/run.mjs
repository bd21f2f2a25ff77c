// run.mjs - what a server promises, tried on a real Docker daemon. Each case says what it checks;
// the last line counts. Without a daemon or the language image everything is skipped (exit code 77),
// which is a failure when REQUIRE names docker.

import { execFile } from "node:child_process";
import { promisify } from "node:util";

import { Server } from "../e2e/server.mjs";
import { check, within } from "../e2e/transcript.mjs";
import { Client } from "./client.mjs";
import * as isolation from "./isolation.mjs";
import * as life from "./life.mjs";
import * as streams from "./streams.mjs";

const CASE_MS = 300_000;
const IMAGE = "code-runner/python:3.13";

async function missing() {
  try {
    await promisify(execFile)("docker", ["image", "inspect", IMAGE], { timeout: 20_000 });
    return undefined;
  } catch (error) {
    return error.message.split("\n").slice(0, 2).join(" ");
  }
}

async function attempt(name, server, action) {
  const began = performance.now();
  try {
    await within(CASE_MS, `end of ${name}`, action(server && new Client(server), server));
    console.log(`ok      ${name} (${((performance.now() - began) / 1000).toFixed(1)} s)`);
    return true;
  } catch (error) {
    console.log(`FAILED  ${name}: ${error.stack}`);
    if (server) console.log(server.logTail());
    return false;
  }
}

async function main() {
  const reason = await missing();
  if (reason) {
    const required = (process.env.REQUIRE ?? "").split(",").includes("docker");
    console.log(`${required ? "FAILED, required" : "SKIPPED"}: docker (${reason})`);
    process.exit(required ? 1 : 77);
  }

  let passed = 0;
  let failed = 0;
  const count = (ok) => (ok ? passed++ : failed++);

  const server = new Server();
  if (await attempt("the server starts", server, () => server.start())) {
    for (const [name, action] of [...life.shared, ...streams.shared, ...isolation.shared])
      count(await attempt(name, server, action));
    count(await attempt("nothing is left behind", server, () => life.nothingLeft(server)));
    count(await attempt("the server stops", server, () => server.stop()));
  } else {
    failed++;
  }
  for (const [name, action] of life.alone) count(await attempt(name, undefined, action));

  console.log(`${passed} passed, ${failed} failed`);
  check(passed > 0, "nothing was tried");
  process.exit(failed === 0 ? 0 : 1);
}

await main();
