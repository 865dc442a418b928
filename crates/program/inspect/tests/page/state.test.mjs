// What the inspector makes of a journal: `node --test crates/program/inspect/tests/page/state.test.mjs`. It needs no browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { explainDecision } from '../../src/page/decision.js';
import { changedFields, changedPart, lineDiff, versions } from '../../src/page/diff.js';
import { facetValues, newFilter, parseQuery, Query, SAVED_VIEWS, writeQuery } from '../../src/page/filter.js';
import { ago, duration, money, shorten } from '../../src/page/format.js';
import { LineSplitter, MessageBuilder, parseRecord } from '../../src/page/lines.js';
import { listSessions, sessionTree } from '../../src/page/sessions.js';
import {
  density,
  eventStats,
  histogram,
  hookStats,
  percentile,
  stepStats,
  turnShare,
  withPlannedHooks,
} from '../../src/page/stats.js';
import { Store } from '../../src/page/store.js';
import { Journal, manyRecords } from './journal.mjs';

function storeOf(records, options) {
  const store = new Store(options);
  for (const record of records) store.add(record);
  return store;
}

/** A store with one dispatch of `pre_tool_use`. */
function oneDispatch(fields, changes) {
  const journal = new Journal();
  journal.dispatch('pre_tool_use', { subject: 'shell', tool_use_id: 'call_1', ...fields }, changes);
  return storeOf(journal.records);
}

test('voice and model calls are in the numbers of hooks and sessions', () => {
  const journal = new Journal();
  const steps = [{ name: 'transcription', duration_ms: 400 }];
  const problems = ['not transcribed: no result within 1s'];
  journal.dispatch('message_receive', { session_id: 's' }, { stt: { steps, problems } });
  const call = { record: 'model_call', model: 'acme/large', session_id: 's' };
  journal.add({ ...call, usage: { input_tokens: 10, output_tokens: 5 }, cost: 0.25 });
  journal.add({ ...call, error: 'busy' });
  journal.add({ ...call, duration_ms: 500 });
  const store = storeOf(journal.records);
  const { rows } = store;
  assert.equal(new Query(newFilter({ q: 'not transcribed' }), store).run(rows).rows.length, 1);
  assert.equal(hookStats(rows)[0].lastError, problems[0]);
  const [ended, began] = [journal.records.at(-1).timestamp, rows.at(-1).at];
  assert.equal(Date.parse(ended) - began, 500, 'a model call begins before its record is written');
  const [{ name, hook, count, p50 }] = stepStats(rows);
  assert.deepEqual([name, hook, count, p50], ['transcription', 'stt', 1, 400]);
  assert.deepEqual(explainDecision(rows[0])[0], { tone: 'warn', text: `\`stt\`: ${problems[0]}.` });
  const [{ modelCalls, input, output, cost, unpriced }] = listSessions(rows);
  assert.deepEqual([modelCalls, input, output, cost, unpriced], [3, 10, 5, 0.25, 2]);
  assert.deepEqual([money(0), money(0.00123456), money(12.345)], ['$0', '$0.00123', '$12.35']);
});

test('lines are found in chunks of any size', () => {
  const text = '{"record":"run"}\n\nüäö\nlast';
  for (let size = 1; size < 8; size += 1) {
    const splitter = new LineSplitter();
    const lines = [];
    for (let at = 0; at < text.length; at += size) lines.push(...splitter.push(text.slice(at, at + size)));
    assert.deepEqual([...lines, ...splitter.end()], ['{"record":"run"}', '', 'üäö', 'last']);
    assert.deepEqual(splitter.end(), []);
  }
});

test('a line that is not a record is counted and does not end the reading', () => {
  const lines = [
    '{"record":"output","worker":"w","line":"x"}',
    '{"record":',
    '[]',
    'null',
    '7',
    '{"record":"future"}',
    '{}',
  ];
  const store = storeOf(lines.map(parseRecord));
  assert.deepEqual([store.rows.length, store.unreadable, store.unknown], [1, 5, 1]);
});

test('messages of a stream have an id, a kind and data, and comments are ignored', () => {
  const builder = new MessageBuilder();
  const lines = [
    ': keep-alive',
    '',
    'id: 7',
    'event: record',
    'data: {"a":',
    'data: 1}',
    '',
    'data:x\r',
    '\r',
    'event: gap',
    '',
  ];
  const messages = lines.map((line) => builder.push(line)).filter(Boolean);
  assert.deepEqual(messages, [
    { id: '7', event: 'record', data: '{"a":\n1}' },
    { id: '7', event: 'message', data: 'x' },
  ]);
});

