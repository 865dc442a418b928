// Drives a headless Chromium over its debugging pipe. It needs nothing but Node.

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DEADLINE = 30_000;
const ENTER = { key: 'Enter', code: 'Enter', windowsVirtualKeyCode: 13, text: '\r' };
const ESCAPE = { key: 'Escape', code: 'Escape', windowsVirtualKeyCode: 27 };
export const KEYS = { enter: ENTER, escape: ESCAPE };

/** Returns the key that types a letter or a sign. */
export const keyOf = (text) => ({ key: text, text, windowsVirtualKeyCode: text.toUpperCase().charCodeAt(0) });

export class Chromium {
  #calls = new Map();
  #lastId = 0;
  #rest = '';
  /** Messages of the page's console, exceptions, and violations of the page's policy. */
  problems = [];

  /** Starts a browser. `more` are options of the program. */
  static async start(program, more = []) {
    const browser = new Chromium();
    browser.profile = mkdtempSync(join(tmpdir(), 'page-test-'));
    const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
    const options = [
      '--headless=new', '--remote-debugging-pipe', '--no-first-run', '--window-size=1200,800',
      `--user-data-dir=${browser.profile}`, ...sandbox, ...more,
    ];
    browser.process = spawn(program, [...options, 'about:blank'], {
      stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'],
    });
    const [, , , input, output] = browser.process.stdio;
    browser.input = input;
    output.setEncoding('utf8').on('data', (data) => browser.#read(data));
    browser.ended = new Promise((resolve) => browser.process.once('exit', resolve));
    await new Promise((resolve, reject) => browser.process.once('spawn', resolve).once('error', reject));
    return browser;
  }

  async stop() {
    // A browser that is killed leaves processes that still write to its profile.
    this.call('Browser.close').catch(() => {});
    const timer = setTimeout(() => this.process.kill(), DEADLINE);
    await this.ended;
    clearTimeout(timer);
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
  }

  async openPage() {
    const { targetId } = await this.call('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true });
    const page = new Page(this, sessionId);
    for (const domain of ['Page', 'Runtime', 'Log']) await page.call(`${domain}.enable`);
    return page;
  }

  call(method, params = {}, sessionId = undefined) {
    this.#lastId += 1;
    const id = this.#lastId;
    this.input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((resolve, reject) => this.#calls.set(id, { method, resolve, reject }));
  }

  #read(data) {
    const messages = (this.#rest + data).split('\0');
    this.#rest = messages.pop();
    for (const message of messages) this.#handle(JSON.parse(message));
  }

  #handle({ id, method, params, result, error }) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (call && error) call.reject(new Error(`${call.method}: ${error.message}`));
    else if (call) call.resolve(result);
    else if (method === 'Runtime.exceptionThrown') this.problems.push(params.exceptionDetails.exception?.description);
    else if (method === 'Log.entryAdded' && params.entry.level === 'error') this.problems.push(params.entry.text);
  }
}

class Page {
  constructor(browser, session) {
    Object.assign(this, { browser, session });
  }

  call(method, params) {
    return this.browser.call(method, params, this.session);
  }

  async open(url) {
    await this.call('Page.navigate', { url });
  }

  async reload() {
    await this.call('Page.reload');
  }

  /** Runs a function in the page. It cannot use anything from outside but its arguments. */
  async run(script, ...values) {
    const expression = `(${script})(...${JSON.stringify(values)})`;
    const options = { expression, returnByValue: true, awaitPromise: true };
    const { result, exceptionDetails } = await this.call('Runtime.evaluate', options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  /** Waits until a function returns something true in the page, and returns that. */
  async until(what, script, ...values) {
    const end = Date.now() + DEADLINE;
    while (Date.now() < end) {
      // A page that is being loaded cannot run anything.
      const value = await this.run(script, ...values).catch(() => null);
      if (value) return value;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`waited in vain for ${what}`);
  }

  /** Sets the size of the window in CSS pixels, and the colours that the system asks for. */
  async show({ width, height, scheme = 'light' }) {
    await this.call('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false });
    await this.call('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value: scheme }] });
  }

  async type(text) {
    await this.call('Input.insertText', { text });
  }

  async press(key) {
    await this.call('Input.dispatchKeyEvent', { type: 'keyDown', ...key });
    await this.call('Input.dispatchKeyEvent', { type: 'keyUp', ...key });
  }

  /** Clicks with the mouse, so that something that is covered or disabled is not clicked. */
  async click(selector) {
    const [x, y] = await this.until(selector, (wanted) => {
      const node = document.querySelector(wanted);
      if (!node || node.matches(':disabled')) return null;
      const { left, top, width, height } = node.getBoundingClientRect();
      return width > 0 && [left + width / 2, top + height / 2];
    }, selector);
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.call('Input.dispatchMouseEvent', { type, x, y, button: 'left', clickCount: 1 });
    }
  }

  async saveScreenshot(file) {
    const { data } = await this.call('Page.captureScreenshot');
    writeFileSync(file, Buffer.from(data, 'base64'));
  }
}
