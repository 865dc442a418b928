// Speaks to the page in Chromium: records, reads the transcript, plays the answer, discards a recording, and is refused
// the microphone. The browser plays a file instead of listening.
//
//   node voice.mjs LINK                  against a gateway that runs; LINK is what `tenterhook gateway open` prints
//   node voice.mjs -- COMMAND ARGUMENT…  starts the gateway and takes the link from its output
//
// SPEECH names a WAV file with the words "turn on the lights in the kitchen". The gateway must turn voice messages into
// text and speak its answers, and its model must follow voice.yaml. CHROMIUM names the browser; SCREENSHOTS names a
// folder for pictures of the page.

import assert from 'node:assert/strict';
import { join } from 'node:path';

import { KEYS } from '../../../../../tests/browser/chromium.mjs';
import { count, isIdle, runSteps, say, shown, texts } from './steps.mjs';

const SPOKEN = 'turn on the lights in the kitchen';
const PHONE = { width: 390, height: 780, deviceScaleFactor: 2, mobile: true };
const DESKTOP = { width: 1200, height: 800, deviceScaleFactor: 1, mobile: false };

/** Waits until the recording has this length. */
const recorded = (page, length) => page.until(`${length} seconds of sound`, (wanted) => {
  const [minutes, rest] = document.querySelector('#record-time').innerText.split(' ')[0].split(':');
  return Number(minutes) * 60 + Number(rest) >= wanted;
}, length);

/** Saves pictures of the page: wide and narrow, light and dark. */
async function pictures(page, name) {
  const folder = process.env.SCREENSHOTS;
  if (!folder) return;
  for (const [size, metrics] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    await page.call('Emulation.setDeviceMetricsOverride', metrics);
    for (const theme of ['light', 'dark']) {
      const features = [{ name: 'prefers-color-scheme', value: theme }];
      await page.call('Emulation.setEmulatedMedia', { features });
      const isStill = () => !document.getAnimations().some((animation) => animation instanceof CSSTransition);
      await page.until('the end of transitions', isStill);
      await page.saveScreenshot(join(folder, `${name}-${size}-${theme}.png`));
    }
  }
  await page.call('Emulation.setDeviceMetricsOverride', DESKTOP);
  await page.call('Emulation.setEmulatedMedia', { features: [] });
}

const STEPS = {
  async 'a link signs in'(page, link) {
    await page.open(link);
    await page.until('the page', () => document.querySelector('#user')?.innerText);
    await pictures(page, 'empty');
  },

  async 'what is spoken becomes text, and the recording stays'(page) {
    await page.click('#record');
    await recorded(page, 2);
    await pictures(page, 'recording');
    await recorded(page, 4);
    assert.equal(await page.run(() => document.activeElement.id), 'record-send');
    await page.press(KEYS.enter);
    await shown(page, '.said .bubble', SPOKEN);
    assert.equal(await count(page, '.said audio'), 1);
    await shown(page, '.said .status', 'Transcribed');
    await shown(page, '#title', SPOKEN);
  },

  async 'the answer is text and audio that plays'(page) {
    await shown(page, '.answer.final', 'The lights in the kitchen are on.');
    await page.until('the spoken answer', () => document.querySelector('.item.message audio'));
    await isIdle(page);
    for (const wanted of ['.item.message audio', '.said audio']) {
      const played = await page.until(`${wanted} to end`, (selector) => {
        const audio = document.querySelector(selector);
        if (audio.paused && !audio.ended) audio.play();
        return audio.ended && { duration: audio.duration, end: audio.played.end(0), error: audio.error?.message };
      }, wanted);
      assert.ok(played.duration > 0.5 && played.duration < 20, `${wanted}: ${played.duration} s`);
      assert.ok(played.end > played.duration - 0.3, `${wanted}: ${played.end} of ${played.duration} s were played`);
    }
    await pictures(page, 'answer');
  },

  async 'a typed question is not answered with audio'(page) {
    await say(page, 'And now in writing.');
    await shown(page, '.answer.final', 'In writing.');
    await isIdle(page);
    assert.equal(await count(page, '.item.message audio'), 1);
  },

  async 'Escape discards a recording, and a draft stays'(page) {
    await page.click('#input');
    await page.type('a draft');
    await page.press({ key: 'r', code: 'KeyR', windowsVirtualKeyCode: 82, modifiers: 1 });
    await recorded(page, 1);
    await page.press(KEYS.escape);
    await page.until('the field', () => document.querySelector('#recording').hidden);
    assert.equal(await page.run(() => document.querySelector('#input').value), 'a draft');
    assert.equal(await page.run(() => document.activeElement.id), 'input');
    assert.equal(await count(page, '.said, .pending'), 2);
    await page.run(() => {
      document.querySelector('#input').value = '';
    });
  },

  async 'a recording that is too short is not sent'(page) {
    await page.click('#record');
    await page.until('the microphone', () => !document.querySelector('#record-send').disabled);
    await page.click('#record-send');
    await shown(page, '#composer-error', 'too short');
  },

  async 'without permission the page says what to do'(page) {
    // The option that replaces the question of the browser also overrules a denial, so the page gets the error here.
    await page.run(() => {
      navigator.mediaDevices.getUserMedia = () => Promise.reject(new DOMException('no', 'NotAllowedError'));
    });
    await page.click('#record');
    await shown(page, '#composer-error', 'This page may not use the microphone.');
    await pictures(page, 'denied');
    assert.ok(await page.run(() => document.querySelector('#recording').hidden));
  },

  async 'the conversation is complete after a reload'(page) {
    await page.reload();
    await shown(page, '.said .bubble', SPOKEN);
    await shown(page, '.said .status', 'Transcribed');
    assert.deepEqual(await texts(page, '.said .bubble'), [SPOKEN, 'And now in writing.']);
    assert.equal(await count(page, 'audio'), 2);
  },
};

const speech = `${process.env.SPEECH}%noloop`;
await runSteps('voice.mjs', STEPS, process.argv.slice(2), [
  '--use-fake-ui-for-media-stream', '--use-fake-device-for-media-stream', `--use-file-for-fake-audio-capture=${speech}`,
  '--autoplay-policy=no-user-gesture-required',
]);
