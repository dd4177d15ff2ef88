// Operands of tcgen05.mma and tcgen05.cp by name, in tensor memory and, with `by` a tcgen05.ld or
// .st, in registers: the rules of `fragir/isa/tensor_names.py` and `tensor_layouts.py`.

import { LayoutError, composed } from "./layout.js";
import { readModes } from "./modes.js";

const NAME = /^\s*(tcgen05\.(?:mma|cp)\.[\w.:]+):([a-z][a-z-]*)(?:\s+by\s+([\w.:]+)(?:\s+at\s+(\d+)\s*,\s*(\d+))?)?\s*$/;
const SHAPE = /^m(\d+)n(\d+)k(\d+)$/;
const [LANES, WARP, HALF, WIDE] = [128, 32, 16, 96];
const SCALES = ["ue8m0", "ue4m3"];
const HARDWARE = ["cta", "lane", "column"];
const FORM = /^(?:kind::\w+|cta_group::[12]|sp|ws|block_scale|block16|block32|scale_vec::[124]X)$/;

export const isTensor = (text) => NAME.test(text);

// The layout that a text names; `rules` are those of the page's data, `loads` its instructions.
export function tensorLayout(text, rules, loads) {
  const [, name, operand, by, lane, column] = NAME.exec(text);
  const found = name.startsWith("tcgen05.cp") ? copied(name, operand, rules) : multiplied(name, operand, rules);
  const held = readModes(found);
  if (!by) return held;
  const load = loads.find((one) => one.mnemonic === by && one.family.startsWith("tcgen05"));
  if (!load) throw new LayoutError(`there is no tcgen05.ld or .st ${by}`);
  return readBy(held, load, Number(lane ?? 0), Number(column ?? 0));
}

function copied(name, operand, { copies }) {
  const key = name.split(".").slice(2).filter((word) => !word.startsWith("cta_group::")).join(".");
  if (!(key in copies)) throw new LayoutError(`tcgen05.cp has no shape .${key}: ${Object.keys(copies).join(", ")}`);
  if (operand !== "d") throw new LayoutError(`${name} has the operand d alone`);
  return copies[key];
}

function multiplied(name, operand, rules) {
  const one = product(name, rules);
  const shared = { "a-shared": true, b: true };
  if (shared[operand]) throw new LayoutError(`operand ${operand} lies in shared memory`);
  const makes = { d: accumulator, a: multiplicand };
  if (one.vector) Object.assign(makes, { sfa: () => scales(one, "a"), sfb: () => scales(one, "b") });
  if (one.sparse) makes.e = metadata;
  if (!makes[operand]) throw new LayoutError(`${name} has no operand ${operand}: ${[...Object.keys(makes), ...Object.keys(shared)].join(", ")}`);
  return makes[operand](one);
}

const lastOf = (list) => list[list.length - 1];

