// job.mjs - one job as a client sees it: submitted with the published SDK, watched with an
// unmodified pusher-js, every payload checked against the published (strict) schemas.

import {
  ExecuteResponseSchema,
  JobStatusSchema,
  OutputChunkEventSchema,
  ResultEventSchema,
  StageEventSchema,
} from "@teovilla/code-runner-contract";
import { CodeRunnerClient } from "@teovilla/code-runner-sdk-node";
import Pusher from "pusher-js";

import { check, received, sent } from "./transcript.mjs";

const REQUEST_MS = 10_000;
const SUBSCRIBE_MS = 10_000;

const schemas = {
  stage: StageEventSchema,
  stdout: OutputChunkEventSchema,
  stderr: OutputChunkEventSchema,
  compile_output: OutputChunkEventSchema,
  result: ResultEventSchema,
};

export class Job {
  events = []; // {event, data}, in order of arrival
  #server;
  #client;
  #pusher;
  #wakers = new Set();
  #broken; // the first thing seen that must not happen

  // authorize: async (socketId, channelName) => {auth}
  static async submit(server, authorize, request) {
    const job = new Job();
    job.#server = server;
    job.#client = new CodeRunnerClient({ baseUrl: server.baseUrl, token: server.token });

    sent("execute", `${request.language}: ${request.files.map((file) => file.name).join(", ")}`);
    const accepted = await server.alive(REQUEST_MS, "answer to execute", job.#client.execute(request));
    ExecuteResponseSchema.parse(accepted);
    received("accepted", `${accepted.jobId} ${accepted.status}`);
    job.id = accepted.jobId;
    job.channel = accepted.channel;

    job.#pusher = new Pusher(server.appKey, {
      cluster: "",
      wsHost: "127.0.0.1",
      wsPort: server.port,
      forceTLS: false,
      enabledTransports: ["ws"],
      channelAuthorization: {
        customHandler: ({ socketId, channelName }, done) =>
          authorize(socketId, channelName).then(
            (answer) => done(null, answer),
            (error) => done(error, null),
          ),
      },
    });
    return job;
  }

  async subscribe() {
    sent("subscribe", this.channel);
    const channel = this.#pusher.subscribe(this.channel);
    channel.bind_global((event, data) => {
      if (!event.startsWith("pusher:")) this.#take(event, data);
    });
    const subscribed = new Promise((resolve, reject) => {
      channel.bind("pusher:subscription_succeeded", resolve);
      channel.bind("pusher:subscription_error", (error) => reject(new Error(`subscription refused: ${JSON.stringify(error)}`)));
      this.#pusher.connection.bind("error", (error) => reject(new Error(`socket error: ${JSON.stringify(error)}`)));
    });
    await this.#server.alive(SUBSCRIBE_MS, "subscription", subscribed);
    received("subscribed", `socket ${this.#pusher.connection.socket_id}`);
  }

  #take(event, data) {
    received(event, event === "stdout" || event === "stderr" ? `#${data.seq} ${JSON.stringify(data.chunk)}` : JSON.stringify(data));
    const problem = this.#problemWith(event, data);
    if (problem !== undefined) this.#broken ??= new Error(`${event} ${JSON.stringify(data)}: ${problem}`);
    this.events.push({ event, data });
    for (const wake of [...this.#wakers]) wake();
  }

  #problemWith(event, data) {
    const output = ["stdout", "stderr", "compile_output"].includes(event);
    if (this.result && (output || event === "result")) return "comes after the result";
    const parsed = schemas[event]?.safeParse(data);
    if (parsed && !parsed.success)
      return parsed.error.issues.map((issue) => `${issue.path.join(".") || "payload"}: ${issue.message}`).join("; ");
    const previous = this.events.filter((seen) => Number.isInteger(seen.data?.seq)).at(-1)?.data.seq ?? 0;
    if (output && data.seq !== previous + 1) return `seq should be ${previous + 1}`;
    return undefined;
  }

  get result() {
    return this.events.find((seen) => seen.event === "result")?.data;
  }

  // All that a stream has carried so far.
  text(stream) {
    return this.events
      .filter((seen) => seen.event === stream)
      .map((seen) => seen.data.chunk)
      .join("");
  }

  has(event, matches = () => true) {
    return this.events.some((seen) => seen.event === event && matches(seen.data));
  }

  // Resolves as soon as condition() holds; rejects when time is up, the server dies, a payload is
  // wrong, or the job ends without the condition having come true.
  async until(ms, what, condition) {
    let wake;
    const met = new Promise((resolve, reject) => {
      wake = () => {
        if (this.#broken) reject(this.#broken);
        else if (condition()) resolve();
        else if (this.result) reject(new Error(`the job ended without ${what}; stderr: ${JSON.stringify(this.text("stderr"))}`));
      };
    });
    this.#wakers.add(wake);
    wake();
    try {
      await this.#server.alive(ms, what, met);
    } finally {
      this.#wakers.delete(wake);
    }
  }

  async #call(what, detail, promise) {
    sent(what, detail);
    return this.#server.alive(REQUEST_MS, `answer to ${what}`, promise);
  }

  start = () => this.#call("start", "", this.#client.start(this.id));
  sendStdin = (chunk) => this.#call("stdin", JSON.stringify(chunk), this.#client.sendStdin(this.id, chunk));
  closeStdin = () => this.#call("stdin/close", "", this.#client.closeStdin(this.id));

  async status() {
    const status = await this.#call("status", "", this.#client.getJob(this.id));
    received("status", status.state);
    JobStatusSchema.parse(status);
    return status;
  }

  // The end of every well-behaved job: result, nothing left behind, status.
  async finish(ms) {
    await this.until(ms, "result", () => this.result !== undefined);
    const left = await this.#server.containers();
    check(left.length === 0, `containers left behind: ${left.join(", ")}`);
    const { durationMs, ...rest } = this.result;
    const want = { exitCode: 0, signal: null, timedOut: false, idleTimedOut: false, truncated: false };
    for (const [key, value] of Object.entries(want))
      check(rest[key] === value, `result.${key} is ${JSON.stringify(rest[key])}, not ${JSON.stringify(value)}`);
    check(durationMs > 0, `result.durationMs is ${durationMs}`);
    const { state } = await this.status();
    check(state === "done", `state after the result is ${state}, not done`);
    if (this.#broken) throw this.#broken;
  }

  leave() {
    this.#pusher?.disconnect();
  }
}
