// Where the records come from: a server, or the document itself if it was exported.

import { LineSplitter, MessageBuilder, parseRecord } from './lines.js';

const API = '/v1/inspect';
const PAGE_SIZE = 25_000;
/** The server sends a sign of life every 15 seconds. */
const MAX_SILENCE = 40_000;
const FIRST_DELAY = 500;
const MAX_DELAY = 15_000;
/** How many lines are parsed before the browser may draw. */
const SLICE = 4000;
const KEY = 'tenterhook.key';

/** A request that was refused. `status` is 0 if there was no answer. */
export class RequestError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

// Browsers send the cookie to every port of this host, but only pages of this port can read what the page keeps. So the
// server wants both. The variable is for browsers that keep nothing.
let pageKey = null;

function loadKey() {
  try {
    return JSON.parse(localStorage.getItem(KEY)) ?? pageKey;
  } catch {
    return pageKey;
  }
}

function saveKey(key) {
  pageKey = key;
  try {
    localStorage.setItem(KEY, JSON.stringify(key));
  } catch {
    // Storage can be switched off. Then the variable is enough until the page is closed.
  }
}

/**
 * Signs in with the one-time code of a link. Returns an error message, or `null`. A browser that is signed in as someone
 * else asks first: the link may come from someone who wants to read what is written next.
 */
export async function signIn(code, replace = false) {
  try {
    const headers = { 'x-tenterhook': '1', 'content-type': 'application/json' };
    const response = await fetch('/v1/login', { method: 'POST', headers, body: JSON.stringify({ code, replace }) });
    if (response.ok) {
      saveKey((await response.json()).key ?? null);
      return null;
    }
    if (response.status === 409) {
      const { error } = await response.json();
      return confirm(`Sign in as someone else? ${error.message}.`) ? signIn(code, true) : null;
    }
    if (response.status === 429) return 'There were too many attempts. Wait a few minutes, then open a new link.';
    return 'This link was used already, or it has expired. For a gateway, it works for 60 seconds.';
  } catch {
    return 'The server could not be reached. Check that it runs, then open a new link.';
  }
}

async function request(path, { headers = {}, ...options } = {}) {
  let response;
  try {
    response = await fetch(API + path, { ...options, headers: { 'x-tenterhook': loadKey() ?? '1', ...headers } });
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new RequestError(0, 'the server could not be reached');
  }
  if (response.ok) return response;
  const { error } = await response.json().catch(() => ({}));
  const message = typeof error === 'string' ? error : (error?.message ?? `the server answered ${response.status}`);
  throw new RequestError(response.status, message);
}

/** Fetches a JSON object. Returns `null` if the server has no such object. */
export async function fetchJson(path) {
  try {
    return await (await request(path)).json();
  } catch (error) {
    if (error.status === 404) return null;
    throw error;
  }
}

/** Sends a decision about an approval or a pairing. */
export async function sendDecision(path, decision) {
  const headers = { 'content-type': 'application/json' };
  await request(path, { method: 'POST', headers, body: JSON.stringify({ decision }) });
}

