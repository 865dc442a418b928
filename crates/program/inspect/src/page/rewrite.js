// What hooks changed in a payload, step by step.

import { changedFields, changedPart, lineDiff, valueText, versions } from './diff.js';
import { element } from './element.js';
import { plural } from './format.js';

/** The longest part of a line that is drawn, and the most lines of a text. */
const MAX_LINE = 2000;
const MAX_LINES = 400;

/** Draws the versions of a payload and what each hook changed. Returns `null` if nothing changed. */
export function rewriteSteps(detail) {
  const list = versions(detail);
  if (list.length < 2) return detail.original ? element('section', {}, payload('Payload', detail.original)) : null;
  const steps = list.slice(1).map((version, index) => stepOf(list[index].payload, version, index + 2));
  return element(
    'section',
    { class: 'rewrite' },
    element('h3', {}, 'Changes', element('span', { class: 'soft' }, ` ${plural(list.length, 'version')}`)),
    element(
      'ol',
      { class: 'steps' },
      element(
        'li',
        {},
        element('p', { class: 'step-name' }, element('b', {}, '1'), 'Original'),
        payload('Payload', list[0].payload),
      ),
      steps,
    ),
    payload('Final payload', list.at(-1).payload),
  );
}

function stepOf(before, { label, payload: after }, number) {
  const fields = changedFields(before, after);
  return element(
    'li',
    {},
    element(
      'p',
      { class: 'step-name' },
      element('b', {}, String(number)),
      label,
      element('span', { class: 'soft' }, plural(fields.length, 'field')),
    ),
    fields.map((field) => element('div', { class: 'field' }, element('code', {}, field.path), change(field))),
  );
}

const cut = (text) => (text.length > MAX_LINE ? `${text.slice(0, MAX_LINE)}…` : text);

function change({ before, after }) {
  const old = valueText(before);
  const next = valueText(after);
  const isOneLine = !old.includes('\n') && !next.includes('\n');
  return element(
    'div',
    { class: 'diff', tabindex: 0, role: 'group', 'aria-label': 'Change' },
    isOneLine ? oneLine(old, next, before, after) : manyLines(old, next),
  );
}

function line(kind, ...content) {
  const signs = { removed: '−', added: '+', same: ' ', gap: '⋯' };
  return element(
    'div',
    { class: `line ${kind}` },
    element('span', { class: 'sign' }, signs[kind]),
    element('span', {}, content),
  );
}

function oneLine(old, next, before, after) {
  const { head, removed, added, tail } = changedPart(old, next);
  const marked = (tag, middle) => [cut(head), middle === '' ? null : element(tag, {}, cut(middle)), cut(tail)];
  return [
    before !== undefined && line('removed', ...marked('del', removed)),
    after !== undefined && line('added', ...marked('ins', added)),
  ];
}

function manyLines(old, next) {
  const lines = lineDiff(old, next);
  const shown = lines.slice(0, MAX_LINES).map(({ kind, text }) => line(kind, cut(text)));
  const hidden = lines.length - shown.length;
  return hidden > 0 ? [...shown, line('gap', `${plural(hidden, 'line')} not shown`)] : shown;
}

function payload(label, value) {
  const text = valueText(value);
  return element('details', { class: 'payload' }, element('summary', {}, label), element('pre', { tabindex: 0 }, text));
}
