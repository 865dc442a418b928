// What the page makes of frames: `node --test crates/gateway/web/tests/page/state.test.mjs`. It needs no browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { State } from '../../src/page/state.js';

const CHAT = 'c';
const ready = (lastSeq) => ({
  type: 'ready', user: 'ada', chats: lastSeq > 0 ? [{ id: CHAT, title: 'Title', last_seq: lastSeq, at: 1 }] : [],
});

function newState() {
  const announced = [];
  const state = new State({ changed() {}, announce: (text) => announced.push(text), isSeen: () => true });
  state.open(CHAT);
  state.ready(ready(0));
  return Object.assign(state, { announced });
}

/** The items of a chat in short. */
const summary = (state) => state.active.items.map(({ kind, text, name, isError, deniedBy }) => (
  kind === 'tool' ? `tool ${name} ${deniedBy ?? (isError ? 'failed' : 'done')}` : `${kind} ${text}`));

/** Frames of a turn. `seq` is added later to those that are durable. */
const DURABLE = ['said', 'call', 'end', 'message', 'done'];
const isDurable = (frame) => DURABLE.includes(frame.type) || (frame.type === 'error' && !frame.retry);

function turn(number) {
  const id = `t${number}`;
  const chunk = (kind, fields) => ({ type: 'chunk', turn: id, kind, ...fields });
  return [
    { type: 'said', message_id: `m${number}`, sender: 'ada', text: `question ${number}` },
    { type: 'start', turn: id, in_reply_to: [`m${number}`] },
    chunk('thinking', { text: 'hm' }),
    chunk('text', { text: 'I lo' }), chunk('text', { text: 'ok.' }),
    { type: 'end', turn: id, text: 'I look.', is_final: false, reason: 'tools' },
    chunk('tool_start', { id: 'x', name: 'shell', args: { cmd: 'ls' } }),
    chunk('tool_end', { id: 'x', name: 'shell', is_error: false, result: 'a' }),
    chunk('text', { text: `answer ` }), chunk('text', { text: `${number}` }),
    { type: 'call', turn: id, id: 'x', name: 'shell', args: { cmd: 'ls' }, is_error: false, result: 'a' },
    { type: 'end', turn: id, text: `answer ${number}`, is_final: true, reason: 'stop' },
    { type: 'message', turn: id, text: `extra ${number}` },
    { type: 'done', turn: id, status: 'completed' },
  ];
}

/** The durable items of a turn. */
const itemsOfTurn = (n) => [
  `said question ${n}`, 'answer I look.', 'tool shell done', `answer answer ${n}`, `message extra ${n}`];

/** A server that keeps durable frames, and knows the text of the turn that runs. */
class Server {
  kept = [];
  running = null;

  publish(frame) {
    const numbered = { chat: CHAT, ...frame, ...(isDurable(frame) ? { seq: this.kept.length + 1 } : {}) };
    if (numbered.seq) this.kept.push(numbered);
    if (frame.type === 'start') this.running = { ...numbered, text: '' };
    if (frame.type === 'chunk' && frame.kind === 'text') this.running.text += frame.text;
    if (frame.type === 'end') this.running.text = '';
    if (frame.type === 'done') this.running = null;
    return numbered;
  }

  /** What a client that connects again gets. */
  resume(after) {
    const frames = this.kept.filter(({ seq }) => seq > after);
    if (!this.running) return frames;
    const { turn: id, text, in_reply_to } = this.running;
    const start = { type: 'start', chat: CHAT, turn: id, in_reply_to };
    return [...frames, start, { type: 'chunk', chat: CHAT, turn: id, kind: 'text', text, replace: true }];
  }
}

const durableItems = (state) => summary(state).filter((line) => /^(said|answer|message|error|tool) ./.test(line));

/** Small random numbers that are the same in each run. */
function randomNumbers(seed) {
  let value = seed;
  return () => {
    value = (value * 1103515245 + 12345) % 2147483648;
    return value / 2147483648;
  };
}

