// fragir's own texts: `lane [4:(0,2) 8:(1,0)] element [2:(0,1)] offset (1,0) where lane%4==1`.

import { LayoutError, digits, dimsOf, swizzled } from "./layout.js";

const NAME = "[A-Za-z_][A-Za-z0-9_]*";
const STEP = String.raw`\d+|\(\s*\d+(?:\s*,\s*\d+)*\s*,?\s*\)`;
const AXIS = new RegExp(String.raw`\s*(${NAME})\s*\[([^\]]*)\]`, "y");
const MODE = new RegExp(String.raw`\s*(\d+)\s*:\s*(\^?)\s*(${STEP})`, "y");
const OFFSET = new RegExp(String.raw`\s*offset\s*(${STEP})`, "y");
const DIMS = new RegExp(String.raw`\s*dims\s*\(([^)]*)\)`, "y");
const SWIZZLE = /\s*swizzle\s*\(\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*\)/y;
const CONDITION = new RegExp(
  String.raw`\s*(?:where|and)\s+(${NAME})\s*(?:/\s*(\d+))?\s*%\s*(\d+)\s*==\s*(\d+)`,
  "y",
);

export const numbers = (text) => (text.match(/\d+/g) ?? []).map(Number);

export function readModes(text) {
  let position = 0;
  const take = (pattern) => {
    pattern.lastIndex = position;
    const found = pattern.exec(text);
    if (found) position = pattern.lastIndex;
    return found;
  };
  const axes = [];
  for (let found; (found = take(AXIS)); ) axes.push({ name: found[1], modes: modesOf(found[2]) });
  const where = [];
  let [offset, dims, swizzle] = [null, null, null];
  for (let more = true; more; ) {
    let found;
    more = true;
    if ((found = take(OFFSET))) offset = numbers(found[1]);
    else if ((found = take(DIMS))) dims = found[1].split(",").map((name) => name.trim());
    else if ((found = take(CONDITION)))
      where.push({
        axis: found[1],
        divide: Number(found[2] ?? 1),
        modulo: Number(found[3]),
        equals: Number(found[4]),
      });
    else if ((found = take(SWIZZLE))) swizzle = found.slice(1).map(Number);
    else more = false;
  }
  if (text.slice(position).trim())
    throw new LayoutError(`'${text.slice(position).trim()}' is no part of a layout`);
  if (!axes.length) throw new LayoutError("a layout has axes, such as lane [4:(0,2) 8:(1,0)]");
  const steps = axes.flatMap((axis) => axis.modes.map((m) => m.step.length));
  const rank = steps[0] ?? offset?.length ?? dims?.length ?? 2;
  if (steps.some((length) => length !== rank))
    throw new LayoutError("the strides have different numbers of coordinates");
  const found = digits(axes, dims ?? dimsOf(rank), offset, where, text.trim());
  return swizzle ? swizzled(...swizzle, found) : found;
}

function modesOf(text) {
  const modes = [];
  let position = 0;
  while (text.slice(position).trim()) {
    MODE.lastIndex = position;
    const found = MODE.exec(text);
    if (!found) throw new LayoutError(`'${text.slice(position).trim()}' is no mode size:stride`);
    position = MODE.lastIndex;
    modes.push({ size: Number(found[1]), step: numbers(found[3]), flips: found[2] === "^" });
  }
  return modes;
}
