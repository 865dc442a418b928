// The worker that runs hooks written in JavaScript and TypeScript. It speaks the protocol of docs/worker-protocol.md over standard input and
// output, which whoever starts it has put aside: what handlers and their children read and print is nothing of the host's.
//
// Handlers share one thread; one that computes for long keeps the others waiting. What they print goes to standard error.

import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import module from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';

const VERSION = 1;
/** Where the host writes, and where it reads. */
const [FROM_HOST, TO_HOST] = [4, 3];
/** How often the memory is looked at, in milliseconds. */
const MEMORY_LOOKS = 250;
/** How long an answer of the host is waited for that a handler needs at once, in milliseconds. */
const HOST_ANSWERS = 10_000;
/** The longest text that every system's pipes take as a whole or not at all, whatever its letters are: 512 bytes, in UTF-16 units. */
const WHOLE = Math.floor(512 / 3);

// `SOURCES` are the modules beside this one; it stands before this text.
const address = (name) => `data:text/javascript;base64,${Buffer.from(SOURCES[name]).toString('base64')}`;
const typebox = address('typebox.mjs');
const own = { tenterhook: address('index.mjs'), 'tenterhook/answer': address('answer.mjs'), '@mariozechner/pi-coding-agent': address('pi.mjs') };
const instead = { '@sinclair/typebox': typebox, '@mariozechner/pi-ai': typebox };
const { port1: loader, port2: port } = new MessageChannel();
module.register(address('loader.mjs'), { data: { own, instead, port }, transferList: [port] });
const api = await import(own.tenterhook);
const { Effect, deliverTo } = api;
const { complete, isPlain, named } = await import(own['tenterhook/answer']);
// Modules of the older kind ask for the API by name, too.
const required = { tenterhook: api, '@mariozechner/pi-coding-agent': await import(own['@mariozechner/pi-coding-agent']) };
const loadModule = module._load;
module._load = (name, ...rest) => (Object.hasOwn(required, name) ? required[name] : loadModule(name, ...rest));

// Errors name the lines that people wrote.
process.setSourceMapsEnabled(true);

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
  const text = outgoing.length === 1 ? outgoing[0] : outgoing.join('');
  outgoing = [];
  if (text.length > WHOLE || !wrote(text)) writeAll(Buffer.from(text));
}

/** Writes, and returns how many bytes that were: none where the host reads too slowly. */
function wrote(data) {
  try {
    return fs.writeSync(TO_HOST, data);
  } catch (error) {
    if (error.code === 'EAGAIN') return 0;
    return leave();
  }
}

const pause = new Int32Array(new SharedArrayBuffer(4));

function writeAll(data) {
  while (data.length > 0) {
    const written = wrote(data);
    if (written === 0) Atomics.wait(pause, 0, 0, 1);
    data = data.subarray(written);
  }
}

function leave() {
  try {
    process.kill(-process.pid, 'SIGKILL');
  } finally {
    process.exit(0);
  }
}

// What the host is asked.

const asked = new Map();
let questions = 0;

/** Writes JSON that every reader takes: half of a character, which a cut text may end with, is none. */
function json(value) {
  const text = JSON.stringify(value);
  if (!text?.includes('\\ud')) return text;
  return text.replace(/(\\\\)|\\ud[89a-f][0-9a-f]{2}/g, (_, backslashes) => backslashes ?? '\\ufffd');
}

function question(method, params) {
  questions += 1;
  send(`${json({ jsonrpc: '2.0', id: questions, method, params })}\n`);
  return questions;
}

const host = {
  hasUI: false,
  ask(method, params) {
    const id = question(method, params);
    return new Promise((resolve, reject) => asked.set(id, { resolve, reject }));
  },
  /** Says something that is not answered. */
  tell(method, params) {
    send(`${json({ jsonrpc: '2.0', method, params })}\n`);
  },
  /** Asks and waits: whoever called needs the answer before it goes on. */
  askNow(method, params) {
    const id = question(method, params);
    flush();
    const { error, result } = answerTo(id, Date.now() + HOST_ANSWERS, method);
    // What came in the meantime is taken when the handler is done.
    if (!isReading) setImmediate(takeLines);
    if (error) throw new Error(error.message);
    return result;
  },
};

