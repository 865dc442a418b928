// Journals for tests: records that look like those of real sessions. The same seed makes the same journal.

/** A small generator of numbers from 0 up to 1. */
function numbers(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

const TOOLS = ['shell', 'read_file', 'edit_file', 'write_file', 'search', 'fetch'];
const HOOKS = {
  tool_input_transform: [['pin-versions', 'transform', '.tenterhook/hooks.yaml:4', 'script']],
  pre_tool_use: [
    ['no-sudo', 'main', '.tenterhook/hooks.yaml:12', 'builtin'],
    ['path-guard', 'main', '~/.config/tenterhook/hooks/guard.py:31', 'script'],
    ['ask-before-push', 'guard', '.tenterhook/hooks.yaml:19', 'command'],
    ['audit', 'observe', '~/.config/tenterhook/hooks.yaml:8', 'http'],
  ],
  post_tool_use: [
    ['format-code', 'main', '.tenterhook/hooks.yaml:27', 'command'],
    ['audit', 'observe', '~/.config/tenterhook/hooks.yaml:9', 'http'],
  ],
  user_prompt_submit: [['redact-secrets', 'transform', '~/.config/tenterhook/hooks.yaml:14', 'builtin']],
  message_receive: [['stt', 'transform', 'gateway.yaml', 'builtin']],
  turn_start: [['git-branch', 'main', '.tenterhook/hooks.yaml:33', 'command']],
  turn_end: [['notify', 'observe', '~/.config/tenterhook/hooks.yaml:21', 'command']],
};
const REASONS = ['`sudo` is not allowed here', 'writes outside the project need a person', 'this branch is protected'];
const BASE = Date.parse('2026-11-23T09:00:00.000Z');

export class Journal {
  records = [];
  #random;
  #at = BASE;
  #dispatches = 0;
  #sequences = new Map();

  constructor(seed = 1) {
    this.#random = numbers(seed);
  }

  #pick(list) {
    return list[Math.floor(this.#random() * list.length)];
  }

  #isLucky(part) {
    return this.#random() < part;
  }

  #id() {
    this.#dispatches += 1;
    const hex = this.#dispatches.toString(16).padStart(12, '0');
    return `01a20432-9f55-745f-b5f4-${hex}`;
  }

  /** Adds a dispatch with the runs of its hooks. `fields` replace those of the dispatch, `runs` those of the runs. */
  dispatch(event, fields = {}, changes = {}) {
    const id = fields.event_id ?? this.#id();
    const session = fields.session_id ?? 'session-1';
    const sequence = (this.#sequences.get(session) ?? 0) + 1;
    this.#sequences.set(session, sequence);
    let started = 0;
    const hooks = HOOKS[event] ?? [];
    const failures = [];
    for (const [hook, phase, source, handler] of hooks) {
      const duration = this.#duration(handler);
      const run = {
        record: 'run',
        v: 1,
        event_id: id,
        event,
        hook,
        source,
        handler,
        status: 'completed',
        effect: 'none',
        context_bytes: 0,
        duration_ms: duration,
        phase,
        started_ms: Number(started.toFixed(3)),
        ...changes[hook],
      };
      if (run.status === 'skipped') run.duration_ms = 0;
      if (run.status === 'failed' || run.status === 'timed_out') {
        failures.push({ hook, cause: run.cause ?? run.status, let_through: run.let_through === true });
      }
      if (phase !== 'observe') started += run.duration_ms + 0.05;
      this.records.push(run);
    }
    this.records.push({
      record: 'dispatch',
      v: 1,
      event_id: id,
      event,
      sequence,
      timestamp: new Date(this.#at).toISOString(),
      session_id: session,
      agent: 'root',
      permission: 'none',
      stopped: false,
      ...(failures.length > 0 ? { failures } : {}),
      hooks: hooks.length,
      duration_ms: Number((started + 0.2).toFixed(3)),
      ...fields,
    });
    this.#at += Math.ceil(started) + Math.floor(this.#random() * 900);
    return id;
  }

  #duration(handler) {
    const base = { builtin: 0.1, script: 2, command: 25, http: 60 }[handler];
    const slow = this.#isLucky(0.01) ? 40 : 1;
    return Number((base * slow * (0.5 + 2.5 * this.#random() ** 3)).toFixed(3));
  }

  /** Adds a record that is not a dispatch. */
  add(record) {
    this.records.push({ v: 1, timestamp: new Date(this.#at).toISOString(), ...record });
  }

  /** Adds a whole turn with a few tool calls, some of which are denied, rewritten or met by a failing hook. */
  turn(session, agent = 'root') {
    const origin = { session_id: session, agent };
    this.dispatch('user_prompt_submit', origin);
    this.dispatch('turn_start', origin, { 'git-branch': { effect: 'context', context_bytes: 48 } });
    const calls = 1 + Math.floor(this.#random() * 4);
    for (let call = 1; call <= calls; call += 1)
      this.#toolCall({ ...origin, agent: this.#isLucky(0.1) ? 'reviewer' : agent });
    this.dispatch(
      'turn_end',
      origin,
      this.#isLucky(0.02) ? { notify: { status: 'failed', cause: '`notify-send` was not found' } } : {},
    );
    this.#at += 4000 + Math.floor(this.#random() * 60_000);
  }

  #toolCall(origin) {
    const call = { ...origin, subject: this.#pick(TOOLS), tool_use_id: `call_${this.#dispatches}_1` };
    if (this.#isLucky(0.2)) {
      this.dispatch(
        'tool_input_transform',
        { ...call, rewritten: ['tool_input'] },
        { 'pin-versions': { effect: 'rewrite' } },
      );
    }
    if (this.#isLucky(0.06)) {
      const reason = this.#pick(REASONS);
      const skipped = { status: 'skipped', cause: 'skipped because of `no-sudo`' };
      this.dispatch(
        'pre_tool_use',
        { ...call, permission: 'deny', stopped: true, reason },
        {
          'no-sudo': { effect: 'deny', reason },
          'ask-before-push': skipped,
        },
      );
      return;
    }
    if (this.#isLucky(0.015)) {
      this.dispatch('pre_tool_use', call, {
        'path-guard': {
          status: 'timed_out',
          cause: 'no answer within 5 s',
          let_through: true,
          duration_ms: 5001.2,
        },
      });
    } else if (this.#isLucky(0.04)) {
      this.dispatch(
        'pre_tool_use',
        { ...call, permission: 'ask', reason: 'pushes need a person' },
        {
          'path-guard': { effect: 'allow' },
          'ask-before-push': { effect: 'ask', reason: 'pushes need a person' },
        },
      );
    } else this.dispatch('pre_tool_use', { ...call, permission: 'allow' }, { 'path-guard': { effect: 'allow' } });
    this.dispatch(
      'post_tool_use',
      call,
      this.#isLucky(0.3) ? { 'format-code': { effect: 'context', context_bytes: 312 } } : {},
    );
  }

  /** Returns the records as the text of a journal. */
  text() {
    return this.records.map((record) => `${JSON.stringify(record)}\n`).join('');
  }
}

/** Returns a journal with at least `count` records, in several sessions. */
export function manyRecords(count, seed = 7) {
  const journal = new Journal(seed);
  for (let turn = 0; journal.records.length < count; turn += 1) {
    const number = Math.floor(turn / 25) * 3 + (turn % 3) + 1;
    journal.turn(`01a2${String(number).padStart(4, '0')}-70b3-9d4d-38b086813b63`);
  }
  return journal;
}