// A name taken apart, with what follows where it is left out.
function product(name, { kinds, shapes }) {
  const words = name.split(".").slice(2);
  const shape = words.map((word) => SHAPE.exec(word)).filter(Boolean);
  const types = words.filter((word) => Object.values(kinds).some((k) => k.types.includes(word) || k.results.includes(word)));
  const scale = words.find((word) => SCALES.includes(word)) ?? "";
  const left = words.find((word) => !SHAPE.test(word) && !types.includes(word) && word !== scale && !FORM.test(word));
  if (left !== undefined) throw new LayoutError(`.${left} is no word of a tcgen05.mma's name`);
  if (shape.length !== 1 || types.length < 1 || types.length > 3)
    throw new LayoutError("a product is named as in tcgen05.mma.m128n256k16.f16: M, N, K and the type of A");
  const [m, n, k] = shape[0].slice(1).map(Number);
  const [a, b] = types.length === 3 ? types.slice(1) : [types[0], lastOf(types)];
  const said = words.find((word) => word.startsWith("kind::"))?.slice(6);
  const block = words.find((word) => word === "block16" || word === "block32");
  const scaled = Boolean(scale || block || words.some((word) => word === "block_scale" || word.startsWith("scale_vec")));
  const guessed = scaled ? ((k === 32 || k === 64) && a !== "e2m1" ? "mxf8f6f4" : "mxf4nvf4") : Object.keys(kinds).find((one) => kinds[one].types.includes(a));
  const kind = said ?? guessed;
  if (!kinds[kind]) throw new LayoutError(`tcgen05.mma has no kind ${kind}`);
  const { bits, depths, sparseDepths, results } = kinds[kind];
  const sparse = words.includes("sp");
  const ws = words.includes("ws");
  const fits = (group) => shapes.some((rule) => rule.group === group && rule.kinds.includes(kind) && rule.m.includes(m));
  const group = Number(words.find((word) => word.startsWith("cta_group::"))?.slice(-1) ?? (fits(1) || m < 256 ? 1 : 2));
  const d = types.length === 3 ? types[0] : lastOf(results);
  if (!kinds[kind].types.includes(a) || !kinds[kind].types.includes(b)) throw new LayoutError(`A and B of kind ${kind} are ${kinds[kind].types.join(", ")}`);
  if (!results.includes(d) || (d === "f16" && [a, b].includes("bf16"))) throw new LayoutError(`D of kind ${kind} with ${a} and ${b} is not ${d}`);
  const rules = shapes.filter((rule) => rule.kinds.includes(kind) && rule.group === group && rule.ws === ws && rule.sparse.includes(sparse));
  if (!rules.some((rule) => rule.m.includes(m) && rule.n.includes(n))) throw new LayoutError(`tcgen05.mma kind::${kind} of this form has no M = ${m} with N = ${n}`);
  const legal = sparse ? sparseDepths : depths;
  if (!legal.includes(k)) throw new LayoutError(`tcgen05.mma kind::${kind} has no K = ${k}: K is ${legal.join(" or ")}`);
  const vector = scaling(kind, kinds[kind].scales, scale, words, block, scaled);
  const rows = m / group;
  const banks = rows === 64 ? (ws || (group === 2 && !sparse) ? 2 : 1) : rows === 32 ? 4 : 1;
  return { m, n, k, group, ws, sparse, bits, vector, rows, banks, spread: rows * banks < LANES };
}

function scaling(kind, scales, scale, words, block, scaled) {
  const counts = Object.keys(scales).map(Number);
  if (!counts.length) {
    if (scaled) throw new LayoutError(`kind ${kind} has no block scales`);
    return 0;
  }
  const vector = words.find((word) => word.startsWith("scale_vec::"));
  const wanted = block ? (kind === "mxf8f6f4" ? 1 : block === "block16" ? 4 : 2) : vector ? Number(vector[11]) : 0;
  const fitting = counts.filter((count) => [0, count].includes(wanted) && (!scale || scales[count].includes(scale)));
  if (!fitting.length) throw new LayoutError(`kind ${kind} has no such scales: ${counts.map((c) => `${c}X with ${scales[c].join(" or ")}`).join("; ")}`);
  return lastOf(fitting);
}

const axis = (name, ...modes) =>
  `${name} [${modes.filter(([size]) => size !== 1).map(([size, step]) => `${size}:(${step.join(",")})`).join(" ")}]`;
const pair = ({ group }, step) => (group === 2 ? [axis("cta", [2, step])] : []);
const lines = (axes, where = [], dims = "") =>
  axes.join(" ") + (where.length ? ` where ${where.join(" and ")}` : "") + (dims ? ` dims (${dims})` : "");

function lanes({ rows, banks, spread }, bank) {
  if (!spread) return [axis("lane", [rows, [1, 0]], [banks, [0, bank]]), []];
  return [axis("lane", [HALF, [1, 0]], [2, [0, 0]], [rows / HALF, [HALF, 0]]), ["lane/16%2==0"]];
}

function accumulator(one) {
  const columns = one.n / one.banks;
  const [lane, where] = lanes(one, columns);
  return lines([...pair(one, [one.rows, 0]), lane, axis("column", [columns, [0, 1]])], where);
}

function multiplicand(one) {
  const per = 32 / one.bits;
  const kept = one.sparse ? one.k / 2 : one.k;
  const [lane, where] = lanes(one, 0);
  return lines([...pair(one, [one.rows, 0]), lane, axis("column", [kept / per, [0, per]]), axis("element", [per, [0, 1]])], where);
}

