"""Builds the compiled core of the emulator, where there is a compiler; pyproject.toml has the rest.

The core (fragir/emulator/native) is C without Python's headers, called by ctypes: one library for
every Python. Nothing needs it: without a compiler, with one that fails, or with FRAGIR_PURE=1 in
the environment, the package is built without it. CC, CFLAGS and LDFLAGS are respected.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zlib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

ROOT = Path(__file__).resolve().parent
NATIVE = "fragir/emulator/native"
FILES = sorted((ROOT / NATIVE / "source").glob("*.[ch]"), key=lambda path: path.name)
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
LIBRARY = f"{NATIVE}/core.shared{SUFFIX}"
"""The second dot keeps Python from taking the file for a module; native/library.py finds it."""

# Not the flags that Python was built with: the library shall be the same for all of them.
FLAGS = [
    "-std=c11",
    "-O3",
    "-fPIC",
    "-g0",
    "-fvisibility=hidden",
    "-fno-strict-aliasing",
    "-fwrapv",
    # Each operation is rounded by itself. Nothing reads errno or the flags of the exceptions.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
]


def digest(files: Sequence[Path]) -> int:
    """A number of files: `fragir_core_sources()` of a library is that of all its sources."""
    number = 0
    for path in files:
        number = zlib.crc32(path.name.encode() + path.read_bytes(), number)
    return number


class BuildCore(build_ext):
    """Compiles beside the file's place and renames, so that no process sees half a library."""

    def get_ext_filename(self, fullname: str) -> str:
        """The file of a module that is named with its packages or without, as it is asked for."""
        folders = fullname.split(".")[:-1]
        return str(Path(*folders, Path(LIBRARY).name))

    def build_extension(self, ext: Extension) -> None:
        target = Path(self.build_lib, LIBRARY)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder, target.name)
            try:
                Compiler(Path(self.build_temp)).library(made)
            except CompileError:
                target.unlink(missing_ok=True)  # it is of other sources
                raise
            made.chmod(0o755)
            made.replace(target)

    def copy_extensions_to_source(self) -> None:
        built, place = Path(self.build_lib, LIBRARY), ROOT / LIBRARY
        if built.is_file():
            # A process may have the old file mapped: it is replaced, not overwritten.
            beside = place.with_name(f"{place.name}.{os.getpid()}")
            beside.write_bytes(built.read_bytes())
            beside.replace(place)
        else:
            place.unlink(missing_ok=True)


class Compiler:
    """The machine's C compiler. What it made is kept by what it was made from."""

    def __init__(self, kept: Path) -> None:
        if os.name == "nt" and "CC" not in os.environ:
            raise CompileError("the emulator's core is built by gcc or clang: set CC")
        self.kept = kept
        self.command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
        self.flags = [*FLAGS, *given("CFLAGS")]
        self.version = self._run("--version")
        if b"clang" in self.version:  # it tells of each loop that it does not vectorise
            self.flags.append("-Wno-pass-failed")

    def _run(self, *words: str | Path) -> bytes:
        # In the sources' folder, without its name: no path of the machine gets into the library.
        command = [*self.command, *words]
        folder = ROOT / NATIVE / "source"
        try:
            return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE).stdout
        except (OSError, subprocess.CalledProcessError) as error:
            raise CompileError(f"the emulator's core was not built: {error}") from None

    def compiled(self, source: Path, to: Path) -> Path:
        """The object of a source, in a folder of one's own."""
        flags = list(self.flags)
        if source.name == "core.c":
            flags.append(f"-DFRAGIR_CORE_SOURCES={digest(FILES)}u")
        parts = f"{digest(with_headers(source)):08x}-{zlib.crc32(self.version):08x}"
        words = zlib.crc32(shlex.join([*self.command, *flags]).encode())
        kept = self.kept / f"{source.stem}-{parts}-{words:08x}.o"
        made = to / f"{source.stem}.o"
        if kept.is_file():
            shutil.copyfile(kept, made)
            return made
        self._run(*flags, "-c", source.name, "-o", made.resolve())
        beside = kept.with_name(f"{kept.name}.{os.getpid()}")
        for old in self.kept.glob(f"{source.stem}-*.o"):
            old.unlink(missing_ok=True)
        shutil.copyfile(made, beside)
        beside.replace(kept)
        return made

    def library(self, made: Path) -> None:
        """The library of all sources, compiled side by side."""
        sources = [path for path in FILES if path.suffix == ".c"]
        self.kept.mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self.compiled, sources, [made.parent] * len(sources)))
        names = [path.resolve() for path in objects]
        self._run("-shared", "-o", made.resolve(), *names, *given("LDFLAGS"), "-lm")


def with_headers(source: Path) -> list[Path]:
    """A source, and what it includes of the sources, and so on."""
    found = [source]
    for path in found:
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text("utf-8"), re.M):
            header = path.with_name(name)
            if header in FILES and header not in found:
                found.append(header)
    return found


def given(variable: str) -> list[str]:
    """The words of an environment variable."""
    return shlex.split(os.environ.get(variable, ""))


class CoreWheel(bdist_wheel):
    """A wheel for the platform and any Python where the core was built; else for all platforms."""

    def run(self) -> None:
        self.run_command("build")
        self.skip_build = True
        if not self.has_core():
            self.distribution.ext_modules = []
            self.root_is_pure = True
        super().run()

    def has_core(self) -> bool:
        return Path(self.get_finalized_command("build").build_lib, LIBRARY).is_file()

    def get_tag(self) -> tuple[str, str, str]:
        _, _, platform = super().get_tag()
        return ("py3", "none", "any" if self.root_is_pure else platform)


CORE = Extension(
    "fragir.emulator.native.core",
    [f"{NATIVE}/source/{path.name}" for path in FILES if path.suffix == ".c"],
    depends=[f"{NATIVE}/source/{path.name}" for path in FILES if path.suffix == ".h"],
    optional=True,
)

setup(
    ext_modules=[] if os.environ.get("FRAGIR_PURE") == "1" else [CORE],
    cmdclass={"build_ext": BuildCore, "bdist_wheel": CoreWheel},
)
