// A text that a person edits: its lines, its cursor, and the keys that change them.

import { getKeybindings } from 'tenterhook:pi/keys.mjs';
import { segmentsOf, visibleWidth } from 'tenterhook:pi/width.mjs';

const charactersOf = (text) => Array.from(segmentsOf(text), ({ segment }) => segment);
const isSpace = (character) => /^\s$/.test(character);

/** What a terminal sends around pasted text. */
const PASTE = /^\x1b\[200~([^]*)\x1b\[201~$/;

/** The changes that keys make, by the names of their actions after `tui.editor.`. */
const EDITS = {
  cursorLeft: (buffer) => buffer.move(-1),
  cursorRight: (buffer) => buffer.move(1),
  cursorUp: (buffer) => buffer.moveLine(-1),
  cursorDown: (buffer) => buffer.moveLine(1),
  cursorWordLeft: (buffer) => buffer.moveTo(buffer.wordStart()),
  cursorWordRight: (buffer) => buffer.moveTo(buffer.wordEnd()),
  cursorLineStart: (buffer) => buffer.moveTo(0),
  cursorLineEnd: (buffer) => buffer.moveTo(Infinity),
  deleteCharBackward: (buffer) => buffer.deleteBefore(),
  deleteCharForward: (buffer) => buffer.deleteAfter(),
  deleteWordBackward: (buffer) => buffer.deleteTo(buffer.wordStart()),
  deleteWordForward: (buffer) => buffer.deleteTo(buffer.wordEnd()),
  deleteToLineStart: (buffer) => buffer.deleteTo(0),
  deleteToLineEnd: (buffer) => buffer.deleteTo(Infinity),
};

/** Returns the text that a key types, or undefined if it types none. */
export function typedText(data) {
  const pasted = PASTE.exec(data);
  if (pasted) return pasted[1].replace(/\r\n?/g, '\n').replaceAll('\t', '    ').replace(/[\x00-\x09\x0b-\x1f\x7f]/g, '');
  return /[\x00-\x1f\x7f]/.test(data) ? undefined : data;
}

export class TextBuffer {
  /** The lines, each as a list of characters as a person sees them. */
  #lines = [[]];
  #row = 0;
  #column = 0;

  get text() {
    return this.lines.join('\n');
  }
  get lines() {
    return this.#lines.map((line) => line.join(''));
  }
  /** The cursor, with the column in UTF-16 units. */
  get cursor() {
    return { line: this.#row, col: this.#line.slice(0, this.#column).join('').length };
  }
  get isOnFirstLine() {
    return this.#row === 0;
  }
  get isOnLastLine() {
    return this.#row === this.#lines.length - 1;
  }
  get #line() {
    return this.#lines[this.#row];
  }

  /** Replaces the text, and moves the cursor to its end. */
  set(text) {
    this.#lines = String(text).split('\n').map(charactersOf);
    this.#row = this.#lines.length - 1;
    this.#column = this.#line.length;
  }

  insert(text) {
    const before = this.#line.slice(0, this.#column).join('');
    const after = this.#line.slice(this.#column);
    const added = (before + text).split('\n').map(charactersOf);
    const column = added.at(-1).length;
    added.at(-1).push(...after);
    this.#lines.splice(this.#row, 1, ...added);
    this.#row += added.length - 1;
    this.#column = column;
  }

  move(by) {
    const column = this.#column + by;
    if (column >= 0 && column <= this.#line.length) this.#column = column;
    else if (this.#lines[this.#row + by]) {
      this.#row += by;
      this.#column = by < 0 ? this.#line.length : 0;
    }
  }
  moveLine(by) {
    if (!this.#lines[this.#row + by]) return;
    const width = visibleWidth(this.#line.slice(0, this.#column).join(''));
    this.#row += by;
    let used = 0;
    const past = this.#line.findIndex((character) => (used += visibleWidth(character)) > width);
    this.#column = past < 0 ? this.#line.length : past;
  }
  moveTo(column) {
    this.#column = Math.min(column, this.#line.length);
  }
  wordStart() {
    let at = this.#column;
    while (at > 0 && isSpace(this.#line[at - 1])) at -= 1;
    while (at > 0 && !isSpace(this.#line[at - 1])) at -= 1;
    return at;
  }
  wordEnd() {
    let at = this.#column;
    while (at < this.#line.length && isSpace(this.#line[at])) at += 1;
    while (at < this.#line.length && !isSpace(this.#line[at])) at += 1;
    return at;
  }

  deleteBefore() {
    if (this.#column === 0 && this.#row === 0) return;
    this.move(-1);
    this.deleteAfter();
  }
  deleteAfter() {
    if (this.#column < this.#line.length) this.#line.splice(this.#column, 1);
    else if (this.#row + 1 < this.#lines.length) this.#line.push(...this.#lines.splice(this.#row + 1, 1)[0]);
  }
  deleteTo(column) {
    const [from, to] = [column, this.#column].sort((one, other) => one - other);
    this.#line.splice(from, to - from);
    this.#column = from;
  }

  /** Applies a key that moves the cursor or changes the text. Returns whether it is one. */
  edit(data) {
    const keys = getKeybindings();
    const [, edit] = Object.entries(EDITS).find(([action]) => keys.matches(data, `tui.editor.${action}`)) ?? [];
    if (edit) edit(this);
    else {
      const text = typedText(data);
      if (text === undefined) return false;
      this.insert(text);
    }
    return true;
  }

  /**
   * Returns the rows of the text at a width, and the row of the cursor. `showCursor` styles the character at the
   * cursor.
   */
  rows(width, showCursor) {
    const rows = [];
    let cursorRow = 0;
    this.#lines.forEach((line, number) => {
      let row = '';
      let used = 0;
      const isCursorHere = number === this.#row;
      const characters = isCursorHere && this.#column === line.length ? [...line, ' '] : line;
      characters.forEach((character, at) => {
        const size = visibleWidth(character);
        if (used > 0 && used + size > width) {
          rows.push(row);
          [row, used] = ['', 0];
        }
        const isCursor = isCursorHere && at === this.#column;
        if (isCursor) cursorRow = rows.length;
        row += isCursor ? showCursor(character) : character;
        used += size;
      });
      rows.push(row);
    });
    return { rows, cursorRow };
  }
}
