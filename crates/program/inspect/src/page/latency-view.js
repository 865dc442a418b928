// How long hooks take: the share of turns, and a histogram for each event and each hook.

import { element, emptyState, shape } from './element.js';
import { count, duration, percent, plural } from './format.js';
import { BUCKETS, eventStats, histogram, hookStats, stepStats, turnShare } from './stats.js';

/** The most charts of a kind. */
const MAX_CHARTS = 24;
const WIDTH = 260;
const HEIGHT = 64;
const SLOW = 1000;

export function latencyView(rows, { onhook, onevent }) {
  const hooks = hookStats(rows)
    .filter(({ runs }) => runs > 0)
    .sort((a, b) => b.total - a.total);
  const steps = stepStats(rows).sort((a, b) => b.total - a.total);
  const events = eventStats(rows).sort((a, b) => b.total - a.total);
  if (events.length === 0) return emptyState('No durations', 'No event that is shown reached a hook.');
  return element(
    'div',
    { class: 'latency' },
    totals(rows, events, hooks),
    share(hooks),
    charts(
      'Events',
      events.map((entry) => ({ ...entry, name: entry.event, note: plural(entry.count, 'time'), open: onevent })),
    ),
    steps.length > 0 &&
      charts(
        'Steps of hooks',
        steps.map((entry) => ({
          ...entry,
          note: `${entry.hook} · ${plural(entry.count, 'time')}`,
          open: () => onhook(entry.hook),
        })),
      ),
    charts(
      'Hooks',
      hooks.map((entry) => ({
        ...entry,
        name: entry.hook,
        note: `${entry.event} · ${plural(entry.runs, 'run')}`,
        open: onhook,
      })),
    ),
  );
}

function totals(rows, events, hooks) {
  const total = events.reduce((sum, event) => sum + event.total, 0);
  const slow = rows.reduce((sum, row) => sum + (row.kind === 'dispatch' && row.duration > SLOW ? 1 : 0), 0);
  const { turns, turnTime, hookTime } = turnShare(rows);
  const facts = [
    ['Time in hooks', duration(total)],
    ['Hook runs', count(hooks.reduce((sum, hook) => sum + hook.runs, 0))],
    ['Events over 1 s', count(slow)],
    [
      'Share of turns',
      turns > 0
        ? `${percent(hookTime, turnTime)} of ${plural(turns, 'turn')}`
        : 'unknown: needs turn_start and turn_end',
    ],
  ];
  return element(
    'dl',
    { class: 'numbers' },
    facts.map(([name, value]) => element('div', {}, element('dt', {}, name), element('dd', {}, value))),
  );
}

/** Draws which hooks take the most time. */
function share(hooks) {
  const total = hooks.reduce((sum, hook) => sum + hook.total, 0);
  const shown = hooks.slice(0, 10);
  return (
    shown.length > 0 &&
    element(
      'section',
      {},
      element('h2', {}, 'Where the time goes'),
      element(
        'ul',
        { class: 'shares' },
        shown.map((hook) =>
          element(
            'li',
            {},
            element('span', { class: 'name' }, hook.hook, element('span', { class: 'soft' }, ` ${hook.event}`)),
            shape(
              'svg',
              { class: 'track', viewBox: '0 0 1000 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
              shape('rect', { class: 'ground', x: 0, y: 1, width: 1000, height: 10 }),
              shape('rect', {
                class: 'span',
                x: 0,
                y: 1,
                width: Math.max(2, (1000 * hook.total) / total).toFixed(1),
                height: 10,
              }),
            ),
            element('span', { class: 'number' }, percent(hook.total, total)),
            element('span', { class: 'number soft' }, duration(hook.total)),
          ),
        ),
      ),
    )
  );
}

function charts(title, entries) {
  const shown = entries.slice(0, MAX_CHARTS);
  return element(
    'section',
    {},
    element('h2', {}, title),
    element('div', { class: 'charts' }, shown.map(chart)),
    entries.length > shown.length &&
      element('p', { class: 'soft' }, `${plural(entries.length - shown.length, 'faster one')} not shown`),
  );
}

function chart({ name, note, durations, p50, p95, max, open }) {
  const counts = histogram(durations);
  const highest = Math.max(...counts);
  const width = WIDTH / counts.length;
  const label = `${name}: p50 ${duration(p50)}, p95 ${duration(p95)}, longest ${duration(max)}`;
  const bars = counts.map((number, index) => {
    const height = number === 0 ? 0 : Math.max(2, (HEIGHT * number) / highest);
    const isSlow = index > BUCKETS.indexOf(SLOW);
    return shape(
      'g',
      {},
      shape('title', {}, `${bucketName(index)}: ${plural(number, 'time')}`),
      shape('rect', { class: 'hit', x: (index * width).toFixed(1), y: 0, width: width.toFixed(1), height: HEIGHT }),
      shape('rect', {
        class: isSlow ? 'slow' : 'calm',
        x: (index * width + 1).toFixed(1),
        y: (HEIGHT - height).toFixed(1),
        width: (width - 2).toFixed(1),
        height: height.toFixed(1),
      }),
    );
  });
  const marks = [0.1, 1, 10, 100, 1000, 10_000].map((ms) =>
    shape(
      'text',
      {
        x: ((BUCKETS.indexOf(ms) + 1) * width).toFixed(1),
        y: HEIGHT + 13,
        'text-anchor': 'middle',
      },
      ms < 1000 ? String(ms) : `${ms / 1000} s`,
    ),
  );
  return element(
    'figure',
    {},
    element(
      'figcaption',
      {},
      element(
        'button',
        { type: 'button', class: 'link', onclick: () => open(name), 'data-key': `chart:${note}:${name}` },
        name,
      ),
      element('span', { class: 'soft' }, note),
    ),
    shape(
      'svg',
      { viewBox: `0 0 ${WIDTH} ${HEIGHT + 18}`, role: 'img', 'aria-label': label },
      bars,
      shape('path', { class: 'axis', d: `M0 ${HEIGHT}.500H${WIDTH}` }),
      marks,
    ),
    element(
      'dl',
      { class: 'inline' },
      [
        ['p50', p50],
        ['p95', p95],
        ['max', max],
      ].map(([term, ms]) => element('div', {}, element('dt', {}, term), element('dd', {}, duration(ms)))),
    ),
  );
}

function bucketName(index) {
  if (index === 0) return `under ${duration(BUCKETS[0])}`;
  if (index === BUCKETS.length) return `${duration(BUCKETS.at(-1))} and more`;
  return `${duration(BUCKETS[index - 1])} to ${duration(BUCKETS[index])}`;
}