// G59
test('a client that is cut off anywhere loses nothing and shows nothing twice', () => {
  const frames = [1, 2, 3].flatMap(turn);
  const expected = [1, 2, 3].flatMap(itemsOfTurn);
  for (let seed = 1; seed <= 300; seed += 1) {
    const random = randomNumbers(seed);
    const server = new Server();
    const state = newState();
    let isConnected = true;
    const connect = () => {
      const { chats } = state.hello();
      state.ready(ready(server.kept.length));
      // A server may repeat frames.
      for (const frame of server.resume(Math.max(0, chats[CHAT] - 2))) state.receive(frame);
      isConnected = true;
    };
    for (const frame of frames) {
      const published = server.publish(frame);
      if (isConnected) state.receive(published);
      if (random() < 0.2) {
        state.disconnected();
        isConnected = false;
      }
      if (!isConnected && random() < 0.5) connect();
    }
    connect();
    assert.deepEqual(durableItems(state), expected, `seed ${seed}`);
    assert.equal(state.active.turn, null);
    assert.ok(state.active.items.every((item) => !item.isOpen));
  }
});

test('a turn without text at a reconnect shows its answer after its tool calls', () => {
  const state = newState();
  const chunk = (kind, fields) => state.receive({ type: 'chunk', chat: CHAT, turn: 't1', kind, ...fields });
  state.receive({ type: 'start', chat: CHAT, turn: 't1', in_reply_to: [] });
  chunk('text', { text: '', replace: true });
  chunk('tool_start', { id: 'x', name: 'shell', args: {} });
  chunk('tool_end', { id: 'x', name: 'shell', is_error: false, result: '' });
  chunk('text', { text: 'Done.' });
  assert.deepEqual(summary(state), ['tool shell done', 'answer Done.']);
});

test('a message waits until the server has accepted it, then until the agent has it', () => {
  const state = newState();
  const { message_id } = state.write('hello', []);
  assert.equal(state.unaccepted().length, 1);
  state.disconnected();
  const again = state.unaccepted().map((item) => item.message_id);
  assert.deepEqual(again, [message_id], 'it is sent again with the same id');
  state.receive({ type: 'accepted', chat: CHAT, message_id, duplicate: true });
  assert.equal(state.unaccepted().length, 0);
  assert.equal(state.active.outbox.length, 1);
  state.receive({ type: 'said', chat: CHAT, seq: 1, message_id, sender: 'ada', text: 'hello!' });
  assert.equal(state.active.outbox.length, 0);
  assert.deepEqual(summary(state), ['said hello!']);
  assert.ok(state.active.items[0].isChanged, 'a hook has changed the text');
});

test('a rejected message is shown with the reason after it', () => {
  const state = newState();
  const { message_id } = state.write('hello', []);
  state.receive({ type: 'error', chat: CHAT, seq: 1, message_id, code: 'rejected', text: 'not on Fridays' });
  assert.deepEqual(summary(state), ['said hello', 'error not on Fridays']);
  assert.ok(state.active.items[0].isRefused);
  assert.equal(state.unaccepted().length, 0);
});

test('a message that waits for a turn that is stopped is not delivered', () => {
  const state = newState();
  state.receive({ type: 'start', chat: CHAT, turn: 't', in_reply_to: [] });
  const { message_id } = state.write('and also', []);
  state.receive({ type: 'queued', chat: CHAT, message_id, how: 'steer', waiting: 1 });
  state.receive({ type: 'done', chat: CHAT, seq: 1, turn: 't', status: 'cancelled' });
  assert.deepEqual(summary(state), ['note Stopped', 'said and also']);
  assert.ok(state.active.items[1].isRefused);
});

test('a call that a hook denied before it began is shown with the event', () => {
  const state = newState();
  state.receive({ type: 'start', chat: CHAT, turn: 't', in_reply_to: [] });
  const end = { id: 'x', name: 'shell', is_error: true, result: 'no', denied_by: 'pre_tool_use' };
  state.receive({ type: 'chunk', chat: CHAT, turn: 't', kind: 'tool_end', ...end });
  assert.deepEqual(summary(state), ['tool shell pre_tool_use']);
});

