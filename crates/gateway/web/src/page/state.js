// What the page knows: chats, and in each the items that frames have produced. It knows nothing about elements.
//
// An item is shown as one block. Each change of an item increases its `version`, so that only it is drawn again.

import { load, save, unsent } from './storage.js';

/** How many frames of the past are fetched at once. */
export const PAGE = 100;
/** How many chats are followed; the oldest ones are followed when they are opened. */
const MAX_FOLLOWED = 50;

let lastKey = 0;

const newItem = (kind, fields) => ({ key: (lastKey += 1), version: 0, kind, ...fields });

function change(item, fields) {
  Object.assign(item, fields);
  item.version += 1;
}

function newChat(id, fields) {
  return {
    id, title: '', at: 0, lastSeq: 0, firstSeq: null, items: [], outbox: [], questions: [], turn: null,
    history: 'none', isUnread: false, ...fields,
  };
}

/** Returns a random identifier. `crypto.randomUUID` does not exist on pages without TLS. */
export function randomId() {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');
}

export class State {
  chats = new Map();
  active = null;
  followed = new Set();

  /**
   * `changed` is called after each change, `announce` gets what a screen reader should read, and `isSeen` says whether
   * the user looks at the page.
   */
  constructor({ changed, announce, isSeen }) {
    Object.assign(this, { changed, announce, isSeen, user: load('user', null) });
    for (const [id, fields] of Object.entries(load('chats', {}))) this.chats.set(id, newChat(id, fields));
    this.#loadUnsent();
  }

  /** Returns the fields of `hello`: the chats to follow, and the last frame of each that was seen. */
  hello() {
    const followed = this.sorted().filter((chat) => chat.lastSeq > 0 || chat === this.active).slice(0, MAX_FOLLOWED);
    if (this.active && !followed.includes(this.active)) followed.push(this.active);
    this.followed = new Set(followed.map((chat) => chat.id));
    return { chats: Object.fromEntries(followed.map((chat) => [chat.id, chat.lastSeq])) };
  }

  /** Takes the server's list of chats. Returns whether a new `hello` must follow. */
  ready(frame) {
    if (this.user !== frame.user) this.#changeUser(frame.user);
    for (const entry of frame.chats) {
      const chat = this.#chat(entry.id, { lastSeq: entry.last_seq });
      chat.title = entry.title || chat.title;
      chat.at = entry.at;
      // The server has forgotten frames that this browser has seen: its store is a new one.
      if (entry.last_seq < chat.lastSeq) this.#forget(chat, entry.last_seq);
    }
    this.#save();
    this.changed();
    const wanted = this.sorted().filter((chat) => chat.lastSeq > 0).slice(0, MAX_FOLLOWED);
    return wanted.some((chat) => !this.followed.has(chat.id));
  }

  /** Returns all chats, the most recent first. */
  sorted() {
    return [...this.chats.values()].sort((a, b) => b.at - a.at);
  }

  open(id) {
    this.active = this.#chat(id);
    this.active.isUnread = false;
    this.changed();
  }

  /** Returns the messages that must be sent again. */
  unaccepted() {
    return [...this.chats.values()].flatMap((chat) => chat.outbox).filter((item) => !item.accepted);
  }

  /** Adds a message to the active chat. It stays in the browser until the server has accepted it. */
  write(text, media) {
    const chat = this.active;
    const message = { chat: chat.id, message_id: randomId(), text, media, user: this.user, at: Date.now() };
    unsent.add(message);
    const item = newItem('pending', message);
    chat.outbox.push(item);
    chat.title ||= text.split('\n')[0].slice(0, 80) || titleOf(media);
    chat.at = Date.now();
    this.#save();
    this.changed();
    return item;
  }

  /** Marks a question as answered, until the server reports the outcome. */
  answering(question) {
    change(question, { isAnswered: true });
    this.changed();
  }

