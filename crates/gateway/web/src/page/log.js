// Draws a conversation: one element for each item, which is drawn again only if the item has changed.

import { copyButton, element, fileSize, icon } from './element.js';
import { MarkdownView } from './markdown.js';
import { mediaUrl } from './server.js';

const HOW = {
  steer: 'The agent reads it at its next step',
  follow_up: 'Waits for the current answer',
  collect: 'Waits for more, then for the current answer',
};
const OUTCOMES = {
  allowed: 'allowed', denied: 'denied', answered: 'answered', expired: 'expired, so denied', withdrawn: 'withdrawn',
};

/** How close to the end counts as being at the end, in pixels. */
const NEAR = 60;

export class Log {
  #views = new Map();
  #chat = null;
  #isFollowing = true;

  constructor({ scroller, list, jump, onold }) {
    Object.assign(this, { scroller, list, jump });
    let lastTop = 0;
    scroller.addEventListener('scroll', () => {
      const { scrollTop, scrollHeight, clientHeight } = scroller;
      // Only the user scrolls up. The end also moves away when a picture is loaded.
      if (scrollHeight - scrollTop - clientHeight < NEAR) this.#isFollowing = true;
      else if (scrollTop < lastTop) this.#isFollowing = false;
      lastTop = scrollTop;
      jump.hidden = this.#isFollowing;
      if (scroller.scrollTop < 400) onold();
    }, { passive: true });
    jump.addEventListener('click', () => this.follow());
    new ResizeObserver(() => this.#isFollowing && this.#toEnd()).observe(list);
    new ResizeObserver(() => this.#isFollowing && this.#toEnd()).observe(scroller);
  }

  /** Goes to the end and stays there while the conversation grows. */
  follow() {
    this.#isFollowing = true;
    this.jump.hidden = true;
    this.#toEnd();
  }

  show(chat, isOnline) {
    if (chat !== this.#chat) {
      this.#chat = chat;
      this.#views.clear();
      this.list.replaceChildren();
      this.#isFollowing = true;
      this.jump.hidden = true;
    }
    const top = this.list.firstElementChild;
    const offset = top?.getBoundingClientRect().top;
    this.#reconcile([...chat.items, ...chat.outbox], isOnline);
    this.list.classList.toggle('working', isWaiting(chat));
    if (this.#isFollowing) this.#toEnd();
    // Keep what the user reads in place when older items appear above it.
    else if (top?.isConnected) this.scroller.scrollTop += top.getBoundingClientRect().top - offset;
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
  }

  #reconcile(items, isOnline) {
    const current = new Set(items);
    for (const [item, view] of this.#views) {
      if (current.has(item)) continue;
      view.node.remove();
      this.#views.delete(item);
    }
    items.forEach((item, index) => {
      const { node } = this.#draw(item, isOnline);
      const there = this.list.children[index] ?? null;
      if (there !== node) this.list.insertBefore(node, there);
    });
  }

  #draw(item, isOnline) {
    let view = this.#views.get(item);
    if (view?.build !== VIEWS[item.kind]) {
      view?.node.remove();
      const build = VIEWS[item.kind];
      const node = element('article');
      view = { node, build, update: build(node) };
      this.#views.set(item, view);
    }
    const drawn = `${item.version} ${item.kind} ${item.kind === 'pending' && isOnline}`;
    if (view.drawn === drawn) return view;
    view.drawn = drawn;
    view.node.className = `item ${item.kind}`;
    view.update(item, isOnline);
    return view;
  }
}

/** Returns whether a turn runs that shows nothing that moves. */
function isWaiting(chat) {
  return chat.turn !== null && !chat.items.some((item) => item.isOpen) && chat.questions.length === 0;
}

/** For each kind of item: builds what stays in `node`, and returns the function that draws the item. */
const VIEWS = { said, pending: said, answer, message, thinking, tool, hook, retry, error, note, resolved };

function said(node) {
  node.setAttribute('aria-label', 'You');
  const text = element('div', { class: 'bubble', dir: 'auto' });
  const status = element('div', { class: 'status' });
  const attached = files(node);
  let current = '';
  const tell = () => node.dispatchEvent(new CustomEvent('edit', { bubbles: true, detail: current }));
  const edit = element('button', { type: 'button', class: 'link', onclick: tell }, 'Edit and send again');
  node.append(text, status);
  return (item, isOnline) => {
    attached(item.media);
    text.textContent = item.text;
    text.hidden = !item.text;
    node.classList.toggle('refused', Boolean(item.isRefused));
    status.replaceChildren(sentStatus(item, isOnline));
    if (item.isRefused && item.text) status.append(' · ', edit);
    current = item.text;
  };
}

function sentStatus(item, isOnline) {
  if (item.isRefused) return 'Not delivered';
  if (item.kind === 'said' && item.isTranscript) return 'Transcribed from the voice message';
  if (item.kind === 'said') return item.isChanged ? 'Changed by a hook' : '';
  if (item.how) return HOW[item.how] ?? '';
  if (item.accepted) return 'Sent';
  return isOnline ? 'Sending…' : 'Not sent yet. It is sent when the connection is back.';
}

function answer(node) {
  node.setAttribute('aria-label', 'Agent');
  const markdown = new MarkdownView();
  let text = '';
  const usage = element('span', { class: 'usage' });
  const foot = element('div', { class: 'foot' }, copyButton(() => text, 'Copy the answer'), usage);
  node.append(markdown.node, foot);
  return (item) => {
    text = item.text;
    markdown.update(text);
    node.classList.toggle('open', Boolean(item.isOpen));
    node.classList.toggle('final', Boolean(item.isFinal));
    usage.textContent = tokens(item.usage);
  };
}

function tokens(usage) {
  if (!usage?.input_tokens && !usage?.output_tokens) return '';
  const count = (number) => (number ?? 0).toLocaleString('en');
  return `${count(usage.input_tokens)} tokens in, ${count(usage.output_tokens)} out`;
}

function message(node) {
  node.setAttribute('aria-label', 'Agent');
  const markdown = new MarkdownView();
  const attached = files(node);
  node.append(markdown.node);
  return (item) => {
    markdown.update(item.text);
    attached(item.media);
  };
}

/** Folded details: a summary of one line, and a body that is filled in when it is opened. */
function folded(node, fill) {
  const summary = element('summary');
  const body = element('div', { class: 'body' });
  const details = element('details', {}, summary, body);
  let current;
  details.addEventListener('toggle', () => details.open && fill(body, current));
  node.append(details);
  return (item, ...parts) => {
    current = item;
    summary.replaceChildren(...parts, icon('chevron'));
    if (details.open) fill(body, item);
  };
}

function thinking(node) {
  const draw = folded(node, (body, item) => body.replaceChildren(element('p', { dir: 'auto' }, item.text)));
  return (item) => {
    node.classList.toggle('open', Boolean(item.isOpen));
    draw(item, element('span', {}, item.isOpen ? 'Thinking…' : 'Thought'));
  };
}

function tool(node) {
  const draw = folded(node, (body, item) => body.replaceChildren(
    ...section('Arguments', JSON.stringify(item.args ?? {}, null, 2)),
    ...(item.isRewritten ? [element('p', { class: 'remark' }, icon('hook'), 'A hook changed the arguments.')] : []),
    ...(item.deniedBy ? [element('p', { class: 'remark' }, icon('denied'), deniedText(item))] : []),
    ...(item.result ? section(resultTitle(item), item.result) : [])));
  return (item) => {
    const [state, symbol, word] = toolStatus(item);
    node.dataset.state = state;
    draw(item,
      icon(symbol),
      element('span', { class: 'name' }, item.name),
      element('span', { class: 'preview', dir: 'ltr' }, preview(item.args)),
      element('span', { class: 'word' }, word));
  };
}

function toolStatus(item) {
  if (item.isOpen) return ['running', 'spin', 'running'];
  if (item.isStopped) return ['stopped', 'stop', 'stopped'];
  if (item.isLost) return ['stopped', 'check', 'ended while there was no connection'];
  if (item.deniedBy === 'permission') return ['denied', 'denied', 'not allowed'];
  if (item.deniedBy) return ['denied', 'denied', 'denied by a hook'];
  if (item.isError) return ['failed', 'alert', 'failed'];
  return ['done', 'check', 'done'];
}

function resultTitle(item) {
  if (item.isOpen) return 'Output so far';
  return item.deniedBy ? 'Reason' : 'Result';
}

const deniedText = (item) => (item.deniedBy === 'permission'
  ? 'The permissions do not allow this call.'
  : `A hook of the event ${item.deniedBy} denied this call.`);

/** Shows marks that would change the direction of what a tool got or returned. */
const withMarks = (text) => (
  text.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (mark) => `\\u{${mark.charCodeAt(0).toString(16)}}`));

