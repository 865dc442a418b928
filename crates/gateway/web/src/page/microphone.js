// Records from the microphone. The page writes WAV itself, so the server needs no program that converts recordings.

import { encodeWav, joinBlocks, RATE } from './wav.js';

/** The longest recording, in seconds. */
export const MAX_SECONDS = 120;
/** Shorter recordings are accidents. */
export const MIN_SECONDS = 0.3;

const PROBLEMS = {
  NotAllowedError: 'This page may not use the microphone. Allow it in the browser’s settings for this page, then try again.',
  NotFoundError: 'No microphone was found. Connect one, then try again.',
  NotReadableError: 'The microphone cannot be used. Another program may be using it.',
};

/** An error with a message for the user. */
class MicrophoneError extends Error {}

export class Microphone {
  #blocks = [];
  #count = 0;
  #parts = null;

  /** `onblock` is called with the level of each block, from 0 to 1, and `onlost` if the microphone disappears. */
  constructor({ onblock, onlost }) {
    Object.assign(this, { onblock, onlost });
  }

  /** How long the recording is, in seconds. */
  get seconds() {
    return this.#parts ? this.#count / this.#parts.context.sampleRate : 0;
  }

  /** Begins to record. Throws an error with a message for the user. */
  async start() {
    if (!navigator.mediaDevices || !window.AudioWorkletNode) {
      throw new MicrophoneError('Recording needs a secure address: https, or an address of this computer.');
    }
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    } catch (error) {
      throw new MicrophoneError(PROBLEMS[error.name] ?? `The microphone cannot be used: ${error.message}`);
    }
    const context = new AudioContext();
    this.#parts = { stream, context };
    stream.getAudioTracks()[0].addEventListener('ended', () => this.onlost());
    try {
      await context.audioWorklet.addModule('/recorder-worklet.js');
      const recorder = new AudioWorkletNode(context, 'recorder', { numberOfOutputs: 0 });
      recorder.port.onmessage = ({ data }) => this.#keep(data);
      context.createMediaStreamSource(stream).connect(recorder);
      // Browsers begin without sound until the user has done something.
      await context.resume();
    } catch (error) {
      this.close();
      throw new MicrophoneError(`The recording could not begin: ${error.message}`);
    }
  }

  #keep(block) {
    if (!this.#parts || this.seconds >= MAX_SECONDS) return;
    this.#blocks.push(block);
    this.#count += block.length;
    const power = block.reduce((sum, sample) => sum + sample * sample, 0) / block.length;
    // Speech is quiet compared with the loudest possible sound. The root of the amplitude makes it visible.
    this.onblock(Math.min(1, Math.sqrt(Math.sqrt(power) * 2)));
  }

  /** Releases the microphone. What was recorded stays. */
  stop() {
    for (const track of this.#parts?.stream.getTracks() ?? []) track.stop();
  }

  /** Releases the microphone, and returns the recording as a WAV file. */
  async finish() {
    this.stop();
    const { context } = this.#parts;
    const rate = context.sampleRate;
    const samples = joinBlocks(this.#blocks, MAX_SECONDS * rate);
    await this.close();
    const name = `voice-message-${new Date().toISOString().slice(0, 19).replaceAll(/[T:]/g, '-')}.wav`;
    return new File([encodeWav(await resample(samples, rate))], name, { type: 'audio/wav' });
  }

  /** Releases everything. */
  async close() {
    this.stop();
    const context = this.#parts?.context;
    this.#parts = null;
    this.#blocks = [];
    this.#count = 0;
    if (context && context.state !== 'closed') await context.close();
  }
}

/** Converts samples of one channel to the rate of recordings. */
async function resample(samples, rate) {
  if (rate === RATE || samples.length === 0) return samples;
  const offline = new OfflineAudioContext(1, Math.ceil(samples.length * RATE / rate), RATE);
  const buffer = offline.createBuffer(1, samples.length, rate);
  buffer.copyToChannel(samples, 0);
  const source = new AudioBufferSourceNode(offline, { buffer });
  source.connect(offline.destination);
  source.start();
  return (await offline.startRendering()).getChannelData(0);
}
