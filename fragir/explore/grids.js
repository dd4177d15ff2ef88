// Layouts as matrices of cells, before anything is drawn: the rules of `fragir/draw`.
// A grid is {title, rowName, colName, rows, cols, names, cell}; a cell {label, shade, key, note,
// slots, point, mark}, where shade is null in empty ones and key has the label's numbers.

import { LayoutError, isRegisters } from "./layout.js";

export const MOST_CELLS = 1 << 16;
export const COLOURS = ["lane", "warp", "register", "element"];
const LETTERS = { lane: "T", warp: "W", element: "", block: "B" };

export function named(layout, slot) {
  return Object.fromEntries(layout.axes.map((axis, i) => [axis.name, slot[i]]));
}

// The number that colours a slot; `per` elements are in a register.
export function shadeBy(colour, per = 1) {
  return (at) => {
    if (colour === "warp") return 4 * (at.warp ?? Math.floor((at.lane ?? 0) / 32)) + 2;
    if (colour === "register") return Math.floor((at.element ?? 0) / per);
    if (colour === "element") return at.element ?? 0;
    return (at.lane ?? 0) + 32 * (at.warp ?? 0);
  };
}

// Whether lanes and columns of tensor memory hold it, and the axes within a column.
export const isTensorMemory = (layout) => layout.has("lane") && layout.has("column");
const within = (layout) => layout.axes.map(({ name }) => name).filter((name) => !["cta", "lane", "column"].includes(name));

// `W1 T5:3`, element 3 of lane 5 of warp 1; of tensor memory `L5:3`, column 3 of lane 5.
export function slotLabel(layout, slot) {
  const at = named(layout, slot);
  if (isTensorMemory(layout)) {
    const inside = within(layout).map((name) => `.${at[name]}`).join("");
    return `${"cta" in at ? `CTA${at.cta} ` : ""}L${at.lane}:${at.column}${inside}`;
  }
  if (layout.size("warp") === 1) delete at.warp;
  for (const axis of layout.axes)
    if (axis.size === 1 && axis.name === "warp") delete at[axis.name];
  const before = ["block", "warp", "lane"].filter((n) => n in at).map((n) => `${LETTERS[n]}${at[n]}`);
  const others = Object.keys(at).filter((n) => !(n in LETTERS)).map((n) => `${n}${at[n]}`);
  const element = "element" in at ? `:${at.element}` : "";
  return [others.join(" "), before.join(" ") + element].filter(Boolean).join(" ");
}

export const slotWords = (layout, slot) =>
  layout.axes.map((axis, i) => `${axis.name} ${slot[i]}`).join(", ");

function bounded(shape) {
  const cells = shape.reduce((a, b) => a * b, 1);
  if (cells > MOST_CELLS) throw new LayoutError(`a drawing of ${cells} cells cannot be read`);
}

// One grid for every value of the coordinates in front of the last two; of an instruction
// (`behind`) for those behind the first two.
function grids(names, shape, names2, cell, behind = false, key = null) {
  bounded(shape);
  const rank = shape.length;
  const outer = rank < 3 ? [] : behind ? names.slice(2) : names.slice(0, -2);
  const sizes = rank < 3 ? [] : behind ? shape.slice(2) : shape.slice(0, -2);
  const [rows, cols] = rank === 1 ? [1, shape[0]] : rank === 0 ? [1, 1] : behind ? shape : shape.slice(-2);
  const [rowName, colName] = rank < 2 ? ["", names[0] ?? ""] : behind ? names : names.slice(-2);
  const found = [];
  const count = sizes.reduce((a, b) => a * b, 1);
  for (let number = 0; number < count; number++) {
    const rest = [];
    let left = number;
    for (let i = sizes.length - 1; i >= 0; i--) {
      rest.unshift(left % sizes[i]);
      left = Math.floor(left / sizes[i]);
    }
    const at = (r, c) => {
      const inner = rank === 0 ? [] : rank === 1 ? [c] : [r, c];
      return behind ? [...inner, ...rest] : [...rest, ...inner];
    };
    found.push({
      title: outer.map((name, i) => `${name} ${rest[i]}`).join(", "),
      rowName,
      colName,
      rows,
      cols,
      names: names2,
      cell: (r, c) => ({ at: at(r, c), ...cell(at(r, c)) }),
      key: key && ((r, c) => key(at(r, c))),
    });
  }
  return found;
}

const EMPTY = { label: "-", shade: null, key: null };

// Who holds each element.
export function matrixGrids(layout, shade, { shape = layout.shape, dims = layout.dims, behind = false } = {}) {
  const names = layout.axes.map((axis) => axis.name);
  return grids(
    dims,
    shape,
    names,
    (point) => {
      const slots = layout.holders.get(point.join(",")) ?? [];
      if (!slots.length) return { ...EMPTY, point, slots };
      const label = slotLabel(layout, slots[0]) + (slots.length > 1 ? "+" : "");
      return { label, shade: shade(named(layout, slots[0])), key: slots[0], point, slots };
    },
    behind,
    (point) => layout.holders.get(point.join(","))?.[0] ?? null,
  );
}

// What each lane holds: a grid for every warp, and for every axis that is neither lane nor element.
export function hardwareGrids(layout, shade) {
  if (!isRegisters(layout)) throw new LayoutError("the view of lanes is of registers; this lies in memory");
  const all = layout.axes.map((axis) => axis.name);
  const last = ["lane", isTensorMemory(layout) ? (within(layout)[0] ?? "column") : "element"];
  const order = [...all.filter((name) => !last.includes(name)), ...last.filter((name) => all.includes(name))];
  const place = all.map((name) => order.indexOf(name));
  return grids(order, order.map((name) => layout.size(name)), layout.dims, (at) => {
    const slot = place.map((i) => at[i]);
    const point = layout.at(slot);
    if (point === null) return { ...EMPTY, slots: [slot], point };
    const label = point.join(",");
    return { label, shade: shade(named(layout, slot)), key: point, point, slots: [slot] };
  });
}

// Where each element stands, of a layout that is none of registers.
export function standingGrids(layout, shade = (slot) => slot.at(-2) ?? 0) {
  const names = layout.axes.map((axis) => axis.name);
  return grids(names, layout.axes.map((axis) => axis.size), layout.dims, (slot) => {
    const point = layout.at(slot);
    if (point === null) return { ...EMPTY, slots: [slot], point };
    return { label: point.join(","), shade: shade(slot, point), key: point, point, slots: [slot] };
  });
}

// The matrix view of any layout.
export const layoutGrids = (layout, colour, per) =>
  isRegisters(layout) ? matrixGrids(layout, shadeBy(colour, per)) : standingGrids(layout);
