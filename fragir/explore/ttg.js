// Triton's encodings: #ttg.blocked<{...}>, nvidia_mma, dot_op, slice, linear, and shared memory.

import { fromBases, inverted } from "./bases.js";
import { LayoutError, composed, digits, dimsOf, mode, xor } from "./layout.js";
import { field, natural, parse } from "./ttg_text.js";

export function readTtg(text, tile) {
  const { encoding, shape: said } = parse(text);
  const shape = tile ?? said ?? natural(encoding);
  if (!shape)
    throw new LayoutError(
      `#ttg.${encoding.name} is of a tensor of any shape: write tensor<64x32xf16, #ttg...>, or a tile`,
    );
  const found = SHARED[encoding.name]
    ? SHARED[encoding.name](encoding, shape)
    : distributed(encoding, shape);
  found.text = text.trim();
  return found;
}

// Registers -------------------------------------------------------------------------------------

// Digits of axes, each next one along a dimension moving by what is covered there.
class Tile {
  constructor(rank) {
    this.extent = Array(rank).fill(1);
    this.modes = { lane: [], element: [], warp: [], block: [] };
  }

  spread(axis, size, dim) {
    if (size <= 1) return;
    const step = this.extent.map((extent, d) => (d === dim ? extent : 0));
    this.modes[axis].push(mode(size, step));
    this.extent[dim] *= size;
  }

  copies(axis, size) {
    if (size > 1) this.modes[axis].push(mode(size, this.extent.map(() => 0)));
  }

  spreadAll(axis, sizes, order) {
    for (const dim of order) this.spread(axis, sizes[dim], dim);
  }

  // Cut to the shape, then repeated in further elements.
  fit(shape, order) {
    if (this.extent.some((extent, dim) => extent > shape[dim]))
      for (const axis of Object.keys(this.modes))
        this.modes[axis] = this.modes[axis].flatMap((m) => cut(m, shape));
    for (const dim of order) {
      const times = Math.floor(shape[dim] / this.extent[dim]);
      if (times && shape[dim] % this.extent[dim])
        throw new LayoutError(`the shape's ${shape[dim]} is no multiple of ${this.extent[dim]}`);
      this.spread("element", times, dim);
    }
  }

  layout() {
    const axes = Object.entries(this.modes).map(([name, modes]) => ({ name, modes }));
    const kept = axes.filter(({ name, modes }) => modes.length || name === "lane" || name === "element");
    return digits(kept, dimsOf(this.extent.length));
  }
}

function cut(m, shape) {
  const nothing = m.step.map(() => 0);
  for (const [dim, step] of m.step.entries()) {
    if (!step || step * m.size <= shape[dim]) continue;
    if (step >= shape[dim]) return [mode(m.size, nothing)];
    const inside = Math.floor(shape[dim] / step);
    if (shape[dim] % step || m.size % inside)
      throw new LayoutError(`the shape's ${shape[dim]} cuts a digit where it does not divide`);
    return [mode(inside, m.step), mode(m.size / inside, nothing)];
  }
  return [m];
}

const down = (rank) => Array.from({ length: rank }, (_, i) => rank - 1 - i);
const up = (rank) => Array.from({ length: rank }, (_, i) => i);

function distributed(encoding, shape) {
  if (encoding.name === "slice") return slice(encoding, shape);
  if (encoding.name === "linear") return linear(encoding, shape);
  const makers = { blocked, nvidia_mma: accumulator, dot_op: operand };
  const make = makers[encoding.name];
  if (!make) throw new LayoutError(`#ttg.${encoding.name} is not read`);
  const blocks = new Blocks(encoding, shape.length);
  const inner = shape.map((n, dim) => Math.max(1, Math.floor(n / blocks.extent[dim])));
  const tile = make(encoding, inner);
  blocks.spread(tile, shape);
  return tile.layout();
}

function blocked(encoding, shape) {
  const tile = new Tile(shape.length);
  const order = field(encoding, "order", shape.length);
  for (const [axis, key] of [
    ["element", "sizePerThread"],
    ["lane", "threadsPerWarp"],
    ["warp", "warpsPerCTA"],
  ])
    tile.spreadAll(axis, field(encoding, key, shape.length), order);
  tile.fit(shape, order);
  return tile;
}

function mma(encoding) {
  const version = field(encoding, "versionMajor");
  if (version !== 2 && version !== 3)
    throw new LayoutError(`version ${version} of #ttg.nvidia_mma is not read`);
  const warps = field(encoding, "warpsPerCTA");
  const rank = warps.length;
  const given = field(encoding, "instrShape", version === 2 ? rank : 3);
  const tile = version === 2 ? given : [...Array(rank - 2).fill(1), ...given.slice(0, 2)];
  return { version, warps, rank, tile, order: version === 2 ? down(rank) : up(rank) };
}

