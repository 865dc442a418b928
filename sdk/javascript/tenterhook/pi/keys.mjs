// Keys: their names, and the bytes that terminals send for them.

const NAMED = [
  'escape',
  'esc',
  'enter',
  'return',
  'tab',
  'space',
  'backspace',
  'delete',
  'insert',
  'clear',
  'home',
  'end',
  'pageUp',
  'pageDown',
  'up',
  'down',
  'left',
  'right',
];
const FUNCTIONS = Array.from({ length: 12 }, (_, place) => `f${place + 1}`);
const SYMBOLS = {
  backtick: '`',
  hyphen: '-',
  equals: '=',
  leftbracket: '[',
  rightbracket: ']',
  backslash: '\\',
  semicolon: ';',
  quote: "'",
  comma: ',',
  period: '.',
  slash: '/',
  exclamation: '!',
  at: '@',
  hash: '#',
  dollar: '$',
  percent: '%',
  caret: '^',
  ampersand: '&',
  asterisk: '*',
  leftparen: '(',
  rightparen: ')',
  underscore: '_',
  plus: '+',
  pipe: '|',
  tilde: '~',
  leftbrace: '{',
  rightbrace: '}',
  colon: ':',
  lessthan: '<',
  greaterthan: '>',
  question: '?',
};
const modified =
  (...modifiers) =>
  (key) =>
    [...modifiers, key].join('+');

/** The names of keys, and functions that combine them with modifiers. */
export const Key = {
  ...Object.fromEntries([...NAMED, ...FUNCTIONS].map((name) => [name, name])),
  ...SYMBOLS,
  ctrl: modified('ctrl'),
  shift: modified('shift'),
  alt: modified('alt'),
  super: modified('super'),
  ctrlShift: modified('ctrl', 'shift'),
  shiftCtrl: modified('shift', 'ctrl'),
  ctrlAlt: modified('ctrl', 'alt'),
  altCtrl: modified('alt', 'ctrl'),
  shiftAlt: modified('shift', 'alt'),
  altShift: modified('alt', 'shift'),
  ctrlShiftAlt: modified('ctrl', 'shift', 'alt'),
};

/** Control characters and the keys that send them. */
const CONTROLS = {
  '\x1b': 'escape',
  '\r': 'enter',
  '\n': 'enter',
  '\t': 'tab',
  ' ': 'space',
  '\x7f': 'backspace',
  '\b': 'backspace',
  '\0': 'ctrl+space',
};
/** The last character of a control sequence, and the key. */
const FINALS = {
  A: 'up',
  B: 'down',
  C: 'right',
  D: 'left',
  E: 'clear',
  F: 'end',
  H: 'home',
  P: 'f1',
  Q: 'f2',
  R: 'f3',
  S: 'f4',
  Z: 'shift+tab',
};
/** The number in a control sequence that ends with `~`, and the key. */
const NUMBERS = {
  1: 'home',
  2: 'insert',
  3: 'delete',
  4: 'end',
  5: 'pageUp',
  6: 'pageDown',
  7: 'home',
  8: 'end',
  11: 'f1',
  12: 'f2',
  13: 'f3',
  14: 'f4',
  15: 'f5',
  17: 'f6',
  18: 'f7',
  19: 'f8',
  20: 'f9',
  21: 'f10',
  23: 'f11',
  24: 'f12',
};
const CODES = { 9: 'tab', 13: 'enter', 27: 'escape', 32: 'space', 127: 'backspace', 57414: 'enter' };
const BITS = { shift: 1, alt: 2, ctrl: 4, super: 8 };
/** The order in which the name of a key lists its modifiers. */
const ORDER = ['ctrl', 'shift', 'alt', 'super'];

function withModifiers(key, code) {
  const bits = Number(code ?? 1) - 1;
  return [...ORDER.filter((name) => bits & BITS[name]), key].join('+');
}

