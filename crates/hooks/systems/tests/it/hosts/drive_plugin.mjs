// Loads a plugin as its agent does, sends it every event once, and prints what it did as JSON.
import { pathToFileURL } from "node:url";

const [host, file] = process.argv.slice(2);
const plugin = await import(pathToFileURL(file));
const seen = { notices: [], followUps: [] };

/** Runs a handler and records its result, or the error that it throws. */
async function record(name, handle) {
  try {
    seen[name] = (await handle()) ?? null;
  } catch (error) {
    seen[name] = { error: error.message };
  }
}

async function opencode() {
  const showToast = async ({ body }) => seen.notices.push(body.message);
  const hooks = await plugin.Tenterhook({ client: { tui: { showToast } }, directory: "/w/work" });
  const session = { sessionID: "s1", callID: "c1", tool: "bash" };
  const bus = (type, properties) => hooks.event({ event: { type, properties } });

  await record("start", () => bus("session.created", { sessionID: "s1", info: { id: "s1" } }));
  const system = ["base"];
  await record("system", () => hooks["experimental.chat.system.transform"](session, { system }));
  const parts = [{ type: "text", text: "do it" }];
  await record("prompt", () => hooks["chat.message"](session, { parts }));
  const args = { command: "echo hello", timeout: 5 };
  await record("call", () => hooks["tool.execute.before"](session, { args }));
  const output = { title: "t", output: "secret", metadata: { output: "secret" } };
  await record("result", () => hooks["tool.execute.after"]({ ...session, args }, output));
  await bus("session.created", { info: { id: "s2", parentID: "s1" } });
  await bus("session.idle", { sessionID: "s2" });
  await record("stop", () => bus("session.idle", { sessionID: "s1" }));
  return { system, prompt: parts[0].text, args, output };
}

async function pi() {
  const handlers = {};
  const send = (type, event) => handlers[type]({ type, ...event }, ctx);
  plugin.default({
    on: (event, handle) => (handlers[event] = handle),
    // As in pi, a message is announced as an input before it is queued.
    sendUserMessage: async (text) => {
      const announced = await send("input", { text, source: "extension" });
      seen.followUps.push({ text, announced: announced ?? null });
    },
  });
  const hasUI = process.env.HAS_UI === "1";
  const ctx = {
    hasUI,
    cwd: "/w/work",
    hasPendingMessages: () => seen.followUps.length > 0,
    sessionManager: { getSessionId: () => "s1" },
    ui: {
      notify: (text) => seen.notices.push(text),
      confirm: async (title, question) => {
        seen.question = question;
        return process.env.ANSWER === "yes";
      },
    },
  };
  const call = { toolName: "bash", toolCallId: "c1" };
  const input = { command: "echo hello", timeout: 5 };
  const content = [{ type: "text", text: "secret" }];
  const messages = [{ role: "assistant", content: [{ type: "text", text: "All done." }] }];

  await record("start", () => send("session_start", { reason: "startup" }));
  await record("prompt", () => send("input", { text: "do it", source: "interactive" }));
  await record("system", () => send("before_agent_start", { prompt: "do it" }));
  await record("call", () => send("tool_call", { ...call, input }));
  const result = { ...call, input, content, isError: false };
  await record("result", () => send("tool_result", result));
  await record("stop", () => send("agent_end", { messages }));
  await record("second stop", () => send("agent_end", { messages }));
  await record("end", () => send("session_shutdown", { reason: "quit" }));
  return { args: input };
}

const state = await { opencode, pi }[host]();
console.log(JSON.stringify({ seen, state }));
