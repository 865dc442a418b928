// The stand-in for pi's own package: what extensions import from it.

import os from 'node:os';
import path from 'node:path';

import { CancellableLoader, Container, Editor, Loader, Spacer, Text } from 'tenterhook:pi/components.mjs';
import { getKeybindings } from 'tenterhook:pi/keys.mjs';
import { drawnTheme } from 'tenterhook:pi/theme.mjs';

export * from 'tenterhook:pi/events.mjs';
export * from 'tenterhook:pi/frontmatter.mjs';
export * from 'tenterhook:pi/tools.mjs';
export { generateDiffString } from 'tenterhook:pi/edit.mjs';
export {
  DEFAULT_MAX_BYTES,
  DEFAULT_MAX_LINES,
  formatSize,
  truncateHead,
  truncateLine,
  truncateTail,
} from 'tenterhook:pi/truncate.mjs';
export {
  calculateContextTokens,
  convertToLlm,
  DEFAULT_COMPACTION_SETTINGS,
  estimateTokens,
  getLastAssistantUsage,
  getLatestCompactionEntry,
  serializeConversation,
  shouldCompact,
} from 'tenterhook:pi/messages.mjs';

/** The version of pi that the stand-ins follow. */
export const VERSION = '0.58.3';
export const CONFIG_DIR_NAME = '.pi';
export const CURRENT_SESSION_VERSION = 3;

/** Returns pi's folder of the user. */
export function getAgentDir() {
  const given = process.env.PI_CODING_AGENT_DIR;
  return given ? given.replace(/^~(?=\/|$)/, os.homedir()) : path.join(os.homedir(), CONFIG_DIR_NAME, 'agent');
}

export const defineTool = (tool) => tool;

/** Creates a bus on which extensions send events to one another. */
export function createEventBus() {
  const listeners = new Map();
  return {
    on(channel, listener) {
      if (!listeners.has(channel)) listeners.set(channel, new Set());
      listeners.get(channel).add(listener);
      return () => listeners.get(channel).delete(listener);
    },
    emit(channel, data) {
      for (const listener of listeners.get(channel) ?? []) listener(data);
    },
    clear: () => listeners.clear(),
  };
}

// Styles. Text has colours while it is drawn.

const plain = (text) => text;

export class Theme {
  name = 'plain';
  fg = (_color, text) => text;
  bg = (_color, text) => text;
  bold = plain;
  italic = plain;
  underline = plain;
  inverse = plain;
  strikethrough = plain;
  getFgAnsi = () => '';
  getBgAnsi = () => '';
  getColorMode = () => 'truecolor';
  getThinkingBorderColor = () => plain;
  getBashModeBorderColor = () => plain;
}

export function initTheme() {}

const colour = (name) => (text) => drawnTheme()?.fg(name, text) ?? text;
const look = (name) => (text) => drawnTheme()?.[name](text) ?? text;

export const getMarkdownTheme = () => ({
  heading: colour('mdHeading'),
  link: colour('mdLink'),
  linkUrl: colour('mdLinkUrl'),
  code: colour('mdCode'),
  codeBlock: colour('mdCodeBlock'),
  codeBlockBorder: colour('mdCodeBlockBorder'),
  quote: colour('mdQuote'),
  quoteBorder: colour('mdQuoteBorder'),
  hr: colour('mdHr'),
  listBullet: colour('mdListBullet'),
  bold: look('bold'),
  italic: look('italic'),
  underline: look('underline'),
  strikethrough: look('strikethrough'),
  highlightCode: (code) => code.split('\n'),
});
export const getSelectListTheme = () => ({
  selectedPrefix: colour('accent'),
  selectedText: colour('accent'),
  description: colour('muted'),
  scrollInfo: colour('muted'),
  noMatch: colour('muted'),
});
export const getSettingsListTheme = () => ({
  label: (text, isSelected) => (isSelected ? colour('accent')(text) : text),
  value: (text, isSelected) => colour(isSelected ? 'accent' : 'muted')(text),
  description: colour('dim'),
  cursor: colour('accent')('→ '),
  hint: colour('dim'),
});

/** Returns the lines of a source. They are not coloured. */
export const highlightCode = (code) => code.split('\n');
export const renderDiff = plain;

