// Splits a stream of text into lines, and lines of server-sent events into messages. It knows nothing about the DOM.

/** Collects chunks of text and returns the complete lines of each. */
export class LineSplitter {
  #rest = '';

  /** Returns the lines that a chunk completes. */
  push(chunk) {
    const lines = (this.#rest + chunk).split('\n');
    this.#rest = lines.pop();
    return lines;
  }

  /** Returns what follows the last line end, which is a line if the writer ended it without one. */
  end() {
    const rest = this.#rest;
    this.#rest = '';
    return rest === '' ? [] : [rest];
  }
}

/** Parses a line of a journal. Returns `null` if it is not a record. */
export function parseRecord(line) {
  try {
    const record = JSON.parse(line);
    return typeof record?.record === 'string' ? record : null;
  } catch {
    return null;
  }
}

/** Builds messages from the lines of a stream of server-sent events. */
export class MessageBuilder {
  #id = '';
  #event = '';
  #data = [];

  /** Returns the message that a line completes, or `null`. Comments and unknown fields are ignored. */
  push(text) {
    const line = text.endsWith('\r') ? text.slice(0, -1) : text;
    if (line === '') return this.#finish();
    const colon = line.indexOf(':');
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '');
    if (field === 'data') this.#data.push(value);
    else if (field === 'event') this.#event = value;
    else if (field === 'id') this.#id = value;
    return null;
  }

  #finish() {
    const message = { id: this.#id, event: this.#event || 'message', data: this.#data.join('\n') };
    const isEmpty = this.#data.length === 0;
    this.#event = '';
    this.#data = [];
    return isEmpty ? null : message;
  }
}
