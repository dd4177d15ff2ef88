// A grid as a table: cells are pointed at, tapped, or reached by arrow keys; repeats are left out.

import { h } from "./dom.js";
import { MANY, folded } from "./folding.js";

export const SHADES = 32;

// {element, cells: Map from "row,col,..." to the cell's element, grid, folds, width}.
// `told`: {hover(cell, at), leave(), pick(cell, at)}, each with the grid's cell.
export function table(grid, { name, caption, all = false, told = {} }) {
  const shown = !all && grid.rows * grid.cols > MANY ? folded(keysOf(grid)) : everything(grid);
  const gaps = [gapOf(shown.folds, 0), gapOf(shown.folds, 1)];
  const cells = new Map();
  const known = new WeakMap();
  const lines = [];
  let width = 2;
  const head = h("tr", {}, h("th", { class: "corner", scope: "col" }, `${grid.rowName}\\${grid.colName}`));
  shown.cols.forEach((col, x) => {
    if (x === gaps[1]) head.append(h("th", { class: "gap" }, "⋯"));
    head.append(h("th", { scope: "col" }, String(col)));
  });
  shown.rows.forEach((row, y) => {
    const label = grid.rowLabels ? grid.rowLabels[row] : row;
    const line = h("tr", {}, h("th", { scope: "row" }, String(label)));
    if (y === gaps[0]) lines.push(dots(shown.cols.length + (gaps[1] === null ? 0 : 1)));
    const made = [];
    shown.cols.forEach((col, x) => {
      if (x === gaps[1]) line.append(h("td", { class: "gap", "aria-hidden": "true" }, "⋯"));
      const cell = grid.cell(row, col);
      const element = document.createElement("td");
      element.tabIndex = -1;
      const shade = cell.shade === null || cell.shade === undefined ? "none" : cell.shade % SHADES;
      element.className = `s${shade}${cell.mark ? " framed" : ""}`;
      element.dataset.at = cell.at.join(",");
      element.textContent = cell.label;
      width = Math.max(width, cell.label.length);
      cells.set(element.dataset.at, element);
      known.set(element, { cell, x, y });
      line.append(element);
      made.push(element);
    });
    lines.push(line);
    line.made = made;
  });
  const body = h("tbody", {}, lines);
  const element = h("table", { role: "grid", "aria-label": name }, h("thead", {}, head), body);
  const rows = lines.filter((line) => line.made).map((line) => line.made);
  if (rows[0]?.[0]) rows[0][0].tabIndex = 0;
  listen(element, rows, known, told);
  const words = shown.folds.map((fold) => h("p", { class: "folds" }, foldWords(fold, grid)));
  const figure = h(
    "figure",
    { class: "grid", "data-grid": name },
    h("figcaption", {}, caption ?? name, grid.title ? h("span", { class: "title" }, grid.title) : null),
    h("div", { class: "scroll" }, element),
    words,
  );
  return { element: figure, cells, grid, folds: shown.folds, width, cellOf: (td) => known.get(td)?.cell };
}

const keysOf = (grid) =>
  Array.from({ length: grid.rows }, (_, r) =>
    Array.from({ length: grid.cols }, (_, c) => (grid.key ? grid.key(r, c) : (grid.cell(r, c).key ?? null))),
  );

const everything = ({ rows, cols }) => ({
  rows: [...Array(rows).keys()],
  cols: [...Array(cols).keys()],
  folds: [],
});

const gapOf = (folds, axis) => folds.find((fold) => fold.axis === axis)?.period ?? null;

function dots(count) {
  const line = h("tr", { class: "gap", "aria-hidden": "true" }, h("th", {}, "⋮"));
  for (let i = 0; i < count; i++) line.append(h("td", { class: "gap" }, i % 4 ? "" : "⋮"));
  return line;
}

// `columns 8 to 247 repeat the first 8: element + 4 each time`.
export function foldWords({ axis, period, times, steps }, { names }) {
  const grown = names
    .map((name, i) => [name, steps[i]])
    .filter(([, step]) => step)
    .map(([name, step]) => (step > 0 ? `${name} + ${step}` : `${name} - ${-step}`));
  const how = grown.length ? `${grown.join(", ")} each time` : "all alike";
  const last = period * (times - 1) - 1;
  return `${["rows", "columns"][axis]} ${period} to ${last} repeat the first ${period}: ${how}`;
}

function listen(element, rows, known, told) {
  const found = (event) => {
    const td = event.target.closest("td[data-at]");
    return td && known.has(td) ? td : null;
  };
  const say = (kind, td) => td && told[kind]?.(known.get(td).cell, td);
  element.addEventListener("pointerover", (event) => event.pointerType !== "touch" && say("hover", found(event)));
  element.addEventListener("pointerleave", (event) => event.pointerType !== "touch" && told.leave?.());
  element.addEventListener("focusin", (event) => {
    const td = found(event);
    if (!td) return;
    element.querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
    td.tabIndex = 0;
    say("hover", td);
  });
  element.addEventListener("focusout", () => told.leave?.());
  element.addEventListener("click", (event) => say("pick", found(event)));
  element.addEventListener("keydown", (event) => {
    const td = found(event);
    if (!td || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      say("pick", td);
      return;
    }
    const { x, y } = known.get(td);
    const last = rows[y].length - 1;
    const next = {
      ArrowUp: [x, y - 1],
      ArrowDown: [x, y + 1],
      ArrowLeft: [x - 1, y],
      ArrowRight: [x + 1, y],
      Home: [0, y],
      End: [last, y],
    }[event.key];
    if (!next) return;
    event.preventDefault();
    event.stopPropagation();
    rows[next[1]]?.[next[0]]?.focus();
  });
}
