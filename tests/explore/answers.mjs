// Reads questions as JSON from stdin and answers them with the page's modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { read } = await load("read.js");
const { convert } = await load("conversion.js");
const { accesses, addresses } = await load("memory.js");
const { decode, decodeInstruction, number, swizzlePattern } = await load("descriptor.js");
const { folded } = await load("folding.js");
const { instructions, contributions, operandLayout } = await load("instruction.js");

const table = (layout) => ({
  axes: layout.axes.map(({ name, size }) => [name, size]),
  dims: layout.dims,
  points: [...layout.slots()].map(([, point]) => point),
});

const words = {
  read: ({ text, tile }) => table(read(text, tile ?? null)),
  convert: ({ from, to, tile }) => {
    const found = convert(read(from, tile ?? null), read(to, tile ?? null));
    return { kind: found.kind, moves: found.moves.map(({ at, from }) => [at, from]) };
  },
  accesses: ({ text, access, bits }) => {
    const layout = read(text);
    const { places, unit } = addresses(layout, bits ?? null);
    const found = accesses(layout, read(access), unit);
    return { places, unit, passes: found.map((p) => [p.element, p.first, p.width, p.passes]) };
  },
  decode: ({ text, fields }) => {
    const found = decode(number(text), fields);
    return {
      values: Object.fromEntries(found.fields.map((f) => [f.name, f.value])),
      reserved: found.reserved.toString(),
    };
  },
  instruction: ({ text, kind }) =>
    Object.fromEntries(decodeInstruction(number(text), kind).map((f) => [f.name, f.value])),
  pattern: ({ width, atom }) => swizzlePattern(width, atom),
  fold: ({ keys, most }) => folded(keys, most),
  sources: ({ data, mnemonic, point, immediates }) => {
    const found = instructions(data).find((i) => i.mnemonic === mnemonic);
    return contributions(found, point, immediates).map(({ operand, point, holders }) => [
      operand,
      point,
      holders,
    ]);
  },
  operand: ({ data, mnemonic, operand, immediates }) => {
    const found = instructions(data).find((i) => i.mnemonic === mnemonic);
    return table(operandLayout(found.operands[operand], immediates ?? {}));
  },
};

const shared = {};
for (const question of JSON.parse(readFileSync(0, "utf8"))) {
  if (question.data === "before") question.data = shared.data;
  else if (question.data) shared.data = question.data;
  let answer;
  try {
    answer = { value: words[question.ask](question) };
  } catch (error) {
    answer = { error: error.message, kind: error.constructor.name };
  }
  console.log(JSON.stringify(answer));
}
