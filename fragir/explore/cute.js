// CuTe's texts: shape:stride, basis strides 2@1, Sw<3,4,3> o smem_ptr[16b](unset) o ....

import { Layout, LayoutError, composed, digits, dimsOf, swizzled } from "./layout.js";

export function readCute(text, tile) {
  const parts = text.split(/\bo\b/).map((part) => part.trim());
  const terms = parts.map(term);
  const inner = terms.at(-1);
  if (!inner.shape) throw new LayoutError("a composition ends in shape:stride");
  const outer = terms.find((t) => t.shape);
  const based = pathsOf(outer.stride).length > 0;
  const count = inner.shape.leaf ? 1 : inner.shape.length;
  const memory = !tile && !based;
  const names = memory ? (count === 1 ? ["index"] : dimsOf(count)) : ["lane", "element"];
  let found = layoutOf(inner, names, parts.at(-1));
  let bits = 8;
  for (let i = terms.length - 2; i >= 0; i--) {
    const t = terms[i];
    if (t.offset !== undefined) found = shifted(found, t.offset);
    else if (t.bits) bits = t.bits;
    else if (t.swizzle) {
      const down = Math.log2(bits) - 3;
      found = swizzled(t.swizzle[0], t.swizzle[1] - down, t.swizzle[2], found);
    } else found = composed(layoutOf(t, found.dims, parts[i]), found);
  }
  found.text = text.trim();
  return tile ? numbered(found, tile) : found;
}

// Points of a tile are counted down its columns: the first dimension fastest.
function numbered(inner, tile) {
  const at = (slot) => {
    const point = inner.at(slot);
    if (point === null) return null;
    let rest = point[0];
    const found = tile.map((extent) => {
      const x = rest % extent;
      rest = (rest - x) / extent;
      return x;
    });
    if (rest) throw new LayoutError(`${point[0]} lies outside of the tile ${tile.join("x")}`);
    return found;
  };
  if (inner.dims.length !== 1) return inner;
  return new Layout(inner.axes, dimsOf(tile.length), at, inner.text);
}

function shifted(inner, by) {
  if (inner.dims.length !== 1) throw new LayoutError("an offset is added to one number");
  const at = (slot) => inner.at(slot)?.map((x) => x + by) ?? null;
  return new Layout(inner.axes, inner.dims, at, inner.text);
}

function term(text) {
  let found;
  if ((found = /^Sw?<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>$/.exec(text)))
    return { swizzle: found.slice(1).map(Number) };
  if ((found = /^smem_ptr(?:_flag)?\[(\d+)b\]\s*\(unset\)$/.exec(text)))
    if (Number(found[1])) return { bits: Number(found[1]) };
  if ((found = /^_?(\d+)$/.exec(text))) return { offset: Number(found[1]) };
  const reader = new Trees(text);
  const shape = reader.tree();
  if (!reader.sign(":")) throw new LayoutError(`there is no ':' in '${text}'`);
  const stride = reader.tree();
  if (reader.rest) throw new LayoutError(`'${reader.rest}' is left over`);
  return { shape, stride };
}

class Trees {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  get rest() {
    return this.text.slice(this.at).trim();
  }

  sign(char) {
    while (this.text[this.at] === " ") this.at++;
    if (this.text[this.at] !== char) return false;
    this.at++;
    return true;
  }

  // A list of trees, or {leaf, path}: a number, of a coordinate where it has a path.
  tree() {
    if (!this.sign("(")) {
      const found = /^\s*_?(\d+)((?:@\d+)*)/.exec(this.text.slice(this.at));
      if (!found) throw new LayoutError(`a number or ( is missing at '${this.rest}'`);
      this.at += found[0].length;
      const path = (found[2].match(/\d+/g) ?? []).map(Number).reverse();
      return { leaf: true, value: Number(found[1]), path };
    }
    const branches = [this.tree()];
    while (this.sign(",")) branches.push(this.tree());
    if (!this.sign(")")) throw new LayoutError(`a comma or ) is missing at '${this.rest}'`);
    return branches;
  }
}

const leaves = (tree) => (tree.leaf ? [tree] : tree.flatMap(leaves));

function pathsOf(stride) {
  const paths = new Set(leaves(stride).filter((l) => l.value && l.path.length).map((l) => `${l.path}`));
  return [...paths].sort();
}

function layoutOf({ shape, stride }, names, text) {
  const wrap = names.length === 1;
  const sizes = wrap ? [shape] : shape;
  const steps = wrap ? [stride] : stride;
  if (sizes.leaf || steps.leaf || sizes.length !== names.length || steps.length !== sizes.length)
    throw new LayoutError(`'${text}' does not have ${names.length} modes: (${names.join(", ")})`);
  const paths = pathsOf(stride);
  if (paths.some((path) => path.includes(",")))
    throw new LayoutError("nested coordinates are not drawn");
  const rank = paths.length ? 1 + Math.max(...paths.map(Number)) : 1;
  const dims = dimsOf(rank); // refuses what is no tile
  const flat = (size, step) => {
    if (size.leaf !== step.leaf || (!size.leaf && size.length !== step.length))
      throw new LayoutError(`shape and stride of '${text}' do not have the same nesting`);
    if (!size.leaf) return size.flatMap((s, i) => flat(s, step[i]));
    const along = Array.from({ length: rank }, (_, dim) =>
      !paths.length || step.path[0] === dim ? step.value : 0,
    );
    return [{ size: size.value, step: along, flips: false }];
  };
  const axes = names.map((name, i) => ({ name, modes: flat(sizes[i], steps[i]) }));
  return digits(axes, dims, null, [], text);
}