/** Returns the name of the key that a terminal sent, or undefined if it is unknown. */
export function parseKey(data) {
  if (CONTROLS[data]) return CONTROLS[data];
  if (/^[\x01-\x1a]$/.test(data)) return `ctrl+${String.fromCharCode(data.charCodeAt(0) + 96)}`;
  if (/^[\x21-\x7e]$/.test(data)) return /[A-Z]/.test(data) ? `shift+${data.toLowerCase()}` : data;
  // Kitty's protocol: the code point, and the modifiers with the kind of event.
  const kitty = /^\x1b\[(\d+)(?::\d*)*(?:;(\d+)(?::\d+)?)?(?:;[\d:]*)?u$/.exec(data);
  if (kitty) return withModifiers(CODES[kitty[1]] ?? String.fromCodePoint(Number(kitty[1])).toLowerCase(), kitty[2]);
  const numbered = /^\x1b\[(\d+)(?:;(\d+)(?::\d+)?)?~$/.exec(data);
  if (numbered) return NUMBERS[numbered[1]] && withModifiers(NUMBERS[numbered[1]], numbered[2]);
  const lettered = /^\x1b(?:O|\[(?:1;(\d+)(?::\d+)?)?)([A-Z])$/.exec(data);
  if (lettered) return FINALS[lettered[2]] && withModifiers(FINALS[lettered[2]], lettered[1]);
  if (data.length === 2 && data[0] === '\x1b') {
    const key = parseKey(data[1]);
    return key && sorted(`alt+${key}`);
  }
  return undefined;
}

const SAME = { esc: 'escape', return: 'enter' };

/** Returns the name of a key with its modifiers in a fixed order. */
function sorted(name) {
  const isPlus = name === '+' || name.endsWith('++');
  const words = isPlus ? [...name.slice(0, -1).split('+').filter(Boolean), '+'] : name.split('+');
  const key = words.pop();
  const base = /^[A-Z]$/.test(key) || key.length > 1 ? (SAME[key.toLowerCase()] ?? key.toLowerCase()) : key;
  return [...ORDER.filter((modifier) => words.includes(modifier)), base].join('+');
}

/** Returns whether a terminal sent this key. */
export function matchesKey(data, key) {
  const sent = parseKey(data);
  if (sent === undefined) return false;
  const [found, expected] = [sorted(sent), sorted(key)];
  // A terminal that does not tell them apart sends the same byte.
  return found === expected || (data === '\x1b' && expected === 'ctrl+[');
}

const kind = (data) => /^\x1b\[[\d;:]*:([123])[u~A-Z]/.exec(data)?.[1];
/** Returns whether the terminal reports that a key was released. */
export const isKeyRelease = (data) => kind(data) === '3';
/** Returns whether the terminal reports that a key is held down. */
export const isKeyRepeat = (data) => kind(data) === '2';

let isActive = false;
export const isKittyProtocolActive = () => isActive;
export function setKittyProtocolActive(active) {
  isActive = active;
}

/** Returns the character that a sequence of Kitty's protocol types, if it types one. */
export function decodeKittyPrintable(data) {
  const [, code, modifiers] = /^\x1b\[(\d+)(?:;(\d+))?u$/.exec(data) ?? [];
  const isTyped =
    code && Number(code) >= 32 && Number(code) < 57344 && Number(code) !== 127 && Number(modifiers ?? 1) <= 2;
  return isTyped ? String.fromCodePoint(Number(code)) : undefined;
}

/** The default keys of the actions that extensions ask for. */
const ACTIONS = {
  'tui.select.up': ['up'],
  'tui.select.down': ['down'],
  'tui.select.pageUp': ['pageUp'],
  'tui.select.pageDown': ['pageDown'],
  'tui.select.confirm': ['enter'],
  'tui.select.cancel': ['escape', 'ctrl+c'],
  'tui.input.submit': ['enter'],
  'tui.input.newLine': ['shift+enter'],
  'tui.input.tab': ['tab'],
  'tui.editor.cursorUp': ['up'],
  'tui.editor.cursorDown': ['down'],
  'tui.editor.cursorLeft': ['left', 'ctrl+b'],
  'tui.editor.cursorRight': ['right', 'ctrl+f'],
  'tui.editor.cursorWordLeft': ['alt+left', 'ctrl+left', 'alt+b'],
  'tui.editor.cursorWordRight': ['alt+right', 'ctrl+right', 'alt+f'],
  'tui.editor.cursorLineStart': ['home', 'ctrl+a'],
  'tui.editor.cursorLineEnd': ['end', 'ctrl+e'],
  'tui.editor.deleteCharBackward': ['backspace'],
  'tui.editor.deleteCharForward': ['delete', 'ctrl+d'],
  'tui.editor.deleteWordBackward': ['ctrl+w', 'alt+backspace'],
  'tui.editor.deleteWordForward': ['alt+d', 'alt+delete'],
  'tui.editor.deleteToLineStart': ['ctrl+u'],
  'tui.editor.deleteToLineEnd': ['ctrl+k'],
  'app.interrupt': ['escape'],
  'app.clear': ['ctrl+c'],
  'app.exit': ['ctrl+d'],
  'app.tools.expand': ['ctrl+o'],
  'app.thinking.cycle': ['shift+tab'],
  'app.model.cycleForward': ['ctrl+p'],
  'app.model.select': ['ctrl+l'],
  'app.thinking.toggle': ['ctrl+t'],
  'app.editor.external': ['ctrl+g'],
  'app.clipboard.pasteImage': ['ctrl+v'],
  // The names before version 0.60.
  selectUp: ['up'],
  selectDown: ['down'],
  selectPageUp: ['pageUp'],
  selectPageDown: ['pageDown'],
  selectConfirm: ['enter'],
  selectCancel: ['escape', 'ctrl+c'],
  submit: ['enter'],
  newLine: ['shift+enter'],
  tab: ['tab'],
  cursorUp: ['up'],
  cursorDown: ['down'],
  cursorLeft: ['left', 'ctrl+b'],
  cursorRight: ['right', 'ctrl+f'],
  cursorWordLeft: ['alt+left', 'ctrl+left', 'alt+b'],
  cursorWordRight: ['alt+right', 'ctrl+right', 'alt+f'],
  cursorLineStart: ['home', 'ctrl+a'],
  cursorLineEnd: ['end', 'ctrl+e'],
  deleteCharBackward: ['backspace'],
  deleteCharForward: ['delete', 'ctrl+d'],
  deleteWordBackward: ['ctrl+w', 'alt+backspace'],
  deleteWordForward: ['alt+d', 'alt+delete'],
  deleteToLineStart: ['ctrl+u'],
  deleteToLineEnd: ['ctrl+k'],
  expandTools: ['ctrl+o'],
  interrupt: ['escape'],
  clear: ['ctrl+c'],
  exit: ['ctrl+d'],
  pasteImage: ['ctrl+v'],
  externalEditor: ['ctrl+g'],
  cycleThinkingLevel: ['shift+tab'],
  selectModel: ['ctrl+l'],
};
export const TUI_KEYBINDINGS = Object.fromEntries(
  Object.entries(ACTIONS)
    .filter(([name]) => name.startsWith('tui.'))
    .map(([name, keys]) => [name, { defaultKeys: keys }]),
);
export const DEFAULT_EDITOR_KEYBINDINGS = Object.fromEntries(
  Object.entries(ACTIONS).filter(([name]) => !name.includes('.')),
);

/** The keys of actions. */
export class KeybindingsManager {
  #keys;

  constructor(_definitions, given = {}) {
    const lists = Object.entries(given).map(([action, keys]) => [action, [keys].flat()]);
    this.#keys = { ...ACTIONS, ...Object.fromEntries(lists) };
  }
  getKeys(action) {
    return this.#keys[action] ?? [];
  }
  matches(data, action) {
    return this.getKeys(action).some((key) => matchesKey(data, key));
  }
}
export { KeybindingsManager as EditorKeybindingsManager };

let bindings = new KeybindingsManager();
export const getKeybindings = () => bindings;
export const getEditorKeybindings = getKeybindings;
export function setKeybindings(manager) {
  bindings = manager;
}
export const setEditorKeybindings = setKeybindings;
