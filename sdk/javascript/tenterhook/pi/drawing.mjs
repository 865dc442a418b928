// Draws the components of extensions on the user's screen.
//
// The host shows frames and sends the keys that the user presses. Components that belong to one call of the host share
// the screen: the latest one, and overlays above it.

import { isFocusable } from 'tenterhook:pi/components.mjs';
import { getKeybindings } from 'tenterhook:pi/keys.mjs';
import { cover, placed } from 'tenterhook:pi/overlay.mjs';
import { connectPrograms } from 'tenterhook:pi/released.mjs';
import { beginColours, drawnTheme } from 'tenterhook:pi/theme.mjs';
import { onlyStyles } from 'tenterhook:pi/width.mjs';

export { drawnTheme };

/** The screens that are open, by the call of the host to which they belong. */
const screens = new Map();

/** Shows a component until it calls `done`, and returns the value that it passes. */
export async function draw(host, call, factory, options = {}) {
  if (!screens.has(call)) screens.set(call, new Screen(host, call));
  const screen = screens.get(call);
  await screen.opened;
  return screen.show(factory, options);
}

/** Asks the user a question. A drawing of the same call makes room for it. */
export function makeRoom(call, ask) {
  const screen = screens.get(call);
  return screen ? screen.lend(ask) : ask();
}

/** The part of pi's `TUI` that components use. */
class Screen {
  terminal;
  opened;
  #host;
  #call;
  /** The id of the drawing. A drawing that is opened again has a new one. */
  #dialog;
  #closed;
  #isOver = false;
  /** How many questions the user is answering instead. */
  #questions = 0;
  #endColours;
  /** What is shown, the lowest first. */
  #layers = [];
  #focus;
  #listeners = new Set();
  /** Undoes what connects programs to the terminal, while the screen is released. */
  #reconnect;
  #isDirty = false;
  #isDrawing = false;

  constructor(host, call) {
    this.#host = host;
    this.#call = call;
    this.terminal = { columns: 80, rows: 24, kittyProtocolActive: false, write() {} };
    this.opened = this.#open();
  }

