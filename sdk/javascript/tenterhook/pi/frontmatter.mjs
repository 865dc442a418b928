// Reads the settings at the start of Markdown files. Reads the part of YAML that such files use.

const SCALARS = { true: true, false: false, null: null, '~': null, '': null };

function scalar(text, line) {
  if (/^[&*!{%@`]/.test(text))
    throw new Error(`front matter: line ${line}: \`${text}\` is YAML that is not supported here`);
  if (text.startsWith('"')) return JSON.parse(text);
  if (text.startsWith("'")) return text.slice(1, -1).replaceAll("''", "'");
  if (text.startsWith('[')) {
    const items = text.slice(1, text.lastIndexOf(']')).match(/"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^,\s][^,]*/g) ?? [];
    return items
      .map((item) => item.trim())
      .filter(Boolean)
      .map((item) => scalar(item, line));
  }
  if (Object.hasOwn(SCALARS, text)) return SCALARS[text];
  return /^[-+]?(?:\d+|\d*\.\d+)(?:[eE][-+]?\d+)?$/.test(text) ? Number(text) : text;
}

const QUOTED = /^("(?:[^"\\]|\\.)*"|'(?:[^']|'')*')\s*(?:#.*)?$/;
const withoutComment = (text) => (QUOTED.exec(text)?.[1] ?? text.replace(/(?:^|\s)#.*$/, '')).trim();

class Reader {
  constructor(text) {
    this.at = 0;
    this.lines = text.split('\n').map((line, place) => ({ line, number: place + 2, indent: line.search(/\S/) }));
  }
  /** Returns the next line that has content. */
  peek() {
    while (this.at < this.lines.length && /^\s*(?:#.*)?$/.test(this.lines[this.at].line)) this.at += 1;
    return this.lines[this.at];
  }
  /** Reads a mapping or list whose lines have this indentation. */
  block(indent) {
    return /^\s*-(?:\s|$)/.test(this.peek().line) ? this.list(indent) : this.mapping(indent);
  }
  list(indent) {
    const items = [];
    for (
      let next = this.peek();
      next && next.indent === indent && /^\s*-(?:\s|$)/.test(next.line);
      next = this.peek()
    ) {
      const rest = next.line.slice(indent + 1);
      const inner = rest.search(/\S/);
      if (inner >= 0 && /^\s*[\w.-]+:(?:\s|$)/.test(rest)) {
        // The item is a mapping that begins on the same line.
        next.line = ' '.repeat(indent + 1) + rest;
        next.indent = indent + 1 + inner;
        items.push(this.mapping(next.indent));
      } else {
        this.at += 1;
        items.push(this.value(rest.trim(), indent, next.number));
      }
    }
    return items;
  }
  mapping(indent) {
    const result = {};
    for (let next = this.peek(); next && next.indent === indent; next = this.peek()) {
      const pair = /^\s*("[^"]*"|'[^']*'|[^\s:#][^:]*?)\s*:(?:\s+(.*)|\s*)$/.exec(next.line);
      if (!pair)
        throw new Error(`front matter: line ${next.number}: expected \`key: value\`, found \`${next.line.trim()}\``);
      this.at += 1;
      result[pair[1].replace(/^(["'])(.*)\1$/, '$2')] = this.value((pair[2] ?? '').trim(), indent, next.number);
    }
    return result;
  }
  value(text, indent, number) {
    const style = /^([|>])[-+]?$/.exec(text)?.[1];
    if (style) return this.text(style, indent, text.endsWith('-'));
    const plain = withoutComment(text);
    if (plain !== '') return scalar(plain, number);
    const next = this.peek();
    const isNested = next && (next.indent > indent || (next.indent === indent && /^\s*-(?:\s|$)/.test(next.line)));
    return isNested ? this.block(next.indent) : null;
  }
  /** Reads a text of several lines. */
  text(style, indent, isStripped) {
    const lines = [];
    let own;
    for (; this.at < this.lines.length; this.at += 1) {
      const { line, indent: found } = this.lines[this.at];
      if (found >= 0 && found <= indent) break;
      own ??= found >= 0 ? found : undefined;
      lines.push(line.slice(own ?? 0));
    }
    while (lines.at(-1)?.trim() === '') lines.pop();
    return lines.join(style === '|' ? '\n' : ' ') + (isStripped ? '' : '\n');
  }
}

/** Splits a file into the settings at its start and the rest. */
export function parseFrontmatter(content) {
  const text = content.replace(/\r\n?/g, '\n');
  const end = text.startsWith('---') ? text.indexOf('\n---', 3) : -1;
  if (end < 0) return { frontmatter: {}, body: text };
  const reader = new Reader(text.slice(4, end));
  const first = reader.peek();
  const frontmatter = first ? reader.block(first.indent) : {};
  const left = reader.peek();
  if (left)
    throw new Error(`front matter: line ${left.number}: unexpected indentation before \`${left.line.trim()}\``);
  return { frontmatter, body: text.slice(end + 4).trim() };
}

/** Returns a file without the settings at its start. */
export const stripFrontmatter = (content) => parseFrontmatter(content).body;
