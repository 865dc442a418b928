// Saves screenshots of every view: `node shots.mjs FOLDER`. CHROMIUM names the browser; the default is `chromium`.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import { Chromium } from '../../../../../tests/browser/chromium.mjs';
import { sampleGateway } from './sample.mjs';

const SIZES = [
  { width: 390, height: 844 },
  { width: 820, height: 1180 },
  { width: 1440, height: 900 },
];
const isLoaded = () => document.querySelector('#status')?.innerText === 'Live';

const [folder = 'shots', only = ''] = process.argv.slice(2);
mkdirSync(folder, { recursive: true });
const { fixture, rewrite, journal } = sampleGateway();
const letThrough = journal.records.find((record) => record.let_through).event_id;
const views = {
  timeline: '',
  detail: `?open=${rewrite}`,
  denied: '?outcome=deny,block',
  failed: `?status=let_through&open=${letThrough}`,
  nothing: '?q=nothing+like+this',
  sessions: '?view=sessions',
  hooks: '?view=hooks',
  gateway: '?view=gateway',
  latency: '?view=latency',
};
await fixture.start();
const browser = await Chromium.start(process.env.CHROMIUM ?? 'chromium');
try {
  const page = await browser.openPage();
  for (const size of SIZES) {
    for (const scheme of ['light', 'dark']) {
      await page.show({ ...size, scheme });
      for (const [name, query] of Object.entries(views)) {
        const file = `${name}-${size.width}-${scheme}`;
        if (!file.includes(only)) continue;
        await page.open(fixture.url + query);
        await page.until('the records', isLoaded);
        await page.until('the state of the gateway', () => document.querySelector('.badge'));
        await new Promise((resolve) => {
          setTimeout(resolve, 300);
        });
        await page.saveScreenshot(join(folder, `${file}.png`));
      }
    }
  }
  console.log(browser.problems.length > 0 ? browser.problems : 'no problems');
} finally {
  await browser.stop();
  await fixture.stop();
}
