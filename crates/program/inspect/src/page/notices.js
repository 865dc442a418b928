// Messages of the page to its user: notices above the page, and explanations instead of it.

import { button, element, emptyState, icon, part } from './element.js';

const notices = new Map();

/** Shows a notice until the user closes it. A notice with the same key is replaced. */
export function notify(key, text, tone = 'warn') {
  notices.set(key, { text, tone });
  drawNotices();
}

function drawNotices() {
  part('notices').replaceChildren(...[...notices].map(([key, notice]) => noticeBar(key, notice)));
}

function noticeBar(key, { text, tone }) {
  const close = () => {
    notices.delete(key);
    drawNotices();
  };
  return element(
    'div',
    { class: `notice ${tone}` },
    icon('alert'),
    element('p', {}, text),
    button('', close, { image: 'close', class: 'bare', 'aria-label': 'Close the notice' }),
  );
}

/** Replaces the page with an explanation, because it can show nothing. */
function refuse(title, ...lines) {
  document.body.classList.add('is-refused');
  part('page').replaceChildren(emptyState(title, ...lines));
}

/** Returns whether the page was replaced with an explanation, so that its parts no longer exist. */
export const isRefused = () => document.body.classList.contains('is-refused');

/** Explains why the records cannot be shown. `signInProblem` is what was wrong with the link, if anything was. */
export function refuseRequest({ status, message }, signInProblem) {
  if (status === 401) {
    refuse(
      'You are not signed in',
      signInProblem ?? 'Open the link that the command printed. It works once, for a gateway within 60 seconds.',
      'For a gateway, `tenterhook gateway open --inspect` prints a new one.',
    );
  } else if (status === 403) {
    refuse(
      'You may not see this',
      'Your token lacks the scope `inspect`. Ask the person who runs the gateway for another one.',
    );
  } else {
    refuse(
      'The records could not be loaded',
      `${message}.`,
      button('Try again', () => location.reload()),
    );
  }
}
