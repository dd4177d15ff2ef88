// The notation in which the PTX ISA describes fragments: row = groupID for ai where i < 2 ...

import { LARGEST, Layout, LayoutError, xor } from "./layout.js";

const AXIS = {
  "%laneid": "lane",
  laneid: "lane",
  "%tid.x": "lane",
  "%tid": "lane",
  "%warpid": "warp",
  warpid: "warp",
  i: "element",
};
const HELPERS = new Set(["groupID", "threadID_in_group"]);
const MOST_ELEMENTS = 256;

const TOKEN =
  /\s*(?:(%(?:laneid|warpid|tid(?:\.x)?)\b)|(0x[0-9a-f]+|0b[01]+|\d+)|([A-Za-z_]\w*)|(\.\.\.?|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^<>=!(){},:;]))/iy;

const ELEMENT = /^[a-e]_?i$/i;
const ELEMENT_N = /^[a-e]_?\d+$/i;

function tokens(text) {
  const found = [];
  let at = 0;
  while (text.slice(at).trim()) {
    TOKEN.lastIndex = at;
    const item = TOKEN.exec(text);
    if (!item) throw new LayoutError(`the formula cannot be read from '${text.slice(at).trim()}' on`);
    at = TOKEN.lastIndex;
    const [, register, number, name, sign] = item;
    if (register) found.push({ kind: "name", text: register });
    else if (number) found.push({ kind: "number", value: Number(number) });
    else if (name) {
      const word = name.toLowerCase();
      const known = { for: 1, where: 1, if: 1, otherwise: 1, else: 1, held: 1, or: 1, and: 1, not: 1 };
      if (known[word]) found.push({ kind: word === "else" ? "otherwise" : word });
      else if (/^(any|all|each|every)$/.test(word)) found.push({ kind: "any" });
      else found.push({ kind: "name", text: name });
    } else found.push({ kind: { "&&": "and", "||": "or", "!": "not" }[sign] ?? sign });
  }
  return found;
}

// Line breaks end a statement unless it goes on; then they are blanks.
export function fold(text) {
  text = text.replace(/(otherwise)\s(?=\s*where\b)/gi, "$1;");
  const goesOn = /^\s*(?:for\b|if\b|otherwise\b|else\b|[-+*/&|^<>=,)]|%\s|where\b)/i;
  const local = /^\s*where\s+(?!i\b)[A-Za-z_]\w*\s*=(?!=)\s*(?!\{)/i;
  let [out, depth, last] = ["", 0, ";"];
  [...text].forEach((char, at) => {
    if ("({[".includes(char)) depth++;
    if (")}]".includes(char)) depth--;
    if (char === "\n") {
      const after = text.slice(at + 1);
      const more = goesOn.test(after) && !local.test(after);
      char = depth > 0 || "-+*/&|^<>=,%".includes(last) || more ? " " : ";";
    }
    if (char.trim()) last = char;
    out += char;
  });
  return out;
}

class Reader {
  constructor(text) {
    this.tokens = tokens(fold(text));
    this.at = 0;
    this.definitions = new Map(); // name -> [{value, guard}]
    this.used = new Set();
    this.ranges = new Map(); // axis -> size
    this.predicates = [];
    this.reached = new Set();
    this.active = new Set();
  }

  peek(kind) {
    return this.tokens[this.at]?.kind === kind;
  }

  take(...kinds) {
    const token = this.tokens[this.at];
    if (!token || !kinds.includes(token.kind)) return null;
    this.at++;
    return token;
  }

  need(kind) {
    const token = this.take(kind);
    if (!token) this.fail();
    return token;
  }

  fail() {
    const token = this.tokens[this.at];
    const what = token ? `'${token.text ?? token.value ?? token.kind}'` : "its end";
    throw new LayoutError(`the formula cannot be read from ${what} on`);
  }

  formula() {
    let current = null;
    while (this.at < this.tokens.length) {
      if (this.take(";")) continue;
      const start = this.at;
      if (this.take("held")) {
        this.need("where");
        this.predicate();
        continue;
      }
      this.take("where");
      const name = this.take("name");
      if (name && this.take("=", ":")) {
        current = name.text;
        if (this.definitions.has(current))
          throw new LayoutError(`the formula defines ${current} twice`);
        this.definitions.set(current, [this.alternative()]);
      } else {
        this.at = start;
        if (current === null) throw new LayoutError("the formula begins without a name and '='");
        this.definitions.get(current).push(this.alternative());
      }
      if (this.at < this.tokens.length && !this.peek(";")) this.fail();
    }
    return this;
  }

