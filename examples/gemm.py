"""What `make run` shows: one GEMM, compiled for two generations, assembled, run and checked.

examples/gemm.mlir (C = alpha A B + beta C) at 256 x 256 x 256 in f16, normal(0, 1) inputs; mma.sync
for sm_80 and wgmma for sm_90a. Runs on the GPU for the target that it is, else on the emulator.
The result is compared with the program's meaning in numpy, under a derived error bound.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fragir.cli.command import print_table
from fragir.cli.trial import Trial
from fragir.compilation.kernel import Place
from fragir.toolchain import driver

PROGRAM = Path(__file__).with_name("gemm.mlir")
TARGETS = ("sm_80", "sm_90a")
SIZES = {"m": 256, "n": 256, "k": 256}


def attempt(target: str) -> Trial:
    """The whole road for one target."""
    machine = driver.gpu().target if driver.available() is None else None
    place: Place = "gpu" if machine is not None and machine == target.rstrip("a") else "emulator"
    trial = Trial(PROGRAM.read_text(), PROGRAM.name, None, target, place, machine)
    trial.compile()
    trial.prepare(SIZES, {}, "normal", seed=0)
    trial.assemble()
    trial.evaluate()
    trial.execute()
    trial.judge()
    return trial


def _number(value: float | None) -> str:
    """Infinite, or of nothing that was judged, where there is none."""
    return "none" if value is None else f"{value:.3g}"


def main() -> int:
    """Prints one column a target; the exit code is 1 where a result is wrong."""
    trials = [attempt(target) for target in TARGETS]
    documents = [trial.document() for trial in trials]
    rows: list[list[str]] = []
    for stage in trials[0].stages:
        rows.append([f"{stage}, ms", *(f"{t.stages.get(stage, 0.0):.1f}" for t in trials)])
    for what in ("on", "registers", "spills", "shared"):
        rows.append([what, *(str(document[what]) for document in documents)])
    rows.append(["in the SASS", *(t.tensor_instructions or "no nvdisasm" for t in trials)])
    for what, key in (("largest error", "max_error"), ("its bound", "bound")):
        rows.append([what, *(_number(document[key]) for document in documents)])
    rows.append(["result", *(str(document["result"]) for document in documents)])
    print(f"{PROGRAM.name}: C = alpha A B + beta C, 256 x 256 x 256, f16 in, f32 out")
    print_table(["", *TARGETS], rows)
    return 0 if all(trial.has_passed for trial in trials) else 1


if __name__ == "__main__":
    sys.exit(main())
