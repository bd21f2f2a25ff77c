// client.mjs - the few HTTP calls the integration tests make, and how they wait.

import { setTimeout as sleep } from "node:timers/promises";

const CALL_MS = 30_000;
const POLL_MS = 10;
export const FINAL = new Set(["done", "killed", "error"]);

export class Client {
  constructor(server) {
    this.server = server;
  }

  async call(method, path, body) {
    const headers = { authorization: `Bearer ${this.server.token}` };
    if (body !== undefined) headers["content-type"] = "application/json";
    const reply = await fetch(this.server.baseUrl + path, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal: AbortSignal.timeout(CALL_MS),
    });
    const text = await reply.text();
    return { status: reply.status, body: text.startsWith("{") || text.startsWith("[") ? JSON.parse(text) : text };
  }

  async submit(source, extra = {}) {
    const files = [{ name: "main.py", content: source }, ...(extra.files ?? [])];
    const reply = await this.call("POST", "/v1/execute", {
      language: "python",
      collectOutput: true,
      ...extra,
      files,
    });
    if (reply.status !== 202) throw new Error(`execute answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body.jobId;
  }

  control = (id, what, body) => this.call("POST", `/v1/jobs/${id}/${what}`, body);
  start = (id) => this.control(id, "start");
  kill = (id) => this.control(id, "kill");
  eof = (id) => this.control(id, "stdin/close");

  // Sends a chunk; waits when told that it comes too fast or that too much is pending.
  async stdin(id, chunk) {
    for (;;) {
      const reply = await this.control(id, "stdin", { chunk });
      if (reply.status !== 429) return reply;
      await sleep(100);
    }
  }

  async state(id) {
    const reply = await this.call("GET", `/v1/jobs/${id}`);
    if (reply.status !== 200) throw new Error(`status answered ${reply.status}: ${JSON.stringify(reply.body)}`);
    return reply.body.state;
  }

  async until(id, what, ms = 60_000) {
    const end = Date.now() + ms;
    for (;;) {
      const state = await this.state(id);
      if (what.has(state)) return state;
      if (FINAL.has(state)) throw new Error(`job ended as ${state} while waiting for ${[...what]}`);
      if (Date.now() > end) throw new Error(`job is still ${state} after ${ms} ms, not ${[...what]}`);
      await sleep(POLL_MS);
    }
  }

  // The end of a job: state, stored output and report.
  async end(id, ms = 60_000) {
    const state = await this.until(id, FINAL, ms);
    const output = await this.call("GET", `/v1/jobs/${id}/output`);
    const report = await this.call("GET", `/v1/jobs/${id}/report`);
    if (output.status !== 200 || report.status !== 200)
      throw new Error(`output ${output.status}, report ${report.status}: ${JSON.stringify(output.body)}`);
    return { state, ...output.body, report: report.body };
  }

  async run(source, extra = {}) {
    const id = await this.submit(source, extra);
    await this.start(id);
    return this.end(id);
  }
}
