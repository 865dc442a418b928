// The models that pi's extensions call, and the providers of models that they register.
//
// The host makes the calls, so that the user's keys stay with the host. An extension passes the word
// HOST_KEY on instead of a key that only the host has.

import { AsyncLocalStorage } from 'node:async_hooks';
import { exec } from 'node:child_process';

/**
 * The services of models: the host's name for each, pi's name, the name of its protocol in pi, its address and the
 * variable with its key.
 */
const SERVICES = [
  {
    own: 'anthropic', name: 'anthropic', api: 'anthropic-messages', url: 'https://api.anthropic.com',
    key: 'ANTHROPIC_API_KEY',
  },
  {
    own: 'openai', name: 'openai', api: 'openai-completions', url: 'https://api.openai.com/v1',
    key: 'OPENAI_API_KEY',
  },
  {
    own: 'gemini', name: 'google', api: 'google-generative-ai', url: 'https://generativelanguage.googleapis.com/v1beta',
    key: 'GEMINI_API_KEY',
  },
  { own: 'groq', name: 'groq', api: 'openai-completions', key: 'GROQ_API_KEY' },
  { own: 'xai', name: 'xai', api: 'openai-completions', key: 'XAI_API_KEY' },
  { own: 'deepseek', name: 'deepseek', api: 'openai-completions', key: 'DEEPSEEK_API_KEY' },
  { own: 'mistral', name: 'mistral', api: 'openai-completions', key: 'MISTRAL_API_KEY' },
  { own: 'openrouter', name: 'openrouter', api: 'openai-completions', key: 'OPENROUTER_API_KEY' },
];
const service = (provider) => SERVICES.find(({ own, name }) => own === provider || name === provider);
const ownName = (provider) => service(provider)?.own ?? provider;

/** The host's services that speak the protocols of pi. */
const PROTOCOLS = {
  'openai-completions': 'openai',
  'openai-responses': 'openai-responses',
  'anthropic-messages': 'anthropic',
  'google-generative-ai': 'gemini',
};
const supported = Object.keys(PROTOCOLS).map((api) => `\`${api}\``).join(', ');

/** Stands for a key that only the host has. */
const HOST_KEY = 'the-host-has-the-key';
/** The levels of thinking that the host knows. */
const LEVELS = new Set(['minimal', 'low', 'medium', 'high', 'xhigh']);
/** How often the worker tries to cancel a call that the host does not know yet. */
const MAX_CANCELLATIONS = 16;
/** How long a command that prints a key may run, in milliseconds. */
const KEY_COMMAND = 10_000;
/** The maximum output of such a command, in bytes. */
const KEY_OUTPUT = 64 << 10;

let host;

/** Lets extensions call models through this host. */
export function attach(to) {
  host = to;
}

/** The call of the host that the current code belongs to. Created when an extension imports what calls models. */
let calls;
export function trackCalls() {
  calls ??= new AsyncLocalStorage();
}
/** Returns the host of the session that the current code belongs to. */
const hostNow = () => calls?.getStore()?.host ?? host;
/** Runs code that belongs to a call of the host. */
export const within = (call, work) => (calls ? calls.run(call, work) : work());

// Descriptions of models

/** The registered providers, by the host's names. If several extensions register one, the last of them is described. */
const registered = new Map();
const definitionOf = (provider, id) => registered.get(ownName(provider))?.models.get(id);
/** The addresses that the user chose, by the host's names of the models. */
const chosen = new Map();
const baseUrlOf = ({ provider, id }) =>
  definitionOf(provider, id)?.baseUrl ?? registered.get(ownName(provider))?.config.baseUrl
    ?? chosen.get(`${ownName(provider)}/${id}`) ?? service(provider)?.url;

