// Extensions of pi: what they register, and what their handlers, tools and commands are given.
//
// What pi's objects answer at once is asked of the host while the extension waits; the rest are messages.

import { execFile } from 'node:child_process';

import { isPlain, named, readOut } from 'tenterhook/answer';

/** Fields of an event that a handler may change in place. */
const MUTABLE = {
  tool_call: ['input'],
  tool_result: ['content', 'details'],
  context: ['messages'],
  before_provider_request: ['payload'],
};
/** Events that carry the signal of their call. */
const CANCELLABLE = new Set(['session_before_compact', 'session_before_tree']);
/** The most that a program which an extension runs may print, in bytes. */
const OUTPUT = 16 << 20;

const listeners = new Map();
/** How extensions of one worker talk to each other. */
const events = {
  on(channel, listener) {
    if (!listeners.has(channel)) listeners.set(channel, new Set());
    listeners.get(channel).add(listener);
    return () => listeners.get(channel).delete(listener);
  },
  emit(channel, data) {
    for (const listener of listeners.get(channel) ?? []) {
      try {
        listener(data);
      } catch (error) {
        console.error(error);
      }
    }
  },
};

const FLAGS = { boolean: 'boolean', string: 'string' };

/** Loads an extension: calls its factory, and keeps what it registers. */
export async function loadExtension(factory, host, flags, isLate) {
  const extension = {
    host, flags, isLate, isLoaded: false, hooks: [], tools: new Map(), commands: new Map(), declared: new Map(), warnings: [],
  };
  await factory(api(extension));
  extension.isLoaded = true;
  return extension;
}

/** Says what an extension registered. */
export function describe({ hooks, tools, commands, declared, warnings }) {
  const told = (map, tell) => [...map].map(([name, value]) => ({ name, ...tell(value) }));
  return {
    hooks: hooks.map(({ name, event }) => ({ name, event })),
    tools: told(tools, ({ description, parameters }) => ({ description: String(description ?? ''), parameters })),
    commands: told(commands, ({ description }) => ({ description: String(description ?? '') })),
    flags: told(declared, ({ type, description }) => ({ type, description: String(description ?? '') })),
    warnings,
  };
}

function api(extension) {
  const { host } = extension;
  const registers = (what) => {
    if (extension.isLoaded) throw new Error(`${what}: hooks, tools and commands are registered while the extension is loaded`);
  };
  const acts = (what) => {
    if (!extension.isLoaded) throw new Error(`${what}: the session is not initialized while the extension is loaded`);
  };
  const has = (what, check, found) => {
    if (!check) throw new TypeError(`${what} got ${found}`);
  };
  const read = (key) => {
    acts(key);
    return host.askNow('session/read', { what: [key] })[key];
  };
  const set = (key, value) => {
    acts(key);
    return host.ask('session/set', { [key]: value });
  };
  const unsupported = (what) => () => {
    extension.warnings.push(`\`${what}\` has no effect here`);
  };
  return {
    on(event, handler) {
      // Without its hook an extension may be a guard that looks away.
      if (extension.isLoaded) extension.isLate();
      registers('pi.on');
      has('pi.on', typeof event === 'string', `a ${typeof event} as the name of an event, expected a text`);
      has(`pi.on('${event}')`, typeof handler === 'function', `a ${typeof handler} as its handler, expected a function`);
      extension.hooks.push({ name: handler.name || event, event, handler });
    },
    registerTool(tool) {
      registers('pi.registerTool');
      has('pi.registerTool', typeof tool?.name === 'string', 'a tool without a name');
      has(`tool \`${tool.name}\``, tool.parameters === undefined || typeof tool.parameters === 'object', `parameters that are a ${typeof tool.parameters}, expected a JSON Schema`);
      has(`tool \`${tool.name}\``, typeof tool.execute === 'function', 'no function `execute`');
      extension.tools.set(tool.name, tool);
    },
    registerCommand(name, command) {
      registers('pi.registerCommand');
      has(`command \`${name}\``, typeof command?.handler === 'function', 'no function `handler`');
      extension.commands.set(name, command);
    },
    registerFlag(name, flag) {
      registers('pi.registerFlag');
      has(`flag \`${name}\``, flag?.type in FLAGS, `the type \`${flag?.type}\`, expected boolean or string`);
      extension.declared.set(name, flag);
    },
    getFlag(name) {
      const flag = extension.declared.get(name);
      const given = extension.flags[name];
      if (given === undefined) return flag?.default;
      return flag && (flag.type === 'boolean' ? String(given) === 'true' : String(given));
    },
    registerShortcut: unsupported('pi.registerShortcut'),
    registerMessageRenderer: unsupported('pi.registerMessageRenderer'),
    registerProvider: unsupported('pi.registerProvider'),
    unregisterProvider: unsupported('pi.unregisterProvider'),
    sendMessage(message, options) {
      acts('pi.sendMessage');
      return host.ask('session/send', { content: message.content, custom_type: message.customType, ...sending(options) });
    },
    sendUserMessage(content, options) {
      acts('pi.sendUserMessage');
      return host.ask('session/send', { content, ...sending(options), trigger: true });
    },
    appendEntry(customType, data) {
      acts('pi.appendEntry');
      host.askNow('session/append', { custom_type: customType, data });
    },
    setLabel: (entry, label) => set('label', { entry, label }),
    setSessionName: (name) => set('name', name),
    getSessionName: () => read('name'),
    getActiveTools: () => read('active_tools'),
    getAllTools: () => read('all_tools'),
    setActiveTools: (tools) => set('active_tools', tools),
    getCommands: () => read('commands'),
    setModel: (model) => set('model', model).then(() => true, () => false),
    getThinkingLevel: () => read('thinking_level'),
    setThinkingLevel: (level) => set('thinking_level', level),
    exec,
    events,
  };
}

