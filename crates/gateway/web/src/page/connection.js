// The WebSocket: connects, notices when the server is gone, and connects again. It knows nothing about chats.

import { isSignedIn, pageKey } from './server.js';

const PING_EVERY = 20_000;
const PONG_WITHIN = 10_000;
const FIRST_DELAY = 500;
const LONGEST_DELAY = 30_000;

export class Connection {
  #socket = null;
  #retry = null;
  #watch = null;
  #attempts = 0;

  /** `hello` returns the first frame; `onframe` gets each frame; `onstatus` gets a status and the time of a retry. */
  constructor({ hello, onframe, onstatus }) {
    Object.assign(this, { hello, onframe, onstatus, status: 'connecting' });
    addEventListener('online', () => this.connectNow());
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.connectNow();
    });
  }

  /** Connects at once, unless a connection is open or being opened. */
  connectNow() {
    if (this.#socket || this.status === 'signed-out') return;
    this.#open();
  }

  /** Closes the connection and opens a new one, with a new `hello`. */
  restart() {
    this.#drop();
    this.#open();
  }

  /** Sends a frame. Returns `false` if there is no connection. */
  send(frame) {
    if (this.status !== 'online') return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  #open() {
    clearTimeout(this.#retry);
    this.#report(this.status === 'offline' ? 'offline' : 'connecting');
    const scheme = location.protocol === 'https:' ? 'wss:' : 'ws:';
    const socket = new WebSocket(`${scheme}//${location.host}/v1/ws`, 'tenterhook.v1');
    this.#socket = socket;
    this.#expectAnswer();
    socket.onopen = () => socket.send(JSON.stringify({ type: 'hello', protocol: 1, token: pageKey(), ...this.hello() }));
    socket.onmessage = (event) => this.#receive(event.data);
    socket.onclose = (event) => this.#closed(event.code);
  }

  #receive(data) {
    this.#watchServer();
    let frame;
    try {
      frame = JSON.parse(data);
    } catch {
      return;
    }
    if (frame.type === 'bye' && frame.reason === 'unauthorized') return this.signOut();
    if (frame.type === 'ready') {
      this.#attempts = 0;
      this.#report('online');
    }
    if (frame.type !== 'pong') this.onframe(frame);
  }

  // Browsers do not show the server's pings to scripts, and a dead network closes nothing. So the page asks.
  #watchServer() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.send({ type: 'ping' });
      this.#expectAnswer();
    }, PING_EVERY);
  }

  #expectAnswer() {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => {
      this.#drop();
      this.#closed();
    }, PONG_WITHIN);
  }

  async #closed(code) {
    this.#drop();
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 2 ** this.#attempts) * (0.8 + 0.4 * Math.random());
    this.#attempts += 1;
    this.#report('offline', Date.now() + delay);
    this.#retry = setTimeout(() => this.connectNow(), delay);
    // A refused upgrade looks like a lost network to scripts, so ask over HTTP.
    if (code === 1006 && (await isSignedIn()) === 'no') this.signOut();
  }

  signOut() {
    this.#drop();
    this.#report('signed-out');
  }

  #drop() {
    clearTimeout(this.#watch);
    clearTimeout(this.#retry);
    const socket = this.#socket;
    this.#socket = null;
    if (!socket) return;
    socket.onopen = socket.onmessage = socket.onclose = null;
    socket.close();
  }

  #report(status, retryAt = null) {
    this.status = status;
    this.onstatus(status, retryAt);
  }
}
