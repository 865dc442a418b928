// How a file is edited: which text is replaced, and how the change is shown.

/** Characters that models may write differently from the file, and the characters that replace them in comparisons. */
const ALIKE = [
  [/[‘’‚‛]/g, "'"],
  [/[“”„‟]/g, '"'],
  [/[\u2010-\u2015\u2212]/g, '-'],
  [/[\u00a0\u2002-\u200a\u202f\u205f\u3000]/g, ' '],
];

const withLf = (content) => content.replace(/\r\n?/g, '\n');

/** Returns text in the form in which similar texts are equal. */
function comparable(content) {
  const lines = content
    .normalize('NFKC')
    .split('\n')
    .map((line) => line.trimEnd());
  return ALIKE.reduce((all, [from, to]) => all.replace(from, to), lines.join('\n'));
}

/** Returns the replacements of a call, in both forms that pi has had. */
export function editsOf({ oldText, newText, edits }) {
  const all = [...(Array.isArray(edits) ? edits : [])];
  if (typeof oldText === 'string' && typeof newText === 'string') all.push({ oldText, newText });
  if (all.length === 0)
    throw new Error('the call of `edit` has no replacement, expected `oldText` and `newText`, or `edits`');
  return all.map((edit) => ({ oldText: withLf(edit.oldText), newText: withLf(edit.newText) }));
}

/** Applies replacements. Returns the new content of the file, and both contents as they are compared. */
export function replaced(content, edits, name) {
  const mark = content.startsWith('\ufeff') ? '\ufeff' : '';
  const first = content.indexOf('\n');
  const isDos = first > 0 && content[first - 1] === '\r';
  const original = withLf(content.slice(mark.length));
  const isExact = edits.every(({ oldText }) => original.includes(oldText));
  const from = isExact ? original : comparable(original);
  const places = edits.map(({ oldText, newText }) => {
    const wanted = isExact ? oldText : comparable(oldText);
    if (wanted === '') throw new Error(`The text to replace in ${name} is empty.`);
    const at = from.indexOf(wanted);
    if (at < 0)
      throw new Error(
        `Could not find the exact text in ${name}. The old text must match exactly including all whitespace and newlines.`,
      );
    const count = comparable(original).split(comparable(wanted)).length - 1;
    if (count > 1)
      throw new Error(
        `Found ${count} occurrences of the text in ${name}. The text must be unique. Please provide more context to make it unique.`,
      );
    return { at, end: at + wanted.length, newText };
  });
  places.sort((one, other) => one.at - other.at);
  let to = '';
  let done = 0;
  for (const { at, end, newText } of places) {
    if (at < done) throw new Error(`Two replacements in ${name} overlap. Combine them.`);
    to += from.slice(done, at) + newText;
    done = end;
  }
  to += from.slice(done);
  if (to === from) throw new Error(`No changes made to ${name}. The replacement produced identical content.`);
  return { content: mark + (isDos ? to.replaceAll('\n', '\r\n') : to), from, to };
}

/** Shows what changed between two texts, with the lines around it. */
export function generateDiffString(from, to, context = 4) {
  const [before, after] = [from.split('\n'), to.split('\n')];
  const width = String(Math.max(before.length, after.length)).length;
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let same = 0;
  while (same < before.length - start && same < after.length - start && before.at(-1 - same) === after.at(-1 - same))
    same += 1;
  const show = (mark, lines, first) =>
    lines.map((line, place) => `${mark}${String(first + place + 1).padStart(width)} ${line}`);
  const dots = ` ${' '.repeat(width)} ...`;
  const lead = Math.max(0, start - context);
  const tail = before.slice(before.length - same);
  const lines = [
    ...(lead > 0 ? [dots] : []),
    ...show(' ', before.slice(lead, start), lead),
    ...show('-', before.slice(start, before.length - same), start),
    ...show('+', after.slice(start, after.length - same), start),
    ...show(' ', tail.slice(0, context), after.length - same),
    ...(tail.length > context ? [dots] : []),
  ];
  return { diff: lines.join('\n'), firstChangedLine: start + 1 };
}
