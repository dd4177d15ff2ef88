"""docs/opcodes.md, written from the table of opcodes.

python -m tests.docs.opcodes        writes it anew
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from fragir.emulator.values import language
from fragir.judge.supported import FAMILIES
from fragir.ptx.opcodes.row import Opcode

PAGE = Path(__file__).resolve().parents[2] / "docs" / "opcodes.md"
HEAD = """\
# Opcodes that the emulator runs

Written by `python -m tests.docs.opcodes` from the rows of `fragir/ptx/opcodes`. A line has the
modifiers and operands of an opcode as the ISA's boxes have them: `.x|y` must be there,
`{.x|y}` may, `d` is written, `d_` may be `_`, `d{|p}` may have a second result, `a:u32` says what
an operand has that is not of the line's type. What it computes stands below, in this language:

"""


def page() -> str:
    """The whole text."""
    text = language.__doc__
    assert text is not None
    quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())
    parts = [f"{HEAD}{quoted}\n"]
    for title, rows in FAMILIES.items():
        parts.append(f"## {title}\n\n```text\n" + "\n".join(_rows(rows)) + "\n```\n")
    return "\n".join(parts)


def _rows(rows: Iterable[Opcode]) -> list[str]:
    found: list[str] = []
    for row in rows:
        if " " in row.name:  # no opcode of PTX
            continue
        for line in row.box:
            blank = " " * bool(line.text and line.text[0] not in ".{")
            why = f" ! {row.missing}" if row.missing and not line.missing else ""
            found.append(f"{row.name}{blank}{' '.join(line.text.split())}{why}")
        if isinstance(row.decode, str):
            for text in re.sub(r";\s*", "\n", row.decode.strip()).splitlines():
                is_named = re.match(r"\s*\w+ = ", text)
                found.append(f"    {'' if is_named else 'd = '}{text.strip()}")
    return found


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
