"""What an opcode is to the rest of the emulator is asked of its row, not of its first word."""

from __future__ import annotations

import ast
from pathlib import Path

ROOMS = ("checks", "machine", "program", "launch")
EMULATOR = Path(__file__).parents[2] / "fragir" / "emulator"


def _is_first_word(node: ast.expr) -> bool:
    """`x.opcode[0]`, `words[0]`, `words[:2]`."""
    if not isinstance(node, ast.Subscript):
        return False
    value, place = node.value, node.slice
    of = value.attr if isinstance(value, ast.Attribute) else getattr(value, "id", "")
    first = isinstance(place, ast.Constant) and place.value == 0
    first = first or (isinstance(place, ast.Slice) and place.lower is None)
    return of in ("opcode", "words") and first


def _text(node: ast.expr) -> bool:
    """A word, or several."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(map(_text, node.elts))
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def told_by_name(source: str) -> list[int]:
    """The lines that compare, or match, the first words of an opcode with words."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare():
                sides = [node.left, *node.comparators]
                if any(map(_is_first_word, sides)) and any(map(_text, sides)):
                    found.append(node.lineno)
            case ast.Match() if _is_first_word(node.subject):
                found.append(node.lineno)
            case _:
                pass
    return found


def test_nobody_tells_an_opcode_by_its_first_word() -> None:
    files = [path for room in ROOMS for path in sorted((EMULATOR / room).rglob("*.py"))]
    assert len(files) > 60
    found = {str(f.relative_to(EMULATOR)): told_by_name(f.read_text()) for f in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_what_it_finds() -> None:
    assert told_by_name('if ins.opcode[0] == "call":\n    pass') == [1]
    assert told_by_name('x = words[:2] != ("st", "bulk")') == [1]
    assert told_by_name('y = words[0] in ("fence", "membar")') == [1]
    assert told_by_name('match ins.opcode[0]:\n    case "bra":\n        pass') == [1]
    assert told_by_name('z = ins.opcode[-1] == "f16x2" or row.name == words[0]') == []
