import assert from 'node:assert/strict';
import type { ExtensionAPI } from '@mariozechner/pi-coding-agent';
import {
  BorderedLoader,
  CustomEditor,
  DynamicBorder,
  getMarkdownTheme,
  getSelectListTheme,
  getSettingsListTheme,
  truncateToVisualLines,
} from '@mariozechner/pi-coding-agent';
import {
  Box,
  Container,
  CURSOR_MARKER,
  Editor,
  fuzzyFilter,
  Image,
  Input,
  isKeyRelease,
  Key,
  Markdown,
  matchesKey,
  parseKey,
  SelectList,
  SettingsList,
  Spacer,
  Text,
  truncateToWidth,
  TUI,
  visibleWidth,
  wrapTextWithAnsi,
} from '@mariozechner/pi-tui';

class Shouting extends CustomEditor {
  handleInput(data: string) {
    super.handleInput(data.toUpperCase());
  }
}

export default function (_pi: ExtensionAPI) {
  assert.deepEqual(
    ['abc', '日本', '\x1b[31mred\x1b[0m', '👍🏽', 'e\u0301', '\x1b]8;;http://x\x07l\x1b]8;;\x07'].map(visibleWidth),
    [3, 4, 3, 2, 1, 1],
  );
  assert.equal(truncateToWidth('abcdef', 5), 'ab\x1b[0m...');
  assert.equal(truncateToWidth('ab', 4, '...', true), 'ab  ');
  assert.deepEqual(
    wrapTextWithAnsi('hello \x1b[1mbold world', 8).map((line: string) => line.replace(/\x1b\[\d*m/g, '').trimEnd()),
    ['hello', 'bold', 'world'],
  );
  assert.ok(wrapTextWithAnsi('\x1b[1mbold world', 5)[1].startsWith('\x1b[1mworld'));

  for (const [data, key] of [
    ['\x1b', Key.escape],
    ['\r', 'return'],
    ['\x1b[A', Key.up],
    ['\x1b[1;5C', Key.ctrl('right')],
    ['\x03', 'ctrl+c'],
    ['\x1b[97;5u', 'ctrl+a'],
    ['A', Key.shift('a')],
    ['?', Key.question],
  ]) {
    assert.ok(matchesKey(data, key), `${JSON.stringify(data)} ${key}`);
  }
  assert.ok(!matchesKey('b', 'a') && !matchesKey('\x1b[999~', 'a'));
  assert.equal(parseKey('\x1b[Z'), 'shift+tab');
  assert.ok(isKeyRelease('\x1b[97;1:3u') && !isKeyRelease('a'));
  assert.deepEqual(
    fuzzyFilter(['beta', 'alphabet', 'bat'], 'bt', (item: string) => item),
    ['beta', 'bat', 'alphabet'],
  );

  const box = new Box(1, 0);
  box.addChild(new Text('one two', 0, 0));
  const root = new Container();
  for (const child of [
    new DynamicBorder(),
    box,
    new Spacer(1),
    new Markdown('# T\n- **b**', 0, 0, getMarkdownTheme()),
  ])
    root.addChild(child);
  assert.deepEqual(
    root.render(5).map((line: string) => line.trimEnd()),
    ['─────', ' one', ' two', '', 'T', '- b'],
  );
  assert.deepEqual(truncateToVisualLines('a b c', 2, 1), { visualLines: ['b', 'c'], skippedCount: 1 });

  const chosen: string[] = [];
  const list = new SelectList(
    [
      { value: 'x', label: 'X' },
      { value: 'y', label: 'Y', description: 'why' },
    ],
    5,
    getSelectListTheme(),
  );
  list.onSelect = (item: any) => chosen.push(item.value);
  list.handleInput('\x1b[A');
  list.handleInput('\r');
  assert.deepEqual([chosen, list.render(20)], [['y'], ['  X', '→ Y  why']]);
  const settings = new SettingsList(
    [{ id: 's', label: 'S', currentValue: 'on', values: ['on', 'off'] }],
    5,
    getSettingsListTheme(),
    (id: string, value: string) => chosen.push(id + value),
    () => chosen.push('cancel'),
  );
  settings.handleInput(' ');
  settings.handleInput('\x1b');
  assert.deepEqual(chosen, ['y', 'soff', 'cancel']);

  const input = new Input();
  for (const key of 'abc\x7f') input.handleInput(key);
  assert.equal(input.getValue(), 'ab');
  const editor = new Shouting(new TUI(), {}, undefined);
  editor.onSubmit = (text: string) => chosen.push(text);
  for (const key of 'hi\r') editor.handleInput(key);
  assert.equal(chosen.at(-1), 'HI');
  assert.ok(new Editor(new TUI(), {}).render(3).length === 3 && CURSOR_MARKER);
  // Keys, and the rows of the text after them, with `|` before the character at the cursor.
  for (const [keys, expected] of [
    [['a日b', '\x1b[D', '\x1b[D', 'x'], ['ax|日b']],
    [['one two', '\x17', '\x01'], ['|one']],
    [['abcdefgh日'], ['abcdefgh', '日|']],
    [['abcdefgh'], ['abcdefgh', '|']],
    [['a', '\n', 'bcd', '\x1b[A', '!'], ['a!|', 'bcd']],
    [['\x1b[200~x\ry\x07\x1b[201~'], ['x', 'y|']],
    [['ab', '\x1b[D', '\x04'], ['a|']],
    [['ab', '\n', '\x7f'], ['ab|']],
    [['one two', '\x1bb', '\x0b', '\x1b[D'], ['one|']],
  ]) {
    const edited = new Editor(new TUI(), {});
    for (const key of keys) edited.handleInput(key);
    const rows = edited.render(8).slice(1, -1);
    assert.deepEqual(rows.map((row: string) => row.replace(/\x1b\[7m(.)\x1b\[27m/u, '|$1').trimEnd()), expected);
  }

  const loader = new BorderedLoader(new TUI(), { fg: (_: string, text: string) => text }, 'working');
  loader.onAbort = () => chosen.push('aborted');
  loader.handleInput('\x1b');
  assert.ok(loader.signal.aborted && chosen.at(-1) === 'aborted' && loader.render(20).join('').includes('working'));
  assert.deepEqual(new Image('', 'image/png', {}, {}).render(9), ['[Image: [image/png]]']);
}
