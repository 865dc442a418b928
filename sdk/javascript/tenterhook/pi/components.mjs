// Components that extensions build their displays from. They render to lines of text, which `drawing.mjs` shows.

import { fuzzyFilter } from 'tenterhook:pi/fuzzy.mjs';
import { getKeybindings } from 'tenterhook:pi/keys.mjs';
import { TextBuffer, typedText } from 'tenterhook:pi/text-buffer.mjs';
import { fill, truncateToWidth, visibleWidth, wrapTextWithAnsi } from 'tenterhook:pi/width.mjs';

const pressed = (data, action) => getKeybindings().matches(data, `tui.select.${action}`);
const plain = (text) => text;
/** Styles text with a function of a theme, if the theme has it. */
const styled = (theme, name, text, ...rest) =>
  typeof theme?.[name] === 'function' ? theme[name](text, ...rest) : text;

/** The terminal moves its cursor here. */
export const CURSOR_MARKER = '\x1b_pi:c\x07';
export const isFocusable = (component) => component != null && 'focused' in component;

function padded(lines, width, paddingX, paddingY, background) {
  const empty = Array.from({ length: paddingY }, () => '');
  const indented = lines.map((line) => ' '.repeat(paddingX) + line);
  return [...empty, ...indented, ...empty].map((line) => fill(line, width, background));
}

export class Text {
  constructor(text = '', paddingX = 1, paddingY = 1, background = undefined) {
    Object.assign(this, { text, paddingX, paddingY, background });
  }
  setText(text) {
    this.text = text;
  }
  setCustomBgFn(background) {
    this.background = background;
  }
  invalidate() {}
  render(width) {
    if (!this.text || this.text.trim() === '') return [];
    const room = Math.max(1, width - 2 * this.paddingX);
    const lines = wrapTextWithAnsi(this.text.replaceAll('\t', '   '), room);
    return padded(lines, width, this.paddingX, this.paddingY, this.background);
  }
}

export class TruncatedText {
  constructor(text, paddingX = 0, paddingY = 0) {
    Object.assign(this, { text, paddingX, paddingY });
  }
  invalidate() {}
  render(width) {
    const [line] = this.text.split('\n');
    return padded(
      [truncateToWidth(line, Math.max(1, width - 2 * this.paddingX))],
      width,
      this.paddingX,
      this.paddingY,
    );
  }
}

export class Spacer {
  constructor(lines = 1) {
    this.lines = lines;
  }
  setLines(lines) {
    this.lines = lines;
  }
  invalidate() {}
  render() {
    return Array.from({ length: this.lines }, () => '');
  }
}

export class Container {
  children = [];

  addChild(child) {
    this.children.push(child);
  }
  removeChild(child) {
    const at = this.children.indexOf(child);
    if (at >= 0) this.children.splice(at, 1);
  }
  clear() {
    this.children = [];
  }
  invalidate() {
    for (const child of this.children) child.invalidate?.();
  }
  render(width) {
    return this.children.flatMap((child) => child.render(width));
  }
}
export { Container as VStack };

export class Box extends Container {
  constructor(paddingX = 1, paddingY = 1, background = undefined) {
    super();
    Object.assign(this, { paddingX, paddingY, background });
  }
  setBgFn(background) {
    this.background = background;
  }
  render(width) {
    const lines = super.render(Math.max(1, width - 2 * this.paddingX));
    return lines.length === 0 ? [] : padded(lines, width, this.paddingX, this.paddingY, this.background);
  }
}

export class Markdown extends Text {
  constructor(text, paddingX, paddingY, theme, style = undefined) {
    super(text, paddingX, paddingY, style?.bgColor);
    this.theme = theme;
  }
  render(width) {
    const { theme, text } = this;
    if (!text || text.trim() === '') return [];
    const inline = (line) =>
      line
        .replace(/\*\*([^*]+)\*\*/g, (_, bold) => styled(theme, 'bold', bold))
        .replace(/`([^`]+)`/g, (_, code) => styled(theme, 'code', code));
    let isCode = false;
    const lines = text.split('\n').map((line) => {
      if (line.startsWith('```')) {
        isCode = !isCode;
        return styled(theme, 'codeBlockBorder', line);
      }
      if (isCode) return styled(theme, 'codeBlock', `  ${line}`);
      const heading = /^#{1,6}\s+(.*)$/.exec(line);
      if (heading) return styled(theme, 'heading', styled(theme, 'bold', heading[1]));
      return inline(line.replace(/^(\s*)[*+-]\s+/, (_, indent) => `${indent}${styled(theme, 'listBullet', '- ')}`));
    });
    const room = Math.max(1, width - 2 * this.paddingX);
    return padded(
      lines.flatMap((line) => wrapTextWithAnsi(line, room)),
      width,
      this.paddingX,
      this.paddingY,
      this.background,
    );
  }
}

