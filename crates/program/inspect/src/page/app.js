// Connects the parts of the page: records change the store, and each change of the store or the filter draws it.

import { DetailPanel } from './detail.js';
import { button, element, emptyState, icon, part, replaceKeepingFocus } from './element.js';
import { FacetPanel } from './facets.js';
import { isSameFilter, newFilter, parseQuery, Query, SAVED_VIEWS, VIEWS, writeQuery } from './filter.js';
import { count, plural } from './format.js';
import { gatewayView, waitingCount } from './gateway-view.js';
import { hooksView } from './hooks-view.js';
import { listenToKeys, showHelp } from './keyboard.js';
import { latencyView } from './latency-view.js';
import { isRefused, notify, refuseRequest } from './notices.js';
import { sessionsView } from './session-view.js';
import { download, EmbeddedSource, fetchJson, sendDecision, ServerSource, signIn } from './source.js';
import { Store } from './store.js';
import { themeButton } from './theme-button.js';
import { drawDensity, Timeline } from './timeline.js';
import { drawLetThrough, drawStatus, drawViews, VIEW_NAMES } from './top-bar.js';

const LET_THROUGH = { status: ['let_through'] };
/** How often what is expensive is drawn again while records arrive, in milliseconds. */
const SIDE_INTERVAL = 400;
const VIEW_INTERVAL = 3000;
const PRESS_INTERVAL = 100;
/** How long a press may delay drawing. An element that is replaced while it is pressed gets no click. */
const MAX_PRESS = 1000;
const GATEWAY_INTERVAL = 10_000;
const HOOKS_INTERVAL = 5000;
const TICK = 1000;
/** On narrow windows, the panel about an event covers the list. */
const narrow = matchMedia('(max-width: 1100px)');

const store = new Store();
const source = EmbeddedSource.find() ?? new ServerSource();

let { filter, view, open } = parseQuery(location.search);
let description = { live: false, kind: 'loading' };
let query = new Query(filter, store);
let result = query.run([]);
let hooksInForce = null;
let gateway;
let gatewayProblem = null;
let sort = null;
let isLoading = true;
let isPaused = false;
let connection = 'connecting';
let missed = 0;
/** The number of rows of the store that the filter has seen, and what has to be drawn. */
let seen = 0;
let isDrawPlanned = false;
let isFilterChanged = true;
let sideDrawnAt = 0;
let sideSerial;
let viewDrawnAt = 0;
let viewSerial;
let timer = null;
let pressedUntil = 0;
let savedCounts = SAVED_VIEWS.map(() => 0);
let savedSerial;

const timeline = new Timeline({
  scroller: part('rows'),
  onopen: (row) => openRow(row),
  onselect: (row) => open && openRow(row),
});
const detail = new DetailPanel({
  place: part('detail'),
  fetchDetail: (id) => fetchJson(`/dispatches/${encodeURIComponent(id)}`),
  onclose: () => openRow(null),
  onsession: (id) => show({ view: 'sessions', filter: newFilter({ session: [id] }) }),
});
const facets = new FacetPanel({ place: part('facets'), onchange: (fields) => changeFilter({ ...filter, ...fields }) });

// Changes

/** Shows another view or filter. */
function show(changes, isNewEntry = true) {
  if (changes.filter) {
    filter = changes.filter;
    isFilterChanged = true;
  }
  if (changes.view === 'hooks' && view !== 'hooks' && description.live) loadHooks();
  if (changes.view) view = changes.view;
  if (changes.open !== undefined) open = changes.open;
  viewDrawnAt = 0;
  writeAddress(isNewEntry);
  plan();
}

const changeFilter = (next) => show({ filter: next }, false);

function writeAddress(isNewEntry) {
  const address = `${location.pathname}${writeQuery({ filter, view, open })}`;
  try {
    if (isNewEntry) history.pushState(null, '', address);
    else history.replaceState(null, '', address);
  } catch {
    // Browsers limit how often the address may change. The next change writes it.
  }
}

function openRow(row) {
  const wasOpen = open !== null;
  open = row?.key ?? null;
  detail.show(row, absence());
  document.body.classList.toggle('has-detail', row !== null);
  writeAddress(false);
  if (row !== null && narrow.matches) part('detail').focus();
  if (row === null && wasOpen) (view === 'timeline' ? part('rows') : part('other')).focus();
}

/** Says why the source has no payloads, or returns `null`. */
function absence() {
  if (description.payloads) return null;
  if (description.live) return 'Payloads and raw answers are not shown, because `payloads: false` is set.';
  return 'A journal contains no payloads, so it does not show raw answers and changes.';
}

