// The list of events: one row for each dispatch, newest first.

import { element, icon, shape } from './element.js';
import { ago, clock, count, day, duration, fullTime, plural, shorten } from './format.js';
import { VirtualList } from './list.js';
import { density } from './stats.js';

/** The durations at the ends of the scale of bars, in milliseconds. */
const SHORTEST = 0.05;
const LONGEST = 30_000;

/** What a chip says about rows that are not dispatches. */
const KINDS = { host: 'agent', source: 'source', exception: 'exception', output: 'output', model_call: 'model', reload: 'reload' };

/** Returns how much of a bar a duration fills, from 0 to 1, on a logarithmic scale. */
const barLength = (ms) => Math.max(0, Math.min(1, Math.log(ms / SHORTEST) / Math.log(LONGEST / SHORTEST)));

/** The label and the class of a row's outcome. */
export function outcomeChip(row) {
  const kind = row.kind === 'dispatch' ? row.outcome : 'other';
  const text = row.kind === 'dispatch' ? row.outcome : KINDS[row.kind];
  return { text, className: `chip ${kind}` };
}

/** A sentence about a row for screen readers. */
function rowLabel(row) {
  const parts = [row.event, row.subject, row.kind === 'dispatch' ? row.outcome : KINDS[row.kind]];
  if (row.letThrough) parts.push('let through because a hook failed');
  if (row.failed > 0) parts.push(`${plural(row.failed, 'hook')} failed`);
  parts.push(row.reason, duration(row.duration), clock(row.at));
  return parts.filter(Boolean).join(', ');
}

export class Timeline {
  /** The rows that fit the filter, oldest first. New ones are added to the end by others. */
  rows = [];
  isRelative = false;
  /** How many of the rows are in the list, and how many were when the user left its top. */
  #listed = 0;
  #listedAtTop = 0;

  constructor({ scroller, onopen, onselect }) {
    this.list = new VirtualList({
      scroller,
      create: () => this.#create(),
      draw: (node, index) => this.#draw(node, this.rowAt(index)),
      onselect: (index) => onselect(this.rowAt(index)),
      onopen: (index) => onopen(this.rowAt(index)),
    });
  }

