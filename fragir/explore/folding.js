// Leaves repeats of a large picture out: the rule of `fragir/draw/grid.py`.

export const MANY = 1 << 11;
const FEWEST = 3;

// keys[row][col]: the numbers of a cell's label, or null. Says which rows and columns are drawn,
// and by which rule the others go on: [{axis, period, times, steps}].
export function folded(keys, most = MANY) {
  let rows = keys.map((_, i) => i);
  let cols = (keys[0] ?? []).map((_, i) => i);
  const folds = [];
  const order = rows.length >= cols.length ? [0, 1] : [1, 0];
  for (const axis of order) {
    if (rows.length * cols.length <= most) break;
    const lines = axis === 0 ? rows : cols;
    const across = axis === 0 ? cols : rows;
    const cell = (line, x) => (axis === 0 ? keys[line][x] : keys[x][line]);
    const fold = foldOf(lines, across, cell);
    if (!fold) continue;
    folds.push({ axis, ...fold });
    const last = fold.period * (fold.times - 1);
    const kept = [...Array(fold.period).keys()];
    const found = [...kept, ...kept.map((i) => i + last)];
    if (axis === 0) rows = found;
    else cols = found;
  }
  return { rows, cols, folds };
}

function foldOf(lines, across, cell) {
  for (let period = 1; period <= Math.floor(lines.length / FEWEST); period++) {
    if (lines.length % period) continue;
    const steps = stepsOf(lines, across, cell, period);
    if (steps) return { period, times: lines.length / period, steps };
  }
  return null;
}

function stepsOf(lines, across, cell, period) {
  let found = null;
  for (let i = 0; i + period < lines.length; i++)
    for (const x of across) {
      const [now, later] = [cell(lines[i], x), cell(lines[i + period], x)];
      if (now === null || later === null) {
        if (now !== later) return null;
        continue;
      }
      const step = later.map((y, k) => y - now[k]);
      if (found && step.some((y, k) => y !== found[k])) return null;
      found = step;
    }
  return found ?? [];
}
