"""What the reader and the writer make of a folder of PTX files, by compiler.

    python tests/corpus/check.py FOLDER [--no-sass] [--json FILE]

Each file is read, written, read again: the same tree, the same tokens, and ptxas makes the same
cubin of what was written, section by section. FOLDER is what `benchmarks/corpus.py` fills. The exit
status is 1 where a file fails. A file that ptxas refuses as it is (made for a newer ptxas, or an
older GPU) is counted apart.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from fragir.errors import FragirError
from fragir.ptx import parse, write
from fragir.toolchain.find import PTXAS, every

# PTX's tokens, written down apart from the grammar. A word keeps its dots: `ld.param`, `%tid.x`.
TOKENS = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"[^"\n]*"|[\w$%]*(?:\.[\w$]+(?:::\w+)*)+|[\w$%]+|\S""", re.DOTALL
)
# Sections that say where a line stood in the text, which may change, and those that hold them up.
MOVING = re.compile(r"debug|strtab|symtab|note|\.nv\.merc\.rela?\b")


@dataclass(frozen=True)
class Verdict:
    """Of one file. `error`: why it fails. `assembled`: whether ptxas takes it as it is."""

    compiler: str
    name: str
    size: int
    error: str = ""
    assembled: bool | None = None
    seconds: float = 0.0


def tokens(text: str) -> list[str]:
    found = [t for t in TOKENS.findall(text) if not t.startswith(("//", "/*"))]
    # `add .s32` and `add.s32`, `.ptr .global` and `.ptr.global` are the same tokens
    return [part for token in found for part in re.findall(r"\.?[^.]+|\.", token)]


def sections(cubin: bytes) -> dict[str, bytes]:
    """Machine code, constants and launch information of an ELF file, by name of section."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", cubin, offset + size * i) for i in range(count)]
    names = cubin[rows[names_index][4] : rows[names_index][4] + rows[names_index][5]]
    found: dict[str, bytes] = {}
    for name, kind, _, _, begin, length in rows:
        title = names[name : names.index(b"\0", name)].decode()
        if kind != 8 and title and not MOVING.search(title):  # 8: without bytes in the file
            # uninitialised memory has a size, and no bytes in the file
            bare = title.startswith((".nv.shared", ".nv.local")) or title == ".nv.global"
            found[title] = str(length).encode() if bare else cubin[begin : begin + length]
    return found


def assemble(ptx: str) -> dict[str, bytes] | None:
    """The cubin's sections; None where no ptxas here takes the text."""
    target = re.search(r"^\s*\.target\s+(\w+)", ptx, re.MULTILINE)
    with tempfile.TemporaryDirectory() as name:
        source, cubin = Path(name, "kernel.ptx"), Path(name, "kernel.cubin")
        source.write_text(ptx, "utf-8")
        for tool in every(PTXAS):
            command = [str(tool.path), "-c", f"-arch={target[1] if target else 'sm_80'}"]
            done = subprocess.run(
                [*command, source.name, "-o", cubin.name],
                cwd=name,
                capture_output=True,
                check=False,
            )
            if done.returncode == 0:
                return sections(cubin.read_bytes())
    return None


def compare(text: str, written: str) -> tuple[bool, str]:
    """Whether ptxas takes the first text, and how its machine code of the other differs.

    ptxas 13.2 makes now this, now that of one text with tcgen05 instructions: each is assembled
    until the two have something in common, at most eight times.
    """
    expected, found = list[dict[str, bytes]](), list[dict[str, bytes]]()
    for _ in range(8):
        for ptx, known in (text, expected), (written, found):
            made = assemble(ptx)
            if made is None:
                return ptx is written, "ptxas refuses what was written" if ptx is written else ""
            known.append(made)
        if any(one in expected for one in found):
            return True, ""
        if "tcgen05" not in text:
            break
    one, other = expected[-1], found[-1]
    differ = {name for name in one | other if one.get(name) != other.get(name)}
    return True, f"other machine code: {', '.join(sorted(differ))}"


def judge(path: Path, sass: bool = True) -> Verdict:
    text = path.read_text("utf-8")
    verdict = Verdict(path.parent.name, path.stem, len(text.encode()))
    start = time.process_time()
    try:
        module = parse(text, str(path))
        seconds = time.process_time() - start
        written = write(module)
        again = parse(written)
    except FragirError as error:
        return replace(verdict, error=str(error))
    error, assembled = "", None
    if again != module:
        error = "what was written reads as another tree"
    elif tokens(written) != tokens(text):
        error = "what was written has other tokens"
    elif sass:
        assembled, error = compare(text, written)
    return replace(verdict, error=error, assembled=assembled, seconds=round(seconds, 6))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--no-sass", action="store_true", help="without ptxas")
    parser.add_argument("--json", type=Path, help="every verdict")
    options = parser.parse_args()
    verdicts: list[Verdict] = []
    print(f"{'compiler':18}{'files':>6}{'MB':>7}{'read':>6}{'SASS':>6}{'refused':>8}{'MB/s':>7}")
    for folder in sorted({path.parent for path in options.folder.rglob("*.ptx")}):
        found = [judge(path, not options.no_sass) for path in sorted(folder.glob("*.ptx"))]
        verdicts += found
        show(folder.name, found)
    show("all", verdicts)
    for v in verdicts:
        if v.error:
            print(f"{v.compiler}/{v.name}: {v.error}", file=sys.stderr)
    if options.json:
        options.json.write_text(json.dumps([asdict(v) for v in verdicts], indent=1) + "\n")
    return int(any(v.error for v in verdicts))


def show(title: str, verdicts: list[Verdict]) -> None:
    """`read`: the same tree and tokens. `SASS`: the same cubin. `refused`: by ptxas, as it is."""
    size, seconds = sum(v.size for v in verdicts), sum(v.seconds for v in verdicts)
    read = sum(v.assembled is not None or not v.error for v in verdicts)
    same = sum(v.assembled is True and not v.error for v in verdicts)
    refused = sum(v.assembled is False for v in verdicts)
    rate = size / seconds / 1e6 if seconds else 0
    counts = f"{len(verdicts):6}{size / 1e6:7.2f}{read:6}{same:6}{refused:8}{rate:7.2f}"
    print(f"{title:18}{counts}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
