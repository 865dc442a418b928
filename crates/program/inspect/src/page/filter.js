// Which rows are shown: the filter, its form in the address, and the counts of each facet.

import { OUTCOMES, STATUSES } from './store.js';

/** The facets in the order in which the page shows them. */
export const FACETS = [
  { key: 'outcome', label: 'Outcome' },
  { key: 'status', label: 'Hook status' },
  { key: 'event', label: 'Event' },
  { key: 'hook', label: 'Hook' },
  { key: 'tool', label: 'Tool' },
  { key: 'agent', label: 'Agent' },
  { key: 'session', label: 'Session' },
];
const KEYS = FACETS.map((facet) => facet.key);
export const VIEWS = ['timeline', 'sessions', 'hooks', 'gateway', 'latency'];

/** Filters with a name. */
export const SAVED_VIEWS = [
  { name: 'All', filter: {} },
  { name: 'Denied', filter: { outcome: ['deny', 'block'] } },
  { name: 'Failed hooks', filter: { status: ['failed', 'timed_out'] } },
  { name: 'Let through', filter: { status: ['let_through'] } },
  { name: 'Slow > 1 s', filter: { min: 1000 } },
  { name: 'Rewritten', filter: { outcome: ['rewrite'] } },
];

/** Returns a filter that shows everything, changed by `fields`. */
export function newFilter(fields = {}) {
  const facets = Object.fromEntries(KEYS.map((key) => [key, []]));
  return { ...facets, from: null, to: null, min: null, q: '', ...fields };
}

/** Returns whether two filters show the same rows. */
export const isSameFilter = (a, b) => filterQuery(a) === filterQuery(b);

// The address separates values by commas, so a comma in a value has another form.
const writeValue = (value) => value.replaceAll('%', '%25').replaceAll(',', '%2C');
const readValue = (text) => text.replaceAll('%2C', ',').replaceAll('%25', '%');

function filterParameters(filter) {
  const parameters = new URLSearchParams();
  for (const key of KEYS) {
    if (filter[key].length > 0) parameters.set(key, filter[key].map(writeValue).join(','));
  }
  if (filter.from !== null) parameters.set('from', new Date(filter.from).toISOString());
  if (filter.to !== null) parameters.set('to', new Date(filter.to).toISOString());
  if (filter.min !== null) parameters.set('min', String(filter.min));
  if (filter.q !== '') parameters.set('q', filter.q);
  return parameters;
}

const filterQuery = (filter) => filterParameters(filter).toString();

