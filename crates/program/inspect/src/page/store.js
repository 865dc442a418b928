// Groups records of a journal into rows: a dispatch with its runs is one row, and every other record is one.
//
// Rows are light: texts that repeat are shared, and each value that can be filtered has a number.

/** The values of one facet, such as the names of all events, each with its number. */
export class Values {
  list = [];
  #numbers = new Map();

  /** Returns the number of a value, which gets one if it is new. */
  number(value) {
    const known = this.#numbers.get(value);
    if (known !== undefined) return known;
    this.#numbers.set(value, this.list.length);
    this.list.push(value);
    return this.list.length - 1;
  }

  /** Returns the number of a value, or -1 if no row has it. */
  find(value) {
    return this.#numbers.get(value) ?? -1;
  }
}

/** The outcomes of a dispatch, the strongest first. */
export const OUTCOMES = ['deny', 'block', 'ask', 'rewrite', 'handled', 'allow', 'none'];
/** The states of runs. `let_through` means that the run failed and the operation continued. */
export const STATUSES = ['let_through', 'failed', 'timed_out', 'cancelled', 'skipped', 'completed'];

const LET_THROUGH = STATUSES.indexOf('let_through');
const FAILED = STATUSES.indexOf('failed');
const NONE = OUTCOMES.indexOf('none');
const REWRITE = OUTCOMES.indexOf('rewrite');
const NO_RUNS = [];

/** The event of rows that are model calls. */
export const MODEL_CALL = 'model_call';

/** The most rows and the most dispatches without an end that are kept. */
const MAX_ROWS = 250_000;
const MAX_OPEN = 10_000;
/** The part of the rows that is dropped when there are too many, so that it happens seldom. */
const DROPPED_PART = 10;

function outcomeOf({ permission, stopped, rewritten }, runs) {
  if (permission === 'deny') return 'deny';
  if (stopped) return 'block';
  if (permission === 'ask') return 'ask';
  if (rewritten?.length > 0) return 'rewrite';
  if (runs.some((run) => run.effect === 'handled')) return 'handled';
  return permission === 'allow' ? 'allow' : 'none';
}

/** Says what the user did with an exception. */
const exceptionOf = ({ action, id, user, exception }) => {
  const hook = exception ? ` for ${exception.hook}` : '';
  const end = exception?.expires_at ? `, until ${exception.expires_at}` : '';
  return `${action} ${id}${hook}${user ? ` by ${user}` : ''}${action === 'granted' ? end : ''}`;
};

/** Says which hooks a reload has added, changed and removed. */
const changesOf = (record) =>
  ['added', 'changed', 'removed']
    .filter((kind) => record[kind]?.length > 0)
    .map((kind) => `${kind}: ${record[kind].join(', ')}`)
    .join('; ');

export class Store {
  rows = [];
  /** The number of rows that were dropped, of records of an unknown kind, and of lines that cannot be read. */
  dropped = 0;
  unknown = 0;
  unreadable = 0;
  /** The number of operations that continued although a hook failed. Dropped rows count. */
  letThrough = 0;
  facets = {
    outcome: new Values(),
    event: new Values(),
    hook: new Values(),
    agent: new Values(),
    session: new Values(),
    tool: new Values(),
    status: new Values(),
  };
  #open = new Map();
  #texts = new Map();
  #serial = 0;
  #maxRows;

  constructor({ maxRows = MAX_ROWS } = {}) {
    this.#maxRows = maxRows;
    for (const outcome of OUTCOMES) this.facets.outcome.number(outcome);
    for (const status of STATUSES) this.facets.status.number(status);
  }

  /** Adds a record. Returns the row that it completes, or `null`. */
  add(record) {
    if (record === null) {
      this.unreadable += 1;
      return null;
    }
    if (record.record === 'run') {
      this.#addRun(record);
      return null;
    }
    const row = this.#rowOf(record);
    if (!row) {
      this.unknown += 1;
      return null;
    }
    if (row.letThrough) this.letThrough += 1;
    this.rows.push(row);
    return row;
  }

