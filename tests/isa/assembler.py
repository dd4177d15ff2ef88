"""ptxas for the tests of the instruction table, independent of fragir.toolchain."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

_HEAD = """.version {version}
.target {target}
.address_size 64
.shared .align 1024 .b8 sm[1024];
.visible .entry k(.param .u64 p0) {{
.reg .pred p, q; .reg .b16 h<9>; .reg .b32 r<99>; .reg .b64 l<9>; .reg .f32 f<99>;
.reg .f64 d<9>;
"""


class NoPtxas(Exception):
    """There is no ptxas for a target; the message says how to get one."""


@dataclass(frozen=True)
class Ptxas:
    """ptxas 13 for sm_75 on; ptxas 12 for sm_70 and sm_72, where there is one."""

    new: Path
    old: Path | None

    def program(self, target: str) -> Path:
        if target in ("sm_70", "sm_72"):
            if self.old is None:
                raise NoPtxas(
                    "sm_70 and sm_72 need ptxas 12: pip install nvidia-cuda-nvcc-cu12==12.9.86, "
                    "or FRAGIR_PTXAS_12=/path/to/ptxas"
                )
            return self.old
        return self.new

    def run(self, ptx: str, target: str) -> str:
        """The errors of assembling `ptx`; empty if it assembles."""
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(ptx)
            file.flush()
            command = [self.program(target), "-arch", target, "-O0", file.name, "-o", "/dev/null"]
            result = subprocess.run(command, capture_output=True, text=True, check=False)
        return (result.stderr or "failed") if result.returncode else ""

    def cubin(self, ptx: str, target: str) -> bytes:
        """The optimised machine code of `ptx`."""
        with tempfile.TemporaryDirectory() as folder:
            source, made = Path(folder, "probe.ptx"), Path(folder, "probe.cubin")
            source.write_text(ptx)
            command = [self.program(target), "-arch", target, source, "-o", made]
            subprocess.run(command, check=True, capture_output=True)
            return made.read_bytes()

    def refusals(
        self,
        statements: Sequence[str],
        target: str,
        version: str,
        heading: Callable[[str, str], str] = lambda version, target: _HEAD.format(
            version=version, target=target
        ),
    ) -> list[str | None]:
        """Why each statement is refused, None where it is accepted.

        ptxas reports one error a line, but stops early at some; so what it has not complained
        about is asked again until all of that is accepted at once. `heading`: what stands before
        the statements, by version and target.
        """
        found: list[str | None] = [None] * len(statements)
        asked: list[int] = list(range(len(statements)))
        while asked:
            head = heading(version, target)
            body = "\n".join("{" + statements[i] + "}" for i in asked)
            errors = self.run(f"{head}{body}\nEND: ret;\n}}\n", target)
            if not errors:
                return found
            first = head.count("\n") + 1
            hit: set[int] = set()
            found_in = re.findall(r"line (\d+); (?:error|fatal)\s*:\s*(.*)", errors)
            found_in += re.findall(r"(?<=on line ')(\d+)'(.*)", errors)
            for line, message in found_in:
                if 0 <= int(line) - first < len(asked):
                    found[asked[int(line) - first]] = message
                    hit.add(asked[int(line) - first])
            if not hit and len(asked) == 1:
                found[asked[0]] = errors
                return found
            if not hit:  # it gave up and does not say where
                for part in (asked[::2], asked[1::2]):
                    reasons = self.refusals([statements[i] for i in part], target, version, heading)
                    for index, reason in zip(part, reasons, strict=True):
                        found[index] = reason
                return found
            asked = [i for i in asked if i not in hit]
        return found


def _find(*patterns: str) -> Path | None:
    for pattern in patterns:
        for found in sorted(Path(sysconfig.get_paths()["purelib"]).glob(pattern)):
            return found
    return None


def installed() -> Ptxas:
    """The assemblers of this machine. Raises NoPtxas."""
    named = shutil.which("ptxas")
    new = _find("nvidia/cu13/bin/ptxas") or (Path(named) if named else None)
    if new is None:
        raise NoPtxas(f"no ptxas: {sys.executable} -m pip install nvidia-cuda-nvcc==13.5.37")
    given = os.environ.get("FRAGIR_PTXAS_12")
    return Ptxas(new, Path(given) if given else _find("nvidia/cuda_nvcc/bin/ptxas"))