/** Returns the argument that says most about a call. */
function preview(args) {
  const values = Object.values(args ?? {});
  const value = values.find((each) => typeof each === 'string') ?? values[0] ?? '';
  return withMarks((typeof value === 'string' ? value : JSON.stringify(value)).replace(/\s+/g, ' ').slice(0, 200));
}

function section(title, text) {
  return [element('p', { class: 'label' }, title), element('pre', { tabindex: '0', dir: 'ltr' }, withMarks(text))];
}

function hook(node) {
  return (item) => {
    node.classList.toggle('failure', item.isFailure);
    node.replaceChildren(icon(item.isFailure ? 'alert' : 'hook'),
      element('p', { dir: 'auto' }, element('span', { class: 'event' }, item.event), ' ', item.text));
  };
}

function retry(node) {
  return (item) => {
    const { attempt, max, is_recovered: isRecovered } = item.retry;
    const text = isRecovered
      ? `Recovered after attempt ${attempt} failed: ${item.text}`
      : `Attempt ${attempt} of ${max} failed: ${item.text}`;
    node.replaceChildren(icon(item.isOpen ? 'spin' : 'alert'), element('p', { dir: 'auto' }, text));
    node.classList.toggle('open', Boolean(item.isOpen));
  };
}

function error(node) {
  return (item) => node.replaceChildren(icon('alert'), element('p', { dir: 'auto' }, item.text));
}

