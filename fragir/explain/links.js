// Which lines of one text belong to which of another. Lines are counted from 1, 0 is none.
// A text has a parent, and says for each of its lines the one of the parent that it comes from;
// `roots` says which line of the first text it is, where a pass has lost the way to its parent.

export class Links {
  // texts: [{id, parent: id or null, from: [line], roots: [line] or undefined}]
  constructor(texts) {
    this.texts = texts;
    this.number = new Map(texts.map((text, number) => [text.id, number]));
    this.above = texts.map(() => null); // per text: per line: the lines of the texts above it
    this.below = new Map();
    texts.forEach((_, number) => this.ascend(number));
  }

  ascend(number) {
    const { parent, from, roots } = this.texts[number];
    const over = parent === null ? -1 : this.number.get(parent);
    this.above[number] = from.map((line, index) => {
      const found = new Int32Array(this.texts.length);
      if (over >= 0 && line > 0 && this.above[over][line - 1]) {
        found.set(this.above[over][line - 1]);
        found[over] = line;
      } else if (roots && roots[index] > 0) {
        found[0] = roots[index];
      }
      return found;
    });
  }

  // The line of each text above that a line comes from: {id: line}.
  ancestors(id, line) {
    const found = this.above[this.number.get(id)][line - 1];
    const result = {};
    if (found) found.forEach((at, number) => at > 0 && (result[this.texts[number].id] = at));
    return result;
  }

  // The lines of a text that come from a line of another one above it.
  descendants(id, line, below) {
    const key = `${id} ${below}`;
    if (!this.below.has(key)) {
      const index = new Map();
      const number = this.number.get(id);
      this.above[this.number.get(below)].forEach((found, at) => {
        const line = found[number];
        if (line > 0) index.set(line, [...(index.get(line) ?? []), at + 1]);
      });
      this.below.set(key, index);
    }
    return this.below.get(key).get(line) ?? [];
  }

  // All lines that belong to a line: {id: [lines]}, of the line's own text that line.
  related(id, line) {
    const result = { [id]: [line] };
    const above = this.ancestors(id, line);
    for (const [other, at] of Object.entries(above)) result[other] = [at];
    for (const { id: other } of this.texts) {
      if (other in result) continue;
      const found = this.descendants(id, line, other);
      if (found.length) result[other] = found;
      else if (this.isBeside(id, other)) {
        const meet = this.meeting(id, other);
        const beside = meet in above ? this.descendants(meet, above[meet], other) : [];
        if (beside.length) result[other] = beside;
      }
    }
    return result;
  }

  ways(id) {
    const found = [];
    for (let at = id; at !== null; at = this.texts[this.number.get(at)].parent) found.push(at);
    return found;
  }

  isBeside(id, other) {
    return !this.ways(id).includes(other) && !this.ways(other).includes(id);
  }

  meeting(id, other) {
    const ways = this.ways(other);
    return this.ways(id).find((at) => ways.includes(at)) ?? "";
  }
}