/** The language of files, by their extension, where it is not the extension itself. */
const LANGUAGES = {
  ts: 'typescript',
  tsx: 'typescript',
  mts: 'typescript',
  cts: 'typescript',
  js: 'javascript',
  jsx: 'javascript',
  mjs: 'javascript',
  cjs: 'javascript',
  py: 'python',
  rb: 'ruby',
  rs: 'rust',
  kt: 'kotlin',
  h: 'c',
  cc: 'cpp',
  cxx: 'cpp',
  hpp: 'cpp',
  cs: 'csharp',
  sh: 'bash',
  zsh: 'bash',
  ps1: 'powershell',
  htm: 'html',
  yml: 'yaml',
  md: 'markdown',
  clj: 'clojure',
  ex: 'elixir',
  exs: 'elixir',
  erl: 'erlang',
  hs: 'haskell',
  ml: 'ocaml',
  proto: 'protobuf',
  tf: 'hcl',
};
const SAME = new Set([
  'go',
  'java',
  'swift',
  'c',
  'cpp',
  'php',
  'bash',
  'fish',
  'sql',
  'html',
  'css',
  'scss',
  'sass',
  'less',
  'json',
  'yaml',
  'toml',
  'xml',
  'markdown',
  'dockerfile',
  'makefile',
  'cmake',
  'lua',
  'perl',
  'r',
  'scala',
  'vim',
  'graphql',
  'hcl',
]);

/** Returns the language of a file, if its name shows it. */
export function getLanguageFromPath(file) {
  const extension = file.split('.').at(-1).toLowerCase();
  return LANGUAGES[extension] ?? (SAME.has(extension) ? extension : undefined);
}

// Keys in texts

const keysOf = (bindings, action) => bindings.getKeys(action).join('/');
export const keyText = (action) => keysOf(getKeybindings(), action);
export const editorKey = keyText;
export const appKey = (bindings, action) => keysOf(bindings, action);
export const rawKeyHint = (key, description) => `${key} ${description}`;
export const keyHint = (action, description) => rawKeyHint(keyText(action), description);
export const appKeyHint = (bindings, action, description) => rawKeyHint(keysOf(bindings, action), description);

/** Returns the last lines of text as a terminal of this width wraps it. */
export function truncateToVisualLines(text, maxVisualLines, width, paddingX = 0) {
  const lines = text ? new Text(text, paddingX, 0).render(width) : [];
  const skippedCount = Math.max(0, lines.length - maxVisualLines);
  return { visualLines: lines.slice(skippedCount), skippedCount };
}

// Components

export class DynamicBorder {
  constructor(color = colour('border')) {
    this.color = color;
  }
  invalidate() {}
  render(width) {
    return [this.color('─'.repeat(Math.max(1, width)))];
  }
}

export class BorderedLoader extends Container {
  #loader;
  #signal = new AbortController().signal;

  constructor(tui, theme, message, { cancellable = true } = {}) {
    super();
    const color = (name) => (text) => theme?.fg?.(name, text) ?? text;
    this.#loader = new (cancellable ? CancellableLoader : Loader)(tui, color('accent'), color('muted'), message);
    const hint = cancellable ? [new Spacer(1), new Text(keyHint('tui.select.cancel', 'cancel'), 1, 0)] : [];
    this.children = [
      new DynamicBorder(color('border')),
      this.#loader,
      ...hint,
      new Spacer(1),
      new DynamicBorder(color('border')),
    ];
  }
  get signal() {
    return this.#loader.signal ?? this.#signal;
  }
  set onAbort(listener) {
    this.#loader.onAbort = listener;
  }
  handleInput(data) {
    this.#loader.handleInput?.(data);
  }
  dispose() {
    this.#loader.dispose?.();
  }
}

/** The editor of the prompt, with the keys of the program. */
export class CustomEditor extends Editor {
  actionHandlers = new Map();

  constructor(tui, theme, keybindings, options) {
    super(tui, theme, options);
    this.keybindings = keybindings ?? getKeybindings();
  }
  onAction(action, handler) {
    this.actionHandlers.set(action, handler);
  }
  handleInput(data) {
    if (this.onExtensionShortcut?.(data)) return;
    const handlers = [...this.actionHandlers].filter(([action]) => this.keybindings.matches(data, action));
    if (this.onEscape && data === '\x1b') return void this.onEscape();
    if (handlers.length > 0) return void handlers[0][1]();
    super.handleInput(data);
  }
}

/** Reads the entries of a session file, one JSON object per line. */
export function parseSessionEntries(content) {
  return content.split('\n').flatMap((line) => {
    try {
      return line.trim() ? [JSON.parse(line)] : [];
    } catch {
      // pi ignores a line that was not written completely.
      return [];
    }
  });
}