test('the runs of a dispatch become one row', () => {
  const store = oneDispatch(
    { permission: 'deny', stopped: true, reason: 'no' },
    {
      'no-sudo': { effect: 'deny' },
      'ask-before-push': { status: 'skipped', cause: 'skipped because of `no-sudo`' },
    },
  );
  const [row] = store.rows;
  assert.equal(store.rows.length, 1);
  assert.deepEqual(
    row.runs.map((run) => run.hook),
    ['no-sudo', 'path-guard', 'ask-before-push', 'audit'],
  );
  assert.deepEqual([row.outcome, row.ran, row.skipped, row.failed, row.tool], ['deny', 3, 1, 0, 'shell']);
  assert.deepEqual(
    row.runs.map((run) => run.phase),
    ['main', 'main', 'guard', 'observe'],
  );
});

test('each dispatch has the strongest outcome', () => {
  const outcomes = [
    [{}, 'none'],
    [{ permission: 'allow' }, 'allow'],
    [{ permission: 'ask' }, 'ask'],
    [{ permission: 'deny', stopped: true }, 'deny'],
    [{ stopped: true }, 'block'],
    [{ rewritten: ['tool_input'] }, 'rewrite'],
    [{ permission: 'allow', rewritten: ['tool_input'] }, 'rewrite'],
    [{ stopped: true, rewritten: ['tool_input'] }, 'block'],
  ];
  for (const [fields, outcome] of outcomes) assert.equal(oneDispatch(fields).rows[0].outcome, outcome);
  assert.equal(oneDispatch({}, { 'no-sudo': { effect: 'handled' } }).rows[0].outcome, 'handled');
});

// I3
test('a gate that was let through is counted once and its row is marked', () => {
  const failed = { status: 'failed', cause: 'exit status 3', let_through: true };
  const store = oneDispatch({}, { 'no-sudo': failed, 'path-guard': failed });
  assert.equal(store.letThrough, 1);
  assert.deepEqual([store.rows[0].letThrough, store.rows[0].failed], [true, 2]);
  store.add({
    record: 'host',
    host: 'claude',
    event: 'PreToolUse',
    problem: 'the daemon did not answer',
    let_through: true,
  });
  assert.equal(store.letThrough, 2);
  const view = SAVED_VIEWS.find(({ name }) => name === 'Let through');
  assert.equal(new Query(newFilter(view.filter), store).run(store.rows).rows.length, 2);
});

test('a dispatch whose runs are missing still shows its failures', () => {
  const store = storeOf([
    {
      record: 'dispatch',
      event_id: 'e',
      event: 'pre_tool_use',
      timestamp: '2026-11-23T09:00:00Z',
      session_id: 's',
      agent: 'a',
      permission: 'none',
      stopped: false,
      failures: [{ hook: 'h', cause: 'c', let_through: true }],
      hooks: 2,
      duration_ms: 1,
    },
  ]);
  assert.equal(store.letThrough, 1);
  assert.deepEqual([store.rows[0].ran, store.rows[0].failed], [2, 1]);
});

test('the oldest rows are dropped when there are too many, and the counter keeps them', () => {
  const store = new Store({ maxRows: 100 });
  for (const record of manyRecords(1000).records) {
    store.add(record);
    store.trim();
  }
  assert.ok(store.rows.length <= 100 && store.dropped > 50, `${store.rows.length}, ${store.dropped}`);
  assert.equal(store.rows.at(-1).serial, store.rows.length + store.dropped);
});

test('runs without a dispatch do not stay for ever', () => {
  const store = new Store();
  for (let id = 0; id < 20_000; id += 1) store.add({ record: 'run', event_id: `e${id}`, hook: 'h' });
  const dispatch = (id) => store.add({ record: 'dispatch', event_id: id, event: 'stop', timestamp: '', hooks: 1 });
  assert.equal(dispatch('e0').runs.length, 0);
  assert.equal(dispatch('e19999').runs.length, 1);
});

