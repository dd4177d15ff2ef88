"""Rehearses a kit without a GPU: all of `run.sh`, in an empty environment, with no network.

    python -m benchmarks.gpu.rehearse [--kit FOLDER] [--python 3.12] [--only STEP,...]

The stand-in of the driver runs every launch on the emulator. The run is killed at moments drawn by
chance and goes on with `--resume`; a report is made after each. Then five probes go wrong: three
give a bit otherwise, one ends the context, one never ends; the report must name these five. At
last the driver refuses the carried cubins. Where no other Python is, the project's own serves.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu import build, neighbour, probes, stand_in
from benchmarks.gpu.kit import Kit
from benchmarks.gpu.report import Run, page_of
from fragir.toolchain.find import PTXAS, find

THERE = (
    *("numpy==2.5.2", "cuda-bindings==13.0.3", "cuda-core==1.2.2", "ml-dtypes==0.6.0"),
    *("click==8.5.1", "pytest==9.2.0", "hypothesis==6.170.15", "attrs==26.1.0"),
)
"""What the machine has of packages, as far as a rehearsal needs them."""
MINUTES = 20
NOTING = """\
#!/usr/bin/env bash
# ptxas, and the stand-in is told what was assembled
set -e
{ptxas} "$@"
out= ; ptx=
while [ $# -gt 0 ]; do
  case "$1" in
    -o) out=$2; shift ;;
    *.ptx) ptx=$1 ;;
  esac
  shift
done
[ -z "$out" ] || cp "$ptx" "{folder}/$(sha256sum "$out" | cut -d' ' -f1).ptx"
"""


def python_of(version: str) -> Path | None:
    """A Python of this version that is here, with what the machine has installed; None if none is.

    Installed once, beside the neighbours of the benchmarks.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    home = cache / "fragir" / "benchmarks" / f"gpu-machine-{version}"
    python = home / "bin" / "python"
    if (home / "installed").exists():
        return python
    base = _base(version)
    if base is None:
        return None
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([base, "-m", "venv", "--clear", str(home)], [*pip, *THERE]):
        if subprocess.run(command, check=False, capture_output=True).returncode:
            return None
    (home / "installed").touch()
    return python


def _base(version: str) -> str | None:
    """The Python of a version on PATH, or among pyenv's."""
    names = [
        f"python{version}",
        *sorted(map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))),
    ]
    for name in names:
        found = shutil.which(name)
        wanted = f"import sys; sys.exit('{version}' != '%d.%d' % sys.version_info[:2])"
        if (
            found
            and not subprocess.run(
                [found, "-c", wanted], check=False, capture_output=True
            ).returncode
        ):
            return found
    return None


