// Layouts over F2: bases of every axis, as JSON-like text, and as Triton prints linear layouts.

import { Layout, LayoutError, digits, dimsOf, mode } from "./layout.js";

const AXES = { register: "element" };
const numbers = (text) => (text.match(/\d+/g) ?? []).map(Number);

export function fromBases(named, dims, text) {
  const axes = named.map(([name, points]) => ({
    name: AXES[name] ?? name,
    modes: points.map((point) => mode(2, point, true)),
  }));
  return digits(axes, dims, null, [], text);
}

// f2:{"lane": [[0, 2], [0, 4]], "register": [[0, 1]]} dims (row, col)
export function readF2(text) {
  const found = /^\s*(?:f2\s*:)?\s*\{(.*)\}\s*(?:dims\s*\(([^)]*)\))?\s*$/s.exec(text);
  if (!found) throw new LayoutError('bases are {"lane": [[0, 2], ...], "register": [...]}');
  const named = [];
  const entry = /\s*"?([A-Za-z_]\w*)"?\s*[:=]\s*(\[(?:\s*\[[\d\s,]*\]\s*,?)*\s*\])\s*,?/y;
  for (let at = 0; found[1].slice(at).trim(); at = entry.lastIndex) {
    entry.lastIndex = at;
    const item = entry.exec(found[1]);
    if (!item) throw new LayoutError(`'${found[1].slice(at).trim()}' is no list of bases`);
    const points = [...item[2].slice(1, -1).matchAll(/\[([\d\s,]*)\]/g)].map((point) => numbers(point[1]));
    named.push([item[1], points]);
  }
  const rank = named.flatMap(([, points]) => points)[0]?.length ?? 2;
  const dims = found[2] ? found[2].split(",").map((name) => name.trim()) : dimsOf(rank);
  for (const [name, points] of named)
    if (points.some((point) => point.length !== dims.length))
      throw new LayoutError(`${name} has points that are not of ${dims.length} numbers`);
  return fromBases(named, dims, text.trim());
}

// " - lane=1 -> (0, 2)\n   lane=2 -> (0, 4) ... where out dims are: [dim0 (size 16), ...]"
export function readPrinted(text) {
  const bases = new Map();
  const line = /([A-Za-z_]\w*)\s*=\s*(\d+)\s*->\s*\(([\d\s,]*)\)|([A-Za-z_]\w*) is a size 1/g;
  for (const found of text.matchAll(line)) {
    const name = found[1] ?? found[4];
    if (!bases.has(name)) bases.set(name, []);
    if (!found[1]) continue;
    const known = bases.get(name);
    if (Number(found[2]) !== 2 ** known.length)
      throw new LayoutError(`the next bit of ${name} is ${2 ** known.length}, not ${found[2]}`);
    known.push(numbers(found[3]));
  }
  const said = /where out dims are:\s*\[([^\]]*)\]/.exec(text);
  if (!said) throw new LayoutError("'where out dims are: [...]' is missing");
  const shape = [...said[1].matchAll(/\(size (\d+)\)/g)].map((m) => Number(m[1]));
  const dims = dimsOf(shape.length);
  for (const [name, points] of bases)
    if (points.some((point) => point.length !== dims.length))
      throw new LayoutError(`${name} has points that are not of ${dims.length} numbers`);
  if (bases.has("offset")) return inverted(bases.get("offset"), shape, text.trim());
  const named = [...bases].filter(([n, points]) => points.length || n === "lane" || n === "register");
  return fromBases(named, dims, text.trim());
}

// From row and col to the place, given the point of every bit of a place.
export function inverted(points, shape, text) {
  const dims = dimsOf(shape.length);
  const count = shape.reduce((a, b) => a * b, 1);
  if (2 ** points.length !== count)
    throw new LayoutError(`${points.length} bits of places are not the ${count} of the tensor`);
  const forward = fromBases([["index", points]], dims, text);
  const places = new Map();
  for (const [[place], point] of forward.slots()) places.set(point.join(","), place);
  if (places.size !== count) throw new LayoutError("two places hold one element");
  const axes = dims.map((name, i) => ({ name, size: shape[i] }));
  return new Layout(axes, ["index"], (slot) => [places.get(slot.join(","))], text);
}