/** Shows the event that the address names. */
function openFromAddress() {
  const row = open === null ? null : store.find(open);
  if (open !== null && row === null) {
    notify('missing', `The event ${open} is not among the records that are kept.`);
    open = null;
    return;
  }
  if (row) timeline.selectRow(row);
  openRow(row);
}

// Drawing

function plan() {
  if (isDrawPlanned || isRefused()) return;
  isDrawPlanned = true;
  // A page in the background gets no frames, but its records have to be counted.
  const drawSoon = document.hidden ? (callback) => setTimeout(callback, 100) : requestAnimationFrame;
  drawSoon(draw);
}

/** Plans a drawing for what was left out now. */
function planLater(delay) {
  timer ??= setTimeout(() => {
    timer = null;
    plan();
  }, delay);
}

function draw() {
  isDrawPlanned = false;
  if (isRefused()) return;
  if (performance.now() < pressedUntil) {
    planLater(PRESS_INTERVAL);
    return;
  }
  if (store.trim() > 0) seen = -1;
  const now = performance.now();
  const isNew = updateRows();
  drawTop();
  const newest = store.rows.at(-1)?.serial;
  if (isNew || (sideSerial !== newest && now - sideDrawnAt > SIDE_INTERVAL)) {
    sideDrawnAt = now;
    sideSerial = newest;
    drawSide();
  } else if (sideSerial !== newest) planLater(SIDE_INTERVAL);
  drawView(now, isNew);
}

/** Brings the rows that are shown up to date. Returns whether the filter changed. */
function updateRows() {
  const isNew = isFilterChanged || seen < 0;
  if (isNew) {
    const isSame = !isFilterChanged;
    isFilterChanged = false;
    query = new Query(filter, store);
    result = query.run(store.rows);
    if (isSame) timeline.replace(result.rows);
    else timeline.show(result.rows);
    if (part('search') !== document.activeElement) part('search').value = filter.q;
  } else if (seen < store.rows.length) {
    query.extend(result, store.rows, seen);
    if (!isPaused) timeline.grow();
  }
  seen = store.rows.length;
  return isNew;
}

function drawTop() {
  const hasGateway = description.kind === 'gateway';
  drawViews({ filter, view, hasGateway, waiting: waitingCount(gateway) }, (name) => show({ view: name }));
  const wanted = newFilter(LET_THROUGH);
  drawLetThrough(store.letThrough, isSameFilter(filter, wanted), () => show({ view: 'timeline', filter: wanted }));
  drawStatus({ isLoading, loaded: store.rows.length, description, connection, isPaused });
}

function drawSide() {
  const newest = store.rows.at(-1)?.serial;
  if (savedSerial !== newest) {
    savedSerial = newest;
    savedCounts = SAVED_VIEWS.map(({ filter: fields }) => new Query(newFilter(fields), store).countOf(store.rows));
  }
  replaceKeepingFocus(
    part('saved'),
    SAVED_VIEWS.map(({ name, filter: fields }, index) => {
      const wanted = newFilter(fields);
      return element(
        'button',
        {
          type: 'button',
          'aria-pressed': String(isSameFilter(filter, wanted)),
          onclick: () => changeFilter(wanted),
          'data-key': `saved:${name}`,
        },
        name,
        element('span', { class: 'number' }, count(savedCounts[index])),
      );
    }),
  );
  facets.draw(query, result.counts, store.rows.at(-1)?.at ?? Date.now());
  drawDensity(part('density'), result.rows, (from, to) => changeFilter({ ...filter, from, to }));
}

function drawView(now, isNew) {
  const isTimeline = view === 'timeline';
  part('timeline').hidden = !isTimeline;
  part('other').hidden = isTimeline;
  document.body.classList.toggle('is-gateway', view === 'gateway');
  document.title = `${store.letThrough > 0 ? `(${store.letThrough}) ` : ''}${VIEW_NAMES[view]} · Inspector`;
  if (isTimeline) drawTimeline();
  else if (isLoading) part('other').replaceChildren(emptyState('Loading…'));
  else if (isNew || viewDrawnAt === 0 || isViewDue(now)) {
    viewDrawnAt = now;
    viewSerial = store.rows.at(-1)?.serial;
    drawOther();
  } else if (viewSerial !== store.rows.at(-1)?.serial) planLater(VIEW_INTERVAL);
}