/** Describes a model of the host as pi does. */
export function modelOf(model) {
  if (!model) return undefined;
  const { provider, cost, base_url: baseUrl, has_key: _, ...rest } = model;
  if (baseUrl) chosen.set(`${ownName(provider)}/${model.id}`, baseUrl);
  const definition = definitionOf(provider, model.id);
  if (definition) return { ...definition };
  const { name = provider, api = 'openai-completions' } = service(provider) ?? {};
  const prices = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  for (const key of Object.keys(prices)) prices[key] = cost?.[key] ?? 0;
  const contextWindow = model.contextWindow ?? 0;
  return {
    ...rest, provider: name, api, baseUrl: baseUrlOf({ provider, id: model.id }) ?? '', cost: prices, contextWindow,
    reasoning: true, input: ['text', 'image'], maxTokens: 0,
  };
}

/** Returns a model of pi under the host's name for its service. */
export const ownModel = (model) => (model?.provider ? { ...model, provider: ownName(model.provider) } : model);

export const allModels = () => (hostNow()?.askNow('session/read', { what: ['models'] }).models ?? []).map(modelOf);

function lookUp(provider, id) {
  try {
    return hostNow()?.askNow('session/model', ownModel({ provider, id })) ?? undefined;
  } catch {
    // Only a session knows models.
    return undefined;
  }
}

/** Returns a model, also one without a key. */
export const findModel = (provider, id) => modelOf(lookUp(provider, id));

const keyOf = (provider) => process.env[service(provider)?.key ?? ''] || undefined;

const unsupported = (name, why) => () => {
  throw new Error(`\`ctx.modelRegistry.${name}\` is not supported here: ${why}`);
};

/** Calls a function that streams, of the module that has the streams. It is loaded on first use. */
const streamed = (name, call) => (model, context, options) => {
  trackCalls();
  const beginning = import('tenterhook:pi/ai.mjs').then((ai) =>
    calls.run(call, () => ai[name](model, context, options)));
  return {
    async* [Symbol.asyncIterator]() {
      yield* await beginning;
    },
    result: async () => (await beginning).result(),
  };
};

/** Describes a provider of models. */
function describedProvider(name) {
  const getModels = () => allModels().filter((model) => ownName(model.provider) === ownName(name));
  const { config } = registered.get(ownName(name)) ?? {};
  const known = service(name);
  if (!config && !known && getModels().length === 0) return undefined;
  return { id: known?.name ?? name, name: known?.name ?? name, baseUrl: config?.baseUrl ?? known?.url, headers: config?.headers, getModels };
}

/**
 * The models that extensions may use. Keys come from the environment of the extension, or stay with the host. Models are
 * called as part of a call of the host.
 */
export function modelRegistry(call) {
  const hostHasKey = ({ provider, id }) => (lookUp(provider, id) ?? { has_key: false }).has_key !== false;
  const isConfigured = (provider) =>
    keyOf(provider) !== undefined || Boolean(registered.get(ownName(provider))?.config.apiKey);
  const getApiKey = async (model) => {
    const { config } = registered.get(ownName(model?.provider)) ?? {};
    if (config?.apiKey) return resolve(config.apiKey, true);
    const key = keyOf(model?.provider);
    return key ?? (model && hostHasKey(model) ? HOST_KEY : undefined);
  };
  return {
    getAll: allModels,
    getAvailable: allModels,
    find: findModel,
    getApiKey,
    getApiKeyForProvider: async (provider) => keyOf(provider),
    async getApiKeyAndHeaders(model) {
      const apiKey = await getApiKey(model);
      if (apiKey !== undefined) return { ok: true, apiKey };
      return { ok: false, error: `no API key for \`${model?.provider}\` in the environment` };
    },
    hasConfiguredAuth: (model) => isConfigured(model?.provider) || Boolean(model && hostHasKey(model)),
    isUsingOAuth: () => false,
    getProvider: describedProvider,
    getProviderDisplayName: (provider) => describedProvider(provider)?.name ?? provider,
    getProviderAuthStatus: (provider) => ({ configured: isConfigured(provider) }),
    async getProviderAuth(provider) {
      const apiKey = keyOf(provider);
      return apiKey === undefined ? undefined : { auth: { apiKey }, source: service(provider)?.key };
    },
    getRegisteredProviderIds: () => [...registered.values()].map(({ name }) => name),
    getRegisteredProviderConfig: (provider) => registered.get(ownName(provider))?.config,
    getRegisteredNativeProvider: () => undefined,
    getError: () => undefined,
    refresh: async () => ({ aborted: false, errors: new Map() }),
    stream: streamed('stream', call),
    streamSimple: streamed('streamSimple', call),
    complete: (...given) => streamed('stream', call)(...given).result(),
    registerProvider: unsupported('registerProvider', 'use `pi.registerProvider`'),
    unregisterProvider: unsupported('unregisterProvider', 'use `pi.unregisterProvider`'),
  };
}

