// Uses the inspector in Chromium as a person does: reads, filters, searches, opens events, follows new ones.
//
//   node page.mjs         with a server of its own; also measures how fast the page is with 100,000 records
//   node page.mjs LINK    against `tenterhook inspect`, `run --inspect` or a gateway; LINK is what they print
//   node page.mjs -- COMMAND ARGUMENT…    starts such a program and takes the link from its output
//
// Against a real server, only the steps that work with any records run. CHROMIUM names the browser; the default is
// `chromium`. If a step fails, a screenshot is saved in the folder for temporary files.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { Chromium, keyOf, KEYS } from '../../../../../tests/browser/chromium.mjs';
import { startServer } from '../../../../../tests/browser/server.mjs';
import { manyRecords } from './journal.mjs';
import { IMAGE, sampleGateway } from './sample.mjs';
import { Fixture } from './fixture.mjs';

const STYLE = fileURLToPath(new URL('../../src/page/style.css', import.meta.url));
const DOWN = { key: 'ArrowDown', code: 'ArrowDown', windowsVirtualKeyCode: 40 };

const texts = (page, selector) =>
  page.run((wanted) => [...document.querySelectorAll(wanted)].map((node) => node.innerText), selector);
const count = (page, selector) => page.run((wanted) => document.querySelectorAll(wanted).length, selector);
const shown = (page, selector, text) =>
  page.until(
    `"${text}" in ${selector}`,
    (wanted, part) => [...document.querySelectorAll(wanted)].some((node) => node.innerText.includes(part)),
    selector,
    text,
  );
const loaded = (page) =>
  page.until('the records', () =>
    /^(Live|Paused|Report|.*(jsonl|files?))$/.test(document.querySelector('#status')?.innerText ?? ''),
  );
const press = (page, text) => page.press(keyOf(text));
const query = (page) => page.run(() => location.search);

/** The number of events that the list shows. */
const listed = (page) => page.run(() => Number(document.querySelector('#count').innerText.replace(/ .*|,/g, '')));

/** Adds a denied call, and returns the id of its event. */
function deny(fixture, journal, reason) {
  const start = journal.records.length;
  const id = journal.dispatch('pre_tool_use', { permission: 'deny', stopped: true, reason, subject: 'shell' });
  fixture.add(journal.records.slice(start));
  return id;
}

/** Steps that work with the records of any server. */
const ANYWHERE = {
  async 'the page opens and lists events'(page, { link }) {
    await page.open(link);
    await loaded(page);
    assert.ok(!(await page.run(() => location.href)).includes('code='), 'the code leaves the address');
    await shown(page, '#let-through', /^(0|[\d,]+)/.exec((await texts(page, '#let-through b'))[0])[0]);
    assert.equal(await page.run(() => document.activeElement === document.body), true);
  },

  // I8
  async 'a filter is set, found in the address and cleared, all by keyboard'(page) {
    await press(page, 'f');
    assert.ok(await page.run(() => document.activeElement.closest('#facets') !== null), 'f goes to the filters');
    await page.press({ key: ' ', code: 'Space', windowsVirtualKeyCode: 32, text: ' ' });
    await page.until('a filter in the address', () => location.search.includes('='));
    const before = await query(page);
    await page.reload();
    await loaded(page);
    assert.equal(await query(page), before, 'a reload keeps the filter');
    await press(page, 'c');
    await page.until('an empty address', () => location.search === '');
  },

  async 'the search waits for words, and Escape leaves it'(page) {
    await press(page, '/');
    await page.type('surely no record has this text');
    await shown(page, '#nothing', 'No event fits');
    await page.press(KEYS.escape);
    assert.equal(await page.run(() => document.activeElement.id), '');
    await press(page, 'c');
    await page.until('the end of the search', () => document.querySelector('#nothing').hidden);
  },

  async 'j and Enter open an event, and Escape closes it'(page) {
    await press(page, 'j');
    await page.press(DOWN);
    await press(page, 'k');
    await page.press(KEYS.enter);
    await page.until('the panel', () => !document.querySelector('#detail').hidden && location.search.includes('open='));
    await page.press(KEYS.escape);
    await page.until('the end of the panel', () => document.querySelector('#detail').hidden);
    assert.equal(await query(page), '');
  },

  async 'every view opens with its number'(page) {
    for (const [key, view] of [
      ['2', 'sessions'],
      ['3', 'hooks'],
      ['5', 'latency'],
    ]) {
      await press(page, key);
      await page.until(
        view,
        (name) => location.search.includes(`view=${name}`) && document.querySelector('#other').innerText.length > 10,
        view,
      );
    }
    await press(page, '1');
    await page.until('the timeline', () => location.search === '' && !document.querySelector('#timeline').hidden);
  },
};

