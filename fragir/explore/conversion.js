// What moves between two layouts of registers: for every slot of the target where it is read from.

import { LayoutError } from "./layout.js";

const WARP = 32;

// [warp, lane, element] of a slot; a lane axis of several warps counts threads.
function threads(layout, slot) {
  const at = (name) => {
    const i = layout.axes.findIndex((axis) => axis.name === name);
    return i < 0 ? 0 : slot[i];
  };
  const lanes = layout.size("lane");
  if (lanes <= WARP) return [at("warp"), at("lane"), at("element")];
  const thread = at("warp") * lanes + at("lane");
  return [Math.floor(thread / WARP), thread % WARP, at("element")];
}

export function convert(source, target) {
  const names = [...source.axes, ...target.axes].filter(
    ({ name, size }) => size > 1 && !["element", "lane", "warp"].includes(name),
  );
  if (names.length) throw new LayoutError(`a conversion is between registers; there is ${names[0].name}`);
  const holders = new Map();
  const order = source.dims.map((dim) => target.dims.indexOf(dim));
  for (const [slot, point] of source.slots()) {
    if (point === null) continue;
    const turned = [];
    point.forEach((x, i) => (turned[order[i] < 0 ? i : order[i]] = x));
    const key = turned.join(",");
    if (!holders.has(key)) holders.set(key, []);
    holders.get(key).push(threads(source, slot));
  }
  const moves = [];
  for (const [slot, point] of target.slots()) {
    if (point === null) continue;
    const at = threads(target, slot);
    const held = holders.get(point.join(","));
    if (!held) throw new LayoutError(`the target wants element (${point}), which the source lacks`);
    moves.push({ point, slot, at, from: nearest(held, at) });
  }
  return { moves, kind: kindOf(moves, holders), ...counts(moves) };
}

// A copy in the same slot, the same lane, the same warp, the warp that is fewest away, in turn.
function nearest(held, at) {
  const distance = ([warp, lane, element]) => [
    Math.abs(warp - at[0]),
    lane ^ at[1],
    Number(element !== at[2]),
    element,
  ];
  const less = (a, b) => {
    for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return a[i] < b[i];
    return false;
  };
  return held.reduce((best, one) => (less(distance(one), distance(best)) ? one : best));
}

const far = ({ at, from }) => (at[0] !== from[0] ? 3 : at[1] !== from[1] ? 2 : Number(at[2] !== from[2]));

function counts(moves) {
  const found = [0, 0, 0, 0];
  for (const move of moves) found[far(move)]++;
  return { stay: found[0], registers: found[1], lanes: found[2], warps: found[3] };
}

// identity, registers (all lanes rename theirs alike), warp, or block.
function kindOf(moves, holders) {
  const renaming = new Map();
  for (const { point, at } of moves) {
    const own = holders.get(point.join(",")).filter((s) => s[0] === at[0] && s[1] === at[1]);
    const here = new Set(own.map((s) => s[2]));
    const known = renaming.get(at[2]);
    renaming.set(at[2], known ? new Set([...known].filter((x) => here.has(x))) : here);
  }
  const common = [...renaming.values()];
  if (common.every((set) => set.size)) {
    return [...renaming].every(([element, set]) => set.has(element)) ? "identity" : "registers";
  }
  return moves.every(({ at, from }) => at[0] === from[0]) ? "warp" : "block";
}

export { far, threads };