  predicate() {
    const outer = this.used;
    do {
      this.used = new Set();
      const holds = this.negation();
      this.predicates.push({ used: this.used, holds });
      for (const name of this.used) outer.add(name);
    } while (this.take("and"));
    this.used = outer;
  }

  alternative() {
    const value = this.binary(0);
    return { value, guard: this.guard() };
  }

  guard() {
    if (this.take("where", "if")) return this.expression();
    if (this.take("otherwise") || !this.take("for")) return () => true;
    const subject = this.subject();
    if (!this.take("where", "if")) return subject;
    const condition = this.expression();
    return (e) => subject(e) && condition(e);
  }

  subject() {
    this.take("any");
    const name = this.tokens[this.at];
    if (name?.kind === "name" && ELEMENT.test(name.text)) {
      this.at++;
      return () => true;
    }
    if (name?.kind === "name" && ELEMENT_N.test(name.text)) {
      const numbers = new Set();
      do {
        numbers.add(Number(this.need("name").text.replace(/\D/g, "")));
      } while (this.take("and", ","));
      this.declare("element", Math.max(...numbers) + 1);
      return (e) => numbers.has(e.element);
    }
    const parts = [];
    do {
      const variable = this.need("name");
      this.need("=");
      const values = this.set(variable.text);
      parts.push([this.variable(variable.text), values]);
    } while (this.take(","));
    return (e) => parts.every(([variable, values]) => values.has(variable(e)));
  }

  // { 0, .., 7 }; of a variable that nothing defines it says the range
  set(name) {
    this.need("{");
    const numbers = [];
    let dots = false;
    do {
      if (this.take("..", "...")) {
        dots = true;
        continue;
      }
      const value = this.need("number").value;
      if (dots && value >= LARGEST) throw new LayoutError(`the range up to ${value} is too long`);
      if (dots) for (let x = numbers.at(-1) + 1; x < value; x++) numbers.push(x);
      dots = false;
      numbers.push(value);
    } while (this.take(","));
    this.need("}");
    if (name !== null && !this.definitions.has(name))
      this.declare(AXIS[name] ?? name, Math.max(...numbers) + 1);
    return new Set(numbers);
  }

  declare(axis, size) {
    this.ranges.set(axis, Math.max(size, this.ranges.get(axis) ?? 0));
  }

  expression() {
    return this.joined("or", () => this.joined("and", () => this.negation()));
  }

  joined(kind, next) {
    const parts = [next()];
    while (this.take(kind)) parts.push(next());
    if (parts.length === 1) return parts[0];
    return kind === "or" ? (e) => parts.some((p) => p(e)) : (e) => parts.every((p) => p(e));
  }

  negation() {
    if (!this.take("not")) return this.comparison();
    const part = this.negation();
    return (e) => !part(e);
  }

