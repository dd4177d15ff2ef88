// A conversion before and after: the rules of `fragir/draw/conversions.py`. The colours are those
// of the lanes that hold an element before.

import { convert, far, threads } from "./conversion.js";
import { matrixGrids, shadeBy, slotLabel } from "./grids.js";
import { LayoutError } from "./layout.js";

export const WAYS = ["stay where they are", "change their register", "change their lane", "change their warp"];

// {before, after, moved, counts}: two grids, what `convert` says, and per way how many elements.
export function conversionGrids(source, target) {
  if (source.dims.length !== 2 || target.dims.length !== 2)
    throw new LayoutError("a conversion is drawn of a matrix of two dimensions");
  if (source.shape.join() !== target.shape.join())
    throw new LayoutError(
      `both hold one matrix, but these hold ${source.shape.join("x")} and ${target.shape.join("x")}`,
    );
  const moved = convert(source, target);
  const colour = shadeBy("lane");
  const [before] = matrixGrids(source, colour);
  const moves = new Map();
  for (const move of moved.moves) {
    const key = move.point.join(",");
    if (!moves.has(key)) moves.set(key, []);
    moves.get(key).push(move);
  }
  const counts = [0, 0, 0, 0];
  for (const [first] of moves.values()) counts[far(first)]++;
  const [rows, cols] = target.shape;
  const after = {
    title: "",
    rowName: target.dims[0],
    colName: target.dims[1],
    rows,
    cols,
    names: [...target.axes.map((axis) => axis.name), "from warp", "from lane", "from element"],
    cell: (r, c) => {
      const all = moves.get(`${r},${c}`) ?? [];
      const found = { at: [r, c], point: [r, c], moves: all, slots: all.map((move) => move.slot) };
      if (!all.length) return { ...found, label: "-", shade: null, key: null };
      const [move] = all;
      const [warp, lane, element] = move.from;
      const label = slotLabel(target, move.slot) + (all.length > 1 ? "+" : "");
      const way = far(move);
      const key = [...move.slot, ...move.from];
      return { ...found, label, shade: colour({ warp, lane, element }), key, way, mark: way > 1 };
    },
  };
  return { before, after, moved, counts };
}

export { threads };
