"""The open questions of docs/arithmetic.md, asked of the GPU (`fragir.validation.questions`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.kit import TARGET, Kit, Work
from fragir.validation import questions
from fragir.validation.probes import emulator_runner, gpu_runner
from fragir.validation.products import Words

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder


def units(kit: Kit) -> list[str]:
    """All in one: a launch takes microseconds."""
    return ["questions"]


def prepare(kit: Builder) -> None:
    """Cubins of the kernels that ask."""

    def carry(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
        kit.carry(ptx, target)
        emulator_runner(ptx, target, blocks, threads, words)

    questions.ask(TARGET, carry)


def run(work: Work) -> dict[str, Any]:
    """`answers`: of each question what the emulator assumes and what the GPU says."""
    assumed = questions.ask(TARGET, emulator_runner)
    found = questions.ask(TARGET, gpu_runner)
    rows = [
        {
            "name": one.name,
            "asks": one.asks,
            "assumed": one.text,
            "found": other.text,
            "bits": f"{other.bits:#x}",
            "agree": one.bits == other.bits,
        }
        for one, other in zip(assumed, found, strict=True)
    ]
    wrong = [str(row["name"]) for row in rows if not row["agree"]]
    words = {"wrong": f"answered otherwise than assumed: {', '.join(wrong)}"} if wrong else {}
    return {"answers": rows, **words}