  comparison() {
    const start = this.at;
    const left = this.binary(0);
    const alone = this.at === start + 1 ? (this.tokens[start].text ?? null) : null;
    const checks = [];
    for (let sign; (sign = this.take("<", "<=", ">", ">=", "=", "==", "!=")); ) {
      if (this.peek("{")) {
        const values = this.set(alone);
        checks.push((x) => [values.has(x), x]);
      } else {
        const right = this.binary(0);
        const kind = sign.kind;
        checks.push((x, e) => {
          const y = right(e);
          const holds = { "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y, "!=": x !== y };
          return [holds[kind] ?? x === y, y];
        });
      }
    }
    if (!checks.length) return left;
    return (e) => {
      let value = left(e);
      return checks.every((check) => {
        const [holds, next] = check(value, e);
        value = next;
        return holds;
      });
    };
  }

  binary(level) {
    const signs = [["|"], ["^"], ["&"], ["<<", ">>"], ["+", "-"], ["*", "/", "%"]][level];
    if (!signs) return this.atom();
    let left = this.binary(level + 1);
    for (let sign; (sign = this.take(...signs)); ) {
      const [a, b, kind] = [left, this.binary(level + 1), sign.kind];
      left = (e) => calculate(kind, Number(a(e)), Number(b(e)));
    }
    return left;
  }

  atom() {
    const number = this.take("number");
    if (number) return () => number.value;
    if (this.take("(")) {
      const inner = this.expression();
      this.need(")");
      return inner;
    }
    return this.variable(this.need("name").text);
  }

  variable(name) {
    const axis = AXIS[name] ?? name;
    this.used.add(axis);
    return (e) => {
      if (axis in e) return e[axis];
      if (this.definitions.has(name)) return this.value(name, e);
      throw new LayoutError(`the formula does not say what ${name} is`);
    };
  }

  value(name, e) {
    if (this.active.has(name)) throw new LayoutError(`the formula defines ${name} by itself`);
    this.active.add(name);
    try {
      for (const [number, { value, guard }] of this.definitions.get(name).entries()) {
        if (!guard(e)) continue;
        this.reached.add(`${name} ${number}`);
        e[name] = value(e);
        return e[name];
      }
    } finally {
      this.active.delete(name);
    }
    const place = Object.entries(e).map(([axis, x]) => `${axis} ${x}`);
    throw new LayoutError(`the formula does not say what ${name} is at ${place.join(", ")}`);
  }
}

function calculate(sign, a, b) {
  if ((sign === "/" || sign === "%") && b === 0) throw new LayoutError("a division by zero");
  switch (sign) {
    case "+":
      return a + b;
    case "-":
      return a - b;
    case "*":
      return a * b;
    case "/":
      return Math.floor(a / b);
    case "%":
      return a - b * Math.floor(a / b);
    case "<<":
      return a * 2 ** b;
    case ">>":
      return Math.floor(a / 2 ** b);
    case "^":
      return xor(a, b);
    case "&":
      return Number(BigInt(a) & BigInt(b));
    default:
      return Number(BigInt(a) | BigInt(b));
  }
}

export function readFormula(text) {
  const formula = new Reader(text).formula();
  const sizes = new Map();
  if (formula.used.has("lane") && !formula.ranges.has("lane")) sizes.set("lane", 32);
  for (const [axis, size] of formula.ranges) sizes.set(axis, size);
  const axes = new Set([...sizes.keys(), "element"]);
  const names = [...formula.definitions.keys()].filter(
    (name) => (!formula.used.has(name) || axes.has(name)) && !HELPERS.has(name),
  );
  if (!names.length) throw new LayoutError("the formula does not say what row, col is");
  if (formula.used.has("element") && !sizes.has("element"))
    sizes.set("element", inferred(formula, sizes, names));
  const held = formula.predicates;
  const order = [...sizes.keys()];
  const at = (slot) => {
    const e = Object.fromEntries(order.map((axis, i) => [axis, slot[i]]));
    if (!held.every(({ holds }) => holds({ ...e }))) return null;
    return names.map((name) => formula.value(name, e));
  };
  const found = new Layout([...sizes].map(([name, size]) => ({ name, size })), names, at, text.trim());
  for (const [, point] of found.slots())
    if (point?.some((x) => x < 0)) throw new LayoutError("the formula gives a negative coordinate");
  return found;
}

// How many elements a lane holds: the one number that makes the formula hold each element once.
function inferred(formula, sizes, names) {
  const order = [...sizes.keys()];
  const lanes = new Layout([...sizes].map(([name, size]) => ({ name, size })), names, () => []);
  const slots = [...lanes.slots()].map(([slot]) => slot);
  const wanted = new Set([...formula.used, ...names]);
  let alternatives = 0;
  for (const [name, list] of formula.definitions) if (wanted.has(name)) alternatives += list.length;
  const seen = new Set();
  const extents = names.map(() => 0);
  const fitting = [];
  for (let element = 0; element < MOST_ELEMENTS; element++) {
    let points;
    try {
      points = slots.map((slot) => {
        const e = Object.fromEntries(order.map((axis, i) => [axis, slot[i]]));
        e.element = element;
        return names.map((name) => formula.value(name, e));
      });
    } catch (error) {
      if (error instanceof LayoutError) break;
      throw error;
    }
    for (const point of points) {
      seen.add(point.join(","));
      point.forEach((x, i) => (extents[i] = Math.max(extents[i], x + 1)));
    }
    if (seen.size < (element + 1) * slots.length || points.flat().some((x) => x < 0)) break;
    const full = extents.reduce((a, b) => a * b, 1);
    if (seen.size === full && formula.reached.size === alternatives) fitting.push(element + 1);
  }
  if (fitting.length === 1) return fitting[0];
  throw new LayoutError(
    "the formula does not say how many elements a lane holds; add a range such as i = {0,..,3}",
  );
}
