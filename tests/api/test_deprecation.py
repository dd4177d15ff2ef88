"""Old names work, and the warning points at the line that uses them."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

import fragir.layout

HOLDER = """
from fragir.deprecation import moved
kept = 1
__getattr__ = moved(__name__, {"Tile": "fragir.layout:Layout"}, gone="0.9")
"""
MODULE = """
from fragir.deprecation import moved_module
__getattr__ = moved_module(__name__, "fragir.layout", gone="0.9")
"""


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "old_holder.py").write_text(HOLDER)
    (tmp_path / "old_module.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name in ("old_holder", "old_module"):
        sys.modules.pop(name, None)


def asked(line: str, folder: Path) -> tuple[dict[str, object], list[warnings.WarningMessage]]:
    """What a file of one line defines, and the warnings of running it."""
    file = folder / "user.py"
    file.write_text(line)
    names: dict[str, object] = {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        exec(compile(line, str(file), "exec"), names)
    return names, told


@pytest.mark.parametrize(
    ("line", "name", "message"),
    [
        (
            "from old_holder import Tile",
            "Tile",
            "old_holder.Tile is fragir.layout.Layout now, and goes in fragir 0.9",
        ),
        (
            "import old_holder; Tile = old_holder.Tile",
            "Tile",
            "old_holder.Tile is fragir.layout.Layout now, and goes in fragir 0.9",
        ),
        (
            "from old_module import Layout",
            "Layout",
            "old_module is fragir.layout now, and goes in fragir 0.9",
        ),
    ],
)
def test_old_names_work_and_warn(line: str, name: str, message: str, old: Path) -> None:
    names, told = asked(line, old)
    assert names[name] is fragir.layout.Layout
    assert {str(warning.message) for warning in told} == {message}
    assert {warning.category for warning in told} == {DeprecationWarning}
    assert {warning.filename for warning in told} == {str(old / "user.py")}


def test_others_do_not_warn(old: Path) -> None:
    names, told = asked("from old_holder import kept; import old_module", old)
    assert names["kept"] == 1
    assert told == []


@pytest.mark.parametrize("module", ["old_holder", "old_module"])
def test_unknown_names(module: str, old: Path) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = importlib.import_module(module).Nothing


def test_a_plan_of_two_layouts_is_what_moves(old: Path) -> None:
    rows = "fragir.layout.Layout.parse('lane [2:(0,4) 16:(1,0)] element [4:(0,1)]')"
    sums = "fragir.layout.Layout.parse('lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]')"
    names, told = asked(f"import fragir; moved = fragir.layout.plan({sums}, {rows})", old)
    assert [str(each.message) for each in told] == [
        "fragir.layout.plan of two layouts is fragir.layout.sources now, and goes in fragir 0.3"
    ]
    assert told[0].filename == str(old / "user.py")
    names, told = asked(
        f"import fragir; a, b = {sums}, {rows}; moved = fragir.layout.sources(a, b)\n"
        "plan = fragir.layout.plan(a, b, 32)",
        old,
    )
    assert not told
    assert vars(names["moved"])["kind"] == "warp"
    assert vars(names["plan"])["way"] == "shuffles"
