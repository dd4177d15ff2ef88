"""PTX by many compilers, from kernels of our own, in a folder for each compiler.

    python benchmarks/corpus.py FOLDER [--only nvcc,triton] [--quick] [--list]

A compiler that is not here is left out, and named. Those from PyPI are installed on first use into
environments of their own (~/.cache/fragir/benchmarks). `--quick`: few files, of nvcc. No compiler
needs a GPU. `python tests/corpus/check.py FOLDER` then says what the reader makes of the files.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from neighbours import CORPUS, TRITON, WORKERS, Neighbour

ROOT = Path(__file__).parents[1]
FOREIGN = ROOT / "tests/foreign"
CUDA = sorted([*(FOREIGN / "cuda").glob("*.cu"), *(ROOT / "tests/ptx/kernels").glob("*.cu")])
TARGETS = ("sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a")

# nvcc's options: every file for every target without any; each of the others for one target.
OPTIONS = (
    ("-G",),
    ("-lineinfo",),
    ("-rdc=true",),
    ("-use_fast_math", "-extra-device-vectorization"),
    ("-Xcicc=-O0",),
    ("-maxrregcount=64", "-ftz=true", "-lineinfo"),
)
QUICK = (
    ("collective", "sm_90a", ("-lineinfo",)),
    ("control", "sm_75", ("-G",)),
    ("elementwise", "sm_120a", ()),
    ("hopper", "sm_90a", ("-rdc=true",)),
    ("libcu", "sm_100a", ()),
    ("mma", "sm_89", ("-G",)),
    ("tensor", "sm_90a", ("-lineinfo",)),
    ("wmma", "sm_80", ("-rdc=true",)),
)


class Absent(Exception):
    """A compiler that is not here, and why."""


@dataclass(frozen=True)
class Options:
    quick: bool


def tool(*names: str) -> str:
    for name in names:
        if found := shutil.which(name):
            return found
    raise Absent(f"no {' or '.join(names)} on the PATH")


def attempt(command: list[str], cwd: Path | None = None, **variables: str) -> bool:
    """Whether a command succeeds; its first words where it does not."""
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    for line in done.stderr.splitlines() if done.returncode else ():
        if "error" in line.lower() or "Error" in line:
            print(f"  {' '.join(command[-4:])}: {line}", file=sys.stderr)
            break
    return done.returncode == 0


def by_nvcc(folder: Path, options: Options) -> None:
    compiler = tool("nvcc")
    wanted: list[tuple[str, str, tuple[str, ...]]] = []
    for number, path in enumerate(CUDA):
        wanted += [(path.stem, target, ()) for target in TARGETS if fits(path, target)]
        for at, more in enumerate(OPTIONS):
            target = TARGETS[(number + at) % len(TARGETS)]
            wanted.append((path.stem, target if fits(path, target) else "sm_90a", more))
    sources = {path.stem: path for path in CUDA}
    for name, target, more in QUICK if options.quick else wanted:
        words = "-".join((name, target, *(re.sub(r"\W", "", word) for word in more)))
        out = folder / f"{words}.ptx"
        command = [compiler, "-std=c++17", "-w", f"-arch={target}", *more, "-ptx"]
        attempt([*command, str(sources[name]), "-o", str(out)], FOREIGN)


def fits(path: Path, target: str) -> bool:
    """Hopper's kernels are for sm_90a alone; the others leave out what a target lacks."""
    number = int(re.sub(r"\D", "", target))
    oldest = {"hopper": 90, "libcu": 80, "mma": 80}.get(path.stem, 75)
    return number >= oldest and (path.stem != "hopper" or number == 90)


def by_clang(folder: Path, options: Options) -> None:
    del options
    compiler = tool("clang-21", "clang-20", "clang-19", "clang-18", "clang")
    for target in ("sm_75", "sm_80", "sm_90a"):
        for more in (("-O0",), ("-O2",), ("-O3", "-g"), ("-O2", "-gline-tables-only")):
            out = folder / f"{target}{''.join(more)}.ptx"
            command = [compiler, "--target=nvptx64-nvidia-cuda", f"-march={target}", *more, "-S"]
            attempt([*command, str(FOREIGN / "c/kernels.c"), "-o", str(out)])


