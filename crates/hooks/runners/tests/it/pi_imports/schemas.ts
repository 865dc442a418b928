import assert from 'node:assert/strict';
import type { ExtensionAPI } from '@mariozechner/pi-coding-agent';
import {
  calculateCost,
  complete,
  createAssistantMessageEventStream,
  getEnvApiKey,
  parseStreamingJson,
  registerApiProvider,
  StringEnum,
  Type as Same,
  unregisterApiProviders,
} from '@earendil-works/pi-ai';
import { Type } from '@sinclair/typebox';
import Default, { Object as ObjectSchema, Optional, String as Text } from 'typebox';

const plain = (value: unknown) => JSON.parse(JSON.stringify(value));

export default async function (_pi: ExtensionAPI) {
  assert.equal(Type, Same);
  assert.equal(Type, Default);
  const schema = Type.Object({
    name: Type.String({ description: 'who' }),
    age: Type.Optional(Type.Integer()),
    kind: StringEnum(['a', 'b'] as const, { default: 'a' }),
  });
  assert.deepEqual(plain(schema), {
    type: 'object',
    properties: {
      name: { type: 'string', description: 'who' },
      age: { type: 'integer' },
      kind: { type: 'string', enum: ['a', 'b'], default: 'a' },
    },
    required: ['name', 'kind'],
  });
  assert.deepEqual(Type.Partial(schema).required, undefined);
  assert.deepEqual(Object.keys(Type.Omit(schema, ['age']).properties), ['name', 'kind']);
  assert.deepEqual(plain(Type.Pick(Type.Partial(schema), Type.Literal('name'))), {
    type: 'object',
    properties: { name: { type: 'string', description: 'who' } },
  });
  assert.deepEqual(plain(ObjectSchema({ x: Optional(Text()) })), {
    type: 'object',
    properties: { x: { type: 'string' } },
  });
  assert.deepEqual(plain(Type.Union([Type.Literal('x'), Type.Null()])), {
    anyOf: [{ const: 'x', type: 'string' }, { type: 'null' }],
  });

  const message = { role: 'assistant', content: [{ type: 'text', text: 'yes' }] };
  const answer = () => {
    const stream = createAssistantMessageEventStream();
    queueMicrotask(() => {
      stream.push({ type: 'text_delta', delta: 'yes' });
      stream.push({ type: 'done', message });
      stream.end();
    });
    return stream;
  };
  registerApiProvider({ api: 'mine', stream: answer, streamSimple: answer }, 'test');
  assert.deepEqual(await complete({ api: 'mine' }, { messages: [] }), message);
  const types: string[] = [];
  for await (const event of answer()) types.push(event.type);
  assert.deepEqual(types, ['text_delta', 'done']);
  unregisterApiProviders('test');
  const refused = await complete({ api: 'mine', id: 'm', provider: 'p', baseUrl: 'http://x' }, { messages: [] });
  assert.equal(refused.stopReason, 'error');
  assert.match(refused.errorMessage, /the API `mine` is not supported; expected one of `openai-completions`/);

  const usage = { input: 1e6, output: 2e6, cacheRead: 0, cacheWrite: 0, cost: {} as any };
  assert.equal(calculateCost({ cost: { input: 1, output: 2, cacheRead: 1, cacheWrite: 1 } }, usage).total, 5);
  process.env.SOME_SERVICE_API_KEY = 'k';
  assert.equal(getEnvApiKey('some-service'), 'k');
  assert.deepEqual(
    ['{"a": "b', '{"a": [1, 2', '{"a": 1, "b":', ''].map((text) => parseStreamingJson(text)),
    [{ a: 'b' }, { a: [1, 2] }, { a: 1 }, {}],
  );
}
