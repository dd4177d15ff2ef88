// The text of Triton's encodings: `tensor<64x32xf16, #ttg.blocked<{sizePerThread = [1, 4], ...}>>`.

import { LayoutError } from "./layout.js";

export function parse(text) {
  let at = 0;
  const aliases = new Map();
  const skip = () => (at += /^\s*/.exec(text.slice(at))[0].length);
  const take = (pattern) => {
    skip();
    const found = pattern.exec(text.slice(at));
    if (found) at += found[0].length;
    return found;
  };
  const need = (pattern, what) => {
    const found = take(pattern);
    if (!found) throw new LayoutError(`${what} is missing at '${text.slice(at, at + 30)}'`);
    return found;
  };
  const value = () => {
    let found;
    if ((found = take(/^(true|false)\b/))) return found[1] === "true";
    if ((found = take(/^-?\d+/))) {
      take(/^:\s*[iu]\d+\b/);
      return Number(found[0]);
    }
    if (take(/^\[/)) {
      const items = [];
      if (!take(/^\]/)) {
        do {
          items.push(value());
          if (take(/^:\s*\+\s*/)) items.push({ padding: [items.pop(), value()] });
        } while (take(/^,/));
        need(/^\]/, "]");
      }
      return items;
    }
    return attribute();
  };
  const attribute = () => {
    const name = need(/^#([A-Za-z_][\w$.]*)/, "an attribute")[1];
    if (aliases.has(name)) return aliases.get(name);
    const bare = /^(?:ttg\.|triton_gpu\.)(.*)/.exec(name);
    if (!bare) throw new LayoutError(`#${name} is not defined`);
    const fields = {};
    const padding = [];
    if (!take(/^</)) return { name: bare[1], fields, padding };
    const braces = Boolean(take(/^\{/));
    const closing = /^[}>]/;
    skip();
    while (!closing.test(text.slice(at))) {
      if (text[at] === "[") {
        for (const item of value()) padding.push(item.padding);
        skip();
        if (take(/^\{/)) continue;
      } else {
        const key = need(/^[A-Za-z_]\w*/, "a field")[0];
        need(/^=/, "=");
        fields[key] = value();
      }
      take(/^,/);
      skip();
    }
    if (braces || text[at] === "}") need(/^\}/, "}");
    need(/^>/, ">");
    return { name: bare[1], fields, padding };
  };
  for (let found; (found = /^\s*#([A-Za-z_]\w*)\s*=\s*(?=#)/.exec(text.slice(at))); ) {
    at += found[0].length;
    aliases.set(found[1], attribute());
    if (!text.slice(at).trim()) return { encoding: aliases.get(found[1]), shape: null };
  }
  const type = take(/^(?:tensor|!ttg\.memdesc)\s*<\s*(\d+(?:x\d+)*)x[A-Za-z]\w*\s*,/);
  const encoding = attribute();
  return { encoding, shape: type ? type[1].split("x").map(Number) : null };
}

export function field(encoding, key, rank = null) {
  const found = encoding.fields[key];
  if (found === undefined) throw new LayoutError(`#ttg.${encoding.name} has no field ${key}`);
  if (rank !== null && found.length !== rank)
    throw new LayoutError(`${key} is a list of ${rank} numbers`);
  return found;
}

export function natural(encoding) {
  if (encoding.name === "padded_shared" && encoding.fields.shape) return encoding.fields.shape;
  const names = encoding.name === "linear" ? ["register", "lane", "warp", "block"] : ["offset"];
  const points = names.flatMap((name) => encoding.fields[name] ?? []);
  if (!points.length) return null;
  return points[0].map((_, dim) => 2 * 2 ** Math.floor(Math.log2(Math.max(...points.map((p) => p[dim])))));
}
