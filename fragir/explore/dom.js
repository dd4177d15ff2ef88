// Elements of the page, made in one line each.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

// A choice with its name: options are values or [value, words].
export function choice(words, name, options, value, changed) {
  const items = options.map((option) => {
    const [of, text] = Array.isArray(option) ? option : [option, option];
    return h("option", { value: of, selected: String(of) === String(value) }, String(text));
  });
  const select = h("select", { name, "aria-label": words, onchange: () => changed(select.value) }, items);
  return h("label", { class: "choice" }, h("span", {}, words), select);
}

// Buttons of which one is pressed.
export function switches(words, options, value, changed) {
  const buttons = options.map(([of, text]) =>
    h("button", { type: "button", "aria-pressed": String(of === value), onclick: () => changed(of) }, text),
  );
  return h("div", { class: "switches", role: "group", "aria-label": words }, h("span", {}, words), buttons);
}

export function check(words, name, value, changed) {
  const box = h("input", { type: "checkbox", name, checked: Boolean(value) });
  box.addEventListener("change", () => changed(box.checked));
  return h("label", { class: "check" }, box, h("span", {}, words));
}

// A button that puts a text on the clipboard and says so.
export function copier(words, text) {
  const button = h("button", { type: "button", class: "quiet" }, words);
  button.addEventListener("click", async () => {
    let done = true;
    try {
      await navigator.clipboard.writeText(text());
    } catch {
      done = false;
    }
    button.textContent = done ? "copied" : "not allowed";
    setTimeout(() => (button.textContent = words), 1200);
  });
  return button;
}

// Calls a function once a moment has passed without another call.
export function later(function_, ms = 150) {
  let waiting = 0;
  return (...given) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => function_(...given), ms);
  };
}

// Calls a function with what has been said since, put together, once a moment has passed.
export function gathered(function_, ms = 150) {
  let said = {};
  const tell = later(() => {
    const now = said;
    said = {};
    function_(now);
  }, ms);
  return (patch) => {
    Object.assign(said, patch);
    tell();
  };
}

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
}
