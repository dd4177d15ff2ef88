// One instruction: its facts, its operands drawn, and what one element is made of.

import { board, formOf, immediatesIn } from "./board.js";
import { nameOf, slotsOf, sourceLists, sources, told } from "./detail.js";
import { choice, copier, h, replace, switches } from "./dom.js";
import { formTable, operandTable, targetTable, ways } from "./facts.js";
import { COLOURS } from "./grids.js";
import { feeds, immediatesOf } from "./instruction.js";

const DRAWN = ["name", "colour", "show", "all", "a", "major", "swizzle", "selector", "byte", "thread", "offset"];
const WORDS = {
  selector: "sparsity selector",
  byte: "byte id",
  thread: "thread id",
  offset: "half-split offset",
};
const HINT = "Point at an element, tap it, or move with the arrow keys: who holds it, and what it is made of.";

export function instructionView(app) {
  const head = h("div", { class: "head" });
  const controls = h("div", { class: "controls" });
  const drawing = h("div", { class: "drawing" });
  const heading = h("div", { class: "told", role: "status", "aria-live": "polite" });
  const lists = h("div", { class: "sources" });
  const dock = h("section", { class: "dock", "aria-label": "The element" }, heading, lists);
  const element = h("article", { class: "instruction" }, head, controls, drawing, dock);
  let state = {};
  let instruction = null;
  let drawn = null;
  let pinned = null;
  let shown = "";

  const partOf = (name) => drawn.parts.find((part) => part.name === name);

  function tell(part, cell, sticky = false) {
    drawn.clear();
    element.classList.toggle("pinned", sticky);
    const point = cell?.point;
    if (cell) dock.classList.add("open"); // and stays so: what it covers must not come and go
    if (!part || !point) {
      const words = cell ? "This slot holds no element." : HINT;
      replace(heading, h("p", { class: "hint" }, words));
      replace(lists);
      return;
    }
    const lines = told(part, point);
    const immediates = immediatesIn(instruction, state);
    const groups = sources(instruction, immediates, part, point);
    const into = feeds(instruction, part.name, point);
    const goes = into ? h("p", { class: "into" }, `goes into ${range(into)}`) : null;
    replace(heading, h("h3", {}, nameOf(part.name, point)), lines.map((line) => h("p", {}, line)), goes);
    replace(lists, sourceLists(groups, partOf));
    for (const [name, items] of groups)
      for (const item of items) drawn.mark(name, item.point, item.slots, "from");
    if (into) for (const at of into[1]) drawn.mark(into[0], at, slotsOf(partOf(into[0]), at), "into");
    drawn.mark(part.name, point, part.layout ? slotsOf(part, point) : [], "own");
  }

  const range = ([name, points]) =>
    points.length < 3
      ? points.map((point) => nameOf(name, point)).join(", ")
      : `${nameOf(name, points[0])} to ${nameOf(name, points.at(-1))}`;

  function pin(part, cell) {
    const at = cell.point ? `${part.name}:${cell.point.join(",")}` : "";
    const again = state.at === at;
    pinned = again || !at ? null : { part, cell };
    app.set({ at: again ? "" : at });
    tell(part, cell, Boolean(pinned));
  }

  function draw() {
    drawn = board(instruction, state, {
      hover: (part, cell) => pinned || tell(part, cell),
      leave: () => pinned || tell(null, null),
      pick: pin,
    });
    replace(drawing, drawn.element);
    pinned = null;
    const [name, place] = (state.at ?? "").split(":");
    const part = place && partOf(name);
    const point = place?.split(",").map(Number);
    const fits = part && point.length === part.shape.length && point.every((x, i) => x >= 0 && x < part.shape[i]);
    if (fits) pinned = { part, cell: { point } };
    tell(pinned?.part, pinned?.cell, Boolean(pinned));
  }

  // Brings the element that is held on to into view.
  function reveal() {
    if (!pinned) return;
    const { part, cell } = pinned;
    const one = drawn.find(part.name, cell.point, slotsOf(part, cell.point));
    one?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  function facts() {
    const name = instruction.mnemonic;
    const [m, n, k] = instruction.shape;
    const product = instruction.operands.a && instruction.operands.b;
    const forms = formTable(instruction, app.data.descriptors.matrix.wgmma, (operand, major, swizzle) =>
      app.set({ major, swizzle, a: operand === "a-shared" ? "shared" : state.a, show: "" }),
    );
    replace(
      head,
      h("button", { type: "button", class: "back", onclick: () => app.set({ name: "", at: "" }, true) }, "‹ all instructions"),
      h("div", { class: "naming" }, h("h2", {}, name), copier("copy", () => name)),
      instruction.refused ? h("p", { class: "error" }, `Must not be emitted: ${instruction.refused}`) : null,
      h(
        "p",
        { class: "ways" },
        product ? h("span", { class: "shape" }, `M ${m} · N ${n} · K ${k}`) : null,
        ways(instruction),
      ),
      h("div", { class: "folds-of-facts" }, targetTable(instruction), operandTable(instruction, partOf), forms),
    );
  }

  function options() {
    const set = (name) => (value) => app.set({ [name]: value });
    const colours = instruction.family.startsWith("wgmma") ? COLOURS : COLOURS.filter((one) => one !== "warp");
    const items = [
      switches("show", [["matrix", "matrix"], ["lanes", "lanes"]], state.show ?? "matrix", (to) => app.set({ show: to === "matrix" ? "" : to })),
      choice("colour", "colour", colours, state.colour ?? "lane", set("colour")),
    ];
    const asked = new Map();
    for (const name of Object.keys(instruction.operands))
      for (const [immediate, values] of Object.entries(immediatesOf(instruction, name))) {
        const before = asked.get(immediate) ?? [];
        asked.set(immediate, values === null ? null : [...new Set([...before, ...values])]);
      }
    for (const [immediate, values] of asked) {
      if (values) items.push(choice(WORDS[immediate], immediate, values, state[immediate] ?? 0, set(immediate)));
      else
        items.push(
          h(
            "label",
            { class: "choice" },
            h("span", {}, WORDS[immediate]),
            h("input", {
              type: "number",
              name: immediate,
              min: "0",
              max: "511",
              value: state[immediate] ?? "0",
              onchange: (event) => app.set({ [immediate]: String(Math.max(0, Math.min(511, Math.floor(event.target.value)) || 0)) }),
            }),
          ),
        );
    }
    const shared = instruction.operands["a-shared"];
    if (shared) items.push(choice("A in", "a", [["", "registers"], ["shared", "shared memory"]], state.a ?? "", set("a")));
    const lying = state.a === "shared" ? shared : instruction.operands.b;
    if (lying?.forms.length) {
      const form = formOf(lying, state);
      const majors = [...new Set(lying.forms.map(([major]) => major))];
      items.push(choice("major", "major", majors, form.major, set("major")));
      const swizzles = lying.forms.filter(([major]) => major === form.major).map(([, swizzle]) => [swizzle, swizzle ? `${swizzle} bytes` : "none"]);
      items.push(choice("swizzle", "swizzle", swizzles, form.swizzle, set("swizzle")));
    }
    if (drawn.folded || state.all)
      items.push(switches("repeats", [["", "left out"], ["1", "show all"]], state.all ?? "", set("all")));
    const key = state.show === "lanes" ? "A cell is the element that a lane holds." : "T5:3 is element 3 of lane 5; + where more lanes hold it.";
    replace(controls, items, h("p", { class: "hint key" }, key));
  }

  return {
    element,
    escape() {
      if (!pinned) return false;
      pinned = null;
      app.set({ at: "" });
      tell(null, null);
      return true;
    },
    show(next) {
      const before = state;
      state = next;
      const wanted = app.byName.get(state.name) ?? null;
      if (state.name && !wanted) {
        instruction = null;
        shown = "";
        drawn = null;
        replace(head, h("p", { class: "error", role: "alert" }, `There is no instruction ${state.name}. Search for it in the list.`));
        replace(controls);
        replace(drawing);
        replace(heading);
        replace(lists);
        return;
      }
      instruction = wanted ?? app.first;
      const signature = JSON.stringify(DRAWN.map((name) => state[name] ?? ""));
      if (signature === shown) {
        if (before.at !== state.at && !same(state.at)) draw();
        return;
      }
      const fresh = !shown || before.name !== state.name || !head.firstChild;
      shown = signature;
      draw();
      if (fresh) {
        if (!pinned) dock.classList.remove("open");
        facts();
        element.scrollTop = 0;
      }
      options();
      if (fresh) reveal();
    },
  };

  function same(at) {
    const now = pinned ? `${pinned.part.name}:${pinned.cell.point.join(",")}` : "";
    return now === (at ?? "");
  }
}

