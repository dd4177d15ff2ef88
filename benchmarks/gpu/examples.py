"""Every example once on the GPU, against the bound or the answer that it has.

Programs run through `fragir run`, with the sizes of the commands in their headers; scripts as they
stand, except that what they would have the emulator do goes to the GPU too. A unit is a folder; its
parts are single entries of programs, and scripts.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
import shlex
import sys
from collections.abc import Callable, Generator
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from unittest import mock

from benchmarks.gpu.commands import fragir_run
from benchmarks.gpu.kit import MACHINE, TARGET, Kit, Work
from fragir.errors import FragirError
from fragir.toolchain import ptxas

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

FOLDER = Path(__file__).parents[2] / "examples"
LEFT_OUT = {
    "check_ptx.py": "it has the emulator find faults",
    "in_the_wild": "its kernels have faults, which the emulator finds",
    "notebooks": "they are pages",
}
"""Files and folders that nothing is run of, and why."""


def units(kit: Kit) -> list[str]:
    """Folders, as `examples/rows`; of the first one those of single instructions are another."""
    return list(dict.fromkeys(map(unit_of, listed(kit))))


def parts(kit: Kit, unit: str) -> list[str]:
    """The names of a unit, or the one name that this is."""
    return [name for name in listed(kit) if unit in (name, unit_of(name))]


def unit_of(name: str) -> str:
    return "examples/mma" if name.startswith("examples/mma_") else name.rpartition("/")[0]


def listed(kit: Kit) -> dict[str, list[str]]:
    """Names (`examples/rows/softmax.mlir softmax`) and the words of `fragir run` for programs."""
    path = kit.path("examples.json")
    found: dict[str, list[str]] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def prepare(kit: Builder, folders: str = "**") -> None:
    """Compiles programs, runs scripts on the emulator; carries the kernels of both."""
    found: dict[str, list[str]] = {}
    taken: set[tuple[Path, str]] = set()
    for path in sorted([*FOLDER.glob(f"{folders}/*.mlir"), *FOLDER.glob(f"{folders}/*.py")]):
        name = path.relative_to(FOLDER).as_posix()
        if why := LEFT_OUT.get(name) or LEFT_OUT.get(path.parent.name):
            kit.leave_out(f"examples/{name}", why)
            continue
        if kit.small and (path.parent, path.suffix) in taken:
            continue
        taken.add((path.parent, path.suffix))
        if path.suffix == ".py":
            with tried(kit, f"examples/{name}"):
                carry_script(kit, path)
                found[f"examples/{name}"] = []
            continue
        for entry in re.findall(r"func\.func (?:public )?@(\w+)", path.read_text("utf-8")):
            with tried(kit, f"examples/{name} {entry}"):
                found[f"examples/{name} {entry}"] = carry_program(kit, path, entry)
    kit.keep("examples.json", json.dumps(found).encode())


@contextlib.contextmanager
def tried(kit: Builder, name: str) -> Generator[None]:
    """What cannot be had is left out."""
    try:
        yield
    except FragirError as error:
        kit.leave_out(name, error.sentence)


def carry_program(kit: Builder, path: Path, entry: str) -> list[str]:
    """Carries an entry for the GPU's own target; the words of its command behind the file.

    Sizes and arguments are those of its command in the header, or of the others there.
    """
    from fragir.cli.trial import Trial

    text = path.read_text("utf-8")
    commands = [shlex.split(line) for line in re.findall(r"^//\s+fragir (run .*)", text, re.M)]
    if not commands:
        raise FragirError("its header has no `fragir run`")
    trial = Trial(text, path.name, entry, TARGET, "gpu", TARGET)
    trial.compile()
    found: dict[str, dict[str, str]] = {"--size": {}, "--arg": {}}
    for words in sorted(commands, key=lambda words: entry in words):
        for option, value in pairwise(words):
            for word in value.split(",") if option in found else ():
                name, _, number = word.partition("=")
                found[option][name] = number
    signature = trial.kernel.signature
    dims = {dim for one in signature for dim in one.dims}
    sizes = {name: number for name, number in found["--size"].items() if name in dims}
    names = {one.name for one in signature}
    given = {name: value for name, value in found["--arg"].items() if name in names}
    if any(value.endswith(".npy") for value in given.values()):
        raise FragirError("its arguments are files; the script beside it has them")
    trial.prepare({name: int(number) for name, number in sizes.items()}, given, "normal", 0)
    for kernel in {one.ptx: one for one in (trial.kernel, *trial.kernel.parts)}.values():
        kit.carry_kernel(kernel)
    pairs = (("--size", sizes), ("--arg", given))
    words = [(option, f"{name}={x}") for option, some in pairs for name, x in some.items()]
    return ["--entry", entry, *chain.from_iterable(words)]


def carry_script(kit: Builder, path: Path) -> None:
    """Carries what a script launches, as it comes: FragirError where the GPU cannot have it."""
    refused: list[FragirError] = []
    asks = "assemble" in path.read_text("utf-8")
    launched = 0

    def note(kernel: Any) -> None:
        nonlocal launched
        launched += 1
        target = ptxas.target_for(kernel.target, MACHINE)
        try:
            for one in {target, kernel.target} if asks else {target}:
                kit.carry(kernel.ptx, one)
        except FragirError as error:
            refused.append(error)

    run_script(path, "emulator", note)
    if refused:
        raise refused[0]
    if not launched:
        raise FragirError("it launches nothing")


def run_script(path: Path, place: Literal["emulator", "gpu"], note: Callable[[Any], None]) -> str:
    """Runs a script, all of whose launches go to one place and are noted; what it printed.

    FragirError where it ends otherwise than well.
    """
    from fragir.compilation.kernel import Kernel
    from fragir.host.program import Program

    launch, call = Kernel.launch, Program.__call__

    def launched(self: Any, *arguments: Any, **options: Any) -> Any:
        note(self)
        kept = {key: options[key] for key in ("shared", "cluster", "stream") if key in options}
        return launch(self, *arguments, **kept, on=place)

    def called(self: Any, *arguments: Any, resident: int | None = None, **_: Any) -> Any:
        return call(self, *arguments, on=place, resident=resident)

    out = io.StringIO()
    try:
        with (
            mock.patch.object(Kernel, "launch", launched),
            mock.patch.object(Program, "__call__", called),
            mock.patch.object(sys, "argv", [str(path)]),
            contextlib.redirect_stdout(out),
        ):
            runpy.run_path(str(path), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise FragirError(f"{end.code}: {out.getvalue().strip()[-300:]}") from None
    return out.getvalue().strip()


def run(work: Work) -> dict[str, Any]:
    """What each example of a folder says; raises where one has ended the context."""
    from benchmarks.gpu.worker import alive

    kit, found = work.kit, dict[str, dict[str, Any]]()
    for name in parts(kit, work.unit):
        if name in work.without:
            found[name] = {"wrong": work.without[name]}
            continue
        work.say(name)
        try:
            found[name] = once(kit, name)
        except Exception as error:
            found[name] = {"wrong": " ".join(f"{type(error).__name__}: {error}".split())[:400]}
            if not alive():
                raise
    work.say("")
    wrong = [f"{name}: {one['wrong']}" for name, one in found.items() if "wrong" in one]
    return {"examples": found, **({"wrong": "; ".join(wrong)} if wrong else {})}


def once(kit: Kit, name: str) -> dict[str, Any]:
    """One example."""
    file, _, entry = name.partition(" ")
    path = FOLDER.parent / file
    if entry:
        return fragir_run(str(path), "--on", "gpu", *listed(kit)[name])
    launches: list[str] = []
    printed = run_script(path, "gpu", lambda kernel: launches.append(kernel.name))
    return {"launches": len(launches), "printed": printed[-400:]}
