"""What the page's modules work out is what Python works out of the same report: asked in node."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import fragir.explain
from fragir.explore.document import bundle
from tests.explain.examples import PROGRAMS, report_of
from tests.explore.engine import answered

FOLDER = Path(fragir.explain.__file__).parent
ANSWERS = Path(__file__).with_name("answers.mjs")


def ask(*questions: dict[str, Any]) -> list[Any]:
    """The answers of the page's modules."""
    said = answered(ANSWERS, FOLDER, questions)
    found: list[Any] = json.loads(said)
    return found


def changes_of(name: str) -> list[tuple[tuple[str, ...], tuple[str, ...], list[list[Any]]]]:
    """(text before, text after, changes) of every pass."""
    return [
        (a.lines, b.lines, [[one.change, *one.before, *one.after] for one in b.differences])
        for a, b in pairwise(report_of(name).stages)
    ]


def line_of(lines: Sequence[str], number: int) -> str | None:
    return lines[number - 1] if number else None


@pytest.mark.parametrize("name", ["gemm80", "attention", "kernels"])
def test_rows_have_every_line_once(name: str) -> None:
    stages = changes_of(name)
    questions = [
        {"kind": "rows", "before": len(a), "after": len(b), "changes": changes}
        for a, b, changes in stages
    ]
    found = ask(*questions)
    for (before, after, _), rows in zip(stages, found, strict=True):
        assert [row["left"] for row in rows if row["left"]] == [*range(1, len(before) + 1)]
        assert [row["right"] for row in rows if row["right"]] == [*range(1, len(after) + 1)]
        for row in rows:
            left, right = line_of(before, row["left"]), line_of(after, row["right"])
            assert (row["kind"] == "") == (left == right)
            assert (row["kind"] == "added") == (left is None)
            assert (row["kind"] == "removed") == (right is None)
    views: list[dict[str, Any]] = [
        {"kind": "folded", "rows": rows, "open": [], "all": False} for rows in found
    ]
    for rows, view in zip(found, ask(*views), strict=True):
        whole = list[Any]()
        for row in view:
            if "fold" in row:
                first, behind = row["fold"]
                assert behind - first >= 6
                whole += rows[first:behind]
                assert all(one["kind"] in ("", "renamed") for one in rows[first:behind])
            else:
                whole.append(row)
        assert whole == rows


def test_folds_open_and_differences_begin() -> None:
    alike = [{"kind": "", "left": n, "right": n} for n in range(1, 21)]
    added = [{"kind": "added", "left": 0, "right": n} for n in (21, 22)]
    rest = [{"kind": "", "left": n, "right": n + 2} for n in range(21, 41)]
    rows = [*alike, *added, *rest]
    closed, opened, whole, begin = ask(
        {"kind": "folded", "rows": rows, "open": [], "all": False},
        {"kind": "folded", "rows": rows, "open": [0], "all": False},
        {"kind": "folded", "rows": rows, "open": [], "all": True},
        {"kind": "starts", "rows": rows},
    )
    assert [row["fold"] for row in closed if "fold" in row] == [[0, 17], [25, 42]]
    assert [row["fold"] for row in opened if "fold" in row] == [[25, 42]]
    assert whole == rows
    assert begin == [20]


def test_passes_that_leave_little_alike() -> None:
    """Only what is mostly alike is shown at the same height."""
    stages = changes_of("gemm80")
    found = ask(
        *(
            {"kind": "alike", "before": len(a), "after": len(b), "changes": changes}
            for a, b, changes in stages
        )
    )
    shares = [
        sum(line in b for line in a) / min(len(a), len(b)) for a, b, _ in stages
    ]  # of lines that are there again, word for word
    assert found[-1] is False
    assert shares[-1] < 0.25
    assert found[-2] is True


def texts_of(name: str) -> list[dict[str, Any]]:
    """The texts of a program as `model.js` links them."""
    report = report_of(name)
    assert report.ptx is not None
    texts: list[dict[str, Any]] = [
        {"id": "source", "parent": None, "from": [0] * len(report.source.lines)}
    ]
    for number, stage in enumerate(report.stages):
        texts.append(
            {
                "id": f"s{number}",
                "parent": f"s{number - 1}" if number else "source",
                "from": stage.came_from if number else stage.source,
                "roots": stage.source,
            }
        )
    last = texts[-1]["id"]
    ptx = report.ptx
    texts.append({"id": "ptx", "parent": last, "from": ptx.came_from, "roots": ptx.source})
    sass = [line.ptx for one in report.machine for line in one.lines]
    return [*texts, {"id": "sass", "parent": "ptx", "from": sass}]


def climbed(texts: list[dict[str, Any]], number: int, line: int) -> dict[str, int]:
    """The lines of the texts above that a line comes from, step by step."""
    found: dict[str, int] = {}
    while True:
        text = texts[number]
        found[text["id"]] = line
        if text["parent"] is None:
            return found
        up = text["from"][line - 1]
        root = text.get("roots", ())
        if up == 0:
            if root and root[line - 1]:
                found["source"] = root[line - 1]
            return found
        number, line = next(n for n, t in enumerate(texts) if t["id"] == text["parent"]), up


