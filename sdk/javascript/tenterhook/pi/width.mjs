// How wide text is in a terminal, and how it is cut and wrapped. Escape sequences take no width.

/** Matches an escape sequence: colours and other controls, links, and application data. */
const SEQUENCE = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]_P^][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])/y;
const RESET = '\x1b[0m';
const TAB = 3;

let segmenter;
let classes;

/** Splits text into characters as a person sees them. */
export function segmentsOf(text) {
  segmenter ??= new Intl.Segmenter(undefined, { granularity: 'grapheme' });
  return segmenter.segment(text);
}

/** Returns the expressions for characters without width and for emoji. They take long to read, and few texts need them. */
function classesOf() {
  classes ??= {
    invisible: new RegExp('^(?:\\p{Control}|\\p{Mark}|\\p{Default_Ignorable_Code_Point}|\\p{Surrogate})+$', 'v'),
    emoji: new RegExp('^\\p{RGI_Emoji}$', 'v'),
  };
  return classes;
}

/** Ranges of characters that take two columns, as in the Unicode table of East Asian widths. */
const WIDE = [
  [0x1100, 0x115f],
  [0x231a, 0x231b],
  [0x2329, 0x232a],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xa960, 0xa97f],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

function widthOf(character) {
  if (character === '\t') return TAB;
  if (isAscii(character)) return 1;
  const { invisible, emoji } = classesOf();
  if (invisible.test(character)) return 0;
  if (emoji.test(character)) return 2;
  const code = character.codePointAt(0);
  return WIDE.some(([from, to]) => code >= from && code <= to) ? 2 : 1;
}

/** Splits text into escape sequences and characters as a person sees them, with their widths. */
export function* parts(text) {
  let at = 0;
  while (at < text.length) {
    SEQUENCE.lastIndex = at;
    const sequence = text[at] === '\x1b' ? SEQUENCE.exec(text)?.[0] : undefined;
    if (sequence) {
      at += sequence.length;
      yield { text: sequence, width: 0, isSequence: true };
      continue;
    }
    const next = text.indexOf('\x1b', at + 1);
    const plain = text.slice(at, next < 0 ? text.length : next);
    at += plain.length;
    for (const { segment } of segmentsOf(plain))
      yield { text: segment, width: widthOf(segment), isSequence: false };
  }
}

const isAscii = (text) => /^[\x20-\x7e]*$/.test(text);

/** Returns the number of columns that text takes. */
export function visibleWidth(text) {
  if (isAscii(text)) return text.length;
  let width = 0;
  for (const part of parts(text)) width += part.width;
  return width;
}

/** Returns the part of a line from one column on, up to a number of columns. */
export function sliceByColumn(line, start, length) {
  let column = 0;
  let slice = '';
  for (const part of parts(line)) {
    const isInside = column >= start && column + part.width <= start + length;
    if (part.isSequence || isInside) slice += part.text;
    column += part.width;
  }
  return slice;
}

/** Cuts text so that it fits, and marks the cut. With `pad`, fills the rest with spaces. */
export function truncateToWidth(text, maxWidth, ellipsis = '...', pad = false) {
  const width = visibleWidth(text);
  if (width <= maxWidth) return pad ? text + ' '.repeat(maxWidth - width) : text;
  const mark = visibleWidth(ellipsis) < maxWidth ? ellipsis : sliceByColumn(ellipsis, 0, maxWidth);
  const room = maxWidth - visibleWidth(mark);
  let kept = '';
  let used = 0;
  for (const part of parts(text)) {
    if (used + part.width > room) break;
    kept += part.text;
    used += part.width;
  }
  const filled = pad ? ' '.repeat(Math.max(0, room - used)) : '';
  return `${kept}${RESET}${mark}${filled}`;
}

/** Remembers which colours and styles are switched on. */
class Style {
  #active = [];

  read(sequence) {
    if (!/^\x1b\[[\d;]*m$/.test(sequence)) return;
    if (/^\x1b\[0?m$/.test(sequence)) this.#active = [];
    else this.#active.push(sequence);
  }
  get start() {
    return this.#active.join('');
  }
  get end() {
    return this.#active.length > 0 ? RESET : '';
  }
}

/** Wraps text at spaces. Words that are too long are split. Styles continue on the next line. */
export function wrapTextWithAnsi(text, width) {
  const style = new Style();
  const lines = [];
  for (const paragraph of text.split('\n')) {
    let line = style.start;
    let used = 0;
    let word = '';
    let wordWidth = 0;
    const breakLine = () => {
      lines.push(line.trimEnd() + style.end);
      line = style.start;
      used = 0;
    };
    const placeWord = () => {
      if (used > 0 && used + wordWidth > width) breakLine();
      line += word;
      used += wordWidth;
      word = '';
      wordWidth = 0;
    };
    for (const part of parts(paragraph)) {
      if (part.isSequence) {
        placeWord();
        style.read(part.text);
        line += part.text;
        continue;
      }
      const isSpace = part.text === ' ' || part.text === '\t';
      if (isSpace) {
        placeWord();
        if (used + part.width <= width) {
          line += part.text;
          used += part.width;
        } else {
          breakLine();
        }
        continue;
      }
      if (wordWidth + part.width > width) placeWord();
      word += part.text;
      wordWidth += part.width;
    }
    placeWord();
    lines.push(line + style.end);
  }
  return lines;
}

/** Adds spaces up to a width, and a background. */
export function fill(line, width, background) {
  const filled = line + ' '.repeat(Math.max(0, width - visibleWidth(line)));
  return background ? background(filled) : filled;
}

const STYLE = /^\x1b\[[\d;:]*m$/;
const ANY_SEQUENCE = new RegExp(SEQUENCE.source, 'g');

/** Removes escape sequences that are not colours or styles from a line, and replaces tabs. */
export function onlyStyles(line) {
  return String(line)
    .replace(ANY_SEQUENCE, (sequence) => (STYLE.test(sequence) ? sequence : ''))
    .replaceAll('\t', ' '.repeat(TAB));
}

/** Removes all escape sequences. */
export function stripTerminalSequences(text) {
  let plain = '';
  for (const part of parts(text)) if (!part.isSequence) plain += part.text;
  return plain;
}