function metadata(one) {
  const chunks = one.k / ({ 32: 2, 4: 8 }[one.bits] ?? 4);
  const [lane, where] = lanes(one, 0);
  const cta = pair(one, [one.rows, 0]);
  if (chunks !== 8) return lines([...cta, lane, axis("column", [chunks / 8, [0, 8]]), axis("nibble", [8, [0, 1]])], where, "row,chunk");
  const low = [[8, [1, 0]], [2, [0, 4]]];
  const rest = one.spread ? [[2, [0, 0]], [one.rows / HALF, [HALF, 0]]] : [[one.rows / HALF, [HALF, 0]], [one.banks, [0, 0]]];
  const axes = [axis("lane", ...low, ...rest), axis("column", [2, [0, 0]]), axis("nibble", [4, [0, 1]], [2, [8, 0]])];
  return lines([...cta, ...axes], [...where, "column/1%2==0"], "row,chunk");
}

function scales(one, of) {
  const blocks = one.k === WIDE ? (one.vector * 3) / 2 : one.vector;
  const halved = of === "b" && one.group === 2 && one.m === LANES;
  const rows = of === "a" ? one.rows : one.n;
  const held = halved ? rows / 2 : rows;
  const whole = blocks > 4 ? LANES : WARP;
  if (halved && held % whole && (blocks > 4 || WARP % held)) throw new LayoutError(`the halves of ${rows} rows of scales do not fill groups of ${whole} rows, which is no layout of digits`);
  const at = (row, block) => (of === "a" ? [row, block] : [block, row]);
  const where = [];
  const within = WARP % held === 0 ? held : WARP;
  if (within < WARP) where.push(`lane/${within}%${WARP / within}==0`);
  const copies = halved ? [[2, [0, 0]], [2, at(held, 0)]] : [[4, [0, 0]]];
  const wide = blocks > 4;
  const columns = wide ? [[4 * Math.ceil(held / LANES), at(WARP, 0)], [2, at(0, 4)]] : [[Math.ceil(held / WARP), at(WARP, 0)]];
  const count = wide ? 4 : blocks;
  const bytes = [[count, at(0, 1)]];
  if (4 % count === 0 && count < 4) {
    bytes.push([4 / count, [0, 0]]);
    where.push(`byte/${count}%${4 / count}==0`);
  }
  const cta = pair(one, of === "a" ? at(rows, 0) : [0, 0]);
  const lane = axis("lane", [within, at(1, 0)], [WARP / within, [0, 0]], ...copies);
  return lines([...cta, lane, axis("column", ...columns), axis("byte", ...bytes)], where, of === "a" ? "row,block" : "block,col");
}

// (cta, warp, lane, element) -> what `held` holds: four warps, each at its own 32 lanes.
function readBy(held, load, lane, column) {
  const shape = load.mnemonic.split(".").find((word) => /^\d+x\d+b/.test(word));
  const full = shape === "32x32b";
  if (lane && (full || lane !== HALF)) throw new LayoutError(`${shape} begins at lane 0${full ? "" : " or 16"} of a warp's, not at ${lane}`);
  const where = held.where;
  if (where.some((c) => c.axis !== "lane" || c.divide !== HALF)) throw new LayoutError("what only some columns or bytes hold is not shown in registers");
  if (where.length && !full && lane !== HALF * where[0].equals) throw new LayoutError(`lanes ${lane} to ${lane + HALF - 1} of a warp's hold nothing`);
  const registers = readModes(load.operands.registers.text);
  const names = held.axes.map(({ name }) => name);
  const inside = names.filter((name) => !HARDWARE.includes(name));
  const at = (steps) => names.map((name) => steps[name] ?? 0);
  const moved = (name) => registers.modes.find((one) => one.name === name).modes.map(({ size, step }) => [size, at({ lane: step[0], column: step[1] })]);
  const first = inside.length ? [[held.size(inside[0]), at({ [inside[0]]: 1 })]] : [];
  const axes = [
    ...(names.includes("cta") ? [axis("cta", [2, at({ cta: 1 })])] : []),
    axis("warp", [4, at({ lane: WARP })]),
    axis("lane", ...moved("lane")),
    axis("element", ...first, ...moved("element")),
  ];
  const inner = readModes(`${axes.join(" ")} offset (${at({ lane, column }).join(",")}) dims (${names.join(",")})`);
  return composed(held, inner);
}
