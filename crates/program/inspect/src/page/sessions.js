// Sessions as trees: turns, tool calls, subagents and events. The journal has no parents, so the tree is built from the
// order of the events, the ids of tool calls and the names of agents.

import { TURN_START } from './stats.js';
import { MODEL_CALL } from './store.js';

/** Events that begin a turn if the journal has no `turn_start`. */
const PROMPTS = new Set(['user_prompt_submit', 'message_receive']);
const MAX_SESSIONS = 5000;

/** Returns a summary of each session, the one with the newest event first. */
export function listSessions(rows) {
  const sessions = new Map();
  for (const row of rows) {
    if (row.session === null) continue;
    let entry = sessions.get(row.session);
    if (!entry) sessions.set(row.session, (entry = newSession(row)));
    addToSession(entry, row);
  }
  return [...sessions.values()].sort((a, b) => b.last - a.last).slice(0, MAX_SESSIONS);
}

function newSession(row) {
  return {
    id: row.session,
    agents: new Set(),
    first: row.at,
    last: row.at,
    events: 0,
    calls: new Set(),
    stopped: 0,
    failed: 0,
    letThrough: 0,
    rewritten: 0,
    hookTime: 0,
    modelCalls: 0,
    input: 0,
    output: 0,
    /** In US dollars. It is `null` if no price is known, and too low if `unpriced` calls have no known price. */
    cost: null,
    unpriced: 0,
  };
}

function addToSession(entry, row) {
  entry.events += 1;
  if (row.agent) entry.agents.add(row.agent);
  entry.first = Math.min(entry.first, row.at);
  entry.last = Math.max(entry.last, row.at + row.duration);
  if (row.toolUse !== null) entry.calls.add(row.toolUse);
  if (row.isStopped) entry.stopped += 1;
  if (row.failed > 0) entry.failed += 1;
  if (row.letThrough) entry.letThrough += 1;
  if (row.isRewritten) entry.rewritten += 1;
  if (row.event === MODEL_CALL) addModelCall(entry, row);
  else entry.hookTime += row.duration;
}

function addModelCall(entry, { tokens, cost }) {
  entry.modelCalls += 1;
  entry.input += tokens?.input ?? 0;
  entry.output += tokens?.output ?? 0;
  if (cost === null) entry.unpriced += 1;
  else entry.cost = (entry.cost ?? 0) + cost;
}

/** A node of a tree. `kind` is `session`, `turn`, `agent`, `call` or `event`; an event has its `row`. */
function node(kind, label, row) {
  const counts = { events: 0, stopped: 0, failed: 0, letThrough: 0 };
  return { kind, label, row: null, start: row.at, end: row.at + row.duration, children: [], ...counts };
}

class Branch {
  turn = null;
  calls = new Map();

  constructor(parent, agent) {
    Object.assign(this, { parent, agent });
  }
}

/** Builds the tree of one session. Returns `null` if it has no rows. */
export function sessionTree(rows, id) {
  const own = rows.filter((row) => row.session === id).sort((a, b) => a.at - b.at || a.serial - b.serial);
  if (own.length === 0) return null;
  const root = node('session', id, own[0]);
  const main = new Branch(root, mostActiveAgent(own));
  const branches = new Map([[main.agent, main]]);
  let turns = 0;
  for (const row of own) {
    const branch = branchOf(row, main, branches);
    const startsTurn = row.event === TURN_START || PROMPTS.has(row.event);
    if (startsTurn && branch === main && !isOnlyPrompted(branch.turn)) {
      turns += 1;
      branch.turn = node('turn', `Turn ${turns}`, row);
      branch.parent.children.push(branch.turn);
      branch.calls.clear();
    }
    place(row, branch);
  }
  total(root);
  return root;
}

/** A session's own agent. Subagents have fewer events, and can have the first one that is kept. */
function mostActiveAgent(rows) {
  const counts = new Map();
  for (const { agent } of rows) if (agent !== '') counts.set(agent, (counts.get(agent) ?? 0) + 1);
  return [...counts].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ['', 0])[0];
}

// A prompt comes before the `turn_start` of its turn, and a message before its prompt. They belong to one turn.
const isOnlyPrompted = (turn) => turn?.children.every((child) => child.row && PROMPTS.has(child.row.event)) ?? false;

/** Returns the branch of a row's agent. A subagent hangs below the turn in which its first event happened. */
function branchOf(row, main, branches) {
  if (row.agent === '' || row.agent === main.agent) return main;
  const known = branches.get(row.agent);
  if (known && known.host === main.turn) return known;
  const own = node('agent', row.agent, row);
  (main.turn ?? main.parent).children.push(own);
  const branch = new Branch(own, row.agent);
  branch.host = main.turn;
  branches.set(row.agent, branch);
  return branch;
}

function place(row, branch) {
  const leaf = node('event', row.event, row);
  leaf.row = row;
  const parent = branch.turn ?? branch.parent;
  if (row.toolUse === null) {
    parent.children.push(leaf);
    return;
  }
  let call = branch.calls.get(row.toolUse);
  if (!call) {
    call = node('call', row.subject ?? row.toolUse, row);
    call.toolUse = row.toolUse;
    branch.calls.set(row.toolUse, call);
    parent.children.push(call);
  }
  call.children.push(leaf);
}

/** Adds up times and counts from the leaves. */
function total(parent) {
  if (parent.row) {
    parent.stopped = parent.row.isStopped ? 1 : 0;
    parent.failed = parent.row.failed > 0 ? 1 : 0;
    parent.letThrough = parent.row.letThrough ? 1 : 0;
    parent.events = 1;
    return;
  }
  parent.events = 0;
  for (const child of parent.children) {
    total(child);
    parent.start = Math.min(parent.start, child.start);
    parent.end = Math.max(parent.end, child.end);
    for (const key of ['stopped', 'failed', 'letThrough', 'events']) parent[key] += child[key];
  }
}
