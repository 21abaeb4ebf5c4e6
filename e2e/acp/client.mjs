// Drives `fermata acp` by the official TypeScript client: prompts, permissions, cancel in each phase, sessions, and a load after kill -9.
// It runs in an empty directory; FERMATA_BIN is the program. It prints a line for each thing that it has seen.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import * as acp from "@agentclientprotocol/sdk";

const cwd = process.cwd();
const { session } = acp.methods.agent;

// start runs a server, and work with a connection to it. What the server sends is in updates; answer is asked for permission.
async function start(work) {
  const server = spawn(process.env.FERMATA_BIN, ["acp", "--demo"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((done) => server.on("exit", (code, signal) => done(signal ?? code)));
  const seen = { updates: [], watch: () => {}, answer: () => "approved" };
  const app = acp.client({ name: "test" })
    .onNotification(acp.methods.client.session.update, ({ params }) => { seen.updates.push(params); seen.watch(params.update); })
    .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
      const optionId = await seen.answer(params);
      return { outcome: optionId ? { outcome: "selected", optionId } : { outcome: "cancelled" } };
    });
  const stream = acp.ndJsonStream(Writable.toWeb(server.stdin), Readable.toWeb(server.stdout));
  await app.connectWith(stream, async (agent) => {
    const init = await agent.request(acp.methods.agent.initialize, { protocolVersion: 1, clientCapabilities: {} });
    assert.equal(init.protocolVersion, 1);
    await work({ agent, seen, server, exited });
  });
  server.stdin.end();
  return exited;
}

const say = (agent, sessionId, text) => agent.request(session.prompt, { sessionId, prompt: [{ type: "text", text }] });
const text = (seen, kind = "agent_message_chunk") => seen.updates.filter((u) => u.update.sessionUpdate === kind).map((u) => u.update.content.text).join("");

// calls are the tool calls as a client shows them in the end.
function calls(seen, sessionId) {
  const list = new Map();
  for (const { sessionId: of, update: u } of seen.updates) {
    if (of !== sessionId || !u.sessionUpdate.startsWith("tool_call")) continue;
    if (u.sessionUpdate === "tool_call") assert(!list.has(u.toolCallId), "a call begins once");
    else assert(list.has(u.toolCallId), "an update is of a call that is known");
    list.set(u.toolCallId, { ...list.get(u.toolCallId), ...u });
  }
  return [...list.values()];
}

let kept;
const code = await start(async ({ agent, seen }) => {
  const { sessionId, modes, configOptions } = await agent.request(session.new, { cwd, mcpServers: [] });
  kept = sessionId;
  assert.equal(modes.currentModeId, configOptions.find((o) => o.id === "mode").currentValue);

  assert.equal((await say(agent, sessionId, "talk 5")).stopReason, "end_turn");
  assert.match(text(seen), /word1 word2 word3 word4 word5/);
  console.log("prompt and stream");

  await agent.request(session.setMode, { sessionId, modeId: "ask" });
  assert.equal((await say(agent, sessionId, "run: touch made")).stopReason, "end_turn");
  assert(existsSync("made"));
  seen.answer = () => "denied";
  assert.equal((await say(agent, sessionId, "run: touch not-made")).stopReason, "end_turn");
  assert(!existsSync("not-made"));
  assert.deepEqual(calls(seen, sessionId).map((c) => c.status), ["completed", "failed"]);
  console.log("permission");

  const cancel = () => agent.notify(session.cancel, { sessionId });
  const cancelled = async (prompt, when) => {
    let over;
    const ended = new Promise((done) => { over = done; });
    seen.watch = (u) => { if (when(u)) { seen.watch = () => {}; cancel(); over(); } };
    const answer = say(agent, sessionId, prompt);
    if (when === now) { cancel(); cancel(); }
    else await ended;
    assert.equal((await answer).stopReason, "cancelled");
    const after = seen.updates.length;
    cancel();
    await agent.request(session.list, {});
    assert.equal(seen.updates.length, after, "nothing of the turn comes after its answer");
    assert(calls(seen, sessionId).every((c) => c.status === "completed" || c.status === "failed"), "no call is left open");
  };
  const now = () => false;
  await cancelled("wait 600", now);
  await cancelled("talk 100000", (u) => u.sessionUpdate === "agent_message_chunk");
  seen.answer = async () => { await cancel(); return ""; };
  assert.equal((await say(agent, sessionId, "run: touch not-made")).stopReason, "cancelled");
  await agent.request(session.setMode, { sessionId, modeId: "auto" });
  await cancelled("run: echo begun; sleep 600", (u) => u.sessionUpdate === "tool_call_update" && JSON.stringify(u.content ?? "").includes("begun"));
  console.log("cancel in each phase");

  const other = await agent.request(session.new, { cwd, mcpServers: [] });
  const both = await Promise.all([say(agent, sessionId, "talk 3"), say(agent, other.sessionId, "talk 4")]);
  assert.deepEqual(both.map((a) => a.stopReason), ["end_turn", "end_turn"]);
  const listed = await agent.request(session.list, { cwd });
  assert.deepEqual(listed.sessions.map((s) => s.sessionId).sort(), [sessionId, other.sessionId].sort());
  await agent.request(session.close, { sessionId: other.sessionId });
  await agent.request(session.delete, { sessionId: other.sessionId });
  assert.equal((await agent.request(session.list, {})).sessions.length, 1);
  await assert.rejects(agent.request(session.load, { sessionId: other.sessionId, cwd, mcpServers: [] }), (e) => e.code === -32002);
  console.log("two sessions, list, close and delete");
});
assert.equal(code, 0);

const signal = await start(async ({ agent, seen, server, exited }) => {
  await agent.request(session.load, { sessionId: kept, cwd, mcpServers: [] });
  const prompt = say(agent, kept, "run: echo begun; sleep 600");
  prompt.catch(() => {});
  await new Promise((done) => { seen.watch = (u) => { if (JSON.stringify(u.content ?? "").includes("begun\\n")) done(); }; });
  server.kill("SIGKILL");
  await exited;
}).catch((e) => (e.message.includes("closed") ? "closed" : Promise.reject(e)));
assert(signal);

await start(async ({ agent, seen }) => {
  await agent.request(session.load, { sessionId: kept, cwd, mcpServers: [] });
  const all = calls(seen, kept);
  const last = all.at(-1);
  assert.equal(last.status, "failed");
  assert.match(JSON.stringify(last.content), /begun/);
  assert.match(text(seen, "user_message_chunk"), /talk 5/);
  assert.equal((await say(agent, kept, "what happened?")).stopReason, "end_turn");
  console.log("load after kill -9");
});