  rowAt(index) {
    return this.rows[this.#listed - 1 - index];
  }

  /** The number of rows that the user does not see because the list is paused or not at its top. */
  get newer() {
    return this.rows.length - this.#listedAtTop;
  }

  /** Shows other rows, from the top. */
  show(rows) {
    this.replace(rows);
    this.list.selected = -1;
    this.scrollToTop();
  }

  /** Shows other rows without moving. */
  replace(rows) {
    this.rows = rows;
    this.#listed = rows.length;
    this.list.resize(rows.length);
    this.noteScroll();
  }

  /** Shows the rows that were added since the last call. */
  grow() {
    const added = this.rows.length - this.#listed;
    this.#listed = this.rows.length;
    if (this.list.isAtTop) this.#listedAtTop = this.#listed;
    this.list.resize(this.#listed, added);
  }

  scrollToTop() {
    this.list.scroller.scrollTop = 0;
    this.list.redraw();
    this.noteScroll();
  }

  /** Notices that the user has reached the top. Returns whether there was something new. */
  noteScroll() {
    if (!this.list.isAtTop || this.#listedAtTop === this.#listed) return false;
    this.#listedAtTop = this.#listed;
    return true;
  }

  /** Selects a row without opening it. */
  selectRow(row) {
    const index = this.rows.lastIndexOf(row);
    if (index >= 0 && index < this.#listed) this.list.select(this.#listed - 1 - index);
  }

  #create() {
    const names = ['time', 'outcome', 'event', 'subject', 'reason', 'origin', 'hooks', 'bar', 'duration'];
    const node = element('div', { role: 'option', class: 'row' });
    node.parts = Object.fromEntries(names.map((name) => [name, element('span', { class: `c-${name}` })]));
    node.chip = element('span');
    node.flag = element('span', { class: 'flag' });
    node.fill = element('i');
    node.parts.outcome.append(node.chip, node.flag);
    node.parts.bar.append(node.fill);
    node.append(...Object.values(node.parts));
    return node;
  }

  #draw(node, row) {
    const { parts } = node;
    if (node.row !== row) {
      node.row = row;
      const chip = outcomeChip(row);
      node.chip.className = chip.className;
      node.chip.textContent = chip.text;
      node.flag.textContent = row.letThrough ? 'let through' : row.failed > 0 ? 'failed' : '';
      node.className = `row${row.letThrough ? ' is-let-through' : row.failed > 0 ? ' is-failed' : ''}`;
      parts.event.textContent = row.event;
      parts.subject.textContent = row.subject ?? '';
      parts.reason.textContent = row.reason ?? '';
      parts.origin.textContent = [row.agent, row.session && shorten(row.session, 12)].filter(Boolean).join(' · ');
      parts.origin.title = row.session ?? '';
      drawHooks(parts.hooks, row);
      node.fill.style.width = `${(100 * barLength(row.duration)).toFixed(1)}%`;
      node.fill.className = row.duration > 1000 ? 'slow' : '';
      parts.duration.textContent = row.kind === 'dispatch' || row.duration > 0 ? duration(row.duration) : '';
      parts.time.title = fullTime(row.at);
      node.setAttribute('aria-label', rowLabel(row));
    }
    // Relative times change while nothing else does.
    parts.time.textContent = this.isRelative ? ago(row.at, Date.now()) : this.#absolute(row);
  }

  #absolute(row) {
    const isToday = this.rows.length > 0 && day(row.at) === day(this.rows.at(-1).at);
    return isToday ? clock(row.at) : `${day(row.at)} ${clock(row.at).slice(0, 8)}`;
  }
}

function drawHooks(cell, row) {
  if (row.kind !== 'dispatch') {
    cell.replaceChildren();
    return;
  }
  const parts = [element('span', {}, plural(row.ran, 'hook'))];
  if (row.skipped > 0) parts.push(element('span', { class: 'soft', title: 'skipped' }, `${row.skipped} skipped`));
  if (row.failed > 0) parts.push(element('span', { class: 'bad', title: 'failed' }, icon('alert'), `${row.failed}`));
  cell.replaceChildren(...parts);
}

const WIDTH = 900;
const HEIGHT = 36;

/** Draws how many events there were over time. A click on a bar limits the time; the fields of the filter do too. */
export function drawDensity(place, rows, onrange) {
  const counted = density(rows);
  if (counted === null || rows.length < 2) {
    place.replaceChildren();
    return;
  }
  const { start, step, total, stopped, failed } = counted;
  const highest = total.reduce((most, number) => Math.max(most, number), 1);
  const width = WIDTH / total.length;
  const bars = [...total].map((number, index) => {
    const from = start + index * step;
    const left = (index * width).toFixed(2);
    const inner = Math.max(1, width - 1).toFixed(2);
    const bar = (name, amount, below) =>
      amount > 0 &&
      shape('rect', {
        class: name,
        x: left,
        width: inner,
        y: (HEIGHT * (1 - (below + amount) / highest)).toFixed(2),
        height: Math.max(1, (HEIGHT * amount) / highest).toFixed(2),
      });
    const calm = number - stopped[index] - failed[index];
    const text =
      `${fullTime(from).slice(0, -4)}: ${plural(number, 'event')}, ${count(stopped[index])} stopped, ` +
      `${count(failed[index])} with failed hooks`;
    return shape(
      'g',
      { onclick: () => onrange(from, from + step) },
      shape('title', {}, text),
      shape('rect', { class: 'hit', x: left, width: width.toFixed(2), y: 0, height: HEIGHT }),
      bar('failed', failed[index], 0),
      bar('stopped', stopped[index], failed[index]),
      bar('calm', calm, failed[index] + stopped[index]),
    );
  });
  const label = `${plural(rows.length, 'event')} from ${fullTime(start)} to ${fullTime(start + step * total.length)}`;
  place.replaceChildren(
    shape(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', role: 'img', 'aria-label': label },
      bars,
    ),
    element(
      'div',
      { class: 'scale' },
      element('span', {}, `${day(start)} ${clock(start).slice(0, 8)}`),
      element('span', {}, `one bar: ${duration(step)}`),
      element('span', {}, `${day(start + step * total.length)} ${clock(start + step * total.length).slice(0, 8)}`),
    ),
  );
}