test('what is shown survives in the address', () => {
  const filter = newFilter({
    outcome: ['deny', 'block'],
    hook: ['a,b', '50% off', 'x%2Cy'],
    from: Date.parse('2026-11-23T09:00:00.000Z'),
    min: 1000,
    q: 'a & b',
  });
  const query = writeQuery({ filter, view: 'hooks', open: 'e-1' });
  assert.deepEqual(parseQuery(query), { filter, view: 'hooks', open: 'e-1' });
  assert.ok(query.includes('outcome=deny,block'), query);
  assert.equal(writeQuery(parseQuery('?unknown=1&view=nothing&min=x&from=never')), '');
});

test('a filter shows what fits all of its facets, and each facet counts what it could show', () => {
  const { records } = manyRecords(3000);
  const store = storeOf(records);
  const filter = newFilter({ outcome: ['deny'], tool: ['shell', 'fetch'] });
  const query = new Query(filter, store);
  const { rows, counts } = query.run(store.rows);
  const expected = store.rows.filter((row) => row.outcome === 'deny' && ['shell', 'fetch'].includes(row.tool));
  assert.deepEqual(rows, expected);
  assert.ok(rows.length > 0);
  const denied = store.rows.filter((row) => row.outcome === 'deny');
  for (const { value, count } of facetValues('tool', query, counts.tool)) {
    assert.equal(count, denied.filter((row) => row.tool === value).length, value);
  }
  const ofTools = store.rows.filter((row) => ['shell', 'fetch'].includes(row.tool));
  const outcomes = facetValues('outcome', query, counts.outcome);
  assert.deepEqual(outcomes.map(({ value }) => value).slice(0, 2), ['deny', 'ask']);
  for (const { value, count } of outcomes)
    assert.equal(count, ofTools.filter((row) => row.outcome === value).length, value);
});

test('a filter of live rows gives the same as a filter of all rows', () => {
  const store = new Store();
  const query = new Query(newFilter({ status: ['failed', 'timed_out'], q: 'SHELL' }), store);
  const live = query.run([]);
  for (const record of manyRecords(3000).records) {
    const row = store.add(record);
    if (row) query.extend(live, [row], 0);
  }
  assert.deepEqual(live, query.run(store.rows));
});

test('a search looks at events, hooks, reasons, causes and ids, and needs every word', () => {
  const store = oneDispatch(
    { reason: 'Protected Branch', session_id: 'session-9' },
    { 'no-sudo': { cause: 'exit status 3' } },
  );
  const finds = (q) => new Query(newFilter({ q }), store).run(store.rows).rows.length === 1;
  for (const q of ['protected', 'BRANCH pre_tool', 'status 3', 'session-9', 'path-guard', 'call_1', ''])
    assert.ok(finds(q), q);
  assert.ok(!finds('protected nothing'));
});

test('a value in the address that no row has yet shows the rows that come later', () => {
  const store = new Store();
  const query = new Query(newFilter({ hook: ['no-sudo'] }), store);
  const journal = new Journal();
  journal.dispatch('pre_tool_use');
  journal.dispatch('turn_end');
  for (const record of journal.records) store.add(record);
  assert.deepEqual(
    query.run(store.rows).rows.map((row) => row.event),
    ['pre_tool_use'],
  );
});

// I2
test('two rewrites after each other show three versions', () => {
  const original = { tool_input: { cmd: 'npm i left-pad', cwd: '/' } };
  const afterA = { tool_input: { cmd: 'npm i left-pad@1.3.0', cwd: '/' } };
  const afterB = { tool_input: { cmd: 'npm i left-pad@1.3.0 --ignore-scripts', cwd: '/' } };
  const list = versions({
    original,
    final: afterB,
    steps: [
      { hook: 'pin', after: afterA },
      { hook: 'audit', after: null },
      { hook: 'no-scripts', after: afterB },
    ],
  });
  assert.deepEqual(
    list.map(({ label }) => label),
    ['Original', 'After pin', 'After no-scripts'],
  );
  assert.deepEqual(changedFields(list[0].payload, list[1].payload), [
    { path: 'tool_input.cmd', before: 'npm i left-pad', after: 'npm i left-pad@1.3.0' },
  ]);
  const part = changedPart('npm i left-pad', 'npm i left-pad@1.3.0');
  assert.deepEqual(part, { head: 'npm i left-pad', removed: '', added: '@1.3.0', tail: '' });
});

