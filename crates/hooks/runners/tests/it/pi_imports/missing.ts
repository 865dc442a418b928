import assert from 'node:assert/strict';
import type { ExtensionAPI } from '@mariozechner/pi-coding-agent';
import {
  ModelSelectorComponent,
  SessionManager,
  copyToClipboard,
  ToolExecutionComponent,
} from '@mariozechner/pi-coding-agent';
import { complete, getModel, streamMistral } from '@mariozechner/pi-ai';
import { Type } from '@sinclair/typebox';
import { Value } from '@sinclair/typebox/value';

class Own extends ToolExecutionComponent {}

export default async function (pi: ExtensionAPI) {
  assert.equal(typeof Own, 'function');
  assert.equal(getModel('anthropic', 'some-model'), undefined);
  for (const [use, named] of [
    [() => copyToClipboard('x'), /`copyToClipboard` of `pi-coding-agent` is not available here; install/],
    [() => new ModelSelectorComponent(), /`ModelSelectorComponent` of/],
    [() => new Own(), /`ToolExecutionComponent` of/],
    [() => SessionManager.open('x'), /`SessionManager.open` of/],
    [() => streamMistral({}, {}), /`streamMistral` of `pi-ai`/],
    [() => Type.TemplateLiteral('x'), /`Type.TemplateLiteral` of `typebox`/],
    [() => Value.Check({}, 1), /`Value.Check` of `typebox\/value`/],
  ] as [() => unknown, RegExp][]) {
    assert.throws(use, { message: named });
  }
  const { errorMessage } = await complete(getModel('anthropic', 'some-model'), { messages: [] });
  assert.match(errorMessage, /no model was given; `getModel` and `find` return undefined/);
}
