// What is said of one element: who holds it, what it is computed from, what it goes into.

import { h } from "./dom.js";
import { contributions, place } from "./instruction.js";
import { bankOf } from "./memory_grids.js";

const MOST_HOLDERS = 8;

// `lane 5, element 3: register 1, bits 31:16`
export function holderWords(part, [lane, element = 0]) {
  const { register, low, high } = place(part.operand, element, part.layout.size("element"));
  return `lane ${lane}, element ${element}: register ${register}, bits ${high}:${low}`;
}

// A, B, SFA; registers, addresses.
export const letters = (name) => (name.length > 3 ? name : name.toUpperCase());

export const nameOf = (name, point) => `${letters(name)}[${point.join(",")}]`;

export function byteWords(part, point) {
  const byte = part.place(point);
  return `byte ${byte}, bank ${bankOf(byte)} of shared memory`;
}

export function slotsOf(part, point) {
  return part.layout ? (part.layout.holders.get(point.join(",")) ?? []) : [];
}

// Heading and holders, in words.
export function told(part, point) {
  const slots = slotsOf(part, point);
  if (part.form) return [byteWords(part, point)];
  if (!slots.length) return ["held by no lane under these selectors"];
  const words = slots.slice(0, MOST_HOLDERS).map((slot) => holderWords(part, slot));
  if (slots.length > MOST_HOLDERS) words.push(`and ${slots.length - MOST_HOLDERS} more copies`);
  return words;
}

// [[operand, [{point, slots}]]]: what an element of the result is computed from.
export function sources(instruction, immediates, part, point) {
  const result = ["d", "registers"].includes(part.name);
  if (!result) return [];
  const groups = new Map();
  for (const { operand, point: at, holders } of contributions(instruction, point, immediates)) {
    if (!groups.has(operand)) groups.set(operand, []);
    groups.get(operand).push({ point: at, slots: holders });
  }
  return [...groups];
}

const NOTES = {
  a: "a row of A",
  b: "a column of B",
  c: "the same of C",
  e: "metadata: which elements of B count",
  sfa: "scales of A",
  sfb: "scales of B",
  addresses: "the lane whose address names the row",
};

// A list for every operand that contributes.
export function sourceLists(groups, partOf) {
  return groups.map(([name, items]) => {
    const part = partOf(name);
    const rows = items.map(({ point, slots }) => {
      const cells = part?.layout
        ? [
            slots.map(([lane]) => lane).join(" ") || "none",
            ...registers(part, slots),
          ]
        : [part?.form ? `byte ${part.place(point)}` : "shared", "", ""];
      return h("tr", {}, h("th", { scope: "row" }, nameOf(name, point)), cells.map((text) => h("td", {}, text)));
    });
    const head = part?.layout ? ["", "lane", "reg", "bits"] : ["", "place", "", ""];
    return h(
      "section",
      { class: "source", "data-source": name },
      h("h4", {}, NOTES[name] ?? name),
      h(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": NOTES[name] ?? name },
        h("table", {}, h("thead", {}, h("tr", {}, head.map((word) => h("th", { scope: "col" }, word)))), h("tbody", {}, rows)),
      ),
    );
  });
}

function registers(part, slots) {
  if (!slots.length) return ["", ""];
  const { register, low, high } = place(part.operand, slots[0][1] ?? 0, part.layout.size("element"));
  return [String(register), `${high}:${low}`];
}