// Providers that extensions register

/** The output of commands that print keys. A command runs once. */
const commands = new Map();

function outputOf(command) {
  if (!commands.has(command)) {
    const options = { timeout: KEY_COMMAND, maxBuffer: KEY_OUTPUT, encoding: 'utf8' };
    commands.set(command, new Promise((done) => {
      const child = exec(command, options, (error, stdout) => done(error ? undefined : stdout.trim() || undefined));
      child.stdin?.end();
    }));
  }
  return commands.get(command);
}

/**
 * Resolves a value as pi does: the output of `!command`, a variable, or the text itself. With `isKey`, the name of a
 * variable that is not set is not a key.
 */
async function resolve(value, isKey = false) {
  if (typeof value !== 'string') return undefined;
  if (value.startsWith('!')) return outputOf(value.slice(1));
  const isName = /^[A-Z][A-Z0-9_]*$/.test(value);
  return process.env[value] || (isKey && isName ? undefined : value);
}

const numbers = (cost) => Object.fromEntries(Object.entries(cost).filter(([, value]) => typeof value === 'number'));

/** Registers a provider of models for an extension. */
export function registerProvider(extension, name, config = {}) {
  const fail = (problem) => {
    throw new TypeError(`pi.registerProvider('${name}'): ${problem}`);
  };
  if (typeof name !== 'string' || !/^[^\s:/]+$/.test(name) || name === 'scripted') {
    fail('the name is invalid, expected one without spaces, `:` and `/`, other than `scripted`');
  }
  const { api, apiKey, baseUrl, models = [], oauth, streamSimple } = config;
  if (streamSimple && !api) fail('`api` is required together with `streamSimple`');
  if (models.length > 0 && !baseUrl) fail('`baseUrl` is required together with `models`');
  if (models.length > 0 && !apiKey && !oauth) fail('`apiKey` or `oauth` is required together with `models`');
  if (oauth && !apiKey) {
    const problem = 'OAuth logins are not supported; the provider needs an `apiKey`';
    extension.warnings.push(`\`pi.registerProvider('${name}')\`: ${problem}`);
  }
  const defined = new Map();
  const described = [];
  for (const model of models) {
    const ofModel = model.api ?? api;
    if (!ofModel) fail(`the model \`${model.id}\` has no \`api\``);
    const isStreamed = streamSimple && ofModel === api;
    if (!isStreamed && !PROTOCOLS[ofModel]) {
      extension.warnings.push(
        `\`pi.registerProvider('${name}')\`: the model \`${model.id}\` cannot be used, because its \`api\` is `
          + `\`${ofModel}\`; supported: ${supported}, and every other one together with \`streamSimple\``,
      );
      continue;
    }
    const { input, output, cacheRead, cacheWrite } = model.cost ?? {};
    const price = numbers({ input, output, cached_input: cacheRead, cached_write: cacheWrite });
    defined.set(model.id, { ...model, api: ofModel, provider: name, baseUrl: model.baseUrl ?? baseUrl });
    described.push({
      id: String(model.id),
      service: isStreamed ? undefined : PROTOCOLS[ofModel],
      base_url: model.baseUrl,
      context_window: model.contextWindow > 0 ? Math.floor(model.contextWindow) : undefined,
      price: 'input' in price && 'output' in price ? price : undefined,
    });
  }
  if (models.length > 0 && described.length === 0) return;
  const own = ownName(name);
  const provider = { name, config, models: defined, described: { name: own, base_url: baseUrl, models: described } };
  registered.set(own, provider);
  extension.providers.set(own, provider);
}