const sending = (options) => ({ deliver_as: options?.deliverAs ?? 'steer', trigger: options?.triggerTurn ?? false });

/** Runs a program, without a shell. */
function exec(command, args, options = {}) {
  const { cwd, timeout, signal } = options;
  return new Promise((resolve) => {
    execFile(command, args, { cwd, timeout, signal, maxBuffer: OUTPUT, encoding: 'utf8' }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
      const why = error !== null && stderr === '' ? error.message : stderr;
      resolve({ stdout, stderr: why, code, killed: error?.killed ?? false });
    });
  });
}

/** What pi's interface is where nobody can see or draw anything. */
const NOTHING_TO_DRAW = [
  'setStatus', 'setWidget', 'setTitle', 'setFooter', 'setHeader', 'setEditorText', 'setEditorComponent', 'pasteToEditor', 'setWorkingMessage',
];

function interfaceOf(host, call) {
  const ask = async (what, params) => (await host.ask(`ui/${what}`, { ...params, call: call.id, behind: call.turn && [...call.turn] }))?.answer;
  const ui = {
    select: (title, options) => ask('select', { title, options }),
    confirm: async (title, message) => (await ask('confirm', { title, message })) === true,
    input: (title, placeholder) => ask('input', { title, placeholder }),
    editor: (title, prefill) => ask('input', { title, placeholder: prefill }),
    notify: (message, level) => void ask('notify', { message: String(message), level: level ?? 'info' }),
    custom: () => Promise.resolve(undefined),
    getEditorText: () => '',
  };
  for (const name of NOTHING_TO_DRAW) ui[name] = () => {};
  return ui;
}

/** The session, as far as it may be read. */
function sessionManager(host) {
  const read = (key) => host.askNow('session/read', { what: [key] })[key];
  const entries = () => read('entries') ?? [];
  const entry = (id) => entries().find((found) => found.id === id);
  return {
    getCwd: () => process.cwd(),
    getSessionId: () => read('id'),
    getSessionFile: () => read('file') ?? undefined,
    getSessionDir: () => read('directory') ?? undefined,
    getSessionName: () => read('name') ?? undefined,
    getEntries: entries,
    getEntry: entry,
    getLeafId: () => entries().at(-1)?.id ?? null,
    getLeafEntry: () => entries().at(-1),
    getLabel: () => undefined,
    getHeader: () => null,
    getTree: () => [],
    getBranch(from) {
      const all = entries();
      const byId = new Map(all.map((found) => [found.id, found]));
      const branch = [];
      for (let at = from === undefined ? all.at(-1) : byId.get(from); at; at = byId.get(at.parentId)) branch.unshift(at);
      return branch;
    },
  };
}

/** What handlers get beside the event. Nothing of it is made before it is asked for. */
class Context {
  #host;
  #call;
  #ui;
  #sessionManager;

  constructor(host, call) {
    this.#host = host;
    this.#call = call;
  }

