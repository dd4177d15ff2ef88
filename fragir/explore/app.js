// The page: which view is shown, its address, keys, and light or dark.

import { convertView } from "./convert_view.js";
import { descriptorView } from "./descriptor_view.js";
import { byId, h } from "./dom.js";
import { instructionView } from "./instruction_view.js";
import { instructions } from "./instruction.js";
import { layoutView } from "./layout_view.js";
import { listView } from "./list_view.js";
import { VIEWS, parse, write } from "./state.js";

const FIRST = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32";

const data = JSON.parse(byId("data").textContent);
const all = instructions(data);
const byName = new Map(all.map((one) => [one.mnemonic, one]));
let state = parse(location.hash);

const app = {
  data,
  instructions: all,
  byName,
  first: byName.get(FIRST) ?? all[0],
  // Another state, which "back" leaves again.
  go(next) {
    move(next, true);
  },
  // Some of the state anew; what is empty is left out.
  set(patch, push = false) {
    const next = { ...state, ...patch };
    for (const [name, value] of Object.entries(next)) if (value === "" || value == null) delete next[name];
    move(next, push);
  },
};

function move(next, push) {
  const address = write(next);
  if (address !== location.hash) {
    if (push) history.pushState(null, "", address);
    else history.replaceState(null, "", address);
  }
  state = parse(address);
  show();
}

const list = listView(app);
const instruction = instructionView(app);
const views = { layout: layoutView(app), convert: convertView(app), descriptor: descriptorView(app) };
const main = byId("main");
const both = h("div", { class: "both" }, list.element, instruction.element);
main.append(both, ...Object.values(views).map((view) => view.element));

const last = {};

function show() {
  last[state.view] = write(state);
  both.hidden = state.view !== "instructions";
  both.classList.toggle("opened", Boolean(state.name));
  for (const [name, view] of Object.entries(views)) view.element.hidden = name !== state.view;
  for (const link of document.querySelectorAll("nav a")) {
    const name = link.dataset.view;
    if (name === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
    link.href = last[name] ?? `#${name}`;
  }
  const focus = focused();
  if (state.view === "instructions") {
    list.show(state, app.first.mnemonic);
    instruction.show(state);
  } else views[state.view].show(state);
  refocus(focus);
  const what = state.view === "instructions" ? (state.name ?? "instructions") : state.view;
  document.title = `${what} · fragir explorer`;
}

// What is drawn anew keeps the focus, by its name and its words.
function focused() {
  const element = document.activeElement;
  if (!element || element === document.body) return null;
  if (element.name && !element.isConnected) return null;
  const words = element.matches("button") ? element.textContent : null;
  const at = element.matches("td[data-at]") ? [element.closest("[data-grid]").dataset.grid, element.dataset.at] : null;
  return { element, name: element.name, words, at };
}

function refocus(before) {
  if (!before || before.element.isConnected) return;
  const { name, words, at } = before;
  let found = null;
  if (at) found = document.querySelector(`[data-grid="${at[0]}"] td[data-at="${at[1]}"]`);
  else if (name) found = main.querySelector(`[name="${name}"]:not([hidden] *)`);
  else if (words)
    found = [...main.querySelectorAll("button")].find((one) => one.textContent === words && !one.closest("[hidden]"));
  found?.focus({ preventScroll: true });
}

addEventListener("popstate", () => {
  state = parse(location.hash);
  show();
});

addEventListener("hashchange", () => {
  if (write(parse(location.hash)) === write(state)) return; // popstate has seen it
  state = parse(location.hash);
  show();
});

// Light and dark -----------------------------------------------------------------------------

const dark = matchMedia("(prefers-color-scheme: dark)");

function themed(value) {
  if (value) document.documentElement.dataset.theme = value;
  const now = document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
  byId("theme").setAttribute("aria-label", now === "dark" ? "Light colours" : "Dark colours");
  byId("theme").textContent = now === "dark" ? "☀" : "☾";
  return now;
}

function remembered(value) {
  try {
    if (value) localStorage.setItem("fragir-theme", value);
    return localStorage.getItem("fragir-theme");
  } catch {
    return value; // storage may be forbidden
  }
}

function toggle() {
  themed(remembered(themed() === "dark" ? "light" : "dark"));
}

themed(remembered());
dark.addEventListener("change", () => themed());
byId("theme").addEventListener("click", toggle);

// Keys -----------------------------------------------------------------------------------------

const help = byId("keys");
byId("help").addEventListener("click", () => help.showModal());

const typing = (element) => element?.matches("input:not([type=checkbox]), textarea, select");

function search() {
  if (state.view !== "instructions") app.go(parse(last.instructions ?? "#instructions"));
  if (getComputedStyle(list.element).display === "none") app.set({ name: "", at: "" }, true);
  list.focus();
}

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (help.open) return; // the dialog closes itself
    const view = state.view === "instructions" ? instruction : views[state.view];
    if (!view.escape()) document.activeElement?.blur();
    return;
  }
  if (typing(document.activeElement) || help.open) return;
  const number = "1234".indexOf(event.key);
  if (event.key === "/") search();
  else if (event.key === "?") help.showModal();
  else if (event.key === "t") toggle();
  else if (number >= 0) app.go(parse(last[VIEWS[number]] ?? `#${VIEWS[number]}`));
  else if (event.key === "ArrowDown" && document.activeElement === document.body && state.view === "instructions")
    list.element.querySelector("#list").focus();
  else return;
  event.preventDefault();
});

show();
performance.mark("drawn");
