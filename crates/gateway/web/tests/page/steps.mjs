// What the programs that use the page in Chromium share: finding elements, running steps.

import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Chromium, KEYS } from '../../../../../tests/browser/chromium.mjs';
import { startServer } from '../../../../../tests/browser/server.mjs';

export const texts = (page, selector) => page.run(
  (wanted) => [...document.querySelectorAll(wanted)].map((node) => node.innerText), selector);
export const count = (page, selector) => page.run((wanted) => document.querySelectorAll(wanted).length, selector);
export const shown = (page, selector, text) => page.until(
  `"${text}" in ${selector}`,
  (wanted, part) => [...document.querySelectorAll(wanted)].some((node) => node.innerText.includes(part)),
  selector, text);

export async function say(page, text) {
  await page.click('#input');
  await page.type(text);
  await page.press(KEYS.enter);
  await shown(page, '.said .bubble', text);
}

export async function allow(page) {
  await page.click('.question .primary');
  await page.until('the end of the question', () => !document.querySelector('.question'));
}

export const isIdle = (page) => page.until('the end of the turn', () => document.querySelector('#stop').hidden);

/**
 * Runs each step with the page and the link that signs in. The third parameter is a link, or `--` and a command that
 * starts the gateway. `options` are for the browser.
 */
export async function runSteps(program, steps, [first, ...command], options = []) {
  if (!first) throw new Error(`usage: node ${program} LINK | node ${program} -- COMMAND ARGUMENT…`);
  const { server: gateway, link } = first === '--' ? await startServer(command) : { link: first };
  let browser;
  let page;
  try {
    browser = await Chromium.start(process.env.CHROMIUM ?? 'chromium', options);
    page = await browser.openPage();
    for (const [name, step] of Object.entries(steps)) {
      await step(page, link);
      assert.deepEqual(browser.problems, [], 'errors in the console');
      console.log(`ok: ${name}`);
    }
  } catch (error) {
    const file = join(tmpdir(), 'page-test.png');
    await page?.saveScreenshot(file);
    console.error(`screenshot: ${file}; console: ${browser?.problems.join('; ') || 'nothing'}`);
    throw error;
  } finally {
    await browser?.stop();
    gateway?.kill();
  }
}
