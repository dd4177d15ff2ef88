// The data of the page: lines are stored once, and unpacked here.

import { Links } from "./links.js";

// Reads what `fragir.explain.page` has packed: deflated JSON in base64.
export async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

export class Model {
  constructor(data) {
    Object.assign(this, data);
    const lines = (numbers) => numbers.map((number) => data.table[number]);
    this.texts = new Map();
    const add = (id, language, title, text) => this.texts.set(id, { id, language, title, text });
    const links = [];
    const nothing = (text) => text.map(() => 0);
    const source = lines(data.source.lines);
    const ofPtx = data.kind === "ptx";
    if (!ofPtx) {
      add("source", "mlir", data.source.name, source);
      links.push({ id: "source", parent: null, from: nothing(source) });
    } else {
      add("ptx", "ptx", data.source.name, source);
      links.push({ id: "ptx", parent: null, from: nothing(source) });
    }
    data.stages.forEach((stage, number) => {
      const id = `s${number}`;
      const text = lines(stage.lines);
      add(id, "mlir", stage.name, text);
      const parent = number ? `s${number - 1}` : ofPtx ? "ptx" : "source";
      const from = number ? stage.from : stage.source;
      links.push({ id, parent, from, roots: stage.source });
    });
    if (data.ptx && !ofPtx) {
      const text = lines(data.ptx.lines);
      add("ptx", "ptx", "PTX", text);
      const parent = `s${data.stages.length - 1}`;
      links.push({ id: "ptx", parent, from: data.ptx.from, roots: data.ptx.source });
    }
    this.addMachine(lines, add, links);
    this.links = new Links(links);
    this.typeOf = new Map(data.types.map((type) => [type.text, type]));
    this.place();
  }

  addMachine(lines, add, links) {
    const text = [];
    const from = [];
    this.live = [];
    this.spilled = [];
    this.heads = new Set();
    for (const one of this.machine) {
      const spills = one.spill_stores + one.spill_loads;
      text.push(`${one.name}: ${one.registers} registers, ${spills} bytes spilled`);
      this.heads.add(text.length);
      from.push(0);
      this.live.push(null);
      one.spills.forEach((number) => this.spilled.push(text.length + number + 1));
      lines(one.lines).forEach((line) => text.push(line));
      from.push(...one.ptx);
      this.live.push(...one.live);
    }
    if (text.length && this.texts.has("ptx")) {
      add("sass", "sass", "SASS", text);
      links.push({ id: "sass", parent: "ptx", from });
    }
    this.registers = Math.max(0, ...this.machine.map((one) => one.registers));
  }

  // Marks at lines: {text: Map(line -> [mark])}, of a line of PTX at all lines that it comes from.
  place() {
    this.marked = new Map([...this.texts.keys()].map((id) => [id, new Map()]));
    const put = (id, line, mark) => {
      const lines = this.marked.get(id);
      if (lines && line > 0) lines.set(line, [...(lines.get(line) ?? []), mark]);
    };
    for (const mark of this.marks) {
      if (mark.ptx > 0 && this.texts.has("ptx")) {
        put("ptx", mark.ptx, mark);
        const above = this.links.ancestors("ptx", mark.ptx);
        Object.entries(above).forEach(([id, line]) => put(id, line, mark));
      } else if (mark.source > 0) put("source", mark.source, mark);
    }
    if (this.error && this.error.line) {
      const mark = { by: "compiler", kind: "error", severity: "error", message: this.error.message };
      put(this.kind === "ptx" ? "ptx" : "source", this.error.line, mark);
    }
    this.spillsOf = new Map();
    for (const line of this.spilled) {
      const above = { sass: line, ...this.links.ancestors("sass", line) };
      for (const [id, at] of Object.entries(above)) {
        const key = `${id} ${at}`;
        this.spillsOf.set(key, (this.spillsOf.get(key) ?? 0) + 1);
      }
    }
    for (const value of this.values) {
      const mark = { by: "value", kind: "value", severity: "value", message: value.at, value };
      put("ptx", value.ptx, mark);
      if (value.line) put(`s${value.stage}`, value.line, mark);
    }
  }

  // How many instructions of the machine code of a line load or store spilled registers.
  spills(id, line) {
    return this.spillsOf.get(`${id} ${line}`) ?? 0;
  }

  // How many registers live at most in the machine code of a line; null where that is unknown.
  pressure(id, line) {
    if (id === "sass") return this.live[line - 1];
    if (!this.texts.has("sass")) return null;
    const found = this.links.descendants(id, line, "sass").map((at) => this.live[at - 1] ?? 0);
    return found.length ? found.reduce((a, b) => Math.max(a, b)) || null : null;
  }
}
