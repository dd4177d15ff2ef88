"""Which words of tensor-core instructions go together on which target, as rows of text.

A family is a table of its forms, and what is asked of a statement, in order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import NamedTuple, TypeAlias

from fragir.emulator.tensor_cores.arithmetic import TargetName, abilities
from fragir.emulator.tensor_cores.mnemonic import Mnemonic

#: A form: by column the words that it allows.
Row: TypeAlias = Mapping[str, frozenset[str]]
#: Words of which a statement must have one, and words of which it must lack one, else.
_Term: TypeAlias = tuple[frozenset[str], frozenset[str]]

_LINE = re.compile(r"(.*)=>(.*?)! (.*?)(?: ! (.*))?")


class _Question(NamedTuple):
    """A line: `when` all of these hold, all of `needs` must, and rows be left by `columns`."""

    when: tuple[_Term, ...]
    needs: tuple[_Term, ...]
    columns: tuple[str, ...]
    why: str
    hint: str | None


def _terms(texts: Iterable[str]) -> tuple[_Term, ...]:
    return tuple(
        (frozenset(re.findall(r"(?<![^|])[^|!]+", text)), frozenset(re.findall(r"!([^|]+)", text)))
        for text in texts
    )


def _hold(terms: tuple[_Term, ...], said: frozenset[str]) -> bool:
    return all(not there.isdisjoint(said) or not lacking <= said for there, lacking in terms)


class Forms:
    """`rows`: a line a form, each with the words, between `|`, that its `columns` allow.

    `questions`: lines `when => needs ! why ! way out`. `when` and `needs` are terms that all hold:
    alternatives, between `|`, of what the statement says, does not say (`!`), or what its target
    has. A term of `needs` that is a column chooses the rows whose words those of the statement are
    among; `target` those that its target has one of.
    """

    def __init__(self, columns: str, rows: str, questions: str) -> None:
        self.columns, self._rows, self._questions = columns.split(), rows, questions

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        lines = ([frozenset(w.split("|")) for w in s.split()] for s in self._rows.split("\n"))
        return tuple(dict(zip(self.columns, line, strict=True)) for line in lines if line)

    @cached_property
    def questions(self) -> tuple[_Question, ...]:
        found: list[_Question] = []
        for line in self._questions.strip().splitlines():
            match = _LINE.fullmatch(line.strip())
            assert match, line
            needs = match[2].split()
            columns = tuple(word for word in needs if word in self.columns)
            terms = _terms(word for word in needs if word not in columns)
            found.append(_Question(_terms(match[1].split()), terms, columns, match[3], match[4]))
        return tuple(found)

    def find(self, words: Mnemonic, target: TargetName, **names: str) -> Row:
        """The first row left. `names`: what the statement says, by column and for texts.

        Raises FragirError where a question is not answered.
        """
        names |= {
            "kind": words.kind,
            "shape": words.shape,
            "layout": ".".join(words.layouts),
            "layouts": str(len(words.layouts)),
            "types": str(len(words.types)),
            "target": target.name,
        }
        said = words.flags | abilities(target) | {f"{key}:{each}" for key, each in names.items()}
        left = self.rows
        for question in self.questions:
            if not _hold(question.when, said):
                continue
            rows = left
            for column in question.columns:
                if column == "target":
                    rows = [row for row in rows if not said.isdisjoint(row[column])]
                else:
                    given = frozenset(names[column].split() or [""])
                    rows = [row for row in rows if given <= row[column]]
            if not rows or not _hold(question.needs, said):
                names["least"] = min((x for row in left for x in row.get("target", ())), default="")
                hint = question.hint and question.hint.format(**names)
                raise words.refuse(question.why.format(**names), hint)
            left = tuple(rows)
        return left[0]
