// Words of a line with what they are, for colours: MLIR, PTX and SASS.

const RULES = {
  mlir: [
    ["comment", /\/\/.*/y],
    ["string", /"(?:[^"\\]|\\.)*"/y],
    ["value", /%[\w$.-]+(?:#\d+)?/y],
    ["symbol", /[@^][\w$.-]+/y],
    ["type", /[!#][A-Za-z_][\w$.]*|\b(?:memref|tensor|vector|index|bf16|tf32|f\d\w*|[su]?i\d+)\b/y],
    ["number", /\b(?:0x[0-9a-fA-F]+|\d+(?:\.\d+(?:[eE][-+]?\d+)?)?)\b/y],
    ["opcode", /\b[a-z_]\w*\.[a-z_][\w.]*/y],
    ["plain", /[A-Za-z_]\w*|\s+|./y],
  ],
  ptx: [
    ["comment", /\/\/.*/y],
    ["string", /"(?:[^"\\]|\\.)*"/y],
    ["value", /%[\w$]+(?:\.[xyzw])?/y],
    ["type", /\.[A-Za-z_]\w*(?:::\w+)*/y],
    ["number", /\b0[fFdDxX][0-9a-fA-F]+\b|\b\d+\b/y],
    ["symbol", /\$\w+|\b\w+(?=:)/y],
    ["opcode", /\b[a-z]\w*(?:\.[\w:]+)*(?=[\s;]|$)/y],
    ["plain", /[A-Za-z_]\w*|\s+|./y],
  ],
  sass: [
    ["comment", /\/\*.*?\*\//y],
    ["symbol", /@!?U?P\w+|\.L\w+|`\([^)]*\)/y],
    ["opcode", /\b[A-Z][A-Z0-9]{1,}(?:\.[\w.]+)?/y],
    ["value", /\b(?:U?R\d+|U?RZ|U?P\d+|U?PT|SR_\w+|B\d+)\b/y],
    ["number", /-?\b0x[0-9a-fA-F]+\b|\b\d+\b/y],
    ["plain", /[A-Za-z_]\w*|\s+|./y],
  ],
};

// [[kind, text]] whose texts together are the line.
export function words(line, language) {
  const found = [];
  const rules = RULES[language] ?? RULES.mlir;
  let at = 0;
  while (at < line.length) {
    for (const [kind, rule] of rules) {
      rule.lastIndex = at;
      const match = rule.exec(line);
      if (!match || !match[0]) continue;
      const last = found[found.length - 1];
      if (last && last[0] === kind && kind === "plain") last[1] += match[0];
      else found.push([kind, match[0]]);
      at += match[0].length;
      break;
    }
  }
  return found;
}

// Where types with a layout stand in a line: [[first, behind, text]], none within another.
export function typesIn(line, known) {
  const found = [];
  const start = /!frag\.tile<|\bmemref</g;
  for (let match = start.exec(line); match; match = start.exec(line)) {
    const end = closing(line, match.index + match[0].length - 1);
    const text = line.slice(match.index, end);
    if (end > 0 && known.has(text)) {
      found.push([match.index, end, text]);
      start.lastIndex = end;
    }
  }
  return found;
}

// Behind the bracket that closes the one at a place; -1 where none does.
function closing(line, at) {
  let depth = 0;
  let quoted = false;
  for (let i = at; i < line.length; i++) {
    if (line[i] === '"') quoted = !quoted;
    else if (quoted) continue;
    else if (line[i] === "<") depth++;
    else if (line[i] === ">" && line[i - 1] !== "-" && --depth === 0) return i + 1;
  }
  return -1;
}
