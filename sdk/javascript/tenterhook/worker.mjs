// The worker that runs hooks written in JavaScript. It speaks the protocol of docs/worker-protocol.md over standard input and output.
//
// Handlers share one thread; one that computes for long keeps the others waiting. What they print goes to standard error.

import fs from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const VERSION = 1;

// `API` is the source of the module that hooks import; it stands before this one.
const API_URL = `data:text/javascript;base64,${Buffer.from(API).toString('base64')}`;
const RESOLVE = `
export function resolve(specifier, context, next) {
  return specifier === 'tenterhook' ? { url: ${JSON.stringify(API_URL)}, shortCircuit: true } : next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(RESOLVE)}`);
const { Effect, take } = await import(API_URL);

// What handlers print is no message.
for (const name of ['log', 'info', 'debug']) console[name] = console.error;
process.stdout.write = process.stderr.write.bind(process.stderr);

const scripts = new Map();
const running = new Map();
let loads = 0;

let outgoing = [];
// While lines are read, what answers them waits for the last one.
let isReading = false;
function send(text) {
  outgoing.push(text);
  if (outgoing.length === 1 && !isReading) setImmediate(flush);
}

function flush() {
  if (outgoing.length === 0) return;
  let data = Buffer.from(outgoing.join(''));
  outgoing = [];
  while (data.length > 0) {
    try {
      data = data.subarray(fs.writeSync(1, data));
    } catch (error) {
      if (error.code === 'EAGAIN') continue;
      leave();
    }
  }
}

function leave() {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } finally {
    process.exit(0);
  }
}

/** Says what went wrong, and on which line of the script where that is known. */
function where(error, script) {
  const name = path.basename(script.path);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const stack = error instanceof Error ? String(error.stack) : '';
  const at = stack.indexOf(script.url);
  const line = at < 0 ? undefined : /^[^:)\s]*:(\d+)/.exec(stack.slice(at + script.url.length))?.[1];
  return line ? `${name}:${line}: ${said}` : `${name}: ${said}`;
}

class Refused extends Error {}

async function load({ script: number, path: file, api }) {
  if (api !== 'tenterhook') throw new Refused(`this worker has no API \`${api}\`, expected \`tenterhook\``);
  loads += 1;
  // Another address is another module: a file that changed is read again.
  const script = { path: file, url: `${pathToFileURL(file).href}?load=${loads}`, hooks: [] };
  take();
  try {
    fs.accessSync(file, fs.constants.R_OK);
    await import(script.url);
  } catch (error) {
    throw new Refused(where(error, script));
  } finally {
    script.hooks = take();
  }
  scripts.set(number, script);
  return {
    hooks: script.hooks.map(({ name, event, matcher, priority }) => ({ name, event, matcher, priority })),
  };
}

function judged(effect) {
  if (effect === undefined || effect === null) return null;
  if (effect instanceof Effect) return { effect };
  if (typeof effect === 'object' && !Array.isArray(effect)) return effect;
  throw new TypeError(
    `the handler returned a ${typeof effect}, expected nothing or what \`deny()\`, \`patch()\` and the like return`,
  );
}

function answered(id, result) {
  send(`{"jsonrpc":"2.0","id":${id},"result":${JSON.stringify(result)}}\n`);
}

function failed(id, message) {
  send(`{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify({ code: -32000, message })}}\n`);
}

function handle(id, { script: number, hook, event }) {
  const script = scripts.get(number);
  const found = script?.hooks[hook];
  if (!found) return failed(id, 'there is no such hook');
  const call = { controller: undefined };
  const context = {
    // Made when it is asked for: most handlers need none.
    get signal() {
      call.controller ??= new AbortController();
      return call.controller.signal;
    },
  };
  try {
    const effect = found.handler(event, context);
    if (typeof effect?.then !== 'function') return answered(id, judged(effect));
    running.set(id, call);
    // A call that was given up has its answer already.
    effect
      .then(judged)
      .then(
        (answer) => running.delete(id) && answered(id, answer),
        (error) => running.delete(id) && failed(id, where(error, script)),
      );
  } catch (error) {
    failed(id, where(error, script));
  }
}

async function other(id, method, params) {
  try {
    if (method === 'initialize') {
      answered(id, { protocol_version: VERSION, worker: { name: 'node', version: process.versions.node } });
    } else if (method === 'script/load') {
      answered(id, await load(params));
    } else if (method === 'script/unload') {
      scripts.delete(params.script);
      answered(id, {});
    } else if (method === 'shutdown') {
      answered(id, {});
      flush();
      leave();
    } else {
      throw new Refused(`this worker has no method \`${method}\``);
    }
  } catch (error) {
    failed(id, error instanceof Refused ? error.message : String(error));
  }
}

/** Gives a call up; the host hears that its handler holds nobody up, whatever still comes of it. */
function cancel(id) {
  const call = running.get(id);
  if (!call) return;
  running.delete(id);
  call.controller?.abort();
  failed(id, 'cancelled');
}

function takeLine(line) {
  const { id, method, params } = JSON.parse(line);
  if (method === 'event/handle') handle(id, params);
  else if (method === '$/cancel') cancel(params.id);
  else if (id !== undefined) other(id, method, params ?? {});
}

// A rejection that nobody caught is a handler's, not the worker's end.
process.on('unhandledRejection', (error) => console.error(error));

let parts = [];
process.stdin.on('data', (chunk) => {
  isReading = true;
  let start = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
    const piece = chunk.subarray(start, end);
    const line = parts.length > 0 ? Buffer.concat([...parts, piece]) : piece;
    parts = [];
    start = end + 1;
    if (line.length > 0) takeLine(line.toString());
  }
  if (start < chunk.length) parts.push(chunk.subarray(start));
  isReading = false;
  flush();
});
process.stdin.on('end', leave);