/** Removes a provider that was registered. */
export function unregisterProvider(extension, name) {
  registered.delete(ownName(name));
  extension.providers.delete(ownName(name));
}

/** Returns a provider of this extension. The key of another extension must not go to the address of this one. */
function providerOf(extension, name) {
  const found = extension.providers.get(name);
  if (!found) throw new Error(`the extension does not register the provider \`${name}\` any more`);
  return found;
}

async function credentialsOf({ name, config, models }, id) {
  const { apiKey, oauth } = config;
  const key = await resolve(apiKey, true);
  if (key === undefined && (apiKey || oauth)) {
    const login = oauth ? '; Tenterhook has no OAuth login' : '';
    const unset = apiKey?.startsWith('!') ? 'the command that prints it failed' : `\`${apiKey}\` is not set`;
    const missing = apiKey ? unset : 'it needs one';
    throw new Error(`no key for \`${name}\`: ${missing}${login}`);
  }
  const headers = {};
  for (const [header, value] of Object.entries({ ...config.headers, ...models.get(id)?.headers })) {
    const resolved = await resolve(value);
    if (resolved !== undefined) headers[header] = resolved;
  }
  if (config.authHeader && key) headers.Authorization = `Bearer ${key}`;
  return { api_key: key, headers };
}

/** Returns the key and the headers with which the host calls a model of a registered provider. */
export const credentials = async (extension, { provider, model }) =>
  credentialsOf(providerOf(extension, provider), model);

/** Lets the extension of a provider call a model. The parts of the answer are sent as they arrive. */
export async function streamModel(extension, { request }, call) {
  const { provider, model: id, api_key: given, body } = request;
  const found = providerOf(extension, provider);
  const definition = found.models.get(id);
  const { api_key: key, headers } = given ? { api_key: given, headers: {} } : await credentialsOf(found, id);
  const model = { ...definition, headers: { ...definition.headers, ...headers } };
  const options = {
    apiKey: key,
    signal: call.signal,
    maxTokens: body.max_output_tokens ?? undefined,
    reasoning: LEVELS.has(body.thinking) ? body.thinking : undefined,
  };
  const stream = await found.config.streamSimple(model, contextOf(body), options);
  return Promise.race([partsOf(stream, call), aborted(call.signal)]);
}

const aborted = (signal) => new Promise((_, reject) => {
  const abort = () => reject(new Error('the call was cancelled'));
  if (signal.aborted) abort();
  signal.addEventListener('abort', abort, { once: true });
});

/** Sends the parts of an answer to the host, and returns how it ended. */
async function partsOf(stream, call) {
  const send = (part) => host.tell('provider/update', { call: call.id, ...part });
  /** How many characters of each block were sent. */
  const sent = [];
  const add = (index, kind, delta) => {
    sent[index] = (sent[index] ?? 0) + delta.length;
    if (delta) send({ kind, delta });
  };
  const addCall = (index, { id, name, arguments: given }) => {
    sent[index] = 1;
    send({ kind: 'tool_call', tool_call: { id: String(id ?? ''), name: String(name), arguments: given ?? {} } });
  };
  let last;
  for await (const event of stream) {
    if (call.signal.aborted) return { error: 'the call was cancelled' };
    if (event.type === 'text_delta') add(event.contentIndex, 'text', event.delta);
    else if (event.type === 'thinking_delta') add(event.contentIndex, 'reasoning', event.delta);
    else if (event.type === 'toolcall_end') addCall(event.contentIndex, event.toolCall);
    else if (event.type === 'done' || event.type === 'error') {
      last = event;
      break;
    }
  }
  if (!last) return { error: 'the stream of the extension ended without `done`' };
  if (last.type === 'error') {
    return { error: String(last.error?.errorMessage ?? last.reason), usage: usageOf(last.error?.usage) };
  }
  // What a stream did not send as deltas is in its last event.
  (last.message?.content ?? []).forEach((block, index) => {
    if (block.type === 'text') add(index, 'text', block.text.slice(sent[index] ?? 0));
    else if (block.type === 'thinking') add(index, 'reasoning', block.thinking.slice(sent[index] ?? 0));
    else if (block.type === 'toolCall' && !sent[index]) addCall(index, block);
  });
  return { usage: usageOf(last.message?.usage) };
}

