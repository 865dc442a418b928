// The worker that runs hooks written in JavaScript and TypeScript. It uses the protocol of
// docs/reference/worker-protocol.md over two separate pipes, so that nothing that handlers and
// their children read or print mixes with it.
//
// Handlers share one thread. If one computes for a long time, the others wait. Everything that they
// print goes to standard error.

import { AsyncLocalStorage } from 'node:async_hooks';
import fs from 'node:fs';
import module from 'node:module';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { MessageChannel } from 'node:worker_threads';

const VERSION = 1;
/** The pipe to which the host writes, and the pipe from which it reads. */
const [FROM_HOST, TO_HOST] = [4, 3];
/** How long a handler waits for an answer of the host that it needs synchronously, in milliseconds. */
const HOST_ANSWERS = 10_000;
/** The maximum length of text that every system writes to a pipe atomically: 512 bytes, in UTF-16 units. */
const WHOLE = Math.floor(512 / 3);

// The host defines `SOURCES`, the other modules of this package, before this code.
const address = (name) => `data:text/javascript;base64,${Buffer.from(SOURCES[name]).toString('base64')}`;
const own = {
  tenterhook: address('index.mjs'), 'tenterhook/answer': address('answer.mjs'), 'tenterhook/ui': address('ui.mjs'),
  'tenterhook/render': address('render.mjs'),
  'tenterhook/models': address('models.mjs'),
};
const { port1: loader, port2: port } = new MessageChannel();
module.register(address('loader.mjs'), { data: { own, port }, transferList: [port] });
const api = await import(own.tenterhook);
const { Effect, deliverTo } = api;
const { complete, isPlain, named } = await import(own['tenterhook/answer']);
/** The modules that CommonJS modules can import by these names too. */
const required = { tenterhook: api };
const loadModule = module._load;
module._load = (name, ...rest) => (Object.hasOwn(required, name) ? required[name] : loadModule(name, ...rest));

// With source maps, errors refer to the lines of the original source.
process.setSourceMapsEnabled(true);

const scripts = new Map();
const running = new Map();
let loads = 0;

let outgoing = [];
// While lines are being read, answers are collected and sent after the last line.
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

/** Writes data and returns the number of bytes written: 0 if the host reads too slowly. */
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

// Requests to the host.

const asked = new Map();
let questions = 0;

