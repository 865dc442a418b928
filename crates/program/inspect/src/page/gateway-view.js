// The state of a gateway: channels, chats, messages, and what waits for a person.

import { button, element, emptyState } from './element.js';
import { ago, count, fullTime } from './format.js';

const GOOD = new Set(['up']);
const BAD = new Set(['backing_off', 'blocked']);

/** Draws the state. `state` is `undefined` while it loads, and `null` if there is no gateway. */
export function gatewayView(state, { ondecide, problem }) {
  if (problem) return emptyState('The state of the gateway could not be loaded', problem);
  if (state === undefined) return emptyState('Loading…');
  if (state === null) return emptyState('No gateway', 'These records do not come from a running gateway.');
  const { channels = [], chats = [], pairings = [], approvals = [] } = state;
  return element(
    'div',
    { class: 'gateway' },
    element(
      'dl',
      { class: 'numbers' },
      numbers(state, channels, chats).map(([name, value]) =>
        element('div', {}, element('dt', {}, name), element('dd', {}, value)),
      ),
    ),
    waiting('Approvals', approvals, approvalCard, ondecide),
    waiting('Pairings', pairings, pairingCard, ondecide),
    element(
      'section',
      {},
      element('h2', {}, 'Channels'),
      channels.length > 0
        ? table(
            ['Channel', 'Kind', 'State', 'Since', 'Last message', 'Inbox', 'Outbox', 'Problem'],
            channels.map(channelLine),
          )
        : element('p', { class: 'soft' }, 'No channel is configured.'),
    ),
    element(
      'section',
      {},
      element('h2', {}, 'Chats'),
      chats.length > 0
        ? table(['Chat', 'Channel', 'Messages', 'Last message', 'Inbox', 'Outbox'], chats.map(chatLine))
        : element('p', { class: 'soft' }, 'No one has written yet.'),
    ),
  );
}

function numbers(gateway, channels, chats) {
  const messages = Object.entries(gateway.messages ?? {}).filter(([, value]) => typeof value === 'number');
  return [
    ['Address', gateway.address ?? '–'],
    ['Started', gateway.started ? time(gateway.started) : '–'],
    ['Channels', `${channels.filter(({ state }) => GOOD.has(state)).length} of ${count(channels.length)} up`],
    ['Chats', count(chats.length)],
    ['Sessions', gateway.conversations == null ? '–' : count(gateway.conversations)],
    ['Inbox', depth(gateway.inbox)],
    ['Outbox', depth(gateway.outbox)],
    ...messages.map(([name, value]) => [`Messages ${name.replaceAll('_', ' ')}`, count(value)]),
  ];
}

function toTime(value) {
  if (typeof value === 'string') return Date.parse(value);
  // Numbers are in seconds or in milliseconds since 1970.
  return value < 1e11 ? value * 1000 : value;
}

function time(value) {
  if (value == null) return '–';
  const at = toTime(value);
  return Number.isNaN(at) ? String(value) : element('time', { title: fullTime(at) }, ago(at, Date.now()));
}

/** Draws how much waits, and since when. */
function depth(queue) {
  if (!queue) return '–';
  if (queue.waiting === 0) return '0';
  const since = queue.oldest == null ? null : [', oldest ', time(queue.oldest)];
  return element('span', { class: 'depth' }, count(queue.waiting), since);
}

const table = (heads, lines) =>
  element(
    'div',
    { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': heads[0] },
    element(
      'table',
      {},
      element(
        'thead',
        {},
        element(
          'tr',
          {},
          heads.map((head) => element('th', { scope: 'col' }, head)),
        ),
      ),
      element('tbody', {}, lines),
    ),
  );

const cells = (...values) =>
  element(
    'tr',
    {},
    values.map((value) => element('td', {}, value ?? '–')),
  );

function channelLine({ id, kind, state, since, last_message: lastMessage, inbox, outbox, error, next_attempt: next }) {
  const tone = GOOD.has(state) ? 'allow' : BAD.has(state) ? 'deny' : 'ask';
  return cells(
    id,
    kind,
    element('span', { class: `chip ${tone}` }, state),
    time(since),
    time(lastMessage),
    depth(inbox),
    depth(outbox),
    next == null ? error : [error, '; next attempt ', time(next)],
  );
}

function chatLine({ chat, title, last_seq: lastSeq, at, inbox, outbox }) {
  const { channel = '', chat: id = chat, thread } = typeof chat === 'object' ? chat : {};
  return cells(
    title || [id, thread].filter(Boolean).join(' / '),
    channel,
    lastSeq == null ? null : count(lastSeq),
    time(at),
    // Chats in which nothing waits have no queues.
    inbox ? depth(inbox) : '0',
    outbox ? depth(outbox) : '0',
  );
}

function waiting(title, entries, card, ondecide) {
  return (
    entries.length > 0 &&
    element(
      'section',
      { class: 'waiting' },
      element('h2', {}, `${title} · ${count(entries.length)}`),
      entries.map((entry) => card(entry, ondecide)),
    )
  );
}

function decisionCard(title, lines, path, ondecide) {
  return element(
    'div',
    { class: 'card' },
    element(
      'div',
      {},
      element('b', {}, title),
      lines.filter(Boolean).map((line) => (typeof line === 'string' ? element('p', { class: 'soft' }, line) : line)),
    ),
    element(
      'div',
      { class: 'tools' },
      button('Approve', () => ondecide(path, 'approve'), { class: 'primary', 'data-key': `approve:${path}` }),
      button('Deny', () => ondecide(path, 'deny'), { class: 'danger', 'data-key': `deny:${path}` }),
    ),
  );
}

function approvalCard({ nonce, tool, card, chat, expires }, ondecide) {
  const where = [chat?.channel, chat?.chat].filter(Boolean).join(' / ');
  const lines = [
    card && element('pre', { tabindex: 0, dir: 'ltr' }, card.text),
    where && `in ${where}`,
    expires != null && `until ${fullTime(toTime(expires))}`,
  ];
  return decisionCard(tool ?? 'Tool call', lines, `/approvals/${encodeURIComponent(nonce)}`, ondecide);
}

function pairingCard({ channel, code, name, sender, expires }, ondecide) {
  return decisionCard(
    `${name ?? sender} wants to write to the agent`,
    [`${channel}, code ${code}`, expires != null && `until ${fullTime(toTime(expires))}`],
    `/pairings/${encodeURIComponent(channel)}/${encodeURIComponent(code)}`,
    ondecide,
  );
}

/** Returns how many decisions wait for a person. */
export const waitingCount = (state) => (state?.approvals?.length ?? 0) + (state?.pairings?.length ?? 0);