/** Moves a selection, wrapping around at the ends. */
const moved = (at, by, count) => (count === 0 ? 0 : (at + by + count) % count);

/** Returns the first index of the window of a list that shows the selection. */
const windowStart = (selected, visible, count) =>
  Math.max(0, Math.min(selected - Math.floor(visible / 2), count - visible));

export class SelectList {
  selectedIndex = 0;

  constructor(items, maxVisible, theme, layout = {}) {
    Object.assign(this, { items, filteredItems: items, maxVisible, theme, layout });
  }
  setFilter(filter) {
    this.filteredItems = this.items.filter(({ value }) => value.toLowerCase().startsWith(filter.toLowerCase()));
    this.selectedIndex = 0;
  }
  setSelectedIndex(index) {
    this.selectedIndex = Math.max(0, Math.min(index, this.filteredItems.length - 1));
  }
  getSelectedItem() {
    return this.filteredItems[this.selectedIndex] ?? null;
  }
  invalidate() {}
  render(width) {
    const { filteredItems: items, theme, maxVisible, selectedIndex } = this;
    if (items.length === 0) return [styled(theme, 'noMatch', '  No matching commands')];
    const start = windowStart(selectedIndex, maxVisible, items.length);
    const labelOf = ({ label, value }) => label || value;
    const longest = Math.min(Math.max(...items.map((item) => visibleWidth(labelOf(item)))), Math.floor(width / 2));
    const lines = items.slice(start, start + maxVisible).map((item, place) => {
      const isSelected = start + place === selectedIndex;
      const label = `${isSelected ? '→ ' : '  '}${truncateToWidth(labelOf(item), width - 2, '')}`;
      const description = item.description ? `  ${item.description.replace(/\s+/g, ' ')}` : '';
      const text = description ? fill(label, longest + 2) : label;
      if (isSelected) return styled(theme, 'selectedText', truncateToWidth(text + description, width, ''));
      const room = Math.max(0, width - visibleWidth(text));
      return text + styled(theme, 'description', truncateToWidth(description, room, ''));
    });
    if (items.length > maxVisible)
      lines.push(styled(theme, 'scrollInfo', `  (${selectedIndex + 1}/${items.length})`));
    return lines;
  }
  handleInput(data) {
    const count = this.filteredItems.length;
    const by = pressed(data, 'up') ? -1 : pressed(data, 'down') ? 1 : 0;
    if (by !== 0) {
      this.selectedIndex = moved(this.selectedIndex, by, count);
      if (count > 0) this.onSelectionChange?.(this.getSelectedItem());
    } else if (pressed(data, 'confirm')) {
      if (count > 0) this.onSelect?.(this.getSelectedItem());
    } else if (pressed(data, 'cancel')) {
      this.onCancel?.();
    }
  }
}

export class SettingsList {
  selectedIndex = 0;

