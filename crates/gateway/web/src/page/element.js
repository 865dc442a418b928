// Builds elements. Text is always set as text, never parsed as HTML.

const SVG = 'http://www.w3.org/2000/svg';

/** Creates an element. Attributes that begin with `on` are listeners; `null` and `false` children are left out. */
export function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null && child !== false));
  return node;
}

/** Creates an icon of the sprite in index.html. */
export function icon(name) {
  const svg = document.createElementNS(SVG, 'svg');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS(SVG, 'use');
  use.setAttribute('href', `#i-${name}`);
  svg.append(use);
  return svg;
}

/** Creates a button that copies a text and confirms it. */
export function copyButton(text, label) {
  const button = element('button', { type: 'button', class: 'copy', 'aria-label': label, title: label }, icon('copy'));
  button.addEventListener('click', async () => {
    const copied = await copy(text());
    button.replaceChildren(icon(copied ? 'check' : 'alert'));
    setTimeout(() => button.replaceChildren(icon('copy')), 1500);
  });
  return button;
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}

/** Formats a number of bytes. */
export function fileSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${Math.round(bytes / 1024)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}
