"""The statement-shape cache against plain Lark: the same trees, positions and refusals.

FRAGIR_PTX_MUTANTS sets how many mutants are tried (default 3000); FRAGIR_PTX_SEED where to begin.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from fragir.ptx import PtxSyntaxError, _lark, known, learn, learnt, parse, walk
from fragir.ptx.tree import Module

HEAD = ".version 8.7\n.target sm_90a\n.entry k()\n{\n"
CHARACTERS = "".join(map(chr, range(32, 127))) + "\n\t\f\v\r\0\x1c\x85\xa0\u2028é"


def positions(module: Module) -> list[tuple[type, object, object]]:
    return [(type(n), getattr(n, "at", None), getattr(n, "end", None)) for n in walk(module)]


def outcome(text: str, cache: bool) -> tuple[Module, list[tuple[type, object, object]]] | None:
    try:
        module = parse(text, cache=cache)
    except PtxSyntaxError:
        return None
    return module, positions(module)


def test_files(text: str) -> None:
    plain = outcome(text, cache=False)
    assert plain is not None
    for shipped in (True, False):  # with what comes with the package, and without
        learnt.forget(shipped=shipped)
        for _ in range(3):  # shapes unknown, met once, known
            assert outcome(text, cache=True) == plain
    learnt.forget()


def test_what_comes_with_the_package_follows_from_the_grammar() -> None:
    made = learn.known_module()
    assert Path(known.__file__).read_text("utf-8") == made


def mutants(texts: dict[str, str], seed: int, count: int) -> list[str]:
    """Runs of lines of real files, some in a body of their own, with one character changed."""
    rng = random.Random(seed)
    lines = [text.split("\n") for text in texts.values()]
    made: list[str] = []
    while len(made) < count:
        file = rng.choice(lines)
        first = rng.randrange(len(file))
        text = "\n".join(file[first : first + rng.randint(1, 4)])
        if rng.random() < 0.8:
            text = f"{HEAD}{text}\n}}\n"
        for _ in range(5):
            at = rng.randrange(max(1, len(text)))
            new = rng.choice(CHARACTERS if rng.random() < 0.6 else text or "x")
            way = rng.random()
            if way < 0.4:
                made.append(text[:at] + new + text[at + 1 :])
            elif way < 0.7:
                made.append(text[:at] + text[at + 1 :])
            else:
                made.append(text[:at] + new + text[at:])
    return made


def test_mutants(texts: dict[str, str]) -> None:
    count = int(os.environ.get("FRAGIR_PTX_MUTANTS", "3000"))
    seed = int(os.environ.get("FRAGIR_PTX_SEED", "0"))
    accepted = 0
    for text in mutants(texts, seed, count):
        quick, plain = outcome(text, cache=True), outcome(text, cache=False)
        assert quick == plain, text
        accepted += plain is not None
    assert count // 20 < accepted < count * 3 // 4  # the test tests both


TABLES = [
    "1, " * 2000 + "-1",
    "1," * 2000,
    "1," * 1000 + ",1",
    "x+4, " * 700 + "2",
    "1 ? 2 : 3," * 500 + "1",
    "-1, 0f00000000,\n" * 500 + "1",
    " " * 3000,
    " " * 3000 + ",",
    "1, " * 1000 + "08",
]


def test_long_tables() -> None:
    for table in TABLES:
        text = f".global .b8 a, x[9] = {{{table}}} ;\n.global .b8 y = 1;"
        assert outcome(text, cache=True) == outcome(text, cache=False), table[:20]


def test_few_shapes_serve_many_statements(texts: dict[str, str]) -> None:
    learnt.forget(shipped=True)
    module = parse(texts["nvcc_tensor_sm_90a"])
    count = sum(len(s.known) + len(s.once) for s in learnt.learnt())
    learnt.forget()
    assert count < len(list(walk(module))) / 20


def test_lark_reads_little(texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What compilers write has the shapes that come with the package, whatever its blanks."""
    read: list[str] = []
    plainly = _lark.parse

    def counted(text: str, start: str, begin: int = 0, end: int | None = None) -> object:
        read.append(text[begin:end])
        return plainly(text, start, begin, end)

    monkeypatch.setattr(_lark, "parse", counted)
    for name in ("nvcc_basic_sm_80_lineinfo", "nvcc_tensor_sm_90a"):
        for text in (texts[name], texts[name].replace(", ", " ,\t")):
            learnt.forget()
            parse(text)
            assert len(read) <= 2, read
            read.clear()
