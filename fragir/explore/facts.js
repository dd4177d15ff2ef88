// What is known of an instruction in words: its targets, its registers, its layouts in memory.

import { encode } from "./descriptor.js";
import { h } from "./dom.js";
import { write } from "./state.js";

const HOW = {
  native: "one machine instruction",
  split: "several of a smaller shape",
  emulated: "a routine of other instructions",
};

// A chip for every way in which targets have it.
export function ways(instruction) {
  const groups = new Map();
  for (const target of Object.keys(instruction.targets)) {
    const how = instruction.lowering[target] ?? "unknown";
    if (!groups.has(how)) groups.set(how, []);
    groups.get(how).push(target);
  }
  return [...groups].map(([how, targets]) =>
    h(
      "span",
      { class: `way ${how}`, title: HOW[how] ?? "" },
      h("b", {}, how),
      targets.length > 3 ? ` ${targets[0]} … ${targets.at(-1)} (${targets.length})` : ` ${targets.join(", ")}`,
    ),
  );
}

export function targetTable(instruction) {
  const rows = Object.entries(instruction.targets).map(([target, version]) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, target),
      h("td", {}, `PTX ${version}`),
      h("td", {}, instruction.lowering[target] ?? "unknown"),
    ),
  );
  return h("details", { class: "fold" }, h("summary", {}, rows.length === 1 ? "its target" : `all ${rows.length} targets`), h("div", { class: "columns" }, h("table", {}, h("tbody", {}, rows))));
}

export function operandTable(instruction, partOf) {
  const rows = Object.values(instruction.operands).map((one) => {
    const layout = partOf(one.name)?.operand === one ? partOf(one.name).layout?.text : one.text;
    const held = one.cls === "descriptor" ? "descriptor" : `${one.count} × .${one.type}`;
    const open = one.text
      ? h("a", { href: write({ view: "layout", text: layout, bits: widthOf(one) }) }, layout)
      : one.cls === "descriptor"
        ? "in shared memory"
        : "";
    return h(
      "tr",
      {},
      h("th", { scope: "row" }, one.name),
      h("td", {}, one.element),
      h("td", {}, one.shape.join("×")),
      h("td", {}, held),
      h("td", { class: "mono" }, open),
    );
  });
  const head = ["operand", "type", "shape", "registers", "layout"].map((word) => h("th", { scope: "col" }, word));
  return h("details", { class: "fold" }, h("summary", {}, "operands and their layouts"), h("div", { class: "scroll" }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))));
}

const widthOf = (one) => (one.cls === "fragment" && one.bits >= 1 ? one.bits : "");

// The descriptor of a canonical layout that starts at byte 0, as a hexadecimal number.
export function descriptorOf(form, fields) {
  const codes = { 0: 0, 128: 1, 64: 2, 32: 3 };
  const unused = form.major === "k" && form.swizzle !== 0;
  const values = {
    start: 0,
    leading: unused ? 16 : form.leading,
    stride: form.stride,
    swizzle: codes[form.swizzle],
  };
  return `0x${encode(values, fields).toString(16).padStart(16, "0")}`;
}

// Every canonical layout of the operands that lie in shared memory.
export function formTable(instruction, fields, choose) {
  const rows = Object.values(instruction.operands)
    .filter((one) => one.forms.length)
    .flatMap((one) =>
      one.forms.map(([major, swizzle, mn, k, leading, stride, text]) => {
        const word = descriptorOf({ major, swizzle, leading, stride }, fields);
        return h(
          "tr",
          {},
          h("th", { scope: "row" }, one.name),
          h("td", {}, `${major.toUpperCase()}`),
          h("td", {}, swizzle ? `${swizzle} B` : "none"),
          h("td", {}, `${mn}×${k}`),
          h("td", {}, String(leading)),
          h("td", {}, String(stride)),
          h("td", { class: "mono" }, h("a", { href: write({ view: "descriptor", word, kind: "wgmma" }) }, word)),
          h("td", { class: "mono" }, h("a", { href: write({ view: "layout", text, show: "memory" }) }, text)),
          h(
            "td",
            {},
            h("button", { type: "button", class: "quiet", onclick: () => choose(one.name, major, swizzle) }, "draw"),
          ),
        );
      }),
    );
  if (!rows.length) return null;
  const head = ["", "major", "swizzle", "MN×K", "LBO", "SBO", "descriptor at 0", "layout", ""].map((word) =>
    h("th", { scope: "col" }, word),
  );
  return h("details", { class: "fold" }, h("summary", {}, "descriptors: canonical layouts in shared memory"), h("div", { class: "scroll" }, h("table", { class: "list" }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows))));
}
