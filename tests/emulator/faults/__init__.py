"""Small kernels with one planted fault each, and their mended twins.

The comments of a file say how it is launched and what is to be found; see `Fault`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from fragir.emulator import EmulationError, Finding, run
from fragir.emulator.report import Asynchrony

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Fault:
    name: str
    text: str

    @property
    def purpose(self) -> str:
        return self.text.splitlines()[0]

    @property
    def kind(self) -> str:
        return self._word("kind")

    @property
    def severity(self) -> str:
        """error unless the file says `severity letter`; remarks are remarks by their kind."""
        return (
            "letter"
            if re.search(r"^// kind.*\bseverity letter", self.text, re.MULTILINE)
            else "error"
        )

    def _word(self, key: str) -> str:
        found = re.search(r"^// kind.*", self.text, re.MULTILINE)
        found = re.search(rf"\b{key} (\S+)", found[0] if found else "")
        assert found is not None, key
        return found[1]

    def ptx(self, *, mended: bool) -> str:
        """One of the twins; lines that it lacks are empty, so that numbers stay the same."""
        drop = "// fault" if mended else "// mend"
        lines = self.text.splitlines()
        return (
            "\n".join("" if drop in line and not line.startswith("/") else line for line in lines)
            + "\n"
        )

    @property
    def line(self) -> int | None:
        """Where the finding is; None where no single line is to blame."""
        marked = [
            number
            for number, line in enumerate(self.text.splitlines(), 1)
            if "// found" in line and not line.startswith("/")
        ]
        return marked[0] if marked else None

    def findings(
        self, *, mended: bool, schedule: int | None = None, asynchrony: Asynchrony = "late"
    ) -> list[Finding]:
        """Everything that is found; an error that stops the run is one of them."""
        data = np.arange(1024, dtype=np.uint32)
        number = int(self._word("grid"))
        try:
            report = run(
                self.ptx(mended=mended),
                grid=(number,),
                block=(int(self._word("block")),),
                cluster=(int(self._word("cluster")),),
                arguments=[data],
                check=True,
                schedule=schedule,
                asynchrony=asynchrony,
            )
        except EmulationError as error:
            before = error.report.findings if error.report is not None else []
            return [
                *before,
                Finding(
                    error.kind,
                    error.message,
                    error.file,
                    error.line,
                    error.col,
                    error.warp,
                    error.lane,
                    error.address,
                ),
            ]
        return report.findings + report.remarks


def faults() -> list[Fault]:
    return [Fault(p.stem, p.read_text()) for p in sorted(FOLDER.glob("*.ptx"))]