/** A view is not drawn again while the user has closed a part of it, or has selected text. */
function isViewDue(now) {
  if (isPaused || now - viewDrawnAt < VIEW_INTERVAL || !getSelection().isCollapsed) return false;
  return part('other').querySelector('details:not([open])') === null;
}

function drawTimeline() {
  const { rows } = result;
  const all = store.rows.length;
  part('count').textContent =
    rows.length === all ? plural(all, 'event') : `${count(rows.length)} of ${plural(all, 'event')}`;
  part('times').textContent = timeline.isRelative ? 'Show the time of day' : 'Show how long ago';
  const newer = part('newer');
  const waiting = timeline.newer;
  newer.hidden = waiting === 0;
  if (waiting > 0) newer.replaceChildren(icon('up'), `${plural(waiting, 'newer event')}`);
  const nothing = part('nothing');
  nothing.hidden = rows.length > 0;
  if (rows.length === 0) nothing.replaceChildren(emptyTimeline());
}

function emptyTimeline() {
  if (isLoading) return emptyState('Loading…');
  if (store.rows.length > 0) {
    return emptyState(
      'No event fits',
      'Other events are hidden by the filters or the search.',
      button('Clear all filters', () => changeFilter(newFilter())),
    );
  }
  if (!description.live) return emptyState('No events', 'The journal has no event that reached a hook.');
  return emptyState(
    'No events yet',
    'Events appear here as soon as they reach a hook. Try one in a terminal:',
    element('code', { class: 'command' }, 'tenterhook fire pre_tool_use --tool shell --arg cmd=ls'),
  );
}

function drawOther() {
  const place = part('other');
  const scrollTop = place.scrollTop;
  const onhook = (hook) => show({ view: 'timeline', filter: newFilter({ hook: [hook] }) });
  const views = {
    sessions: () =>
      sessionsView(withoutSession(), {
        filter,
        onsession: (id) => changeFilter({ ...filter, session: [id] }),
        onopen: openRow,
      }),
    hooks: () =>
      hooksView(result.rows, {
        list: hooksInForce,
        sort,
        onsort: (column) => {
          sort = column;
          show({}, false);
        },
        onhook,
      }),
    latency: () =>
      latencyView(result.rows, {
        onhook,
        onevent: (event) => show({ view: 'timeline', filter: newFilter({ event: [event] }) }),
      }),
    gateway: () => gatewayView(gateway, { ondecide: decide, problem: gatewayProblem }),
  };
  replaceKeepingFocus(place, views[view]());
  place.scrollTop = scrollTop;
}

/** The list of sessions shows all of them, also when one is chosen. */
const withoutSession = () =>
  filter.session.length === 0 ? result.rows : new Query({ ...filter, session: [] }, store).run(store.rows).rows;

// Start

let signInProblem = null;

async function signInFromAddress() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (!code) return;
  history.replaceState(null, '', location.pathname + location.search);
  signInProblem = await signIn(code);
}

function receive(records) {
  const before = store.unreadable;
  for (const record of records) store.add(record);
  if (store.unreadable > before) noteUnreadable();
  plan();
}

const noteUnreadable = () => notify('unreadable', `${plural(store.unreadable, 'line')} could not be read as records.`);

function changeStatus(status) {
  if (status === 'live' || status === 'offline') connection = status;
  else refuseRequest(status, signInProblem);
  plan();
}

/** Loads the hooks in force, which a reload can change. */
async function loadHooks() {
  const hooks = await fetchJson('/hooks').catch(() => hooksInForce);
  if (JSON.stringify(hooks) === JSON.stringify(hooksInForce)) return;
  hooksInForce = hooks;
  if (view === 'hooks') viewDrawnAt = 0;
  plan();
}

async function loadGateway() {
  try {
    gateway = await fetchJson('/gateway');
    gatewayProblem = null;
  } catch (error) {
    gatewayProblem = error.message;
  }
  if (view === 'gateway') viewDrawnAt = 0;
  plan();
}

async function decide(path, decision) {
  try {
    await sendDecision(path, decision);
  } catch (error) {
    const why = error.status === 403 ? 'your token lacks the scope `admin`' : error.message;
    notify('decision', `The decision was not accepted: ${why}.`, 'danger');
  }
  await loadGateway();
}

