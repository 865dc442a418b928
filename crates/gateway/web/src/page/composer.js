// The field for a new message, with its files. A draft is kept for each chat.

import { element, fileSize, icon } from './element.js';
import { Recorder } from './recorder.js';
import { MAX_FILE, upload } from './server.js';
import { load, save } from './storage.js';

/** The longest text that the server takes, in bytes. */
const MAX_TEXT = 256 * 1024;
const MAX_ROWS = 10;

export class Composer {
  #files = new Map();
  #chat = null;
  #isRunning = false;

  constructor({ form, onsend, onstop }) {
    const part = (id) => form.querySelector(`#${id}`);
    Object.assign(this, { form, onsend, input: part('input'), send: part('send'), stop: part('stop') });
    Object.assign(this, { list: part('attachments'), error: part('composer-error'), picker: part('files') });
    this.input.addEventListener('input', () => this.#edited());
    this.input.addEventListener('keydown', (event) => this.#key(event));
    this.input.addEventListener('paste', (event) => {
      if (event.clipboardData.files.length > 0 && this.attach(event.clipboardData.files)) event.preventDefault();
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.stop.addEventListener('click', onstop);
    part('attach').addEventListener('click', () => this.picker.click());
    this.picker.addEventListener('change', () => {
      this.attach(this.picker.files);
      this.picker.value = '';
    });
    this.recorder = new Recorder({
      form,
      onrecorded: (file) => this.#sendRecording(file),
      onproblem: (text) => this.#fail(text),
      onchange: () => this.#recordingChanged(),
    });
    // Telephones have no Shift+Enter.
    this.isTouch = matchMedia('(pointer: coarse)').matches;
    if (this.isTouch) this.input.enterKeyHint = 'enter';
  }

  show(chat, isRunning) {
    this.#isRunning = isRunning;
    if (chat.id !== this.#chat) {
      this.#chat = chat.id;
      this.input.value = load(`draft.${chat.id}`, '');
      this.#fail('');
      this.recorder.cancel();
      for (const id of this.#files.keys()) this.#remove(id);
    }
    this.#refresh();
  }

  focus() {
    if (!this.isTouch && !this.recorder.isOpen) this.input.focus();
  }

  /** Begins a voice message. */
  record() {
    this.recorder.start();
  }

  /** Adds a text to the message. */
  insert(text) {
    this.input.value = [this.input.value, text].filter(Boolean).join('\n');
    this.#edited();
    this.input.focus();
  }

  /** Uploads files. They are sent with the next message. */
  attach(files) {
    this.#fail('');
    for (const file of files) {
      if (file.size <= MAX_FILE) this.#add(file);
      else this.#fail(`${file.name} has ${fileSize(file.size)}; a file can have at most ${fileSize(MAX_FILE)}.`);
    }
    this.focus();
    return files.length > 0;
  }

  /** Sends a recording as a message of its own as soon as it is uploaded. A draft stays. */
  #sendRecording(file) {
    this.#add(file, (entry) => {
      this.onsend('', [entry.media]);
      this.focus();
    });
  }

  #recordingChanged() {
    this.form.querySelector('#writing').hidden = this.recorder.isOpen;
    this.#refresh();
    if (!this.recorder.isOpen) this.focus();
  }

  /** Uploads a file. After that, `onuploaded` sends it; without `onuploaded`, the next message contains it. */
  #add(file, onuploaded = null) {
    const id = Symbol(file.name);
    const picture = file.type.startsWith('image/') && URL.createObjectURL(file);
    const label = `Remove ${file.name}`;
    const remove = element('button', { type: 'button', class: 'icon', 'aria-label': label }, icon('close'));
    const state = element('span', { class: 'size' });
    const symbol = picture ? element('img', { src: picture, alt: '' }) : icon(onuploaded ? 'mic' : 'file');
    const node = element('li', {}, symbol, element('span', { class: 'name' }, file.name), state, remove);
    const sent = onuploaded && ((done) => {
      this.#remove(id);
      onuploaded(done);
    });
    const entry = { file, node, state, picture, onuploaded: sent, media: null, cancel: new AbortController() };
    remove.addEventListener('click', () => {
      this.#remove(id);
      this.focus();
    });
    this.#files.set(id, entry);
    this.list.append(node);
    this.#upload(entry);
  }

  async #upload(entry) {
    const { file, node, state, cancel } = entry;
    node.className = 'uploading';
    state.replaceChildren('uploading…');
    this.#refresh();
    try {
      entry.media = await upload(file, cancel.signal);
      node.className = '';
      state.replaceChildren(fileSize(file.size));
      entry.onuploaded?.(entry);
    } catch (error) {
      if (cancel.signal.aborted) return;
      node.className = 'failed';
      const again = element('button', { type: 'button', onclick: () => this.#upload(entry) }, 'Try again');
      state.replaceChildren('failed ', again);
      this.#fail(`${file.name} was not uploaded: ${error.message}`);
    }
    this.#refresh();
  }

  #remove(id) {
    const entry = this.#files.get(id);
    entry.cancel.abort();
    entry.node.remove();
    if (entry.picture) URL.revokeObjectURL(entry.picture);
    this.#files.delete(id);
    this.#refresh();
  }

  #key(event) {
    if (event.key !== 'Enter' || event.shiftKey || event.isComposing || this.isTouch) return;
    event.preventDefault();
    this.#submit();
  }

  #edited() {
    save(`draft.${this.#chat}`, this.input.value || null);
    this.#refresh();
  }

  #submit() {
    const text = this.input.value.trim();
    const files = this.#attached();
    if (!this.#canSend(text, files)) return;
    if (new TextEncoder().encode(text).length > MAX_TEXT) {
      this.#fail('The message is too long: a message can have at most 256 KiB. Attach the text as a file.');
      return;
    }
    this.#fail('');
    this.onsend(text, files.map((entry) => entry.media));
    for (const [id, entry] of this.#files) if (files.includes(entry)) this.#remove(id);
    this.input.value = '';
    this.input.focus();
    this.#edited();
  }

  /** Returns the files of the next message. Recordings that are being uploaded are messages of their own. */
  #attached() {
    return [...this.#files.values()].filter((entry) => !entry.onuploaded);
  }

  #canSend(text, files) {
    return (text !== '' || files.length > 0) && files.every((entry) => entry.media);
  }

  #refresh() {
    const { input } = this;
    this.send.disabled = !this.#canSend(input.value.trim(), this.#attached());
    this.stop.hidden = !this.#isRunning;
    this.list.hidden = this.#files.size === 0;
    if (CSS.supports('field-sizing', 'content')) return;
    input.rows = 1;
    while (input.rows < MAX_ROWS && input.scrollHeight > input.clientHeight) input.rows += 1;
  }

  #fail(text) {
    this.error.textContent = text;
    this.error.hidden = text === '';
  }
}
