// The panes of a view: which texts stand beside each other, and how their rows are drawn.

import { ICONS, make } from "./detail.js";
import { Pane } from "./pane.js";
import { areAlike, folded, rowsOf, starts } from "./rows.js";
import { typesIn, words } from "./syntax.js";

const SIGNS = { added: "+", removed: "−", changed: "~", renamed: "" };
const widest = (text) => text.reduce((most, line) => Math.max(most, line.length), 1);

export class Columns {
  // on: {hover(text, line), leave(), pick(text, line, event), unfold(first), choose(text), turn()}
  constructor(root, model, on) {
    this.root = root;
    this.model = model;
    this.on = on;
    this.list = [];
    this.related = {};
    this.pinned = {};
    this.found = "";
  }

  // Texts that are read line by line, each scrolled for itself.
  beside(ids, titles = [], choices = null) {
    this.starts = [];
    this.sync = false;
    this.build(ids, titles, choices);
    for (const column of this.list) {
      const { text } = this.model.texts.get(column.id);
      column.line = (row) => row.line;
      column.row = (line) => line - 1;
      column.pane.set(text.map((_, index) => ({ line: index + 1 })), widest(text));
    }
  }

  // Two texts of which what is alike stands at the same height, or beside each other if little is.
  compared(ids, titles, changes, open, all) {
    const [before, after] = ids.map((id) => this.model.texts.get(id).text);
    if (!areAlike(before.length, after.length, changes)) {
      this.beside(ids, titles);
      return false;
    }
    const rows = folded(rowsOf(before.length, after.length, changes), open, all);
    this.build(ids, titles, null);
    this.sync = true;
    this.starts = starts(rows);
    this.list.forEach((column, side) => {
      const of = (row) => (side ? row.right : row.left) || 0;
      column.line = (row) => (row.fold ? 0 : of(row));
      const at = new Map(rows.map((row, number) => [column.line(row), number]));
      column.row = (line) => at.get(line) ?? -1;
      column.pane.set(rows, widest(this.model.texts.get(column.id).text));
    });
    return true;
  }

  build(ids, titles, choices) {
    const kept = this.list.map(({ pane }) => pane.root.scrollLeft);
    this.list = ids.map((id, number) => {
      const text = this.model.texts.get(id);
      const body = make("div", { class: "body", tabindex: "0", role: "region" });
      body.setAttribute("aria-label", titles[number] ?? text.title);
      const title = choices && number === 0 ? this.chooser(choices, id) : make("h2", {}, titles[number] ?? text.title);
      const root = make("section", { class: "column", "data-text": id }, title, body);
      const column = { id, root, text };
      column.pane = new Pane(body, (element, row) => this.fill(column, element, row));
      return column;
    });
    const tabs = make("div", { class: "tabs", role: "tablist" });
    this.list.forEach(({ root, text }, number) => {
      const name = titles[number] ?? text.title;
      const turn = () => {
        this.tab(number);
        this.on.turn();
      };
      tabs.append(make("button", { role: "tab", onclick: turn }, name));
      root.addEventListener("mouseleave", () => this.on.leave());
    });
    this.root.replaceChildren(tabs, ...this.list.map(({ root }) => root));
    this.tab(this.list.length > 1 ? 1 : 0);
    this.list.forEach(({ pane }, number) => {
      pane.root.scrollLeft = kept[number] ?? 0;
      pane.root.addEventListener("scroll", () => this.follow(pane), { passive: true });
    });
  }

  chooser(choices, now) {
    const select = make("select", { "aria-label": "text", onchange: () => this.on.choose(select.value) });
    for (const id of choices) {
      const option = make("option", { value: id }, this.model.texts.get(id).title);
      option.selected = id === now;
      select.append(option);
    }
    return make("h2", {}, select);
  }

  // On a narrow screen one text is seen at a time.
  tab(number) {
    const top = Math.max(0, ...this.list.map(({ pane }) => pane.root.scrollTop));
    this.list.forEach(({ root }, at) => root.classList.toggle("front", at === number));
    if (this.sync) this.list.forEach(({ pane }) => (pane.root.scrollTop = top));
    [...this.root.querySelectorAll("[role=tab]")].forEach((tab, at) =>
      tab.setAttribute("aria-selected", String(at === number)),
    );
    this.list.forEach(({ pane }) => pane.draw());
  }

