// Sessions as trees with bars over time.

import { element, emptyState, shape } from './element.js';
import { ago, clock, count, day, duration, fullTime, money, percent, plural, shorten } from './format.js';
import { listSessions, sessionTree } from './sessions.js';
import { outcomeChip } from './timeline.js';

/** The most sessions in the list, and the most events of a drawn tree. */
const MAX_LISTED = 300;
const MAX_EVENTS = 3000;
const WIDTH = 1000;

/** Draws the list of sessions and the tree of the chosen one. */
export function sessionsView(rows, { filter, onsession, onopen }) {
  const sessions = listSessions(rows);
  if (sessions.length === 0) {
    return emptyState(
      'No sessions',
      'No event that is shown belongs to a session. Clear the filters to see all events.',
    );
  }
  const wanted = filter.session.length === 1 ? filter.session[0] : null;
  const chosen = sessions.find(({ id }) => id === wanted) ?? sessions[0];
  const tree = sessionTree(rows, chosen.id);
  return element(
    'div',
    { class: 'sessions' },
    element(
      'nav',
      { 'aria-label': 'Sessions' },
      element('h2', {}, plural(sessions.length, 'session')),
      element(
        'ul',
        {},
        sessions.slice(0, MAX_LISTED).map((session) => listed(session, session === chosen, onsession)),
      ),
      sessions.length > MAX_LISTED &&
        element('p', { class: 'soft' }, 'Older sessions are not listed; use the filters.'),
    ),
    element('div', { class: 'tree' }, summary(chosen), tree && branch(tree, onopen)),
  );
}

function listed(session, isChosen, onsession) {
  const marks = [
    session.letThrough > 0 && element('span', { class: 'chip let-through' }, `${session.letThrough} let through`),
    session.stopped > 0 && element('span', { class: 'chip deny' }, `${session.stopped} stopped`),
    session.failed > 0 && element('span', { class: 'chip failed' }, `${session.failed} failed`),
  ];
  return element(
    'li',
    {},
    element(
      'button',
      {
        type: 'button',
        'aria-current': isChosen ? 'true' : null,
        onclick: () => onsession(session.id),
        'data-key': `session:${session.id}`,
        title: session.id,
      },
      element('span', { class: 'name' }, shorten(session.id, 18)),
      element('span', { class: 'soft' }, ago(session.last, Date.now())),
      element(
        'span',
        { class: 'soft wide' },
        `${plural(session.events, 'event')} · ${plural(session.calls.size, 'tool call')}`,
      ),
      marks.some(Boolean) && element('span', { class: 'wide marks' }, marks),
    ),
  );
}

function summary(session) {
  const length = session.last - session.first;
  const facts = [
    ['Began', `${fullTime(session.first)}`],
    ['Lasted', duration(length)],
    ['Events', count(session.events)],
    ['Tool calls', count(session.calls.size)],
    ['Agents', [...session.agents].join(', ') || '–'],
    ['Model calls', count(session.modelCalls)],
    ['Tokens', session.input + session.output > 0 ? `${count(session.input)} in, ${count(session.output)} out` : '–'],
    ['Cost', costOf(session)],
    ['In hooks', `${duration(session.hookTime)} (${percent(session.hookTime, length)})`],
  ];
  return element(
    'div',
    { class: 'tree-head' },
    element('h2', { title: session.id }, session.id),
    element(
      'dl',
      { class: 'numbers' },
      facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
    ),
  );
}

/** Returns what the model calls of a session cost, as far as it is known. */
function costOf({ cost, unpriced }) {
  if (cost === null) return unpriced > 0 ? 'unknown' : '–';
  return unpriced > 0 ? `${money(cost)} and ${plural(unpriced, 'call')} of unknown cost` : money(cost);
}

/** Draws a tree with bars over the time of its root. */
function branch(root, onopen) {
  const scale = { start: root.start, length: Math.max(1, root.end - root.start), left: MAX_EVENTS };
  const items = root.children.map((child) => item(child, scale, onopen));
  return element(
    'ul',
    { class: 'nodes' },
    items,
    scale.left <= 0 &&
      element('li', { class: 'remark' }, `Only the first ${count(MAX_EVENTS)} events are drawn; use the filters.`),
  );
}

function item(node, scale, onopen) {
  if (scale.left <= 0) return null;
  if (node.row) {
    scale.left -= 1;
    return leaf(node, scale, onopen);
  }
  const kinds = { turn: null, call: 'tool call', agent: 'subagent' };
  return element(
    'li',
    {},
    element(
      'details',
      { open: true, class: node.kind },
      element(
        'summary',
        {},
        element(
          'span',
          { class: 'label' },
          node.label,
          kinds[node.kind] && element('span', { class: 'soft' }, ` ${kinds[node.kind]}`),
        ),
        element(
          'span',
          { class: 'marks' },
          node.letThrough > 0 && element('span', { class: 'chip let-through' }, 'let through'),
          node.stopped > 0 && element('span', { class: 'chip deny' }, `${node.stopped} stopped`),
          node.failed > 0 && element('span', { class: 'chip failed' }, `${node.failed} failed`),
        ),
        bar(node, scale),
        element('span', { class: 'took' }, duration(node.end - node.start)),
      ),
      element(
        'ul',
        {},
        node.children.map((child) => item(child, scale, onopen)),
      ),
    ),
  );
}

function leaf({ row, start, end }, scale, onopen) {
  const chip = outcomeChip(row);
  return element(
    'li',
    {},
    element(
      'button',
      {
        type: 'button',
        class: `event${row.letThrough ? ' is-let-through' : ''}`,
        onclick: () => onopen(row),
        'data-key': row.key,
        title: `${day(row.at)} ${clock(row.at)}`,
      },
      element(
        'span',
        { class: 'label' },
        row.event,
        row.subject && element('span', { class: 'soft' }, ` ${row.subject}`),
      ),
      element(
        'span',
        { class: 'marks' },
        row.letThrough && element('span', { class: 'chip let-through' }, 'let through'),
        element('span', { class: chip.className }, chip.text),
      ),
      bar({ start, end }, scale, row.failed > 0 || row.letThrough ? 'failed' : row.isStopped ? 'deny' : 'none'),
      element('span', { class: 'took' }, duration(row.duration)),
    ),
  );
}

function bar({ start, end }, { start: first, length }, tone = 'group') {
  const left = Math.min(WIDTH - 4, (WIDTH * (start - first)) / length);
  const width = Math.min(WIDTH - left, Math.max(4, (WIDTH * (end - start)) / length));
  return shape(
    'svg',
    { class: 'track', viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    shape('rect', { class: `span ${tone}`, x: left.toFixed(1), y: 3, width: width.toFixed(1), height: 6 }),
  );
}
