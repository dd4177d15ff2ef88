// Shared memory: 32 banks of 4 bytes, and what an access of a fragment takes.

import { LayoutError, composed } from "./layout.js";

export const BANKS = 32;
export const WORD = 4;
export const LINE = BANKS * WORD;

// Bytes at which the slots of a layout of memory stand: {places: [[slot, byte]], unit}.
export function addresses(layout, bits = null) {
  if (layout.dims.length !== 1 || layout.has("lane") || layout.has("element"))
    throw new LayoutError("a layout of memory goes from row and col to a byte or to an index");
  const held = [...layout.slots()].filter(([, point]) => point !== null);
  if (layout.dims[0] !== "byte") {
    if (bits === null || bits % 8) throw new LayoutError("an index needs the bytes of an element");
    return { places: held.map(([slot, [x]]) => [slot, (x * bits) / 8]), unit: bits / 8 };
  }
  const sorted = [...new Set(held.map(([, [x]]) => x))].sort((a, b) => a - b);
  let least = Infinity;
  for (let i = 1; i < sorted.length; i++) least = Math.min(least, sorted[i] - sorted[i - 1]);
  const unit = bits !== null && bits % 8 === 0 ? bits / 8 : Number.isFinite(least) ? least : 1;
  return { places: held.map(([slot, [x]]) => [slot, x]), unit };
}

export function wavefronts(bytes, width) {
  const together = { 8: 16, 16: 8 }[width] ?? 32;
  let passes = 0;
  for (let start = 0; start < bytes.length; start += together) {
    const banks = new Map();
    for (const byte of bytes.slice(start, start + together))
      for (let word = Math.floor(byte / WORD); word <= Math.floor((byte + width - 1) / WORD); word++) {
        if (!banks.has(word % BANKS)) banks.set(word % BANKS, new Set());
        banks.get(word % BANKS).add(word);
      }
    passes += Math.max(0, ...[...banks.values()].map((words) => words.size));
  }
  return passes;
}

// What warp 0 does to read its fragment by the widest accesses: [{element, first, bytes, width, passes}].
export function accesses(layout, fragment, unit) {
  const joined = composed(layout, fragment);
  const scale = layout.dims[0] === "byte" ? 1 : unit;
  const lanes = Math.min(32, joined.size("lane"));
  const count = joined.size("element");
  const table = Array.from({ length: count }, (_, element) =>
    Array.from({ length: lanes }, (_, lane) => {
      const point = joined.of({ lane, element });
      return point === null ? null : point[0] * scale;
    }),
  );
  const width = [16, 8, 4, 2, 1].find((w) => isWide(table, unit, w));
  const step = Math.max(1, Math.floor(width / unit));
  const together = { 8: 16, 16: 8 }[width] ?? 32;
  const found = [];
  for (let element = 0; element < count; element += step)
    for (let first = 0; first < lanes; first += together) {
      const bytes = table[element].slice(first, first + together).filter((x) => x !== null);
      if (bytes.length) found.push({ element, first, bytes, width, passes: wavefronts(bytes, width) });
    }
  return found;
}

function isWide(table, unit, width) {
  const step = Math.floor(width / unit);
  if (step === 0) return width === 1;
  if (step * unit !== width || table.length % step) return width === unit;
  for (let start = 0; start < table.length; start += step)
    for (let lane = 0; lane < table[0].length; lane++) {
      const column = table.slice(start, start + step).map((row) => row[lane]);
      if (column[0] === null ? column.some((x) => x !== null) : column[0] % width !== 0) return false;
      if (column[0] !== null && column.some((x, i) => x !== column[0] + unit * i)) return false;
    }
  return true;
}
