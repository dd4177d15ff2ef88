// What stands behind the # of the page's address: the view, and what it shows.
// `#convert?from=...&to=...`; a bare mnemonic is that instruction.

export const VIEWS = ["instructions", "layout", "convert", "descriptor"];

export function parse(fragment) {
  const text = fragment.replace(/^#/, "");
  const cut = text.indexOf("?");
  const [view, rest] = cut < 0 ? [text, ""] : [text.slice(0, cut), text.slice(cut + 1)];
  if (VIEWS.includes(view)) return { view, ...Object.fromEntries(new URLSearchParams(rest)) };
  return text.includes(".") ? { view: "instructions", name: decoded(view) } : { view: "instructions" };
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The fragment of a state; what is empty is left out.
export function write({ view, ...rest }) {
  const said = Object.entries(rest).filter(([, value]) => value !== "" && value != null);
  const text = new URLSearchParams(said.map(([name, value]) => [name, String(value)])).toString();
  return text ? `#${view}?${text}` : `#${view}`;
}
