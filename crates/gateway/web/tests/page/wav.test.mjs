// What recordings look like as files: `node --test crates/gateway/web/tests/page/wav.test.mjs`. It needs no browser.

import assert from 'node:assert/strict';
import test from 'node:test';

import { clock, encodeWav, joinBlocks, RATE } from '../../src/page/wav.js';

test('a recording has a header that fits its samples', () => {
  const view = new DataView(encodeWav(new Float32Array([0, 1, -1, 2, -2, 0.5])));
  const text = (at, length) => String.fromCharCode(...new Uint8Array(view.buffer, at, length));
  assert.equal(view.byteLength, 44 + 12);
  assert.deepEqual([text(0, 4), text(8, 8), text(36, 4)], ['RIFF', 'WAVEfmt ', 'data']);
  assert.equal(view.getUint32(4, true), view.byteLength - 8);
  assert.equal(view.getUint32(40, true), 12);
  const format = [20, 22, 32, 34].map((at) => view.getUint16(at, true));
  assert.deepEqual(format, [1, 1, 2, 16]);
  assert.deepEqual([view.getUint32(24, true), view.getUint32(28, true)], [RATE, 2 * RATE]);
  const samples = [0, 1, 2, 3, 4, 5].map((index) => view.getInt16(44 + 2 * index, true));
  assert.deepEqual(samples, [0, 32767, -32767, 32767, -32767, 16384]);
});

test('blocks are joined up to the limit', () => {
  const blocks = [new Float32Array([1, 2]), new Float32Array([3, 4])];
  assert.deepEqual([...joinBlocks(blocks, 9)], [1, 2, 3, 4]);
  assert.deepEqual([...joinBlocks(blocks, 3)], [1, 2, 3]);
  assert.deepEqual([...joinBlocks([], 3)], []);
});

test('lengths are shown as minutes and seconds', () => {
  assert.deepEqual([0, 4.9, 60, 119.9].map(clock), ['0:00', '0:04', '1:00', '1:59']);
});
