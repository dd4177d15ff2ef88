// Any layout that is pasted: its matrix, its lanes and registers, or its memory by banks.

import { choice, gathered, h, replace, switches } from "./dom.js";
import { COLOURS, hardwareGrids, isTensorMemory, layoutGrids, shadeBy, slotWords, standingGrids } from "./grids.js";
import { LARGEST, LayoutError, isRegisters } from "./layout.js";
import { bankOf, memoryGrid } from "./memory_grids.js";
import { addresses } from "./memory.js";
import { attempt, ownText, pasted } from "./pasted.js";
import { table } from "./table.js";
import { EXAMPLES, readAny, readTile } from "./texts.js";

const WIDTHS = [["", "any bits"], ["4", "4 bits"], ["8", "8 bits"], ["16", "16 bits"], ["32", "32 bits"], ["64", "64 bits"]];
const MOST_GRIDS = 16;

export function layoutView(app) {
  const typed = gathered((patch) => app.set(patch), 200);
  const text = pasted("A layout: formula, CuTe, Triton, F2 bases, fragir's own, or MNEMONIC:OPERAND", "text", (to) => typed({ text: to }), 3);
  const tile = h("input", { name: "tile", size: "8", placeholder: "64x32", "aria-label": "Tile", oninput: () => typed({ tile: tile.value }) });
  const access = pasted("Read by the fragment", "access", (to) => typed({ access: to }), 2);
  const examples = h("div", { class: "examples" }, h("span", {}, "examples"), EXAMPLES.map(([name, of, more]) =>
    h("button", { type: "button", class: "chip", onclick: () => app.go({ view: "layout", text: of, ...more }) }, name),
  ));
  const controls = h("div", { class: "controls" });
  const facts = h("dl", { class: "facts" });
  const drawing = h("div", { class: "drawing" });
  const said = h("div", { class: "told", role: "status", "aria-live": "polite" });
  const dock = h("section", { class: "dock small", "aria-label": "The element" }, said);
  const element = h(
    "article",
    { class: "layout" },
    h("div", { class: "form" }, text.element, h("div", { class: "row" }, h("label", { class: "choice" }, h("span", {}, "tile, if needed"), tile), examples)),
    controls,
    access.element,
    facts,
    drawing,
    dock,
  );
  let tables = [];
  let pinned = null;

  const HINT = "Point at an element, tap it, or move with the arrow keys.";

  function tell(layout, state, cell) {
    for (const { cells } of tables) for (const one of cells.values()) one.classList.remove("own", "from");
    if (cell) dock.classList.add("open");
    if (!cell) return replace(said, h("p", { class: "hint" }, HINT));
    const lines = [];
    let title = "";
    if (cell.byte !== undefined) {
      title = `byte ${cell.byte}, bank ${bankOf(cell.byte)}`;
      lines.push(...cell.slots.map((slot) => slotWords(layout, slot)));
      if (cell.lanes) lines.push(`read by lane ${cell.lanes.join(", ")}${cell.mark ? ": shares its bank with another word" : ""}`);
    } else {
      title = cell.point ? `(${cell.point.join(", ")})` : "nothing is held here";
      lines.push(...cell.slots.slice(0, 12).map((slot) => slotLine(layout, slot, Number(state.bits) || 0)));
      if (cell.slots.length > 12) lines.push(`and ${cell.slots.length - 12} more copies`);
    }
    replace(said, h("h3", {}, title), lines.map((line) => h("p", {}, line)));
    const key = cell.at.join(",");
    for (const { cells, grid } of tables)
      if (cells.get(key) && grid.rowName === tables[0].grid.rowName) cells.get(key).classList.add("own");
  }

  function slotLine(layout, slot, bits) {
    const words = slotWords(layout, slot);
    const at = layout.axes.findIndex((axis) => axis.name === "element");
    if (!bits || at < 0) return words;
    const width = bits === 64 ? 64 : 32;
    const low = (slot[at] * bits) % width;
    return `${words}: register ${Math.floor((slot[at] * bits) / width)}, bits ${low + bits - 1}:${low}`;
  }

  function kinds(layout) {
    if (layout && isRegisters(layout)) return [["", "matrix"], ["lanes", "lanes"]];
    return layout?.dims.length === 1 ? [["", "matrix"], ["memory", "memory by banks"]] : [["", "matrix"]];
  }

  function draw(layout, state) {
    const bits = Number(state.bits) || null;
    const per = bits ? Math.max(1, 32 / bits) : 1;
    const colour = shadeBy(state.colour ?? "lane", per);
    if (state.show === "lanes") return { grids: hardwareGrids(layout, colour), facts: [] };
    if (state.show === "memory") return banks(layout, state, bits);
    if (!isRegisters(layout) && state.colour === "bank") {
      const { places } = addresses(layout, bits);
      const byte = new Map(places.map(([slot, at]) => [slot.join(","), at]));
      return { grids: standingGrids(layout, (slot) => bankOf(byte.get(slot.join(",")))), facts: [] };
    }
    return { grids: layoutGrids(layout, state.colour ?? "lane", per), facts: [] };
  }

  function banks(layout, state, bits) {
    let reader = null;
    if (state.access) {
      const [found, wrong] = attempt(() => readAny(state.access, null, app.instructions, app.data.tensor));
      access.wrong(wrong);
      reader = found;
    }
    const which = state.pass === undefined ? null : Number(state.pass);
    const found = memoryGrid(layout, { bits, access: reader, which });
    if (!found.chosen) return { grids: [found.grid], facts: [] };
    const total = found.passes.reduce((sum, one) => sum + one.passes, 0);
    const { chosen, passes } = found;
    return {
      grids: [found.grid],
      facts: [
        ["access", `${8 * chosen.width} bits a lane, ${passes.length} ${passes.length === 1 ? "instruction" : "turns"}`],
        ["passes over the banks", `${total}; ${passes.length} without conflicts`],
        ["drawn", `elements from ${chosen.element} on of lanes ${chosen.first} to ${chosen.first + chosen.bytes.length - 1}: ${chosen.passes === 1 ? "one pass" : `${chosen.passes} passes`}`],
      ],
      passes: passes.map((one, i) => [i, `element ${one.element}, lanes from ${one.first}: ${one.passes}`]),
      number: found.number,
    };
  }

  function options(layout, state, drawn) {
    const set = (name) => (value) => app.set({ [name]: value });
    const views = kinds(layout);
    const items = [];
    if (views.length > 1) items.push(switches("show", views, state.show ?? "", set("show")));
    if (layout && isRegisters(layout)) items.push(choice("colour", "colour", COLOURS, state.colour ?? "lane", set("colour")));
    else if (state.show !== "memory" && layout?.dims.length === 1)
      items.push(choice("colour", "colour", [["", "row"], ["bank", "bank"]], state.colour ?? "", set("colour")));
    if (layout) items.push(choice("element", "bits", WIDTHS, state.bits ?? "", set("bits")));
    if (drawn?.passes) items.push(choice("access", "pass", drawn.passes, drawn.number, set("pass")));
    if (tables.some((one) => one.folds.length) || state.all)
      items.push(switches("repeats", [["", "left out"], ["1", "show all"]], state.all ?? "", set("all")));
    replace(controls, items, layout && isRegisters(layout) ? h("p", { class: "hint key" }, key(layout, state)) : null);
  }

  function key(layout, state) {
    if (state.show === "lanes") return `A cell is the ${layout.dims.join(", ")} that a lane holds.`;
    if (isTensorMemory(layout)) return "L5:3 is column 3 of lane 5 of tensor memory.";
    return layout.size("warp") > 1 ? "W1 T5:3 is element 3 of lane 5 of warp 1." : "T5:3 is element 3 of lane 5.";
  }

  return {
    element,
    escape() {
      if (!pinned) return false;
      pinned = null;
      tell(null, {}, null);
      return true;
    },
    show(asked) {
      const empty = !(asked.text ?? "").trim();
      const [, text_, more] = EXAMPLES[0];
      const state = empty ? { ...asked, text: text_, ...more } : asked;
      text.set(asked.text ?? "");
      if (document.activeElement !== tile) tile.value = state.tile ?? "";
      access.set(state.access ?? "");
      access.element.hidden = state.show !== "memory";
      access.wrong(null);
      pinned = null;
      tables = [];
      const [layout, wrong] = attempt(() => {
        const found = readAny(state.text ?? "", readTile(state.tile ?? ""), app.instructions, app.data.tensor);
        if (found.count > LARGEST) throw new LayoutError(`${found.count} slots are too many to be drawn`);
        found.shape;
        return found;
      });
      text.wrong(wrong);
      dock.hidden = !layout;
      if (!layout) {
        replace(facts);
        replace(drawing, h("p", { class: "hint" }, "Nothing is drawn until the text is a layout. The examples show each notation."));
        replace(said);
        options(null, state, null);
        return;
      }
      const [drawn, refused] = attempt(() => draw(layout, state));
      if (drawn) {
        tables = drawn.grids.slice(0, MOST_GRIDS).map((grid) =>
          table(grid, {
            name: state.show === "memory" ? "memory" : grid.title || "layout",
            caption: "",
            all: Boolean(state.all),
            told: {
              hover: (cell) => pinned || tell(layout, state, cell),
              leave: () => pinned || tell(layout, state, null),
              pick: (cell) => {
                pinned = pinned === cell ? null : cell;
                tell(layout, state, cell);
              },
            },
          }),
        );
      }
      const board = h("div", { class: "board loose" }, tables.map((one) => one.element));
      board.style.setProperty("--letters", String(Math.max(2, ...tables.map((one) => one.width))));
      const many = drawn && drawn.grids.length > MOST_GRIDS ? h("p", { class: "folds" }, `${drawn.grids.length - MOST_GRIDS} more matrices are not drawn`) : null;
      replace(drawing, refused ? h("p", { class: "error", role: "alert" }, refused) : board, many);
      const own = ownText(layout);
      const known = [
        ["axes", layout.axes.map((axis) => `${axis.name} ${axis.size}`).join(", ")],
        isRegisters(layout)
          ? ["shape", `${layout.shape.join("×")} (${layout.dims.join(", ")})`]
          : ["gives", layout.dims.map((dim, i) => `${dim} 0 to ${layout.shape[i] - 1}`).join(", ")],
        own ? ["fragir's text", own] : null,
        ...(drawn?.facts ?? []),
      ].filter(Boolean);
      if (empty) known.unshift(["shown", "an example; paste a text of your own above"]);
      replace(facts, known.map(([name, words]) => [h("dt", {}, name), h("dd", {}, words)]));
      tell(layout, state, null);
      options(layout, state, drawn);
    },
  };
}