/** Converts pi's counts of tokens to the host's, which count cached tokens as input. */
function usageOf(usage) {
  if (!usage) return undefined;
  const count = (key) => Math.max(0, Math.floor(Number(usage[key]) || 0));
  const [read, written] = [count('cacheRead'), count('cacheWrite')];
  const input = count('input') + read + written;
  if (input + count('output') === 0) return undefined;
  const cached = { cached_input_tokens: read, cached_write_tokens: written };
  return { input_tokens: input, output_tokens: count('output'), ...cached };
}

// Conversations

const textBlock = (text) => ({ type: 'text', text });
const imageBlock = ({ data, media_type: mimeType }) => ({ type: 'image', data, mimeType });

function blocksOf({ content, images = [], parts = [] }) {
  const others = parts.map((part) => (part.type === 'image' && part.image ? imageBlock(part.image) : part));
  const text = content || images.length + others.length === 0 ? [textBlock(content ?? '')] : [];
  return [...text, ...images.map(imageBlock), ...others];
}

const NOTHING_USED = {
  input: 0, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: 0,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
};

/** Converts a conversation of the host to pi's form. */
function contextOf({ messages, tools }) {
  const timestamp = Date.now();
  const names = new Map();
  const prompts = [];
  const converted = [];
  for (const message of messages) {
    const { role, content, tool_calls: made = [] } = message;
    if (role === 'system' && converted.length === 0) prompts.push(content);
    else if (role === 'assistant') {
      const text = blocksOf(message).filter((block) => block.type !== 'text' || block.text);
      const toolCalls = made.map(({ id, name, arguments: given }) => ({ type: 'toolCall', id, name, arguments: given }));
      for (const { id, name } of made) names.set(id, name);
      const stopReason = made.length > 0 ? 'toolUse' : 'stop';
      const origin = { api: '', provider: '', model: '' };
      const ended = { usage: NOTHING_USED, stopReason, timestamp };
      converted.push({ role, content: [...text, ...toolCalls], ...origin, ...ended });
    } else if (role === 'tool') {
      const toolCallId = message.tool_call_id ?? '';
      const toolName = names.get(toolCallId) ?? '';
      const isError = message.is_error === true;
      converted.push({ role: 'toolResult', toolCallId, toolName, content: blocksOf(message), isError, timestamp });
    } else converted.push({ role: 'user', content: blocksOf(message), timestamp });
  }
  const offered = (tools ?? []).map(({ name, description, schema }) => ({ name, description, parameters: schema }));
  const context = { messages: converted };
  if (prompts.length > 0) context.systemPrompt = prompts.join('\n\n');
  if (offered.length > 0) context.tools = offered;
  return context;
}

/** Converts a conversation of pi to the host's form. */
function messagesOf({ systemPrompt, messages = [] }) {
  const prompt = systemPrompt ? [{ role: 'system', content: String(systemPrompt) }] : [];
  return [...prompt, ...messages.map(messageOf)];
}

const ROLES = { assistant: 'assistant', toolResult: 'tool' };

function messageOf({ role, content, toolCallId, isError }) {
  const blocks = typeof content === 'string' ? [textBlock(content)] : (content ?? []);
  const of = (type) => blocks.filter((block) => block.type === type);
  const message = { role: ROLES[role] ?? 'user', content: of('text').map(({ text }) => text).join('\n') };
  const images = of('image').map(({ data, mimeType }) => ({ data, media_type: mimeType }));
  if (images.length > 0) message.images = images;
  const made = of('toolCall').map(({ id, name, arguments: given }) => ({ id, name, arguments: given ?? {} }));
  if (made.length > 0) message.tool_calls = made;
  if (role === 'toolResult') Object.assign(message, { tool_call_id: toolCallId, is_error: isError === true });
  return message;
}

// Calls