@pytest.mark.parametrize("name", ["gemm90", "kernels"])
def test_lines_that_belong_together(name: str) -> None:
    """Both directions, for some lines of every text."""
    texts = texts_of(name)
    asked: list[tuple[str, int]] = [
        (text["id"], line)
        for text in texts
        for line in range(1, len(text["from"]) + 1, max(1, len(text["from"]) // 12))
    ]
    above = {
        text["id"]: [climbed(texts, number, line + 1) for line in range(len(text["from"]))]
        for number, text in enumerate(texts)
    }
    (answers,) = ask({"kind": "related", "texts": texts, "asked": asked})
    known = 0
    for (id_, line), answer in zip(asked, answers, strict=True):
        wanted = {other: [at] for other, at in above[id_][line - 1].items()}
        for text in texts[[t["id"] for t in texts].index(id_) + 1 :]:
            below = [n for n, up in enumerate(above[text["id"]], 1) if up.get(id_) == line]
            if below:
                wanted[text["id"]] = below
        assert answer == wanted
        known += len(wanted) > 1
    assert known > len(asked) // 2


def test_texts_beside_each_other_meet_above() -> None:
    """The lifted form of PTX and its machine code both come from lines of PTX."""
    texts = [
        {"id": "ptx", "parent": None, "from": [0, 0, 0]},
        {"id": "s0", "parent": "ptx", "from": [0, 2, 3]},
        {"id": "sass", "parent": "ptx", "from": [2, 2, 3]},
    ]
    found = ask({"kind": "related", "texts": texts, "asked": [["s0", 2], ["sass", 3], ["s0", 1]]})
    assert found[0] == [
        {"s0": [2], "ptx": [2], "sass": [1, 2]},
        {"sass": [3], "ptx": [3], "s0": [3]},
        {"s0": [1]},
    ]


def test_words_make_the_line() -> None:
    report = report_of("gemm90")
    assert report.ptx is not None
    sass = [line.text for line in report.machine[0].lines]
    texts = {"mlir": report.stages[-2].lines, "ptx": report.ptx.lines, "sass": sass}
    found = ask(
        *({"kind": "words", "lines": lines, "language": name} for name, lines in texts.items())
    )
    for lines, answer in zip(texts.values(), found, strict=True):
        assert ["".join(text for _, text in line) for line in answer] == [*lines]
    mnemonic = "wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16"
    products = [line for line in found[1] if ["opcode", mnemonic] in line]
    assert len(products) == sum(mnemonic in line for line in report.ptx.lines) > 0
    kinds = {kind for line in found[0] for kind, _ in line}
    assert {"value", "type", "opcode", "number", "string", "symbol"} <= kinds


def test_types_in_lines() -> None:
    """Those that have a layout, the outermost where one stands within another."""
    for name in PROGRAMS:
        report = report_of(name)
        known = [one.text for one in report.types]
        lines = [line for stage in report.stages[:-1] for line in stage.lines if "<" in line]
        (found,) = ask({"kind": "types", "lines": lines, "known": known})
        for line, places in zip(lines, found, strict=True):
            assert all(line[first:behind] == text for first, behind, text in places)
            assert sum(text in line for text in known) == len({text for *_, text in places})
            assert all(a[1] <= b[0] for a, b in pairwise(places))


def test_addresses() -> None:
    names = ["parse", "cse", "frag-place", "cse"]
    keys, states, parsed = ask(
        {"kind": "keys", "names": names},
        {
            "kind": "address",
            "names": names,
            "states": [
                {"view": "cse~2", "text": "after", "line": 40},
                {"view": "frag-place", "text": "after", "line": 0},
                {"view": "code", "text": "ptx", "line": 900},
                {"view": "code", "text": "sass", "line": 12},
                {"view": "code", "text": "s2", "line": 1},
            ],
        },
        {"kind": "parse", "names": names, "fragments": ["", "#", "#nothing/3", "#cse~3"]},
    )
    assert keys == ["parse", "cse", "frag-place", "cse~2"]
    fragments = ["cse~2/40", "frag-place", "code/900", "code/sass/12", "code/s2/1"]
    assert [text for text, _ in states] == fragments
    assert [state["line"] for _, state in states] == [40, 0, 900, 12, 1]
    assert [state["view"] for _, state in states] == [text.split("/")[0] for text in fragments]
    assert [state["text"] for _, state in states[2:]] == ["ptx", "sass", "s2"]
    assert parsed == [None] * 4


def test_the_script_is_one_module() -> None:
    """Joined, no module asks for another one, and no name is defined twice."""
    joined = bundle(FOLDER, "app.js")
    assert "\nimport " not in joined
    assert "\nexport " not in joined
    heads = [
        line.split("(")[0].split(" =")[0].split(" {")[0].removeprefix("async ").split()[1]
        for line in joined.splitlines()
        if line.startswith(("function ", "async function ", "class ", "const "))
        and not line.startswith("const {")
    ]
    assert len(heads) == len({*heads}) > 20
