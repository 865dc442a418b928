// What is at the top of the page: the views, the counter of what went through, and whether the page is live.

import { element, icon, part, replaceKeepingFocus } from './element.js';
import { VIEWS, writeQuery } from './filter.js';
import { count, plural } from './format.js';

export const VIEW_NAMES = {
  timeline: 'Timeline',
  sessions: 'Sessions',
  hooks: 'Hooks',
  gateway: 'Gateway',
  latency: 'Latency',
};

/** Draws the links to the views. `waiting` is how many decisions of the gateway wait for a person. */
export function drawViews({ filter, view, hasGateway, waiting }, onview) {
  const follow = (event, name) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    onview(name);
  };
  const names = VIEWS.filter((name) => name !== 'gateway' || hasGateway);
  const links = names.map((name) =>
    element(
      'a',
      {
        href: writeQuery({ filter, view: name, open: null }) || location.pathname,
        'aria-current': view === name ? 'page' : null,
        onclick: (event) => follow(event, name),
        'data-key': `view:${name}`,
      },
      VIEW_NAMES[name],
      name === 'gateway' && waiting > 0 && element('span', { class: 'badge' }, count(waiting)),
    ),
  );
  replaceKeepingFocus(part('views'), links);
}

/** Draws how many operations continued although a hook failed. This is always visible. */
export function drawLetThrough(number, isChosen, onclick) {
  const attributes = {
    type: 'button',
    class: number > 0 ? 'alarm' : 'calm',
    'data-key': 'let-through',
    'aria-pressed': String(isChosen),
    title: 'Operations that continued although a hook that should have judged them failed',
    onclick,
  };
  const node = element(
    'button',
    attributes,
    number > 0 && icon('alert'),
    element('b', {}, count(number)),
    element('span', { class: 'long' }, ' went through because a hook failed'),
    element('span', { class: 'short' }, ' let through'),
  );
  replaceKeepingFocus(part('let-through'), node);
}

/** Draws whether records are being loaded, arrive, or come from files, and the button that pauses the list. */
export function drawStatus(status) {
  part('status').replaceChildren(element('i', { class: `light ${tone(status)}` }), statusText(status));
  const pause = part('pause');
  pause.hidden = !status.description.live;
  const label = status.isPaused ? 'Continue (p)' : 'Pause (p)';
  if (pause.title === label) return;
  pause.replaceChildren(icon(status.isPaused ? 'play' : 'pause'));
  pause.title = label;
  pause.setAttribute('aria-label', label);
}

function tone({ isLoading, description, connection, isPaused }) {
  if (isLoading) return 'busy';
  if (!description.live) return 'still';
  if (connection === 'connecting') return 'busy';
  if (connection !== 'live') return 'bad';
  return isPaused ? 'still' : 'good';
}

function statusText({ isLoading, loaded, description, connection, isPaused }) {
  if (isLoading) return `Loading… ${count(loaded)}`;
  if (!description.live) return description.kind === 'export' ? 'Report' : fileNames(description.files ?? []);
  if (connection === 'connecting') return 'Connecting…';
  if (connection !== 'live') return 'Offline, reconnecting…';
  return isPaused ? 'Paused' : 'Live';
}

function fileNames(files) {
  return files.length === 1 ? files[0].slice(files[0].lastIndexOf('/') + 1) : plural(files.length, 'file');
}
