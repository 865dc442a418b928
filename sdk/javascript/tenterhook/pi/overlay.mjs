// Where overlays lie on the screen, and how they cover what is below them.

import { sliceByColumn, truncateToWidth, visibleWidth } from 'tenterhook:pi/width.mjs';

const RESET = '\x1b[0m';
/** The width of an overlay that does not choose one. */
const WIDTH = 80;

/** Returns a number of cells: a number, or a percentage of the whole. */
function cells(size, whole) {
  if (typeof size === 'number') return Math.floor(size);
  const [, percent] = /^(\d+(?:\.\d+)?)%$/.exec(size ?? '') ?? [];
  return percent === undefined ? undefined : Math.floor((whole * Number(percent)) / 100);
}

const within = (value, least, most) => Math.max(least, Math.min(value, Math.max(least, most)));
const margins = (margin) => {
  const { top = 0, right = 0, bottom = 0, left = 0 } =
    typeof margin === 'number' ? { top: margin, right: margin, bottom: margin, left: margin } : (margin ?? {});
  return { top: Math.max(0, top), right: Math.max(0, right), bottom: Math.max(0, bottom), left: Math.max(0, left) };
};

/** Returns the free room of a screen, and the width of an overlay. */
function roomFor(options, screen) {
  const margin = margins(options.margin);
  const width = Math.max(1, screen.columns - margin.left - margin.right);
  const height = Math.max(1, screen.rows - margin.top - margin.bottom);
  const wanted = Math.max(cells(options.width, screen.columns) ?? Math.min(WIDTH, width), options.minWidth ?? 0);
  return { margin, width, height, overlay: within(wanted, 1, width) };
}

/** Returns the first row or column of an overlay. A percentage is a part of the room that is left. */
function start(position, anchor, [low, high], offset, room, size, before) {
  const left = Math.max(0, room - size);
  let at = before + (anchor.includes(low) ? 0 : anchor.includes(high) ? left : Math.floor(left / 2));
  if (typeof position === 'number') at = position;
  else if (position !== undefined) at = before + (cells(position, left) ?? 0);
  return within(at + (offset ?? 0), before, before + left);
}

/** Renders an overlay. Returns its lines and its place on the screen. */
export function placed(component, options, screen) {
  const { margin, width, height, overlay } = roomFor(options, screen);
  const highest = Math.min(cells(options.maxHeight, screen.rows) ?? height, height);
  const lines = component.render(overlay).slice(0, Math.max(1, highest));
  const anchor = options.anchor ?? 'center';
  const row = start(options.row, anchor, ['top', 'bottom'], options.offsetY, height, lines.length, margin.top);
  const column = start(options.col, anchor, ['left', 'right'], options.offsetX, width, overlay, margin.left);
  return { lines, row, column, width: overlay };
}

const padded = (line, width) => line + ' '.repeat(Math.max(0, width - visibleWidth(line)));

/** Puts an overlay over lines, which it changes. */
export function cover(lines, { lines: above, row, column, width }) {
  above.forEach((line, at) => {
    const below = lines[row + at];
    if (below === undefined) return;
    const before = padded(sliceByColumn(below, 0, column), column);
    const after = sliceByColumn(below, column + width, Infinity);
    const shown = padded(truncateToWidth(line, width, ''), width);
    lines[row + at] = `${before}${RESET}${shown}${RESET}${after}`;
  });
}
