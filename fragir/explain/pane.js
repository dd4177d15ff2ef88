// A list of rows of one height of which only those in sight are in the document.

export const HEIGHT = 19;
const BEYOND = 24; // rows above and below those in sight

export class Pane {
  // fill(element, row, number) makes a row; widest: letters of the longest line
  constructor(root, fill) {
    this.root = root;
    this.fill = fill;
    this.rows = [];
    this.shown = new Map();
    this.inner = document.createElement("div");
    this.inner.className = "rows";
    root.replaceChildren(this.inner);
    root.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(root);
  }

  set(rows, widest) {
    this.rows = rows;
    this.inner.style.height = `${rows.length * HEIGHT + 40}px`;
    this.inner.style.minWidth = `calc(${widest + 2}ch + 6.2em)`;
    this.redraw();
  }

  redraw() {
    this.shown.forEach((element) => element.remove());
    this.shown.clear();
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.root.scrollTop / HEIGHT) - BEYOND);
    const count = Math.ceil(this.root.clientHeight / HEIGHT) + 2 * BEYOND;
    const behind = Math.min(this.rows.length, first + count);
    for (const [number, element] of this.shown)
      if (number < first || number >= behind) {
        element.remove();
        this.shown.delete(number);
      }
    for (let number = first; number < behind; number++) {
      if (this.shown.has(number)) continue;
      const element = document.createElement("div");
      element.className = "row";
      element.style.top = `${number * HEIGHT}px`;
      this.fill(element, this.rows[number], number);
      this.inner.append(element);
      this.shown.set(number, element);
    }
  }

  // Brings a row into sight, to the middle unless it is in sight.
  show(number, always = false) {
    const top = number * HEIGHT;
    const height = this.root.clientHeight;
    const inSight = top >= this.root.scrollTop && top + HEIGHT <= this.root.scrollTop + height;
    if (always || !inSight) this.root.scrollTop = Math.max(0, top - height / 2);
    this.draw();
  }
}
