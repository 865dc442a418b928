// The facts about one hook run.

import { element } from './element.js';
import { byteSize, duration, fileName, plural } from './format.js';

/** A list of names and values. Empty values are left out. */
export const factList = (facts) =>
  element(
    'dl',
    { class: 'facts' },
    facts
      .filter(([, value]) => value != null && value !== '')
      .map(([name, value]) => [element('dt', {}, name), element('dd', {}, value)]),
  );

/** The phases whose hooks cannot change the event. */
const PARALLEL = new Set(['guard', 'observe']);

/** What one hook did: where it comes from, and its raw answer if it is kept. */
export function runBody(run, step) {
  const raw = step?.raw;
  const started = run.started ?? step?.started_ms;
  return element(
    'div',
    { class: 'run-body' },
    factList([
      ['Source', run.source && element('span', { title: run.source }, fileName(run.source))],
      ['Handler', run.handler],
      ['Matcher', step?.matcher ?? null],
      ['Phase', run.phase],
      ['Status', run.status],
      ['Cause', run.cause],
      ['Effect', step?.verdict && typeof step.verdict === 'string' ? step.verdict : run.effect],
      ['Reason', run.reason],
      ['Started', started == null ? null : `after ${duration(started)}`],
      ['Waited', step?.wait_ms > 0 ? duration(step.wait_ms) : null],
      ['Took', duration(run.duration)],
      ...run.steps.map(({ name, duration_ms: took }) => [`of which ${name}`, duration(took)]),
      ['Problems', run.problems.join('; ')],
      ['Context', run.contextBytes > 0 ? byteSize(run.contextBytes) : null],
      ['Let through', run.letThrough ? 'yes: it failed, and the operation continued' : null],
      ['Ended with', raw?.exit ?? null],
      ['Input', raw?.input_bytes > 0 ? byteSize(raw.input_bytes) : null],
    ]),
    raw?.stdout && output('Answer', raw.stdout),
    raw?.stderr && output('Standard error', raw.stderr),
    PARALLEL.has(run.phase) &&
      step &&
      element('p', { class: 'remark' }, 'Hooks of this phase run at the same time and cannot change the event.'),
    raw?.truncated && element('p', { class: 'remark' }, 'The output is cut off.'),
  );
}

const output = (label, text) =>
  element(
    'div',
    { class: 'output' },
    element('p', { class: 'label' }, `${label} · ${plural(text.split('\n').length, 'line')}`),
    element('pre', { tabindex: 0 }, text),
  );