  #ask(method, params = {}) {
    return this.#host.ask(method, { ...params, dialog: this.#dialog });
  }

  /** Waits until the host gives the screen to this drawing. */
  async #open() {
    const call = this.#call;
    const dialog = crypto.randomUUID();
    this.#dialog = dialog;
    this.#closed = this.#ask('ui/custom', { call: call.isOver ? undefined : call.id, behind: call.turn && [...call.turn] });
    let isClosed = false;
    let refusal;
    const close = (error) => {
      [isClosed, refusal] = [true, error];
      if (this.#questions === 0) this.#leave();
    };
    this.#closed.then(() => close(), close);
    while (!isClosed) {
      const input = await Promise.race([this.#ask('ui/keys'), this.#closed.catch(() => undefined)]);
      if (!input?.is_open) continue;
      this.#resize(input);
      this.#endColours ??= beginColours();
      void this.#listen(dialog);
      return;
    }
    if (refusal) throw new Error(`\`ctx.ui.custom\` is not supported here: ${refusal.message}`);
    throw new Error(CLOSED);
  }

  /** Passes keys and new sizes to the components, until the drawing is closed. */
  async #listen(dialog) {
    try {
      while (!this.#isOver && this.#dialog === dialog) {
        const input = await this.#ask('ui/keys');
        if (!input.is_open) return;
        if (this.#resize(input)) {
          for (const { component } of this.#layers) component.invalidate?.();
          this.requestRender();
        }
        for (const key of input.keys) this.#press(key);
      }
    } catch (error) {
      console.error(error);
    }
  }

  /** Closes the drawing while the user answers a question of the same call, and opens it again. */
  async lend(ask) {
    await this.opened;
    this.#questions += 1;
    try {
      if (this.#questions === 1) await this.#close();
      return await ask();
    } finally {
      this.#questions -= 1;
      if (this.#questions === 0 && !this.#isOver) {
        this.opened = this.#open();
        this.opened.then(() => this.requestRender(), console.error);
      }
    }
  }

  /** Closes the drawing, and waits until the host has restored the terminal. */
  async #close() {
    await this.#ask('ui/dismiss');
    await this.#closed.catch(() => {});
  }

  #resize({ columns, rows }) {
    const { terminal } = this;
    if (columns === undefined || (columns === terminal.columns && rows === terminal.rows)) return false;
    Object.assign(terminal, { columns, rows });
    return true;
  }

  #press(key) {
    let data = key;
    for (const listener of this.#listeners) {
      const heard = listener(data);
      if (heard?.consume) return;
      data = heard?.data ?? data;
    }
    const layer = this.#focus;
    if (!layer?.component.handleInput) return;
    try {
      layer.component.handleInput(data);
    } catch (error) {
      this.#fail(layer, error);
    }
    this.requestRender();
  }

  /** Shows a component until it is done. */
  async show(factory, options) {
    const { promise, resolve, reject } = withResolvers();
    const layer = { isOverlay: options.overlay === true, options: options.overlayOptions, resolve, reject };
    const done = (value) => this.#finish(layer, () => resolve(value));
    // Keeps the screen open while the component is made.
    this.#layers.push(layer);
    layer.component = NOTHING;
    try {
      const component = await factory(this, drawnTheme(), getKeybindings(), done);
      if (layer.isDone) component?.dispose?.();
      else layer.component = component;
    } catch (error) {
      this.#fail(layer, error);
    }
    if (!layer.isDone) {
      // It lies above the overlays that the factory has shown.
      this.#layers = [...this.#layers.filter((it) => it !== layer), layer];
      this.#setFocus(isCapturing(layer) ? layer : this.#focus);
      options.onHandle?.(this.#handle(layer));
      this.requestRender();
    }
    return promise;
  }

  /** Removes a layer. The last one closes the screen, and only then the component's caller continues. */
  #finish(layer, settle) {
    if (layer.isDone) return;
    this.#remove(layer);
    if (this.#isOver || this.#layers.some((it) => it.resolve)) return settle();
    this.#layers = [];
    this.start();
    if (this.#questions > 0) {
      this.#leave();
      return settle();
    }
    this.#close().then(settle, settle);
  }

  #fail(layer, error) {
    // An overlay without a caller fails together with what it belongs to.
    const failed = layer.resolve ? layer : this.#layers.findLast((it) => it.resolve);
    if (failed !== layer) this.#remove(layer);
    if (failed) this.#finish(failed, () => failed.reject(error));
  }

  #remove(layer) {
    layer.isDone = true;
    this.#layers = this.#layers.filter((it) => it !== layer);
    if (this.#focus === layer) this.#setFocus(this.#topmost());
    try {
      layer.component?.dispose?.();
    } catch (error) {
      console.error(error);
    }
    this.requestRender();
  }

  /** Ends everything that is still shown, because the host has closed the screen. */
  #leave() {
    if (this.#isOver) return;
    this.#isOver = true;
    screens.delete(this.#call);
    this.#endColours?.();
    this.start();
    for (const layer of [...this.#layers]) {
      this.#remove(layer);
      layer.reject?.(new Error(CLOSED));
    }
  }

  // What components call.

  requestRender() {
    if (this.#isOver) return;
    this.#isDirty = true;
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    // All changes of the current task belong to one frame.
    setImmediate(() => this.#draw().catch(console.error));
  }

  async #draw() {
    while (this.#isDirty && !this.#isOver && this.#questions === 0 && this.#layers.length > 0) {
      this.#isDirty = false;
      const frame = this.#frame();
      // The host answers when it has shown the frame, which limits the frames per second.
      if (frame) await this.#ask('ui/draw', frame);
    }
    this.#isDrawing = false;
  }

  #frame() {
    const { terminal } = this;
    const visible = this.#layers.filter((layer) => this.#isVisible(layer));
    const base = visible.findLast((layer) => !layer.isOverlay);
    const overlays = visible.filter((layer) => layer.isOverlay);
    let drawn = base;
    try {
      const lines = base ? [...base.component.render(terminal.columns)] : [];
      const isScreen = overlays.length > 0 || this.#layers.every((layer) => layer.isOverlay);
      if (isScreen) {
        lines.splice(terminal.rows);
        while (lines.length < terminal.rows) lines.push('');
        for (drawn of overlays) cover(lines, placed(drawn.component, optionsOf(drawn), terminal));
      }
      return { lines: lines.slice(0, terminal.rows).map(onlyStyles), is_screen: isScreen };
    } catch (error) {
      this.#fail(drawn, error);
      return undefined;
    }
  }

  #isVisible(layer) {
    if (layer.isHidden) return false;
    const { visible } = layer.isOverlay ? optionsOf(layer) : {};
    return visible?.(this.terminal.columns, this.terminal.rows) ?? true;
  }

  /** Returns the layer that receives keys, unless a component chooses another one. */
  #topmost() {
    const capturing = this.#layers.filter(isCapturing);
    return capturing.findLast((layer) => this.#isVisible(layer)) ?? capturing.at(-1);
  }

  #setFocus(layer) {
    const before = this.#focus?.component;
    if (before && before !== layer?.component && isFocusable(before)) before.focused = false;
    this.#focus = layer;
    if (layer && isFocusable(layer.component)) layer.component.focused = true;
  }

  setFocus(component) {
    const layer = this.#layers.find((it) => it.component === component);
    this.#setFocus(component ? (layer ?? { component }) : undefined);
  }

  showOverlay(component, options) {
    const layer = { component, options, isOverlay: true };
    this.#layers.push(layer);
    if (isCapturing(layer)) this.#setFocus(layer);
    this.requestRender();
    return this.#handle(layer);
  }
  hideOverlay() {
    const layer = this.#layers.findLast((it) => it.isOverlay && !it.resolve);
    if (layer) this.#remove(layer);
  }
  hasOverlay() {
    return this.#layers.some((layer) => layer.isOverlay && this.#isVisible(layer));
  }

  #handle(layer) {
    return {
      hide: () => (layer.resolve ? this.#finish(layer, () => layer.resolve(undefined)) : this.#remove(layer)),
      isHidden: () => layer.isHidden === true,
      setHidden: (isHidden) => {
        layer.isHidden = isHidden;
        if (isHidden ? this.#focus === layer : isCapturing(layer)) this.#setFocus(isHidden ? this.#topmost() : layer);
        this.requestRender();
      },
      isFocused: () => this.#focus === layer,
      focus: () => {
        if (layer.isDone) return;
        this.#layers = [...this.#layers.filter((it) => it !== layer), layer];
        this.#setFocus(layer);
        this.requestRender();
      },
      unfocus: () => {
        if (this.#focus !== layer) return;
        const others = this.#layers.filter((it) => it !== layer && isCapturing(it));
        this.#setFocus(others.at(-1));
        this.requestRender();
      },
    };
  }

  addInputListener(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
  removeInputListener(listener) {
    this.#listeners.delete(listener);
  }
  invalidate() {
    for (const { component } of this.#layers) component.invalidate?.();
  }

  /** Releases the screen, so that programs that the extension starts can use the terminal. */
  stop() {
    if (this.#reconnect || this.#isOver) return;
    // A drawing that the host has closed has no screen to release.
    if (!this.#asksNow('ui/suspend', { group: process.pid })) return;
    this.#reconnect = connectPrograms();
  }
  /** Takes the screen back. */
  start() {
    if (!this.#reconnect) return;
    this.#reconnect();
    this.#reconnect = undefined;
    if (this.#isOver) return;
    if (this.#asksNow('ui/resume')) this.requestRender();
  }
  /** Returns whether the host has granted a request. Components do not expect these functions to throw. */
  #asksNow(method, params = {}) {
    try {
      this.#host.askNow(method, { ...params, dialog: this.#dialog });
      return true;
    } catch (error) {
      console.error(`${method}: ${error.message}`);
      return false;
    }
  }
  getShowHardwareCursor() {
    return false;
  }
  setShowHardwareCursor() {}
}

const CLOSED = 'the drawing was closed before the component was done';
/** A component that is not there yet. */
const NOTHING = { render: () => [], invalidate() {} };

const optionsOf = ({ options }) => (typeof options === 'function' ? options() : options) ?? {};
const isCapturing = (layer) => !layer.isOverlay || optionsOf(layer).nonCapturing !== true;

function withResolvers() {
  let resolve;
  let reject;
  const promise = new Promise((...both) => {
    [resolve, reject] = both;
  });
  return { promise, resolve, reject };
}
