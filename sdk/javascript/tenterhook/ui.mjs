// The user interface of pi, as extensions see it.
//
// The user sees lines of text: a status, widgets above the prompt, the title of the window and questions. Widgets that
// draw themselves are shown only if they can return their lines immediately. `pi/drawing.mjs` shows other components.

import { setFooter, statuses } from 'tenterhook/render';

/** The columns for which a component writes its lines. */
const COLUMNS = 80;
/** How many changes may wait for the host. The oldest is dropped if there are more. */
const MAX_CHANGES = 256;
/** How often the worker tries to withdraw a question that the host does not know yet. */
const MAX_WITHDRAWALS = 16;

const plain = (text) => String(text ?? '');

/** A theme without colours: text stays as it is. */
class Theme {
  sourcePath = undefined;
  sourceInfo = undefined;
  bold = plain;
  italic = plain;
  underline = plain;
  inverse = plain;
  strikethrough = plain;

  constructor(name) {
    this.name = name;
  }
  fg(_color, text) {
    return plain(text);
  }
  bg(_color, text) {
    return plain(text);
  }
  getFgAnsi() {
    return '';
  }
  getBgAnsi() {
    return '';
  }
  getColorMode() {
    return 'truecolor';
  }
  getThinkingBorderColor() {
    return plain;
  }
  getBashModeBorderColor() {
    return plain;
  }
}

/** The themes that extensions can select. */
const THEMES = new Map(['dark', 'light'].map((name) => [name, new Theme(name)]));
let theme = THEMES.get('dark');

function selectTheme(wanted) {
  if (typeof wanted === 'object' && wanted !== null) {
    theme = wanted;
    return { success: true };
  }
  if (!THEMES.has(wanted)) {
    return { success: false, error: `unknown theme \`${wanted}\`; available: ${[...THEMES.keys()].join(', ')}` };
  }
  theme = THEMES.get(wanted);
  return { success: true };
}

/** What a component is given instead of a terminal. */
const SCREEN = Object.freeze({ requestRender() {}, terminal: Object.freeze({ columns: COLUMNS, rows: 24 }) });

/** Returns the lines of a widget. Returns undefined for a component that cannot return its lines immediately. */
function linesOf(content) {
  if (Array.isArray(content)) return content.map(String);
  try {
    const lines = content(SCREEN, theme).render(COLUMNS);
    return Array.isArray(lines) ? lines.map(String) : undefined;
  } catch {
    return undefined;
  }
}

/** Sends what extensions show, one change after another. A newer change replaces a waiting one of the same slot. */
class Display {
  #host;
  #waiting = new Map();
  #sending;
  /** The number of changes that do not replace another one. */
  #count = 0;
  /** The text of the prompt, while the host does not have it yet. */
  #text;
  /** The functions of which the user knows that they have no effect. */
  #lacking = new Set();

  constructor(host) {
    this.#host = host;
  }

