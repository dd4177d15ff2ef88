// The list of instructions: search, filters, and a choice by arrow keys.

import { byId, check, choice, h, later, replace } from "./dom.js";
import { choices, search, told, traits } from "./search.js";

const AT_ONCE = 80;
export const FILTERS = ["q", "family", "type", "shape", "target", "native"];

const lowest = (instruction) => {
  const [first] = Object.entries(instruction.targets);
  return first ? first[0] : "";
};

export function listView(app) {
  let filters = {};
  let found = [];
  let drawn = 0;
  let active = -1;
  let open = "";
  const input = h("input", {
    type: "search",
    id: "search",
    placeholder: "m16n8k16 f16 sm_90a",
    autocomplete: "off",
    spellcheck: "false",
    role: "combobox",
    "aria-expanded": "true",
    "aria-label": "Search instructions",
    "aria-controls": "list",
  });
  const selects = h("div", { class: "filters" });
  const count = h("p", { class: "count", role: "status" });
  const list = h("ul", { id: "list", role: "listbox", "aria-label": "Instructions", tabindex: "0" });
  const element = h(
    "aside",
    { class: "list", "aria-label": "Instructions" },
    h("div", { class: "searching" }, h("div", { class: "search" }, input, h("kbd", {}, "/")), selects, count),
    list,
  );

  const changed = (patch) => {
    filters = { ...filters, ...patch };
    if (!filters.target) delete filters.native;
    app.set(Object.fromEntries(FILTERS.map((name) => [name, filters[name] || ""])));
  };
  const typed = later(() => changed({ q: input.value }), 120);

  function more(until = drawn + AT_ONCE) {
    const items = found.slice(drawn, until).map((instruction, i) => item(instruction, drawn + i));
    drawn += items.length;
    list.append(...items);
  }

  function item(instruction, number) {
    return h(
      "li",
      {
        role: "option",
        id: `item-${number}`,
        "data-name": instruction.mnemonic,
        title: instruction.mnemonic,
        "aria-selected": String(instruction.mnemonic === open),
      },
      h("span", { class: "what" }, h("b", {}, traits(instruction).shape), ` ${told(instruction)}`),
      h(
        "span",
        { class: "where" },
        h("span", { class: "family" }, instruction.family),
        instruction.refused ? " not emitted" : ` from ${lowest(instruction)}`,
      ),
    );
  }

  function activate(number) {
    if (!found.length) return;
    active = Math.max(0, Math.min(number, found.length - 1));
    if (active >= drawn) more(active + AT_ONCE);
    for (const one of list.querySelectorAll(".active")) one.classList.remove("active");
    const one = byId(`item-${active}`);
    one.classList.add("active");
    one.scrollIntoView({ block: "nearest" });
    for (const owner of [list, input]) owner.setAttribute("aria-activedescendant", one.id);
  }

  function enter(name) {
    if (name) app.go({ view: "instructions", ...kept(), name });
  }

  const kept = () => Object.fromEntries(FILTERS.map((name) => [name, filters[name] ?? ""]));

  function key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10 }[event.key];
    const typedAhead = event.currentTarget === input && input.value !== (filters.q ?? "");
    if (typedAhead && (step || event.key === "Enter")) changed({ q: input.value });
    if (step) {
      event.preventDefault();
      activate(active < 0 && step > 0 ? 0 : active + step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      enter((found[active] ?? found[0])?.mnemonic);
    }
  }

  input.addEventListener("input", typed);
  input.addEventListener("keydown", key);
  list.addEventListener("keydown", key);
  list.addEventListener("click", (event) => enter(event.target.closest("li")?.dataset.name));
  list.addEventListener("scroll", () => {
    if (list.scrollTop + list.clientHeight > list.scrollHeight - 200 && drawn < found.length) more();
  });

  function select(words, name) {
    const options = choices(app.instructions, filters, name);
    const value = filters[name] ?? "";
    const known = options.some(([of]) => of === value);
    const items = [["", "any"], ...(value && !known ? [[value, `${value} (0)`]] : [])];
    items.push(...options.map(([of, n]) => [of, `${of} (${n})`]));
    return choice(words, name, items, value, (to) => changed({ [name]: to }));
  }

  function controls() {
    const any = FILTERS.some((name) => filters[name]);
    replace(
      selects,
      select("family", "family"),
      select("type", "type"),
      select("shape", "shape"),
      select("target", "target"),
      filters.target ? check(`native on ${filters.target}`, "native", filters.native, (on) => changed({ native: on ? "1" : "" })) : null,
      any ? h("button", { type: "button", class: "quiet", name: "clear", onclick: clear }, "clear") : null,
    );
  }

  function clear() {
    input.value = "";
    changed(Object.fromEntries(FILTERS.map((name) => [name, ""])));
    input.focus();
  }

  return {
    element,
    focus: () => (input.focus(), input.select()),
    show(state, first) {
      const next = Object.fromEntries(FILTERS.filter((name) => state[name]).map((name) => [name, state[name]]));
      const same = drawn && JSON.stringify(next) === JSON.stringify(filters) && list.dataset.asked === JSON.stringify(next);
      filters = next;
      if (document.activeElement !== input) input.value = filters.q ?? "";
      if (!same) {
        list.dataset.asked = JSON.stringify(next);
        found = search(app.instructions, filters);
        list.replaceChildren();
        drawn = 0;
        active = -1;
        controls();
        more();
        const all = app.instructions.length;
        count.textContent = found.length === all ? `${all} instructions` : `${found.length} of ${all} instructions`;
        if (!found.length) list.append(h("li", { class: "none" }, "No instruction fits. Take a word or a filter away."));
      }
      const another = open !== (state.name ?? first);
      open = state.name ?? first;
      for (const one of list.querySelectorAll('[aria-selected="true"]')) one.setAttribute("aria-selected", "false");
      const number = found.findIndex((one) => one.mnemonic === open);
      if (number >= 0) {
        if (number >= drawn) more(number + AT_ONCE);
        const one = byId(`item-${number}`);
        one?.setAttribute("aria-selected", "true");
        if (state.name && (another || !same)) one?.scrollIntoView({ block: "nearest" });
        if (active < 0) active = state.name ? number : -1;
      }
    },
  };
}
