// Drives the binary through the unchanged Codex SDK, one scenario per process:
//   node sdk.mjs SCENARIO [ARGUMENT...]
// FERMATA_BIN is the binary, MODEL_URL the base address of the model service.
// What the scenario saw is printed as one JSON object.
import { existsSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { Codex } from "@openai/codex-sdk";

const codex = new Codex({
  codexPathOverride: process.env.FERMATA_BIN,
  baseUrl: process.env.MODEL_URL,
  apiKey: process.env.MODEL_KEY,
  config: { model_reasoning_summary: "auto", unknown: { "a b": ["x", 1, true], empty: {} } },
});
const everything = { sandboxMode: "danger-full-access", skipGitRepoCheck: true };

// caught is what a promise was rejected with.
async function caught(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    return { name: error.name, message: error.message };
  }
}

async function appears(file) {
  while (!existsSync(file)) await pause(10);
}

const scenarios = {
  async run() {
    const thread = codex.startThread(everything);
    const turn = await thread.run("hi");
    return { id: thread.id, ...turn };
  },

  async streamed() {
    const thread = codex.startThread(everything);
    const { events } = await thread.runStreamed("hi");
    const seen = [];
    for await (const event of events) seen.push(event);
    return { id: thread.id, events: seen };
  },

  async two() {
    const thread = codex.startThread(everything);
    const first = await thread.run("one");
    const id = thread.id;
    const second = await thread.run("two");
    return { ids: [id, thread.id], answers: [first.finalResponse, second.finalResponse], usages: [first.usage, second.usage] };
  },

  async resume(id) {
    const thread = codex.resumeThread(id, everything);
    const turn = await thread.run("again");
    return { id: thread.id, answer: turn.finalResponse, usage: turn.usage };
  },

  // Stops the turn when its command has written the file, and goes on at once.
  async abort(file) {
    const thread = codex.startThread(everything);
    const stop = new AbortController();
    const running = caught(thread.run("work", { signal: stop.signal }));
    await appears(file);
    stop.abort();
    const aborted = await running;
    const next = await thread.run("and now?");
    return { aborted, answer: next.finalResponse };
  },

  // Aborts one thread again and again, a little later each time.
  async hasty(rounds) {
    const thread = codex.startThread(everything);
    const names = [];
    for (let i = 0; i < rounds; i++) {
      const stop = new AbortController();
      const running = caught(thread.run("work", { signal: stop.signal }));
      await pause(i * 5);
      stop.abort();
      names.push((await running).name ?? "completed");
    }
    const last = await thread.run("at last");
    return { names, answer: last.finalResponse };
  },

  // Leaves the loop while a command runs, and goes on at once.
  async leave(file) {
    const thread = codex.startThread(everything);
    const { events } = await thread.runStreamed("work");
    const seen = [];
    for await (const event of events) {
      seen.push(event.type);
      if (event.type === "item.started") {
        await appears(file);
        break;
      }
    }
    const next = await thread.run("and now?");
    return { seen, answer: next.finalResponse };
  },

  async fail() {
    const thread = codex.startThread(everything);
    return caught(thread.run("hi"));
  },

  async unknown() {
    return caught(codex.resumeThread("no-such-thread", everything).run("hi"));
  },

  async everything(directory, ...images) {
    const thread = codex.startThread({
      model: "their-model", threadSource: "user", sandboxMode: "workspace-write", workingDirectory: directory,
      additionalDirectories: [directory], skipGitRepoCheck: true, modelReasoningEffort: "high",
      networkAccessEnabled: true, webSearchMode: "disabled", approvalPolicy: "never",
    });
    const input = [{ type: "text", text: "look" }, ...images.map((path) => ({ type: "local_image", path })), { type: "text", text: "closely" }];
    const outputSchema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"], additionalProperties: false };
    const first = await thread.run(input, { outputSchema });
    const second = await thread.run(input);
    return { id: thread.id, answers: [first.finalResponse, second.finalResponse] };
  },
};

const [name, ...rest] = process.argv.slice(2);
console.log(JSON.stringify(await scenarios[name](...rest)));