/** Writes JSON that every reader accepts. Replaces unpaired surrogates, which occur at the end of truncated texts. */
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
  /** Sends a notification, which has no answer. */
  tell(method, params) {
    send(`${json({ jsonrpc: '2.0', method, params })}\n`);
  },
  /** Sends a request and waits for the answer synchronously. */
  askNow(method, params) {
    const id = question(method, params);
    flush();
    const { error, result } = answerTo(id, Date.now() + HOST_ANSWERS, method);
    // Messages that arrived in the meantime are handled when the handler is done.
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

/** Sends a request of the loader to the host. */
async function forward(method, params) {
  try {
    return await host.ask(method, params);
  } catch (error) {
    if (error.message !== NO_METHOD || method !== 'source/strip') throw error;
    if (module.stripTypeScriptTypes) return { code: module.stripTypeScriptTypes(params.text) };
    throw new Error(`TypeScript needs Node.js 22.13 or newer, because the host does not strip types; this is ${process.version}`);
  }
}
const NO_METHOD = 'the host has no such method';

/** The functions to call once the loader knows about an approved copy. */
const informed = new Map();

loader.on('message', async ({ id, method, params, isKnown }) => {
  if (isKnown) return informed.get(id)();
  try {
    loader.postMessage({ id, result: await forward(method, params) });
  } catch (error) {
    loader.postMessage({ id, problem: error.message });
  }
});
loader.unref();

/** The copies of approved files from which scripts run, by their folder. */
const copies = new Map();

/** Tells the loader that scripts run from a copy, so that they load nothing else of their project. */
async function runsFromCopy(approved) {
  if (!approved || copies.has(approved.copies)) return;
  const real = { copies: fs.realpathSync(approved.copies), project: fs.realpathSync(approved.project) };
  copies.set(approved.copies, real);
  const id = -copies.size;
  await new Promise((resolve) => {
    informed.set(id, resolve);
    loader.postMessage({ id, approved: real });
  });
}

const isBelow = (file, folder) => file === folder || file.startsWith(`${folder}/`);
const resolveFilename = module._resolveFilename;
module._resolveFilename = (request, parent, ...rest) => {
  const found = resolveFilename(request, parent, ...rest);
  // Modules of Node.js have no path.
  for (const copy of parent?.filename && path.isAbsolute(found) ? copies.values() : []) {
    if (!isBelow(parent.filename, copy.copies) || isBelow(found, copy.copies)) continue;
    const isOfProject = isBelow(found, copy.project);
    // As in `loader.mjs`: only an absolute path may lead out of the copy.
    if (!isOfProject && path.isAbsolute(request)) continue;
    const name = isOfProject ? `\`${path.relative(copy.project, found)}\` of the project` : `\`${found}\``;
    throw new Error(`\`${request}\` is ${name}, which the approval does not cover`);
  }
  return found;
};

// Requests from the host.

/** Returns what went wrong, with the line of the script if it is known. */
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

const LATE = 'hooks must be registered while the script loads; await asynchronous work at the top level or in the default export';

/**
 * The script that the current code belongs to, also in timers and promises. From its first use on, every promise costs
 * more, so it is not used for extensions of pi: they register with an object of their own.
 */
const current = new AsyncLocalStorage();
/** The scripts that are being loaded. */
const loading = new Set();

deliverTo((hooks) => {
  // A callback that a library calls may have lost the script that it belongs to.
  const [only] = loading.size === 1 ? loading : [];
  const script = current.getStore() ?? only;
  if (script && !script.isLoaded) return script.hooks.push(...hooks);
  // If the script is unknown, the hook may be missing from any of them.
  for (const late of script ? [script] : scripts.values()) isLate(late);
  throw new Error(LATE);
});

/** Makes all hooks of a script fail from now on, because one of them was registered too late and is missing. */
function isLate(script) {
  script.problem ??= `${path.basename(script.path)} registered a hook too late: ${LATE}`;
}

/** The packages of pi that CommonJS modules may require. They exist only as ES modules. */
const OF_PI = ['pi-coding-agent', 'pi-tui', 'pi-ai', 'pi-agent-core'];

/** Makes pi's packages available to `require`, which cannot wait for them. */
async function provideToRequire() {
  for (const name of OF_PI) {
    const loaded = await import(`tenterhook:pi/package/${name}`);
    for (const scope of ['@mariozechner', '@earendil-works']) required[`${scope}/${name}`] ??= loaded;
  }
}

/** The functions that load scripts of each API and return what was registered. */
const APIS = {
  async tenterhook(script) {
    await current.run(script, () => import(script.url));
    script.isLoaded = true;
    return { hooks: script.hooks.map(({ name, event, matcher, priority }) => ({ name, event, matcher, priority })) };
  },
  async pi(script, flags) {
    extensions ??= await import(address('extension.mjs'));
    if (/\brequire\s*\(/.test(fs.readFileSync(script.path, 'utf8'))) await provideToRequire();
    const { default: factory } = await import(script.url);
    if (typeof factory !== 'function') {
      throw new Refused(`${path.basename(script.path)} exports no function by default, expected \`export default function (pi) { … }\``);
    }
    // Requests about the script need its number.
    const ownHost = Object.assign(Object.create(host), { script: script.number });
    script.extension = await extensions.loadExtension(factory, ownHost, flags, () => isLate(script));
    script.isLoaded = true;
    script.hooks = script.extension.hooks;
    return extensions.describe(script.extension);
  },
};

/** The maximum time for which a loaded script may continue to read files before it counts as loaded, in milliseconds. */
const MAX_READING = 1000;
const isReadingFiles = () => process.getActiveResourcesInfo().some((name) => /^(?:FSReq|CloseReq$)/.test(name));

/**
 * The fewest resources that were active before a script was loaded. What an earlier script has left running ends at
 * any time, so the number right before a load would hide what the script itself has started.
 */
let fewest = Infinity;

/**
 * Waits for work that a script has started without awaiting it, to notice what it registers or throws. Most scripts
 * start no such work.
 */
async function settled() {
  await new Promise((resolve) => setImmediate(resolve));
  if (process.getActiveResourcesInfo().length <= fewest && !isReadingFiles()) return;
  const until = Date.now() + MAX_READING;
  do {
    await new Promise((resolve) => setTimeout(resolve, 1));
    await new Promise((resolve) => setImmediate(resolve));
  } while (isReadingFiles() && Date.now() < until);
}

async function load({ script: number, path: file, api, flags, approved, source }) {
  const read = Object.hasOwn(APIS, api) && APIS[api];
  if (!read) throw new Refused(`this worker has no API \`${api}\`, expected \`tenterhook\` or \`pi\``);
  loads += 1;
  // Every URL is loaded as a new module, so that a changed file is read again.
  const real = fs.realpathSync(file);
  if (source) loader.postMessage({ source: { ...source, path: real } });
  delete module._cache[real];
  const url = `${pathToFileURL(real).href}?load=${loads}&api=${api}`;
  const script = { number, path: real, url, hooks: [], isLoaded: false, problem: undefined, uncaught: [] };
  loading.add(script);
  fewest = Math.min(fewest, process.getActiveResourcesInfo().length);
  try {
    fs.accessSync(real, fs.constants.R_OK);
    await runsFromCopy(approved);
    const registered = await read(script, flags ?? {});
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

/** The end of the last load that was requested. */
let lastLoad = Promise.resolve();
/** The loads that have not begun, by the ids of their calls. */
const queued = new Set();

/** Loads a script after the scripts that were requested before it. */
function loadInTurn(id, params) {
  queued.add(id);
  const loaded = lastLoad.then(() => {
    if (!queued.delete(id)) throw new Refused('cancelled');
    return load(params);
  });
  lastLoad = loaded.catch(() => {});
  return loaded;
}

function judged(effect) {
  if (effect === undefined || effect === null) return null;
  if (effect instanceof Effect) return { effect: complete(effect) };
  if (isPlain(effect)) return complete(effect);
  throw new TypeError(
    `the handler returned ${named(effect)}, expected nothing or what a function such as \`deny()\` or \`patch()\` returns`,
  );
}

function answered(id, result) {
  send(`{"jsonrpc":"2.0","id":${id},"result":${json(result)}}\n`);
}

function failed(id, message) {
  send(`{"jsonrpc":"2.0","id":${id},"error":${json({ code: -32000, message })}}\n`);
}

/** A call of the host. */
class Call {
  #controller;
  /** Whether it has been answered. */
  isOver = false;

  constructor(id) {
    this.id = id;
  }
  /** Created on first use, because most handlers do not need it. */
  get signal() {
    this.#controller ??= new AbortController();
    return this.#controller.signal;
  }
  abort() {
    this.#controller?.abort();
  }
}

/** Answers a call with the result of a function, or with the value of its promise. */
function answer(id, script, work) {
  const call = new Call(id);
  try {
    const result = work(call);
    if (typeof result?.then !== 'function') {
      call.isOver = true;
      return answered(id, result);
    }
    running.set(id, call);
    // A cancelled call has already been answered.
    const done = (tell) => (value) => {
      call.isOver = true;
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

/** The last handler of each event that is sent to several handlers at once. In pi they run one after another. */
const lasts = new Map();
/** The unfinished calls of each such event. */
const turns = new Map();

/** Calls a function with a script's extension as a session has it. `call` belongs to that session from now on. */
function inSession(script, session, call, work) {
  const begin = (extension) => {
    call.host = extension.host;
    return work(extension);
  };
  const own = extensions.inSession(script.extension, session);
  return typeof own.then === 'function' ? own.then(begin) : begin(own);
}

/** Calls a handler of an extension after the handlers of the same event that were called before it. */
function inTurn(extension, hook, event, call) {
  const start = () => {
    if (call.isCancelled) throw new Error('cancelled');
    return extensions.callHandler(extension, extension.hooks[hook], event, call);
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

function handle(id, { script: number, hook, event, session, replay }) {
  const script = scripts.get(number);
  const found = script?.hooks[hook];
  if (!found) return failed(id, 'unknown hook');
  if (script.problem) return failed(id, script.problem);
  if (script.extension) {
    const handling = (call) => (extension) => {
      call.isReplay = replay === true;
      return inTurn(extension, hook, event, call);
    };
    return answer(id, script, (call) => inSession(script, session, call, handling(call)));
  }
  answer(id, script, (call) => {
    const effect = current.run(script, found.handler, event, call);
    return typeof effect?.then === 'function' ? effect.then(judged) : judged(effect);
  });
}

/** The functions that do what the host asks of an extension, apart from handling events, by the host's methods. */
const WORK = {
  'tool/run': 'runTool',
  'command/run': 'runCommand',
  'script/render': 'render',
  'provider/credentials': 'credentials',
  'provider/stream': 'streamModel',
};

/** Runs a tool, command or provider of an extension, or renders something. */
function run(id, method, params) {
  const script = scripts.get(params.script);
  if (!script?.extension) return failed(id, `script ${params.script} is not an extension, so it has no \`${method}\``);
  answer(id, script, (call) => {
    const work = (extension) => extensions[WORK[method]](extension, params, call);
    return inSession(script, params.session, call, work);
  });
}

/** Makes the state that a script has for a session. A cancelled call is answered at once, so that the worker stays. */
function begin(id, { script: number, session }) {
  const script = scripts.get(number);
  if (!script) return failed(id, `unknown script ${number}`);
  if (!script.extension) return answered(id, {});
  answer(id, script, async (call) => {
    const cancelled = new Promise((_, reject) => {
      call.signal.addEventListener('abort', () => reject(new Error('cancelled')));
    });
    await Promise.race([extensions.inSession(script.extension, session), cancelled]);
    return {};
  });
}

async function other(id, method, params) {
  try {
    if (method === 'initialize') {
      host.hasUI = params.host?.ui === true;
      if (params.limits?.memory_bytes) loader.postMessage({ memory: params.limits.memory_bytes });
      const worker = { name: 'node', version: process.versions.node };
      answered(id, { protocol_version: VERSION, worker, sessions: true });
    } else if (method === 'script/load') {
      answered(id, await loadInTurn(id, params));
    } else if (method === 'script/begin') {
      begin(id, params);
    } else if (method === 'script/unload') {
      scripts.delete(params.script);
      answered(id, {});
    } else if (Object.hasOwn(WORK, method)) {
      run(id, method, params);
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

/** Notifies a handler that no one waits for its answer. If it keeps running, it ends with this worker. */
function cancel(id) {
  queued.delete(id);
  const call = running.get(id);
  if (!call) return;
  call.isCancelled = true;
  call.abort();
  call.settled?.();
}

/** Forgets the state that extensions have for a session. */
function endSession(session) {
  for (const { extension } of scripts.values()) if (extension) extensions.endSession(extension, session);
}

function takeLine(line) {
  const message = JSON.parse(line);
  const { id, method, params } = message;
  if (method === 'event/handle') handle(id, params);
  else if (method === '$/cancel') cancel(params.id);
  else if (method === '$/session_end') endSession(params.session);
  else if (method === undefined) answeredByHost(message);
  else if (id !== undefined) other(id, method, params ?? {});
}

// An uncaught error must not end the worker. While scripts are loading, it is reported as their
// error.
function uncaught(error) {
  console.error(error);
  for (const script of loading) script.uncaught.push(error);
}
process.on('unhandledRejection', uncaught);
process.on('uncaughtException', uncaught);

// Data that was read and not yet handled: the rest of the current chunk, the pieces of an
// incomplete line, and lines that arrived during a synchronous request to the host.
let chunk = Buffer.alloc(0);
let at = 0;
let pieces = [];
const later = [];

/** Returns the next complete line, if there is one. */
function nextLine() {
  while (at < chunk.length) {
    const end = chunk.indexOf(10, at);
    if (end < 0) {
      // Copied, because the next read reuses the buffer.
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

/** Waits for one answer of the host. Other messages that arrive first are kept for later. */
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

/** Reads more data synchronously, while the event loop is blocked. */
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
      if (Date.now() > until) {
        throw new Error(`the host did not answer \`${method}\` within ${HOST_ANSWERS / 1000} seconds`);
      }
      Atomics.wait(pause, 0, 0, 1);
    }
  }
}

/** Handles all complete lines, and then sends the answers. */
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

// `process.stdin` would also work, but it takes as long per chunk as everything else together.
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
