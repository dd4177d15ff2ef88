// The table of instructions as the page has it, and what can be asked of one.

import { digits } from "./layout.js";
import { readModes } from "./modes.js";

const NARROW = { e2m1: [2, 5], e2m3: [0, 5], e3m2: [0, 5] }; // bits of an 8-bit container

// The instructions of the packed table that `fragir/explore/tables.py` writes.
export function instructions(data) {
  return data.instructions.map((row) => {
    const [mnemonic, family, shape, operands, targets, lowering, selectors, blocks, refused] = row;
    return {
      mnemonic,
      family,
      shape,
      operands: Object.fromEntries(data.operandSets[operands].map((i) => operand(data, i))),
      targets: data.targetSets[targets],
      lowering: data.loweringSets[lowering],
      selectors: data.selectorSets[selectors],
      blocks,
      refused: data.reasons[refused] ?? null,
    };
  });
}

function operand(data, index) {
  const [name, count, type, cls, element, layout, shape, chunk, forms] = data.operands[index];
  const text = layout < 0 ? null : data.layouts[layout];
  const bits = data.bits?.[element] ?? 0;
  return [name, { name, count, type, cls, element, bits, text, shape, chunk, forms: data.forms[forms] ?? [] }];
}

const MOST_KEPT = 64; // layouts, with what they know of their holders
const kept = new Map();

// The operand's layout under the instruction's immediates: which lanes supply it.
export function operandLayout(found, immediates = {}) {
  const { selector, byte, thread, offset, blocks } = immediates;
  const key = [found.name, found.text, selector, byte, thread, offset, blocks].join("|");
  if (!kept.has(key)) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, selected(found, immediates));
  }
  return kept.get(key);
}

function selected(found, immediates) {
  if (found.name === "registers" && immediates.offset)
    return readModes(found.text.replace(/^(lane \[16:\(1,0\) 2:)\(0,0\)/, `$1(0,${immediates.offset})`));
  const layout = readModes(found.text);
  const chosen = {};
  if (found.name === "e" && immediates.selector) chosen.lane = immediates.selector;
  if (found.name === "sfa" || found.name === "sfb") {
    chosen.lane = immediates.thread ?? 0;
    chosen.element = Math.floor((immediates.byte ?? 0) / (immediates.blocks ?? 1));
  }
  const { modes, dims, offset, where, text } = layout;
  if (!where.length) return layout;
  const conditions = where.map((c) => ({ ...c, equals: chosen[c.axis] ?? c.equals }));
  const words = conditions.map((c) => `${c.axis}/${c.divide}%${c.modulo}==${c.equals}`).join(" and ");
  const said = text.replace(/ where .*?(?= dims |$)/, ` where ${words}`);
  return digits(modes, dims, offset, conditions, said);
}

// The immediates that an operand's layout depends on, with their values.
export function immediatesOf(instruction, name) {
  if (name === "registers" && instruction.mnemonic.includes(".16x32bx2.")) return { offset: null };
  if (instruction.operands[name].text === null) return {}; // in tensor memory
  if (name === "e") return { selector: instruction.selectors };
  const threads = { sfa: 2, sfb: 4 }[name];
  if (!threads) return {};
  const bytes = [0, 1, 2, 3].filter((byte) => byte % instruction.blocks === 0);
  return { byte: bytes, thread: [...Array(threads).keys()] };
}

// The matrix's extent: of tcgen05 that of the layout, which an offset may widen.
export const shapeOf = (instruction, found, layout) =>
  instruction.family.startsWith("tcgen05") ? layout.shape : found.shape;

// Where an element of a lane is: its register and bits.
export function place(found, element, elements) {
  const width = found.type.endsWith("64") ? 64 : 32;
  const size = (width * found.count) / elements;
  const [low, high] = size === 8 ? (NARROW[found.element] ?? [0, 7]) : [0, size - 1];
  const bit = (element * size) % width;
  return { register: Math.floor((element * size) / width), low: bit + low, high: bit + high };
}

export function dimsOfOperand(found, layout) {
  if (found.name === "e") return ["row", "chunk"];
  return { sfa: ["row", "block"], sfb: ["block", "col"] }[found.name] ?? layout.dims;
}

const ALONG = { a: "row", e: "row", sfa: "row", b: "col", sfb: "col" };

// What an element of D is computed from: a row of A, a column of B, one of C.
export function contributions(found, point, immediates = {}) {
  const { operands, family } = found;
  const holders = (name, at) => {
    const one = operands[name];
    if (one.text === null) return [];
    const layout = operandLayout(one, { ...immediates, blocks: found.blocks });
    return layout.holders.get(at.join(",")) ?? [];
  };
  const one = (name, at) => ({ operand: name, point: at, holders: holders(name, at) });
  if (family === "ldmatrix" || family === "stmatrix")
    return [one("addresses", [point[0], 0, ...point.slice(2)])];
  if (!operands.d) return [];
  if (family === "movmatrix") return [one("a", point)];
  const sources = [];
  for (const name of Object.keys(operands)) {
    if (name === "d" || name === "a-shared") continue;
    if (name === "c") sources.push(one("c", point));
    else if (ALONG[name]) {
      const byRow = ALONG[name] === "row";
      const length = operands[name].shape[byRow ? 1 : 0];
      for (let k = 0; k < length; k++)
        sources.push(one(name, byRow ? [point[0], k, ...point.slice(2)] : [k, ...point.slice(1)]));
    }
  }
  return sources;
}

// What an element of another operand goes into: [operand, points], or null.
export function feeds(found, name, point) {
  const { operands, family } = found;
  const along = (target, fixed, dim) =>
    Array.from({ length: operands[target].shape[dim] }, (_, x) => fixed(x));
  if (name === "addresses")
    return ["registers", along("registers", (x) => [point[0], x, ...point.slice(2)], 1)];
  if (!operands.d || name === "d") return null;
  if (family === "movmatrix" || name === "c") return ["d", [point]];
  if (ALONG[name] === "row") return ["d", along("d", (x) => [point[0], x, ...point.slice(2)], 1)];
  if (ALONG[name] === "col") return ["d", along("d", (x) => [x, ...point.slice(1)], 0)];
  return null;
}
