"""The picture of the imports in docs/design.md.

    python -m tests.rooms.picture        writes it anew

A row a room, a column a room, in the order of the contracts of pyproject.toml; a mark where the
row's room imports the column's. What is left of the diagonal would be an arrow up.
"""

from __future__ import annotations

import re
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design.md"
PICTURED = ("fragir", "fragir.emulator")
BEGIN, END = "<!-- imports of {} -->\n", "<!-- end of imports -->"


@cache
def graph() -> grimp.ImportGraph:
    """Every import of the package, those within functions and under TYPE_CHECKING too."""
    return grimp.build_graph("fragir", exclude_type_checking_imports=False, cache_dir=None)


@cache
def layers() -> dict[str, list[str]]:
    """A package whose rooms a contract orders -> these, the highest first. Of packages within rooms
    (which have an order too) there is no picture.
    """
    tables: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    found: dict[str, list[str]] = {}
    for contract in tables["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            (container,) = contract["containers"]
            if container in PICTURED:
                found[container] = [
                    r for row in contract["layers"] for r in re.findall(r"\w+", row)
                ]
    return found


def picture(container: str) -> str:
    """The imports between the rooms of a package."""
    rooms = layers()[container]
    width = max(map(len, rooms))
    head = "".join(f"{number:>3}" for number in range(1, len(rooms) + 1))
    lines = [f"{'':{width + 3}}{head}"]
    for number, room in enumerate(rooms, 1):
        cells = [
            "  ╲" if other == room else "  ■" if imports(container, room, other) else "  ·"
            for other in rooms
        ]
        lines.append(f"{number:>2} {room:{width}}{''.join(cells)}")
    return "\n".join(lines)


def imports(container: str, importer: str, imported: str) -> bool:
    """Whether a module of one room imports a module of another."""
    importers, modules = rooms_of(container)[importer], rooms_of(container)[imported]
    return any(graph().find_modules_directly_imported_by(m) & modules for m in importers)


@cache
def rooms_of(container: str) -> dict[str, set[str]]:
    """The modules of every room."""
    return {
        room: {f"{container}.{room}"} | graph().find_descendants(f"{container}.{room}")
        for room in layers()[container]
    }


def page(text: str) -> str:
    """The text of a page with its pictures drawn anew."""
    for container in layers():
        begin = re.escape(BEGIN.format(container))
        drawn = f"```text\n{picture(container)}\n```\n"
        text, count = re.subn(f"({begin}).*?({END})", rf"\g<1>{drawn}\g<2>", text, flags=re.DOTALL)
        if count != 1:
            sys.exit(f"docs/design.md has {count} pictures of {container}")
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text("utf-8")), "utf-8")
