import type { Effect, Event } from 'tenterhook';

/** The hooks of one file. */
export interface Hooks {
  /** The names of the hooks with their events, in the order in which they run. */
  readonly names: [string, string][];
  /** Sends one event to the hooks and returns their effects. Hooks without an opinion add nothing. `subject` is what matchers check. */
  fire(event: string, payload?: Event, subject?: string): Promise<Effect[]>;
}

/** Loads a file of hooks in the same way as a worker. */
export function load(file: string): Promise<Hooks>;
