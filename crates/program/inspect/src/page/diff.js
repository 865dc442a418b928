// Compares payloads: which fields a hook changed, and which lines of a long text.
//
// Payloads come from tools and models, so every loop has a limit.

const MAX_FIELDS = 200;
const MAX_DEPTH = 12;
/** The most cells of the table of common lines. Larger texts are shown as replaced. */
const MAX_CELLS = 400_000;
/** The unchanged lines that are kept around a change. */
const CONTEXT = 3;

const isObject = (value) => typeof value === 'object' && value !== null;

function isEqual(a, b) {
  return a === b || (isObject(a) && isObject(b) && JSON.stringify(a) === JSON.stringify(b));
}

/**
 * Returns the fields that differ, each with its `path`, `before` and `after`. A value that does not exist is
 * `undefined`. Lists of different lengths are compared as a whole.
 */
export function changedFields(before, after) {
  const changes = [];
  compare(before, after, '', 0, changes);
  return changes;
}

function compare(before, after, path, depth, changes) {
  if (changes.length >= MAX_FIELDS || isEqual(before, after)) return;
  const isDeep =
    isObject(before) &&
    isObject(after) &&
    depth < MAX_DEPTH &&
    Array.isArray(before) === Array.isArray(after) &&
    (!Array.isArray(before) || before.length === after.length);
  if (!isDeep) {
    changes.push({ path: path || '(all)', before, after });
    return;
  }
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    const step = Array.isArray(before) ? `[${key}]` : path === '' ? key : `.${key}`;
    compare(own(before, key), own(after, key), path + step, depth + 1, changes);
  }
}

const own = (object, key) => (Object.hasOwn(object, key) ? object[key] : undefined);

/** Returns the versions of a payload: the original, one for each hook that changed it, and the final one. */
export function versions({ original, steps, final }) {
  const list = [{ label: 'Original', hook: null, payload: original }];
  for (const step of steps ?? []) {
    if (isObject(step.after)) list.push({ label: `After ${step.hook}`, hook: step.hook, payload: step.after });
  }
  const last = list.at(-1);
  if (isObject(final) && !isEqual(last.payload, final)) list.push({ label: 'Final', hook: null, payload: final });
  return list;
}

/** Writes a value as text: a string as it is, everything else as JSON. */
export function valueText(value) {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2);
}

/** Compares two texts line by line. Returns lines with `kind` (`same`, `removed`, `added` or `gap`) and `text`. */
export function lineDiff(before, after) {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const middleA = a.slice(start, a.length - end);
  const middleB = b.slice(start, b.length - end);
  const lines = [
    ...a.slice(0, start).map((text) => ({ kind: 'same', text })),
    ...middle(middleA, middleB),
    ...a.slice(a.length - end).map((text) => ({ kind: 'same', text })),
  ];
  return withGaps(lines);
}

function middle(a, b) {
  if (a.length === 0 || b.length === 0 || (a.length + 1) * (b.length + 1) > MAX_CELLS) {
    return [...a.map((text) => ({ kind: 'removed', text })), ...b.map((text) => ({ kind: 'added', text }))];
  }
  const lengths = commonLengths(a, b);
  const width = b.length + 1;
  const lines = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) {
      lines.push({ kind: 'same', text: a[i] });
      i += 1;
      j += 1;
    } else if (j >= b.length || (i < a.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) {
      lines.push({ kind: 'removed', text: a[i] });
      i += 1;
    } else {
      lines.push({ kind: 'added', text: b[j] });
      j += 1;
    }
  }
  return lines;
}

/** Returns the length of the longest common part of each pair of ends of two lists. */
function commonLengths(a, b) {
  const width = b.length + 1;
  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      lengths[i * width + j] =
        a[i] === b[j]
          ? lengths[(i + 1) * width + j + 1] + 1
          : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  return lengths;
}

/** Replaces unchanged lines that are far from a change by one line that counts them. */
function withGaps(lines) {
  const isNear = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === 'same') return;
    isNear.fill(1, Math.max(0, index - CONTEXT), index + CONTEXT + 1);
  });
  const shown = [];
  let hidden = 0;
  const addGap = () => {
    if (hidden > 0) shown.push({ kind: 'gap', text: `${hidden} unchanged ${hidden === 1 ? 'line' : 'lines'}` });
    hidden = 0;
  };
  lines.forEach((line, index) => {
    if (isNear[index]) {
      addGap();
      shown.push(line);
    } else hidden += 1;
  });
  addGap();
  return shown;
}

/** Splits two similar one-line texts into the common beginning, the part that differs, and the common end. */
export function changedPart(before, after) {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  const most = Math.min(before.length, after.length) - start;
  while (end < most && before[before.length - 1 - end] === after[after.length - 1 - end]) end += 1;
  return {
    head: before.slice(0, start),
    removed: before.slice(start, before.length - end),
    added: after.slice(start, after.length - end),
    tail: before.slice(before.length - end),
  };
}
