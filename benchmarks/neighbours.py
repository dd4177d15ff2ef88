"""Other compilers from PyPI, each in an environment of its own, and what they are asked for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import Run

WORKERS = Path(__file__).parent / "workers"


@dataclass(frozen=True)
class Neighbour:
    """A package with pinned versions and the script that serves it."""

    name: str
    requirements: tuple[str, ...]
    worker: str

    @property
    def home(self) -> Path:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return cache / "fragir" / "benchmarks" / "-".join(self.requirements).replace("==", "-")

    @property
    def label(self) -> str:
        return self.requirements[0].replace("==", " ")

    def python(self) -> Path | None:
        """The Python of its environment, installed on first use; None where that fails."""
        python = self.home / "bin" / "python"
        done = self.home / "installed"
        if done.exists():
            return python
        print(f"installing {self.label} into {self.home}", file=sys.stderr)
        venv.create(self.home, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        found = subprocess.run(
            [*command, *self.requirements], capture_output=True, text=True, check=False
        )
        if found.returncode:
            last = (found.stderr.strip().splitlines() or ["pip failed"])[-1]
            print(f"{self.label} is left out: {last}", file=sys.stderr)
            return None
        done.touch()
        return python

    def command(self) -> list[str] | None:
        python = self.python()
        return [str(python), str(WORKERS / self.worker)] if python else None


TRITON = Neighbour("Triton", ("triton==3.6.0",), "triton_worker.py")
TRITON_CONVERSIONS = Neighbour("Triton", TRITON.requirements, "triton_conversions.py")
TRITON_LOOPS = Neighbour("Triton", TRITON.requirements, "triton_loops.py")
PYPTX = Neighbour("pyptx", ("pyptx==0.1.1", "numpy"), "pyptx_worker.py")

# Those that only write PTX for the corpus (corpus.py), each with a script of its own.
NVRTC = {  # and the package of its headers
    "nvidia-cuda-nvrtc-cu12==12.1.105": "nvidia-cuda-runtime-cu12==12.1.105",
    "nvidia-cuda-nvrtc-cu12==12.4.127": "nvidia-cuda-runtime-cu12==12.4.127",
    "nvidia-cuda-nvrtc-cu12==12.6.85": "nvidia-cuda-runtime-cu12==12.6.77",
    "nvidia-cuda-nvrtc-cu12==12.9.86": "nvidia-cuda-runtime-cu12==12.9.79",
    "nvidia-cuda-nvrtc==13.2.78": "nvidia-cuda-runtime==13.2.75",
}
CORPUS = (
    *(
        Neighbour(f"nvrtc-{package.rpartition('=')[2]}", (package, headers), "corpus_nvrtc.py")
        for package, headers in NVRTC.items()
    ),
    Neighbour(
        "numba",
        (
            "numba-cuda==0.30.4",
            "numba==0.68.1",
            "nvidia-cuda-nvrtc==13.2.78",
            "nvidia-nvvm==13.2.78",
        ),
        "corpus_numba.py",
    ),
    Neighbour("warp", ("warp-lang==1.10.0",), "corpus_warp.py"),
    Neighbour("cutedsl", ("nvidia-cutlass-dsl==4.8.1",), "corpus_cutedsl.py"),
    Neighbour("halide", ("halide==21.0.0",), "corpus_halide.py"),
    Neighbour("pyptx", PYPTX.requirements, "corpus_pyptx.py"),
)


class Worker:
    """A process that answers requests, one JSON document a line; `environment` is added to ours."""

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        self.scratch = tempfile.TemporaryDirectory(prefix="fragir-bench-")
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "TRITON_CACHE_DIR": self.scratch.name, **(environment or {})},
        )

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """RuntimeError with the last words of a worker that died."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self.answer()

    def answer(self) -> dict[str, Any]:
        """The next line that it says; RuntimeError as of `ask`."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        answer = self.process.stdout.readline()
        if not answer:
            last = (self.process.stderr.read().strip().splitlines() or ["no answer"])[-1]
            raise RuntimeError(f"{self.process.args}: {last}")
        result: dict[str, Any] = json.loads(answer)
        return result

    def run(self, request: dict[str, Any]) -> Run:
        """Runs whose time the worker takes itself, in its process."""

        def run() -> tuple[float, float]:
            answer = self.ask(request)
            return answer["wall"], answer["cpu"]

        return run

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(timeout=30)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
        self.scratch.cleanup()


def worker(neighbour: Neighbour, wanted: bool) -> Worker | None:
    """The neighbour's process, where it is wanted and can be installed."""
    command = neighbour.command() if wanted else None
    return Worker(command) if command else None
