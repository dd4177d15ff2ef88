"""What docs/instructions.md says of the tables' completeness, written from the tables.

python -m tests.docs.completeness        writes it anew
"""

from __future__ import annotations

from pathlib import Path

from fragir.isa.target_rows import NEWEST_VERSION
from fragir.ptx.opcodes.gaps import gaps
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.opcodes.versions import ASSEMBLERS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "instructions.md"
BEGIN, END = "<!-- complete -->\n", "<!-- end of complete -->\n"


def text() -> str:
    """The sentence and its list."""
    (ptxas,) = [version for version, ptx in ASSEMBLERS.items() if ptx == NEWEST_VERSION]
    lines = [
        "The tables of instructions and of opcodes (`fragir.isa`, `fragir.ptx.opcodes`) are",
        f"complete for PTX {NEWEST_VERSION}, as ptxas {ptxas} takes it, but for:",
        "",
    ]
    open_rows: dict[str, list[str]] = {}
    for row in OPCODES.rows:
        if row.missing and any(line.is_open for line in row.box):
            open_rows.setdefault(row.missing, []).append(f"`{row.name}`")
    lines += [
        f"* {why}, whose forms are not told apart: {', '.join(n)}" for why, n in open_rows.items()
    ]
    for gap in gaps():
        opcodes = ", ".join(f"`{e.partition(' ')[0]}`" for e in gap.examples)
        lines.append(f"* {gap.what}, as {opcodes}")
    return "\n".join(lines) + "\n"


def written(page: str) -> str:
    """The page with the text of today."""
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}{text()}{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