  constructor(items, maxVisible, theme, onChange, onCancel, options = {}) {
    Object.assign(this, { items, maxVisible, theme, onChange, onCancel });
    if (options.enableSearch) this.searchInput = new Input();
  }
  get #shown() {
    const query = this.searchInput?.getValue() ?? '';
    return fuzzyFilter(this.items, query, (item) => item.label);
  }
  updateValue(id, value) {
    const item = this.items.find((it) => it.id === id);
    if (item) item.currentValue = value;
  }
  invalidate() {
    this.submenu?.invalidate?.();
  }
  render(width) {
    if (this.submenu) return this.submenu.render(width);
    const { theme, maxVisible, selectedIndex } = this;
    const items = this.#shown;
    const lines = this.searchInput ? [...this.searchInput.render(width), ''] : [];
    if (items.length === 0) return [...lines, styled(theme, 'hint', '  No settings available')];
    const start = windowStart(selectedIndex, maxVisible, items.length);
    const longest = Math.max(...items.map(({ label }) => visibleWidth(label)));
    items.slice(start, start + maxVisible).forEach((item, place) => {
      const isSelected = start + place === selectedIndex;
      const cursor = isSelected ? (theme?.cursor ?? '→ ') : '  ';
      const label = styled(theme, 'label', item.label + ' '.repeat(longest - visibleWidth(item.label)), isSelected);
      lines.push(
        truncateToWidth(`${cursor}${label}  ${styled(theme, 'value', String(item.currentValue), isSelected)}`, width),
      );
    });
    const { description } = items[selectedIndex] ?? {};
    if (description)
      lines.push(
        '',
        ...wrapTextWithAnsi(description, width - 4).map((line) => styled(theme, 'description', `  ${line}`)),
      );
    lines.push('', truncateToWidth(styled(theme, 'hint', '  Enter or Space changes, Esc closes'), width, ''));
    return lines;
  }
  handleInput(data) {
    if (this.submenu) return void this.submenu.handleInput?.(data);
    const items = this.#shown;
    const by = pressed(data, 'up') ? -1 : pressed(data, 'down') ? 1 : 0;
    if (by !== 0) this.selectedIndex = moved(this.selectedIndex, by, items.length);
    else if (pressed(data, 'cancel')) this.onCancel?.();
    else if (pressed(data, 'confirm') || data === ' ') this.#change(items[this.selectedIndex]);
    else if (this.searchInput) {
      this.searchInput.handleInput(data);
      this.selectedIndex = 0;
    }
  }
  #change(item) {
    if (!item) return;
    const choose = (value) => {
      item.currentValue = value;
      this.onChange?.(item.id, value);
    };
    if (item.submenu) {
      this.submenu = item.submenu(item.currentValue, (value) => {
        this.submenu = undefined;
        if (value !== undefined) choose(value);
      });
    } else if (item.values?.length > 0) {
      choose(item.values[(item.values.indexOf(item.currentValue) + 1) % item.values.length]);
    }
  }
}

const shownCursor = (isFocused) => (character) => `${isFocused ? CURSOR_MARKER : ''}\x1b[7m${character}\x1b[27m`;

/** A line that a person types. */
export class Input {
  #buffer = new TextBuffer();
  focused = false;

  getValue() {
    return this.#buffer.text;
  }
  setValue(value) {
    this.#buffer.set(value);
  }
  invalidate() {}
  render(width) {
    // Only the part around the cursor is shown.
    const { rows, cursorRow } = this.#buffer.rows(Math.max(1, width - 2), shownCursor(this.focused));
    return [truncateToWidth(`> ${rows[cursorRow]}`, width, '')];
  }
  handleInput(data) {
    const keys = getKeybindings();
    if (pressed(data, 'cancel')) this.onEscape?.();
    else if (keys.matches(data, 'tui.input.submit')) this.onSubmit?.(this.#buffer.text);
    else this.#buffer.edit(typedText(data)?.replaceAll('\n', ' ') ?? data);
  }
}

/** The part of the screen that an editor takes at most, and its least number of rows. */
const [EDITOR_PART, EDITOR_ROWS] = [0.3, 5];

/** A text of several lines that a person types. */
export class Editor {
  #buffer = new TextBuffer();
  #paddingX;
  #completions = 5;
  /** The position in the history, counted from the latest text. The text that is being written is at -1. */
  #past = -1;
  #draft = '';
  focused = false;
  disableSubmit = false;
  borderColor;
  history = [];

