// Hooks for AI agents, in JavaScript.
//
//   import { deny, on } from 'tenterhook';
//
//   on('pre_tool_use', { matcher: 'shell' }, function noSudo(event) {
//     if (event.tool_input.cmd?.startsWith('sudo ')) return deny('no sudo here');
//   });
//
// A handler gets one event and returns nothing, or one effect, or several joined with `both(a, b)`; it may be async. Its second argument has
// `signal`, which is aborted when nobody waits for the answer any more. Events and what they honour are in the catalogue of
// Tenterhook's documentation.

/** What a handler answers. */
export class Effect {
  constructor(parts) {
    Object.assign(this, parts);
  }
}

const STRENGTH = { allow: 1, ask: 2, deny: 3 };

/** Joins effects; of several permissions the strongest one counts. */
export function both(...effects) {
  const joined = new Effect({});
  for (const effect of effects) {
    for (const [key, value] of Object.entries(effect)) {
      if (!(key in joined)) joined[key] = value;
      else if (Array.isArray(value)) joined[key] = [...joined[key], ...value];
      else if (key === 'permission') {
        if (STRENGTH[value.permission] > STRENGTH[joined[key].permission]) joined[key] = value;
      } else if (typeof value === 'object') joined[key] = { ...joined[key], ...value };
    }
  }
  return joined;
}

/** Lets the operation go on without a question, unless another hook says ask or deny. */
export const allow = () => new Effect({ permission: { permission: 'allow' } });
/** Leaves the operation to the user. */
export const ask = (reason) => new Effect({ permission: { permission: 'ask', reason: String(reason) } });
/** Denies the operation; the model is told the reason. */
export const deny = (reason) => new Effect({ permission: { permission: 'deny', reason: String(reason) } });
/** Stops the operation. */
export const block = (reason) => new Effect({ block: String(reason) });
/** Changes fields of the event: `patch({ tool_input: { cmd: 'ls' } })`. */
export const patch = (fields) => new Effect({ rewrite: fields });
/** Adds text for the model. */
export const context = (text) => new Effect({ context: [String(text)] });
/** Adds a message of the user that keeps the agent going. */
export const followUp = (text) => new Effect({ follow_up: [String(text)] });
/** Adds a text for the human only. */
export const notice = (text) => new Effect({ notices: [String(text)] });
/** Ends the agent's run after this step. */
export const stopRun = (reason) => new Effect({ stop_run: String(reason) });
/** Says that the hook did the work itself. */
export const handled = () => new Effect({ handled: true });

let registered = [];

/** Where hooks go: into the list of `take`, unless the worker has said otherwise. */
let deliver = (hooks) => registered.push(...hooks);

/**
 * Registers a handler for an event, or for each of several. `options.matcher` is a name, names joined by bars, or a regular expression, for
 * what the event is about: the tool's name. Handlers of a higher `options.priority` run first.
 */
export function on(event, options, handler) {
  const events = [event].flat();
  if (events.length === 0) throw new TypeError('on([]) got an empty list of events, expected at least one');
  const kind = events.map((name) => typeof name).find((found) => found !== 'string');
  if (kind) throw new TypeError(`on() got ${kind} as its event, expected the name of an event or a list of names`);
  if (typeof options === 'function') [options, handler] = [{}, options];
  if (typeof handler !== 'function') {
    throw new TypeError(`on('${event}') got a ${typeof handler} as its handler, expected a function`);
  }
  deliver(
    events.map((name) => ({
      name: handler.name || 'handler',
      event: name,
      matcher: options?.matcher ?? null,
      priority: options?.priority ?? 0,
      handler,
    })),
  );
}

/** Returns what was registered since the last call. For those who load a script without a worker. */
export function take() {
  const taken = registered;
  registered = [];
  return taken;
}

/** Says where hooks go from now on. For the worker. */
export function deliverTo(receive) {
  deliver = receive;
}
