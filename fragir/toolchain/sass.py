"""nvdisasm: a cubin as SASS text, and how often each opcode stands in it."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.toolchain import cubins
from fragir.toolchain.find import NVDISASM, execute, find

_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE)
_SECTION = re.compile(r"^\.text\.([^:]+):(?: *// .*)?$", re.MULTILINE)
_LIVE = re.compile(r"^\s*/\*([0-9a-f]+)\*/.*?// \|([ \d|]+)\|$", re.MULTILINE)


class LiveCount(NamedTuple):
    """How many registers are in use: of each lane, and of those that a warp shares."""

    registers: int
    uniform: int


def disassemble(cubin: bytes, *, version: str | None = None, lines: bool = False) -> str:
    """The SASS of a cubin, one `.text.NAME:` section a function.

    `lines`: with the lines of PTX, where the cubin has them (`ptxas.with_lines`), and those of the
    program that the PTX's `.loc` name.
    Raises FragirError where nvdisasm is missing or cannot read the cubin.
    """
    return _run(cubin, ["-c", "-g", "-gp"] if lines else ["-c"], version)


def live_registers(cubin: bytes, *, version: str | None = None) -> dict[str, dict[int, LiveCount]]:
    """Of every function, by address: how many registers are in use at an instruction, by nvdisasm.

    Raises FragirError as `disassemble` does.
    """
    sass = _run(cubin, ["-c", "-lrm", "count"], version)
    columns = re.search(r"^\s*// \| (GPR\b.*)\|\s*$", sass, re.MULTILINE)
    kinds = [word.strip() for word in columns[1].split("|")] if columns else []
    found: dict[str, dict[int, LiveCount]] = {}
    for name, text in functions(sass).items():
        counts = found[name] = {}
        for address, row in _LIVE.findall(text):
            numbers = dict(zip(kinds, (int(cell.strip() or 0) for cell in row.split("|"))))
            counts[int(address, 16)] = LiveCount(numbers.get("GPR", 0), numbers.get("UGPR", 0))
    return found


def _run(cubin: bytes, options: list[str], version: str | None) -> str:
    """What nvdisasm prints, from the cache of `cubins` where it has been asked before."""
    tool = find(NVDISASM, version)
    key = cubins.key("nvdisasm", tool.version, " ".join(options), sha256(cubin).hexdigest())
    kept = cubins.load(key)
    if kept is not None:
        return kept[1]
    with tempfile.TemporaryDirectory(prefix="fragir-") as folder:
        Path(folder, "kernel.cubin").write_bytes(cubin)
        done = execute([str(tool.path), *options, "kernel.cubin"], cwd=Path(folder))
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split()) or f"exit status {done.returncode}"
        raise FragirError(f"nvdisasm {tool.version} cannot read this cubin: {said}")
    cubins.store(key, b"", done.stdout)
    return done.stdout


def functions(sass: str) -> dict[str, str]:
    """The text of every function, by name."""
    parts = _SECTION.split(sass)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def opcodes(sass: str, *, full: bool = False, predicated: bool = False) -> Counter[str]:
    """How often each opcode stands in the text: `HMMA`, or with `full` `HMMA.16816.F32`.

    Counts what is written, not what is executed, or with `predicated` only what is executed where a
    predicate holds; the padding after a kernel's end counts as `NOP`.
    """
    found: list[tuple[str, str]] = _INSTRUCTION.findall(sass)
    names = [name for guard, name in found if guard or not predicated]
    return Counter(names if full else (name.split(".")[0] for name in names))


_TENSOR_OPCODES = (
    *("HMMA", "IMMA", "DMMA", "QMMA", "OMMA", "BMMA"),
    *("HGMMA", "IGMMA", "QGMMA", "BGMMA"),
    *("UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"),
)


def tensor_instructions(cubin: bytes) -> str | None:
    """`32 HMMA`: how many stand in the SASS; None without an nvdisasm for this machine."""
    try:
        find(NVDISASM)
        counts = opcodes(disassemble(cubin))
    except FragirError:  # none, or one that knows this machine no more
        return None
    return ", ".join(f"{counts[name]} {name}" for name in _TENSOR_OPCODES if counts[name]) or "none"
