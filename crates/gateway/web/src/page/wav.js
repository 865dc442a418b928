// Writes recordings as WAV files: one channel, 16 bits for each sample. It knows nothing about microphones.

/** The rate of recordings, in samples per second: what programs for speech recognition expect. */
export const RATE = 16_000;

const HEADER_BYTES = 44;

/** Returns the bytes of a WAV file with samples from -1 to 1. */
export function encodeWav(samples, rate = RATE) {
  const size = samples.length * 2;
  const view = new DataView(new ArrayBuffer(HEADER_BYTES + size));
  const text = (at, letters) => [...letters].forEach((letter, index) => view.setUint8(at + index, letter.charCodeAt(0)));
  text(0, 'RIFF');
  view.setUint32(4, HEADER_BYTES - 8 + size, true);
  text(8, 'WAVEfmt ');
  view.setUint32(16, 16, true); // the size of the format
  view.setUint16(20, 1, true); // whole numbers
  view.setUint16(22, 1, true); // channels
  view.setUint32(24, rate, true);
  view.setUint32(28, rate * 2, true); // bytes per second
  view.setUint16(32, 2, true); // bytes per sample
  view.setUint16(34, 16, true); // bits per sample
  text(36, 'data');
  view.setUint32(40, size, true);
  samples.forEach((sample, index) => {
    const limited = Math.max(-1, Math.min(1, sample));
    view.setInt16(HEADER_BYTES + index * 2, Math.round(limited * 0x7fff), true);
  });
  return view.buffer;
}

/** Joins blocks of samples to one, with at most `max` samples. */
export function joinBlocks(blocks, max) {
  const length = Math.min(max, blocks.reduce((sum, block) => sum + block.length, 0));
  const joined = new Float32Array(length);
  let at = 0;
  for (const block of blocks) {
    const part = block.subarray(0, length - at);
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Formats seconds as minutes and seconds. */
export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