/** Steps with the records of sample.mjs. */
const WITH_SAMPLE = {
  // I3
  async 'the counter of what went through is red, and its rows are marked'(page) {
    await page.click('#let-through .alarm');
    const counted = Number((await texts(page, '#let-through b'))[0]);
    await page.until('the filter', () => location.search === '?status=let_through');
    await page.until('the rows', (wanted) => document.querySelectorAll('.row').length === wanted, counted);
    assert.equal(await count(page, '.row.is-let-through'), counted);
    assert.equal(await listed(page), counted);
    await press(page, 'c');
  },

  // I2
  async 'two rewrites after each other show three versions'(page, { fixture, rewrite }) {
    await page.open(`${fixture.url}?open=${rewrite}`);
    await shown(page, '#detail section.rewrite', '3 versions');
    const names = await texts(page, '#detail .step-name');
    assert.deepEqual(
      names.map((name) => name.replace(/\s+/g, ' ')),
      ['1 Original', '2 After pin-versions 1 field', '3 After no-scripts 2 fields'],
    );
    assert.deepEqual(await texts(page, '#detail ins'), ['@1.3.0', ' --ignore-scripts']);
    await page.click('#detail .run summary');
    await shown(page, '#detail .output pre', '"rewrite"');
    await shown(page, '#detail .tools', 'Copy as tenterhook fire');
  },

  async 'the matcher of a run and the hooks that did not match are shown'(page, { fixture, rewrite }) {
    await page.open(`${fixture.url}?open=${rewrite}`);
    await shown(page, '#detail .left-out', '1 other hook of this event did not run');
    await page.run(() => {
      for (const node of document.querySelectorAll('#detail details')) node.open = true;
    });
    await shown(page, '#detail .left-out li', 'format-json write_file its matcher does not match');
    assert.ok((await texts(page, '#detail .run-body dd')).includes('shell|task'));
  },

  async 'a voice message that was not understood is named, and the time of its engines is shown'(page, { fixture }) {
    await page.open(`${fixture.url}?event=message_receive`);
    await loaded(page);
    await press(page, 'j');
    await page.press(KEYS.enter);
    await shown(page, '#detail .decision', 'stt: not transcribed: no result within 30s.');
    await page.run(() => {
      for (const node of document.querySelectorAll('#detail details')) node.open = true;
    });
    await shown(page, '#detail .run-body', 'of which transcription');
    await press(page, '5');
    await page.until('the chart', () =>
      [...document.querySelectorAll('#other figcaption')].some((node) => node.innerText.includes('conversion')),
    );
    assert.ok((await texts(page, '#other h2')).includes('Steps of hooks'));
    await press(page, 'c');
    await press(page, '1');
  },

  async 'a session shows the tokens and the cost of its model calls'(page, { fixture }) {
    await page.open(`${fixture.url}?view=sessions&session=voice-session`);
    await shown(page, '#other .tree-head', 'voice-session');
    const facts = (await texts(page, '#other .tree-head .numbers'))[0].replace(/\s+/g, ' ');
    assert.match(facts, /Model calls 2 Tokens 2,500 in, 100 out Cost \$0\.0053/i);
  },

  async 'the list of hooks follows a reload'(page, { fixture }) {
    await page.open(`${fixture.url}?view=hooks`);
    await shown(page, '#other .hooks', 'no-secrets');
    const before = fixture.hooks;
    const [first] = before.hooks;
    fixture.hooks = { ...before, hooks: [...before.hooks, { ...first, id: 'added-by-a-reload' }] };
    await press(page, '1');
    await press(page, '3');
    await shown(page, '#other .hooks', 'added-by-a-reload');
    fixture.hooks = before;
    await press(page, '1');
  },

  // I5
  async 'HTML in names, reasons, answers and payloads is text'(page, { fixture, html }) {
    await page.open(`${fixture.url}?open=${html}`);
    await shown(page, '#detail section.rewrite', IMAGE);
    for (const key of ['2', '3', '5', '4', '1']) {
      await press(page, key);
      await page.until('the view', () => document.querySelector('#views [aria-current]'));
    }
    await page.run(() => {
      for (const node of document.querySelectorAll('details')) node.open = true;
    });
    assert.equal(await count(page, 'img, #page script'), 0);
    assert.ok(!(await page.run(() => document.title)).includes('hacked'));
  },

  // I5
  async 'an exported report shows its records without a server'(page, { fixture, html }) {
    const problems = [...page.browser.problems];
    fixture.refusal = 500;
    await page.open(`${fixture.url}report.html?open=${html}`);
    await shown(page, '#status', 'Report');
    await shown(page, '#detail .decision', IMAGE);
    assert.equal(await count(page, 'img, #page script'), 0);
    assert.ok(await page.run(() => document.querySelector('#export').hidden));
    fixture.refusal = null;
    assert.deepEqual(page.browser.problems, problems, 'the report requested something');
  },

  // I1
  async 'a deny appears without a reload'(page, { fixture, journal }) {
    await page.open(fixture.url);
    await loaded(page);
    await page.until('the stream', () => document.querySelector('#status').innerText === 'Live');
    const started = Date.now();
    deny(fixture, journal, 'a deny that just happened');
    await shown(page, '.row', 'a deny that just happened');
    console.log(`   a deny appeared after ${Date.now() - started} ms`);
  },

  async 'a paused list does not move, and says how many events are new'(page, { fixture, journal }) {
    await press(page, 'p');
    await shown(page, '#status', 'Paused');
    const before = await texts(page, '.row');
    for (let number = 0; number < 3; number += 1) deny(fixture, journal, `while paused ${number}`);
    await shown(page, '#newer', '3 newer events');
    assert.deepEqual(await texts(page, '.row'), before);
    await page.click('#newer');
    await shown(page, '.row', 'while paused 2');
    await shown(page, '#status', 'Live');
  },

  // I7
  async 'after a lost connection nothing is missing and nothing comes twice'(page, { fixture, journal }) {
    const before = await listed(page);
    fixture.setDown(true);
    await shown(page, '#status', 'Offline');
    for (let number = 0; number < 5; number += 1) deny(fixture, journal, `while offline ${number}`);
    fixture.setDown(false);
    await shown(page, '.row', 'while offline 4');
    await page.until(
      'all events',
      (wanted) => Number(document.querySelector('#count').innerText.replace(/ .*|,/g, '')) === wanted,
      before + 5,
    );
    page.browser.problems = page.browser.problems.filter((problem) => !problem.includes('ERR_'));
  },

  // I7
  async 'records that the server dropped meanwhile are counted'(page, { fixture, journal }) {
    const before = await listed(page);
    fixture.setDown(true);
    await shown(page, '#status', 'Offline');
    const start = fixture.last;
    for (let number = 0; number < 4; number += 1) deny(fixture, journal, `overflow ${number}`);
    const kept = 5;
    fixture.forget(fixture.lines.length - kept);
    const lost = fixture.last - start - kept;
    fixture.setDown(false);
    await shown(page, '.row', 'overflow 3');
    await shown(page, '#notices', `${lost} records were missed`);
    assert.equal(await listed(page), before + 1);
    page.browser.problems = page.browser.problems.filter((problem) => !problem.includes('ERR_'));
  },

  // I7
  async 'a server that was restarted is noticed, and its events are shown'(page, { fixture, journal }) {
    const before = await listed(page);
    fixture.setDown(true);
    await shown(page, '#status', 'Offline');
    fixture.lines = [];
    fixture.first = 1;
    fixture.setDown(false);
    await shown(page, '#notices', 'restarted');
    deny(fixture, journal, 'after the restart');
    await shown(page, '.row', 'after the restart');
    assert.equal(await listed(page), before + 1);
    page.browser.problems = page.browser.problems.filter((problem) => !problem.includes('ERR_'));
  },

  async 'an approval is given in the view of the gateway'(page, { fixture }) {
    await press(page, '4');
    await shown(page, '.card', 'git push origin main');
    await shown(page, '.numbers', 'http://127.0.0.1:7878');
    const lines = await texts(page, '#other tbody tr');
    for (const [name, depth] of [
      ['up', '3, oldest'],
      ['Fix the flaky test', '2, oldest'],
    ]) {
      assert.ok(
        lines.some((line) => line.includes(name) && line.includes(depth)),
        `${name}: ${lines}`,
      );
    }
    await page.click('.card .primary');
    await page.until('the decision', () => !document.querySelector('#other').innerText.includes('git push'));
    assert.deepEqual(fixture.decisions, [['approvals', 'n-1', 'approve']]);
    await press(page, '1');
  },

  // I6
  async 'without the scope, the page says what is missing'(page, { fixture }) {
    for (const [status, text] of [
      [403, 'inspect'],
      [401, 'not signed in'],
    ]) {
      fixture.refusal = status;
      await page.open(fixture.url);
      await shown(page, '.empty', text);
      fixture.refusal = null;
      page.browser.problems = page.browser.problems.filter((problem) => !problem.includes(`${status}`));
    }
  },
};

