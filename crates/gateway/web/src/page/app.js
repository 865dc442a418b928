// Connects the parts of the page: frames change the state, and each change draws the page once.

import { Composer } from './composer.js';
import { Connection } from './connection.js';
import { copyButton, element, icon } from './element.js';
import { Log } from './log.js';
import { Questions } from './questions.js';
import { isSignedIn, signIn } from './server.js';
import { randomId, State } from './state.js';
import { load, save } from './storage.js';

const THEMES = { auto: 'Colours of the system', light: 'Light colours', dark: 'Dark colours' };
/** How long a lost connection stays unmentioned, so that a short break does not flicker. */
const BANNER_DELAY = 1000;

const part = (id) => document.querySelector(`#${id}`);
const phone = matchMedia('(max-width: 760px)');

const state = new State({ changed: draw, announce, isSeen: () => !document.hidden });
const connection = new Connection({ hello: () => state.hello(), onframe: receive, onstatus: showStatus });
const composer = new Composer({ form: part('composer'), onsend: write, onstop: stop });
const questions = new Questions({ list: part('questions'), onanswer: answer });
const log = new Log({
  scroller: part('log'), list: part('items'), jump: part('jump'),
  onold: () => state.active?.history === 'more' && requestHistory(),
});

let signInProblem = '';
let goodbye = '';
let bannerTimer = null;
let isDrawPlanned = false;
let isEntering = false;

function receive(frame) {
  if (frame.type === 'ready') {
    goodbye = '';
    if (state.ready(frame)) return connection.restart();
    for (const item of state.unaccepted()) send(item);
  } else if (frame.type === 'history') state.past(frame);
  else if (frame.type === 'bye') goodbye = frame.reason;
  else state.receive(frame);
}

function write(text, media) {
  send(state.write(text, media));
  log.follow();
}

function send(item) {
  const { chat, message_id, text, media } = item;
  const parts = media.length > 0 ? { parts: media.map(({ id }) => ({ media: id })) } : {};
  connection.send({ type: 'message', chat, message_id, text, ...parts });
}

function stop() {
  if (state.active.turn) connection.send({ type: 'cancel', chat: state.active.id });
  composer.focus();
}

function answer(question, fields) {
  const isSent = connection.send({ chat: state.active.id, nonce: question.nonce, ...fields });
  if (isSent) state.answering(question);
}

function requestHistory() {
  const request = connection.status === 'online' && state.historyRequest();
  if (request) connection.send(request);
}

/** Tells a screen reader what happened in the open chat. */
function announce(text, chat) {
  if (chat === state.active) part('announcer').textContent = text;
}

// Drawing

function draw() {
  if (isDrawPlanned) return;
  isDrawPlanned = true;
  // A page in the background gets no frames, but its title says that there is something new.
  const plan = document.hidden ? setTimeout : requestAnimationFrame;
  plan(() => {
    isDrawPlanned = false;
    drawNow();
  });
}

function drawNow() {
  const chat = state.active;
  const isOnline = connection.status === 'online';
  if (!chat) return;
  if (isOnline && chat.history === 'none') requestHistory();
  const isSignedOut = connection.status === 'signed-out';
  const name = isSignedOut ? 'Signed out' : chat.title || 'New chat';
  part('title').textContent = name;
  const isUnread = [...state.chats.values()].some((other) => other.isUnread);
  document.title = `${isUnread ? '● ' : ''}${chat.title ? `${name} – ` : ''}Tenterhook`;
  part('user').textContent = state.user ?? '';
  log.show(chat, isOnline);
  questions.show(chat.questions, isOnline);
  composer.show(chat, chat.turn !== null);
  drawChats();
  drawEmpty(chat, isSignedOut);
  if (chat.history === 'more' && part('log').scrollHeight <= part('log').clientHeight) requestHistory();
}

