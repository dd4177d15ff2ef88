"""What fragir makes of many inputs: a process that prints a digest of every output.

    python tests/repeatable/batch.py [--one-of N] [--show NAME]

Of N neighbouring outputs one is made, of every kind; `--show` prints one output as it is. Two
processes must agree whatever their PYTHONHASHSEED and their Python are.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))  # for `tests`, and the package where it is not installed

from fragir.cli.main import main  # noqa: E402

if TYPE_CHECKING:
    from fragir.emulator.report import Asynchrony
    from tests.emulator.faults import Fault

Make = Callable[[], str]
TIMES = {"stages", "seconds"}  # of the machine, not of the input


def command(*arguments: str | Path) -> str:
    """What a command of `fragir` prints, and its exit code."""
    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = main([str(argument) for argument in arguments])
    text = out.getvalue()
    if "--json" in arguments and code == 0:
        text = json.dumps(_without_times(json.loads(text)))  # keeps the order of the keys
    return f"{text}\n{error.getvalue()}\nexit {code}"


def _without_times(document: Any) -> Any:
    if isinstance(document, dict):
        return {k: _without_times(v) for k, v in document.items() if k not in TIMES}  # pyright: ignore[reportUnknownVariableType]
    return document


def compiling() -> Iterator[tuple[str, Make]]:
    """Every example on targets that have it and on some that have not."""
    for path in sorted(Path("examples").rglob("*.mlir")):
        for target in ("sm_80", "sm_90a", "sm_75", "sm_120a"):
            yield (
                f"compile {path.name} {target}",
                partial(command, "compile", path, "--target", target),
            )
        yield (
            f"compile --to placed {path.name}",
            partial(command, "compile", path, "--to", "placed"),
        )


def refusals() -> Iterator[tuple[str, Make]]:
    """What is said about programs that are refused."""
    from tests.golden.conftest import SEPARATOR, refusal

    for path in sorted(Path("tests/golden").glob("*_errors.mlir")):
        shared, *programs = path.read_text().split(SEPARATOR)
        run = shared.partition("\n")[0].removeprefix("// RUN: ").split()
        for number, program in enumerate(programs):
            yield f"{path.stem} {number}", partial(refusal, shared + program, run)


def findings() -> Iterator[tuple[str, Make]]:
    """All that is found in kernels with a fault, and in those where fragments are wrong."""
    from tests.emulator.faults import FOLDER, Fault, faults

    for fault in faults():
        yield f"faults {fault.name}", partial(_found, fault, None, "late")
        yield f"faults {fault.name} by chance", partial(_found, fault, 1, "random")
    for path in sorted((FOLDER / "fragments").glob("*.ptx")):
        yield f"fragments {path.name}", partial(_fragments, Fault(path.stem, path.read_text()))


def _found(fault: Fault, schedule: int | None, asynchrony: Asynchrony) -> str:
    found = fault.findings(mended=False, schedule=schedule, asynchrony=asynchrony)
    return "\n".join(map(repr, found))


def _fragments(fault: Fault) -> str:
    import numpy as np

    from fragir.emulator import run

    block = re.search(r"block (\d+)", fault.text)
    assert block is not None
    data = np.arange(4096, dtype=np.uint32)
    report = run(
        fault.ptx(mended=False),
        block=(int(block[1]),),
        arguments=[data],
        fragments=True,
        check=True,
    )
    return "\n".join(map(repr, [*report.findings, *report.fragments]))


MNEMONICS = (
    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
    "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0",
    "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16",
    "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16",
    # these do not exist
    "mma.sync.aligned.m16n8k64.row.col.f32.f16.f16.f32",
    "mma.sync.aligned.m16n8k16.row.col.satfinite.rz.kind::f8f6f4.f32.e4m3.e4m3.f32",
    "mma.sync.aligned.row.col.f32.bf16.bf16.f32",
    "wgmma.mma_async.sync.aligned.m64n20k16.f32.f16.f16",
    "ldmatrx.sync.aligned.m8n8.x3.shared.b16",
)


def instructions() -> Iterator[tuple[str, Make]]:
    """The table, its drawings, and modules and wrappers of single instructions."""
    for target in ("sm_75", "sm_90a", "sm_100a"):
        yield (
            f"instructions {target}",
            partial(command, "instructions", "--target", target, "--json"),
        )
    yield "refused instructions", partial(command, "instructions", "--refused", "--only", "*f16*")
    for mnemonic in MNEMONICS:
        for way in ("ptx", "cuda"):
            yield f"emit {way} {mnemonic}", partial(command, "emit", mnemonic, "--as", way)
        for form in ("text", "json", "html", "formula"):
            yield (
                f"layout {form} {mnemonic}",
                partial(command, "layout", mnemonic, "a", "--format", form),
            )
    for target in ("sm_90a", "sm_100a"):
        words = ("--layout", "bf16:k:128:64x64", "--start", "0x1400", "--target", target)
        yield f"descriptor {target}", partial(command, "descriptor", *words)
    yield "help", partial(command, "--help")
    yield "a wrong option", partial(command, "compile", "--tagret", "sm_80")


def python() -> Iterator[tuple[str, Make]]:
    """Kernels and layouts from Python; errors of both."""
    yield "builder", partial(_said, _built)
    yield "builder, refused", partial(_said, _built_wrongly)
    yield "layout, refused", partial(_said, _asked_wrongly)


def _said(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _built() -> str:
    """A GEMM by tiles and loops, with what it carries from turn to turn."""
    import fragir
    from fragir import f16, f32

    with fragir.kernel("gemm", warps=(2, 2)) as k:
        a = k.memory("a", f16, ("m", "k"))
        b = k.memory("b", f16, ("k", "n"))
        c = k.memory("c", f32, ("m", "n"))
        scale, bias = k.scalar("scale", f32), k.scalar("bias", f32)
        k.grid("n / 64", "m / 64")
        row, column = k.block_id("y") * 64, k.block_id("x") * 64
        with k.loop(0, k.size("k"), 16, acc=k.fill(0, (64, 64), f32)) as loop:
            x = k.load(a, (row, loop.index), shape=(64, 16), masked=True)
            y = k.load(b, (loop.index, column), shape=(16, 64), masked=True)
            loop.acc = k.mma(x, y, loop.acc)
        k.store(k.max(loop.acc * scale + bias, 0), c, (row, column), masked=True)
    kernel = k.compile("sm_80")
    return f"{k.mlir}{kernel.ptx}{kernel.signature}"


def _built_wrongly() -> str:
    import fragir
    from fragir import f16

    with fragir.kernel("copy") as k:
        a, b = k.memory("a", f16, ("m", "n")), k.memory("b", f16, ("p", "q"))
        k.divisible(u=2, v=4, w=8)
        k.store(k.load(a, (0, 0), shape=(16, 16), masked=True), b, (0, 0), masked=True)
    return k.compile("sm_80").ptx


def _asked_wrongly() -> object:
    from fragir import isa

    layout = isa.lookup(MNEMONICS[0]).operands["a"].layout
    assert layout is not None
    return layout(thread=1, group=2, block=3)


# Running -----------------------------------------------------------------------------------------


KINDS = (compiling, refusals, findings, instructions, python)


def outputs(one_of: int) -> Iterator[tuple[str, Make]]:
    for kind in KINDS:
        yield from islice(kind(), 0, None, 1 if kind is python else one_of)


def digests(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--one-of", type=int, default=1)
    parser.add_argument("--show", metavar="NAME")
    options = parser.parse_args(arguments)
    os.environ["FRAGIR_CACHE"] = "off"
    os.environ["COLUMNS"] = "100"
    os.chdir(ROOT)
    if options.show:
        print(dict(outputs(1))[options.show]())
        return
    found: dict[str, str] = {}
    for name, make in outputs(options.one_of):
        found[name] = hashlib.sha256(make().encode()).hexdigest()[:16]
    print(json.dumps(found))


if __name__ == "__main__":
    digests(sys.argv[1:])
