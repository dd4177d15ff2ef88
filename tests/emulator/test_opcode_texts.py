"""What rows compute against ptxas, which folds operations on constants.

`fragir sweep opcode-texts` asks about all forms; here are the plainest of each row and another.
Rows that ptxas does not fold (`NOT_FOLDED`) are held against Python's numbers in other tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from random import Random

from benchmarks.sweeps import opcode_texts as texts
from benchmarks.sweeps.opcode_texts import Form, Question
from fragir.ptx.opcodes.row import Opcode
from tests.emulator.test_legality import needs_ptxas

pytestmark = needs_ptxas

#: Forms that some target's ptxas assembles, all on this one.
TARGET = "sm_120a"
LANES = 40


def drawn(random: Random) -> list[Form]:
    """The first form of every row, and another one."""
    of_row: dict[Opcode, list[Form]] = {}
    for form in texts.forms():
        of_row.setdefault(form.row, []).append(form)
    return [f for own in of_row.values() for f in (own[0], random.choice(own)) if not f.near]


def test_rows_compute_what_ptxas_does() -> None:
    random = Random(20)
    questions = [Question(form, LANES, random) for form in drawn(random)]
    told = texts.judge(questions, TARGET)
    wrong = [text for _, lanes in told for text in lanes]
    assert wrong == []
    names = {q.form.row.name for q in questions}
    folded = {q.form.row.name for q, (count, _) in zip(questions, told, strict=True) if count}
    assert names - folded <= texts.NOT_FOLDED.keys()


_CHANGES = {
    "+": "-",
    "-": "+",
    "*": "+",
    "&": "|",
    "|": "&",
    "^": "&",
    "<<": ">>",
    ">>": "<<",
    "min(": "max(",
    "max(": "min(",
    "high(": "min(",
    "~": "-",
    "not ": "",
    "popc(": "clz(",
    "clz(": "popc(",
}


_OPERATOR = re.compile(r"<<|>>|[-+*&|^~]|\b(?:min|max|high|popc|clz)\(|not ")


def changed(text: str) -> Iterator[str]:
    """The text with one operator changed, every way."""
    for found in re.finditer(
        r"<<|>>|(?<![<>])[-+*&|^~](?![<>])|\b(?:min|max|high|popc|clz)\(|not ", text
    ):
        yield text[: found.start()] + _CHANGES[found[0]] + text[found.end() :]


def kind(form: Form) -> str:
    if form.what.packed:
        return "packed"
    if form.what.kinds["d"] == "pred" or "pred" in form.words:
        return "predicate"
    return "float" if any(w in ("f32", "f64", "f16", "bf16") for w in form.words) else "integer"


def planted(random: Random) -> list[Form]:
    """Rows of every kind that ptxas folds, each with an operator of its text changed."""
    forms = list(texts.forms())
    random.shuffle(forms)
    found: dict[tuple[str, str], tuple[Form, Form]] = {}
    for form in forms:
        key, text = (kind(form), form.row.name), form.row.decode
        if form.near or form.row.name in texts.NOT_FOLDED or key in found or "cc" in form.words:
            continue
        if form.what.packed not in ("", *texts.HALVES):
            continue
        assert isinstance(text, str)
        for other in sorted(changed(text), key=lambda _: random.random()):
            try:
                wrong = Form(form.row, form.line, form.words, form.count, other)
            except ValueError:  # it says nothing
                continue
            if wrong.what.results["d"] != form.what.results["d"]:
                found[key] = form, wrong
                break
    right = [Question(form, LANES, random) for form, _ in found.values()]
    told = texts.judge(right, TARGET)
    folded = [
        (what, wrong)
        for ((what, _), (_, wrong)), (lanes, _) in zip(found.items(), told, strict=True)
        if lanes > LANES // 2
    ]
    groups = [[wrong for what, wrong in folded if what == each] for each in KINDS]
    return [form for turn in zip_longest(*groups) for form in turn if form is not None][:20]


KINDS = ("integer", "float", "packed", "predicate")


def test_a_wrong_operator_is_seen() -> None:
    random = Random(4)
    wrong = planted(random)
    assert len(wrong) == 20
    assert {kind(form) for form in wrong} == {*KINDS}
    told = texts.judge([Question(form, LANES, random) for form in wrong], TARGET)
    assert [form.name for form, (_, lanes) in zip(wrong, told, strict=True) if not lanes] == []