  show(slot, change) {
    if (!this.#host.hasUI) return;
    this.#add(slot, 'ui/show', change);
  }

  /** Changes the text of the prompt. */
  write(text, replaces) {
    if (!this.#host.hasUI) return;
    this.#text = replaces ? text : this.text() + text;
    this.#count += 1;
    this.#add(replaces ? 'text' : `text ${this.#count}`, 'ui/show', { kind: 'editor_text', text, replaces });
  }

  text() {
    if (!this.#host.hasUI) return '';
    return this.#text ?? this.#host.askNow('ui/editor_text', {})?.text ?? '';
  }

  notify(message, level) {
    this.#count += 1;
    this.#add(`notice ${this.#count}`, 'ui/notify', { message, level });
  }

  /** Tells the user once that a function has no effect, because the extension does not notice it. */
  lacks(name, instead) {
    if (!this.#host.hasUI || this.#lacking.has(name)) return;
    this.#lacking.add(name);
    this.notify(`\`ctx.ui.${name}\` is not supported here: ${instead}`, 'warning');
  }

  /** Shows a notification outside the conversation. */
  alert(code, text) {
    if (!this.#host.hasUI) return;
    this.#count += 1;
    this.#add(`alert ${this.#count}`, 'ui/show', { kind: 'alert', code, text });
  }

  /** Returns a promise that resolves when no change waits any more, or undefined if none waits now. */
  settled() {
    return this.#sending;
  }

  #add(slot, method, params) {
    this.#waiting.delete(slot);
    if (this.#waiting.size === MAX_CHANGES) {
      const [oldest] = this.#waiting.keys();
      this.#waiting.delete(oldest);
    }
    this.#waiting.set(slot, [method, params]);
    this.#sending ??= this.#send();
  }

  async #send() {
    while (this.#waiting.size > 0) {
      const [[slot, [method, params]]] = this.#waiting;
      this.#waiting.delete(slot);
      try {
        await this.#host.ask(method, params);
      } catch (error) {
        console.error(error);
      }
    }
    this.#sending = undefined;
    this.#text = undefined;
  }
}

/** The displays of the worker, which its extensions share, by session. */
const displays = new Map();
export function displayOf(host) {
  if (!displays.has(host.session)) displays.set(host.session, new Display(host));
  return displays.get(host.session);
}
export const forgetDisplay = (session) => displays.delete(session);

/** Asks the user. Returns undefined if there is no answer, also after `timeout` and when `signal` is aborted. */
async function ask(host, call, what, params, { timeout, signal } = {}) {
  const shown = displayOf(host).settled();
  if (shown) await shown;
  if (signal?.aborted) return undefined;
  const dialog = crypto.randomUUID();
  let isOpen = true;
  const asked = host.ask(`ui/${what}`, {
    ...params,
    dialog,
    timeout_ms: timeout > 0 && Number.isFinite(timeout) ? Math.ceil(timeout) : undefined,
    call: call.isOver ? undefined : call.id,
    behind: call.turn && [...call.turn],
  });
  const withdraw = async () => {
    for (let tries = 0; isOpen && tries < MAX_WITHDRAWALS; tries += 1) {
      if ((await host.ask('ui/dismiss', { dialog }))?.dismissed) return;
    }
  };
  const onAbort = () => void withdraw().catch(console.error);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return (await asked)?.answer;
  } finally {
    isOpen = false;
    signal?.removeEventListener('abort', onAbort);
  }
}

/** The module that draws components. It is loaded when an extension draws for the first time. */
let drawing;

const textOrNone = (text) => (text === undefined || text === null ? undefined : String(text));

/** Returns the object `ctx.ui` of a call. */
export function interfaceOf(host, call) {
  const shown = displayOf(host);
  const dialog = (what, params, options) => {
    const asking = () => ask(host, call, what, params, options);
    return drawing ? drawing.makeRoom(call, asking) : asking();
  };
  // What a handler shows once is not shown again when it handles a start again.
  const once = (show) => (host.repeats > 0 ? undefined : show());
  return {
    select: (title, options, settings) => dialog('select', { title, options }, settings),
    confirm: async (title, message, settings) => (await dialog('confirm', { title, message }, settings)) === true,
    input: (title, placeholder, settings) => dialog('input', { title, placeholder }, settings),
    editor: (title, prefill, settings) => dialog('editor', { title, text: prefill }, settings),
    async custom(factory, options) {
      if (!host.hasUI) throw new Error('`ctx.ui.custom` is not supported here: no one sees components');
      await shown.settled();
      drawing ??= await import('tenterhook:pi/drawing.mjs');
      return drawing.draw(host, call, factory, options);
    },
    notify: (message, level) => once(() => shown.notify(String(message), level ?? 'info')),
    setStatus(key, text) {
      // Only a terminal has a footer, and it has one session.
      if (host.session !== undefined || textOrNone(text) === undefined) statuses.delete(String(key));
      else statuses.set(String(key), String(text));
      shown.show(`status ${key}`, { kind: 'status', key: String(key), text: textOrNone(text) });
    },
    setWidget(key, content, options) {
      const lines = content === undefined || content === null ? undefined : linesOf(content);
      const placement = options?.placement === 'belowEditor' ? 'below' : 'above';
      shown.show(`widget ${key}`, { kind: 'widget', key: String(key), lines, placement });
    },
    setTitle: (title) => shown.show('title', { kind: 'title', text: String(title) }),
    setWorkingMessage: (text) => shown.show('working', { kind: 'working_message', text: textOrNone(text) }),
    setEditorText: (text) => once(() => shown.write(plain(text), true)),
    pasteToEditor: (text) => once(() => shown.write(plain(text), false)),
    getEditorText: () => shown.text(),
    get theme() {
      return drawing?.drawnTheme() ?? theme;
    },
    getAllThemes: () => [...THEMES.keys()].map((name) => ({ name, path: undefined })),
    getTheme: (name) => THEMES.get(name),
    setTheme: selectTheme,
    setFooter(factory) {
      const lines = setFooter(host, factory, SCREEN, theme);
      shown.show('footer', { kind: 'widget', key: 'footer', lines, placement: 'footer' });
    },
    setHeader(content) {
      const lines = typeof content === 'function' ? linesOf(content) : undefined;
      shown.show('header', { kind: 'widget', key: 'header', lines, placement: 'header' });
    },
    // Nothing below can be drawn as lines of text.
    setEditorComponent(factory) {
      if (factory) shown.lacks('setEditorComponent', 'prompts are written in the line editor');
    },
    getEditorComponent: () => undefined,
    addAutocompleteProvider: () => shown.lacks('addAutocompleteProvider', 'the line editor completes commands and paths'),
    onTerminalInput: () => () => {},
    setWorkingVisible() {},
    setWorkingIndicator() {},
    setHiddenThinkingLabel() {},
    getToolsExpanded: () => false,
    setToolsExpanded() {},
  };
}
