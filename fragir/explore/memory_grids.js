// Shared memory as lines of 32 banks: the rules of `fragir/draw/memory.py`.

import { BANKS, LINE, WORD, accesses, addresses } from "./memory.js";
import { MOST_CELLS } from "./grids.js";
import { LayoutError } from "./layout.js";

export const bankOf = (byte) => Math.floor(byte / WORD) % BANKS;

// {grid, passes, chosen, unit}; `chosen` of the passes is drawn, the worst unless it is named.
export function memoryGrid(layout, { bits = null, access = null, which = null } = {}) {
  if (layout.count > MOST_CELLS) throw new LayoutError(`a drawing of ${layout.count} cells cannot be read`);
  const { places, unit } = addresses(layout, bits);
  if (!access) return { grid: lines(layout, places, unit, new Map(), new Set()), unit, passes: [] };
  const passes = accesses(layout, access, unit);
  if (!passes.length) throw new LayoutError("no lane of the access holds anything");
  const most = Math.max(...passes.map((one) => one.passes));
  const number = which !== null && passes[which] ? which : passes.findIndex((one) => one.passes === most);
  const chosen = passes[number];
  const readers = new Map();
  chosen.bytes.forEach((first, i) => {
    for (let byte = first; byte < first + chosen.width; byte += unit) {
      if (!readers.has(byte)) readers.set(byte, []);
      readers.get(byte).push(chosen.first + i);
    }
  });
  const grid = lines(layout, places, unit, readers, colliding(chosen));
  return { grid, unit, passes, number, chosen };
}

// The words that share a bank with another one.
function colliding({ bytes, width }) {
  const banks = new Map();
  for (const first of bytes)
    for (let word = Math.floor(first / WORD); word <= Math.floor((first + width - 1) / WORD); word++) {
      if (!banks.has(word % BANKS)) banks.set(word % BANKS, new Set());
      banks.get(word % BANKS).add(word);
    }
  return new Set([...banks.values()].filter((words) => words.size > 1).flatMap((words) => [...words]));
}

function lines(layout, places, unit, readers, marked) {
  const at = new Map();
  let last = 0;
  for (const [slot, byte] of places) {
    if (!at.has(byte)) at.set(byte, []);
    at.get(byte).push(slot);
    last = Math.max(last, byte);
  }
  const across = Math.max(1, Math.floor(LINE / unit));
  const read = new Set([...readers.keys()].map((byte) => Math.floor(byte / LINE)));
  const count = read.size || Math.floor(last / LINE) + 1;
  if (count * across > MOST_CELLS) throw new LayoutError(`a drawing of ${count * across} cells cannot be read`);
  const shown = read.size ? [...read].sort((a, b) => a - b) : [...Array(count).keys()];
  return {
    title: `a column is ${unit} bytes, a bank 4`,
    rowName: "line",
    colName: "at",
    rows: shown.length,
    cols: across,
    rowLabels: shown,
    names: layout.axes.map((axis) => axis.name),
    cell: (r, c) => {
      const byte = shown[r] * LINE + c * unit;
      const slots = at.get(byte) ?? [];
      const found = { at: [shown[r], c], byte, slots, shade: null, key: null, label: "-" };
      if (!slots.length) return found;
      const text = slots[0].join(",");
      if (!readers.size) {
        const shade = slots[0].length > 1 ? slots[0].at(-2) * 4 : bankOf(byte);
        return { ...found, label: text, shade, key: slots[0] };
      }
      const lanes = readers.get(byte) ?? [];
      if (!lanes.length) return { ...found, label: text, key: slots[0] };
      const label = `T${lanes[0]}${lanes.length > 1 ? "+" : ""} ${text}`;
      return { ...found, label, lanes, shade: lanes[0], mark: marked.has(Math.floor(byte / WORD)) };
    },
  };
}