def by_gcc(folder: Path, options: Options) -> None:
    """What GCC makes of OpenMP regions for nvptx: the objects that its linker is given."""
    del options
    compiler = tool("gcc-14", "gcc-13", "gcc-12", "gcc")
    for level in ("-O0", "-O1", "-O2", "-O3"):
        with tempfile.TemporaryDirectory() as name:
            more = ["-fopenmp", "-foffload=nvptx-none", level, "-save-temps"]
            offload = f"-foffload-options=nvptx-none=-misa=sm_80 {level}"
            source = str(FOREIGN / "c/openmp.c")
            if not attempt([compiler, *more, offload, source, "-o", "a.out"], Path(name)):
                raise Absent("gcc does not compile for nvptx: is gcc-12-offload-nvptx installed?")
            made = next(Path(name).glob("*nvptx-none.mkoffload.o"), None)
            if made is None:
                raise Absent("gcc has left no PTX behind")
            shutil.copy(made, folder / f"openmp{level}.ptx")


def by_worker(neighbour: Neighbour, *words: str, **variables: str) -> Callable[..., None]:
    """A script in the neighbour's environment writes files into the folder."""

    def make(folder: Path, options: Options) -> None:
        del options
        python = neighbour.python()
        if python is None:
            raise Absent(f"{neighbour.label} cannot be installed")
        script = WORKERS / neighbour.worker
        with tempfile.TemporaryDirectory() as scratch:
            places = {"TRITON_CACHE_DIR": scratch, "WARP_CACHE_PATH": scratch}
            command = [str(python), str(script), str(folder.resolve()), *words]
            done = subprocess.run(
                command,
                cwd=scratch,
                env={**os.environ, **places, **variables},
                capture_output=True,
                text=True,
                check=False,
            )
        for line in done.stderr.splitlines():
            if line.startswith("left out: "):
                print(f"  {line}", file=sys.stderr)
        if done.returncode:
            last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
            raise Absent(f"{neighbour.label}: {' '.join(last)}")

    return make


def by_fragir(folder: Path, options: Options) -> None:
    del options
    from fragir import compile as compiled
    from fragir.errors import FragirError

    for path in sorted((ROOT / "examples").rglob("*.mlir")):
        for target in ("sm_80", "sm_90a"):
            try:
                text = compiled(path.read_text("utf-8"), target=target).ptx
            except FragirError:
                continue  # an example for the other target
            (folder / f"{path.stem}-{target}.ptx").write_text(text, "utf-8")


def compilers() -> Iterator[tuple[str, Callable[[Path, Options], None]]]:
    yield "nvcc", by_nvcc
    yield "clang", by_clang
    yield "gcc", by_gcc
    yield "fragir", by_fragir
    triton = Neighbour(TRITON.name, TRITON.requirements, str(FOREIGN / "triton_kernels.py"))
    yield "triton", by_worker(triton)
    yield "triton-no-lines", by_worker(triton, TRITON_DISABLE_LINE_INFO="1")
    for neighbour in CORPUS:
        yield neighbour.name, by_worker(neighbour)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", metavar="NAMES", help="compilers, with commas between")
    parser.add_argument("--quick", action="store_true", help="eight files, of nvcc")
    parser.add_argument("--list", action="store_true", help="name the compilers")
    options = parser.parse_args()
    known = dict(compilers())
    if options.list:
        print(*known, sep="\n")
        return 0
    names = options.only.split(",") if options.only else ["nvcc"] if options.quick else list(known)
    if unknown := set(names) - known.keys():
        parser.error(f"no compiler {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    total = 0
    for name in names:
        folder = options.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            known[name](folder, Options(options.quick))
        except Absent as reason:
            print(f"{name} is left out: {reason}", file=sys.stderr)
        files = list(folder.glob("*.ptx"))
        total += len(files)
        size = sum(path.stat().st_size for path in files)
        print(f"{name}: {len(files)} files, {size / 1e6:.2f} MB", flush=True)
    print(f"{total} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
