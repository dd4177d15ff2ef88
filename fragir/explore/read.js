// Any layout's text, each notation known by its prefix or its looks.

import { readF2, readPrinted } from "./bases.js";
import { readCute } from "./cute.js";
import { readFormula } from "./formula.js";
import { composed, swizzled } from "./layout.js";
import { readModes } from "./modes.js";
import { readTtg } from "./ttg.js";

const PREFIX = /^\s*(cute|f2|formula|ttg)\s*:\s*/;
const BEGINNINGS = [
  ["f2", /^\s*\{/],
  ["cute", /^\s*(?:\(|_?\d|Sw?<)/],
  ["ttg", /^\s*(?:#|!ttg\b|tensor\s*<|-\s*[A-Za-z_]\w*\s*(?:=|is\b))/],
  ["formula", /^\s*[%A-Za-z_][\w.]*\s*(?:=|\n.*=)/],
];
const O = /\bo\b/;

// The layout of a text; `tile` is the shape that CuTe's and Triton's texts may need.
export function read(text, tile = null) {
  const prefix = PREFIX.exec(text);
  const kind = prefix ? prefix[1] : (BEGINNINGS.find(([, looks]) => looks.test(text)) ?? [""])[0];
  const rest = prefix ? text.slice(prefix[0].length) : text;
  if (kind === "f2") return readF2(rest);
  if (kind === "formula") return readFormula(rest);
  if (kind === "ttg") return rest.trimStart().startsWith("-") ? readPrinted(rest) : readTtg(rest, tile);
  if (kind === "cute" && !(O.test(rest) && rest.includes("[") && !rest.includes("smem_ptr")))
    return readCute(rest, tile);
  return O.test(rest) ? chain(rest) : readModes(rest);
}

function chain(text) {
  const parts = text.split(O).map((part) => part.trim());
  let found = readModes(parts.at(-1));
  for (const part of parts.slice(0, -1).reverse()) {
    const swizzle = /^Sw?<\s*(\d+)\s*,\s*(\d+)\s*,\s*(-?\d+)\s*>$/.exec(part);
    found = swizzle
      ? swizzled(...swizzle.slice(1).map(Number), found)
      : composed(readModes(part), found);
  }
  found.text = text.trim();
  return found;
}