  #read(key) {
    return this.#host.askNow('session/read', { what: [key] })[key];
  }

  get ui() {
    return (this.#ui ??= interfaceOf(this.#host, this.#call));
  }
  get hasUI() {
    return this.#host.hasUI;
  }
  get cwd() {
    return process.cwd();
  }
  get signal() {
    return this.#call.signal;
  }
  get sessionManager() {
    return (this.#sessionManager ??= sessionManager(this.#host));
  }
  get model() {
    return this.#read('model') ?? undefined;
  }
  get modelRegistry() {
    return { getAvailable: () => [], getAll: () => [], find: () => undefined };
  }
  isIdle() {
    return this.#read('is_idle');
  }
  hasPendingMessages() {
    return this.#read('has_pending_messages');
  }
  getContextUsage() {
    return this.#read('usage') ?? undefined;
  }
  getSystemPrompt() {
    return this.#read('system_prompt');
  }
  abort() {
    this.#host.askNow('session/stop', { what: 'run' });
  }
  shutdown() {
    this.#host.askNow('session/stop', { what: 'program' });
  }
  compact(options) {
    const asked = this.#host.ask('session/compact', { custom_instructions: options?.customInstructions });
    asked.then((done) => options?.onComplete?.(done), (error) => options?.onError?.(error));
  }
}

/** What handlers of commands get: they may also lead the session. */
class CommandContext extends Context {
  #host;

  constructor(host, call) {
    super(host, call);
    this.#host = host;
  }
  waitForIdle() {
    return this.#host.ask('session/lead', { what: 'wait' });
  }
  newSession(options) {
    if (options?.setup) return Promise.reject(new Error('`setup` of `newSession` is not there: a session is written by its agent alone'));
    return this.#host.ask('session/lead', { what: 'new' });
  }
  fork(entry) {
    return this.#host.ask('session/lead', { what: 'fork', entry });
  }
  navigateTree(entry, options) {
    return this.#host.ask('session/lead', { what: 'tree', entry, options });
  }
  switchSession(session) {
    return this.#host.ask('session/lead', { what: 'switch', session });
  }
  reload() {
    return this.#host.ask('session/lead', { what: 'reload' });
  }
}

/** Calls a handler and returns the worker's answer, or a promise of it. */
export function callHandler(extension, hook, event, call) {
  const keys = MUTABLE[event.type];
  const before = keys?.map((key) => JSON.stringify(event[key]));
  if (CANCELLABLE.has(event.type)) event.signal = call.signal;
  const settle = (result) => {
    const changed = {};
    keys?.forEach((key, place) => {
      if (JSON.stringify(event[key]) !== before[place]) changed[key] = event[key] ?? null;
    });
    if (event.type === 'user_bash' && result?.operations) return runOperations(result.operations, event, call);
    if (result === undefined && Object.keys(changed).length === 0) return null;
    return { result: fieldsOf(event, result), changed };
  };
  const returned = hook.handler(event, new Context(extension.host, call));
  return typeof returned?.then === 'function' ? returned.then(settle) : settle(returned);
}

/** Returns what a handler returned as a plain object or null. What JSON would make empty is a failure. */
function fieldsOf(event, result) {
  if (result === undefined || result === null) return null;
  const said = (what) => new TypeError(`a handler of \`${event.type}\` returned ${what}, expected an object or nothing`);
  // The payload of a request may be anything.
  if (event.type === 'before_provider_request') {
    if (typeof result === 'function' || typeof result === 'symbol') throw said(named(result));
    return result;
  }
  if (isPlain(result)) return written(result, said);
  // The host refuses these, and says what they are.
  if (['string', 'boolean'].includes(typeof result) || Number.isFinite(result) || Array.isArray(result)) return result;
  const isOfClass = typeof result === 'object' && Object.prototype.toString.call(result) === '[object Object]';
  const fields = isOfClass ? readOut(result) : {};
  if (Object.keys(fields).length === 0) throw said(named(result));
  return written(fields, said);
}

/** Returns fields without those that are undefined. One that JSON cannot write would look as if it were not set. */
function written(fields, said) {
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === 'function' || typeof value === 'symbol') throw said(`${named(value)} as \`${key}\``);
  }
  return fields;
}

/** Runs a command of the user the way that an extension does it. */
async function runOperations(operations, event, call) {
  const printed = [];
  const onData = (data) => printed.push(Buffer.from(data));
  const run = operations.exec
    ? operations.exec(event.command, event.cwd, { onData, signal: call.signal })
    : operations.execute(event.command);
  const done = await run;
  const text = typeof done === 'string' ? done : (done?.output ?? done?.stdout ?? Buffer.concat(printed).toString());
  const result = { output: text, exitCode: done?.exitCode ?? done?.code ?? 0, cancelled: false, truncated: false };
  return { result: { result }, changed: {} };
}

/** Runs a tool of an extension. */
export async function runTool(extension, { tool: name, tool_use_id: id, input, updates }, call) {
  const tool = extension.tools.get(name);
  if (!tool) throw new Error(`there is no tool \`${name}\``);
  const onUpdate = (partial) => {
    if (updates) extension.host.tell('tool/update', { call: call.id, ...resultOf(partial) });
  };
  return resultOf(await tool.execute(id, input, call.signal, onUpdate, new Context(extension.host, call)));
}

function resultOf(done) {
  const content = typeof done === 'string' ? [{ type: 'text', text: done }] : (done?.content ?? []);
  return { content, details: done?.details ?? null, is_error: done?.isError === true };
}

/** Runs a command of an extension. */
export async function runCommand(extension, { command: name, args }, call) {
  const command = extension.commands.get(name);
  if (!command) throw new Error(`there is no command \`${name}\``);
  await command.handler(args, new CommandContext(extension.host, call));
  return {};
}