function answeredByHost({ id, result, error }) {
  const waiting = asked.get(id);
  asked.delete(id);
  if (error) waiting?.reject(new Error(error.message));
  else waiting?.resolve(result);
}

async function strip(file, text) {
  try {
    return (await host.ask('source/strip', { path: file, text })).code;
  } catch (error) {
    if (error.message !== NO_METHOD) throw error;
    if (module.stripTypeScriptTypes) return module.stripTypeScriptTypes(text);
    throw new Error(`TypeScript needs Node.js 22.13 or newer where the host does not strip types; this is ${process.version}`);
  }
}
const NO_METHOD = 'the host has no such method';

loader.on('message', async ({ id, path: file, text }) => {
  try {
    loader.postMessage({ id, code: await strip(file, text) });
  } catch (error) {
    loader.postMessage({ id, problem: error.message });
  }
});
loader.unref();

// What the host asks.

/** Says what went wrong, and on which line of the script where that is known. */
function where(error, script) {
  const name = path.basename(script.path);
  const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  const stack = error instanceof Error ? String(error.stack) : '';
  for (const place of [script.url, script.path]) {
    const at = stack.indexOf(place);
    const line = at < 0 ? undefined : /^[^:)\s]*:(\d+)/.exec(stack.slice(at + place.length))?.[1];
    if (line) return `${name}:${line}: ${said}`;
  }
  return `${name}: ${said}`;
}

class Refused extends Error {}

let extensions;

const LATE = 'hooks must be registered while the script loads: await what comes before, at the top level or in the default export';

/** The script on whose behalf code runs, in timers and promises too. */
const current = new AsyncLocalStorage();
/** The scripts that are being loaded. */
const loading = new Set();

deliverTo((hooks) => {
  // Code that a library calls back may have lost its script.
  const [only] = loading.size === 1 ? loading : [];
  const script = current.getStore() ?? only;
  if (script && !script.isLoaded) return script.hooks.push(...hooks);
  // Where nobody knows whose hook it was, any script may lack it.
  for (const late of script ? [script] : scripts.values()) isLate(late);
  throw new Error(LATE);
});

/** Has a script fail from now on that registered a hook too late: it was meant to have a hook that it does not have. */
function isLate(script) {
  script.problem ??= `${path.basename(script.path)} registered a hook too late: ${LATE}`;
}

/** How scripts of each API are loaded; each returns what it registered. */
const APIS = {
  async tenterhook(script) {
    await import(script.url);
    script.isLoaded = true;
    return { hooks: script.hooks.map(({ name, event, matcher, priority }) => ({ name, event, matcher, priority })) };
  },
  async pi(script, flags) {
    extensions ??= await import(address('extension.mjs'));
    const { default: factory } = await import(script.url);
    if (typeof factory !== 'function') {
      throw new Refused(`${path.basename(script.path)} exports no function by default, expected \`export default function (pi) { … }\``);
    }
    script.extension = await extensions.loadExtension(factory, host, flags, () => isLate(script));
    script.isLoaded = true;
    script.hooks = script.extension.hooks;
    return extensions.describe(script.extension);
  },
};

/** How long a script that is loaded may go on reading files before it counts as loaded, in milliseconds. */
const MOST_READING = 1000;
const isReadingFiles = () => process.getActiveResourcesInfo().some((name) => /^(?:FSReq|CloseReq$)/.test(name));

/** Waits for what a script has begun and not awaited, so that what it registers or throws is noticed. */
async function settled() {
  const until = Date.now() + MOST_READING;
  do {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setImmediate(resolve));
  } while (isReadingFiles() && Date.now() < until);
}