function readTime(text) {
  const time = text === null ? NaN : Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

/** Reads the query of an address. What it does not understand is left out. */
export function parseQuery(query) {
  const parameters = new URLSearchParams(query);
  const filter = newFilter();
  for (const key of KEYS) {
    const text = parameters.get(key);
    if (text)
      filter[key] = text
        .split(',')
        .filter((value) => value !== '')
        .map(readValue);
  }
  const min = Number(parameters.get('min') ?? NaN);
  filter.from = readTime(parameters.get('from'));
  filter.to = readTime(parameters.get('to'));
  filter.min = Number.isFinite(min) && min > 0 ? min : null;
  filter.q = parameters.get('q') ?? '';
  const view = parameters.get('view');
  return { filter, view: VIEWS.includes(view) ? view : 'timeline', open: parameters.get('open') };
}

/** Returns the query of the address of what the page shows, with a `?` unless it is empty. */
export function writeQuery({ filter, view, open }) {
  const parameters = filterParameters(filter);
  if (view !== 'timeline') parameters.set('view', view);
  if (open) parameters.set('open', open);
  const query = parameters.toString().replaceAll('%2C', ',').replaceAll('%3A', ':');
  return query === '' ? '' : `?${query}`;
}

/** The text of a row that searches look at, in lower case. It is built when a search first needs it. */
function textOf(row) {
  if (row.text !== null) return row.text;
  const parts = [row.event, row.subject, row.agent, row.session, row.toolUse, row.reason, row.key];
  for (const run of row.runs) parts.push(run.hook, run.source, run.cause, run.reason, ...run.problems);
  for (const failure of row.failures) parts.push(failure.cause);
  row.text = parts.filter(Boolean).join('\n').toLowerCase();
  return row.text;
}

const maskOf = (names, wanted) => wanted.reduce((mask, name) => mask | (1 << Math.max(0, names.indexOf(name))), 0);

/** A filter made fast for the rows of one store. */
export class Query {
  #words;
  #from;
  #to;
  #min;
  #outcomes;
  #statuses;
  #wanted;

  constructor(filter, store) {
    this.filter = filter;
    this.store = store;
    this.#words = filter.q.toLowerCase().split(/\s+/).filter(Boolean);
    this.#from = filter.from ?? -Infinity;
    this.#to = filter.to ?? Infinity;
    this.#min = filter.min ?? -Infinity;
    this.#outcomes = filter.outcome.length > 0 ? maskOf(OUTCOMES, filter.outcome) : null;
    this.#statuses = filter.status.length > 0 ? maskOf(STATUSES, filter.status) : null;
    const keys = ['event', 'hook', 'agent', 'session', 'tool'];
    this.#wanted = Object.fromEntries(keys.map((key) => [key, this.#numbers(key)]));
  }

  // A value that no row has may come later, so it gets a number now.
  #numbers(key) {
    if (this.filter[key].length === 0) return null;
    return new Set(this.filter[key].map((value) => this.store.facets[key].number(value)));
  }

  /** Returns whether the search, the times and the duration fit. */
  #fitsRest(row) {
    if (row.at < this.#from || row.at > this.#to || row.duration < this.#min) return false;
    if (this.#words.length === 0) return true;
    const text = textOf(row);
    return this.#words.every((word) => text.includes(word));
  }

  /** Returns whether a row is shown. */
  matches(row) {
    return this.#misses(row) === '';
  }

  /** Returns how many rows are shown. */
  countOf(rows) {
    return rows.reduce((sum, row) => sum + (this.matches(row) ? 1 : 0), 0);
  }

  /** Returns the only facet that hides a row, an empty text if none does, and `null` if the row is hidden anyway. */
  #misses(row) {
    if (!this.#fitsRest(row)) return null;
    const { event, hook, agent, session, tool } = this.#wanted;
    let missed = '';
    const miss = (key) => {
      const isFirst = missed === '';
      missed = key;
      return isFirst;
    };
    if (this.#outcomes !== null && (row.outcomeMask & this.#outcomes) === 0 && !miss('outcome')) return null;
    if (this.#statuses !== null && (row.statusMask & this.#statuses) === 0 && !miss('status')) return null;
    if (event !== null && !event.has(row.eventNumber) && !miss('event')) return null;
    if (hook !== null && !row.hookNumbers.some((number) => hook.has(number)) && !miss('hook')) return null;
    if (agent !== null && !agent.has(row.agentNumber) && !miss('agent')) return null;
    if (session !== null && !session.has(row.sessionNumber) && !miss('session')) return null;
    if (tool !== null && !tool.has(row.toolNumber) && !miss('tool')) return null;
    return missed;
  }

  /** Counts a row in each facet. Returns whether it is shown. A facet's own choice does not change its counts. */
  #count(row, counts) {
    const missed = this.#misses(row);
    if (missed === null) return false;
    const add = (key, number) => {
      if ((missed === '' || missed === key) && number >= 0) counts[key][number] = (counts[key][number] ?? 0) + 1;
    };
    if (row.kind === 'dispatch') addBits(row.outcomeMask, (number) => add('outcome', number));
    addBits(row.statusMask, (number) => add('status', number));
    add('event', row.eventNumber);
    for (const number of row.hookNumbers) add('hook', number);
    add('agent', row.agentNumber);
    add('session', row.sessionNumber);
    add('tool', row.toolNumber);
    return missed === '';
  }

  /** Returns the rows that are shown, oldest first, and the counts of all facets, by number. */
  run(rows) {
    const result = { rows: [], counts: Object.fromEntries(KEYS.map((key) => [key, []])) };
    this.extend(result, rows, 0);
    return result;
  }

  /** Adds the rows from `start` on to a result. */
  extend(result, rows, start) {
    for (let index = start; index < rows.length; index += 1) {
      if (this.#count(rows[index], result.counts)) result.rows.push(rows[index]);
    }
  }
}

function addBits(mask, add) {
  for (let rest = mask, number = 0; rest !== 0; rest >>>= 1, number += 1) {
    if (rest & 1) add(number);
  }
}

const FIXED = { outcome: OUTCOMES, status: STATUSES };

/** Returns the values of a facet with their counts: those that are chosen, then the most frequent ones. */
export function facetValues(key, { filter, store }, counts) {
  const chosen = new Set(filter[key]);
  const values = store.facets[key].list.map((value, number) => ({
    value,
    count: counts[number] ?? 0,
    isChosen: chosen.has(value),
  }));
  const shown = values.filter((entry) => entry.count > 0 || entry.isChosen);
  if (FIXED[key]) return shown;
  return shown.sort((a, b) => b.isChosen - a.isChosen || b.count - a.count || (a.value < b.value ? -1 : 1));
}
