"""Lines and files of Python by room, beside what docs/design.md allows and an earlier revision had.

    python -m tests.rooms.budget [REVISION]    prints them, beside those of a revision of git
    python -m tests.rooms.budget --write       writes the budgets anew, of what there is now

A budget is raised on purpose: a change that needs more of a room has the new number in it, to be
seen where it is read. It is what there was when it was written, rounded up.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "design.md"
BEGIN, END = "<!-- budget -->\n", "<!-- end of the budget -->"
#: Folders that are counted; of those named twice, each folder in them is a room of its own.
FOLDERS = ("fragir", "fragir/emulator", "dialects", "passes", "benchmarks", "tests")
#: Budgets are multiples of these.
LINES, FILES = 250, 2


class Size(NamedTuple):
    lines: int
    files: int


def room_of(path: str) -> str | None:
    """The room that a file belongs to; None where it is not counted."""
    parts = PurePosixPath(path).parts
    if parts[0] not in FOLDERS or path.startswith(("fragir/dialects/", "fragir/passes/")):
        return None
    if parts[0] != "fragir":
        return parts[0]
    if len(parts) == 2:
        return "fragir/*.py"
    if parts[1] == "emulator" and len(parts) > 3:
        return "/".join(parts[:3])
    return "/".join(parts[:2])


def sizes(lines: Mapping[str, int]) -> dict[str, Size]:
    """Of the rooms, by the lines of each file."""
    total, files = Counter[str](), Counter[str]()
    for path, count in lines.items():
        room = room_of(path)
        if room is not None:
            total[room] += count
            files[room] += 1
    return {room: Size(total[room], files[room]) for room in sorted(total)}


def now() -> dict[str, Size]:
    """Of this checkout."""
    paths = [
        path for top in {f.split("/")[0] for f in FOLDERS} for path in (ROOT / top).rglob("*.py")
    ]
    return sizes({p.relative_to(ROOT).as_posix(): p.read_text("utf-8").count("\n") for p in paths})


def at(revision: str) -> dict[str, Size] | None:
    """Of a revision; None where git knows none."""
    command = ["git", "grep", "-c", "", revision, "--", "*.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    rows = (line.removeprefix(f"{revision}:").rpartition(":") for line in done.stdout.splitlines())
    return sizes({path: int(count) for path, _, count in rows})


def budgets(page: str) -> dict[str, Size]:
    """What a page allows."""
    table = page.partition(BEGIN)[2].partition(END)[0]
    rows = re.findall(r"^\| `(\S+)` \| ([\d,]+) \| (\d+) \|$", table, re.MULTILINE)
    return {room: Size(int(lines.replace(",", "")), int(files)) for room, lines, files in rows}


def written(page: str, rooms: Mapping[str, Size]) -> str:
    """A page with the budgets of rooms that are as large as this."""
    rows = [
        f"| `{room}` | {-(-size.lines // LINES) * LINES:,} | {-(-size.files // FILES) * FILES} |"
        for room, size in rooms.items()
    ]
    table = "\n".join(["| room | lines | files |", "|---|---:|---:|", *rows])
    head, rest = page.partition(BEGIN)[::2]
    return f"{head}{BEGIN}{table}\n{END}{rest.partition(END)[2]}"


def beyond(rooms: Mapping[str, Size], allowed: Mapping[str, Size]) -> list[str]:
    """The rooms that are larger than they may be, or of which nothing is said."""
    found: list[str] = []
    for room, size in rooms.items():
        most = allowed.get(room)
        if most is None:
            found.append(f"{room} has no budget")
        elif size.lines > most.lines or size.files > most.files:
            found.append(f"{room}: {size.lines} lines in {size.files} files, {tuple(most)} allowed")
    return found


def table(rooms: Mapping[str, Size], before: Mapping[str, Size] | None) -> Iterable[str]:
    """Rows as text."""
    allowed, none = budgets(PAGE.read_text("utf-8")), Size(0, 0)
    yield f"{'room':28}{'lines':>9}{'files':>7}{'before':>9}{'':>7}{'budget':>9}"
    parts = {**rooms, "all": Size(*map(sum, zip(*rooms.values(), strict=True)))}
    past = dict(before or {})
    past["all"] = Size(*map(sum, zip(*past.values(), strict=True))) if past else none
    for room, size in parts.items():
        old, most = past.get(room, none), allowed.get(room, none)
        known = f"{old.lines:9,}{old.files:7}" if before is not None else f"{'':16}"
        yield f"{room:28}{size.lines:9,}{size.files:7}{known}{most.lines or '':>9}"


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        PAGE.write_text(written(PAGE.read_text("utf-8"), now()), "utf-8")
    else:
        print("\n".join(table(now(), at(sys.argv[1]) if sys.argv[1:] else None)))