function drawChats() {
  const shown = state.sorted().filter((chat) => chat.lastSeq > 0 || chat.items.length + chat.outbox.length > 0);
  const list = part('chat-list');
  shown.forEach((chat, index) => {
    const entry = list.children[index] ?? list.appendChild(chatEntry());
    const [button] = entry.children;
    const marks = { running: chat.turn !== null, unread: chat.isUnread, asks: chat.questions.length > 0 };
    for (const [name, isOn] of Object.entries(marks)) button.classList.toggle(name, isOn);
    button.dataset.chat = chat.id;
    if (chat === state.active) button.setAttribute('aria-current', 'true');
    else button.removeAttribute('aria-current');
    const mark = marks.asks ? 'asks a question' : marks.running ? 'working' : marks.unread ? 'new messages' : '';
    const texts = [chat.title || 'Chat', mark || ago(chat.at)];
    [...button.children].forEach((node, at) => {
      if (node.textContent !== texts[at]) node.textContent = texts[at];
    });
  });
  while (list.children.length > shown.length) list.lastElementChild.remove();
}

function chatEntry() {
  const open = (event) => go(event.currentTarget.dataset.chat);
  return element('li', {}, element('button', { type: 'button', onclick: open },
    element('span', { class: 'name', dir: 'auto' }), element('span', { class: 'when' })));
}

const STEPS = [['day', 86_400], ['hour', 3600], ['minute', 60]];
const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });

function ago(at) {
  if (!at) return '';
  const seconds = (Date.now() - at) / 1000;
  if (seconds > 7 * 86_400) return new Date(at).toLocaleDateString();
  const [unit, length] = STEPS.find((step) => seconds >= step[1]) ?? [];
  return unit ? relative.format(-Math.floor(seconds / length), unit) : 'just now';
}

/** Says what to do when there is nothing to show. */
function drawEmpty(chat, isSignedOut) {
  const isEmpty = chat.items.length + chat.outbox.length === 0 && chat.history === 'complete';
  const kind = isSignedOut ? `signed-out ${signInProblem}` : isEmpty ? 'empty' : '';
  document.body.classList.toggle('signed-out', isSignedOut);
  const old = part('empty');
  if ((old?.dataset.kind ?? '') === kind) return;
  old?.remove();
  if (kind) part('log').append(isSignedOut ? signedOut(kind) : welcome(kind));
}

function signedOut(kind) {
  const command = 'tenterhook gateway open';
  return element('div', { id: 'empty', 'data-kind': kind, role: signInProblem ? 'alert' : null },
    element('img', { src: '/icon.svg', alt: '', width: 48, height: 48 }),
    element('h2', {}, signInProblem ? 'You could not be signed in' : 'You are signed out'),
    signInProblem && element('p', {}, signInProblem),
    element('p', {}, 'Run this command on the computer on which the gateway runs, and open the link that it prints:'),
    element('div', { class: 'command' }, element('code', {}, command), copyButton(() => command, 'Copy the command')));
}

function welcome(kind) {
  const key = (...names) => names.map((name) => element('kbd', {}, name));
  const rows = [
    [key('Enter'), 'send'], [key('Shift', 'Enter'), 'new line'], [key('Esc'), 'stop the answer'],
    [key('Alt', 'N'), 'new chat'], [key('Alt', '↑'), 'previous chat'], [key('Alt', '↓'), 'next chat'],
    [key('Alt', 'R'), 'record a voice message'],
  ];
  return element('div', { id: 'empty', 'data-kind': kind },
    element('img', { src: '/icon.svg', alt: '', width: 48, height: 48 }),
    element('h2', {}, 'What should the agent do?'),
    element('p', {}, 'Write or record a message below. You can attach, drop or paste files. ',
      element('code', {}, '/help'), ' lists the commands.'),
    element('dl', { class: 'keys' }, ...rows.map(([keys, text]) => (
      element('div', {}, element('dt', {}, ...keys), element('dd', {}, text))))));
}

function showStatus(status) {
  if (status !== 'online') state.disconnected();
  if (status === 'offline') {
    bannerTimer ??= setTimeout(showBanner, BANNER_DELAY);
  } else if (status !== 'connecting') {
    clearTimeout(bannerTimer);
    bannerTimer = null;
    part('banner').hidden = true;
  }
  draw();
}

function showBanner() {
  const text = goodbye === 'shutdown' ? 'The gateway was stopped.' : 'There is no connection to the gateway.';
  const retry = element('button', { type: 'button', onclick: () => connection.connectNow() }, 'Try now');
  part('banner').replaceChildren(icon('alert'), element('span', {}, `${text} Trying again…`), retry);
  part('banner').hidden = false;
}

// Moving between chats. The address names the open chat, so that "back" and "reload" work.

