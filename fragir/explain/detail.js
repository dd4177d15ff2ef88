// What the drawer shows of a type, a conversion, an instruction, marks of a line, a value.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

function table(rows) {
  const body = rows
    .filter(([, value]) => value !== "" && value !== null && value !== undefined)
    .map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", {}, value)));
  return make("table", { class: "facts" }, ...body);
}

// A picture of the model: the SVG is our own.
export function picture(model, number) {
  if (number === null) return null;
  const { svg, words } = model.pictures[number];
  const frame = make("figure", { class: "picture", tabindex: "0" });
  frame.innerHTML = svg;
  const said = words.map((line) => make("li", {}, line));
  return make("div", {}, frame, said.length ? make("ul", { class: "words" }, ...said) : null);
}

// A type at a line of a stage: who asked for its layout, and the picture.
export function ofType(model, type, stage, line, go) {
  const placed = model.tiles.filter((tile) => tile.layout === type.layout);
  const here = placed.filter((tile) => tile.stage === stage && tile.line === line);
  const asked = (tile) => {
    const at = tile.asked_lines.map((to) =>
      make("button", { class: "link", onclick: () => go(tile.stage - 1, to) }, `line ${to}`),
    );
    const own = make("button", { class: "link", onclick: () => go(tile.stage, tile.line) });
    own.append(`${tile.name}, line ${tile.line}`);
    return make("li", {}, own, ": ", tile.asked_by, at.length ? " at " : "", ...at);
  };
  const shown = here.length ? here : placed;
  const most = shown.slice(0, 12).map(asked);
  if (shown.length > 12) most.push(make("li", {}, `and ${shown.length - 12} more`));
  const title = type.kind === "tile" ? "Tile" : "Shared memory";
  return [
    make("h2", {}, title),
    make("p", { class: "code" }, type.text),
    table([
      ["layout", type.resolved || type.layout],
      ["elements", `${type.shape.join(" x ")} ${type.element}`],
      ["picture", type.why_not],
    ]),
    shown.length ? make("h3", {}, here.length ? "Asked for by" : "Tiles that have it, asked for by") : null,
    shown.length ? make("ul", { class: "asked" }, ...most) : null,
    picture(model, type.picture),
  ];
}

const short = (number) => (Number.isInteger(number) ? String(number) : number.toPrecision(4));

export function ofConversion(model, one, go) {
  const at = one.asked_lines.map((to) =>
    make("button", { class: "link", onclick: () => go(one.stage - 1, to) }, `line ${to}`),
  );
  const cost = `${short(one.cost)} half cycles of an SM for a warp`;
  const times = one.trips === 1 ? "once" : `${short(one.trips)} times`;
  const without = one.without === null ? "impossible" : `the program would cost ${short(one.without)}`;
  return [
    make("h2", {}, `Conversion of ${one.name}`),
    table([
      ["from", one.source],
      ["to", one.target],
      ["cost", `${cost}, ${times}`],
      ["steps", one.steps],
      ["asked for by", make("span", {}, one.asked_by, at.length ? " at " : "", ...at)],
      ["without it", without],
    ]),
    picture(model, one.picture),
  ];
}

export function ofInstruction(model, instruction, go) {
  const found = [make("h2", {}, "Instruction"), make("p", { class: "code" }, instruction.mnemonic)];
  const count = instruction.lines.length;
  const first = instruction.lines[0];
  const link = make("button", { class: "link", onclick: () => go("ptx", first) }, `line ${first}`);
  found.push(make("p", {}, `${count} time${count > 1 ? "s" : ""} in the PTX, first at `, link));
  const seen = new Map();
  for (const { operand, words, picture: number } of instruction.operands) {
    found.push(make("h3", {}, `${operand}: ${words}`));
    if (number !== null && seen.has(number)) found.push(make("p", {}, `as ${seen.get(number)}`));
    else if (number !== null) {
      seen.set(number, operand);
      found.push(picture(model, number));
    }
  }
  return found;
}

const WHOSE = { check: "found by running it", ptxas: "said by ptxas", compiler: "said by fragir" };
export const ICONS = { error: "✖", letter: "◆", remark: "▲", value: "▦", spill: "▽" };

export function ofMarks(model, marks) {
  const found = [];
  for (const mark of marks) {
    if (mark.value) found.push(...ofValue(mark.value));
    else
      found.push(
        make("h2", { class: mark.severity }, `${ICONS[mark.severity]} ${mark.kind}`),
        make("p", {}, mark.message),
        make("p", { class: "quiet" }, `${mark.severity}, ${WHOSE[mark.by]}`),
        mark.why.length ? make("pre", { class: "why" }, mark.why.join("\n")) : "",
        picture(model, mark.picture) ?? "",
      );
  }
  return found;
}

const ROWS = 32; // of a matrix that are seen at once
const COLS = 16;

// A matrix of numbers; a cell says who holds it. Of a large one a part, which can be moved.
export function ofValue(value) {
  const frame = make("div", { class: "picture", tabindex: "0" });
  const height = value.rows.length;
  const width = Math.max(0, ...value.rows.map((row) => row.length));
  const at = { row: 0, col: 0 };
  const draw = () => frame.replaceChildren(matrix(value, at, height, width));
  draw();
  const mover = (name, label, size, most) => {
    const input = make("input", { type: "number", min: "0", max: String(Math.max(0, most - size)), step: String(size), value: "0" });
    input.addEventListener("input", () => {
      at[name] = Math.max(0, Math.min(most - 1, Number(input.value) || 0));
      draw();
    });
    return most > size ? make("label", {}, `${label} from `, input) : "";
  };
  return [
    make("h2", {}, `${ICONS.value} ${value.at}`),
    make("p", {}, value.what),
    make("p", { class: "quiet" }, value.when),
    ...value.words.map((line) => make("p", { class: "quiet" }, line)),
    make("p", { class: "movers" }, mover("row", "rows", ROWS, height), mover("col", "columns", COLS, width)),
    frame,
  ];
}

function matrix(value, at, height, width) {
  const cols = [...Array(Math.min(COLS, width - at.col)).keys()].map((col) => at.col + col);
  const head = make("tr", {}, make("th", {}, ""), ...cols.map((col) => make("th", { scope: "col" }, String(col))));
  const rows = [head];
  for (let row = at.row; row < Math.min(height, at.row + ROWS); row++) {
    const cells = cols.map((col) => {
      const holder = value.holders[row]?.[col] ?? "";
      const lane = /T(\d+)/.exec(holder);
      const shade = lane ? `held fr-cell-${Number(lane[1]) % 32}` : "held";
      const cell = make("td", { class: shade, title: `(${row}, ${col}) ${holder}` }, value.rows[row][col] ?? "");
      cell.append(make("small", {}, holder));
      return cell;
    });
    rows.push(make("tr", {}, make("th", { scope: "row" }, String(row)), ...cells));
  }
  return make("table", { class: "matrix" }, ...rows);
}
