// Uses the page in Chromium as a person does: types, sees an answer stream, stops, reloads in the middle of a turn,
// answers a question.
//
//   node page.mjs LINK                  against a gateway that runs; LINK is what `tenterhook gateway open` prints
//   node page.mjs -- COMMAND ARGUMENT…  starts the gateway and takes the link from its output
//
// The agent's model must follow script.yaml, and every call of `shell` must need an approval. CHROMIUM names the
// browser; the default is `chromium`. If a step fails, a screenshot is saved in the folder for temporary files.

import assert from 'node:assert/strict';

import { KEYS } from '../../../../../tests/browser/chromium.mjs';
import { allow, count, isIdle, runSteps, say, shown, texts } from './steps.mjs';

/** The steps, in the order of the turns in script.yaml. */
const STEPS = {
  async 'a link signs in once, and its code leaves the address'(page, link) {
    await page.open(link);
    await page.until('the page', () => document.querySelector('#user')?.innerText);
    assert.ok(!(await page.run(() => location.href)).includes('code='));
    await shown(page, '#empty', 'What should the agent do?');
  },

  async 'what is typed is sent, and the answer streams as Markdown'(page) {
    await page.run(() => {
      window.lengths = new Set();
      const list = document.querySelector('#items');
      const note = () => window.lengths.add(list.querySelector('.answer .markdown')?.innerText.length ?? 0);
      new MutationObserver(note).observe(list, { childList: true, subtree: true, characterData: true });
    });
    await say(page, 'Stream an answer.');
    await shown(page, '.answer.final', 'That is the end of the stream.');
    await isIdle(page);
    assert.deepEqual(await texts(page, '.answer strong'), ['strong words']);
    assert.equal(await count(page, '.answer script'), 0, 'HTML of the model is text');
    assert.deepEqual(await texts(page, '.said .bubble'), ['Stream an answer.']);
    assert.ok((await page.run(() => window.lengths.size)) > 0);
  },

  async 'Escape stops a turn'(page) {
    await say(page, 'Sleep until I stop you.');
    await allow(page);
    await page.until('the tool', () => document.querySelector('.tool[data-state="running"]'));
    await page.press(KEYS.escape);
    await shown(page, '.note', 'Stopped');
    await isIdle(page);
    assert.equal(await count(page, '.tool[data-state="running"]'), 0);
  },

  async 'a reload in the middle of a turn loses nothing and repeats nothing'(page) {
    await say(page, 'Sleep a little.');
    await allow(page);
    await page.until('the tool', () => document.querySelector('.tool[data-state="running"]'));
    await page.reload();
    await shown(page, '.said .bubble', 'Sleep a little.');
    await page.until('the running turn', () => document.querySelector('#stop')?.hidden === false);
    await shown(page, '.answer.final', 'I slept well.');
    await isIdle(page);
    const said = ['Stream an answer.', 'Sleep until I stop you.', 'Sleep a little.'];
    assert.deepEqual(await texts(page, '.said .bubble'), said);
    const answers = await texts(page, '.answer.final .markdown');
    assert.equal(answers.filter((text) => text.includes('I slept well.')).length, 1);
  },

  async 'an open question survives a reload, and allowing it runs the call'(page) {
    await say(page, 'Ask me.');
    await shown(page, '.question', 'shell');
    await page.reload();
    await shown(page, '.question', 'echo allowed');
    await allow(page);
    await shown(page, '.answer.final', 'You allowed it.');
    await isIdle(page);
    await shown(page, '.tool[data-state="done"]', 'shell');
  },

  async 'a denial with a reason is typed and sent with Enter'(page) {
    await say(page, 'Ask me again.');
    await page.click('.question .reason');
    await page.type('not today');
    await page.press(KEYS.enter);
    await shown(page, '.answer.final', 'You denied it.');
    await isIdle(page);
    assert.equal(await count(page, '.tool[data-state="denied"]'), 1);
  },

  async 'opening the used link again changes nothing for a browser that is signed in'(page, link) {
    await page.open(link);
    await page.until('the code to leave the address', () => !location.href.includes('code='));
    await shown(page, '#title', 'Stream an answer.');
    await say(page, '/help');
    // The browser reports the refused code, and that there is no channel of the kind `http`.
    page.browser.problems = page.browser.problems.filter((problem) => !/40[14]/.test(problem));
  },
};

await runSteps('page.mjs', STEPS, process.argv.slice(2));
