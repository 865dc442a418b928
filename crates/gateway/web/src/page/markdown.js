// Shows Markdown. The parser's tokens become elements one by one, so nothing in a text can become HTML.

import MarkdownIt from './markdown-it.js';
import { copyButton, element } from './element.js';

const SAFE_LINK = /^(https?:|mailto:)/i;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: true });
parser.validateLink = (link) => SAFE_LINK.test(link.trim());

/** Headings of messages are below the page's own. */
const TAGS = { h1: 'h2', h2: 'h3', h3: 'h4', h4: 'h5', h5: 'h6' };
/** Elements whose direction follows their text. */
const OWN_DIRECTION = new Set(['p', 'ul', 'ol', 'h2', 'h3', 'h4', 'h5', 'h6', 'td', 'th', 'blockquote']);

/** Shows a text that may grow. Blocks that did not change keep their elements, so a selection survives streaming. */
export class MarkdownView {
  #blocks = [];

  constructor() {
    this.node = element('div', { class: 'markdown' });
  }

  update(text) {
    const lines = text.split('\n');
    const blocks = topLevelBlocks(parser.parse(text, {}));
    blocks.forEach((tokens, index) => this.#show(index, tokens, lines));
    for (const block of this.#blocks.splice(blocks.length)) block.node.remove();
  }

  #show(index, tokens, lines) {
    const [first] = tokens;
    const source = first.type + lines.slice(...(first.map ?? [0])).join('\n');
    const old = this.#blocks[index];
    if (old?.source === source) return;
    if (old && first.type === 'fence' && old.info === first.info && first.content.startsWith(old.content)) {
      // Long code would lose its scroll position with each new line.
      old.node.querySelector('code').append(first.content.slice(old.content.length));
      Object.assign(old, { source, content: first.content });
      return;
    }
    const node = build(tokens);
    if (old) old.node.replaceWith(node);
    else this.node.append(node);
    const isFence = first.type === 'fence';
    this.#blocks[index] = { node, source, info: isFence && first.info, content: isFence && first.content };
  }
}

/** Groups tokens: each group is one block of the top level. */
function topLevelBlocks(tokens) {
  const blocks = [];
  let depth = 0;
  for (const token of tokens) {
    if (depth === 0) blocks.push([]);
    blocks.at(-1).push(token);
    depth += token.nesting;
  }
  return blocks;
}

/** Builds the one element that the tokens of a block describe. */
function build(tokens) {
  const root = document.createDocumentFragment();
  const open = [root];
  for (const token of tokens) append(token, open);
  return root.firstElementChild ?? element('p');
}

function append(token, open) {
  const parent = open.at(-1);
  if (token.type === 'inline') {
    for (const child of token.children) append(child, open);
  } else if (token.nesting === -1) {
    if (!token.hidden) open.pop();
  } else if (token.nesting === 1) {
    if (token.hidden) return;
    const { outer, inner } = container(token);
    parent.append(outer);
    open.push(inner);
  } else {
    parent.append((LEAVES[token.type] ?? LEAVES.text)(token));
  }
}

const LEAVES = {
  text: (token) => token.content,
  softbreak: () => element('br'),
  hardbreak: () => element('br'),
  hr: () => element('hr'),
  code_inline: (token) => element('code', { dir: 'ltr' }, token.content),
  code_block: codeBlock,
  fence: codeBlock,
  // An image of another site would tell it who reads the answer, so it is only linked.
  image: (token) => link(token.attrGet('src'), token.content || 'image'),
};

function container(token) {
  if (token.tag === 'a') {
    const node = link(token.attrGet('href'));
    return { outer: node, inner: node };
  }
  const tag = TAGS[token.tag] ?? token.tag;
  const align = /text-align:\s*(\w+)/.exec(token.attrGet('style') ?? '')?.[1];
  const inner = element(tag, {
    start: tag === 'ol' && token.attrGet('start'),
    class: align && `align-${align}`,
    dir: OWN_DIRECTION.has(tag) && 'auto',
  });
  const outer = tag === 'table' ? element('div', { class: 'scroll', tabindex: '0' }, inner) : inner;
  return { outer, inner };
}

function link(address, ...children) {
  const href = SAFE_LINK.test(address ?? '') && address;
  return element('a', { href, target: '_blank', rel: 'noopener noreferrer' }, ...children);
}

function codeBlock(token) {
  const language = token.info?.trim().split(/\s/)[0] ?? '';
  const code = element('code', {}, token.content);
  return element('div', { class: 'code', dir: 'ltr' },
    element('div', { class: 'code-head' },
      element('span', {}, language || 'text'),
      copyButton(() => code.textContent, 'Copy code')),
    element('pre', { tabindex: '0' }, code));
}
