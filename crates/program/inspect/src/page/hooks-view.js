// All hooks with the numbers of their runs.

import { button, element, emptyState } from './element.js';
import { ago, count, duration, fileName, fullTime, percent, plural } from './format.js';
import { hookStats, withPlannedHooks } from './stats.js';

/** The columns that the table can be sorted by. Without one, hooks are in the order in which they run. */
const COLUMNS = [
  { label: 'Hook', value: ({ hook }) => hook, isText: true },
  { label: 'Handler', value: ({ handler }) => handler, isText: true },
  { label: 'Runs', value: ({ runs }) => runs },
  { label: 'p50', value: ({ p50 }) => p50 },
  { label: 'p95', value: ({ p95 }) => p95 },
  { label: 'Total', value: ({ total }) => total },
  { label: 'Failures', value: ({ failures }) => failures },
  { label: 'Let through', value: ({ letThrough }) => letThrough },
  { label: 'Last run', value: ({ lastRun }) => lastRun ?? 0 },
];

/** Draws the hooks. `list` is the answer of `list --json`, or `null`. `sort` is the number of a column, or `null`. */
export function hooksView(rows, { list, sort, onsort, onhook }) {
  const hooks = withPlannedHooks(hookStats(rows), list);
  if (hooks.length === 0) return emptyState('No hooks', 'No hook ran for the events that are shown.');
  const problems = list ? notInForce(list) : null;
  const never = hooks.filter((hook) => hook.runs === 0).length;
  const failed = hooks.reduce((sum, hook) => sum + hook.failures, 0);
  const heading = [
    plural(hooks.length, 'hook'),
    list && `${count(never)} never ran`,
    failed > 0 && plural(failed, 'failure'),
  ];
  return element(
    'div',
    { class: 'hooks' },
    element(
      'div',
      { class: 'table-head' },
      element('h2', {}, heading.filter(Boolean).join(' · ')),
      sort !== null && button('Sort by event', () => onsort(null), { class: 'quiet small', 'data-key': 'sort-none' }),
    ),
    problems,
    element(
      'div',
      { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': 'Table of hooks' },
      element(
        'table',
        {},
        tableHead(sort, onsort),
        sort === null ? byEvent(hooks, onhook) : sorted(hooks, sort, onhook),
      ),
    ),
  );
}

function tableHead(sort, onsort) {
  return element(
    'thead',
    {},
    element(
      'tr',
      {},
      COLUMNS.map(({ label, isText }, index) =>
        element(
          'th',
          {
            scope: 'col',
            class: isText ? null : 'number',
            'aria-sort': sort === index ? (isText ? 'ascending' : 'descending') : null,
          },
          button(label, () => onsort(index), { class: 'link', 'data-key': `sort-${index}` }),
        ),
      ),
    ),
  );
}

function byEvent(hooks, onhook) {
  return [...groups(hooks)].map(([event, own]) =>
    element(
      'tbody',
      {},
      element('tr', { class: 'group' }, element('th', { scope: 'rowgroup', colspan: COLUMNS.length }, event)),
      own.map((hook) => line(hook, onhook, false)),
    ),
  );
}

function groups(hooks) {
  const events = new Map();
  for (const hook of hooks) events.set(hook.event, [...(events.get(hook.event) ?? []), hook]);
  return events;
}

function sorted(hooks, sort, onhook) {
  const { value, isText } = COLUMNS[sort];
  const number = (hook) => (Number.isNaN(value(hook)) ? -1 : value(hook));
  const order = isText ? (a, b) => value(a).localeCompare(value(b)) : (a, b) => number(b) - number(a);
  return element(
    'tbody',
    {},
    hooks.toSorted(order).map((hook) => line(hook, onhook, true)),
  );
}

function line(hook, onhook, hasEvent) {
  const { planned, runs, failures, letThrough } = hook;
  const notes = [
    hasEvent && hook.event,
    planned?.matcher && planned.matcher !== '*' && `on ${planned.matcher}`,
    hook.phase,
    planned?.policy && `on error: ${planned.policy.on_error}`,
    planned?.trust,
    hook.skipped > 0 && `${count(hook.skipped)} skipped`,
  ];
  const failed = failures > 0 ? `${count(failures)} (${percent(failures, runs)})` : '0';
  return element(
    'tr',
    { class: runs === 0 ? 'never' : null },
    element(
      'th',
      { scope: 'row' },
      element(
        'button',
        {
          type: 'button',
          class: 'link',
          onclick: () => onhook(hook.hook),
          'data-key': `hook:${hook.event}:${hook.hook}`,
        },
        hook.hook,
      ),
      element('div', { class: 'soft' }, notes.filter(Boolean).join(' · ')),
      planned?.problem && element('div', { class: 'bad' }, planned.problem),
      hook.lastError &&
        element(
          'div',
          { class: 'bad', title: fullTime(hook.lastErrorAt) },
          `${ago(hook.lastErrorAt, Date.now())}: ${hook.lastError}`,
        ),
    ),
    element('td', {}, hook.handler, element('div', { class: 'soft', title: hook.source }, fileName(hook.source))),
    element(
      'td',
      { class: 'number' },
      runs === 0 ? element('span', { class: 'chip other' }, 'never ran') : count(runs),
    ),
    [hook.p50, hook.p95].map((ms) => element('td', { class: 'number' }, duration(ms))),
    element('td', { class: 'number' }, runs === 0 ? '–' : duration(hook.total)),
    element('td', { class: failures > 0 ? 'number bad' : 'number soft' }, failed),
    element('td', { class: letThrough > 0 ? 'number bad' : 'number soft' }, count(letThrough)),
    element(
      'td',
      { class: 'number soft', title: hook.lastRun ? fullTime(hook.lastRun) : null },
      hook.lastRun ? ago(hook.lastRun, Date.now()) : '–',
    ),
  );
}

const nameOf = (entry) =>
  typeof entry === 'string' ? entry : (entry.name ?? entry.source ?? entry.path ?? JSON.stringify(entry));

/** Lists what is not in force: hooks that are not approved, that changed, and sources that cannot be loaded. */
function notInForce(list) {
  const kinds = [
    ['Not approved', list.withheld],
    ['Changed since their approval', list.diverged],
    ['Cannot be loaded', list.broken],
    ['Cannot be loaded and not approved', list.untrusted],
    ['Disabled', list.disabled],
  ].filter(([, entries]) => entries?.length > 0);
  return (
    kinds.length > 0 &&
    element(
      'ul',
      { class: 'decision' },
      kinds.map(([label, entries]) => element('li', { class: 'warn' }, `${label}: ${entries.map(nameOf).join(', ')}`)),
    )
  );
}
