"""The judge as three tools for programs that write kernels: `fragir mcp` serves them.

`Tools.judge` runs in a process of its own (`fragir.judge.batch`), so that no kernel and no case can
end who asks, take its memory, or write into its stdout. Whatever is wrong is a FragirError.
"""

from __future__ import annotations

import json
import re
import tempfile
import threading
from pathlib import Path
from typing import Any, cast

from fragir.errors import FragirError

#: The longest text of a case file.
MOST_CASE_CHARACTERS = 1 << 20
_GIB = 1 << 30


class Tools:
    """`seconds`, `memory` (bytes): the most that one judgement may take, its case file included;
    `workers`: how many there may be at once, others wait."""

    def __init__(self, seconds: float = 120.0, memory: int = 4 * _GIB, workers: int = 2) -> None:
        self.seconds, self.memory = seconds, memory
        self._free = threading.BoundedSemaphore(workers)

    def __repr__(self) -> str:
        return f"<judge in {self.seconds:g} s and {self.memory / _GIB:g} GiB>"

    def judge(
        self,
        kernel: str,
        case: str,
        function: str = "cases",
        seed: int | None = None,
        strict: bool = False,
        structure: list[int] | None = None,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Judge a PTX kernel by cases (launches and a reference), without a GPU.

        Gives the verdict as `fragir judge --json` does: `verdict` is pass, fail, incomplete or
        unsupported; `reasons` say why, with lines; `schedules`, `data`, `equality`, `coverage` and
        `untried` say what it holds for. Only `pass` is one. Ask `explain_finding` for any reason.

        kernel: the PTX itself, or the path of a .ptx, .cubin or .fatbin file.
        case: the text of a Python file, or FILE.py:FUNCTION, or MODULE:FUNCTION. The function is
        given a numpy generator and yields fragir.judge.Case objects, as:
            import numpy as np
            from fragir.judge import Case, KernelCall
            def cases(rng):
                x = rng.normal(size=1000).astype(np.float32)
                y = np.empty_like(x)
                call = KernelCall("twice", [x, y, x.size], grid=8, block=128)
                yield Case(call, inputs=[x], outputs=[y], reference=lambda x: 2 * x)
        function: of a case that is a text, the function's name.
        seed: repeats a judgement with the same inputs; drawn anew unless given.
        strict: letters are faults, and what no launch has executed makes the verdict incomplete.
        structure: positions (from 0) of arguments that are part of the launch, as page tables are.
        seconds: a limit below the server's own.
        """
        from fragir.judge.batch import judge_line

        least = self.seconds if seconds is None else min(float(seconds), self.seconds)
        if not least > 0:
            raise FragirError(f"{seconds} is no limit", hint="seconds above 0, or none")
        with tempfile.TemporaryDirectory(prefix="fragir-tool-") as name:
            folder = Path(name)
            line = {
                "key": "",
                "kernel": _kernel(kernel, folder),
                "case": _case(case, function, folder),
                "seed": seed,
                "strict": strict,
                "structure": structure or [],
            }
            with self._free:
                answer = judge_line(line, least, self.memory)
            # the names of files that were texts, as their writer knows them
            found = json.dumps(answer).replace(f"{folder}/", "")
        result = cast("dict[str, Any]", json.loads(found))
        if result["verdict"] is None:
            raise FragirError(f"no verdict: {result['error']}")
        return cast("dict[str, Any]", result["verdict"])

    def explain_finding(self, finding: str | dict[str, Any]) -> dict[str, Any]:
        """What a finding or verdict means, why it is a fault, how it is mended, the ISA's section.

        finding: a name (race, proxy-fence, result, choice, fail, incomplete, letter, ...), the
        letter of a rule of schedules (A to F), or a reason of a verdict, or a finding of `fragir
        check --json`, as it stands there.
        """
        from fragir.judge.meanings import explain

        return explain(finding)

    def list_supported(self) -> dict[str, Any]:
        """Machines, PTX opcodes, tensor-core families, what is refused by name, and limits."""
        from fragir.judge.supported import supported

        found = supported()
        found["limits"] |= {"seconds": self.seconds, "bytes_of_memory": self.memory}
        return found


def _kernel(kernel: str, folder: Path) -> str:
    """The path of a kernel; a text becomes a file."""
    if "\n" not in kernel and not re.search(r"\.version\s", kernel):
        return kernel
    path = folder / "kernel.ptx"
    path.write_text(kernel, "utf-8", errors="replace")
    return str(path)


def _case(case: str, function: str, folder: Path) -> str:
    """FILE.py:FUNCTION of a case; a text becomes a file."""
    if "\n" not in case:
        return case
    if not function.isidentifier():
        raise FragirError(f"{function[:80]!r} is no name of a function")
    if len(case) > MOST_CASE_CHARACTERS:
        raise FragirError(f"a case has at most {MOST_CASE_CHARACTERS} characters")
    path = folder / "case.py"
    path.write_text(case, "utf-8", errors="replace")
    return f"{path}:{function}"
