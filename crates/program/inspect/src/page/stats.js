// Numbers about many rows: how often hooks ran and failed, how long they took, and how many events there were when.

import { isFailure } from './store.js';

/** The upper ends of the buckets of a histogram, in milliseconds. The last bucket has no end. */
export const BUCKETS = [0.1, 0.3, 1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000];

/** Returns how many durations are in each bucket. */
export function histogram(durations) {
  const counts = new Array(BUCKETS.length + 1).fill(0);
  for (const ms of durations) {
    const found = BUCKETS.findIndex((end) => ms < end);
    counts[found < 0 ? BUCKETS.length : found] += 1;
  }
  return counts;
}

/** Returns the duration that a part of all durations does not exceed. `sorted` is in ascending order. */
export function percentile(sorted, part) {
  if (sorted.length === 0) return NaN;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(part * sorted.length) - 1))];
}

function summary(durations) {
  const sorted = Float64Array.from(durations).sort();
  const total = sorted.reduce((sum, ms) => sum + ms, 0);
  const [p50, p95] = [0.5, 0.95].map((part) => percentile(sorted, part));
  return { durations: sorted, total, p50, p95, max: sorted.at(-1) ?? NaN };
}

const hookKey = (event, hook) => `${event}\0${hook}`;

function newHook(event, hook) {
  return {
    event,
    hook,
    source: '',
    handler: '',
    phase: null,
    runs: 0,
    skipped: 0,
    failures: 0,
    letThrough: 0,
    lastError: null,
    lastErrorAt: null,
    lastRun: null,
    durations: [],
    planned: null,
    order: null,
  };
}

/** Returns one entry for each hook of each event, in the order in which they first ran. */
export function hookStats(rows) {
  const hooks = new Map();
  for (const row of rows) {
    for (const run of row.runs) {
      const key = hookKey(row.event, run.hook);
      let entry = hooks.get(key);
      if (!entry) hooks.set(key, (entry = newHook(row.event, run.hook)));
      addRun(entry, run, row);
    }
  }
  return [...hooks.values()].map((entry) => ({ ...entry, ...summary(entry.durations) }));
}

function addRun(entry, run, row) {
  entry.source = run.source;
  entry.handler = run.handler;
  entry.phase = run.phase ?? entry.phase;
  if (run.status === 'skipped') {
    entry.skipped += 1;
    return;
  }
  entry.runs += 1;
  entry.lastRun = Math.max(entry.lastRun ?? 0, row.at);
  entry.durations.push(run.duration);
  if (run.letThrough) entry.letThrough += 1;
  if (run.problems.length > 0) {
    entry.lastError = run.problems.at(-1);
    entry.lastErrorAt = row.at;
  }
  if (!isFailure(run.status)) return;
  entry.failures += 1;
  entry.lastError = run.cause ?? run.status;
  entry.lastErrorAt = row.at;
}

/** Returns one entry for each kind of step that hooks measure within their runs, such as the engines of voice. */
export function stepStats(rows) {
  const steps = new Map();
  for (const row of rows) {
    for (const run of row.runs) {
      for (const { name, duration_ms: took } of run.steps) {
        const key = hookKey(name, run.hook);
        let entry = steps.get(key);
        if (!entry) steps.set(key, (entry = { name, hook: run.hook, count: 0, durations: [] }));
        entry.count += 1;
        entry.durations.push(took);
      }
    }
  }
  return [...steps.values()].map((entry) => ({ ...entry, ...summary(entry.durations) }));
}

/** Joins what ran with the hooks in force (`list --json`), so that hooks that never ran are there too. */
export function withPlannedHooks(stats, list) {
  const used = new Set();
  const joined = [];
  for (const [order, planned] of (list?.hooks ?? []).entries()) {
    const isSame = ({ hook, event }) => hook === planned.id && (planned.event === null || event === planned.event);
    const found = stats.filter(isSame);
    const entries = found.length > 0 ? found : [plannedHook(planned)];
    for (const entry of entries) {
      used.add(entry);
      joined.push({ ...entry, planned, order });
    }
  }
  return [...joined, ...stats.filter((entry) => !used.has(entry))];
}

function plannedHook({ id, event, kind, source, phase }) {
  const place = source ? [source.path, source.line].filter((part) => part != null).join(':') : '';
  return { ...newHook(event ?? 'every event', id), source: place, handler: kind, phase: phase ?? null, ...summary([]) };
}

/** Returns one entry for each event: how often it happened, and how long its hooks took. */
export function eventStats(rows) {
  const events = new Map();
  for (const row of rows) {
    if (row.kind !== 'dispatch') continue;
    let entry = events.get(row.event);
    if (!entry) events.set(row.event, (entry = { event: row.event, count: 0, stopped: 0, failed: 0, durations: [] }));
    entry.count += 1;
    entry.durations.push(row.duration);
    if (row.isStopped) entry.stopped += 1;
    if (row.failed > 0) entry.failed += 1;
  }
  return [...events.values()].map((entry) => ({ ...entry, ...summary(entry.durations) }));
}

/** The events that begin and end a turn. */
export const TURN_START = 'turn_start';
export const TURN_END = 'turn_end';

/** Returns the time that hooks took within turns whose beginning and end were recorded, and the time of these turns. */
export function turnShare(rows) {
  const open = new Map();
  const share = { turns: 0, turnTime: 0, hookTime: 0 };
  for (const row of rows) {
    if (row.kind !== 'dispatch' || row.session === null) continue;
    const key = `${row.session}\0${row.agent}`;
    if (row.event === TURN_START) open.set(key, { start: row.at, hookTime: 0 });
    const turn = open.get(key);
    if (!turn) continue;
    turn.hookTime += row.duration;
    if (row.event !== TURN_END) continue;
    open.delete(key);
    const length = row.at + row.duration - turn.start;
    if (length <= 0) continue;
    share.turns += 1;
    share.turnTime += length;
    // Observers of different turns can overlap; more than the whole turn is not possible.
    share.hookTime += Math.min(turn.hookTime, length);
  }
  return share;
}

const STEPS = [
  100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000,
  3_600_000, 7_200_000, 10_800_000, 21_600_000, 43_200_000, 86_400_000,
];

/** Counts rows over time in at most `most` steps of a round length. Returns `null` if there is nothing to count. */
export function density(rows, most = 90) {
  let first = Infinity;
  let last = -Infinity;
  for (const { at } of rows) {
    if (at <= 0) continue;
    if (at < first) first = at;
    if (at > last) last = at;
  }
  if (last < first) return null;
  const wanted = (last - first) / (most - 1);
  const step = STEPS.find((length) => length >= wanted) ?? Math.ceil(wanted / 86_400_000) * 86_400_000;
  const start = Math.floor(first / step) * step;
  const size = Math.floor((last - start) / step) + 1;
  const total = new Uint32Array(size);
  const stopped = new Uint32Array(size);
  const failed = new Uint32Array(size);
  for (const row of rows) {
    if (row.at <= 0) continue;
    const index = Math.floor((row.at - start) / step);
    total[index] += 1;
    if (row.failed > 0 || row.letThrough) failed[index] += 1;
    else if (row.isStopped) stopped[index] += 1;
  }
  return { start, step, total, stopped, failed };
}
