import assert from 'node:assert/strict';
import * as os from 'node:os';
import * as path from 'node:path';
import type { ExtensionAPI } from '@mariozechner/pi-coding-agent';
import {
  CONFIG_DIR_NAME,
  convertToLlm,
  createEventBus,
  defineTool,
  estimateTokens,
  formatSize,
  getAgentDir,
  getLanguageFromPath,
  highlightCode,
  keyHint,
  parseFrontmatter,
  serializeConversation,
  stripFrontmatter,
  VERSION,
} from '@mariozechner/pi-coding-agent';
import { ok } from '@mariozechner/pi-agent-core';

const FILE = `---
name: reviewer
description: "finds: mistakes" # for people
tools: [read, "a, b", 3]
limits:
  files: 2
  deep: true
steps:
  - look
  - name: say
    loud: false
text: |
  one

  two
---
The body.
`;

export default function (_pi: ExtensionAPI) {
  assert.match(VERSION, /^\d+\.\d+\.\d+$/);
  assert.equal(getAgentDir(), process.env.PI_CODING_AGENT_DIR ?? path.join(os.homedir(), CONFIG_DIR_NAME, 'agent'));
  assert.deepEqual(parseFrontmatter(FILE), {
    frontmatter: {
      name: 'reviewer',
      description: 'finds: mistakes',
      tools: ['read', 'a, b', 3],
      limits: { files: 2, deep: true },
      steps: ['look', { name: 'say', loud: false }],
      text: 'one\n\ntwo\n',
    },
    body: 'The body.',
  });
  assert.equal(stripFrontmatter('no settings'), 'no settings');
  assert.throws(
    () => parseFrontmatter('---\nkey: &anchor 1\n---\n'),
    /line 2: .* is YAML that is not supported here/,
  );
  assert.throws(() => parseFrontmatter('---\njust text\n---\n'), /line 2: expected `key: value`/);

  const messages = [
    { role: 'user', content: 'hi' },
    {
      role: 'assistant',
      content: [
        { type: 'thinking', thinking: 'well' },
        { type: 'text', text: 'yes' },
        { type: 'toolCall', name: 'bash', arguments: { command: 'ls' } },
      ],
    },
    { role: 'toolResult', content: [{ type: 'text', text: 'a.txt' }] },
  ];
  const written =
    '[User]: hi\n\n[Assistant thinking]: well\n\n[Assistant]: yes\n\n[Assistant tool calls]: bash(command="ls")\n\n[Tool result]: a.txt';
  assert.equal(serializeConversation(messages), written);
  const others = [
    { role: 'custom', customType: 'note', content: 'n', timestamp: 1 },
    { role: 'bashExecution', command: 'ls', output: '', exitCode: 2, timestamp: 2 },
    { role: 'bashExecution', command: 'ls', output: '', excludeFromContext: true },
    { role: 'unknown', content: 'x' },
  ];
  assert.deepEqual(
    convertToLlm([...others, messages[0]]).map(({ role, content }: any) => [role, content[0].text ?? content]),
    [
      ['user', 'n'],
      ['user', 'Ran `ls`\n(no output)\n\nCommand exited with code 2'],
      ['user', 'hi'],
    ],
  );
  assert.equal(estimateTokens({ role: 'user', content: '12345678' }), 2);

  assert.deepEqual(
    [10, 2048, 5e6].map((size) => formatSize(size)),
    ['10B', '2.0KB', '4.8MB'],
  );
  assert.deepEqual(
    ['a.tsx', 'b.go', 'c.unknown'].map((file) => getLanguageFromPath(file)),
    ['typescript', 'go', undefined],
  );
  assert.deepEqual(highlightCode('a\nb', 'go'), ['a', 'b']);
  assert.equal(keyHint('selectCancel', 'cancel'), 'escape/ctrl+c cancel');
  assert.equal(defineTool({ name: 'x' }).name, 'x');
  assert.deepEqual(ok(1), { ok: true, value: 1 });
  const bus = createEventBus();
  const heard: unknown[] = [];
  const stop = bus.on('c', (data: unknown) => heard.push(data));
  bus.emit('c', 1);
  stop();
  bus.emit('c', 2);
  assert.deepEqual(heard, [1]);
}
