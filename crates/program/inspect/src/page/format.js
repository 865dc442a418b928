// Texts for numbers and times. It knows nothing about the DOM.

const COUNT = new Intl.NumberFormat('en-US');
const CLOCK = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short' });
const LONG_DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', year: 'numeric' });

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY_LENGTH = 24 * HOUR;

/** Formats a number with separators of thousands. */
export const count = (number) => COUNT.format(number);

/** Formats a number with its noun, as `1 hook` or `2 hooks`. */
export const plural = (number, noun, nouns = `${noun}s`) => `${count(number)} ${number === 1 ? noun : nouns}`;

/** Formats a duration in milliseconds with two or three digits. */
export function duration(ms) {
  if (!Number.isFinite(ms)) return '–';
  if (ms < 0.005) return '0 ms';
  if (ms < 1) return `${ms.toFixed(2)} ms`;
  if (ms < 9.95) return `${ms.toFixed(1)} ms`;
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < MINUTE && ms % SECOND === 0) return `${ms / SECOND} s`;
  if (ms < 59_950) return `${(ms / SECOND).toFixed(ms < 9950 ? 2 : 1)} s`;
  if (ms < HOUR) return pair(Math.floor(ms / MINUTE), 'min', Math.floor((ms % MINUTE) / SECOND), 's');
  return pair(Math.floor(ms / HOUR), 'h', Math.floor((ms % HOUR) / MINUTE), 'min');
}

const pair = (large, unit, small, smallUnit) => `${large} ${unit}${small > 0 ? ` ${small} ${smallUnit}` : ''}`;

/** Formats a number of bytes. */
export function byteSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/** Formats a part of a whole. */
export function percent(part, whole) {
  if (!(whole > 0)) return '–';
  const share = (100 * part) / whole;
  if (share > 0 && share < 0.1) return '< 0.1 %';
  return `${share.toFixed(share < 9.95 ? 1 : 0)} %`;
}

/** Formats how long ago a time was. */
export function ago(at, now) {
  const passed = now - at;
  if (passed < -SECOND) return 'in the future';
  if (passed < SECOND) return 'now';
  if (passed < MINUTE) return `${Math.floor(passed / SECOND)} s ago`;
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min ago`;
  if (passed < DAY_LENGTH) return `${Math.floor(passed / HOUR)} h ago`;
  return `${plural(Math.floor(passed / DAY_LENGTH), 'day')} ago`;
}

/** Formats the time of day with milliseconds. */
export function clock(at) {
  if (!Number.isFinite(at)) return '–';
  const date = new Date(at);
  return `${CLOCK.format(date)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}

/** Formats a day without its year. */
export const day = (at) => (Number.isFinite(at) ? DAY.format(new Date(at)) : '–');

/** Formats a day and a time of day. */
export const fullTime = (at) => (Number.isFinite(at) ? `${LONG_DAY.format(new Date(at))}, ${clock(at)}` : '–');

/** Returns the middle of a long id or path shortened, so that both ends can be read. */
export function shorten(text, length = 24) {
  if (text.length <= length) return text;
  const head = Math.ceil((length - 1) / 3);
  return `${text.slice(0, head)}…${text.slice(text.length - (length - 1 - head))}`;
}

/** Returns the name of a file with its line, without its folder. */
export const fileName = (source) => source.slice(source.lastIndexOf('/') + 1);

/** Formats a time for an input of the type `datetime-local`. */
export function localTime(at) {
  const date = new Date(at);
  const pad = (number) => String(number).padStart(2, '0');
  const time = [date.getHours(), date.getMinutes(), date.getSeconds()].map(pad).join(':');
  return `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}T${time}`;
}

/** Writes an amount of US dollars. Small amounts keep three digits. */
export function money(dollars) {
  if (dollars === 0) return '$0';
  return dollars < 0.1 ? `$${Number(dollars.toPrecision(3))}` : `$${dollars.toFixed(2)}`;
}
