// Runs hooks without an agent: load a file, fire an event, and check the effects.

import path from 'node:path';
import { pathToFileURL } from 'node:url';

import { take } from 'tenterhook';

/** Loads a file of hooks in the same way as a worker. */
export async function load(file) {
  take();
  await import(pathToFileURL(path.resolve(file)).href);
  const hooks = take().sort((a, b) => b.priority - a.priority);
  return {
    names: hooks.map(({ name, event }) => [name, event]),
    /** Sends one event to the hooks and returns their effects. Hooks without an opinion add nothing. */
    async fire(event, payload = {}, subject = payload.tool_name) {
      const effects = [];
      for (const hook of hooks) {
        if (hook.event !== event || !matches(hook.matcher, subject)) continue;
        const effect = await hook.handler(payload, { signal: new AbortController().signal });
        if (effect === undefined || effect === null) continue;
        if (typeof effect !== 'object') {
          throw new TypeError(
            `${hook.name} returned a ${typeof effect}, expected nothing or what a function such as deny() or patch() returns`,
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
