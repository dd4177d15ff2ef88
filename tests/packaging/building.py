"""What packaging tests share: commands outside the tree, copies of the tree, builds of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

C_SOURCES = "fragir/emulator/native/source/"
LIBRARY = "fragir/emulator/native/core.shared."

EPOCH = "1700000000"


def run(command: Sequence[str | Path], cwd: Path, stdin: str = "", **more: str) -> str:
    """Runs a command outside the tree, without what points into it or steers fragir; its stdout."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL", "FRAGIR"))
    }
    environment = {**kept, **more}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def sources() -> list[str]:
    """The files that belong to the project: those of git, new ones too."""
    listed = run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], ROOT
    ).split("\0")
    return [name for name in listed if name and os.path.lexists(ROOT / name)]


def copy_tree(to: Path, *, links: bool) -> Path:
    """A copy of the sources, as git checks them out with links or, without, as text files."""
    for name in sources():
        target = to / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink() and not links:
            target.write_text(os.readlink(ROOT / name))
        else:
            shutil.copy2(ROOT / name, target, follow_symlinks=False)
    return to


def build(tree: Path, **more: str) -> tuple[Path, Path]:
    """The sdist of a tree, and the wheel that is built from that sdist."""
    command = [sys.executable, "-m", "build", "--outdir", "../dist", "."]
    run(command, tree, SOURCE_DATE_EPOCH=EPOCH, **more)
    (sdist,) = tree.parent.glob("dist/*.tar.gz")
    (wheel,) = tree.parent.glob("dist/*.whl")
    return sdist, wheel


def checksums(wheel: Path) -> dict[str, int]:
    """The checksum of each file of a wheel, but for what the wheel's name decides."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            info.filename: info.CRC
            for info in archive.infolist()
            if not info.filename.endswith(("/RECORD", "/WHEEL", "/"))
        }