/** Fetches a file, and offers it as a download. A plain link could not send the page's key. */
export async function download(path, name) {
  const blob = await (await request(path)).blob();
  const address = URL.createObjectURL(blob);
  const link = document.createElement('a');
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Lets the browser draw. A timer also works in the background, where no frames are drawn. */
const pause = () =>
  new Promise((resolve) => {
    setTimeout(resolve);
  });

/** The records of a page that was exported: they are in the document. */
export class EmbeddedSource {
  static find() {
    const node = document.getElementById('records');
    return node && new EmbeddedSource(node);
  }

  constructor(node) {
    this.node = node;
  }

  async describe() {
    return { live: false, kind: 'export', files: [], payloads: false };
  }

  async load(onrecords) {
    const lines = this.node.textContent.split('\n').filter((line) => line.trim() !== '');
    for (let start = 0; start < lines.length; start += SLICE) {
      onrecords(lines.slice(start, start + SLICE).map(parseRecord));
      await pause();
    }
  }
}

/** The records of a server. It knows the position of the last record, so that none is missed and none comes twice. */
export class ServerSource {
  #position = null;
  #attempts = 0;
  #retry = null;
  #connection = null;
  #isLeft = false;

  describe() {
    return fetchJson('/source');
  }

  /** Loads what the server keeps. `onrecords` gets parts of it, oldest first, and `onskipped` the unreadable lines. */
  async load(onrecords, onskipped) {
    for (;;) {
      const start = this.#position;
      const query = start === null ? '' : `&after=${start}`;
      const response = await request(`/records?limit=${PAGE_SIZE}${query}`);
      const skipped = Number(response.headers.get('tenterhook-skipped') ?? 0);
      if (start === null && skipped > 0) onskipped(skipped);
      const first = Number(response.headers.get('tenterhook-first') ?? 1);
      const count = await readRecords(response.body, (records) => {
        // If the connection is lost later, the next request begins here.
        this.#position = Math.max(this.#position ?? 0, first - 1) + records.length;
        onrecords(records);
      });
      const last = response.headers.get('tenterhook-position');
      this.#position = last === null ? (this.#position ?? 0) : Number(last);
      if (count === 0 || this.#position === start) return;
    }
  }

  /** Follows new records until the page is closed. `onstatus` gets `live`, `offline`, or the refusal of the server. */
  follow({ onrecords, ongap, onrestart, onstatus }) {
    Object.assign(this, { onrecords, ongap, onrestart, onstatus });
    addEventListener('online', () => this.connectNow());
    // Browsers keep pages that the user left, and allow few connections to a server.
    addEventListener('pagehide', () => {
      this.#isLeft = true;
      this.#connection?.abort();
    });
    addEventListener('pageshow', () => {
      this.#isLeft = false;
      this.connectNow();
    });
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden) this.connectNow();
    });
    this.#connect();
  }

  /** Connects at once, unless there is a connection. */
  connectNow() {
    if (this.#connection === null && !this.#isLeft) this.#connect();
  }

  async #connect() {
    clearTimeout(this.#retry);
    const connection = new AbortController();
    this.#connection = connection;
    try {
      const headers = { accept: 'text/event-stream' };
      const position = this.#position ?? 0;
      const response = await request(`/events?after=${position}`, { headers, signal: connection.signal });
      this.#attempts = 0;
      this.onstatus('live');
      await this.#read(response.body, connection);
      this.#reconnect('offline');
    } catch (error) {
      this.#reconnect(error.status === 401 || error.status === 403 ? error : 'offline');
    }
  }

  #reconnect(status) {
    this.#connection = null;
    this.onstatus(status);
    if (status !== 'offline') return;
    const delay = Math.min(MAX_DELAY, FIRST_DELAY * 2 ** this.#attempts) * (0.8 + 0.4 * Math.random());
    this.#attempts = Math.min(this.#attempts + 1, 10);
    this.#retry = setTimeout(() => this.connectNow(), delay);
  }

  async #read(body, connection) {
    const splitter = new LineSplitter();
    const builder = new MessageBuilder();
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let silence = null;
    try {
      for (;;) {
        silence = setTimeout(() => connection.abort(), MAX_SILENCE);
        const { done, value } = await reader.read();
        clearTimeout(silence);
        if (done) return;
        const messages = splitter
          .push(value)
          .map((line) => builder.push(line))
          .filter(Boolean);
        this.#receive(messages);
      }
    } finally {
      clearTimeout(silence);
    }
  }

  #receive(messages) {
    const records = [];
    for (const { id, event, data } of messages) {
      if (event === 'gap') this.#skip(data);
      if (event !== 'record') continue;
      const position = Number(id);
      if (position <= (this.#position ?? 0)) continue;
      this.#position = position;
      records.push(parseRecord(data));
    }
    if (records.length > 0) this.onrecords(records);
  }

  /** The server no longer keeps what follows our position. */
  #skip(data) {
    let first = NaN;
    let missed;
    try {
      ({ first, missed } = JSON.parse(data));
    } catch {
      // Below.
    }
    if (!(first > 0)) return;
    const isRestarted = missed === null || first - 1 < (this.#position ?? 0);
    const distance = Math.max(0, first - 1 - (this.#position ?? 0));
    this.#position = first - 1;
    if (isRestarted) this.onrestart();
    else this.ongap(missed ?? distance);
  }
}

/** Reads records from a stream of lines. Returns their number. */
async function readRecords(body, onrecords) {
  const splitter = new LineSplitter();
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let count = 0;
  let waiting = [];
  const flush = async () => {
    if (waiting.length === 0) return;
    count += waiting.length;
    onrecords(waiting);
    waiting = [];
    await pause();
  };
  const add = (lines) => {
    for (const line of lines) if (line !== '') waiting.push(parseRecord(line));
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    add(splitter.push(value));
    if (waiting.length >= SLICE) await flush();
  }
  add(splitter.end());
  await flush();
  return count;
}
