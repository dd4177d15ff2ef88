// A field into which a layout is pasted: what is wrong is said below it.

import { h } from "./dom.js";

export function pasted(words, name, changed, rows = 2) {
  const field = h("textarea", { name, rows: String(rows), spellcheck: "false", "aria-label": words, autocapitalize: "off" });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  field.addEventListener("input", () => changed(field.value));
  return {
    element: h("div", { class: "pasted" }, h("label", { class: "field" }, h("span", {}, words), field), error),
    field,
    set(text) {
      if (document.activeElement !== field && field.value !== text) field.value = text;
    },
    wrong(message) {
      error.hidden = !message;
      error.textContent = message ?? "";
      if (message) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    },
  };
}

// What a function gives, or its error's words: `[value, message]`.
export function attempt(function_) {
  try {
    return [function_(), null];
  } catch (error) {
    return [null, error.message || String(error)];
  }
}

// The layout in fragir's own words, where it is one of digits.
export function ownText(layout) {
  if (!layout.modes) return null;
  const stride = ({ step, flips }) => (flips ? "^" : "") + (step.length > 1 ? `(${step.join(",")})` : step[0]);
  const axes = layout.modes.map(({ name, modes }) => `${name} [${modes.map((m) => `${m.size}:${stride(m)}`).join(" ")}]`);
  const offset = layout.offset.some(Boolean) ? ` offset (${layout.offset.join(",")})` : "";
  const where = layout.where.map((c) => `${c.axis}/${c.divide}%${c.modulo}==${c.equals}`).join(" and ");
  const usual = { 1: "index", 2: "row,col", 3: "row,col,product" }[layout.dims.length];
  const dims = layout.dims.join(",") === usual ? "" : ` dims (${layout.dims.join(",")})`;
  return axes.join(" ") + offset + (where ? ` where ${where}` : "") + dims;
}