/** Steps that need no server that runs. */
async function checkEmpty(page) {
  const fixture = await new Fixture({ kind: 'run' }).start();
  await page.open(fixture.url);
  await shown(page, '#nothing', 'No events yet');
  deny(fixture, manyRecords(0), 'the very first');
  await shown(page, '.row', 'the very first');
  await fixture.stop();
  page.browser.problems = page.browser.problems.filter((problem) => !/404|ERR_/.test(problem));
}

// I4
async function measure(page) {
  const { records } = manyRecords(100_000);
  const fixture = await new Fixture({ records, kind: 'files' }).start();
  const firstRow = `new Promise((resolve) => {
    const look = () => document.querySelector('.row') ? resolve(performance.now()) : requestAnimationFrame(look);
    look();
  })`;
  await page.open(fixture.url);
  const paint = await page.run(`() => ${firstRow}`);
  await loaded(page);
  const { total, heap } = await page.run(() => ({
    total: performance.now(),
    heap: Math.round((performance.memory?.usedJSHeapSize ?? 0) / 1024 / 1024),
  }));
  console.log(
    `   ${records.length} records: first rows after ${Math.round(paint)} ms, ` +
      `all after at most ${Math.round(total)} ms, ${heap} MiB`,
  );
  for (const [name, change] of Object.entries({
    'outcome deny': () => document.querySelector('.value[data-key="outcome:deny"]').click(),
    'tool shell in addition': () => document.querySelector('.value[data-key="tool:shell"]').click(),
    'no filter': () => document.querySelector('[data-key="clear"]').click(),
    'search "path"': () => type('path'),
    'search "path-guard"': () => type('path-guard'),
  })) {
    const script = `async () => {
      const type = (text) => {
        const input = document.querySelector('#search');
        input.value = text;
        input.dispatchEvent(new Event('input'));
      };
      const started = performance.now();
      (${change})();
      await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
      return performance.now() - started;
    }`;
    console.log(`   filter ${name}: ${Math.round(await page.run(script))} ms, ${await listed(page)} events`);
  }
  await fixture.stop();
}