test('fields that came or went are changes, and lists of one length are compared by entry', () => {
  assert.deepEqual(changedFields({ a: 1, b: [1, { c: 2 }] }, { b: [1, { c: 3 }], d: null }), [
    { path: 'a', before: 1, after: undefined },
    { path: 'b[1].c', before: 2, after: 3 },
    { path: 'd', before: undefined, after: null },
  ]);
  assert.deepEqual(
    changedFields([1], [1, 2]).map(({ path }) => path),
    ['(all)'],
  );
  assert.deepEqual(changedFields({ a: {} }, { a: {} }), []);
});

test('a comparison of lines keeps what is common and hides what is far away', () => {
  const before = Array.from({ length: 30 }, (_, number) => `line ${number}`);
  const after = before.with(15, 'changed').toSpliced(3, 1);
  const lines = lineDiff(before.join('\n'), after.join('\n'));
  const changed = lines.filter(({ kind }) => kind === 'removed' || kind === 'added');
  assert.deepEqual(
    changed.map(({ kind, text }) => `${kind} ${text}`),
    ['removed line 3', 'removed line 15', 'added changed'],
  );
  assert.deepEqual(
    lines.filter(({ kind }) => kind === 'gap').map(({ text }) => text),
    ['5 unchanged lines', '11 unchanged lines'],
  );
});

test('a comparison of huge texts ends', () => {
  const long = (letter) => Array.from({ length: 5000 }, (_, number) => letter + number).join('\n');
  const started = performance.now();
  assert.equal(lineDiff(long('a'), long('b')).length, 10_000);
  assert.ok(performance.now() - started < 2000);
});

test('hooks have counts, percentiles and their last error', () => {
  const journal = new Journal();
  for (let run = 1; run <= 20; run += 1) journal.dispatch('turn_end', {}, { notify: { duration_ms: run } });
  journal.dispatch(
    'turn_end',
    {},
    { notify: { status: 'failed', cause: 'not found', let_through: true, duration_ms: 100 } },
  );
  journal.dispatch('turn_end', {}, { notify: { status: 'skipped', cause: 'x' } });
  const [hook] = hookStats(storeOf(journal.records).rows);
  const { event, runs, skipped, failures, letThrough, lastError, p50, p95, max } = hook;
  assert.deepEqual(
    { event, runs, skipped, failures, letThrough, lastError, p50, p95, max },
    {
      event: 'turn_end',
      runs: 21,
      skipped: 1,
      failures: 1,
      letThrough: 1,
      lastError: 'not found',
      p50: 11,
      p95: 20,
      max: 100,
    },
  );
});

test('hooks in force that never ran are listed in their order', () => {
  const journal = new Journal();
  journal.dispatch('turn_end');
  const stats = hookStats(storeOf(journal.records).rows);
  const list = {
    hooks: [
      { id: 'never', event: 'turn_end', kind: 'command', source: { path: 'hooks.yaml', line: 3 } },
      { id: 'notify', event: null, kind: 'command' },
    ],
  };
  const joined = withPlannedHooks(stats, list);
  assert.deepEqual(
    joined.map(({ hook, runs, source }) => [hook, runs, source]),
    [
      ['never', 0, 'hooks.yaml:3'],
      ['notify', 1, '~/.config/tenterhook/hooks.yaml:21'],
    ],
  );
  assert.equal(withPlannedHooks(stats, null).length, 1);
});

test('percentiles and histograms of few and of no durations', () => {
  assert.ok(Number.isNaN(percentile([], 0.5)));
  assert.equal(percentile([7], 0.95), 7);
  assert.equal(
    histogram([]).reduce((sum, number) => sum + number),
    0,
  );
  const counts = histogram([0, 0.1, 5, 29_999, 30_000, 1e9]);
  assert.deepEqual([counts[0], counts[1], counts[4], counts[11], counts[12]], [1, 1, 1, 1, 2]);
});