function fragment(tile, shape, width, inner, outer) {
  tile.spread("element", width, inner);
  tile.spread("lane", 4, inner);
  tile.spread("lane", 8, outer);
  tile.spread("element", Math.floor(shape[outer] / 8), outer);
  tile.spread("element", Math.floor(shape[inner] / (4 * width)), inner);
}

function accumulator(encoding, shape) {
  const { warps, rank, tile: instruction, order } = mma(encoding);
  const tile = new Tile(rank);
  fragment(tile, instruction, 2, rank - 1, rank - 2);
  tile.spreadAll("warp", warps, order);
  tile.fit(shape, down(rank));
  return tile;
}

function operand(encoding, shape) {
  const number = field(encoding, "opIdx");
  const parent = field(encoding, "parent");
  if (parent.name === "blocked") return operandOfBlocked(encoding, number, parent, shape);
  const { version, warps, rank, order } = mma(parent);
  if (version === 3 && number === 1)
    throw new LayoutError("B of a wgmma lies in shared memory, no lane holds it");
  const width = field(encoding, "kWidth");
  const [inner, outer] = number === 0 ? [rank - 1, rank - 2] : [rank - 2, rank - 1];
  const tile = new Tile(rank);
  const extents = Array(rank).fill(1);
  [extents[inner], extents[outer]] = [8 * width, number === 0 ? 16 : 8];
  fragment(tile, extents, width, inner, outer);
  warpsOfOperand(tile, warps, order, inner);
  tile.fit(shape, [inner, outer, ...down(rank).filter((dim) => dim < rank - 2)]);
  return tile;
}

function warpsOfOperand(tile, warps, order, k) {
  for (const dim of order)
    if (dim === k) tile.copies("warp", warps[dim]);
    else tile.spread("warp", warps[dim], dim);
}

function operandOfBlocked(encoding, number, parent, shape) {
  const rank = shape.length;
  const k = number === 0 ? rank - 1 : rank - 2;
  const order = field(parent, "order", rank);
  const tile = new Tile(rank);
  const sizes = [...field(parent, "sizePerThread", rank)];
  sizes[k] = shape[k];
  tile.spreadAll("element", sizes, order);
  warpsOfOperandLanes(tile, field(parent, "threadsPerWarp", rank), order, k);
  warpsOfOperand(tile, field(parent, "warpsPerCTA", rank), order, k);
  tile.fit(shape, order);
  return tile;
}

function warpsOfOperandLanes(tile, lanes, order, k) {
  for (const dim of order)
    if (dim === k) tile.copies("lane", lanes[dim]);
    else tile.spread("lane", lanes[dim], dim);
}

function slice(encoding, shape) {
  const dim = field(encoding, "dim");
  const whole = distributed(field(encoding, "parent"), [
    ...shape.slice(0, dim),
    1,
    ...shape.slice(dim),
  ]);
  const axes = whole.modes.map(({ name, modes }) => {
    const kept = modes.map((m) => ({ ...m, step: m.step.filter((_, d) => d !== dim) }));
    return { name, modes: name === "element" ? kept.filter((m) => m.step.some(Boolean)) : kept };
  });
  return digits(axes, dimsOf(shape.length));
}

function linear(encoding, shape) {
  const names = { register: "element", lane: "lane", warp: "warp", block: "block" };
  const given = {};
  for (const [name, axis] of Object.entries(names))
    given[axis] = (encoding.fields[name] ?? []).map((point) =>
      point.map((x, dim) => (x < shape[dim] ? x : 0)),
    );
  const held = Object.values(given).flat();
  const moved = given.element.flatMap((point) => point.flatMap((x, dim) => (x ? [dim] : [])));
  for (const dim of new Set([...moved, ...down(shape.length)])) {
    const largest = Math.max(0, ...held.map((point) => point[dim]));
    let extent = largest ? 2 * 2 ** Math.floor(Math.log2(largest)) : 1;
    for (; extent < shape[dim]; extent *= 2)
      given.element.push(shape.map((_, other) => (other === dim ? extent : 0)));
    if (extent !== shape[dim]) throw new LayoutError(`the shape's ${shape[dim]} is no power of two`);
  }
  const axes = ["lane", "element", "warp", "block"].filter(
    (axis) => axis === "lane" || axis === "element" || given[axis].length,
  );
  return fromBases(
    axes.map((axis) => [axis, given[axis]]),
    dimsOf(shape.length),
  );
}

// How the tensor is cut over the blocks of a cluster, in either of Triton's ways to say it.
class Blocks {
  constructor(encoding, rank) {
    this.modes = [];
    this.extent = Array(rank).fill(1);
    let [owner, lost] = [encoding, null];
    if (encoding.name === "dot_op") {
      owner = field(encoding, "parent");
      const own = owner.fields.warpsPerCTA?.length ?? 0;
      lost = own - (field(encoding, "opIdx") === 0 ? 1 : 2);
    }
    for (const point of owner.fields.CGALayout ?? []) {
      const kept = point.map((x, dim) => (dim === lost ? 0 : x));
      this.modes.push(mode(2, kept));
      this.extent = this.extent.map((extent, dim) => Math.max(extent, 2 * kept[dim]));
    }
    if (!owner.fields.CTAsPerCGA) return;
    const [blocks, split] = [field(owner, "CTAsPerCGA", rank), field(owner, "CTASplitNum", rank)];
    for (const dim of field(owner, "CTAOrder", rank)) {
      const parts = dim === lost ? 1 : split[dim];
      const step = Array.from({ length: rank }, (_, d) => (d === dim ? this.extent[dim] : 0));
      this.modes.push(mode(parts, step), mode(blocks[dim] / parts, Array(rank).fill(0)));
      this.extent[dim] *= parts;
    }
  }