// Contrast

/** Reads the pairs of colours of the style sheet: light and dark. */
function colours() {
  const found = readFileSync(STYLE, 'utf8').matchAll(/--([\w-]+): light-dark\((#\w+), (#\w+)\)/g);
  return Object.fromEntries([...found].map(([, name, light, dark]) => [name, { light, dark }]));
}

function luminance(colour) {
  const hex = colour.length === 4 ? colour.slice(1).replace(/./g, '$&$&') : colour.slice(1);
  const [red, green, blue] = hex.match(/../g).map((pair) => {
    const part = parseInt(pair, 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((one, other) => one - other);
  return (high + 0.05) / (low + 0.05);
}

const TEXT_PAIRS = [
  ...['page', 'side', 'raised', 'sunken', 'chosen', 'danger-soft', 'warn-soft', 'good-soft'].map((ground) => [
    'text',
    ground,
  ]),
  ...['page', 'side', 'raised', 'sunken', 'chosen'].flatMap((ground) => [
    ['soft', ground],
    ['accent', ground],
  ]),
  ...['danger', 'warn', 'good', 'info'].flatMap((tone) => [
    [tone, `${tone}-soft`],
    [tone, 'page'],
  ]),
  ...['warn', 'danger'].map((tone) => [tone, 'chosen']),
  ['on-accent', 'accent'],
  ['on-danger', 'danger'],
];
/** Edges of fields and marks without text. */
const SHAPE_PAIRS = [
  ['line-strong', 'page'],
  ['line-strong', 'side'],
  ['accent', 'page'],
  ['danger', 'page'],
  ['warn', 'page'],
];

// I8
function checkContrast() {
  const known = colours();
  let lowest = Infinity;
  for (const [pairs, needed] of [
    [TEXT_PAIRS, 4.5],
    [SHAPE_PAIRS, 3],
  ]) {
    for (const [front, ground] of pairs) {
      for (const scheme of ['light', 'dark']) {
        const ratio = contrast(known[front][scheme], known[ground][scheme]);
        assert.ok(ratio >= needed, `${front} on ${ground} (${scheme}): ${ratio.toFixed(2)}`);
        if (needed > 4) lowest = Math.min(lowest, ratio);
      }
    }
  }
  console.log(`ok: contrast (the lowest of texts is ${lowest.toFixed(2)})`);
}

async function main([first, ...command]) {
  checkContrast();
  const { server, link } = first === '--' ? await startServer(command) : { link: first };
  const sample = link ? { link } : sampleGateway();
  if (!link) {
    await sample.fixture.start();
    sample.link = sample.fixture.url;
  }
  const browser = await Chromium.start(process.env.CHROMIUM ?? 'chromium');
  let page;
  try {
    page = await browser.openPage();
    await page.show({ width: 1440, height: 900 });
    for (const [name, step] of Object.entries({ ...ANYWHERE, ...(link ? {} : WITH_SAMPLE) })) {
      await step(page, sample);
      // The browser reports each answer 404, which says that the payload of an event is not kept.
      const problems = browser.problems.filter((problem) => !problem.includes('404'));
      assert.deepEqual(problems, [], `errors in the console after "${name}"`);
      console.log(`ok: ${name}`);
    }
    if (!link) {
      await checkEmpty(page);
      await measure(page);
    }
  } catch (error) {
    const file = join(tmpdir(), 'inspector-test.png');
    await page?.saveScreenshot(file).catch(() => {});
    console.error(`screenshot: ${file}; console: ${browser.problems.join('; ') || 'nothing'}`);
    throw error;
  } finally {
    await browser.stop();
    await sample.fixture?.stop();
    server?.kill();
  }
}

await main(process.argv.slice(2));