async function load({ script: number, path: file, api, flags }) {
  const read = Object.hasOwn(APIS, api) && APIS[api];
  if (!read) throw new Refused(`this worker has no API \`${api}\`, expected \`tenterhook\` or \`pi\``);
  loads += 1;
  // Another address is another module: a file that changed is read again.
  const real = fs.realpathSync(file);
  delete module._cache[real];
  const url = `${pathToFileURL(real).href}?load=${loads}&api=${api}`;
  const script = { path: real, url, hooks: [], isLoaded: false, problem: undefined, uncaught: [] };
  loading.add(script);
  try {
    fs.accessSync(real, fs.constants.R_OK);
    const registered = await current.run(script, () => read(script, flags ?? {}));
    await settled();
    if (script.problem) throw new Refused(script.problem);
    if (script.uncaught.length > 0) throw script.uncaught[0];
    scripts.set(number, script);
    return registered;
  } catch (error) {
    throw error instanceof Refused ? error : new Refused(where(error, script));
  } finally {
    script.isLoaded = true;
    loading.delete(script);
  }
}

function judged(effect) {
  if (effect === undefined || effect === null) return null;
  if (effect instanceof Effect) return { effect: complete(effect) };
  if (isPlain(effect)) return complete(effect);
  throw new TypeError(
    `the handler returned ${named(effect)}, expected nothing or what \`deny()\`, \`patch()\` and the like return`,
  );
}

function answered(id, result) {
  send(`{"jsonrpc":"2.0","id":${id},"result":${json(result)}}\n`);
}

function failed(id, message) {
  send(`{"jsonrpc":"2.0","id":${id},"error":${json({ code: -32000, message })}}\n`);
}

/** A call under way. */
class Call {
  #controller;

  constructor(id) {
    this.id = id;
  }
  /** Made when it is asked for: most handlers need none. */
  get signal() {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }
  abort() {
    this.#controller?.abort();
  }
}

/** Answers a call with what a function returns, now or later. */
function answer(id, script, work) {
  const call = new Call(id);
  try {
    const result = work(call);
    if (typeof result?.then !== 'function') return answered(id, result);
    running.set(id, call);
    // A call that was given up has its answer already.
    const done = (tell) => (value) => {
      if (!running.delete(id)) return;
      try {
        tell(value);
      } catch (error) {
        failed(id, where(error, script));
      }
    };
    result.then(
      done((value) => answered(id, value)),
      done((error) => failed(id, where(error, script))),
    );
  } catch (error) {
    failed(id, where(error, script));
  }
}

/** The last handler of each event that is told to several at once: in pi they run one after the other. */
const lasts = new Map();
/** The calls of each such event that are not done. */
const turns = new Map();

/** Calls a handler of an extension, behind those of the same event that were called before it. */
function inTurn(extension, hook, event, call) {
  const start = () => {
    if (call.isCancelled) throw new Error('cancelled');
    return extensions.callHandler(extension, hook, event, call);
  };
  const key = event.turn;
  delete event.turn;
  if (key === undefined) return start();
  const before = lasts.get(key);
  const settled = new Promise((resolve) => {
    call.settled = resolve;
  });
  lasts.set(key, settled);
  if (!turns.has(key)) turns.set(key, new Set());
  const turn = turns.get(key);
  turn.add(call.id);
  call.turn = turn;
  const run = async () => {
    try {
      await before;
      return await start();
    } finally {
      call.settled();
      turn.delete(call.id);
      if (lasts.get(key) === settled) {
        lasts.delete(key);
        turns.delete(key);
      }
    }
  };
  return run();
}

function handle(id, { script: number, hook, event }) {
  const script = scripts.get(number);
  const found = script?.hooks[hook];
  if (!found) return failed(id, 'there is no such hook');
  if (script.problem) return failed(id, script.problem);
  if (script.extension) return answer(id, script, (call) => inTurn(script.extension, found, event, call));
  answer(id, script, (call) => {
    const effect = current.run(script, found.handler, event, call);
    return typeof effect?.then === 'function' ? effect.then(judged) : judged(effect);
  });
}

/** Runs what an extension brings besides hooks. */
function run(id, what, params) {
  const script = scripts.get(params.script);
  if (!script?.extension) return failed(id, `script ${params.script} brings no ${what}s`);
  const work = what === 'tool' ? extensions.runTool : extensions.runCommand;
  answer(id, script, (call) => work(script.extension, params, call));
}