  receive(frame) {
    const chat = frame.chat ? this.#chat(frame.chat) : this.active;
    if (!chat) return;
    if (frame.seq != null) {
      if (frame.seq <= chat.lastSeq) return;
      chat.lastSeq = frame.seq;
      chat.firstSeq ??= frame.seq;
      chat.at = Date.now();
      this.#save();
    }
    FRAMES[frame.type]?.(chat, frame, this);
    const isNews = frame.seq != null && frame.type !== 'said';
    if (isNews && !(chat === this.active && this.isSeen())) chat.isUnread = true;
    this.changed();
  }

  /** Takes a page of the past, in front of what is shown. */
  past(frame) {
    const chat = this.#chat(frame.chat);
    const before = chat.firstSeq ?? chat.lastSeq + 1;
    const frames = frame.frames.filter(({ seq }) => seq < before).sort((a, b) => a.seq - b.seq);
    const page = newChat(chat.id, { outbox: chat.outbox });
    for (const past of frames) FRAMES[past.type]?.(page, past, SILENT);
    chat.items.unshift(...page.items);
    chat.firstSeq = frames[0]?.seq ?? before;
    chat.history = frames.length > 0 && chat.firstSeq > frame.oldest ? 'more' : 'complete';
    chat.title ||= page.title;
    this.changed();
  }

  /** Returns the request for the page before what is shown, or `null` if it is not needed now. */
  historyRequest() {
    const chat = this.active;
    if (!chat || chat.history === 'loading' || chat.history === 'complete') return null;
    const before = chat.firstSeq ?? chat.lastSeq + 1;
    if (before <= 1) {
      chat.history = 'complete';
      return null;
    }
    chat.history = 'loading';
    return { type: 'history', chat: chat.id, before, limit: PAGE };
  }

  /** Notes that the user looks at the page again. */
  seen() {
    if (this.active) this.active.isUnread = false;
    this.changed();
  }

  /** Forgets what the connection was about. The server repeats turns that still run, and questions that are open. */
  disconnected() {
    for (const chat of this.chats.values()) {
      if (chat.history === 'loading') chat.history = 'none';
      chat.turn = null;
      chat.questions = [];
      for (const item of chat.items) {
        if (item.isOpen) change(item, { isOpen: false, isLost: true });
      }
    }
    this.changed();
  }

  /** Shows nothing of another user of the same browser. */
  #changeUser(user) {
    const isFirst = this.user === null;
    this.user = user;
    save('user', user);
    if (isFirst) return;
    this.chats.clear();
    if (this.active) this.open(this.active.id);
    this.#loadUnsent();
  }

  #loadUnsent() {
    const own = unsent.all().filter((message) => message.user === this.user);
    for (const message of own) this.#chat(message.chat).outbox.push(newItem('pending', message));
  }

  #chat(id, fields) {
    if (!this.chats.has(id)) this.chats.set(id, newChat(id, fields));
    return this.chats.get(id);
  }

  #forget(chat, lastSeq) {
    Object.assign(chat, { items: [], firstSeq: null, lastSeq, history: 'none' });
  }

  gap(chat, to) {
    this.#forget(chat, to);
  }

  #save() {
    const seen = this.sorted().filter((chat) => chat.lastSeq > 0).slice(0, 200);
    save('chats', Object.fromEntries(seen.map(({ id, title, at, lastSeq }) => [id, { title, at, lastSeq }])));
  }
}

const isAudio = (media) => media.kind === 'audio';

/** Returns the title of a chat that begins with files. A recording gets its title from its transcript. */
const titleOf = (media) => (media[0] && !isAudio(media[0]) ? media[0].name : '');

/** What frames of the past do instead of telling the user. */
const SILENT = { announce() {}, gap() {} };

/** Moves a message of the user from the waiting ones into the conversation. */
function settle(chat, messageId, fields = {}) {
  const index = chat.outbox.findIndex((item) => item.message_id === messageId);
  if (index < 0) return;
  const [item] = chat.outbox.splice(index, 1);
  unsent.remove(messageId);
  chat.items.push(item);
  change(item, { kind: 'said', ...fields });
}

