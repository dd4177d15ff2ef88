// A descriptor taken apart: its bits, its fields, and the swizzle it names.

import { decode, decodeInstruction, number, swizzleOf, swizzlePattern } from "./descriptor.js";
import { choice, gathered, h, replace } from "./dom.js";
import { attempt } from "./pasted.js";
import { table } from "./table.js";

const MATRIX = [["wgmma", "wgmma: matrix in shared memory (sm_90a)"], ["tcgen05", "tcgen05: matrix in shared memory (sm_100a)"]];
const FIRST = "0x4000004000010000";

export function descriptorView(app) {
  const typed = gathered((patch) => app.set(patch), 120);
  const input = h("input", { name: "word", spellcheck: "false", autocomplete: "off", placeholder: FIRST, "aria-label": "Descriptor, in hexadecimal", oninput: () => typed({ word: input.value }) });
  const wrong = h("p", { class: "error", role: "alert", hidden: true });
  const read = h("p", { class: "hint" });
  const controls = h("div", { class: "controls" });
  const bits = h("div", { class: "bits", role: "img" });
  const fields = h("div", { class: "scroll" });
  const drawing = h("div", { class: "drawing" });
  const element = h(
    "article",
    { class: "descriptor" },
    h("div", { class: "form" }, h("label", { class: "field" }, h("span", {}, "Descriptor, in hexadecimal"), input), read, controls, wrong),
    bits,
    fields,
    drawing,
  );

  const kinds = () => {
    const others = Object.keys(app.data.descriptors.instruction).map((kind) => [`i:${kind}`, `tcgen05: instruction, kind::${kind}`]);
    return [...MATRIX, ...others];
  };

  function taken(text, kind) {
    const word = number(text);
    const { matrix, instruction } = app.data.descriptors;
    const upwards = (one) => ({ ...one, fields: [...one.fields].sort((a, b) => a.low - b.low) });
    if (matrix[kind]) return upwards({ word, width: 64, ...decode(word, matrix[kind]) });
    const known = instruction[kind.replace(/^i:/, "")];
    const found = decodeInstruction(word, known);
    let rest = word;
    for (const { high, low } of found) rest &= ~(((1n << BigInt(high - low + 1)) - 1n) << BigInt(low));
    return upwards({ word, width: 32, fields: found, reserved: rest });
  }

  function diagram({ word, width, fields: known }) {
    const cells = [];
    for (let bit = width - 1; bit >= 0; bit--) {
      const i = known.findIndex(({ high, low }) => low <= bit && bit <= high);
      const on = (word >> BigInt(bit)) & 1n;
      const cell = h("span", { class: i < 0 ? "reserved" : `s${shade(i)}`, title: `bit ${bit}: ${i < 0 ? "reserved" : known[i].name}` }, String(on));
      if (bit % 8 === 0) cell.dataset.bit = String(bit);
      cells.push(cell);
    }
    bits.setAttribute("aria-label", `${width} bits, the highest first`);
    replace(bits, cells);
  }

  const shade = (i) => (4 * i + 2 + (i >> 3)) % 32;

  function meaning({ name, meaning: words, value, bytes }) {
    if (name === "leading" && value === 0 && bytes) return `${words}; 0 is no stride: unused`;
    return words;
  }

  function shown({ name, value, bytes }, kind) {
    const mode = name === "swizzle" ? swizzleOf(kind, value) : null;
    if (mode) return `${value}: ${mode.width ? `${mode.width} bytes` : "none"}`;
    return bytes ? `${value} bytes` : String(value);
  }

  function rows({ fields: known, reserved }, kind) {
    const lines = known.map((field, i) =>
      h(
        "tr",
        { "data-field": field.name },
        h("td", { class: `s${shade(i)} mono` }, field.high === field.low ? String(field.high) : `${field.high}:${field.low}`),
        h("th", { scope: "row" }, field.name),
        h("td", { class: "value mono" }, shown(field, kind)),
        h("td", {}, meaning(field)),
      ),
    );
    if (reserved)
      lines.push(h("tr", { class: "bad" }, h("td", {}), h("th", { scope: "row" }, "reserved"), h("td", { class: "mono" }, `0x${reserved.toString(16)}`), h("td", {}, "bits that no field covers are set: a sound descriptor has none")));
    const head = ["bits", "field", "value", "meaning"].map((word) => h("th", { scope: "col" }, word));
    return h("table", { class: "list" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, lines));
  }

  function swizzle(kind, { fields: known }) {
    const code = known.find((field) => field.name === "swizzle").value;
    const found = swizzleOf(kind, code);
    if (!found) return h("p", { class: "error" }, `Swizzle mode ${code} of ${kind} means nothing.`);
    if (!found.width) return h("p", { class: "hint" }, "No swizzle: core matrices of 8 rows of 16 bytes lie as they are.");
    const { width, atom } = found;
    const pattern = swizzlePattern(width, atom);
    const grid = {
      title: `where chunk c of ${atom} bytes of row r stands, in a row of ${width} bytes; it repeats every ${8 * width} bytes`,
      rowName: "r",
      colName: "c",
      rows: 8,
      cols: pattern[0].length,
      names: [],
      cell: (r, c) => ({ at: [r, c], label: String(pattern[r][c]), shade: 4 * pattern[r][c] + 1, key: null }),
    };
    const board = h("div", { class: "board loose" }, table(grid, { name: "swizzle", caption: h("b", {}, `${width}-byte swizzle`) }).element);
    board.style.setProperty("--letters", "5");
    return board;
  }

  return {
    element,
    escape: () => false,
    show(state) {
      const kind = kinds().some(([name]) => name === state.kind) ? state.kind : "wgmma";
      const text = state.word ?? "";
      if (document.activeElement !== input) input.value = text;
      replace(controls, choice("kind", "kind", kinds(), kind, (to) => app.set({ kind: to })));
      const [found, message] = attempt(() => taken(text || (kind.startsWith("i:") ? "0x08100490" : FIRST), kind));
      wrong.hidden = !message;
      wrong.textContent = message ?? "";
      input.toggleAttribute("aria-invalid", Boolean(message));
      read.textContent = "";
      if (!found) {
        replace(bits);
        replace(fields, h("p", { class: "hint" }, "Nothing is decoded until the text is a number, as in 0x4000004000010000."));
        replace(drawing);
        return;
      }
      const digits = /^\s*\d+\s*$/.test(text);
      const hex = `0x${found.word.toString(16).padStart(found.width / 4, "0")}`;
      read.textContent = digits ? `read as a decimal number, ${hex}; with 0x in front it is hexadecimal` : "";
      diagram(found);
      replace(fields, rows(found, kind));
      replace(drawing, kind.startsWith("i:") ? null : swizzle(kind, found));
    },
  };
}