  spread(tile, shape) {
    if (this.modes.reduce((count, m) => count * m.size, 1) <= 1) return;
    const inner = shape.map((n, dim) => Math.max(1, Math.floor(n / this.extent[dim])));
    for (const m of this.modes) {
      const step = m.step.map((s, dim) => (s * inner[dim] < shape[dim] ? s * inner[dim] : 0));
      tile.modes.block.push(mode(m.size, step));
    }
  }
}

// Shared memory ---------------------------------------------------------------------------------

const SHARED = {
  swizzled_shared: (encoding, shape) => columnsLayout(swizzledColumns(encoding, shape)),
  nvmma_shared: (encoding, shape) => columnsLayout(mmaColumns(encoding, shape)),
  shared_linear: (encoding, shape) => inverted(field(encoding, "offset"), shape, ""),
  padded_shared: padded,
};

const bitsOf = (extent) => {
  const bits = Math.log2(extent);
  if (!Number.isInteger(bits)) throw new LayoutError(`the shape's ${extent} is no power of two`);
  return Array.from({ length: bits }, (_, bit) => bit);
};

const columnsLayout = (columns) =>
  digits(
    dimsOf(columns.length).map((name, dim) => ({
      name,
      modes: columns[dim].map((place) => mode(2, [place], true)),
    })),
    ["index"],
  );

function inOrder(shape, order) {
  let place = 1;
  const columns = shape.map(() => []);
  for (const dim of order) {
    columns[dim] = bitsOf(shape[dim]).map((bit) => place * 2 ** bit);
    place *= shape[dim];
  }
  return columns;
}

function swizzledColumns(encoding, shape) {
  const order = field(encoding, "order", shape.length);
  const [vec, per, phases] = ["vec", "perPhase", "maxPhase"].map((key) => {
    const value = field(encoding, key);
    if (!(value >= 1)) throw new LayoutError(`${key} of a swizzled_shared is at least 1, not ${value}`);
    return value;
  });
  const columns = inOrder(shape, order);
  if (shape.length > 1)
    columns[order[1]] = columns[order[1]].map((place, bit) => {
      const phase = Math.floor(2 ** bit / per) % phases;
      return xor(place, (vec * phase) % shape[order[0]]);
    });
  return columns;
}

function mmaColumns(encoding, shape) {
  const width = field(encoding, "swizzlingByteWidth");
  const bits = field(encoding, "elementBitWidth");
  if (!(bits >= 1)) throw new LayoutError(`an element of ${bits} bits is none`);
  const turned = encoding.fields.transposed ?? false;
  const rank = shape.length;
  if (rank < 2 || (turned && rank > 2) || encoding.fields.fp4Padded)
    throw new LayoutError(`this #ttg.nvmma_shared of ${rank} dimensions is not read`);
  shape.forEach(bitsOf);
  const fast = turned && width ? 0 : rank - 1;
  const panel = width ? (width * 8) / bits : Math.min(shape[fast], 256);
  const slow = down(rank).filter((dim) => dim !== fast);
  const columns = shape.map(() => []);
  let place = 1;
  const take = (dim, until) => {
    for (; 2 ** columns[dim].length < until; place *= 2) columns[dim].push(place);
  };
  take(fast, panel);
  for (const dim of slow) take(dim, Math.min(shape[dim], 256));
  let row = 1;
  for (const dim of slow)
    columns[dim] = columns[dim].map((at) => {
      const phase = width ? Math.floor((row * width) / 128) % (width / 16) : 0;
      row *= 2;
      return xor(at, ((128 / bits) * phase) % panel);
    });
  for (const dim of width ? up(rank) : [rank - 1, ...down(rank).slice(1)]) take(dim, shape[dim]);
  return columns;
}

function padded(encoding, shape) {
  const plain = encoding.fields.offset
    ? inverted(encoding.fields.offset, shape, "")
    : columnsLayout(inOrder(shape, field(encoding, "order", shape.length)));
  const count = shape.reduce((a, b) => a * b, 1);
  const modes = bitsOf(count).map((bit) => {
    const extra = encoding.padding.reduce(
      (sum, [interval, padding]) => sum + Math.floor(2 ** bit / interval) * padding,
      0,
    );
    return mode(2, [2 ** bit + extra]);
  });
  return composed(digits([{ name: "index", modes }], ["index"]), plain);
}
