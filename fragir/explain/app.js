// The page: which view is shown, what is pinned, keys, the address.

import { format, keys, parse } from "./address.js";
import { Columns } from "./columns.js";
import { make, ofConversion, ofInstruction, ofMarks, ofType } from "./detail.js";
import { Model, unpacked } from "./model.js";
import { byId, head, plural, side } from "./side.js";

class App {
  constructor(model) {
    this.model = model;
    this.names = keys(model.stages.map((stage) => stage.name));
    this.open = new Map();
    this.all = false;
    this.pin = null;
    this.first = model.kind === "ptx" ? null : "source";
    this.columns = new Columns(byId("panes"), model, {
      hover: (id, line) => this.hover(id, line),
      leave: () => this.hover(null),
      unfold: (first) => this.unfold(first),
      choose: (id) => this.choose(id),
      turn: () => this.pin && !this.columns.sync && this.showPinned(),
    });
    head(this);
    side(this);
    this.listen();
    this.visit();
  }

  // --- views -----------------------------------------------------------------------------------

  // `view`: the number of a stage, or "code".
  show(view, keep = true) {
    const { model } = this;
    this.view = view;
    this.columns.found = byId("search").value.trim().toLowerCase();
    if (view === "code") {
      const ids = [...model.texts.keys()].filter((id) => id !== "ptx" && id !== "sass");
      const first = this.first ?? ids[0];
      const shown = [first, "ptx", "sass"].filter((id) => id && model.texts.has(id));
      this.columns.beside(shown, [], ids.length && first ? ids : null);
    } else {
      const before = view ? `s${view - 1}` : model.kind === "ptx" ? "ptx" : "source";
      const titles = [model.texts.get(before).title, `after ${model.stages[view].name}`];
      if (view) titles[0] = `after ${titles[0]}`;
      if (!this.open.has(view)) this.open.set(view, new Set());
      const changes = model.stages[view].changes;
      this.columns.compared([before, `s${view}`], titles, changes, this.open.get(view), this.all);
      this.note(model.stages[view].notes);
    }
    byId("notes").hidden = view === "code" || !model.stages[view]?.notes.length;
    document.querySelectorAll("#passes button").forEach((button) => {
      const isThis = button.dataset.view === String(view);
      button.toggleAttribute("aria-current", isThis);
      if (isThis) button.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    this.at = -1;
    if (keep && this.pin) this.showPinned();
    this.light();
    this.remember();
  }

  note(notes) {
    byId("notes").replaceChildren(
      make("summary", {}, notes[0]?.split("\n")[0] ?? ""),
      make("pre", {}, notes.join("\n\n")),
    );
  }

  showPinned() {
    const related = this.model.links.related(this.pin.id, this.pin.line);
    for (const { id } of this.columns.list)
      if (related[id]) this.columns.show(id, related[id][0], true);
  }

  choose(id) {
    this.first = id;
    this.show("code");
  }

  unfold(first) {
    this.open.get(this.view)?.add(first);
    const at = this.columns.list[0].pane.root.scrollTop;
    this.show(this.view, false);
    this.columns.list.forEach(({ pane }) => (pane.root.scrollTop = at));
  }

  // To a line of a text: of a stage by its number, of PTX or SASS by their names.
  go(to, line, text = null) {
    const id = text ?? (typeof to === "number" ? `s${to}` : to);
    const view = typeof to === "number" ? to : "code";
    this.pin = { id, line };
    if (view !== this.view) this.show(view, false);
    this.reveal(id, line);
  }

  reveal(id, line) {
    if (!this.columns.show(id, line) && this.view !== "code") {
      this.all = true;
      this.show(this.view, false);
      this.columns.show(id, line, true);
    }
    const number = this.columns.list.findLastIndex((column) => column.id === id);
    if (number >= 0) this.columns.tab(number);
    const related = this.model.links.related(id, line);
    for (const column of this.columns.list)
      if (column.id !== id && related[column.id] && !this.columns.sync)
        this.columns.show(column.id, related[column.id][0]);
    this.light();
    this.remember();
  }

  // --- lines that belong together --------------------------------------------------------------

  hover(id, line) {
    if (this.over?.id === id && this.over?.line === line) return;
    this.over = id ? { id, line } : null;
    this.light();
  }

  light() {
    const of = (at) => (at ? this.model.links.related(at.id, at.line) : {});
    this.columns.highlight(of(this.over), of(this.pin));
    this.status(this.over ?? this.pin);
  }

  status(at) {
    const bar = byId("status");
    if (!at) {
      bar.replaceChildren(make("span", { class: "quiet" }, "point at a line; click to keep it; ? shows the keys"));
      return;
    }
    const related = this.model.links.related(at.id, at.line);
    const { title } = this.model.texts.get(at.id);
    const parts = [make("span", {}, `${title}:${at.line}`)];
    for (const [id, { title: name }] of this.model.texts) {
      if (id === at.id || !related[id]) continue;
      const lines = related[id];
      const to = /^s\d+$/.test(id) ? Number(id.slice(1)) : id;
      const go = () => this.go(to === "source" ? "code" : to, lines[0], id);
      const words = lines.length === 1 ? `${name}:${lines[0]}` : `${name}: ${lines.length} lines`;
      parts.push(make("button", { class: "link", onclick: go }, words));
    }
    const live = this.model.pressure(at.id, at.line);
    if (live) parts.push(make("span", { class: "quiet" }, `${live} of ${this.model.registers} registers live`));
    const spills = this.model.spills(at.id, at.line);
    if (spills) parts.push(make("span", { class: "quiet" }, `${plural(spills, "instruction")} for spilled registers`));
    bar.replaceChildren(...parts);
  }

  toggle(id, line) {
    const isPinned = this.pin?.id === id && this.pin?.line === line;
    this.pin = isPinned ? null : { id, line };
    if (!isPinned && !this.columns.sync) {
      const related = this.model.links.related(id, line);
      for (const column of this.columns.list)
        if (column.id !== id && related[column.id]) this.columns.show(column.id, related[column.id][0]);
    }
    const marks = this.pin ? this.model.marked.get(id).get(line) : null;
    if (marks) this.detail(ofMarks(this.model, marks));
    this.light();
    this.remember();
  }

  // --- the drawer ------------------------------------------------------------------------------

  detail(children) {
    const close = make("button", { class: "close", "aria-label": "close", onclick: () => this.close() }, "×");
    byId("detail").replaceChildren(close, ...children.filter((child) => child !== null));
    byId("detail").hidden = false;
    byId("detail").scrollTop = 0;
    this.columns.list.forEach(({ pane }) => pane.draw());
  }

  close() {
    byId("detail").hidden = true;
  }

  pressed(button, column, line) {
    const { model } = this;
    const go = (to, at) => this.go(to, at);
    const { type, conversion, instruction } = button.dataset;
    const stage = Number(column.slice(1));
    if (type) this.detail(ofType(model, model.typeOf.get(type), stage, line, go));
    if (conversion) this.detail(ofConversion(model, model.conversions[conversion], go));
    if (instruction) this.detail(ofInstruction(model, model.instructions[instruction], go));
  }

  // --- keys, clicks, the address ---------------------------------------------------------------

  listen() {
    const panes = byId("panes");
    const place = (event) => {
      const row = event.target.closest(".row[data-line]");
      return row && { id: row.closest(".column").dataset.text, line: Number(row.dataset.line) };
    };
    panes.addEventListener("mouseover", (event) => {
      const at = place(event);
      if (at) this.hover(at.id, at.line);
    });
    panes.addEventListener("click", (event) => {
      const at = place(event);
      if (!at) return;
      const button = event.target.closest("button.layout");
      if (button) this.pressed(button, at.id, at.line);
      else if (!event.target.closest("button") && !String(getSelection())) this.toggle(at.id, at.line);
    });
    byId("search").addEventListener("input", () => this.search(0));
    byId("search").addEventListener("keydown", (event) => {
      if (event.key === "Enter") this.search(event.shiftKey ? -1 : 1);
      if (event.key === "Escape") event.target.blur();
    });
    byId("help").addEventListener("click", () => byId("keys").showModal());
    document.addEventListener("keydown", (event) => this.key(event));
    addEventListener("hashchange", () => this.visit());
  }

  key(event) {
    if (event.key === "Enter" && event.target.closest("button, summary, a")) return;
    if (event.target.closest("input, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = this.model.ptx ? "code" : this.model.stages.length - 1;
    const views = [...this.model.stages.keys(), ...(last === "code" ? ["code"] : [])];
    const step = (by) => views[Math.min(views.length - 1, Math.max(0, views.indexOf(this.view) + by))];
    const found = {
      ArrowRight: () => this.show(step(1)),
      "]": () => this.show(step(1)),
      ArrowLeft: () => this.show(step(-1)),
      "[": () => this.show(step(-1)),
      n: () => this.difference(1),
      p: () => this.difference(-1),
      j: () => this.move(1),
      k: () => this.move(-1),
      Enter: () => this.openPinned(),
      a: () => this.whole(),
      c: () => this.model.ptx && this.show("code"),
      "/": () => byId("search").focus(),
      "?": () => byId("keys").showModal(),
      Escape: () => this.escape(),
    }[event.key];
    if (!found) return;
    event.preventDefault();
    found();
  }

  // The next line of the text that is pinned, or of the last one.
  move(by) {
    const column = this.columns.list.findLast(({ id }) => id === this.pin?.id) ?? this.columns.list.at(-1);
    const from = column.id === this.pin?.id ? column.row(this.pin.line) : -1;
    let row = from + by;
    while (column.pane.rows[row] && !column.line(column.pane.rows[row])) row += by;
    if (!column.pane.rows[row]) return;
    this.pin = { id: column.id, line: column.line(column.pane.rows[row]) };
    this.reveal(this.pin.id, this.pin.line);
  }

  // What the pinned line has to show: its marks, or else the first layout in it.
  openPinned() {
    if (!this.pin) return;
    const { id, line } = this.pin;
    const marks = this.model.marked.get(id).get(line);
    const row = document.querySelector(`.column[data-text="${id}"] .row[data-line="${line}"] button.layout`);
    if (marks) this.detail(ofMarks(this.model, marks));
    else if (row) this.pressed(row, id, line);
  }

  escape() {
    if (!byId("detail").hidden) this.close();
    else if (this.pin) {
      this.pin = null;
      this.light();
      this.remember();
    }
  }

  whole() {
    this.all = !this.all;
    this.show(this.view);
  }

  // The next or the previous stretch of differences.
  difference(by) {
    const { starts, list } = this.columns;
    if (!starts.length) return;
    this.at = Math.min(starts.length - 1, Math.max(0, this.at + by));
    list[0].pane.show(starts[this.at], true);
    list.forEach(({ pane }) => (pane.root.scrollTop = list[0].pane.root.scrollTop));
    const row = list[1].pane.rows[starts[this.at]];
    this.over = row.right ? { id: list[1].id, line: row.right } : { id: list[0].id, line: row.left };
    this.light();
  }

  // The next line of a shown text with the words that are searched for.
  search(by) {
    const words = byId("search").value.trim().toLowerCase();
    this.columns.found = words;
    const hits = [];
    for (const { id, text } of words ? this.columns.list.slice().reverse() : [])
      text.text.forEach((line, index) => line.toLowerCase().includes(words) && hits.push([id, index + 1]));
    this.hit = hits.length ? (((by ? (this.hit ?? -1) + by : 0) % hits.length) + hits.length) % hits.length : 0;
    byId("hits").textContent = words ? (hits.length ? `${this.hit + 1} of ${hits.length}` : "none") : "";
    if (!hits.length) {
      this.light();
      return;
    }
    const [id, line] = hits[this.hit];
    this.pin = { id, line };
    this.reveal(id, line);
  }

  remember() {
    const pin = this.pin;
    const state = { view: this.view === "code" ? "code" : this.names[this.view], line: 0, text: "after" };
    if (pin && this.view === "code") Object.assign(state, { line: pin.line, text: pin.id });
    else if (pin && pin.id === `s${this.view}`) state.line = pin.line;
    const fragment = `#${format(state)}`;
    if (location.hash === fragment) return;
    try {
      history.replaceState(null, "", fragment);
    } catch {
      // a frame without an address, as in a notebook
    }
  }

  // Shows what the address says; at first the pass that places tiles, or the last one.
  visit() {
    const { model } = this;
    const found = parse(location.hash, this.names);
    const placed = model.stages.findIndex((stage) => stage.name === "frag-place");
    const usual = model.kind === "ptx" ? "code" : placed >= 0 ? placed : model.stages.length - 1;
    if (!found || (found.view === "code" && !model.ptx)) {
      const at = model.error?.line;
      if (at && model.kind !== "ptx") this.pin = { id: "source", line: at };
      this.show(model.error && model.kind !== "ptx" ? model.stages.length - 1 : usual);
      return;
    }
    const view = found.view === "code" ? "code" : this.names.indexOf(found.view);
    const id = view === "code" ? found.text : `s${view}`;
    if (view !== this.view) this.show(view, false);
    if (found.line && model.texts.has(id) && found.line <= model.texts.get(id).text.length) {
      this.pin = { id, line: found.line };
      this.reveal(id, found.line);
    }
  }
}

unpacked(document.getElementById("data").textContent).then((data) => {
  window.fragirExplain = new App(new Model(data));
  document.documentElement.dataset.ready = "true";
});
