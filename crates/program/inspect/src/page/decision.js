// Says in sentences how the answers of several hooks became one decision. It knows nothing about the DOM.

import { isFailure } from './store.js';

/** Effects that decide, the strongest first. */
const STRENGTH = ['deny', 'block', 'stop_run', 'withhold', 'ask', 'allow'];

/** The tones of effects that do not stop the operation. */
const TONES = { ask: 'warn', allow: 'plain' };

const capitalized = (text) => text[0].toUpperCase() + text.slice(1).replaceAll('_', ' ');
const quoted = (names) => names.map((name) => `\`${name}\``).join(', ');

/** Returns sentences about a dispatch, each with a `tone`: `danger`, `warn` or `plain`. */
export function explainDecision(row) {
  if (row.kind !== 'dispatch') return [];
  return [...failures(row), ...problems(row), ...winner(row), ...skips(row), ...rewrites(row)];
}

function winner({ runs, reason, outcome }) {
  const ranked = runs.filter((run) => run.status === 'completed' && STRENGTH.includes(run.effect));
  if (ranked.length === 0) {
    if (outcome === 'deny' || outcome === 'block') return [{ tone: 'danger', text: `Stopped${because(reason)}.` }];
    return [];
  }
  const strength = (run) => STRENGTH.indexOf(run.effect);
  const first = ranked.reduce((best, run) => (strength(run) < strength(best) ? run : best));
  const weaker = ranked.filter((run) => strength(run) > strength(first));
  const over = weaker.map((run) => `${run.effect} of \`${run.hook}\``).join(', ');
  const where = first.phase ? ` (${first.phase})` : '';
  const tone = TONES[first.effect] ?? 'danger';
  const rest = `${over ? ` wins over ${over}` : ' decides'}${because(reason)}.`;
  return [{ tone, text: `${capitalized(first.effect)} of \`${first.hook}\`${where}${rest}` }];
}

const because = (reason) => (reason ? `: ${reason.replace(/\.$/, '')}` : '');

function failures({ runs, failures: listed, isStopped }) {
  const failed = runs.filter((run) => isFailure(run.status));
  const known =
    failed.length > 0
      ? failed.map(({ hook, status, cause, letThrough }) => ({ hook, cause: cause ?? status, letThrough }))
      : listed.map(({ hook, cause, let_through: letThrough }) => ({ hook, cause, letThrough }));
  return known.map(({ hook, cause, letThrough }) => {
    if (letThrough) return { tone: 'danger', text: `The operation continued although \`${hook}\` failed: ${cause}.` };
    const effect = isStopped ? 'The operation was stopped.' : 'Its answer was not used.';
    return { tone: 'warn', text: `\`${hook}\` failed: ${cause}. ${effect}` };
  });
}

/** What went wrong in hooks that answered anyway. */
function problems({ runs }) {
  return runs.flatMap(({ hook, problems: own }) =>
    own.map((text) => ({ tone: 'warn', text: `\`${hook}\`: ${text}.` })),
  );
}

function skips({ runs }) {
  const causes = new Map();
  for (const { hook, status, cause } of runs) {
    if (status !== 'skipped') continue;
    const text = cause ?? 'an earlier hook ended the dispatch';
    causes.set(text, [...(causes.get(text) ?? []), hook]);
  }
  return [...causes].map(([cause, hooks]) => ({ tone: 'plain', text: `Not started: ${quoted(hooks)} (${cause}).` }));
}

function rewrites({ rewritten, runs, isStopped }) {
  if (rewritten.length === 0) return [];
  const hooks = runs.filter((run) => run.effect === 'rewrite').map((run) => run.hook);
  const by = hooks.length > 0 ? ` by ${quoted(hooks)}` : '';
  return [{ tone: 'plain', text: `Changed ${quoted(rewritten)}${by}${isStopped ? ', before it was stopped' : ''}.` }];
}
