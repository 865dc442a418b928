// The column of filters: facets with counts, times and a duration.

import { button, element, replaceKeepingFocus } from './element.js';
import { FACETS, facetValues, newFilter } from './filter.js';
import { count, localTime, shorten } from './format.js';

/** How many values of a facet are shown before and after `Show more`. */
const FEW = 7;
const MANY = 200;
const RANGES = [
  ['5 min', 300_000],
  ['1 h', 3_600_000],
  ['24 h', 86_400_000],
];
const WORDS = { let_through: 'let through', timed_out: 'timed out' };

export class FacetPanel {
  #expanded = new Set();

  /** `onchange(fields)` gets the fields of the filter that the user changed. */
  constructor({ place, onchange }) {
    Object.assign(this, { place, onchange });
    this.head = element('div', { class: 'facets-head' });
    this.groups = element('div', { class: 'groups' });
    this.times = element('form', { class: 'times', onsubmit: (event) => event.preventDefault() });
    place.append(this.head, this.groups, this.times);
    this.#buildTimes();
  }

  draw(query, counts, newest) {
    const { filter } = query;
    this.newest = newest;
    this.counts = counts;
    const chosen =
      FACETS.reduce((sum, { key }) => sum + filter[key].length, 0) +
      [filter.from, filter.to, filter.min].filter((value) => value !== null).length;
    replaceKeepingFocus(
      this.head,
      element('h2', {}, chosen > 0 ? `Filters · ${chosen}` : 'Filters'),
      chosen > 0 &&
        button('Clear', () => this.onchange(newFilter({ q: filter.q })), { class: 'quiet small', 'data-key': 'clear' }),
    );
    const groups = FACETS.map((facet) => this.#group(facet, query, counts[facet.key]));
    replaceKeepingFocus(this.groups, ...groups);
    this.#fillTimes(filter);
  }

  #group({ key, label }, query, counts) {
    const values = facetValues(key, query, counts);
    if (values.length === 0) return null;
    const isExpanded = this.#expanded.has(key);
    const shown = values.slice(0, isExpanded ? MANY : FEW);
    const hidden = values.length - shown.length;
    const rest = hidden > 0 && isExpanded ? `${count(hidden)} more are not shown; use the search` : null;
    return element(
      'section',
      {},
      element('h3', {}, label),
      element(
        'ul',
        {},
        shown.map((entry) => element('li', {}, this.#value(key, entry, query.filter))),
      ),
      values.length > FEW &&
        button(
          isExpanded ? 'Show fewer' : `Show ${count(hidden)} more`,
          () => {
            if (isExpanded) this.#expanded.delete(key);
            else this.#expanded.add(key);
            this.draw(query, this.counts, this.newest);
          },
          { class: 'quiet small', 'data-key': `more-${key}`, 'aria-expanded': String(isExpanded) },
        ),
      rest && element('p', { class: 'soft' }, rest),
    );
  }

  #value(key, { value, count: number, isChosen }, filter) {
    const text = key === 'session' ? shorten(value, 16) : (WORDS[value] ?? value);
    const mark = key === 'outcome' || key === 'status' ? element('i', { class: `dot ${value}` }) : null;
    const toggle = () => {
      const rest = filter[key].filter((other) => other !== value);
      this.onchange({ [key]: isChosen ? rest : [...rest, value] });
    };
    return element(
      'button',
      {
        type: 'button',
        class: 'value',
        role: 'checkbox',
        'aria-checked': String(isChosen),
        onclick: toggle,
        title: value,
        'data-key': `${key}:${value}`,
      },
      element('span', { class: 'box' }),
      mark,
      element('span', { class: 'name' }, text),
      element('span', { class: 'number' }, count(number)),
    );
  }

  #buildTimes() {
    const field = (label, attributes) => {
      const input = element('input', attributes);
      this.times.append(element('label', {}, element('span', {}, label), input));
      return input;
    };
    this.times.append(element('h3', {}, 'Time'));
    const ranges = element('div', { class: 'ranges' });
    for (const [label, length] of RANGES) {
      const limit = () => this.onchange({ from: Math.max(0, this.newest - length), to: null });
      ranges.append(
        button(label, limit, { class: 'small', 'aria-label': `Last ${label}`, title: `The last ${label}` }),
      );
    }
    this.times.append(ranges);
    const change = (key, read) => (event) => this.onchange({ [key]: read(event.target.value) });
    const time = (text) => (text === '' ? null : new Date(text).getTime());
    this.from = field('From', { type: 'datetime-local', step: 1, onchange: change('from', time) });
    this.to = field('To', { type: 'datetime-local', step: 1, onchange: change('to', time) });
    const number = (text) => (Number(text) > 0 ? Number(text) : null);
    this.min = field('At least (ms)', { type: 'number', min: 0, step: 'any', onchange: change('min', number) });
  }

  #fillTimes(filter) {
    const fill = (input, text) => {
      if (document.activeElement !== input && input.value !== text) input.value = text;
    };
    fill(this.from, filter.from === null ? '' : localTime(filter.from));
    fill(this.to, filter.to === null ? '' : localTime(filter.to));
    fill(this.min, filter.min === null ? '' : String(filter.min));
  }
}