/** What each frame does to a chat. Frames of other types are ignored. */
const FRAMES = {
  accepted(chat, frame) {
    unsent.remove(frame.message_id);
    const item = chat.outbox.find((pending) => pending.message_id === frame.message_id);
    if (item) change(item, { accepted: true });
  },

  queued(chat, frame) {
    const item = chat.outbox.find((pending) => pending.message_id === frame.message_id);
    if (item) change(item, { accepted: true, how: frame.how });
  },

  said(chat, frame) {
    const { message_id, text, media = [], is_transcript: isTranscript = false } = frame;
    settle(chat, message_id);
    const sent = chat.items.findLast((item) => item.message_id === message_id);
    const isChanged = Boolean(sent) && sent.text !== text;
    if (sent) change(sent, { text, media, isTranscript, isChanged, isRefused: false });
    else chat.items.push(newItem('said', { message_id, text, media, isTranscript }));
    chat.title ||= text.split('\n')[0].slice(0, 80) || (media.some(isAudio) ? 'Voice message' : '');
  },

  start(chat, frame, state) {
    // After a reconnect the text of a running turn comes again as a whole.
    chat.items = chat.items.filter((item) => item.turn !== frame.turn || !item.isLost || item.kind === 'tool');
    for (const id of frame.in_reply_to) settle(chat, id);
    chat.turn = { id: frame.turn, answer: null, thinking: null };
    state.announce('The agent is working.', chat);
  },

  chunk(chat, frame) {
    if (chat.turn?.id !== frame.turn) chat.turn = { id: frame.turn, answer: null, thinking: null };
    if (frame.kind !== 'thinking') close(chat, 'thinking');
    CHUNKS[frame.kind]?.(chat, frame);
  },

  call(chat, frame) {
    if (!tool(chat, frame)) {
      // Text of the agent that is shown already comes after the call.
      const isNewer = (item) => item.kind === 'answer' && item.turn === frame.turn && (item.isOpen || item.isLost);
      const index = chat.items.findLastIndex(isNewer);
      const { turn, id, name, args } = frame;
      const item = newItem('tool', { turn, id, name, args, result: '' });
      chat.items.splice(index < 0 ? chat.items.length : index, 0, item);
    }
    CHUNKS.tool_end(chat, frame);
    change(tool(chat, frame), { isLost: false });
  },

  end(chat, frame, state) {
    close(chat, 'thinking');
    const { turn, text, is_final: isFinal } = frame;
    const isUnfinished = (item) => item.kind === 'answer' && item.turn === turn && (item.isOpen || item.isLost);
    const open = chat.items.findLast(isUnfinished);
    if (open) change(open, { text, isFinal, isOpen: false, isLost: false });
    else if (text) chat.items.push(newItem('answer', { turn, text, isFinal }));
    if (open && !frame.text) chat.items.splice(chat.items.indexOf(open), 1);
    if (chat.turn) chat.turn.answer = null;
    if (frame.text) state.announce(frame.text, chat);
  },

  message(chat, frame, state) {
    settle(chat, frame.reply_to);
    chat.items.push(newItem('message', { text: frame.text ?? '', media: frame.media ? [frame.media] : [] }));
    const sent = frame.media && isAudio(frame.media) ? 'a voice message' : frame.media?.name;
    state.announce(frame.text || `The agent sent ${sent}.`, chat);
  },

  error(chat, frame, state) {
    const { turn, message_id, text, code, retry } = frame;
    for (const question of chat.questions) change(question, { isAnswered: false });
    if (retry) {
      const attempts = chat.items.findLast((item) => item.kind === 'retry' && item.turn === turn && item.isOpen);
      if (attempts) change(attempts, { text, retry, isOpen: !retry.is_recovered });
      else chat.items.push(newItem('retry', { turn, text, retry, isOpen: !retry.is_recovered }));
      return;
    }
    if (message_id) settle(chat, message_id, { isRefused: true });
    if (chat.turn) chat.turn.hasFailed = true;
    chat.items.push(newItem('error', { text, code }));
    state.announce(text, chat);
  },

  done(chat, frame, state) {
    for (const item of chat.items) {
      if (item.turn === frame.turn && item.isOpen) change(item, { isOpen: false, isStopped: true });
    }
    const last = chat.items.findLast((item) => item.kind === 'answer' && item.turn === frame.turn);
    if (last?.isFinal) change(last, { usage: frame.usage });
    if (frame.status === 'cancelled') {
      chat.items.push(newItem('note', { text: 'Stopped' }));
      // The server has removed the messages that waited for this turn.
      for (const item of chat.outbox.filter(({ how }) => how)) settle(chat, item.message_id, { isRefused: true });
    }
    if (frame.status === 'failed' && chat.turn && !chat.turn.hasFailed) {
      chat.items.push(newItem('error', { text: 'The turn failed.' }));
    }
    if (frame.status !== 'completed') state.announce(frame.status === 'failed' ? 'The turn failed.' : 'Stopped.', chat);
    chat.turn = null;
  },

  approve: ask,
  question: ask,

  resolved(chat, frame) {
    const question = chat.questions.find(({ nonce }) => nonce === frame.nonce);
    chat.questions = chat.questions.filter((other) => other !== question);
    if (!question) return;
    const subject = question.tool ?? question.question?.title ?? 'question';
    chat.items.push(newItem('resolved', { subject, outcome: frame.outcome, by: frame.by }));
  },

  notice(chat, frame, state) {
    chat.items.push(newItem('note', { text: frame.text }));
    state.announce(frame.text, chat);
  },

  gap: (chat, frame, state) => state.gap(chat, frame.to),
};