test('the past is shown before the present, without repetitions', () => {
  const server = new Server();
  const frames = [1, 2].flatMap(turn).map((frame) => server.publish(frame));
  const state = newState();
  state.ready(ready(5));
  for (const frame of frames.filter(({ seq }) => seq > 5)) state.receive(frame);
  assert.deepEqual(state.historyRequest(), { type: 'history', chat: CHAT, before: 6, limit: 100 });
  assert.equal(state.historyRequest(), null, 'one request at a time');
  state.past({ chat: CHAT, frames: server.kept.filter(({ seq }) => seq < 8), oldest: 1 });
  const expected = [1, 2].flatMap(itemsOfTurn);
  assert.deepEqual(durableItems(state), expected);
  assert.equal(state.active.history, 'complete');
});

test('after a gap the conversation begins with what the server still has', () => {
  const state = newState();
  turn(1).forEach((frame, index) => state.receive({ chat: CHAT, ...frame, seq: index + 1 }));
  state.receive({ type: 'gap', chat: CHAT, from: 14, to: 20 });
  state.receive({ type: 'message', chat: CHAT, seq: 21, text: 'later' });
  assert.deepEqual(summary(state), ['message later']);
  assert.equal(state.historyRequest().before, 21);
});

test('a question is shown once, and goes when it is resolved', () => {
  const state = newState();
  const choices = ['allow', 'deny'];
  const question = { type: 'approve', chat: CHAT, nonce: 'n', tool: 'shell', args: {}, choices, expires: 0 };
  state.receive(question);
  state.receive(question);
  assert.equal(state.active.questions.length, 1);
  state.receive({ type: 'resolved', chat: CHAT, nonce: 'n', outcome: 'denied', by: 'ada' });
  assert.equal(state.active.questions.length, 0);
  assert.equal(state.active.items[0].outcome, 'denied');
});

test('another user of the same browser sees nothing of the first one', () => {
  const state = newState();
  state.receive({ type: 'message', chat: CHAT, seq: 1, text: 'secret' });
  state.write('mine', []);
  state.ready({ ...ready(0), user: 'eve' });
  assert.deepEqual(summary(state), []);
  assert.deepEqual(state.unaccepted(), []);
});

test('frames and chunks of unknown types are ignored', () => {
  const state = newState();
  state.receive({ type: 'react', chat: CHAT, emoji: 'x' });
  state.receive({ type: 'chunk', chat: CHAT, turn: 't', kind: 'new_kind' });
  assert.deepEqual(summary(state), []);
});

test('a recording is shown with its transcript, which is the title of the chat', () => {
  const state = newState();
  const media = [{ kind: 'audio', id: 'a', media_type: 'audio/x-wav', name: 'voice.wav', size: 9 }];
  const { message_id } = state.write('', media);
  assert.equal(state.active.title, '');
  const said = { type: 'said', chat: CHAT, seq: 1, message_id, sender: 'ada', text: 'turn on the lights', media };
  state.receive({ ...said, is_transcript: true });
  const [item] = state.active.items;
  assert.deepEqual([item.media, item.text, item.isTranscript], [media, 'turn on the lights', true]);
  assert.equal(state.active.title, 'turn on the lights');
  state.receive({ type: 'message', chat: CHAT, seq: 2, media: media[0] });
  assert.equal(state.announced.at(-1), 'The agent sent a voice message.');
});

test('a recording without a transcript has a title too', () => {
  const state = newState();
  const media = [{ kind: 'audio', id: 'a', media_type: 'audio/x-wav', name: 'voice.wav', size: 9 }];
  state.receive({ type: 'said', chat: CHAT, seq: 1, message_id: 'm', sender: 'ada', text: '', media });
  assert.equal(state.active.title, 'Voice message');
  assert.equal(state.active.items[0].isTranscript, false);
});
