// Runs extensions of pi: what they register, and what their handlers, tools and commands receive.
//
// Values that pi's objects return synchronously are requested from the host while the extension
// waits. Everything else is sent as messages.

import { execFile } from 'node:child_process';
import path from 'node:path';

import { isPlain, named, readOut } from 'tenterhook/answer';
import * as models from 'tenterhook/models';
import { footerOf, rendered, watchAlerts } from 'tenterhook/render';
import { displayOf, forgetDisplay, interfaceOf } from 'tenterhook/ui';

/** Fields of an event that a handler may change in place. */
const MUTABLE = {
  tool_call: ['input'],
  tool_result: ['content', 'details'],
  context: ['messages'],
  before_provider_request: ['payload'],
};
/** Events whose answers wait until the messages of their handlers have arrived, so that the agent still reads them. */
const SENDING = new Set(['session_start', 'turn_end', 'agent_end', 'agent_settled']);
/** Events that carry the signal of their call. */
const CANCELLABLE = new Set(['session_before_compact', 'session_before_tree']);
/** The maximum output of a program that an extension runs, in bytes. */
const OUTPUT = 16 << 20;

/** Creates an event bus. */
function eventBus() {
  const listeners = new Map();
  return {
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
}

/** The event buses that the extensions of one worker share, by session. */
const buses = new Map();
function eventsOf({ session }) {
  if (!buses.has(session)) buses.set(session, eventBus());
  return buses.get(session);
}

const FLAGS = { boolean: 'boolean', string: 'string' };

/** Loads an extension by calling its factory, and stores what it registers. */
export async function loadExtension(factory, host, flags, isLate) {
  watchAlerts((code, text) => displayOf(host).alert(code, text));
  models.attach(host);
  return begin(factory, host, flags, isLate);
}

/** Requests that change the session or the run. */
const CHANGES = new Set(['session/append', 'session/compact', 'session/lead', 'session/send', 'session/set', 'session/stop']);

/**
 * Returns a host that ignores changes of the session while the extension handles a start again. They were made when it
 * handled the start for the first time.
 */
function withoutRepeats(host) {
  const own = Object.assign(Object.create(host), { repeats: 0 });
  own.ask = (method, params) => (own.repeats > 0 && CHANGES.has(method) ? Promise.resolve({}) : host.ask(method, params));
  own.askNow = (method, params) => (own.repeats > 0 && CHANGES.has(method) ? {} : host.askNow(method, params));
  return own;
}

async function begin(factory, inner, flags, isLate) {
  const host = withoutRepeats(inner);
  const extension = {
    factory, sessions: new Map(), host, flags, isLate, isLoaded: false, hooks: [], tools: new Map(), commands: new Map(), declared: new Map(), warnings: [],
    renderers: new Map(), sends: new Set(), lastSend: undefined, providers: new Map(),
  };
  await factory(api(extension));
  extension.isLoaded = true;
  const { hooks, tools, commands } = extension;
  const named = hooks.map(({ name, event }) => [name, event]);
  extension.registered = JSON.stringify([named, [...tools.keys()], [...commands.keys()]]);
  return extension;
}

/**
 * Returns an extension as one of several sessions has it, or a promise of it. Sessions share the code, but not the
 * state: the factory is called for each. Requests to the host name the session.
 */
export function inSession(extension, session) {
  const { sessions } = extension;
  if (session === undefined) return extension;
  if (!sessions.has(session)) {
    const beginning = beginIn(extension, session);
    sessions.set(session, beginning);
    beginning.then(
      (own) => sessions.get(session) === beginning && sessions.set(session, own),
      () => sessions.get(session) === beginning && sessions.delete(session),
    );
  }
  return sessions.get(session);
}

async function beginIn(extension, session) {
  const { factory, flags, isLate } = extension;
  const host = Object.create(extension.host);
  host.session = session;
  for (const name of ['ask', 'askNow']) {
    host[name] = (method, params) => extension.host[name](method, { ...params, session });
  }
  const own = await begin(factory, host, flags, isLate);
  // The host calls hooks by their positions.
  if (own.registered !== extension.registered) throw new Error('the extension registers something else for each session');
  return own;
}

/** Forgets the state of a session that is over. */
export function endSession(extension, session) {
  extension.sessions.delete(session);
  buses.delete(session);
  forgetDisplay(session);
}

/** Describes what an extension registered. */
export function describe({ hooks, tools, commands, declared, providers, warnings }) {
  const told = (map, tell) => [...map].map(([name, value]) => ({ name, ...tell(value) }));
  return {
    hooks: hooks.map(({ name, event }) => ({ name, event })),
    tools: [...tools.values()].map(describeTool),
    commands: told(commands, ({ description }) => ({ description: String(description ?? '') })),
    flags: told(declared, ({ type, description }) => ({ type, description: String(description ?? '') })),
    providers: [...providers.values()].map(({ described }) => described),
    warnings,
  };
}

function describeTool({ name, description, parameters, renderCall, renderResult }) {
  return {
    name,
    description: String(description ?? ''),
    parameters,
    renders_call: typeof renderCall === 'function',
    renders_result: typeof renderResult === 'function',
  };
}

/** Returns the lines of something that an extension renders itself: a call or result of a tool, or its footer. */
export async function render(extension, { what, tool: name, input, result }, call) {
  const { host, tools } = extension;
  const { theme } = interfaceOf(host, call);
  const tool = tools.get(name);
  const lines = {
    tool_call: () => rendered(() => tool?.renderCall?.(input, theme)),
    tool_result: () => rendered(() => tool?.renderResult?.(result, { expanded: false, isPartial: false }, theme)),
    footer: () => footerOf(host),
  };
  return { lines: lines[what]?.() ?? null };
}

function api(extension) {
  const { host } = extension;
  const registers = (what) => {
    if (!extension.isLoaded) return;
    throw new Error(`${what}: hooks, tools, commands and providers must be registered while the extension loads`);
  };
  const acts = (what) => {
    if (!extension.isLoaded) throw new Error(`${what}: the session is not initialized while the extension loads`);
  };
  const has = (what, check, found) => {
    if (!check) throw new TypeError(`${what} got ${found}`);
  };
  const read = (key) => {
    acts(key);
    return readNow(host, key);
  };
  const set = (key, value) => {
    acts(key);
    return setLater(host, key, value);
  };
  /** Sets a value and waits until the host has it. No hook receives an event for it, so waiting is safe. */
  const setNow = (key, value) => {
    acts(key);
    host.askNow('session/set', { [key]: value });
  };
  const send = (message, options) => {
    const ask = () => host.ask('session/send', { ...message, deliver_as: options?.deliverAs ?? 'steer' });
    // The host handles requests in parallel, so a message waits for the one before it.
    const sent = extension.lastSend?.then(ask, ask) ?? ask();
    extension.lastSend = sent;
    extension.sends.add(sent);
    const forget = () => {
      extension.sends.delete(sent);
      if (extension.lastSend === sent) extension.lastSend = undefined;
    };
    sent.then(forget, forget);
    return sent;
  };
  return {
    on(event, handler) {
      // An extension that lacks one of its hooks may be a guard that does not guard.
      if (extension.isLoaded) extension.isLate();
      registers('pi.on');
      has('pi.on', typeof event === 'string', `a ${typeof event} as the name of an event, expected a string`);
      has(`pi.on('${event}')`, typeof handler === 'function', `a ${typeof handler} as its handler, expected a function`);
      extension.hooks.push({ name: handler.name || event, event, handler });
    },
    registerTool(tool) {
      has('pi.registerTool', typeof tool?.name === 'string', 'a tool without a name');
      has(`tool \`${tool.name}\``, tool.parameters === undefined || typeof tool.parameters === 'object', `parameters that are a ${typeof tool.parameters}, expected a JSON Schema`);
      has(`tool \`${tool.name}\``, typeof tool.execute === 'function', 'no function `execute`');
      // After the extension has loaded, the host checks the tool and offers it with the next request to the model.
      if (extension.isLoaded) host.askNow('script/register', { script: host.script, tool: describeTool(tool) });
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
    registerShortcut(shortcut, options) {
      registers('pi.registerShortcut');
      has(`shortcut \`${shortcut}\``, typeof options?.handler === 'function', 'no function `handler`');
      const description = [`Shortcut ${shortcut}`, options.description].filter(Boolean).join(': ');
      // A key that the terminal cannot send is still a command.
      extension.commands.set(commandOf(shortcut), { description, handler: (_args, ctx) => options.handler(ctx) });
    },
    registerMessageRenderer(customType, renderer) {
      if (typeof renderer === 'function') extension.renderers.set(String(customType), renderer);
    },
    // The program shows no entries and draws answers itself, so these have no effect. `check` reports them.
    registerEntryRenderer() {},
    registerMarkdownTransformer() {},
    registerProvider(name, config) {
      registers('pi.registerProvider');
      models.registerProvider(extension, name, config);
    },
    unregisterProvider: (name) => models.unregisterProvider(extension, name),
    sendMessage(message, options) {
      acts('pi.sendMessage');
      const { content, customType, display, details } = message;
      const custom = { custom_type: String(customType ?? ''), display: display === true, details };
      const renderer = custom.display && host.hasUI ? extension.renderers.get(custom.custom_type) : undefined;
      if (renderer) {
        const shown = { role: 'custom', ...message, timestamp: Date.now() };
        custom.lines = rendered(() => renderer(shown, { expanded: false }, interfaceOf(host, {}).theme));
      }
      return send({ content, custom, trigger: options?.triggerTurn ?? false }, options);
    },
    sendUserMessage(content, options) {
      acts('pi.sendUserMessage');
      return send({ content, trigger: true }, options);
    },
    appendEntry(customType, data) {
      acts('pi.appendEntry');
      host.askNow('session/append', { custom_type: customType, data });
    },
    setLabel: (entry, label) => setNow('label', { entry, label: label || undefined }),
    setSessionName: (name) => set('name', name),
    getSessionName: () => read('name'),
    getActiveTools: () => read('active_tools'),
    getAllTools: () => read('all_tools'),
    setActiveTools: (tools) => setNow('active_tools', tools),
    getCommands: () => read('commands').map((command) => ({ ...command, sourceInfo: sourceInfoOf(command) })),
    setModel: (model) => set('model', models.ownModel(model)).then(() => true, () => false),
    getThinkingLevel: () => read('thinking_level'),
    setThinkingLevel: (level) => set('thinking_level', level),
    exec,
    events: eventsOf(host),
  };
}

/** The folders in which extensions, templates and skills are found. */
const RESOURCES = new Set(['extensions', 'prompts', 'skills']);

/** Describes where a command comes from. */
function sourceInfoOf({ path: file, location }) {
  const parts = String(file ?? '').split(path.sep);
  const at = parts.slice(0, -1).findLastIndex((part) => RESOURCES.has(part));
  const scope = ['user', 'project'].includes(location) ? location : 'temporary';
  return { path: file, source: 'auto', scope, origin: 'top-level', baseDir: at > 0 ? parts.slice(0, at).join(path.sep) : undefined };
}

/** Returns the name of the command that a shortcut runs. Signs become `x` and their character code. */
function commandOf(shortcut) {
  const parts = String(shortcut).toLowerCase().split(/(?<=.)\+/);
  const written = parts.map((part) => part.replace(/[^a-z0-9]/g, (sign) => `x${sign.codePointAt(0).toString(16)}`));
  return `key:${written.join('-')}`;
}

/** What extensions have set and the host has not confirmed yet. Getters return it, as if it were set at once. */
const unconfirmed = new Map();
const slotOf = ({ session = '' }, key) => `${session} ${key}`;

/** Reads a value of the session synchronously. */
function readNow(host, key) {
  const slot = slotOf(host, key);
  return unconfirmed.has(slot) ? unconfirmed.get(slot) : host.askNow('session/read', { what: [key] })[key];
}

/** Sets a value of the session. Hooks receive an event for it, so the host cannot confirm it while the extension waits. */
function setLater(host, key, value) {
  const isReadable = ['name', 'thinking_level'].includes(key);
  const slot = slotOf(host, key);
  if (isReadable) unconfirmed.set(slot, value);
  return host.ask('session/set', { [key]: value }).finally(() => {
    if (unconfirmed.get(slot) === value) unconfirmed.delete(slot);
  });
}

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

/** Returns the entries of a branch that the model still reads: the newest compaction, what it kept, and what follows. */
function contextEntries(branch) {
  const at = branch.findLastIndex(({ type }) => type === 'compaction');
  if (at < 0) return branch;
  const kept = branch.slice(0, at).findIndex(({ id }) => id === branch[at].firstKeptEntryId);
  const earlier = kept < 0 ? [] : branch.slice(kept, at);
  return [branch[at], ...earlier.filter((entry) => entry.message?.role !== 'system'), ...branch.slice(at + 1)];
}

/** Returns the messages that an entry gives the model. */
function messagesOf(entry, isFirst) {
  const timestamp = Date.parse(entry.timestamp);
  switch (entry.type) {
    case 'message':
      return [entry.message];
    case 'custom_message': {
      const { customType, content, display, details } = entry;
      return [{ role: 'custom', customType, content, display, details, timestamp }];
    }
    case 'branch_summary':
      return entry.summary ? [{ role: 'branchSummary', summary: entry.summary, fromId: entry.fromId, timestamp }] : [];
    case 'compaction': {
      const { summary, tokensBefore } = entry;
      // An older compaction is part of the newest one's summary.
      return isFirst ? [{ role: 'compactionSummary', summary, tokensBefore, timestamp }] : [];
    }
    default:
      return [];
  }
}

/** The part of the session that extensions may read. */
function sessionManager(host) {
  const read = (key) => readNow(host, key);
  const entries = () => read('all_entries') ?? [];
  const branch = () => read('entries') ?? [];
  const buildSessionProjection = () => {
    const found = contextEntries(branch()).map((sourceEntry, at) => ({ sourceEntry, messages: messagesOf(sourceEntry, at === 0) }));
    const { provider, id: modelId } = models.modelOf(read('model')) ?? {};
    return {
      entries: found,
      messages: found.flatMap(({ messages }) => messages),
      thinkingLevel: read('thinking_level') ?? 'off',
      model: modelId ? { provider, modelId } : null,
    };
  };
  const directory = (file) => (file ? path.dirname(file) : undefined);
  return {
    getCwd: () => process.cwd(),
    getSessionId: () => read('id'),
    getSessionFile: () => read('file') ?? undefined,
    getSessionDir: () => directory(read('file')),
    getSessionName: () => read('name') ?? undefined,
    getEntries: entries,
    getEntry: (id) => entries().find((found) => found.id === id),
    getLeafId: () => read('leaf') ?? null,
    getLeafEntry: () => branch().at(-1),
    getLabel: (id) => read('labels')?.[id],
    getChildren: (id) => entries().filter(({ parentId }) => parentId === id),
    isPersisted: () => (read('file') ?? undefined) !== undefined,
    buildContextEntries: () => contextEntries(branch()),
    buildSessionProjection,
    buildSessionContext() {
      const { entries: _, ...context } = buildSessionProjection();
      return context;
    },
    getHeader() {
      const header = { type: 'session', version: 3, id: read('id'), timestamp: entries()[0]?.timestamp, cwd: process.cwd() };
      const parentSession = read('parent') ?? undefined;
      return { ...header, timestamp: header.timestamp ?? new Date().toISOString(), parentSession };
    },
    getTree() {
      const labels = read('labels') ?? {};
      const nodes = new Map(entries().map((entry) => [entry.id, { entry, children: [], label: labels[entry.id] }]));
      const roots = [];
      for (const node of nodes.values()) (nodes.get(node.entry.parentId)?.children ?? roots).push(node);
      return roots;
    },
    getBranch(from) {
      if (from === undefined) return branch();
      const byId = new Map(entries().map((found) => [found.id, found]));
      const found = [];
      for (let at = byId.get(from); at; at = byId.get(at.parentId)) found.unshift(at);
      return found;
    },
  };
}

/** What handlers receive in addition to the event. Each part is created on first use. */
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
    return readNow(this.#host, key);
  }

  get ui() {
    return (this.#ui ??= interfaceOf(this.#host, this.#call));
  }
  get hasUI() {
    return this.#host.hasUI;
  }
  /** At a terminal, extensions can draw components. Elsewhere, they can at most ask and show text, as in pi's RPC mode. */
  get mode() {
    if (!this.hasUI) return 'print';
    const canDraw = (this.#host.canDraw ??= this.#read('can_draw') === true);
    return canDraw ? 'tui' : 'rpc';
  }
  /** Extensions of a project that is not trusted are not loaded. */
  isProjectTrusted() {
    return true;
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
    return models.modelOf(this.#read('model'));
  }
  get modelRegistry() {
    return models.modelRegistry(this.#call);
  }
  /** The models to switch between. None is preferred, so all models can be used. */
  get scopedModels() {
    return [];
  }
  get thinkingLevel() {
    return this.#read('thinking_level');
  }
  isIdle() {
    return this.#read('is_idle');
  }
  hasPendingMessages() {
    return this.#read('has_pending_messages');
  }
  getContextUsage() {
    const usage = this.#read('usage');
    if (!usage) return undefined;
    const { tokens } = usage;
    const contextWindow = usage.contextWindow ?? 0;
    const percent = tokens === null || !contextWindow ? null : (tokens / contextWindow) * 100;
    return { tokens, contextWindow, percent };
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

/** What handlers of commands receive. They may also control the session. */
class CommandContext extends Context {
  #host;

  constructor(host, call) {
    super(host, call);
    this.#host = host;
  }
  getSystemPromptOptions() {
    throw new Error('`ctx.getSystemPromptOptions` is not supported here: the system prompt is not built from these options; `ctx.getSystemPrompt()` returns it');
  }
  waitForIdle() {
    return this.#host.ask('session/lead', { what: 'wait' });
  }
  newSession(options) {
    if (options?.setup) return Promise.reject(new Error('`newSession` does not support `setup`, because only the agent writes a session'));
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
  return call.isReplay ? repeat(extension, hook, event, call) : invoke(extension, hook, event, call);
}

/** Lets a handler handle an event again whose effects are already applied. */
async function repeat(extension, hook, event, call) {
  const { host } = extension;
  host.repeats += 1;
  try {
    await invoke(extension, hook, event, call);
  } finally {
    host.repeats -= 1;
  }
  return null;
}

function invoke(extension, hook, event, call) {
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
  const sends = SENDING.has(event.type);
  const context = new Context(extension.host, call);
  if (event.type === 'message_update') return afterArrival(extension, sends, streamed(hook, event, context).then(settle));
  const system = event.type === 'context' ? withoutSystem(event) : undefined;
  const finish = system ? (result) => settle(withSystem(system, event, result)) : settle;
  const returned = models.within(call, () => hook.handler(event, context));
  const answer = typeof returned?.then === 'function' ? returned.then(finish) : finish(returned);
  return afterArrival(extension, sends, answer);
}

/**
 * Returns an answer once everything that the extension displays has reached the host. With `sends`, also waits for the
 * messages that it sends. Other events must not wait for a message, because the message may wait for their handlers.
 */
function afterArrival(extension, sends, answer) {
  const shown = displayOf(extension.host).settled();
  if (typeof answer?.then === 'function') return waited(extension, sends, answer);
  return shown || (sends && extension.sends.size > 0) ? waited(extension, sends, answer) : answer;
}

async function waited(extension, sends, answer) {
  const result = await answer;
  await displayOf(extension.host).settled();
  if (sends) await Promise.allSettled(extension.sends);
  return result;
}

/** Takes the system prompt, which in pi is not one of the messages, from the messages of an event, and returns it. */
function withoutSystem(event) {
  if (!Array.isArray(event.messages)) return [];
  const first = event.messages.findIndex((message) => message.customType !== 'tenterhook:system');
  return event.messages.splice(0, first < 0 ? event.messages.length : first);
}

/** Puts the system prompt back before the messages of the event, and before the messages that its handler returned. */
function withSystem(system, event, result) {
  if (Array.isArray(event.messages)) event.messages = [...system, ...event.messages];
  if (!Array.isArray(result?.messages)) return result;
  return { ...result, messages: [...system, ...result.messages] };
}

/** Calls a handler for each step of a streamed message. The host sends only what was added. */
async function streamed(hook, event, context) {
  for (const assistantMessageEvent of steps(event.assistantMessageEvent)) {
    await hook.handler({ ...event, assistantMessageEvent }, context);
  }
}

const KINDS = { text: ['text', 'text'], thinking: ['thinking', 'thinking'], toolCall: ['toolcall', 'arguments'] };

/** Returns the beginning, the addition and the end of the parts that a step of the host stands for. */
function steps(added) {
  const partial = added?.partial;
  if (!Array.isArray(partial?.content)) return [added];
  const end = (contentIndex) => {
    const block = partial.content[contentIndex];
    const [kind, key] = KINDS[block?.type] ?? [];
    // A tool call arrives as a whole, so its end was already sent.
    return !kind || kind === 'toolcall' ? [] : [{ type: `${kind}_end`, contentIndex, content: block[key], partial }];
  };
  if (added.type === 'end') return end(partial.content.length - 1);
  const { contentIndex, delta } = added;
  if (added.type === 'toolcall_end') {
    const { toolCall } = added;
    const begun = ['toolcall_start', 'toolcall_delta'].map((type) => ({ type, contentIndex, delta, partial }));
    delete begun[0].delta;
    return [...end(contentIndex - 1), ...begun, { type: 'toolcall_end', contentIndex, toolCall, partial }];
  }
  const block = partial.content[contentIndex];
  const [kind, key] = KINDS[block?.type] ?? ['text', 'text'];
  // The part begins if everything in it was just added.
  const begun = block?.[key] === delta ? [...end(contentIndex - 1), { type: `${kind}_start`, contentIndex, partial }] : [];
  return [...begun, added];
}

/** Converts what a handler returned to a plain object or null. Throws if JSON would turn the value into an empty object. */
function fieldsOf(event, result) {
  if (result === undefined || result === null) return null;
  const said = (what) => new TypeError(`a handler of \`${event.type}\` returned ${what}, expected an object or nothing`);
  // The payload of a request may be of any type.
  if (event.type === 'before_provider_request') {
    if (typeof result === 'function' || typeof result === 'symbol') throw said(named(result));
    return result;
  }
  if (isPlain(result)) return written(result, said);
  // The host rejects these values and describes them.
  if (['string', 'boolean'].includes(typeof result) || Number.isFinite(result) || Array.isArray(result)) return result;
  const isOfClass = typeof result === 'object' && Object.prototype.toString.call(result) === '[object Object]';
  const fields = isOfClass ? readOut(result) : {};
  if (Object.keys(fields).length === 0) throw said(named(result));
  return written(fields, said);
}

/** Returns the fields. Throws if JSON cannot represent one of them, because the host would not see that it was set. */
function written(fields, said) {
  for (const [key, value] of Object.entries(fields)) {
    if (typeof value === 'function' || typeof value === 'symbol') throw said(`${named(value)} as \`${key}\``);
  }
  return fields;
}

/** Runs a user's command with the operations that an extension provides. */
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

export { credentials, streamModel } from 'tenterhook/models';

/** Runs a tool of an extension. */
export async function runTool(extension, { tool: name, tool_use_id: id, input, updates }, call) {
  const tool = extension.tools.get(name);
  if (!tool) throw new Error(`unknown tool \`${name}\``);
  const onUpdate = (partial) => {
    if (updates) extension.host.tell('tool/update', { call: call.id, ...resultOf(partial) });
  };
  const context = new Context(extension.host, call);
  try {
    return resultOf(await models.within(call, () => tool.execute(id, input, call.signal, onUpdate, context)));
  } catch (error) {
    // As in pi, a tool reports a failure by throwing an error. Errors of other classes are mistakes in its code.
    if (call.isCancelled || Object.getPrototypeOf(error ?? {}) !== Error.prototype) throw error;
    return { content: [{ type: 'text', text: error.message }], details: null, is_error: true };
  }
}

function resultOf(done) {
  const content = typeof done === 'string' ? [{ type: 'text', text: done }] : (done?.content ?? []);
  return { content, details: done?.details ?? null, is_error: done?.isError === true };
}

/** Runs a command of an extension. */
export async function runCommand(extension, { command: name, args }, call) {
  const command = extension.commands.get(name);
  if (!command) throw new Error(`unknown command \`${name}\``);
  const context = new CommandContext(extension.host, call);
  await waited(extension, true, models.within(call, () => command.handler(args, context)));
  return {};
}
