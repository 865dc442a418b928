// Tries hooks without an agent: load a file, fire an event, look at the effects.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { take } from 'tenterhook';

/** Loads a file of hooks as a worker does. */
export async function load(file) {
  take();
  await import(pathToFileURL(path.resolve(file)).href);
  const hooks = take().sort((a, b) => b.priority - a.priority);
  return {
    names: hooks.map(({ name, event }) => [name, event]),
    /** Sends one event through the hooks and returns their effects, without those that said nothing. */
    async fire(event, payload = {}, subject = payload.tool_name) {
      const effects = [];
      for (const hook of hooks) {
        if (hook.event !== event || !matches(hook.matcher, subject)) continue;
        const effect = await hook.handler(payload, { signal: new AbortController().signal });
        if (effect === undefined || effect === null) continue;
        if (typeof effect !== 'object') {
          throw new TypeError(
            `${hook.name} returned a ${typeof effect}, expected nothing or what deny(), patch() and the like return`,
          );
        }
        effects.push(effect);
      }
      return effects;
    },
  };
}

function matches(matcher, subject) {
  if (!matcher || matcher === '*') return true;
  return subject !== undefined && new RegExp(`^(?:${matcher})$`).test(subject);
}
