// Two layouts side by side and what moves between them.

import { conversionGrids, WAYS, threads } from "./conversion_grids.js";
import { gathered, h, replace, switches } from "./dom.js";
import { attempt, pasted } from "./pasted.js";
import { table } from "./table.js";
import { CONVERSIONS, readAny, readTile } from "./texts.js";

const KINDS = {
  identity: "nothing moves",
  registers: "registers take each other's place, alike in every lane: no instruction is needed",
  warp: "data move between the lanes of a warp",
  block: "data move between warps",
};

export function convertView(app) {
  const typed = gathered((patch) => app.set(patch), 200);
  const from = pasted("From", "from", (to) => typed({ from: to }));
  const to = pasted("To", "to", (text) => typed({ to: text }));
  const tile = h("input", { name: "tile", size: "8", placeholder: "64x32", "aria-label": "Tile", oninput: () => typed({ tile: tile.value }) });
  const wrong = h("p", { class: "error", role: "alert", hidden: true });
  const swap = h("button", { type: "button", class: "quiet", name: "swap", onclick: () => app.set({ from: to.field.value, to: from.field.value }) }, "⇄ swap");
  const examples = h("div", { class: "examples" }, h("span", {}, "examples"), CONVERSIONS.map(([name, a, b]) =>
    h("button", { type: "button", class: "chip", onclick: () => app.go({ view: "convert", from: a, to: b }) }, name),
  ));
  const counts = h("div", { class: "ways" });
  const controls = h("div", { class: "controls" });
  const drawing = h("div", { class: "drawing" });
  const said = h("div", { class: "told", role: "status", "aria-live": "polite" });
  const dock = h("section", { class: "dock small", "aria-label": "The element" }, said);
  const element = h(
    "article",
    { class: "convert" },
    h("div", { class: "form" }, h("div", { class: "pair" }, from.element, to.element), h("div", { class: "row" }, swap, h("label", { class: "choice" }, h("span", {}, "tile, if needed"), tile), examples)),
    wrong,
    counts,
    controls,
    drawing,
    dock,
  );
  let pinned = null;
  let tables = [];
  const HINT = "Point at an element on either side: where it comes from, or where it goes.";

  const words = ([warp, lane, element_], several) => `${several ? `warp ${warp}, ` : ""}lane ${lane}, element ${element_}`;

  function tell(found, cell) {
    for (const { cells } of tables) for (const one of cells.values()) one.classList.remove("own", "from");
    if (cell) dock.classList.add("open");
    if (!cell) return replace(said, h("p", { class: "hint" }, HINT));
    const key = cell.point.join(",");
    for (const { cells } of tables) cells.get(key)?.classList.add("own");
    const { source, target } = found;
    const several = [source, target].some((one) => one.size("warp") > 1 || one.size("lane") > 32);
    const held = (source.holders.get(key) ?? []).map((slot) => words(threads(source, slot), several));
    const moves = found.moved.moves.filter((move) => move.point.join(",") === key);
    const lines = moves.slice(0, 8).map((move) => `${words(move.at, several)} reads it from ${words(move.from, several)}`);
    if (moves.length > 8) lines.push(`and ${moves.length - 8} more copies`);
    replace(
      said,
      h("h3", {}, `(${cell.point.join(", ")})`),
      h("p", {}, `before: ${held.slice(0, 8).join("; ") || "held by nobody"}`),
      (lines.length ? lines : ["after: nobody wants it"]).map((line) => h("p", {}, line)),
    );
  }

  function side(name, grid, found, state) {
    return table(grid, {
      name,
      caption: h("b", {}, name),
      all: Boolean(state.all),
      told: {
        hover: (cell) => pinned || tell(found, cell),
        leave: () => pinned || tell(found, null),
        pick: (cell) => {
          pinned = pinned?.point.join() === cell.point.join() ? null : cell;
          tell(found, cell);
        },
      },
    });
  }

  function parts(state) {
    const [size, wrongTile] = attempt(() => readTile(state.tile ?? ""));
    const [source, wrongFrom] = attempt(() => readAny(state.from ?? "", size, app.instructions, app.data.tensor));
    const [target, wrongTo] = attempt(() => readAny(state.to ?? "", size, app.instructions, app.data.tensor));
    from.wrong(wrongFrom);
    to.wrong(wrongTo);
    if (!source || !target) return [null, wrongTile];
    const [found, message] = attempt(() => conversionGrids(source, target));
    return [found && { ...found, source, target }, wrongTile ?? message];
  }

  return {
    element,
    escape() {
      if (!pinned) return false;
      pinned = null;
      tell(null, null);
      return true;
    },
    show(asked) {
      const empty = !(asked.from ?? "").trim() && !(asked.to ?? "").trim();
      const [name, first, second] = CONVERSIONS[0];
      const state = empty ? { ...asked, from: first, to: second } : asked;
      from.set(asked.from ?? "");
      to.set(asked.to ?? "");
      if (document.activeElement !== tile) tile.value = state.tile ?? "";
      pinned = null;
      tables = [];
      const [found, message] = parts(state);
      wrong.hidden = !message;
      wrong.textContent = message ?? "";
      dock.hidden = !found;
      if (!found) {
        replace(counts);
        replace(controls);
        replace(drawing, h("p", { class: "hint" }, "Two layouts of one matrix, and what moves between them. The examples are a start."));
        replace(said);
        return;
      }
      tables = [side("before", found.before, found, state), side("after", found.after, found, state)];
      const board = h("div", { class: "board pairs" }, tables.map((one) => one.element));
      board.style.setProperty("--letters", String(Math.max(...tables.map((one) => one.width))));
      replace(drawing, board);
      together(tables.map((one) => one.element.querySelector(".scroll")));
      const all = found.counts.reduce((a, b) => a + b, 0);
      replace(
        counts,
        h("p", { class: "kind", "data-kind": found.moved.kind }, empty ? h("span", { class: "hint" }, `an example, ${name}: `) : null, KINDS[found.moved.kind]),
        h("div", { class: "bar", "aria-hidden": "true" }, found.counts.map((count, i) => (count ? bar(count / all, i) : null))),
        h("ul", { class: "counts" }, WAYS.map((way, i) => h("li", { class: `far${i}` }, h("b", {}, String(found.counts[i])), ` ${way}`))),
        h("p", { class: "hint" }, "The colour is the lane that holds an element before. Framed are those that change their lane. `fragir convert` says which instructions that takes, and what they cost."),
      );
      const folds = tables.some((one) => one.folds.length) || state.all;
      replace(controls, folds ? switches("repeats", [["", "left out"], ["1", "show all"]], state.all ?? "", (value) => app.set({ all: value })) : null);
      tell(found, null);
    },
  };

  // Both sides show the same columns.
  function together(sides) {
    for (const one of sides)
      one.addEventListener("scroll", () => sides.forEach((other) => other.scrollLeft !== one.scrollLeft && (other.scrollLeft = one.scrollLeft)));
  }

  function bar(share, i) {
    const one = h("span", { class: `far${i}` });
    one.style.width = `${100 * share}%`;
    return one;
  }
}

