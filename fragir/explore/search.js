// Which instructions are meant: words, family, type, shape, target.

const SHAPE = /^(?:m\d+n\d+(?:k\d+)?|\d+x\d+b\w*)$/;
const PLAIN = ["sync", "aligned", "mma_async"];
const known = new WeakMap();

// What is asked of an instruction again and again.
export function traits(instruction) {
  let found = known.get(instruction);
  if (!found) {
    const words = instruction.mnemonic.split(/::|\./);
    const shape = words.find((word) => SHAPE.test(word)) ?? instruction.shape.join("x");
    const operands = Object.values(instruction.operands);
    const matrices = operands.filter((one) => one.cls === "fragment" || one.cls === "descriptor");
    const types = new Set(matrices.map((one) => one.element));
    const parts = [...words, instruction.family, ...(shape.match(/[a-z]\d+/g) ?? []), ...types];
    found = { shape, types, words: parts.map((word) => word.toLowerCase()) };
    known.set(instruction, found);
  }
  return found;
}

// What distinguishes it from the rest of its family and shape.
export function told(instruction) {
  const plain = new Set([...PLAIN, ...instruction.family.split("."), traits(instruction).shape]);
  return instruction.mnemonic.split(".").filter((word) => !plain.has(word)).join(".");
}

function says(instruction, word) {
  if (word.startsWith("sm_")) return word in instruction.targets;
  if (/[.*]/.test(word)) {
    const parts = word.split("*").map((part) => part.replace(/[.+?^${}()|[\]\\]/g, "\\$&"));
    return new RegExp(parts.join(".*"), "i").test(instruction.mnemonic);
  }
  return traits(instruction).words.some((part) => part.startsWith(word));
}

const FILTERS = {
  family: (instruction, value) => instruction.family === value,
  type: (instruction, value) => traits(instruction).types.has(value),
  shape: (instruction, value) => traits(instruction).shape === value,
  target: (instruction, value) => value in instruction.targets,
};

// The instructions that fit; `except` is a filter that is not asked.
export function search(all, filters, except = "") {
  const words = (filters.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const asked = Object.entries(FILTERS).filter(([name]) => filters[name] && name !== except);
  return all.filter(
    (one) =>
      asked.every(([name, fits]) => fits(one, filters[name])) &&
      words.every((word) => says(one, word)) &&
      !(filters.native && filters.target && one.lowering[filters.target] !== "native"),
  );
}

const numeric = (a, b) => a.localeCompare(b, "en", { numeric: true });

// What a filter can be set to without leaving nothing, given the others: [[value, count]].
export function choices(all, filters, name) {
  const values = {
    family: (one) => [one.family],
    type: (one) => [...traits(one).types],
    shape: (one) => [traits(one).shape],
    target: (one) => Object.keys(one.targets),
  }[name];
  const counts = new Map();
  for (const one of search(all, filters, name))
    for (const value of values(one)) counts.set(value, (counts.get(value) ?? 0) + 1);
  const sorted = [...counts];
  return name === "family" ? sorted : sorted.sort(([a], [b]) => numeric(a, b));
}
