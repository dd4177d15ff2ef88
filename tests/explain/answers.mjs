// Answers questions about the page's modules: one JSON list in, one JSON list out.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const load = (name) => import(pathToFileURL(`${folder}/${name}.js`).href);
const { Links } = await load("links");
const { areAlike, folded, rowsOf, starts } = await load("rows");
const { typesIn, words } = await load("syntax");
const { format, keys, parse } = await load("address");

const answers = {
  related: ({ texts, asked }) => {
    const links = new Links(texts);
    return asked.map(([id, line]) => links.related(id, line));
  },
  rows: ({ before, after, changes }) => rowsOf(before, after, changes),
  alike: ({ before, after, changes }) => areAlike(before, after, changes),
  folded: ({ rows, open, all }) => folded(rows, new Set(open), all),
  starts: ({ rows }) => starts(rows),
  words: ({ lines, language }) => lines.map((line) => words(line, language)),
  types: ({ lines, known }) => lines.map((line) => typesIn(line, new Map(known.map((text) => [text, text])))),
  address: ({ names, states }) => states.map((state) => [format(state), parse(`#${format(state)}`, names)]),
  parse: ({ names, fragments }) => fragments.map((fragment) => parse(fragment, names)),
  keys: ({ names }) => keys(names),
};

const questions = JSON.parse(readFileSync(0, "utf8"));
console.log(JSON.stringify(questions.map(({ kind, ...question }) => answers[kind](question))));
