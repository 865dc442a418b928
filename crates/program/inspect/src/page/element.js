// Builds elements. Text is always set as text, never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child != null && child !== false));
  return node;
}

/** Creates an element. Attributes that begin with `on` are listeners; `null` and `false` children are left out. */
export const element = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);

/** Creates an element of a drawing. */
export const shape = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

/** Creates an icon of the sprite in index.html. */
export const icon = (name) =>
  shape('svg', { class: 'icon', 'aria-hidden': 'true' }, shape('use', { href: `#i-${name}` }));

/** Returns the element with an id. */
export const part = (id) => document.getElementById(id);

/** Creates a button with a text and an optional icon. */
export const button = (text, onclick, { image = null, ...attributes } = {}) =>
  element('button', { type: 'button', onclick, ...attributes }, image && icon(image), element('span', {}, text));

/** Creates a button that copies a text and confirms it. */
export function copyButton(label, text) {
  const mark = element('span', {}, label);
  const node = element('button', { type: 'button', class: 'small' }, icon('copy'), mark);
  node.addEventListener('click', async () => {
    const copied = await copy(text());
    mark.textContent = copied ? 'Copied' : 'Copying is not allowed';
    setTimeout(() => {
      mark.textContent = label;
    }, 1500);
  });
  return node;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Creates what a view shows when it has nothing else to show. */
export const emptyState = (title, ...lines) =>
  element(
    'div',
    { class: 'empty' },
    element('h2', {}, title),
    lines.map((line) => (typeof line === 'string' ? element('p', {}, line) : line)),
  );

/** Replaces an element's children. The focus stays on the child with the same `data-key`. */
export function replaceKeepingFocus(parent, ...children) {
  const key = document.activeElement?.dataset?.key;
  const hadFocus = key !== undefined && parent.contains(document.activeElement);
  parent.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false));
  if (hadFocus) [...parent.querySelectorAll('[data-key]')].find((node) => node.dataset.key === key)?.focus();
}
