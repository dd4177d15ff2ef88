"""Makes the kit: `make gpu-kit`, or

    python -m benchmarks.gpu.build [--out FOLDER] [--python 3.12] [--small] [--only STEP,...]

Everything that a GPU will be asked is made here: wheels of fragir and of what is missing there,
cubins of every kernel, the bits that the emulator expects, Triton's kernels. `--small` is for a
rehearsal on the emulator, `--alone` leaves Triton out. The same commit makes the same cubins.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.gpu.kit import TARGET, Kit
from benchmarks.gpu.steps import STEPS, module
from fragir.toolchain import ptxas
from fragir.toolchain.find import PTXAS, find
from fragir.toolchain.ptxas import Assembled

ROOT = Path(__file__).parents[2]
MOST = 40 << 20
"""Bytes of a kit: it travels with the tree."""
NEWEST_PTX = (9, 0)
"""The newest `.version` that the ptxas there reads, should it have to assemble."""
CODE = ("benchmarks", "docs/json.md", "examples", "tests", "pyproject.toml")
"""What of the checkout the steps and tests run from there."""
THERE = (
    *("numpy", "ml-dtypes", "hypothesis", "click", "pytest", "iniconfig", "pluggy", "pygments"),
    *("cuda-bindings", "cuda-core", "attrs", "packaging", "nvidia-cuda-nvcc"),
)
"""Packages that the machine has, by their names on PyPI; of nvidia-cuda-nvcc it has the ptxas."""


@dataclass
class Builder(Kit):
    """A kit that is being made."""

    triton: Any = None
    """Triton's process (`neighbours.Worker`), or None."""
    left_out: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    launches: int = 0
    hashes: dict[str, str] = field(default_factory=dict[str, str])
    """SHA-256 of each PTX -> that of its cubin."""

    @property
    def cubins(self) -> Path:
        return self.path("cubins")

    def carry(self, ptx: str, target: str = TARGET) -> Assembled:
        """Assembles PTX for the machine and puts the cubin into the kit."""
        made = ptxas.carry(self.cubins, ptx, target)
        name = hashlib.sha256(made.cubin).hexdigest()
        self.hashes[hashlib.sha256(ptx.encode()).hexdigest()] = name
        self.keep(f"ptx/{name}.ptx", ptx.encode())
        self.launches += ptx.count(".entry")
        return made

    def carry_kernel(self, kernel: Any) -> Assembled:
        """The same of a compiled kernel or program, for the machine at hand there."""
        from benchmarks.gpu.kit import MACHINE

        return self.carry(kernel.ptx, ptxas.target_for(kernel.target, MACHINE))

    def keep(self, name: str, data: bytes) -> None:
        """A file of the kit's data."""
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)

    def progress(self, text: str) -> None:
        """Says on a terminal how far a step is; nothing for an empty text."""
        if sys.stderr.isatty():
            print(f"\r{text:<70}", end="" if text else "\r", file=sys.stderr, flush=True)

    def leave_out(self, what: str, why: str) -> None:
        """A launch that the kit does not have, and why; it stands in `kit.json`."""
        self.left_out.append({"what": what, "why": why})


# Wheels ------------------------------------------------------------------------------------------


def fragir_wheel(folder: Path) -> Path:
    """fragir's wheel, with the compiled core where there is a compiler."""
    epoch = git("log", "-1", "--format=%ct") or "315532800"
    environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch}
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as copy:
        source = Path(copy, "fragir")
        tree(source)
        for option in ((), ("FRAGIR_PURE",)):
            done = subprocess.run(
                [*command, "--no-deps", "--wheel-dir", str(folder), str(source)],
                env=environment | dict.fromkeys(option, "1"),
                capture_output=True,
                text=True,
                check=False,
            )
            found = sorted(folder.glob("fragir-*.whl"))
            if done.returncode == 0 and found:
                return found[0]
    raise SystemExit(f"fragir's wheel could not be built: {done.stderr.strip()[-400:]}")


def tree(to: Path, names: Iterable[str] = (".",)) -> None:
    """A copy of what git tracks of the checkout, or what is there but not ignored, as it is now."""
    listed = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names)
    for name in sorted(filter(None, listed.split("\0"))):
        path = ROOT / name
        if path.is_symlink() or not path.is_file():
            if path.is_symlink():
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                (to / name).symlink_to(os.readlink(path))
            continue
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, to / name)


def git(*words: str) -> str:
    """What git says, or nothing where there is none."""
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def commit() -> str:
    """The commit that the kit is of, with a mark where files differ from it."""
    return git("describe", "--always", "--dirty", "--abbrev=40", "--exclude", "*") or "unknown"


