"""Finds NVIDIA's command line tools: in an environment variable, a PyPI package, a folder of
further versions, or PATH.

An environment of Python's holds one version of a package. Others are second opinions, each
installed into a folder of its own below `more_tools()`:

    pip install --no-deps --target .venv/nvidia-tools/13.2 nvidia-cuda-nvcc==13.2.86
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from fragir.errors import FragirError


@dataclass(frozen=True, slots=True)
class Tool:
    """An executable of NVIDIA's and the version that it reports, as in `13.2.86`."""

    path: Path
    version: str
    origin: str
    """Where it was found: an environment variable, a package, a folder, or `PATH`."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How to find one tool.

    `variable` names the environment variable that overrides everything, `packages` the PyPI
    packages that ship it, in order of preference, `hint` how to get it.
    """

    name: str
    variable: str
    packages: tuple[str, ...]
    hint: str


PTXAS = Wanted(
    "ptxas",
    "FRAGIR_PTXAS",
    ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"),
    "install it with `pip install nvidia-cuda-nvcc`, or set FRAGIR_PTXAS to its path",
)
NVDISASM = Wanted(
    "nvdisasm",
    "FRAGIR_NVDISASM",
    ("nvidia-cuda-nvdisasm",),
    "install it with `pip install 'fragir[disassembler]'`, or set FRAGIR_NVDISASM to its path",
)


def find(wanted: Wanted, version: str | None = None) -> Tool:
    """The first tool found, or the first whose version starts with `version` (`12`, `12.9.86`).

    Raises FragirError where there is none, or where the environment variable is set wrongly.
    """
    found: list[Tool] = []
    for path, origin in _candidates(wanted):
        tool = Tool(path, tool_version(path), origin)
        if version is None or _matches(tool.version, version):
            return tool
        found.append(tool)
    if version is None:
        raise FragirError(f"{wanted.name} was not found", hint=wanted.hint)
    others = ", ".join(tool.version for tool in found) or "none"
    hint = wanted.hint
    if wanted is PTXAS and version.split(".")[0] == "12":
        hint = "install it with `pip install 'fragir[ptxas12]'`"
    elif wanted is PTXAS:
        folder = f"{more_tools()}/{version}"
        named = f"nvidia-cuda-nvcc=={'.'.join([*version.split('.'), '*'][:3])}"
        hint = f"install it with `pip install --no-deps --target {folder} '{named}'`"
    raise FragirError(f"{wanted.name} {version} was not found; found: {others}", hint=hint)


def every(wanted: Wanted) -> list[Tool]:
    """Every tool of this name that can be used, in the order in which `find` looks."""
    return [Tool(path, tool_version(path), origin) for path, origin in _candidates(wanted)]


def _matches(version: str, prefix: str) -> bool:
    return version == prefix or version.startswith(prefix.rstrip(".") + ".")


def _candidates(wanted: Wanted) -> Iterator[tuple[Path, str]]:
    override = os.environ.get(wanted.variable)
    if override:
        path = Path(override)
        if not (path.is_file() and os.access(path, os.X_OK)):
            raise FragirError(
                f"{wanted.variable} is set to `{override}`, which is no executable file",
                hint=f"set it to the path of {wanted.name}, or unset it",
            )
        yield path.absolute(), wanted.variable  # tools run in a folder of their own
    seen: set[Path] = set()
    for package in wanted.packages:
        path = _in_package(package, wanted.name)
        if path is not None and path not in seen:
            seen.add(path)
            yield path, package
    for path in _in_folders(wanted.name):
        if path not in seen:
            seen.add(path)
            yield path, "/".join(path.relative_to(more_tools().parent).parts[:2])
    on_path = shutil.which(wanted.name)
    if on_path is not None and (path := Path(on_path).absolute()) not in seen:
        yield path, "PATH"


def more_tools() -> Path:
    """The folder of further versions: FRAGIR_TOOLS, else `nvidia-tools` in Python's environment."""
    named = os.environ.get("FRAGIR_TOOLS")
    return Path(named).absolute() if named else Path(sys.prefix, "nvidia-tools")


def _in_folders(name: str) -> Iterator[Path]:
    """The executables in the folders of further versions, newest first."""
    found: list[tuple[list[int], Path]] = []
    for folder in more_tools().glob("*/"):
        for path in [*folder.glob(f"bin/{name}"), *folder.glob(f"nvidia/*/bin/{name}")]:
            if path.is_file() and os.access(path, os.X_OK):
                found.append(([int(number) for number in re.findall(r"\d+", folder.name)], path))
    yield from (path for _, path in sorted(found, reverse=True))


@functools.cache
def _in_package(package: str, name: str) -> Path | None:
    """The executable that an installed package records among its files."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        recorded = files(package) or []
    except PackageNotFoundError:
        return None
    for file in recorded:
        if file.name in (name, f"{name}.exe") and file.parent.name == "bin":
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    return None


@functools.cache
def tool_version(path: Path) -> str:
    """The version that `path --version` reports, such as `13.2.86`."""
    text = execute([str(path), "--version"]).stdout
    match = re.search(r"\bV(\d+(?:\.\d+)+)", text)
    if match is None:
        raise FragirError(f"`{path} --version` reports no version", hint="is it NVIDIA's tool?")
    return match[1]


def execute(command: Sequence[str], *, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Runs a command with its output captured.

    One that cannot be started, or takes longer than `seconds()`, is a FragirError. However this
    ends, nothing that the command started goes on running.
    """
    limit = seconds()
    try:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            process_group=0 if os.name == "posix" else None,
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FragirError(f"`{command[0]}` could not be started: {reason}") from error
    with process:
        try:
            out, err = process.communicate(timeout=limit)
        except BaseException as error:  # a signal, too
            _end(process)
            if isinstance(error, subprocess.TimeoutExpired):
                raise FragirError(
                    f"{Path(command[0]).name} was ended after {limit} seconds",
                    hint=f"{LIMIT} sets the limit in seconds; 0 is none",
                ) from None
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


LIMIT = "FRAGIR_TOOL_SECONDS"


def seconds() -> int | None:
    """The longest that one run of a tool may take; None is no limit."""
    text = os.environ.get(LIMIT, "600")
    if not (text.isascii() and text.isdigit() and len(text) < 8):
        raise FragirError(f"{LIMIT} is `{text}`", hint="set it to a whole number of seconds")
    return int(text) or None


def _end(process: subprocess.Popen[str]) -> None:
    """Kills a command and what it has started: it may be a script around the tool."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
