// Layouts: from a slot (the coordinates of its axes) to a point, or null where nothing is held.
// Every reader of a notation makes one of these; what is drawn and compared is asked of them.

export class LayoutError extends Error {}

export const LARGEST = 1 << 16; // slots of a layout that is listed

export class Layout {
  // axes: [{name, size}], dims: names of the point's coordinates, at: slot -> point or null
  constructor(axes, dims, at, text = "") {
    this.axes = axes;
    this.dims = dims;
    this.at = at;
    this.text = text;
  }

  size(name) {
    return this.axes.find((axis) => axis.name === name)?.size ?? 1;
  }

  has(name) {
    return this.axes.some((axis) => axis.name === name);
  }

  get count() {
    return this.axes.reduce((product, axis) => product * axis.size, 1);
  }

  // [slot, point] of every slot, the last axis fastest.
  *slots() {
    if (this.count > LARGEST) throw new LayoutError(`${this.count} slots are too many to list`);
    const slot = this.axes.map(() => 0);
    for (let left = this.count; left > 0; left--) {
      yield [[...slot], this.at(slot)];
      for (let i = slot.length - 1; i >= 0; i--) {
        if (++slot[i] < this.axes[i].size) break;
        slot[i] = 0;
      }
    }
  }

  // Map from "row,col" to the slots that hold it.
  get holders() {
    if (!this.held) {
      this.held = new Map();
      for (const [slot, point] of this.slots()) {
        if (point === null) continue;
        const key = point.join(",");
        if (!this.held.has(key)) this.held.set(key, []);
        this.held.get(key).push(slot);
      }
    }
    return this.held;
  }

  // Per dimension one more than the largest coordinate.
  get shape() {
    if (!this.extent) {
      this.extent = this.dims.map(() => 0);
      for (const [, point] of this.slots())
        point?.forEach((x, i) => (this.extent[i] = Math.max(this.extent[i], x + 1)));
    }
    return this.extent;
  }

  // The point of named coordinates; those that are not named are 0.
  of(coordinates) {
    return this.at(this.axes.map((axis) => coordinates[axis.name] ?? 0));
  }
}

export function xor(a, b) {
  if (!Number.isSafeInteger(a) || !Number.isSafeInteger(b))
    throw new LayoutError(`${Number.isSafeInteger(a) ? b : a} is no whole number that bits can be taken of`);
  return Number(BigInt(a) ^ BigInt(b));
}

// A layout of digits: axes [{name, modes: [{size, step: [...], flips}]}], conditions
// [{axis, divide, modulo, equals}].
export function digits(axes, dims, offset = null, where = [], text = "") {
  const start = offset ?? dims.map(() => 0);
  const sized = axes.map(({ name, modes }) => ({
    name,
    size: modes.reduce((product, mode) => product * mode.size, 1),
  }));
  const conditions = where.map((c) => ({ ...c, at: sized.findIndex((a) => a.name === c.axis) }));
  const at = (slot) => {
    for (const c of conditions) {
      const x = c.at < 0 ? 0 : slot[c.at];
      if (Math.floor(x / c.divide) % c.modulo !== c.equals) return null;
    }
    const point = [...start];
    const flips = dims.map(() => 0);
    axes.forEach(({ modes }, axis) => {
      let rest = slot[axis];
      for (const mode of modes) {
        const digit = rest % mode.size;
        rest = (rest - digit) / mode.size;
        if (!digit) continue;
        mode.step.forEach((step, dim) => {
          if (!mode.flips) point[dim] += digit * step;
          else
            for (let bit = 0; 2 ** bit <= digit; bit++)
              if (Math.floor(digit / 2 ** bit) % 2) flips[dim] = xor(flips[dim], step * 2 ** bit);
        });
      }
    });
    return point.map((x, dim) => (flips[dim] ? xor(x, flips[dim]) : x));
  };
  const found = new Layout(sized, dims, at, text);
  found.modes = axes;
  found.offset = start;
  found.where = where;
  return found;
}

export const mode = (size, step, flips = false) => ({ size, step, flips });

export function dimsOf(rank) {
  const names = {
    1: ["index"],
    2: ["row", "col"],
    3: ["row", "col", "product"],
    4: ["outer", "inner", "row", "col"],
  };
  if (!names[rank]) throw new LayoutError(`there are tiles of 1 to 4 dimensions, not of ${rank}`);
  return names[rank];
}

// outer(inner(x)); the dimensions of the inner one are axes of the outer one.
export function composed(outer, inner) {
  const places = outer.axes.map(({ name, size }) => {
    const at = inner.dims.indexOf(name);
    if (at < 0) throw new LayoutError(`the outer layout has the axis ${name}, the inner none`);
    return { at, size, name };
  });
  if (places.length !== inner.dims.length)
    throw new LayoutError(`(${inner.dims}) does not fit the axes of the outer layout`);
  const at = (slot) => {
    const point = inner.at(slot);
    if (point === null) return null;
    for (const { at: place, size, name } of places)
      if (point[place] >= size)
        throw new LayoutError(`${name} ${point[place]} is outside of the outer layout's ${size}`);
    return outer.at(places.map((place) => point[place.at]));
  };
  return new Layout(inner.axes, outer.dims, at, `${outer.text} o ${inner.text}`);
}

// A swizzle of CuTe's kind: `bits` bits from `base + shift` on flip those from `base` on.
export function swizzled(bits, base, shift, inner) {
  if (inner.dims.length !== 1) throw new LayoutError("a swizzle takes one coordinate");
  if (bits + base + Math.abs(shift) > 50)
    throw new LayoutError(`a swizzle of ${bits} bits from ${base} by ${shift} is beyond all addresses`);
  const low = 2 ** (base + Math.max(0, shift));
  const move = (x) => {
    const part = (Math.floor(x / low) % 2 ** bits) * low;
    return xor(x, shift >= 0 ? part / 2 ** shift : part * 2 ** -shift);
  };
  const at = (slot) => inner.at(slot)?.map(move) ?? null;
  const text = `Sw<${bits},${base},${shift}> o ${inner.text}`;
  return new Layout(inner.axes, inner.dims, at, text);
}

export const isRegisters = (layout) => layout.has("lane") || layout.has("element");
