// Reads questions as JSON from stdin and answers them with the page's modules.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { join } from "node:path";

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(join(folder, name)).href);
const { read } = await load("read.js");
const { convert } = await load("conversion.js");
const { accesses, addresses } = await load("memory.js");
const { decode, decodeInstruction, number, swizzleOf, swizzlePattern } = await load("descriptor.js");
const { folded } = await load("folding.js");
const { instructions, contributions, feeds, immediatesOf, operandLayout } = await load("instruction.js");
const { COLOURS, hardwareGrids, layoutGrids, shadeBy } = await load("grids.js");
const { LARGEST, LayoutError } = await load("layout.js");
const { memoryGrid } = await load("memory_grids.js");
const { conversionGrids } = await load("conversion_grids.js");
const { byteAt, formOf } = await load("board.js");
const { descriptorOf } = await load("facts.js");
const { choices, search } = await load("search.js");
const { parse, write } = await load("state.js");
const { EXAMPLES, CONVERSIONS, readAny } = await load("texts.js");
const { ownText } = await load("pasted.js");

const table = (layout) => ({
  axes: layout.axes.map(({ name, size }) => [name, size]),
  dims: layout.dims,
  points: [...layout.slots()].map(([, point]) => point),
});

// A drawn grid, as far as pictures of Python have it.
const cells = (grid) => ({
  rowName: grid.rowName,
  colName: grid.colName,
  cells: Array.from({ length: grid.rows }, (_, r) =>
    Array.from({ length: grid.cols }, (_, c) => {
      const { label, shade, mark } = grid.cell(r, c);
      return [label, shade, Boolean(mark)];
    }),
  ),
});

const known = new Map();
const table_of = (data) => {
  if (!known.has(data)) known.set(data, instructions(data));
  return known.get(data);
};

const words = {
  draw: ({ text, tile, view, colour, bits, access, data }) => {
    const layout = readAny(text, tile ?? null, table_of(data), data.tensor);
    const per = bits ? Math.max(1, 32 / bits) : 1;
    if (view === "hardware") return hardwareGrids(layout, shadeBy(colour, per)).map(cells);
    if (view === "matrix") return layoutGrids(layout, colour, per).map(cells);
    const reader = access ? readAny(access, null, table_of(data)) : null;
    return [cells(memoryGrid(layout, { bits: bits ?? null, access: reader }).grid)];
  },
  // Texts that the table of the page knows: their own text, and their table where asked for.
  known: ({ texts, data, whole }) =>
    texts.map((text) => {
      try {
        const found = readAny(text, null, table_of(data), data.tensor);
        return whole ? table(found) : ownText(found);
      } catch (error) {
        if (!(error instanceof LayoutError)) throw error;
        return { error: error.message };
      }
    }),
  moved: ({ from, to }) => {
    const found = conversionGrids(read(from), read(to));
    return { grids: [found.before, found.after].map(cells), counts: found.counts };
  },
  // Reads a text and draws some of it, whatever it is.
  tried: ({ text, tile }) => {
    const layout = readAny(text, tile ?? null, []);
    if (layout.count > LARGEST) return layout.count;
    const grids = [layoutGrids(layout, "lane", 1)];
    for (const more of [() => hardwareGrids(layout, shadeBy("lane")), () => [memoryGrid(layout).grid]])
      try {
        grids.push(more());
      } catch (error) {
        if (!(error instanceof LayoutError)) throw error;
      }
    for (const grid of grids.flat())
      for (let i = 0; i < Math.min(4, grid.rows, grid.cols); i++) grid.cell(i, i);
    return layout.count;
  },
  feeds: ({ data, mnemonic, operand, point }) =>
    feeds(table_of(data).find((one) => one.mnemonic === mnemonic), operand, point),
  immediates: ({ data, mnemonic, operand }) =>
    immediatesOf(table_of(data).find((one) => one.mnemonic === mnemonic), operand),
  forms: ({ data, mnemonic, operand }) => {
    const one = table_of(data).find((i) => i.mnemonic === mnemonic).operands[operand];
    const fields = data.descriptors.matrix.wgmma;
    return one.forms.map(([major, swizzle]) => {
      const form = formOf(one, { major, swizzle });
      const [rows, cols] = one.shape;
      const place = byteAt(one, form);
      const bytes = Array.from({ length: rows }, (_, r) => Array.from({ length: cols }, (_, c) => place([r, c])));
      return { major, swizzle, word: descriptorOf(form, fields), bytes };
    });
  },
  search: ({ data, filters }) => search(table_of(data), filters).map((one) => one.mnemonic),
  choices: ({ data, filters, name }) => choices(table_of(data), filters, name),
  address: ({ state }) => parse(write(state)),
  examples: () => ({ layouts: EXAMPLES, conversions: CONVERSIONS }),
  own: ({ text, tile }) => ownText(read(text, tile ?? null)),
  swizzle: ({ kind, code }) => swizzleOf(kind, code),
  colours: () => COLOURS,
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
