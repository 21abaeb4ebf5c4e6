// Drives the binary through the official MCP client, one scenario per process:
//   node client.mjs SCENARIO [ARGUMENT...]
// FERMATA_BIN is the binary. What the scenario saw is printed as one JSON object.
import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ElicitRequestSchema, ResultSchema } from "@modelcontextprotocol/sdk/types.js";

// connect starts the server. What it tells beside answers is kept in client.told.
async function connect(capabilities = {}) {
  const client = new Client({ name: "test", version: "1" }, { capabilities });
  client.told = [];
  client.fallbackNotificationHandler = async (n) => {
    client.told.push(n);
  };
  const transport = new StdioClientTransport({ command: process.env.FERMATA_BIN, args: ["mcp-server"], env: process.env, stderr: "inherit" });
  await client.connect(transport);
  return client;
}

const call = (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options);
const text = (result) => result.content.map((c) => c.text).join("|");
const events = (client) => client.told.filter((n) => n.method === "codex/event").map((n) => n.params.msg.type);

// caught is what a promise was rejected with.
async function caught(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    return { name: error.name, message: error.message, code: error.code };
  }
}

async function until(what) {
  while (!what()) await pause(10);
}

// asking connects as a client that answers questions, and keeps them.
async function asking(answer) {
  const client = await connect({ elicitation: {} });
  client.asked = [];
  client.setRequestHandler(ElicitRequestSchema, async (request, extra) => {
    client.asked.push(request.params);
    return answer(request, extra);
  });
  return client;
}

const scenarios = {
  async handshake() {
    const client = await connect();
    await client.ping();
    await client.setLoggingLevel("error");
    const { tools } = await client.listTools();
    return {
      server: client.getServerVersion(),
      capabilities: client.getServerCapabilities(),
      tools: tools.map((t) => ({ name: t.name, required: t.inputSchema.required ?? [], output: t.outputSchema !== undefined })),
      unknownTool: await call(client, "nothing", {}),
      unknownMethod: await caught(client.listResources()),
    };
  },

  // The first turn waits for the file, which is written at the first word of progress.
  async turns(file) {
    const client = await connect();
    const progress = [];
    const onprogress = (p) => {
      if (progress.push(p) === 1) writeFileSync(file, "");
    };
    const first = await call(client, "codex", { prompt: "one" }, { onprogress });
    const id = first.structuredContent.threadId;
    const second = await call(client, "codex-reply", { threadId: id, prompt: "two" });
    return { id, answers: [text(first), text(second)], errors: [first.isError ?? false, second.isError ?? false], progress, events: events(client) };
  },

  // Aborts a call when its command has written the file, and goes on.
  async abort(file) {
    const client = await connect();
    const controller = new AbortController();
    const aborted = caught(call(client, "codex", { prompt: "work" }, { signal: controller.signal }));
    await until(() => existsSync(file));
    controller.abort("enough");
    const seen = await aborted;
    await until(() => client.told.some((n) => n.method === "turn_aborted"));
    const configured = client.told.find((n) => n.method === "session_configured");
    const next = await call(client, "codex-reply", { conversationId: configured.params.msg.session_id, prompt: "and now?" });
    const requests = client.told.filter((n) => n.method === "codex/event").map((n) => n.params._meta.requestId);
    return { seen, answer: text(next), events: events(client), requests: [...new Set(requests)] };
  },

  async elicit(action) {
    const client = await asking(() => (action === "accept" ? { action, content: {} } : { action }));
    const result = await call(client, "codex", { prompt: "make it" });
    return { asked: client.asked, answer: text(result), isError: result.isError ?? false };
  },

  // Aborts a call while its second question is open: the question is taken back. The first
  // has the id 0, which this client cannot take back: it looks for an id that is not falsy.
  async unasked() {
    let takenBack;
    const back = new Promise((resolve) => (takenBack = resolve));
    const client = await asking(
      (_, { signal }) =>
        client.asked.length === 1
          ? { action: "accept", content: {} }
          : new Promise((resolve) => signal.addEventListener("abort", () => (takenBack(true), resolve({ action: "cancel" })))),
    );
    const controller = new AbortController();
    const aborted = caught(call(client, "codex", { prompt: "make it" }, { signal: controller.signal }));
    await until(() => client.asked.length === 2);
    controller.abort("enough");
    const seen = await aborted;
    return { seen, back: await back };
  },

  async stream() {
    const client = await connect();
    const made = await call(client, "conversationCreate", { prompt: "", cwd: process.cwd() });
    const id = made.structuredContent.conversation_id;
    await call(client, "conversationStream", { conversation_id: id });
    await call(client, "conversationSendMessage", { conversation_id: id, content: [{ type: "text", text: "hi" }] });
    await until(() => client.told.some((n) => n.method === "task_complete"));
    return { told: client.told.filter((n) => !n.method.endsWith("_delta")).map((n) => n.method) };
  },
};

// Interrupts turns that a call, a stream and a listener follow, and counts the followers that had not been told the end when the
// interrupt, or the call, was answered.
scenarios.order = async (rounds) => {
  const client = await connect();
  const direct = (method, params) => client.request({ method, params }, ResultSchema);
  const { conversationId: id } = await direct("newConversation", { cwd: process.cwd() });
  await direct("addConversationListener", { conversationId: id });
  await call(client, "conversationStream", { conversation_id: id, meta: true });
  const forms = { call: (n) => n.method === "codex/event", stream: (n) => n.params._meta?.conversationId === id && !n.params._meta.requestId && !!n.params.msg, listener: (n) => n.method.startsWith("codex/event/") };
  const ends = () => Object.values(forms).map((form) => client.told.filter((n) => form(n) && n.params.msg.type === "turn_aborted").length);
  const late = [];
  for (let round = 1; round <= Number(rounds); round++) {
    const answered = call(client, "codex-reply", { threadId: id, prompt: "go" }).then((r) => (late.push(...ends().filter((n) => n !== round)), r));
    await until(() => client.told.filter((n) => n.method === "codex/event" && n.params.msg.type === "task_started").length === round);
    const { abortReason } = await direct("interruptConversation", { conversationId: id });
    late.push(...ends().filter((n) => n !== round));
    if (abortReason !== "interrupted" || !text(await answered).includes("turn interrupted")) late.push(abortReason);
  }
  return { late, ends: ends() };
};

const [name, ...args] = process.argv.slice(2);
process.stdout.write(JSON.stringify(await scenarios[name](...args)), () => process.exit(0));