  constructor(tui, theme, options = {}) {
    Object.assign(this, { tui, theme });
    this.borderColor = theme?.borderColor ?? plain;
    this.#paddingX = options.paddingX ?? 0;
  }
  getPaddingX() {
    return this.#paddingX;
  }
  setPaddingX(padding) {
    this.#paddingX = padding;
  }
  getAutocompleteMaxVisible() {
    return this.#completions;
  }
  setAutocompleteMaxVisible(count) {
    this.#completions = count;
  }
  setAutocompleteProvider(provider) {
    this.autocompleteProvider = provider;
  }
  isShowingAutocomplete() {
    return false;
  }
  addToHistory(text) {
    if (text.trim()) this.history.unshift(text);
  }
  getText() {
    return this.#buffer.text;
  }
  getExpandedText() {
    return this.getText();
  }
  getLines() {
    return this.#buffer.lines;
  }
  getCursor() {
    return this.#buffer.cursor;
  }
  setText(text) {
    this.#past = -1;
    this.#change(() => this.#buffer.set(text));
  }
  insertTextAtCursor(text) {
    this.#change(() => this.#buffer.insert(text));
  }
  invalidate() {}
  render(width) {
    const border = this.borderColor('─'.repeat(Math.max(1, width)));
    const indent = ' '.repeat(this.#paddingX);
    const room = Math.max(1, width - 2 * this.#paddingX);
    const { rows, cursorRow } = this.#buffer.rows(room, shownCursor(this.focused));
    const most = Math.max(EDITOR_ROWS, Math.floor((this.tui?.terminal?.rows ?? 0) * EDITOR_PART));
    const start = windowStart(cursorRow, most, rows.length);
    return [border, ...rows.slice(start, start + most).map((row) => indent + row), border];
  }
  handleInput(data) {
    const keys = getKeybindings();
    const by = keys.matches(data, 'tui.editor.cursorUp') ? 1 : keys.matches(data, 'tui.editor.cursorDown') ? -1 : 0;
    if (keys.matches(data, 'tui.input.newLine') || data === '\n') this.insertTextAtCursor('\n');
    else if (keys.matches(data, 'tui.input.submit')) this.#submit();
    else if (by !== 0 && this.#recall(by)) return;
    else this.#change(() => this.#buffer.edit(data));
  }

  /** Applies a change, and reports the text if it is different. */
  #change(change) {
    const before = this.getText();
    change();
    if (this.getText() !== before) this.onChange?.(this.getText());
  }
  /** Shows an earlier or a later text. Returns whether the key at the edge of the text does that. */
  #recall(by) {
    const isAtEdge = by > 0 ? this.#buffer.isOnFirstLine : this.#buffer.isOnLastLine;
    const past = this.#past + by;
    if (!isAtEdge || past < -1 || past >= this.history.length) return false;
    if (this.#past === -1) this.#draft = this.getText();
    this.setText(past === -1 ? this.#draft : this.history[past]);
    this.#past = past;
    return true;
  }
  #submit() {
    if (this.disableSubmit) return;
    const text = this.getText().trim();
    this.setText('');
    this.onSubmit?.(text);
  }
}

/** The pictures of a moving sign, and the time for which each is shown, in milliseconds. */
const MOVING = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
const MOVING_TIME = 80;

/** A message about work that takes long. It moves while it is shown. */
export class Loader extends Text {
  #at = 0;
  #timer;
  #told;

  constructor(ui, spinner = plain, message = plain, text = 'Loading...') {
    super('', 1, 0);
    Object.assign(this, { ui, spinner, message });
    this.setMessage(text);
    this.start();
  }
  start() {
    if (this.#timer || !this.ui?.requestRender) return;
    this.#timer = setInterval(() => {
      this.#at = (this.#at + 1) % MOVING.length;
      this.#show();
    }, MOVING_TIME);
    this.#timer.unref();
  }
  stop() {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
  dispose() {
    this.stop();
  }
  setMessage(text) {
    this.#told = text;
    this.#show();
  }
  #show() {
    this.setText(`${this.spinner(MOVING[this.#at])} ${this.message(this.#told)}`);
    this.ui?.requestRender?.();
  }
  render(width) {
    return ['', ...super.render(width)];
  }
}

export class CancellableLoader extends Loader {
  #controller = new AbortController();

  get signal() {
    return this.#controller.signal;
  }
  get aborted() {
    return this.signal.aborted;
  }
  handleInput(data) {
    if (!pressed(data, 'cancel')) return;
    this.#controller.abort();
    this.onAbort?.();
  }
}