@dataclass
class Stage:
    """A folder with an unpacked kit, the hook of the stand-in, and a ptxas that notes."""

    folder: Path
    python: str

    @classmethod
    def of(cls, kit: Path, folder: Path, python: str) -> Stage:
        stage = cls(folder, python)
        shutil.copytree(kit, stage.kit)
        for path in (stage.noted, folder / "hook", folder / "bin"):
            path.mkdir()
        shutil.copyfile(Path(__file__).with_name("hook.py"), folder / "hook/sitecustomize.py")
        tool = folder / "bin/ptxas"
        tool.write_text(NOTING.format(ptxas=find(PTXAS).path, folder=stage.noted), "utf-8")
        tool.chmod(0o755)
        return stage

    @property
    def kit(self) -> Path:
        return self.folder / "kit"

    @property
    def noted(self) -> Path:
        """PTX that was assembled there, by the hashes of its cubins."""
        return self.folder / "noted"

    def command(self, out: Path, *options: str) -> list[str]:
        """`run.sh`, without a network where that can be had."""
        alone = ["unshare", "--net"] if _can_unshare() else []
        return [*alone, "bash", str(self.kit / "run.sh"), *options, str(out)]

    def environment(self, **faults: Any) -> dict[str, str]:
        options = {"ptx": [str(self.kit / "data/ptx"), str(self.noted)], **faults}
        return {
            "PATH": f"{self.folder / 'bin'}:/usr/bin:/bin",
            "FRAGIR_PTXAS": str(self.folder / "bin/ptxas"),
            "HOME": str(self.folder / "home"),
            "PYTHON": self.python,
            "PYTHONPATH": str(self.folder / "hook"),
            "FRAGIR_STAND_IN": json.dumps(options),
            "LANG": "C.UTF-8",
        }

    def run(self, out: Path, *options: str, **faults: Any) -> str:
        """A run to its end; what it printed."""
        done = subprocess.run(
            self.command(out, *options),
            env=self.environment(**faults),
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode not in (0, 1):
            raise SystemExit(f"run.sh ended with {done.returncode}: {done.stderr[-2000:]}")
        return done.stdout + done.stderr

    def killed(self, out: Path, seconds: float, *options: str) -> None:
        """A run that is killed after so many seconds, with all that it has started."""
        process = subprocess.Popen(
            self.command(out, *options),
            env=self.environment(),
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            for pid in _family(process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            process.wait()


def _family(pid: int) -> Iterator[int]:
    """A process and all that it has started, the last ones first."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text("utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            yield from _family(int(path.parent.name))
    yield pid


def _can_unshare() -> bool:
    """Whether a process may have a network of its own, which has nothing in it."""
    try:
        return not subprocess.run(
            ["unshare", "--net", "true"], check=False, capture_output=True
        ).returncode
    except OSError:
        return False


def chosen_probes(kit: Kit, seed: int = 0) -> dict[str, list[tuple[str, str]]]:
    """Five probes of the table: (name in a report, `ENTRY@HASH`), three of them to be altered."""
    draw = random.Random(seed)
    found: list[tuple[str, str]] = []
    units = [unit for unit in kit.facts["steps"]["probes"]["units"] if unit.startswith("table:")]
    for unit in draw.sample(units, 5):
        number, probe = draw.choice(list(probes.unit_probes(kit.small, unit)))
        texts = stand_in.entries(probe.ptx)
        entry = f"probe_{number}" if len(texts) > 1 else "probe"
        found.append((probe.name, f"{entry}@{stand_in.hash_of(texts[entry])}"))
    return {"alter": found[:3], "raise": found[3:4], "hang": found[4:]}


# The rehearsal -----------------------------------------------------------------------------------


def whole(stage: Stage, options: Sequence[str]) -> tuple[Run, float]:
    """A run that nothing disturbs, and its seconds: nothing may be otherwise than expected."""
    start = time.monotonic()
    print(stage.run(stage.folder / "whole", *options))
    run = Run.of(stage.folder / "whole")
    assert run.disagreements == [], run.disagreements
    return run, time.monotonic() - start


def killed(
    stage: Stage, options: Sequence[str], moments: Sequence[float], say: Callable[[str], None]
) -> Run:
    """A run that is killed after so many seconds each, goes on, and is then whole."""
    out = stage.folder / "killed"
    for moment in moments:
        stage.killed(out, moment, "--resume", *options)
        if (out / "session.json").exists():
            so_far = Run.of(out)
            page_of(so_far)
            say(f"killed after {moment:.1f} s: {len(so_far.lines)} units, and a report of them")
    stage.run(out, "--resume", *options)
    run = Run.of(out)
    made: dict[str, Any] = run.head["kit"]["steps"]
    wanted = {(step, unit) for step in run.head["steps"] for unit in made[step]["units"]}
    assert {(line["step"], line["unit"]) for line in run.lines} == wanted
    assert run.disagreements == [], run.disagreements
    return run


def faulty(stage: Stage, minutes: float, seed: int, **options: Any) -> Run:
    """Five probes go wrong: the report must name these and no other."""
    faults = chosen_probes(Kit.of(stage.kit), seed)
    keys = {kind: [key for _, key in found] for kind, found in faults.items()}
    out, only = stage.folder / "faults", "probes"
    stage.run(out, "--minutes", str(minutes), "--only", only, **keys, **options)
    run = Run.of(out)
    named = [what for _, what, _ in run.disagreements]
    wanted = [name for found in faults.values() for name, _ in found]
    assert sorted(named) == sorted(wanted), (named, wanted)
    return run


def refused(stage: Stage, options: Sequence[str]) -> Run:
    """A driver that takes no carried cubin: the ptxas that is there makes all of them."""
    stage.run(stage.folder / "refused", *options, refuse=True)
    run = Run.of(stage.folder / "refused")
    assert run.head["cubins"]["taken"] is False
    assert run.disagreements == [], run.disagreements
    return run


def rehearse(kit: Path, folder: Path, python: str, options: Sequence[str]) -> dict[str, Any]:
    """All of it in an empty folder; what was found. AssertionError where it is not right."""
    stage = Stage.of(kit, folder, python)
    run, seconds = whole(stage, options)
    print(f"whole: {len(run.lines)} units in {seconds:.0f} s, no disagreement", flush=True)
    draw = random.Random(0)
    moments = sorted(draw.uniform(1, seconds / 5) for _ in range(5))
    killed(stage, options, moments, lambda text: print(text, flush=True))
    named = [what for _, what, _ in faulty(stage, MINUTES, 0).disagreements]
    print(f"five probes that go wrong are named, and no other: {', '.join(named)}", flush=True)
    words = refused(stage, options).head["cubins"]["words"]
    print(f"a driver that says {words!r}: cubins are made there, no disagreement", flush=True)
    steps = {name: entry["seconds"] for name, entry in run.head["steps"].items()}
    absent = [
        f"{unit}: {name}: {why}"
        for step in steps
        for unit, result in run.of_step(step)
        for name, why in result.get("absent", {}).items()
    ]
    return {"python": python, "seconds": seconds, "steps": steps, "absent": absent}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kit", type=Path, metavar="FOLDER", help="one that is made, --small")
    parser.add_argument("--python", default="3.12", metavar="3.12")
    parser.add_argument("--only", default="", metavar="STEP,...")
    options = parser.parse_args(argv)
    found = python_of(options.python)
    if found is None:
        print(f"no Python {options.python} is here: the project's own serves", file=sys.stderr)
    python = str(found or sys.executable)
    with tempfile.TemporaryDirectory(prefix="fragir-gpu-") as name:
        folder = Path(name)
        kit = options.kit
        if kit is None:
            kit = folder / "made"
            with neighbour.triton(True) as triton:
                number = options.python if found else f"3.{sys.version_info.minor}"
                build.build(kit, small=True, triton=triton, python=number)
        words = ["--minutes", str(MINUTES), *(["--only", options.only] if options.only else [])]
        (folder / "stage").mkdir()
        result = rehearse(kit.resolve(), folder / "stage", python, words)
    print(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
