// The panel about one event: how it was decided, when which hook ran, what the hooks answered and what they changed.

import { explainDecision } from './decision.js';
import { button, copyButton, element, emptyState } from './element.js';
import { ago, clock, count, duration, fullTime, money, plural } from './format.js';
import { rewriteSteps } from './rewrite.js';
import { factList } from './run.js';
import { outcomeChip } from './timeline.js';
import { waterfall } from './waterfall.js';

/** How long the selection has to rest before details are fetched, so that j and k stay fast. */
const FETCH_DELAY = 80;

export class DetailPanel {
  row = null;
  #timer = null;

  /** `fetchDetail(id)` returns the details that the server keeps, or `null`. */
  constructor({ place, fetchDetail, onclose, onsession }) {
    Object.assign(this, { place, fetchDetail, onclose, onsession });
  }

  /** Shows a row, or closes the panel. `absence` says why the source has no details. */
  show(row, absence) {
    if (row === this.row) return;
    clearTimeout(this.#timer);
    this.row = row;
    this.place.hidden = row === null;
    if (row === null) return;
    this.#draw(row, null, null);
    if (row.kind !== 'dispatch') return;
    if (absence) this.#draw(row, null, absence);
    else this.#timer = setTimeout(() => this.#load(row), FETCH_DELAY);
  }

  async #load(row) {
    let detail = null;
    let problem = 'The payload and the raw answers of this event are no longer kept.';
    try {
      detail = await this.fetchDetail(row.key);
    } catch (error) {
      problem = `The details could not be loaded: ${error.message}.`;
    }
    if (this.row === row) this.#draw(row, detail, detail ? null : problem);
  }

  #draw(row, detail, absence) {
    const scrollTop = this.place.scrollTop;
    const hadFocus = this.place.contains(document.activeElement);
    this.place.replaceChildren(
      this.#head(row, detail),
      element(
        'div',
        { class: 'detail-body' },
        sentences(row),
        row.runs.length > 0 && waterfall(row, detail),
        row.kind === 'dispatch' && row.runs.length === 0 && emptyState('No runs were recorded for this event.'),
        detail && leftOut(detail),
        detail && rewriteSteps(detail),
        absence && element('p', { class: 'remark' }, absence),
        this.#facts(row),
      ),
    );
    this.place.scrollTop = scrollTop;
    if (hadFocus) this.place.focus();
  }

  #head(row, detail) {
    const chip = outcomeChip(row);
    const close = button('', () => this.onclose(), {
      image: 'close',
      class: 'bare',
      'aria-label': 'Close',
      title: 'Close (Esc)',
    });
    return element(
      'div',
      { class: 'detail-head' },
      element(
        'div',
        { class: 'title' },
        element('h2', {}, row.event, row.subject && element('span', { class: 'soft' }, ` ${row.subject}`)),
        close,
      ),
      element(
        'p',
        { class: 'when' },
        element('span', { class: chip.className }, chip.text),
        row.letThrough && element('span', { class: 'chip let-through' }, 'let through'),
        row.failed > 0 && element('span', { class: 'chip failed' }, `${row.failed} failed`),
        element(
          'time',
          { datetime: new Date(row.at).toISOString(), title: fullTime(row.at) },
          `${clock(row.at)} · ${ago(row.at, Date.now())}`,
        ),
        element('span', {}, duration(row.duration)),
      ),
      element(
        'div',
        { class: 'tools' },
        detail?.fire && copyButton('Copy as tenterhook fire', () => detail.fire),
        copyButton('Copy link', () => location.href),
      ),
    );
  }

  #facts(row) {
    const session =
      row.session &&
      element('button', { type: 'button', class: 'link', onclick: () => this.onsession(row.session) }, row.session);
    const facts = [
      ['Time', fullTime(row.at)],
      ['Session', session],
      ['Agent', row.agent],
      ['Tool call', row.toolUse],
      ['Event id', row.kind === 'dispatch' ? row.key : null],
      ['Sequence', row.sequence],
      ['Hooks', row.kind === 'dispatch' ? `${row.ran} ran, ${row.skipped} skipped, ${row.failed} failed` : null],
      ['Reason', row.reason],
      ['Replaced', row.downgrades?.join('; ')],
      ['Tokens', row.tokens && `${count(row.tokens.input)} in, ${count(row.tokens.output)} out`],
      ['Cost', row.cost == null ? null : money(row.cost)],
      ...Object.entries(row.extra ?? {}).map(([key, value]) => [`extra.${key}`, valueOf(value)]),
      ...Object.entries(row.originExtra ?? {}).map(([key, value]) => [`origin.${key}`, valueOf(value)]),
    ];
    return element('section', {}, element('h3', {}, 'Facts'), factList(facts));
  }
}

const WHY_LEFT_OUT = {
  matcher: 'its matcher does not match',
  scope: 'for another agent, session or workspace',
  duplicate: 'the same hook ran already',
};

/** Lists the hooks of the event that did not take part, and why. */
function leftOut({ left_out: { hooks = [], more = 0 } = {} }) {
  return (
    hooks.length > 0 &&
    element(
      'details',
      { class: 'payload left-out' },
      element('summary', {}, `${plural(hooks.length + more, 'other hook')} of this event did not run`),
      element(
        'ul',
        {},
        hooks.map(({ hook, matcher, reason }) =>
          element(
            'li',
            {},
            element('b', {}, hook),
            ' ',
            element('code', {}, matcher),
            element('span', { class: 'soft' }, ` ${WHY_LEFT_OUT[reason] ?? reason}`),
          ),
        ),
        more > 0 && element('li', { class: 'soft' }, `${plural(more, 'further hook')}`),
      ),
    )
  );
}

const valueOf = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

function sentences(row) {
  const list = explainDecision(row);
  return (
    list.length > 0 &&
    element(
      'ul',
      { class: 'decision' },
      list.map(({ tone, text }) => element('li', { class: tone }, withCode(text))),
    )
  );
}

/** Turns the parts of a text between backticks into code. */
function withCode(text) {
  const parts = text.split('`');
  // An odd number of backticks means that one of them is not a quotation mark.
  if (parts.length % 2 === 0) return text;
  return parts.map((piece, index) => (index % 2 === 0 ? piece : element('code', {}, piece)));
}
