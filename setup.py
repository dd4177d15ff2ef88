"""Builds the compiled core of the emulator, where there is a compiler; pyproject.toml has the rest.

The core (fragir/emulator/native) is C without Python's headers, called by ctypes: one library for
every Python. Nothing needs it: without a compiler, with one that fails, or with FRAGIR_PURE=1 in
the environment, the package is built without it. CC, CFLAGS and LDFLAGS are respected.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import sysconfig
import tempfile
import zlib
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


def digest() -> int:
    """A number of the sources: `fragir_core_sources()` of a library says which it is built from."""
    number = 0
    for path in FILES:
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
        target.unlink(missing_ok=True)  # of other sources, should this fail
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            made = Path(folder, target.name)
            compile_core(made)
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


def compile_core(made: Path) -> None:
    """The library from all sources; CompileError where there is no compiler that can."""
    if os.name == "nt" and "CC" not in os.environ:
        raise CompileError("the emulator's core is built by gcc or clang: set CC")
    compiler = shlex.split(os.environ.get("CC") or str(sysconfig.get_config_var("CC") or "cc"))
    flags = [*FLAGS, *shlex.split(os.environ.get("CFLAGS", ""))]
    links = [*shlex.split(os.environ.get("LDFLAGS", "")), "-lm"]
    names = [path.name for path in FILES if path.suffix == ".c"]
    command = [*compiler, *flags, f"-DFRAGIR_CORE_SOURCES={digest()}u", "-shared", *names]
    try:
        # Names without folders: nothing of the machine's paths gets into the library.
        subprocess.run(
            [*command, "-o", str(made.resolve()), *links], cwd=ROOT / NATIVE / "source", check=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise CompileError(f"the emulator's core was not built: {error}") from None


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
