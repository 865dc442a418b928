import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import type { ExtensionAPI } from '@earendil-works/pi-coding-agent';
import {
  createBashTool,
  createCodingTools,
  createEditTool,
  createFindTool,
  createGrepTool,
  createLsTool,
  createReadOnlyTools,
  createReadTool,
  createWriteTool,
  truncateHead,
  truncateLine,
  truncateTail,
  withFileMutationQueue,
} from '@earendil-works/pi-coding-agent';

const folder = path.join(process.cwd(), 'files');
const text = (result: any) => result.content[0].text;

export default async function (_pi: ExtensionAPI) {
  const write = createWriteTool(folder);
  assert.equal(
    text(await write.execute('1', { path: 'sub/a.txt', content: 'one\ntwo\nthree\n' })),
    'Successfully wrote 14 bytes to sub/a.txt',
  );
  assert.equal(fs.readFileSync(path.join(folder, 'sub/a.txt'), 'utf8'), 'one\ntwo\nthree\n');

  const read = createReadTool(folder);
  assert.equal(text(await read.execute('2', { path: 'sub/a.txt' })), 'one\ntwo\nthree\n');
  assert.equal(
    text(await read.execute('3', { path: 'sub/a.txt', offset: 2, limit: 1 })),
    'two\n\n[2 more lines in file. Use offset=3 to continue.]',
  );
  await assert.rejects(
    read.execute('4', { path: 'sub/a.txt', offset: 9 }),
    /Offset 9 is beyond end of file \(4 lines total\)/,
  );
  fs.writeFileSync(path.join(folder, 'image.png'), Buffer.from('89504e470d0a1a0a', 'hex'));
  const image: any = await read.execute('5', { path: 'image.png' });
  assert.deepEqual(image.content[1], { type: 'image', data: 'iVBORw0KGgo=', mimeType: 'image/png' });

  const edit = createEditTool(folder);
  const edited: any = await edit.execute('6', { path: 'sub/a.txt', oldText: 'two', newText: '2' });
  assert.deepEqual(edited.details, { diff: ' 1 one\n-2 two\n+2 2\n 3 three\n 4 ', firstChangedLine: 2 });
  const several = {
    path: 'sub/a.txt',
    edits: [
      { oldText: 'three', newText: '3' },
      { oldText: 'one', newText: '1' },
    ],
  };
  await edit.execute('7', several);
  assert.equal(fs.readFileSync(path.join(folder, 'sub/a.txt'), 'utf8'), '1\n2\n3\n');
  await assert.rejects(
    edit.execute('8', { path: 'sub/a.txt', oldText: 'zwei', newText: '2' }),
    /Could not find the exact text/,
  );
  await assert.rejects(edit.execute('9', { path: 'sub/a.txt', oldText: '\n', newText: ' ' }), /Found 3 occurrences/);
  await assert.rejects(edit.execute('10', { path: 'none', oldText: 'a', newText: 'b' }), /File not found: none/);

  const updates: string[] = [];
  const bash = createBashTool(folder, {
    spawnHook: ({ command, cwd, env }) => ({ command: `${command} $EXTRA`, cwd, env: { ...env, EXTRA: 'more' } }),
  });
  const ran = await bash.execute('11', { command: 'echo some' }, undefined, (update: any) =>
    updates.push(text(update)),
  );
  assert.equal(text(ran), 'some more\n');
  assert.deepEqual(updates, ['some more\n']);
  const plain = createBashTool(folder);
  await assert.rejects(plain.execute('12', { command: 'echo out; exit 3' }), {
    message: 'out\n\n\nCommand exited with code 3',
  });
  const controller = new AbortController();
  const aborted = plain.execute('13', { command: 'echo started; sleep 600' }, controller.signal, () =>
    controller.abort(),
  );
  await assert.rejects(aborted, /started\n\n\nCommand aborted/);
  const long: any = await plain.execute('14', { command: 'seq 1 3000' });
  assert.match(text(long), /\[Showing lines 1002-3001 of 3001\. Full output: .*\.log\]$/);
  assert.equal(fs.readFileSync(long.details.fullOutputPath, 'utf8').split('\n').length, 3001);
  fs.unlinkSync(long.details.fullOutputPath);
  const elsewhere = createBashTool('/remote', {
    operations: {
      exec: async (command, cwd, { onData }) => {
        onData(Buffer.from(`${cwd}: ${command}`));
        return { exitCode: 0 };
      },
    },
  });
  assert.equal(text(await elsewhere.execute('15', { command: 'ls' })), '/remote: ls');

  assert.equal(
    text(await createGrepTool(folder).execute('16', { pattern: '^[12]$', limit: 1 })),
    'sub/a.txt:1: 1\n\n[1 matches limit reached. Use limit=2 for more, or refine pattern]',
  );
  assert.equal(
    text(await createGrepTool(folder).execute('17', { pattern: '2', context: 1, glob: '*.txt' })),
    'sub/a.txt-1- 1\nsub/a.txt:2: 2\nsub/a.txt-3- 3',
  );
  assert.equal(
    text(await createGrepTool(folder).execute('18', { pattern: 'x(', literal: true })),
    'No matches found',
  );
  assert.equal(text(await createFindTool(folder).execute('19', { pattern: '*.{txt,md}' })), 'sub/a.txt');
  assert.equal(
    text(await createFindTool(folder).execute('20', { pattern: 'a.txt/*' })),
    'No files found matching pattern',
  );
  assert.equal(text(await createLsTool(folder).execute('21', {})), 'image.png\nsub/');
  await assert.rejects(createLsTool(folder).execute('22', { path: 'none' }), /Path not found: .*none/);

  const order: number[] = [];
  const slow = withFileMutationQueue('/f', async () => {
    await new Promise((resolve) => setImmediate(resolve));
    order.push(1);
  });
  await Promise.all([slow, withFileMutationQueue('/f', async () => order.push(2))]);
  assert.deepEqual(order, [1, 2]);

  assert.deepEqual(
    createCodingTools(folder).map(({ name }) => name),
    ['read', 'bash', 'edit', 'write'],
  );
  assert.deepEqual(
    createReadOnlyTools(folder).map(({ name }) => name),
    ['read', 'grep', 'find', 'ls'],
  );

  const lines = Array.from({ length: 2001 }, (_, place) => `l${place}`).join('\n');
  const { content, ...head } = truncateHead(lines, { maxLines: 2 });
  assert.equal(content, 'l0\nl1');
  assert.equal(head.truncatedBy, 'lines');
  assert.equal(truncateTail(lines, { maxBytes: 11 }).content, 'l1999\nl2000');
  assert.equal(truncateTail('äö', { maxBytes: 3 }).content, 'ö');
  assert.equal(truncateHead('äö', { maxBytes: 3 }).firstLineExceedsLimit, true);
  assert.deepEqual(truncateLine('abcd', 2), { text: 'ab... [truncated]', wasTruncated: true });
}