test('the share of a turn is known if its beginning and end were recorded', () => {
  const at = (second) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();
  const dispatch = (event, second, duration_ms) => ({
    record: 'dispatch',
    event_id: `${event}${second}`,
    event,
    session_id: 's',
    agent: 'a',
    timestamp: at(second),
    duration_ms,
  });
  const rows = storeOf([
    dispatch('pre_tool_use', 0, 5000),
    dispatch('turn_start', 1, 500),
    dispatch('pre_tool_use', 2, 1000),
    dispatch('turn_end', 9, 2000),
  ]).rows;
  assert.deepEqual(turnShare(rows), { turns: 1, turnTime: 10_000, hookTime: 3500 });
  assert.equal(eventStats(rows).find(({ event }) => event === 'pre_tool_use').total, 6000);
});

test('rows are counted over time, also a single one', () => {
  const { rows } = storeOf(manyRecords(2000).records);
  const counted = density(rows);
  assert.ok(counted.total.length <= 90);
  assert.equal(
    counted.total.reduce((sum, number) => sum + number),
    rows.length,
  );
  assert.equal(density(rows.slice(0, 1)).total.length, 1);
  assert.equal(density([]), null);
});

test('sessions are trees of turns, calls and events, with subagents below their turn', () => {
  const journal = new Journal();
  const call = { subject: 'shell', tool_use_id: 'c1' };
  journal.dispatch('session_start');
  for (const event of ['user_prompt_submit', 'turn_start']) journal.dispatch(event);
  for (const event of ['pre_tool_use', 'post_tool_use']) journal.dispatch(event, call);
  journal.dispatch('pre_tool_use', {
    agent: 'reviewer',
    subject: 'search',
    tool_use_id: 'c2',
    permission: 'deny',
    stopped: true,
  });
  journal.dispatch('turn_end');
  journal.dispatch('turn_start');
  const { rows } = storeOf(journal.records);
  const draw = (node) => (node.row ? node.label : [`${node.kind} ${node.label}`, ...node.children.map(draw)]);
  const tree = sessionTree(rows, 'session-1');
  assert.deepEqual(draw(tree), [
    'session session-1',
    'session_start',
    [
      'turn Turn 1',
      'user_prompt_submit',
      'turn_start',
      ['call shell', 'pre_tool_use', 'post_tool_use'],
      ['agent reviewer', ['call search', 'pre_tool_use']],
      'turn_end',
    ],
    ['turn Turn 2', 'turn_start'],
  ]);
  assert.deepEqual([tree.events, tree.stopped], [8, 1]);
  assert.equal(sessionTree(rows, 'other'), null);
  const [session] = listSessions(rows);
  assert.deepEqual([session.events, session.calls.size, [...session.agents]], [8, 2, ['root', 'reviewer']]);
});

test('numbers are written as people read them', () => {
  const durations = [
    [0, '0 ms'],
    [0.177, '0.18 ms'],
    [5.24, '5.2 ms'],
    [999, '999 ms'],
    [1234, '1.23 s'],
    [5000, '5 s'],
    [65_000, '1 min 5 s'],
  ];
  for (const [ms, text] of durations) assert.equal(duration(ms), text);
  assert.deepEqual(
    [0, 900, 5000, 90_000, 7_200_000].map((ms) => ago(1000, 1000 + ms)),
    ['now', 'now', '5 s ago', '1 min ago', '2 h ago'],
  );
  assert.equal(shorten('01a20432-9f55-745f-b5f4-b2bfab043a52', 13).length, 13);
});

test('a decision is explained: who wins over whom, who failed, and who was not started', () => {
  const explain = (fields, changes) => explainDecision(oneDispatch(fields, changes).rows[0]).map(({ text }) => text);
  const denied = explain(
    { permission: 'deny', stopped: true, reason: 'no' },
    {
      'no-sudo': { effect: 'allow' },
      'path-guard': { effect: 'deny' },
      'ask-before-push': { status: 'skipped', cause: 'skipped because of `path-guard`' },
    },
  );
  assert.deepEqual(denied, [
    'Deny of `path-guard` (main) wins over allow of `no-sudo`: no.',
    'Not started: `ask-before-push` (skipped because of `path-guard`).',
  ]);
  const failed = { status: 'failed', cause: 'exit status 3', let_through: true };
  assert.deepEqual(explain({}, { 'no-sudo': failed }), [
    'The operation continued although `no-sudo` failed: exit status 3.',
  ]);
  assert.deepEqual(explain({ rewritten: ['tool_input'] }, { 'no-sudo': { effect: 'rewrite' } }), [
    'Changed `tool_input` by `no-sudo`.',
  ]);
  assert.deepEqual(explain({}), []);
});
