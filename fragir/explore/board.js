// The operands of an instruction side by side: B above D, A to its left, as a product is written.

import { letters } from "./detail.js";
import { h } from "./dom.js";
import { hardwareGrids, matrixGrids, shadeBy } from "./grids.js";
import { dimsOfOperand, operandLayout, shapeOf } from "./instruction.js";
import { bankOf } from "./memory_grids.js";
import { readModes } from "./modes.js";
import { table } from "./table.js";

// What an operand is drawn as: {name, operand, layout, form, shape, dims}; form where it lies in
// shared memory.
export function parts(instruction, state) {
  const found = [];
  for (const [name, operand] of Object.entries(instruction.operands)) {
    if (name === "a-shared") continue;
    const shared = instruction.operands["a-shared"];
    const chosen = name === "a" && shared && (state.a === "shared" || !operand.text) ? shared : operand;
    if (!chosen.text && !chosen.forms.length) continue;
    if (chosen.text) {
      const layout = operandLayout(chosen, immediatesIn(instruction, state));
      const shape = shapeOf(instruction, chosen, layout);
      found.push({ name, operand: chosen, layout, shape, dims: dimsOfOperand(chosen, layout) });
    } else {
      const form = formOf(chosen, state);
      const dims = name === "b" ? ["k", "n"] : ["m", "k"];
      found.push({ name, operand: chosen, form, place: byteAt(chosen, form), shape: chosen.shape, dims });
    }
  }
  return found;
}

export function immediatesIn(instruction, state) {
  const read = (name) => Number(state[name] ?? 0) || 0;
  return {
    selector: read("selector"),
    byte: read("byte"),
    thread: read("thread"),
    offset: read("offset"),
    blocks: instruction.blocks,
  };
}

// The canonical layout that is chosen: of this major, with this swizzle, or the nearest to it.
export function formOf(operand, { major = "k", swizzle = "128" }) {
  const forms = operand.forms.map(([m, s, mn, k, leading, stride, text]) => ({
    major: m,
    swizzle: s,
    mn,
    k,
    leading,
    stride,
    text,
  }));
  const fits = forms.filter((form) => form.major === major);
  const among = fits.length ? fits : forms;
  return among.find((form) => String(form.swizzle) === String(swizzle)) ?? among.at(-1);
}

// The byte at which an element stands, from its point.
export function byteAt(operand, form) {
  const layout = readModes(form.text);
  const bits = Math.min(8, operand.bits);
  return (point) => {
    const [mn, k] = operand.name === "b" ? [point[1], point[0]] : point;
    return layout.of({ mn, k: Math.floor((k * bits) / 8) })?.[0] ?? null;
  };
}

function gridsOf(part, { colour = "lane", show = "matrix" }) {
  if (part.form) {
    const [rows, cols] = part.shape;
    const cell = (r, c) => {
      const byte = part.place([r, c]);
      return { at: [r, c], point: [r, c], slots: [], label: String(byte), shade: bankOf(byte), key: [byte] };
    };
    return [{ title: "", rowName: part.dims[0], colName: part.dims[1], rows, cols, names: ["byte"], cell }];
  }
  const per = Math.max(1, part.layout.size("element") / part.operand.count);
  const shade = shadeBy(colour, per);
  if (show === "lanes") return hardwareGrids(part.layout, shade);
  return matrixGrids(part.layout, shade, { shape: part.shape, dims: part.dims, behind: true });
}

const title = (part) => {
  const { operand, form, shape } = part;
  const where = form
    ? `byte in shared memory, ${form.major}-major, ${form.swizzle ? `${form.swizzle}-byte swizzle` : "no swizzle"}`
    : `${operand.count} × .${operand.type}`;
  return [
    h("b", {}, letters(part.name)),
    ` ${shape.join("×")} `,
    h("span", { class: "type" }, operand.element),
    h("span", { class: "title" }, where),
  ];
};

const CORNER = 16; // rows of C that stand in the corner beside B; more stand beside D

const placesOf = (rowsOfC) => [
  ["corner-left", rowsOfC <= CORNER ? ["c"] : []],
  ["top", ["sfb", "b"]],
  ["left", ["sfa", "e", "a"]],
  ["right", rowsOfC <= CORNER ? ["d"] : ["d", "c"]],
];

// {element, mark(name, point, slots, kind), clear()}.
export function board(instruction, state, told) {
  const drawn = new Map();
  const made = new Map();
  const widths = [];
  for (const part of parts(instruction, state)) {
    const tables = gridsOf(part, state).map((grid) =>
      table(grid, {
        name: grid.title ? `${part.name}, ${grid.title}` : part.name,
        caption: title(part),
        all: Boolean(state.all),
        told: {
          hover: (cell) => told.hover(part, cell),
          leave: told.leave,
          pick: (cell) => told.pick(part, cell),
        },
      }),
    );
    drawn.set(part.name, { part, tables, byPoint: Boolean(part.form) || state.show !== "lanes" });
    widths.push(...tables.map((one) => one.width));
    made.set(part.name, h("div", { class: `operand of-${part.name}` }, tables.map((one) => one.element)));
  }
  const element = h("div", { class: "board" });
  const product = made.has("a") && made.has("b") && made.has("d") && state.show !== "lanes";
  if (product) {
    element.classList.add("product");
    const places = placesOf(drawn.get("c")?.tables[0].grid.rows ?? 0);
    for (const [place, names] of places)
      element.append(h("div", { class: place }, names.map((name) => made.get(name) ?? null)));
    for (const [name, one] of made)
      if (!places.some(([, names]) => names.includes(name))) element.append(one);
  } else {
    const first = ["d", "a", "b", "c"].filter((name) => made.has(name)); // PTX's order
    element.append(...first.map((name) => made.get(name)));
    for (const [name, one] of made) if (!first.includes(name)) element.append(one);
  }
  element.style.setProperty("--letters", String(Math.max(...widths, 2)));
  let marked = [];
  return {
    element,
    parts: [...drawn.values()].map((one) => one.part),
    folded: [...drawn.values()].some(({ tables }) => tables.some((one) => one.folds.length)),
    mark(name, point, slots, kind) {
      const one = drawn.get(name);
      if (!one) return;
      const keys = one.byPoint ? [point.join(",")] : slots.map((slot) => slot.join(","));
      for (const { cells } of one.tables)
        for (const key of keys) {
          const cell = cells.get(key);
          if (!cell) continue;
          cell.classList.add(kind);
          marked.push(cell);
        }
    },
    clear() {
      for (const cell of marked) cell.classList.remove("own", "from", "into");
      marked = [];
    },
    find(name, point, slots) {
      const one = drawn.get(name);
      const key = one?.byPoint ? point.join(",") : slots[0]?.join(",");
      return one?.tables.map(({ cells }) => cells.get(key)).find(Boolean) ?? null;
    },
  };
}
