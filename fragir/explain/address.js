// What the page shows, in the fragment of its address: `frag-place/40`, `code/12`.
// Passes that are applied twice are told apart by a number: `canonicalize~2/40`.

// {view: name of a stage or "code", line, text}; `text` is which text of the code the line is of.
export function parse(fragment, names) {
  const [view, text, last] = decodeURIComponent(fragment.replace(/^#/, "")).split("/");
  const line = Number(last ?? text) || 0;
  if (view === "code") return { view, text: last === undefined ? "ptx" : text, line };
  return keys(names).includes(view) ? { view, text: "after", line } : null;
}

export function format({ view, text, line }) {
  const where = line > 0 ? `/${line}` : "";
  return view === "code" && where && text !== "ptx" ? `${view}/${text}${where}` : view + where;
}

// A key for every stage.
export function keys(names) {
  const count = new Map();
  return names.map((name) => {
    const number = (count.get(name) ?? 0) + 1;
    count.set(name, number);
    return number === 1 ? name : `${name}~${number}`;
  });
}