function ask(chat, frame, state) {
  const question = newItem(frame.type, { ...frame, kind: frame.type });
  const index = chat.questions.findIndex(({ nonce }) => nonce === frame.nonce);
  if (index >= 0) return;
  chat.questions.push(question);
  state.announce(frame.tool ? `The agent asks whether it may run ${frame.tool}.` : 'The agent has a question.', chat);
}

/** Ends the thinking or the text that grows now. */
function close(chat, name) {
  const item = chat.turn?.[name];
  if (!item) return;
  change(item, { isOpen: false });
  chat.turn[name] = null;
}

/** Appends to the item that grows now, or begins one. */
function grow(chat, name, frame) {
  let item = chat.turn[name];
  // After a reconnect, the text of a turn that has written nothing yet is empty.
  if (!item && !frame.text) return;
  if (!item) {
    item = newItem(name, { turn: frame.turn, text: '', isOpen: true });
    chat.turn[name] = item;
    chat.items.push(item);
  }
  change(item, { text: frame.replace ? frame.text : item.text + frame.text });
}

const tool = (chat, frame) => chat.items.findLast(
  (item) => item.kind === 'tool' && item.turn === frame.turn && item.id === frame.id);

/** What each kind of chunk does to a chat. */
const CHUNKS = {
  text: (chat, frame) => grow(chat, 'answer', frame),
  thinking: (chat, frame) => grow(chat, 'thinking', frame),

  tool_start(chat, frame) {
    const item = tool(chat, frame);
    const { turn, id, name, args } = frame;
    if (item) {
      const isRewritten = item.isRewritten || JSON.stringify(args) !== JSON.stringify(item.args);
      return change(item, { args, isRewritten, isOpen: true, isLost: false });
    }
    chat.items.push(newItem('tool', { turn, id, name, args, result: '', isOpen: true }));
  },

  tool_update(chat, frame) {
    const item = tool(chat, frame);
    if (item) change(item, { result: frame.text });
  },

  tool_end(chat, frame) {
    if (!tool(chat, frame)) CHUNKS.tool_start(chat, frame);
    const { is_error: isError, result, denied_by: deniedBy } = frame;
    change(tool(chat, frame), { isOpen: false, isError, result, deniedBy });
  },

  hook: (chat, frame) => chat.items.push(newItem('hook', {
    turn: frame.turn, event: frame.event, text: frame.text, isFailure: frame.is_failure,
  })),
};
