// Runs on the audio thread: mixes the channels of the microphone to one, and posts blocks of samples.

const BLOCK = 2048;

class Recorder extends AudioWorkletProcessor {
  #block = new Float32Array(BLOCK);
  #used = 0;

  process([channels]) {
    const length = channels[0]?.length ?? 0;
    for (let at = 0; at < length; at += 1) {
      let sum = 0;
      for (const channel of channels) sum += channel[at];
      this.#block[this.#used] = sum / channels.length;
      this.#used += 1;
      if (this.#used === BLOCK) this.#post();
    }
    return true;
  }

  #post() {
    this.port.postMessage(this.#block, [this.#block.buffer]);
    this.#block = new Float32Array(BLOCK);
    this.#used = 0;
  }
}

registerProcessor('recorder', Recorder);
