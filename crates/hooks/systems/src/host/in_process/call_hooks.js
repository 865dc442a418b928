// Tenterhook wrote this file. `tenterhook install` replaces it, and `tenterhook uninstall` removes it.
import { spawn } from "node:child_process";

const SHIM = __SHIM__;
const HOST = __HOST__;
// The shim has a shorter deadline of its own. This one ends a shim that hangs.
const DEADLINE_MS = 60_000;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;

const isText = (value) => typeof value === "string";
const isTexts = (value) => Array.isArray(value) && value.every(isText);
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const isResult = (value) => isObject(value) && isText(value.text) && Array.isArray(value.content);
const ANSWER_KEYS = {
  deny: isText,
  ask: isText,
  input: isObject,
  prompt: isText,
  result: isResult,
  context: isTexts,
  follow_up: isTexts,
  notices: isTexts,
};

/** Returns the answer of the hooks, or throws an error if it is not a valid answer. */
function readAnswer(text) {
  if (text.trim() === "") return {};
  const answer = JSON.parse(text);
  if (!isObject(answer)) throw new Error("the answer is not an object");
  for (const [key, value] of Object.entries(answer)) {
    if (!Object.hasOwn(ANSWER_KEYS, key)) throw new Error(`the answer has an unknown key \`${key}\``);
    if (!ANSWER_KEYS[key](value)) throw new Error(`\`${key}\` of the answer is invalid`);
  }
  return answer;
}

/** Sends an event to Tenterhook. The answer is `{}` if the hooks have no opinion. */
function callHooks(event, fields) {
  return new Promise((resolve, reject) => {
    const payload = JSON.stringify({ hook_event_name: event, ...fields });
    const child = spawn(SHIM, [HOST, event], { stdio: ["pipe", "pipe", "ignore"] });
    const chunks = [];
    let size = 0;
    const end = (problem) => {
      clearTimeout(timer);
      if (problem === undefined) return;
      child.kill("SIGKILL");
      reject(new Error(`Tenterhook cannot ask the hooks, so nothing is let through: ${problem}`));
    };
    const timer = setTimeout(() => end("the shim did not answer in time"), DEADLINE_MS);
    child.on("error", (error) => end(`cannot start ${SHIM}: ${error.message}`));
    // A shim that ends early closes its input. Its exit status then says what is wrong.
    child.stdin.on("error", () => {});
    child.stdout.on("data", (chunk) => {
      size += chunk.length;
      if (size > MAX_ANSWER_BYTES) end("the answer is too large");
      else chunks.push(chunk);
    });
    child.on("close", (status, signal) => {
      if (status !== 0) return end(`the shim ended with ${signal ?? `status ${status}`}`);
      try {
        resolve(readAnswer(Buffer.concat(chunks).toString("utf8")));
        end();
      } catch (error) {
        end(error.message);
      }
    });
    child.stdin.end(payload);
  });
}

/** Changes an object in place, because the agent keeps its own reference to it. */
function replaceKeys(target, source) {
  for (const key of Object.keys(target)) {
    if (!Object.hasOwn(source, key)) delete target[key];
  }
  Object.assign(target, source);
}