function go(id) {
  location.hash = `#/${id}`;
  openDrawer(false);
}

function route() {
  const code = new URLSearchParams(location.hash.slice(1)).get('code');
  if (code) return enter(code);
  const id = /^#\/(?!\.{1,2}$)([\w.-]{1,64})$/.exec(location.hash)?.[1];
  if (!id) return go(load('active', null) ?? randomId());
  state.open(id);
  save('active', id);
  if (connection.status === 'online' && state.active.lastSeq > 0 && !state.followed.has(id)) connection.restart();
  composer.focus();
}

/** Signs in with the code of a link. */
async function enter(code) {
  isEntering = true;
  // The code works once, but it must not stay in the history of the browser.
  history.replaceState(null, '', '/');
  route();
  signInProblem = (await signIn(code)) ?? '';
  // A link that was opened twice does no harm.
  if (signInProblem && (await isSignedIn()) === 'yes') signInProblem = '';
  isEntering = false;
  if (signInProblem) connection.signOut();
  else connection.restart();
}

function newChat() {
  go(randomId());
  composer.input.focus();
}

function step(by) {
  const ids = [...part('chat-list').querySelectorAll('button')].map((button) => button.dataset.chat);
  const next = ids[Math.max(0, Math.min(ids.length - 1, ids.indexOf(state.active.id) + by))];
  if (next) go(next);
}

function openDrawer(isOpen) {
  const wasOpen = document.body.classList.contains('drawer');
  document.body.classList.toggle('drawer', isOpen);
  part('sidebar').inert = phone.matches && !isOpen;
  part('main').inert = phone.matches && isOpen;
  part('menu').setAttribute('aria-expanded', isOpen);
  if (isOpen) part('new-chat').focus();
  else if (wasOpen) part('menu').focus();
}

function showTheme(theme) {
  if (theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  const label = `${THEMES[theme]} (change)`;
  part('theme').replaceChildren(icon(theme));
  part('theme').setAttribute('aria-label', label);
  part('theme').title = label;
}

function nextTheme() {
  const names = Object.keys(THEMES);
  const next = names[(names.indexOf(currentTheme()) + 1) % names.length];
  save('theme', next);
  showTheme(next);
}

const currentTheme = () => document.documentElement.dataset.theme ?? 'auto';

function key(event) {
  const isTyping = event.target.matches('input, textarea');
  if (event.key === 'Escape' && document.body.classList.contains('drawer')) openDrawer(false);
  else if (event.key === 'Escape' && composer.recorder.isOpen) composer.recorder.cancel();
  else if (event.key === 'Escape' && !event.isComposing) stop();
  else if (event.altKey && event.code === 'KeyN') newChat();
  else if (event.altKey && event.code === 'KeyR') composer.record();
  else if (event.altKey && event.key === 'ArrowUp') step(-1);
  else if (event.altKey && event.key === 'ArrowDown') step(1);
  else if (event.key === '/' && !isTyping) composer.input.focus();
  else return;
  event.preventDefault();
}

function acceptDrops() {
  const hasFiles = (event) => event.dataTransfer?.types.includes('Files');
  addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    part('drop').hidden = false;
  });
  addEventListener('dragleave', (event) => {
    if (!event.relatedTarget) part('drop').hidden = true;
  });
  addEventListener('drop', (event) => {
    part('drop').hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    composer.attach(event.dataTransfer.files);
  });
}

function begin() {
  part('new-chat').addEventListener('click', newChat);
  part('new-chat-small').addEventListener('click', newChat);
  part('menu').addEventListener('click', () => openDrawer(true));
  part('backdrop').addEventListener('click', () => openDrawer(false));
  part('theme').addEventListener('click', nextTheme);
  part('skip').addEventListener('click', (event) => {
    event.preventDefault();
    composer.input.focus();
  });
  phone.addEventListener('change', () => openDrawer(false));
  part('items').addEventListener('edit', (event) => composer.insert(event.detail));
  addEventListener('keydown', key);
  addEventListener('hashchange', route);
  document.addEventListener('visibilitychange', () => document.hidden || state.seen());
  setInterval(draw, 60_000);
  acceptDrops();
  showTheme(currentTheme());
  openDrawer(false);
  route();
  if (!isEntering) connection.connectNow();
}

begin();
