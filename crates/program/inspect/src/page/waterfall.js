// When which hook of an event ran: one bar for each hook, in groups by phase.

import { element, shape } from './element.js';
import { duration } from './format.js';
import { runBody } from './run.js';
import { isFailure } from './store.js';

const PHASES = ['transform', 'main', 'guard', 'observe'];
const PHASE_NAMES = { transform: 'Transform', main: 'Main', guard: 'Guard', observe: 'Observe' };
const WIDTH = 1000;
const MIN_BAR = 6;

/** Draws the runs of a row. `detail` has the waiting times and the raw answers, if the server keeps them. */
export function waterfall(row, detail) {
  const steps = stepsOfRuns(row.runs, detail);
  const hasTimes = row.runs.some((run) => startOf(run, steps.get(run)) !== null);
  const end =
    row.runs.reduce((most, run) => Math.max(most, (startOf(run, steps.get(run)) ?? 0) + run.duration), row.duration) ||
    1;
  const groups = PHASES.map((phase) => [phase, row.runs.filter((run) => run.phase === phase)]);
  groups.push([null, row.runs.filter((run) => !PHASES.includes(run.phase))]);
  return element(
    'section',
    { class: 'waterfall' },
    element('h3', {}, 'Hooks', element('span', { class: 'soft' }, ` 0 – ${duration(end)}`)),
    groups
      .filter(([, runs]) => runs.length > 0)
      .map(([phase, runs]) =>
        element(
          'div',
          { class: 'phase' },
          phase && element('h4', {}, PHASE_NAMES[phase]),
          runs.map((run) => runLine(run, steps.get(run), end)),
        ),
      ),
    !hasTimes &&
      element(
        'p',
        { class: 'remark' },
        'This journal does not say when each hook started, so every bar begins at the left.',
      ),
  );
}

const startOf = (run, step) => run.started ?? step?.started_ms ?? null;

/** Finds the step of each run. A hook can run several times in one dispatch; then the order tells. */
function stepsOfRuns(runs, detail) {
  const rest = [...(detail?.steps ?? [])];
  const steps = new Map();
  for (const run of runs) {
    const index = rest.findIndex((step) => step.hook === run.hook);
    if (index >= 0) steps.set(run, rest.splice(index, 1)[0]);
  }
  return steps;
}

function toneOf(run) {
  if (isFailure(run.status)) return 'failed';
  if (run.status === 'skipped' || run.status === 'cancelled') return 'skipped';
  return run.effect;
}

function runLine(run, step, end) {
  const tone = toneOf(run);
  const word = run.status === 'completed' ? run.effect : run.status.replace('_', ' ');
  return element(
    'details',
    { class: `run ${tone}` },
    element(
      'summary',
      {},
      element('span', { class: 'hook' }, run.hook),
      element('span', { class: `chip ${tone}` }, word),
      bar(run, step, end, tone),
      element('span', { class: 'took' }, tone === 'skipped' ? '–' : duration(run.duration)),
    ),
    runBody(run, step),
  );
}

function bar(run, step, end, tone) {
  const at = (ms) => (WIDTH * ms) / end;
  const start = at(startOf(run, step) ?? 0);
  const width = Math.max(MIN_BAR, at(run.duration));
  const wait = at(step?.wait_ms ?? 0);
  const left = Math.min(start, WIDTH - MIN_BAR);
  return shape(
    'svg',
    { class: 'track', viewBox: `0 0 ${WIDTH} 12`, preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    shape('rect', { class: 'ground', x: 0, y: 5, width: WIDTH, height: 2 }),
    wait > 1 &&
      shape('rect', { class: 'wait', x: Math.max(0, left - wait).toFixed(1), y: 4, width: wait.toFixed(1), height: 4 }),
    tone !== 'skipped' &&
      shape('rect', {
        class: `span ${tone}`,
        x: left.toFixed(1),
        y: 1,
        width: Math.min(width, WIDTH - left).toFixed(1),
        height: 10,
      }),
  );
}
