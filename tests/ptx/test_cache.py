"""The statement-shape cache against plain Lark: the same trees, positions and refusals.

Of the mutants here are some; `fragir sweep ptx-cache` tries 30,000.
"""

from __future__ import annotations

import pytest

from benchmarks.sweeps import ptx_cache
from benchmarks.sweeps.ptx_cache import outcome
from fragir.ptx import _lark, learn, operands, parse, walk, word_classes
from fragir.sweeps import Task


def test_files(text: str) -> None:
    plain = outcome(text, cache=False)
    assert plain is not None
    for shipped in (True, False):  # with what comes with the package, and without
        operands.forget(shipped=shipped)
        for _ in range(3):  # shapes unknown, met once, known
            assert outcome(text, cache=True) == plain
    operands.forget()


def test_what_comes_with_the_package_follows_from_the_grammar() -> None:
    assert word_classes.FILE.read_text("utf-8") == learn.known_text()


def test_mutants() -> None:
    results = [ptx_cache.run(Task(i, None, 0, ptx_cache.SWEEP.parameters)) for i in range(10)]
    assert [each["findings"] for each in results] == [[]] * 10
    mutants, read = (sum(each[name] for each in results) for name in ("mutants", "read"))
    assert mutants // 20 < read < mutants * 3 // 4  # the test tests both


def test_a_cache_that_reads_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def otherwise(text: str, cache: bool) -> bool:
        return cache

    monkeypatch.setattr(ptx_cache, "outcome", otherwise)
    found = ptx_cache.run(Task(0, None, 0, {"batch": 5}))["findings"]
    assert len(found) == 5


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
    operands.forget(shipped=True)
    module = parse(texts["nvcc_tensor_sm_90a"])
    count = sum(len(s.known) + len(s.once) for s in operands.learnt())
    operands.forget()
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
            operands.forget()
            parse(text)
            assert len(read) <= 2, read
            read.clear()