async function other(id, method, params) {
  try {
    if (method === 'initialize') {
      host.hasUI = params.host?.ui === true;
      if (params.limits?.memory_bytes) watchMemory(params.limits.memory_bytes);
      answered(id, { protocol_version: VERSION, worker: { name: 'node', version: process.versions.node } });
    } else if (method === 'script/load') {
      answered(id, await load(params));
    } else if (method === 'script/unload') {
      scripts.delete(params.script);
      answered(id, {});
    } else if (method === 'tool/run' || method === 'command/run') {
      run(id, method.slice(0, method.indexOf('/')), params);
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

/** Tells a handler that nobody waits for it. One that goes on all the same ends with this worker. */
function cancel(id) {
  const call = running.get(id);
  if (!call) return;
  call.isCancelled = true;
  call.abort();
  call.settled?.();
}

function takeLine(line) {
  const message = JSON.parse(line);
  const { id, method, params } = message;
  if (method === 'event/handle') handle(id, params);
  else if (method === '$/cancel') cancel(params.id);
  else if (method === undefined) answeredByHost(message);
  else if (id !== undefined) other(id, method, params ?? {});
}

// What nobody caught is a handler's failure, not the worker's end. While a script is loaded it is the script's.
function uncaught(error) {
  console.error(error);
  for (const script of loading) script.uncaught.push(error);
}
process.on('unhandledRejection', uncaught);
process.on('uncaughtException', uncaught);

/** Ends the worker when it has taken more memory than it may: the limit of the engine counts no buffers. */
function watchMemory(limit) {
  const look = () => {
    if (process.memoryUsage.rss() <= limit) return;
    fs.writeSync(2, `it took more than ${Math.floor(limit / 2 ** 20)} MiB of memory\n`);
    leave();
  };
  setInterval(look, MEMORY_LOOKS).unref();
}

// What was read and is not taken yet: a chunk from a place on, pieces of a line whose end is still to come, and lines that came while
// the host was asked something.
let chunk = Buffer.alloc(0);
let at = 0;
let pieces = [];
const later = [];

/** Returns the next line that is there as a whole. */
function nextLine() {
  while (at < chunk.length) {
    const end = chunk.indexOf(10, at);
    if (end < 0) {
      // The next read writes over it.
      pieces.push(Buffer.from(chunk.subarray(at)));
      at = chunk.length;
      return undefined;
    }
    const begin = at;
    at = end + 1;
    if (pieces.length > 0) {
      const line = Buffer.concat([...pieces, chunk.subarray(begin, end)]);
      pieces = [];
      return line.toString();
    }
    if (end > begin) return chunk.utf8Slice(begin, end);
  }
  return undefined;
}

/** Waits for one answer of the host; what comes before it waits. */
function answerTo(id, until, method) {
  for (;;) {
    for (let line = nextLine(); line !== undefined; line = nextLine()) {
      const message = JSON.parse(line);
      if (message.method === undefined && message.id === id) return message;
      later.push(line);
    }
    readMore(until, method);
  }
}

/** Reads what comes next, while the event loop stands still. */
function readMore(until, method) {
  const buffer = Buffer.allocUnsafe(64 << 10);
  for (;;) {
    try {
      const read = fs.readSync(FROM_HOST, buffer);
      if (read === 0) leave();
      chunk = buffer.subarray(0, read);
      at = 0;
      return;
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      if (Date.now() > until) throw new Error(`the host did not answer \`${method}\` in ${HOST_ANSWERS / 1000} seconds`);
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

/** Takes every line that is there, and sends what answers them. */
function takeLines() {
  isReading = true;
  for (;;) {
    const line = later.shift() ?? nextLine();
    if (line === undefined) break;
    takeLine(line);
  }
  isReading = false;
  flush();
}

// `process.stdin` would do as well, but it takes as long for a chunk as everything else together.
const room = Buffer.allocUnsafe(64 << 10);
const incoming = new net.Socket({
  fd: FROM_HOST,
  readable: true,
  writable: false,
  onread: {
    buffer: room,
    callback(read) {
      const data = room.subarray(0, read);
      chunk = at < chunk.length ? Buffer.concat([chunk.subarray(at), data]) : data;
      at = 0;
      takeLines();
      return true;
    },
  },
});
incoming.on('end', leave);
incoming.on('close', leave);
incoming.on('error', leave);
