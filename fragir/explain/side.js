// What stands around the texts: the program's facts, its error, its passes, what was found.

import { ICONS, make, ofConversion, ofMarks } from "./detail.js";

export const byId = (id) => document.getElementById(id);
export const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// The name, what the kernels take, and the error that ended the program's way.
export function head(app) {
  const { model } = app;
  byId("name").textContent = model.source.name;
  const facts = [model.target];
  for (const one of model.machine) {
    const spills = one.spill_stores + one.spill_loads;
    const shared = one.shared ? `, ${one.shared} bytes shared` : "";
    const spilled = spills ? `${spills} bytes spilled` : "no spills";
    facts.push(`${one.name}: ${one.registers} registers, ${spilled}${shared}`);
  }
  byId("facts").textContent = facts.join(" · ");
  if (model.error) {
    const { message, line, doing } = model.error;
    const box = byId("error");
    box.hidden = false;
    const where = line ? `line ${line}: ` : "";
    const pass = doing ? ` (in ${doing})` : "";
    box.textContent = `${ICONS.error} ${where}${message}${pass}`;
    const id = model.kind === "ptx" ? "ptx" : "source";
    if (line) box.onclick = () => app.go(id === "ptx" ? "ptx" : 0, line, id);
  }
}

// The passes, the conversions, what was found.
export function side(app) {
  const { model } = app;
  const list = byId("passes");
  model.stages.forEach((stage, number) => {
    const parts = { added: "+", removed: "−", changed: "~" };
    const told = Object.entries(parts)
      .filter(([kind]) => stage.counts[kind])
      .map(([kind, sign]) => make("span", { class: kind }, `${sign}${stage.counts[kind]}`));
    const words = Object.entries(stage.counts).map(([kind, count]) => `${count} ${kind}`);
    const button = make(
      "button",
      { "data-view": String(number), title: `lines: ${words.join(", ")}`, onclick: () => app.show(number) },
      make("span", { class: "pass" }, stage.name),
      make("span", { class: "ms" }, `${stage.ms.toFixed(1)} ms`),
      make("span", { class: "counts" }, ...told),
    );
    list.append(make("li", {}, button));
  });
  if (model.ptx) {
    const lines = plural(model.texts.get("ptx").text.length, "line");
    const title = model.texts.has("sass") ? "PTX and SASS" : "PTX";
    const button = make(
      "button",
      { "data-view": "code", onclick: () => app.show("code") },
      make("span", { class: "pass" }, title),
      make("span", { class: "ms" }, lines),
    );
    list.append(make("li", {}, button));
  }
  conversions(app);
  notes(app);
}

function conversions(app) {
  const { model } = app;
  for (const one of model.conversions) {
    const show = () => {
      app.go(one.stage, one.line);
      app.detail(ofConversion(model, one, (to, at) => app.go(to, at)));
    };
    const title = `${one.steps}; asked for by ${one.asked_by}`;
    const cost = make("span", { class: "ms" }, one.cost ? String(one.cost) : "free");
    byId("conversions").append(
      make("li", {}, make("button", { class: "grid", title, onclick: show }, make("code", {}, one.name), cost)),
    );
  }
  byId("conversions-head").hidden = !model.conversions.length;
}

// For which schedules the run speaks.
function schedules({ open, assumptions }) {
  const assumed = assumptions.length ? ` (assumed: ${assumptions.join(", ")})` : "";
  if (!open.length) return `schedules: every${assumed}`;
  const at = open.map(({ ptx, why }) => (ptx ? `line ${ptx}: ${why}` : why));
  return `schedules: those that ran; up to the schedule is ${at.join("; ")}`;
}

function notes(app) {
  const { model } = app;
  const found = byId("found");
  const entry = (mark) => {
    const name = mark.value?.what.split(":")[0] ?? mark.kind;
    const words = `${ICONS[mark.severity]} ${name}`;
    const at = mark.value?.line || mark.ptx;
    const line = make("span", { class: "ms" }, at ? `line ${at}` : "");
    const show = () => {
      if (mark.value?.line) app.go(mark.value.stage, mark.value.line);
      else if (mark.ptx) app.go("ptx", mark.ptx);
      app.detail(ofMarks(model, [mark]));
    };
    const attributes = { class: `grid ${mark.severity}`, title: mark.message, onclick: show };
    return make("li", {}, make("button", attributes, make("span", {}, words), line));
  };
  const values = model.values.map((value) => ({
    severity: "value", message: value.at, kind: "value", ptx: value.ptx, value,
  }));
  for (const mark of [...model.marks, ...values]) found.append(entry(mark));
  byId("found-head").hidden = !found.children.length;
  if (model.ran && !model.marks.some((mark) => mark.by === "check"))
    found.before(
      make("p", { class: "quiet" }, `${model.ran.includes("every check") ? "no findings, run" : "run"} ${model.ran}`),
    );
  if (model.schedules) found.before(make("p", { class: "quiet" }, schedules(model.schedules)));
  const code = byId("code");
  if (model.pipeline) code.textContent = model.pipeline;
  byId("pipeline").hidden = !model.pipeline;
  const told = model.no_machine ? `no machine code: ${model.no_machine}` : "";
  byId("told").textContent = told;
}