async function start() {
  await signInFromAddress();
  plan();
  try {
    description = (await source.describe()) ?? description;
    await source.load(receive, (skipped) => {
      store.unreadable += skipped;
      noteUnreadable();
    });
  } catch (error) {
    refuseRequest(error, signInProblem);
    return;
  }
  const dropped = description.kept?.dropped ?? 0;
  if (dropped > 0) notify('dropped', `${plural(dropped, 'older record')} are not shown.`);
  isLoading = false;
  viewDrawnAt = 0;
  sideDrawnAt = -SIDE_INTERVAL;
  draw();
  openFromAddress();
  if (!description.live) return;
  source.follow({ onrecords: receive, ongap: noteGap, onrestart: noteRestart, onstatus: changeStatus });
  loadHooks();
  setInterval(() => document.hidden || view !== 'hooks' || loadHooks(), HOOKS_INTERVAL);
  if (description.kind === 'gateway') {
    loadGateway();
    setInterval(() => document.hidden || loadGateway(), GATEWAY_INTERVAL);
  }
}

function noteGap(number) {
  missed += number;
  const records = missed === 1 ? '1 record was' : `${count(missed)} records were`;
  notify('gap', `${records} missed while the page was offline. The server keeps only the newest ones.`);
}

function noteRestart() {
  notify('restart', 'The server was restarted. Events may be missing from that time.');
}

function togglePause() {
  if (!description.live) return;
  isPaused = !isPaused;
  if (!isPaused) timeline.grow();
  plan();
}

function toggleFilters(isOpen = !document.body.classList.contains('has-filters')) {
  document.body.classList.toggle('has-filters', isOpen);
  part('filters').setAttribute('aria-expanded', String(isOpen));
  if (isOpen) part('facets').querySelector('button')?.focus();
}

/** Goes to the filters. On narrow windows, they are hidden until then. */
function focusFilters() {
  if (narrow.matches) toggleFilters(true);
  else part('facets').querySelector('button')?.focus();
}

/** Closes what is on top. Returns whether there was something. */
function escape(target) {
  if (target.closest('dialog')) return false;
  const menu = target.closest('details.menu[open]');
  if (menu) menu.open = false;
  else if (target.matches('input')) target.blur();
  else if (document.body.classList.contains('has-filters')) toggleFilters(false);
  else if (open !== null) openRow(null);
  else return false;
  return true;
}

async function save(path, name) {
  part('export').open = false;
  try {
    await download(path, name);
  } catch (error) {
    notify('export', `The export failed: ${error.message}.`, 'danger');
  }
}

function connectControls() {
  listenToKeys({
    escape,
    list: (key) => view === 'timeline' && timeline.list.press(key),
    search: () => part('search').select(),
    pause: togglePause,
    filters: focusFilters,
    clear: () => changeFilter(newFilter()),
    help: () => showHelp(part('keys')),
    view: (index) => (VIEWS[index] !== 'gateway' || description.kind === 'gateway') && show({ view: VIEWS[index] }),
  });
  part('search').addEventListener('input', (event) => changeFilter({ ...filter, q: event.target.value }));
  part('pause').addEventListener('click', togglePause);
  part('times').addEventListener('click', () => {
    timeline.isRelative = !timeline.isRelative;
    timeline.list.redraw();
    plan();
  });
  part('newer').addEventListener('click', () => {
    if (isPaused) togglePause();
    timeline.scrollToTop();
    plan();
  });
  part('rows').addEventListener(
    'scroll',
    () => {
      if (timeline.noteScroll()) plan();
    },
    { passive: true },
  );
  part('filters').addEventListener('click', () => toggleFilters());
  part('backdrop').addEventListener('click', () => toggleFilters(false));
  part('help').addEventListener('click', () => showHelp(part('keys')));
  part('skip').addEventListener('click', (event) => {
    event.preventDefault();
    (view === 'timeline' ? part('rows') : part('other')).focus();
  });
  part('export').hidden = source instanceof EmbeddedSource;
  part('export-html').addEventListener('click', () => save('/export.html', 'inspector.html'));
  part('export-jsonl').addEventListener('click', () => save('/export.jsonl', 'journal.jsonl'));
  addEventListener('popstate', () => {
    ({ filter, view, open } = parseQuery(location.search));
    isFilterChanged = true;
    viewDrawnAt = 0;
    draw();
    openFromAddress();
  });
  addEventListener('pointerdown', () => {
    pressedUntil = performance.now() + MAX_PRESS;
  });
  const release = () => {
    pressedUntil = 0;
  };
  for (const end of ['click', 'pointercancel', 'keydown']) addEventListener(end, release, true);
  themeButton(part('theme'));
  setInterval(() => {
    if (!document.hidden && timeline.isRelative) timeline.list.redraw();
  }, TICK);
}

connectControls();
start();
