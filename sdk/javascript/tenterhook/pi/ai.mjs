// The stand-in for pi's package with model services. The host calls the services.

import { allModels, callModel, findModel, trackCalls } from 'tenterhook/models';
import { Type } from 'tenterhook:pi/typebox.mjs';

export { Type };

/** A string that is one of several values. */
export const StringEnum = (values, options = {}) => {
  const { description, default: chosen } = options;
  return Type.Unsafe({
    type: 'string',
    enum: [...values],
    ...(description && { description }),
    ...(chosen && { default: chosen }),
  });
};

/** Events that arrive one after another, and the result that the last one carries. */
export class EventStream {
  #queue = [];
  #readers = [];
  #isDone = false;
  #result = Promise.withResolvers?.() ?? withResolvers();
  #isLast;
  #resultOf;

  constructor(isComplete, extractResult) {
    this.#isLast = isComplete;
    this.#resultOf = extractResult;
  }
  push(event) {
    if (this.#isDone) return;
    if (this.#isLast(event)) {
      this.#isDone = true;
      this.#result.resolve(this.#resultOf(event));
    }
    const reader = this.#readers.shift();
    if (reader) reader({ value: event, done: false });
    else this.#queue.push(event);
  }
  end(result) {
    this.#isDone = true;
    if (result !== undefined) this.#result.resolve(result);
    for (const reader of this.#readers.splice(0)) reader({ value: undefined, done: true });
  }
  [Symbol.asyncIterator]() {
    return {
      next: () => {
        if (this.#queue.length > 0) return Promise.resolve({ value: this.#queue.shift(), done: false });
        if (this.#isDone) return Promise.resolve({ value: undefined, done: true });
        return new Promise((resolve) => this.#readers.push(resolve));
      },
    };
  }
  result() {
    return this.#result.promise;
  }
}

/** `Promise.withResolvers` for Node.js before version 22. */
function withResolvers() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

export class AssistantMessageEventStream extends EventStream {
  constructor() {
    super(
      ({ type }) => type === 'done' || type === 'error',
      ({ type, message, error }) => (type === 'done' ? message : error),
    );
  }
}
export const createAssistantMessageEventStream = () => new AssistantMessageEventStream();

/** Returns an id that begins with its time, in milliseconds since 1970, so that ids sort by their age. */
export function uuidv7(at = Date.now()) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setBigUint64(0, (BigInt(at) << 16n) | (0x7000n | BigInt(bytes[6] & 15) << 8n | BigInt(bytes[7])));
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return Buffer.from(bytes).toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}

// Model services that extensions register

const providers = new Map();

export function registerApiProvider(provider, sourceId) {
  providers.set(provider.api, { provider, sourceId });
}
export const getApiProvider = (api) => providers.get(api)?.provider;
export const getApiProviders = () => [...providers.values()].map(({ provider }) => provider);
export function unregisterApiProviders(sourceId) {
  for (const [api, registered] of providers) if (registered.sourceId === sourceId) providers.delete(api);
}
export const clearApiProviders = () => providers.clear();
export const resetApiProviders = clearApiProviders;
export function registerBuiltInApiProviders() {}

/** Calls a model through the host. The events follow one another when the answer is complete. */
function hostStream(model, context, options, api) {
  const events = createAssistantMessageEventStream();
  const send = async () => {
    const message = await callModel(model, context, options, api);
    const { stopReason: reason } = message;
    if (reason === 'error' || reason === 'aborted') events.push({ type: 'error', reason, error: message });
    else {
      for (const event of eventsOf(message)) events.push(event);
      events.push({ type: 'done', reason, message });
    }
    events.end();
  };
  void send();
  return events;
}

/** Returns the events of a stream that stand for a complete message. */
function* eventsOf(partial) {
  yield { type: 'start', partial };
  for (const [contentIndex, block] of partial.content.entries()) {
    const at = { contentIndex, partial };
    if (block.type === 'toolCall') {
      yield { type: 'toolcall_start', ...at };
      yield { type: 'toolcall_delta', delta: JSON.stringify(block.arguments), ...at };
      yield { type: 'toolcall_end', toolCall: block, ...at };
      continue;
    }
    const content = block[block.type];
    yield { type: `${block.type}_start`, ...at };
    yield { type: `${block.type}_delta`, delta: content, ...at };
    yield { type: `${block.type}_end`, content, ...at };
  }
}

trackCalls();

export const stream = (model, context, options) =>
  getApiProvider(model?.api)?.stream(model, context, options) ?? hostStream(model, context, options);
export const streamSimple = (model, context, options) =>
  getApiProvider(model?.api)?.streamSimple(model, context, options) ?? hostStream(model, context, options);
export const complete = async (model, context, options) => stream(model, context, options).result();
export const completeSimple = async (model, context, options) => streamSimple(model, context, options).result();

/** Calls a model with one protocol, whatever the model says. */
const withApi = (api) => (model, context, options) => hostStream(model, context, options, api);
export const streamAnthropic = withApi('anthropic-messages');
export const streamSimpleAnthropic = streamAnthropic;
export const streamOpenAICompletions = withApi('openai-completions');
export const streamSimpleOpenAICompletions = streamOpenAICompletions;
export const streamOpenAIResponses = withApi('openai-responses');
export const streamSimpleOpenAIResponses = streamOpenAIResponses;
export const streamGoogle = withApi('google-generative-ai');
export const streamSimpleGoogle = streamGoogle;

// Models. The host knows them.

export const getModel = findModel;
export const getModels = (provider) => allModels().filter((model) => model.provider === provider);
export const getProviders = () => [...new Set(allModels().map(({ provider }) => provider))];
export const modelsAreEqual = (one, other) =>
  Boolean(one && other) && one.id === other.id && one.provider === other.provider;
export const supportsXhigh = () => false;

/** Computes what an answer cost, from the prices per million tokens. */
export function calculateCost(model, usage) {
  const cost = { total: 0 };
  for (const kind of ['input', 'output', 'cacheRead', 'cacheWrite']) {
    cost[kind] = (model.cost[kind] / 1e6) * usage[kind];
    cost.total += cost[kind];
  }
  return Object.assign(usage.cost, cost);
}

/** The environment variables with the keys of services, where the name does not follow from the service. */
const KEY_VARIABLES = {
  google: 'GEMINI_API_KEY',
  'azure-openai-responses': 'AZURE_OPENAI_API_KEY',
  'vercel-ai-gateway': 'AI_GATEWAY_API_KEY',
  huggingface: 'HF_TOKEN',
  'github-copilot': 'COPILOT_GITHUB_TOKEN',
};
/** Returns the key of a service from the environment. */
export function getEnvApiKey(provider) {
  return process.env[KEY_VARIABLES[provider] ?? `${provider.toUpperCase().replaceAll('-', '_')}_API_KEY`];
}

/** Reads JSON whose end is missing, as far as it goes. */
export function parseStreamingJson(text) {
  if (!text?.trim()) return {};
  const closers = [];
  let isString = false;
  let whole = '';
  const candidates = [];
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    whole += character;
    if (isString) {
      if (character === '\\') whole += text[(at += 1)] ?? '';
      else if (character === '"') isString = false;
    } else if (character === '"') isString = true;
    else if (character === '{') closers.unshift('}');
    else if (character === '[') closers.unshift(']');
    else if (character === '}' || character === ']') closers.shift();
    else if (character === ',') candidates.push(whole.slice(0, -1) + closers.join(''));
  }
  const end = closers.join('');
  candidates.push(whole + (isString ? '"' : '') + end);
  for (const candidate of candidates.reverse()) {
    try {
      return JSON.parse(candidate);
    } catch {
      // Try with one element less.
    }
  }
  return {};
}
