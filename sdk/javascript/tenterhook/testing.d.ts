import type { Effect, Event } from 'tenterhook';

/** The hooks of one file. */
export interface Hooks {
  /** The names of the hooks with their events, in the order in which they run. */
  readonly names: [string, string][];
  /** Sends one event through the hooks and returns their effects, without those that said nothing. `subject` is what matchers look at. */
  fire(event: string, payload?: Event, subject?: string): Promise<Effect[]>;
}

/** Loads a file of hooks as a worker does. */
export function load(file: string): Promise<Hooks>;
