// The keys of the page and the dialog that lists them.

import { button, element } from './element.js';
import { isRefused } from './notices.js';

const HELP = [
  ['/', 'Search'],
  ['j k', 'Next and previous event'],
  ['Enter', 'Open the selected event'],
  ['Esc', 'Close, or leave a field'],
  ['1 – 5', 'Timeline, sessions, hooks, gateway, latency'],
  ['f', 'Go to the filters'],
  ['p', 'Pause and continue'],
  ['c', 'Clear all filters'],
  ['?', 'Show this list'],
];

/** Keys that move in the list only if nothing else would use them. */
const SHARED = new Set(['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'Enter']);

/** Calls the action of each key. `actions.list(key)` returns whether the list used the key. */
export function listenToKeys(actions) {
  document.addEventListener('keydown', (event) => {
    const { key, target } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || isRefused()) return;
    if (key === 'Escape') {
      if (actions.escape(target)) event.preventDefault();
      return;
    }
    const isField = target.matches('input, textarea, select');
    if (isField || target.closest('dialog')) return;
    const isFree = target === document.body || target.closest('#rows') !== null;
    const isUsed = SHARED.has(key) ? isFree && actions.list(key) : press(key, actions);
    if (isUsed) event.preventDefault();
  });
}

function press(key, actions) {
  const named = { '/': 'search', p: 'pause', f: 'filters', c: 'clear', '?': 'help' };
  if (key in named) actions[named[key]]();
  else if (/^[1-5]$/.test(key)) actions.view(Number(key) - 1);
  else return (key === 'j' || key === 'k') && actions.list(key);
  return true;
}

/** Shows the list of keys. */
export function showHelp(dialog) {
  dialog.replaceChildren(
    element(
      'div',
      { class: 'title' },
      element('h2', {}, 'Keyboard'),
      button('', () => dialog.close(), { image: 'close', class: 'bare', 'aria-label': 'Close' }),
    ),
    element(
      'dl',
      { class: 'keys' },
      HELP.map(([keys, text]) =>
        element(
          'div',
          {},
          element(
            'dt',
            {},
            keys.split(' ').map((key) => (key === '–' ? ' – ' : element('kbd', {}, key))),
          ),
          element('dd', {}, text),
        ),
      ),
    ),
  );
  dialog.showModal();
}
