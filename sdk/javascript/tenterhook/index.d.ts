/** What a handler answers. */
export class Effect {
  constructor(parts: Record<string, unknown>);
  [key: string]: unknown;
}

/** One event: the keys that Tenterhook's documentation names for it. */
export type Event = Record<string, any>;

/** What a handler gets beside the event. */
export interface Context {
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export type Handler = (
  event: Event,
  context: Context,
) => Effect | object | null | undefined | void | Promise<Effect | object | null | undefined | void>;

export interface Options {
  /** A name, names joined by bars, or a regular expression, for what the event is about: the tool's name. */
  matcher?: string;
  /** Higher runs first. The default is 0. */
  priority?: number;
}

/** Registers a handler for an event, or for each of several. */
export function on(event: string | string[], handler: Handler): void;
export function on(event: string | string[], options: Options, handler: Handler): void;

/** Joins effects; of several permissions the strongest one counts. */
export function both(...effects: Effect[]): Effect;
/** Lets the operation go on without a question, unless another hook says ask or deny. */
export function allow(): Effect;
/** Leaves the operation to the user. */
export function ask(reason: string): Effect;
/** Denies the operation; the model is told the reason. */
export function deny(reason: string): Effect;
/** Stops the operation. */
export function block(reason: string): Effect;
/** Changes fields of the event. */
export function patch(fields: Record<string, unknown>): Effect;
/** Adds text for the model. */
export function context(text: string): Effect;
/** Adds a message of the user that keeps the agent going. */
export function followUp(text: string): Effect;
/** Adds a text for the human only. */
export function notice(text: string): Effect;
/** Ends the agent's run after this step. */
export function stopRun(reason: string): Effect;
/** Says that the hook did the work itself. */
export function handled(): Effect;