def needed() -> list[str]:
    """fragir's packages, and those of its tests there, without what the machine has: NAME==VERSION.

    As they are installed here, dependencies of dependencies too.
    """
    from importlib.metadata import PackageNotFoundError, distribution

    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    waiting = ["fragir", "jsonschema"]
    while waiting:
        name = waiting.pop().lower().replace("_", "-")
        if name in found or name in THERE:
            continue
        try:
            one = distribution(name)
        except PackageNotFoundError:
            continue
        found[name] = one.version
        for text in one.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    del found["fragir"]
    return sorted(f"{name}=={version}" for name, version in found.items())


def wheels(folder: Path, python: str) -> list[str]:
    """Downloads the wheels of `needed` for a Python (`3.12`) on x86-64 with glibc."""
    wanted = needed()
    platforms = [f"manylinux_2_{n}_x86_64" for n in (34, 31, 28, 27, 26, 24, 17, 12, 5)]
    platforms += ["manylinux2014_x86_64", "manylinux1_x86_64", "linux_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary=:all:", "--implementation", "cp"]
    command += ["--python-version", python, "--dest", str(folder)]
    command += [word for name in platforms for word in ("--platform", name)]
    done = subprocess.run([*command, *wanted], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        raise SystemExit(f"wheels for Python {python} could not be downloaded: {last}")
    return sorted(path.name for path in folder.glob("*.whl"))


# The kit -----------------------------------------------------------------------------------------


def build(
    out: Path,
    *,
    small: bool = False,
    only: Sequence[str] = (),
    triton: Any = None,
    python: str = "3.12",
    with_wheels: bool = True,
    say: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Makes a kit in a folder, which is replaced as a whole; its `kit.json`."""
    part = out.with_name(f"{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    kit = Builder(part, small, triton)
    steps: dict[str, Any] = {}
    for step in STEPS:
        if only and step.name not in only:
            continue
        start, before = time.monotonic(), kit.launches
        made = module(step.name)
        made.prepare(kit)
        units = list(made.units(kit))
        steps[step.name] = {"units": units, "kernels": kit.launches - before}
        say(
            f"{step.name}: {len(units)} units, {kit.launches - before} kernels"
            f" ({time.monotonic() - start:.0f} s)"
        )
    for name in CODE:
        tree(part / "code", [name])
    if with_wheels:
        (part / "wheels").mkdir()
        fragir_wheel(part / "wheels")
        wheels(part / "wheels", python)
    check_versions(kit)
    facts = {
        "commit": commit(),
        "small": small,
        "python": python,
        "target": TARGET,
        "ptxas": find(PTXAS).version,
        "steps": steps,
        "left_out": kit.left_out,
        "cubins": kit.hashes,
    }
    for name in ("data", "code"):
        packed(part / name, 0 if small else 6)
    (part / "kit.json").write_text(json.dumps(facts, indent=1) + "\n", "utf-8")
    for name in ("run.sh", "start.py"):
        shutil.copyfile(Path(__file__).with_name(name), part / name)
    (part / "run.sh").chmod(0o755)
    size = sum(path.stat().st_size for path in part.rglob("*") if path.is_file())
    if size > MOST:
        raise SystemExit(f"the kit has {size >> 20} MiB, of {MOST >> 20} at most: {part}")
    shutil.rmtree(out, ignore_errors=True)
    part.rename(out)
    say(f"{out}: {size / 2**20:.1f} MiB, {len(kit.hashes)} cubins with {kit.launches} kernels")
    return facts


def check_versions(kit: Builder) -> None:
    """That an older ptxas could read every PTX, should the driver refuse the cubins."""
    for path in sorted(kit.path("ptx").glob("*.ptx")):
        text = path.read_text("utf-8")
        word = text.partition(".version")[2].split(None, 1)[0]
        if tuple(map(int, word.split("."))) > NEWEST_PTX:
            raise SystemExit(f"a kernel of the kit needs PTX {word}: {text[:300]}")


def packed(folder: Path, preset: Literal[0, 6]) -> None:
    """Replaces a folder by an archive of it, the same bytes for the same files. `preset`: of xz."""
    with tarfile.open(folder.with_suffix(".tar.xz"), "w:xz", preset=preset) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                info = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
                data = path.read_bytes()
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    shutil.rmtree(folder)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build/gpu-kit", metavar="FOLDER")
    parser.add_argument("--small", action="store_true", help="sizes for the emulator")
    parser.add_argument("--only", default="", metavar="STEP,...")
    parser.add_argument("--alone", action="store_true", help="without Triton")
    default = os.environ.get("GPU_KIT_PYTHON", "3.12")
    parser.add_argument("--python", default=default, metavar="3.12", help="the Python there")
    parser.add_argument("--here", action="store_true", help="for this machine and this Python")
    options = parser.parse_args(argv)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    from benchmarks.gpu.neighbour import triton

    with triton(not options.alone) as process:
        build(
            options.out.resolve(),
            small=options.small,
            only=[word for word in options.only.split(",") if word],
            triton=process,
            python=here if options.here else options.python,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