function note(node) {
  return (item) => node.replaceChildren(element('p', { dir: 'auto' }, item.text));
}

function resolved(node) {
  return (item) => {
    const { subject, outcome, by } = item;
    const symbol = outcome === 'allowed' || outcome === 'answered' ? 'check' : 'denied';
    const text = ` ${OUTCOMES[outcome] ?? outcome}${by ? ` by ${by}` : ''}`;
    node.replaceChildren(icon(symbol), element('p', {}, element('b', {}, subject), text));
  };
}

/** Puts a list of files into `node`. Returns the function that draws it; equal lists are drawn once. */
function files(node) {
  const list = element('div', { class: 'files' });
  node.append(list);
  let shown = '';
  return (media) => {
    const ids = media.map(({ id }) => id).join(' ');
    list.hidden = media.length === 0;
    if (ids !== shown) list.replaceChildren(...media.map(file));
    shown = ids;
  };
}

function file(media) {
  const src = mediaUrl(media);
  if (media.kind === 'image') {
    const image = element('img', { src, alt: media.name, loading: 'lazy' });
    return element('a', { class: 'picture', href: src, target: '_blank', rel: 'noopener noreferrer' }, image);
  }
  if (media.kind === 'audio') {
    const label = `Voice message: ${media.name}`;
    return element('audio', { src, controls: true, preload: 'none', title: media.name, 'aria-label': label });
  }
  return element('a', { class: 'file', href: src, download: media.name }, icon('file'),
    element('span', { class: 'name' }, media.name), element('span', { class: 'size' }, fileSize(media.size)));
}
