// The controls that replace the message field while the user records.

import { MAX_SECONDS, Microphone, MIN_SECONDS } from './microphone.js';
import { clock } from './wav.js';

/** The distance between two lines of the level, in pixels. */
const STEP = 4;

export class Recorder {
  #microphone = null;
  #levels = [];
  #isFull = false;

  /**
   * `onrecorded` gets the recording as a file, `onproblem` a message for the user, and `onchange` is called when the
   * controls appear or disappear.
   */
  constructor({ form, onrecorded, onproblem, onchange }) {
    const part = (id) => form.querySelector(`#${id}`);
    Object.assign(this, { onrecorded, onproblem, onchange, button: part('record'), bar: part('recording') });
    Object.assign(this, { meter: part('level'), time: part('record-time'), status: part('record-status') });
    this.done = part('record-send');
    this.button.addEventListener('click', () => this.start());
    part('record-cancel').addEventListener('click', () => this.cancel());
    this.done.addEventListener('click', () => this.#finish());
    new ResizeObserver(() => this.#draw()).observe(this.meter);
  }

  get isOpen() {
    return this.#microphone !== null;
  }

  async start() {
    if (this.isOpen) return;
    this.onproblem('');
    const microphone = new Microphone({
      onblock: (level) => this.#heard(level),
      onlost: () => this.#fail('The microphone was disconnected, so the recording was discarded.'),
    });
    this.#microphone = microphone;
    this.#levels = [];
    this.#isFull = false;
    this.#show('Waiting for the microphone…', false);
    try {
      await microphone.start();
    } catch (error) {
      if (this.#microphone === microphone) this.#fail(error.message);
      return;
    }
    // The user can cancel while the browser asks whether this page may record.
    if (this.#microphone !== microphone) {
      await microphone.close();
      return;
    }
    this.#show('Recording');
    this.done.focus();
  }

  cancel() {
    if (this.isOpen) this.#close();
  }

  async #finish() {
    const microphone = this.#microphone;
    if (!microphone || this.done.disabled) return;
    if (microphone.seconds < MIN_SECONDS) {
      this.#fail('The recording was too short, so it was discarded.');
      return;
    }
    this.done.disabled = true;
    try {
      const file = await microphone.finish();
      this.#close();
      this.onrecorded(file);
    } catch (error) {
      this.#fail(`The recording could not be saved: ${error.message}`);
    }
  }

  #fail(text) {
    this.#close();
    this.onproblem(text);
  }

  #close() {
    this.#microphone?.close();
    this.#microphone = null;
    this.bar.hidden = true;
    this.status.textContent = '';
    this.onchange();
  }

  #heard(level) {
    this.#levels.push(level);
    if (this.#microphone.seconds >= MAX_SECONDS && !this.#isFull) {
      this.#isFull = true;
      this.#microphone.stop();
      this.#show('The recording is complete: it has the maximum length');
    }
    this.#draw();
  }

  #show(status, canSend = true) {
    this.bar.hidden = false;
    this.done.disabled = !canSend;
    this.status.textContent = status;
    this.onchange();
    this.#draw();
  }

  #draw() {
    this.time.textContent = `${clock(this.#microphone?.seconds ?? 0)} / ${clock(MAX_SECONDS)}`;
    const { meter } = this;
    const scale = devicePixelRatio;
    const [width, height] = [meter.clientWidth, meter.clientHeight];
    Object.assign(meter, { width: width * scale, height: height * scale });
    const pen = meter.getContext('2d');
    pen.scale(scale, scale);
    pen.fillStyle = getComputedStyle(meter).color;
    const shown = this.#levels.slice(-Math.floor(width / STEP));
    shown.forEach((level, index) => {
      const length = Math.max(2, level * height);
      pen.fillRect(index * STEP, (height - length) / 2, STEP - 2, length);
    });
  }
}
