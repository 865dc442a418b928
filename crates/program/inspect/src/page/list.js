// A list of many rows of one height, of which only the visible ones are elements. Rows are numbered from the top.

/** The rows that are drawn above and below the visible ones. */
const MARGIN = 8;
/** Browsers cannot scroll elements that are higher than this, in pixels. */
const MAX_HEIGHT = 15_000_000;

export class VirtualList {
  selected = -1;
  #nodes = [];
  #size = 0;

  /**
   * `create` returns a new row, `draw(node, index)` fills it. `onselect(index)` is called when the selection moves,
   * `onopen(index)` when the user opens a row.
   */
  constructor({ scroller, create, draw, onselect, onopen }) {
    Object.assign(this, { scroller, create, draw, onselect, onopen });
    this.canvas = document.createElement('div');
    this.canvas.className = 'canvas';
    this.canvas.setAttribute('role', 'presentation');
    scroller.append(this.canvas);
    scroller.addEventListener('scroll', () => this.redraw(), { passive: true });
    scroller.addEventListener('click', (event) => this.#click(event));
    new ResizeObserver(() => this.redraw()).observe(scroller);
  }

  get size() {
    return this.#size;
  }

  get isAtTop() {
    return this.scroller.scrollTop < 4;
  }

  #rowHeight() {
    return parseFloat(getComputedStyle(this.scroller).getPropertyValue('--row')) || 32;
  }

  /** Sets the number of rows. `added` is how many are new at the top; what is visible stays where it is. */
  resize(size, added = 0) {
    const keep = added > 0 && !this.isAtTop;
    this.#size = size;
    if (this.selected >= 0) this.selected += added;
    if (this.selected >= size) this.selected = -1;
    this.canvas.style.height = `${Math.min(MAX_HEIGHT, size * this.#rowHeight())}px`;
    if (keep) this.scroller.scrollTop += added * this.#rowHeight();
    this.redraw();
  }

  /** Draws the visible rows again. */
  redraw() {
    const height = this.#rowHeight();
    const { scrollTop, clientHeight } = this.scroller;
    const first = Math.max(0, Math.floor(scrollTop / height) - MARGIN);
    const most = Math.floor(MAX_HEIGHT / height);
    const last = Math.min(this.#size, most, Math.ceil((scrollTop + clientHeight) / height) + MARGIN);
    const wanted = Math.max(0, last - first);
    while (this.#nodes.length < wanted) {
      const node = this.create();
      this.#nodes.push(node);
      this.canvas.append(node);
    }
    while (this.#nodes.length > wanted) this.#nodes.pop().remove();
    // A row keeps its element while it is visible, so that a click is not lost.
    for (let index = first; index < last; index += 1) {
      const node = this.#nodes[index % wanted];
      node.style.transform = `translateY(${index * height}px)`;
      node.dataset.index = index;
      node.id = `row-${index}`;
      node.setAttribute('aria-posinset', index + 1);
      node.setAttribute('aria-setsize', this.#size);
      node.setAttribute('aria-selected', index === this.selected);
      this.draw(node, index);
    }
    const isVisible = this.selected >= first && this.selected < last;
    if (isVisible) this.scroller.setAttribute('aria-activedescendant', `row-${this.selected}`);
    else this.scroller.removeAttribute('aria-activedescendant');
  }

  /** Selects a row and scrolls to it. */
  select(index) {
    if (this.#size === 0) return;
    this.selected = Math.max(0, Math.min(this.#size - 1, index));
    const height = this.#rowHeight();
    const top = this.selected * height;
    const { scrollTop, clientHeight } = this.scroller;
    if (top < scrollTop) this.scroller.scrollTop = top;
    else if (top + height > scrollTop + clientHeight) this.scroller.scrollTop = top + height - clientHeight;
    this.redraw();
    this.onselect(this.selected);
  }

  /** Handles a key. Returns whether the list used it. */
  press(key) {
    const page = Math.max(1, Math.floor(this.scroller.clientHeight / this.#rowHeight()) - 1);
    const moves = {
      ArrowDown: 1,
      j: 1,
      ArrowUp: -1,
      k: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (key === 'Enter' && this.selected >= 0) this.onopen(this.selected);
    else if (key in moves) this.select(Math.max(0, this.selected + moves[key]));
    else return false;
    return true;
  }

  #click(event) {
    const row = event.target.closest('[data-index]');
    if (!row) return;
    this.select(Number(row.dataset.index));
    this.onopen(this.selected);
  }
}
