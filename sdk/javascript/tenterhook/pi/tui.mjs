// The stand-in for pi's package with components for terminals.

import { Container } from 'tenterhook:pi/components.mjs';

export * from 'tenterhook:pi/components.mjs';
export * from 'tenterhook:pi/fuzzy.mjs';
export * from 'tenterhook:pi/keys.mjs';
export {
  sliceByColumn,
  stripTerminalSequences,
  truncateToWidth,
  visibleWidth,
  wrapTextWithAnsi,
} from 'tenterhook:pi/width.mjs';

/** The root of a display. It is never drawn. */
export class TUI extends Container {
  constructor(terminal) {
    super();
    this.terminal = terminal ?? { columns: 80, rows: 24 };
  }
  start() {}
  stop() {}
  requestRender() {}
  setFocus(component) {
    this.focused = component;
  }
  hasOverlay() {
    return false;
  }
  hideOverlay() {}
  addInputListener() {
    return () => {};
  }
  removeInputListener() {}
}

const PLAIN = { images: null, trueColor: false, hyperlinks: false };
let capabilities = PLAIN;
export const detectCapabilities = () => ({ ...PLAIN });
export const getCapabilities = () => capabilities;
export function setCapabilities(given) {
  capabilities = given;
}
export function resetCapabilitiesCache() {
  capabilities = PLAIN;
}

let cell = { widthPx: 9, heightPx: 18 };
export const getCellDimensions = () => cell;
export function setCellDimensions(given) {
  cell = given;
}

/** Returns the text that stands for an image. */
export function imageFallback(mimeType, dimensions, filename) {
  const size = dimensions ? ` ${dimensions.widthPx}x${dimensions.heightPx}` : '';
  return `[Image: ${filename ? `${filename} ` : ''}[${mimeType}]${size}]`;
}

/** Shows the place of an image. */
export class Image {
  constructor(data, mimeType, theme, options = {}, dimensions = undefined) {
    Object.assign(this, { data, mimeType, theme, options, dimensions });
  }
  invalidate() {}
  render() {
    const text = imageFallback(this.mimeType, this.dimensions, this.options.filename);
    return [this.theme?.fallbackColor?.(text) ?? text];
  }
}

/** Returns text as a link of the terminal. */
export const hyperlink = (text, url) => `\x1b]8;;${url}\x1b\\${text}\x1b]8;;\x1b\\`;