  /** Drops the oldest rows if there are too many. Returns how many. */
  trim() {
    if (this.rows.length <= this.#maxRows) return 0;
    const count = this.rows.length - this.#maxRows + Math.floor(this.#maxRows / DROPPED_PART);
    this.rows.splice(0, count);
    this.dropped += count;
    return count;
  }

  /** Returns the newest row with a key. */
  find(key) {
    return this.rows.findLast((row) => row.key === key) ?? null;
  }

  #addRun(record) {
    const runs = this.#open.get(record.event_id);
    if (runs) runs.push(this.#runOf(record));
    else this.#open.set(record.event_id, [this.#runOf(record)]);
    // A dispatch that was cut off has no end. Maps keep the order, so the first is the oldest.
    if (this.#open.size > MAX_OPEN) this.#open.delete(this.#open.keys().next().value);
  }

  #runOf(record) {
    const hook = this.#share(record.hook);
    return {
      hook,
      hookNumber: this.facets.hook.number(hook),
      source: this.#share(record.source ?? ''),
      handler: this.#share(record.handler ?? ''),
      status: this.#share(record.status ?? 'completed'),
      effect: this.#share(record.effect ?? 'none'),
      cause: record.cause ?? null,
      reason: record.reason ?? null,
      letThrough: record.let_through === true,
      contextBytes: record.context_bytes ?? 0,
      duration: record.duration_ms ?? 0,
      phase: record.phase ? this.#share(record.phase) : null,
      started: record.started_ms ?? null,
      steps: record.steps ?? NO_RUNS,
      problems: record.problems ?? NO_RUNS,
    };
  }

  #rowOf(record) {
    switch (record.record) {
      case 'dispatch':
        return this.#dispatchRow(record);
      case 'host':
        return this.#hostRow(record);
      case 'source':
        return this.#row(record, { event: 'source', subject: record.path, reason: record.action });
      case 'exception':
        return this.#row(record, {
          event: 'exception',
          subject: record.exception?.tool ?? null,
          reason: exceptionOf(record),
        });
      case 'output':
        return this.#row(record, { event: 'output', subject: record.worker, reason: record.line });
      case 'reload':
        return this.#row(record, { event: 'reload', subject: 'hooks', reason: record.problem ?? changesOf(record) });
      case 'model_call':
        return this.#modelCallRow(record);
      default:
        return null;
    }
  }

  #dispatchRow(record) {
    const runs = this.#open.get(record.event_id) ?? NO_RUNS;
    this.#open.delete(record.event_id);
    const failures = record.failures ?? NO_RUNS;
    const row = this.#row(record, {
      key: record.event_id,
      event: record.event,
      subject: record.subject,
      agent: record.agent,
      session: record.session_id,
      tool: record.tool_use_id ? record.subject : null,
      reason: record.reason,
      outcome: outcomeOf(record, runs),
    });
    const isLetThrough = runs.some((run) => run.letThrough) || failures.some((failure) => failure.let_through);
    const skipped = runs.filter((run) => run.status === 'skipped').length;
    Object.assign(row, {
      runs,
      toolUse: record.tool_use_id ?? null,
      sequence: record.sequence ?? null,
      permission: record.permission ?? 'none',
      isStopped: record.stopped === true,
      rewritten: record.rewritten ?? NO_RUNS,
      failures,
      extra: record.extra ?? null,
      originExtra: record.origin_extra ?? null,
      planned: record.hooks ?? runs.length,
      skipped,
      ran: (runs.length > 0 ? runs.length : (record.hooks ?? 0)) - skipped,
      failed: failures.length || runs.filter((run) => isFailure(run.status)).length,
      letThrough: isLetThrough,
      hookNumbers: runs.length > 0 ? [...new Set(runs.map((run) => run.hookNumber))] : NO_RUNS,
      statusMask: this.#statusMask(runs, failures, isLetThrough),
    });
    row.isRewritten = row.rewritten.length > 0 && !row.isStopped;
    // A question about a rewritten call has two outcomes.
    if (row.isRewritten) row.outcomeMask |= 1 << REWRITE;
    return row;
  }

  #hostRow(record) {
    const row = this.#row(record, {
      event: record.event,
      agent: record.host,
      session: record.session_id,
      reason: record.problem ?? record.downgrades?.join('; '),
    });
    row.downgrades = record.downgrades ?? NO_RUNS;
    row.problem = record.problem ?? null;
    row.failed = record.problem ? 1 : 0;
    row.letThrough = record.let_through === true;
    row.statusMask = (row.failed ? 1 << FAILED : 0) | (row.letThrough ? 1 << LET_THROUGH : 0);
    return row;
  }

  #modelCallRow(record) {
    const { input_tokens: input, output_tokens: output = 0 } = record.usage ?? {};
    const tokens = input === undefined ? null : `${input} tokens in, ${output} out`;
    const row = this.#row(record, {
      event: MODEL_CALL,
      subject: record.model,
      agent: record.agent,
      session: record.session_id,
      reason: record.error ?? tokens,
    });
    // The record has the time at which the call ended.
    row.at = Math.max(0, row.at - row.duration);
    row.tokens = input === undefined ? null : { input, output };
    row.failed = record.error ? 1 : 0;
    row.statusMask = record.error ? 1 << FAILED : 0;
    row.cost = record.cost ?? null;
    return row;
  }

  /** Creates a row of any kind. All rows have the same keys in the same order, which makes loops over them fast. */
  #row(record, { key, event, subject, agent, session, tool, reason, outcome = 'none' }) {
    const at = Date.parse(record.timestamp);
    const { facets } = this;
    this.#serial += 1;
    return {
      serial: this.#serial,
      kind: record.record,
      key: key ?? `${record.record}-${this.#serial}`,
      at: Number.isNaN(at) ? 0 : at,
      event: this.#share(event ?? ''),
      subject: subject == null ? null : this.#share(subject),
      agent: this.#share(agent ?? ''),
      session: session ? this.#share(session) : null,
      tool: tool ? this.#share(tool) : null,
      reason: reason ?? null,
      outcome,
      duration: record.duration_ms ?? 0,
      outcomeMask: record.record === 'dispatch' ? 1 << OUTCOMES.indexOf(outcome) : 1 << NONE,
      eventNumber: facets.event.number(event ?? ''),
      agentNumber: agent ? facets.agent.number(agent) : -1,
      sessionNumber: session ? facets.session.number(session) : -1,
      toolNumber: tool ? facets.tool.number(tool) : -1,
      hookNumbers: NO_RUNS,
      statusMask: 0,
      runs: NO_RUNS,
      rewritten: NO_RUNS,
      failures: NO_RUNS,
      ran: 0,
      skipped: 0,
      failed: 0,
      planned: 0,
      letThrough: false,
      isRewritten: false,
      isStopped: false,
      toolUse: null,
      tokens: null,
      cost: null,
      text: null,
    };
  }

  #statusMask(runs, failures, isLetThrough) {
    let mask = isLetThrough ? 1 << LET_THROUGH : 0;
    for (const { status } of runs) {
      const number = STATUSES.indexOf(status);
      if (number >= 0) mask |= 1 << number;
    }
    const hasFailedRun = runs.some((run) => isFailure(run.status));
    return failures.length > 0 && !hasFailedRun ? mask | (1 << FAILED) : mask;
  }

  /** Returns one copy of a text for all rows that have it. Long texts are seldom equal. */
  #share(text) {
    if (text.length > 200) return text;
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size > 50_000) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}

/** Returns whether a run with this status did not answer although it was started. */
export const isFailure = (status) => status === 'failed' || status === 'timed_out';