  follow(pane) {
    if (!this.sync || !pane.root.clientHeight) return;
    for (const { pane: other } of this.list) {
      if (other === pane) continue;
      for (const side of ["scrollTop", "scrollLeft"])
        if (other.root[side] !== pane.root[side]) other.root[side] = pane.root[side];
    }
  }

  // --- rows ------------------------------------------------------------------------------------

  fill(column, element, row) {
    if (row.fold) {
      const [first, behind] = row.fold;
      element.classList.add("fold");
      const words = `⋯ ${behind - first} lines alike`;
      element.append(make("button", { class: "link", onclick: () => this.on.unfold(first) }, words));
      return;
    }
    const line = column.line(row);
    if (row.kind) element.classList.add(row.kind);
    if (!line) {
      element.classList.add("none");
      return;
    }
    element.dataset.line = line;
    const marks = this.model.marked.get(column.id).get(line) ?? [];
    const spills = this.model.spills(column.id, line);
    const worst = ["error", "letter", "remark", "value"].find((s) => marks.some((m) => m.severity === s)) ?? (spills ? "spill" : undefined);
    const icon = make("span", { class: `icon ${worst ?? ""}` }, worst ? ICONS[worst] : "");
    const said = marks.map((mark) => `${mark.kind}: ${mark.message}`);
    if (spills) said.push(`${spills} loads and stores of spilled registers`);
    if (worst) icon.title = said.join("\n");
    const number = make("span", { class: "number" }, String(line));
    const sign = make("span", { class: "sign" }, SIGNS[row.kind] ?? "");
    element.append(icon, number, sign);
    if (column.id === "sass" || column.id === "ptx") element.append(this.bar(column.id, line));
    element.append(this.content(column, line));
    this.shade(column, element, line);
  }

  // How many of the kernel's registers live in the machine code of a line.
  bar(id, line) {
    const live = this.model.pressure(id, line);
    const bar = make("span", { class: "bar" });
    if (live !== null && live !== undefined && this.model.registers) {
      bar.style.setProperty("--share", Math.min(1, live / this.model.registers));
      bar.title = `${live} of ${this.model.registers} registers live`;
    }
    return bar;
  }

  content(column, line) {
    const { language, text, id } = column.text;
    const content = make("code", {});
    const whole = text[line - 1];
    if (id === "sass" && this.model.heads.has(line)) {
      content.append(make("b", {}, whole));
      return content;
    }
    let at = 0;
    const plain = (until) => {
      for (const [kind, word] of words(whole.slice(at, until), language))
        content.append(kind === "plain" ? word : this.word(column, line, kind, word));
      at = until;
    };
    for (const [first, behind, type] of language === "mlir" ? typesIn(whole, this.model.typeOf) : []) {
      plain(first);
      content.append(make("button", { class: "layout", "data-type": type }, whole.slice(first, behind)));
      at = behind;
    }
    plain(whole.length);
    return content;
  }

  word(column, line, kind, word) {
    if (kind === "opcode" && column.text.language === "ptx") {
      const number = this.model.instructions.findIndex((one) => one.mnemonic === word);
      if (number >= 0) return make("button", { class: "layout", "data-instruction": number }, word);
    }
    if (word === "frag.convert") {
      const number = this.model.conversions.findIndex(
        (one) => `s${one.stage}` === column.id && one.line === line,
      );
      if (number >= 0) return make("button", { class: "layout", "data-conversion": number }, word);
    }
    return make("span", { class: kind }, word);
  }

  shade(column, element, line) {
    element.classList.toggle("related", this.related[column.id]?.has(line) ?? false);
    element.classList.toggle("pinned", this.pinned[column.id]?.has(line) ?? false);
    const found = this.found && column.text.text[line - 1].toLowerCase().includes(this.found);
    element.classList.toggle("found", Boolean(found));
  }

  // Shades the lines that belong together: {text: [lines]}.
  highlight(related, pinned) {
    const sets = (all) =>
      Object.fromEntries(Object.entries(all).map(([id, lines]) => [id, new Set(lines)]));
    this.related = sets(related);
    this.pinned = sets(pinned);
    for (const column of this.list)
      for (const element of column.pane.shown.values())
        if (element.dataset.line) this.shade(column, element, Number(element.dataset.line));
  }

  // Brings a line of a text into sight; false where it is folded away or not of this view.
  show(id, line, always = false) {
    const number = this.list.findLastIndex((column) => column.id === id);
    if (number < 0) return false;
    const row = this.list[number].row(line);
    if (row < 0) return false;
    this.list[number].pane.show(row, always);
    return true;
  }
}
