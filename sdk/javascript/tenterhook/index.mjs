// Hooks for AI agents, in JavaScript.
//
//   import { deny, on } from 'tenterhook';
//
//   on('pre_tool_use', { matcher: 'shell' }, function noSudo(event) {
//     if (event.tool_input.cmd?.startsWith('sudo ')) return deny('no sudo here');
//   });
//
// A handler receives one event and returns nothing, one effect, or several effects joined with
// `both(a, b)`. It may be async. Its second argument has the property `signal`, which is aborted
// when no one waits for the answer any more. The event catalogue in Tenterhook's documentation
// lists all events and the effects that each event honours.

/** What a handler answers. */
export class Effect {
  constructor(parts) {
    Object.assign(this, parts);
  }
}

const STRENGTH = { allow: 1, ask: 2, deny: 3 };

/** Combines effects. Of several permissions, the strongest one counts. */
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

/** Allows the operation without a question, unless another hook asks or denies. */
export const allow = () => new Effect({ permission: { permission: 'allow' } });
/** Leaves the decision to the user. */
export const ask = (reason) => new Effect({ permission: { permission: 'ask', reason: String(reason) } });
/** Denies the operation. The model sees the reason. */
export const deny = (reason) => new Effect({ permission: { permission: 'deny', reason: String(reason) } });
/** Stops the operation. */
export const block = (reason) => new Effect({ block: String(reason) });
/** Changes fields of the event, for example `patch({ tool_input: { cmd: 'ls' } })`. */
export const patch = (fields) => new Effect({ rewrite: fields });
/** Adds text for the model. */
export const context = (text) => new Effect({ context: [String(text)] });
/** Adds a user message that keeps the agent working. */
export const followUp = (text) => new Effect({ follow_up: [String(text)] });
/** Adds a notice for the user. The model does not see it. */
export const notice = (text) => new Effect({ notices: [String(text)] });
/** Ends the agent's run after this step. */
export const stopRun = (reason) => new Effect({ stop_run: String(reason) });
/** Declares that the hook did the work itself, so the agent must not do it. */
export const handled = () => new Effect({ handled: true });

let registered = [];

/** Receives registered hooks. By default they go into the list that `take` returns. */
let deliver = (hooks) => registered.push(...hooks);

/**
 * Registers a handler for one event or for several events. `options.matcher` selects events by their subject, which is the
 * tool's name for tool calls. It is a name, several names separated by `|`, or a regular expression. Handlers with a higher
 * `options.priority` run first.
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

/** Returns what was registered since the last call. For programs that load a script without a worker. */
export function take() {
  const taken = registered;
  registered = [];
  return taken;
}

/** Sets the function that receives hooks from now on. For the worker. */
export function deliverTo(receive) {
  deliver = receive;
}
