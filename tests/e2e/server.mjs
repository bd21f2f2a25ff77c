// server.mjs - one `code-runner serve` for the length of a test run: a free loopback port, a state
// directory of its own, an environment made from nothing, and its log kept for when things go wrong.

import { execFile, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";

import { note, within } from "./transcript.mjs";

const START_MS = 20_000;
const STOP_MS = 15_000;
const LOG_LINES = 200;

const root = new URL("../..", import.meta.url).pathname;
const inherited = ["PATH", "HOME", "DOCKER_HOST", "LANG", "SANDBOX_RUNTIME", "ASAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS"];

async function freePort() {
  const probe = createServer();
  await new Promise((resolve, reject) => probe.once("error", reject).listen(0, "127.0.0.1", resolve));
  const { port } = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return port;
}

export class Server {
  appKey = "e2e-key";
  appSecret = randomBytes(16).toString("hex");
  token = randomBytes(16).toString("hex");
  #log = [];
  #child;
  #stopping = false;
  #env;

  // env: settings of this server beyond those every test server has; stateDir: one that exists.
  constructor({ env = {}, stateDir } = {}) {
    this.#env = env;
    this.stateDir = stateDir;
  }

  async start() {
    this.port = await freePort();
    this.baseUrl = `http://127.0.0.1:${this.port}`;
    this.stateDir ??= await mkdtemp(join(tmpdir(), "code-runner-e2e-"));

    const binary = process.env.CODE_RUNNER ?? join(root, "build/code-runner");
    const env = Object.fromEntries(inherited.filter((name) => name in process.env).map((name) => [name, process.env[name]]));
    Object.assign(env, {
      EXECUTOR_API_TOKEN: this.token,
      API_HOST: "127.0.0.1",
      API_PORT: String(this.port),
      SOKETI_APP_KEY: this.appKey,
      SOKETI_APP_SECRET: this.appSecret,
      ENABLE_CHANNEL_AUTH: "true",
      STATE_DIR: this.stateDir,
      LANGUAGES_DIR: join(root, "languages"),
      SECCOMP_PROFILE_PATH: join(root, "seccomp/profile.json"),
      ...this.#env,
    });
    this.#child = spawn(binary, ["serve"], { cwd: root, env, stdio: ["ignore", "pipe", "pipe"] });
    this.#keep(this.#child.stdout);
    this.#keep(this.#child.stderr);

    // Settles when the process is gone; rejects only if nobody asked it to go.
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", (error) => reject(new Error(`cannot run ${binary}: ${error.message}`)));
      this.#child.once("exit", (code, signal) => {
        this.exit = { code, signal };
        if (this.#stopping) resolve();
        else reject(new Error(`the server ended by itself (${signal ?? `exit code ${code}`})`));
      });
    });
    this.ended.catch(() => {}); // whoever waits for something races against it

    await this.alive(START_MS, "healthy server", this.#healthy());
    note("server", `${this.baseUrl}, pid ${this.#child.pid}`);
  }

  // within(), but a server that dies ends the wait at once.
  alive(ms, what, promise) {
    return within(ms, what, Promise.race([promise, this.ended.then(() => new Promise(() => {}))]));
  }

  async #healthy() {
    let last = "";
    while (this.exit === undefined && !this.#stopping) {
      try {
        const reply = await fetch(`${this.baseUrl}/health`, { signal: AbortSignal.timeout(2000) });
        const body = await reply.json();
        if (reply.status === 200 && body.status === "ok") return;
        const now = JSON.stringify(body);
        if (now !== last) note("health", (last = now));
      } catch {
        // not listening yet
      }
      await sleep(50);
    }
  }

  #keep(stream) {
    let rest = "";
    stream.setEncoding("utf8").on("data", (text) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop();
      this.#log.push(...lines);
      this.#log.splice(0, this.#log.length - LOG_LINES);
    });
  }

  logTail(lines = 40) {
    return this.#log.slice(-lines).join("\n");
  }

  // Names of the containers that this server, and no other on the same daemon, has made.
  async containers() {
    const id = (await readFile(join(this.stateDir, "deployment-id"), "utf8")).trim();
    const { stdout } = await promisify(execFile)(
      "docker",
      ["ps", "--all", "--filter", `label=code-runner.deployment=${id}`, "--format", "{{.Names}} ({{.Status}})"],
      { timeout: 10_000 },
    );
    return stdout.split("\n").filter(Boolean);
  }

  // Ends the process, kindly first; then its state directory. Safe to call at any time.
  async stop() {
    this.#stopping = true;
    try {
      if (this.#child?.pid !== undefined && this.exit === undefined) {
        const gone = new Promise((resolve) => this.#child.once("exit", resolve));
        this.#child.kill("SIGTERM");
        try {
          await within(STOP_MS, "end of the server after SIGTERM", gone);
        } catch (error) {
          this.#child.kill("SIGKILL");
          throw error;
        }
        const { code, signal } = this.exit;
        if (code !== 0) throw new Error(`the server answered SIGTERM with ${signal ?? `exit code ${code}`}`);
        note("server", "stopped");
      }
    } finally {
      if (this.stateDir) await rm(this.stateDir, { recursive: true, force: true });
    }
  }

  // For a hurried way out: no waiting, no errors. The state directory stays.
  killNow() {
    this.#stopping = true;
    this.#child?.kill("SIGKILL");
  }

  signal(name) {
    this.#stopping = true;
    this.#child.kill(name);
  }

  get pid() {
    return this.#child.pid;
  }
}
