// Two texts beside each other: rows in which what is alike stands at the same height.

export const CONTEXT = 3; // lines that are shown around a difference
const FEWEST = 6; // lines that are worth folding

// changes: [[kind, before, behind, after, behind]] as `fragir.explain.differences` has them, lines
// counted from 0. A row is {kind, left, right}, lines counted from 1 or 0 where there is none.
export function rowsOf(before, after, changes) {
  const rows = [];
  let left = 0;
  let right = 0;
  const alike = (until) => {
    while (left < until) rows.push({ kind: "", left: ++left, right: ++right });
  };
  for (const [kind, a, b, c, d] of changes) {
    alike(a);
    for (let i = 0; i < Math.max(b - a, d - c); i++) {
      const old = a + i < b;
      const now = c + i < d;
      const word = old && now ? kind : old ? "removed" : "added";
      rows.push({ kind: word, left: old ? a + i + 1 : 0, right: now ? c + i + 1 : 0 });
    }
    left = b;
    right = d;
  }
  alike(before);
  return rows;
}

// Whether so much is alike that it helps to show it at the same height.
export function areAlike(before, after, changes) {
  const same = rowsOf(before, after, changes).filter(({ kind }) => !kind || kind === "renamed");
  return same.length * 4 >= Math.min(before, after);
}

// Stretches of rows without a difference become one row {fold: [first, behind]}, unless they are
// open (`open` has the first of a stretch, or `all` is set).
export function folded(rows, open, all = false) {
  if (all) return rows;
  const result = [];
  const isPlain = ({ kind }) => !kind || kind === "renamed";
  let at = 0;
  while (at < rows.length) {
    if (!isPlain(rows[at])) {
      result.push(rows[at++]);
      continue;
    }
    let end = at;
    while (end < rows.length && isPlain(rows[end])) end++;
    const first = at === 0 ? 0 : at + CONTEXT;
    const behind = end === rows.length ? end : end - CONTEXT;
    if (behind - first >= FEWEST && !open.has(first)) {
      result.push(...rows.slice(at, first), { fold: [first, behind] });
      at = behind;
    } else {
      result.push(...rows.slice(at, end));
      at = end;
    }
  }
  return result;
}

// The numbers of rows at which a stretch of differences begins.
export function starts(rows) {
  const found = [];
  rows.forEach(({ kind, fold }, number) => {
    const before = rows[number - 1];
    const isPart = kind && kind !== "renamed" && !fold;
    const wasPart = before && before.kind && before.kind !== "renamed" && !before.fold;
    if (isPart && !wasPart) found.push(number);
  });
  return found;
}