/** Writes the answer of the host as pi's message of an assistant. */
function answerOf(model, { message = {}, usage, cost, error, cancelled }) {
  const content = [];
  if (message.reasoning) content.push({ type: 'thinking', thinking: message.reasoning });
  if (message.content) content.push(textBlock(message.content));
  const made = message.tool_calls ?? [];
  content.push(...made.map(({ id, name, arguments: given }) => ({ type: 'toolCall', id, name, arguments: given })));
  const { input_tokens: input = 0, output_tokens: output = 0 } = usage ?? {};
  const { cached_input_tokens: cacheRead = 0, cached_write_tokens: cacheWrite = 0 } = usage ?? {};
  const used = {
    input: input - cacheRead - cacheWrite, output, cacheRead, cacheWrite, totalTokens: input + output,
    cost: { ...NOTHING_USED.cost, total: cost ?? 0 },
  };
  const answer = {
    role: 'assistant', content, api: model.api, provider: model.provider, model: model.id, usage: used,
    stopReason: made.length > 0 ? 'toolUse' : 'stop', timestamp: Date.now(),
  };
  if (error) Object.assign(answer, { stopReason: cancelled ? 'aborted' : 'error', errorMessage: error });
  return answer;
}

/** Returns the address of a call, if the extension chose another one than the host's. */
function endpointOf(model, api, headers) {
  if (!model.baseUrl || (model.baseUrl === baseUrlOf(model) && api === model.api)) return undefined;
  const protocol = PROTOCOLS[api];
  if (!protocol) throw new Error(`the API \`${api}\` is not supported; expected one of ${supported}`);
  return { service: protocol, base_url: model.baseUrl, headers: { ...model.headers, ...headers } };
}

/**
 * Calls a model through the host. `api` is the protocol, if it is not the model's own. Like pi's functions, this never
 * rejects.
 */
export async function callModel(model, context, options = {}, api = model?.api) {
  try {
    return answerOf(model, await ask(model, context, options, api));
  } catch (error) {
    return answerOf(model ?? {}, { error: error instanceof Error ? error.message : String(error) });
  }
}

async function ask(model, context, options, api) {
  if (!model?.id) throw new TypeError('no model was given; `getModel` and `find` return undefined for an unknown model');
  const host = hostNow();
  if (!host) throw new Error('models can only be called by an extension');
  const call = calls?.getStore();
  const signals = [options.signal, call?.isOver ? undefined : call?.signal].filter(Boolean);
  if (signals.some((signal) => signal.aborted)) return { error: 'the call was cancelled', cancelled: true };
  const endpoint = endpointOf(model, api, options.headers);
  // The host has the key of the user's settings itself, which may differ from the one in the environment.
  const isOfHost = options.apiKey === HOST_KEY || (!endpoint && options.apiKey === keyOf(model.provider));
  const level = options.reasoning ?? options.reasoningEffort;
  const id = crypto.randomUUID();
  let isOpen = true;
  const asked = host.ask('model/call', {
    model: { provider: ownName(model.provider), id: model.id },
    messages: messagesOf(context ?? {}),
    tools: (context?.tools ?? []).map(({ parameters: schema, ...tool }) => ({ ...tool, schema })),
    max_output_tokens: options.maxTokens > 0 ? Math.floor(options.maxTokens) : undefined,
    thinking: LEVELS.has(level) ? level : undefined,
    api_key: isOfHost ? undefined : options.apiKey,
    endpoint,
    cancel_id: id,
    call: call && !call.isOver ? call.id : undefined,
    behind: call?.turn && [...call.turn],
  });
  const cancel = async () => {
    for (let tries = 0; isOpen && tries < MAX_CANCELLATIONS; tries += 1) {
      if ((await host.ask('model/cancel', { cancel_id: id }))?.cancelled) return;
    }
  };
  const onAbort = () => void cancel().catch(console.error);
  for (const signal of signals) signal.addEventListener('abort', onAbort, { once: true });
  try {
    return await asked;
  } finally {
    isOpen = false;
    for (const signal of signals) signal.removeEventListener('abort', onAbort);
  }
}
