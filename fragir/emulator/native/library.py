"""Which core runs the emulator's steps: the compiled library, or numpy.

The library is C, built by setup.py beside this file where there is a compiler, called by ctypes,
loaded when something is emulated. Both give the same bits: the choice is one of speed. The
environment variable FRAGIR_CORE (compiled or numpy) makes it for all launches.
"""

from __future__ import annotations

import ctypes
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

from fragir.errors import FragirError, check_one_of

CoreName: TypeAlias = Literal["compiled", "numpy"]

VARIABLE = "FRAGIR_CORE"
CHOICES: tuple[CoreName, ...] = ("compiled", "numpy")
"""What FRAGIR_CORE may say; the first that is there is used without it."""

VERSION = 9
"""FRAGIR_CORE_VERSION of source/core.h: what this package calls."""

LEVELS = ("baseline", "AVX2", "AVX-512")
"""What `fragir_core_level()` counts."""

_SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
PATH = Path(__file__).parent / f"core.shared{_SUFFIX}"
"""Where setup.py puts the library."""


@dataclass(frozen=True)
class CompiledLibrary:
    """The library, called in two ways; or, without either, why it cannot be."""

    unlocked: ctypes.CDLL | None = None
    locked: ctypes.PyDLL | None = None
    reason: str | None = None


def core() -> CoreName:
    """The core in use.

    FragirError where FRAGIR_CORE names one that is not there, or none at all.
    """
    asked = os.environ.get(VARIABLE)
    if asked:
        check_one_of(asked, CHOICES, VARIABLE)
    problem = reason()
    if asked == "compiled" and problem is not None:
        hint = f"unset {VARIABLE}, and the best that is there is used"
        raise FragirError(f"{VARIABLE} asks for compiled: {problem}", hint=hint)
    return "numpy" if asked == "numpy" or problem is not None else "compiled"


def library() -> ctypes.CDLL | None:
    """The compiled library, called without the interpreter's lock; None where it is not in use."""
    return compiled_library().unlocked if core() == "compiled" else None


def quick() -> ctypes.PyDLL | None:
    """The same, called with the lock held: for calls of microseconds."""
    return compiled_library().locked if core() == "compiled" else None


def level() -> str | None:
    """The instructions of the CPU that the compiled core uses; None where it is not in use."""
    found = library()
    if found is None:
        return None
    number: int = found.fragir_core_level()
    return LEVELS[number]


def reason() -> str | None:
    """Why the compiled core cannot be used, in a clause; None where it can."""
    return compiled_library().reason


def why_not_faster() -> str | None:
    """Why the compiled core is not in use, with a way out; None where it is."""
    if core() == "compiled":
        return None
    if os.environ.get(VARIABLE):
        return f"{VARIABLE} asks for it"
    way = "fragir installed again where there is gcc or clang (in a clone: make core)"
    return f"the compiled core: {reason()}; faster would be {way}"


@cache
def compiled_library() -> CompiledLibrary:
    """The library beside this file, loaded once in a process."""
    return load(PATH)


def load(path: Path) -> CompiledLibrary:
    """A library of this package's version, or why that file is none."""
    if not path.is_file():
        return CompiledLibrary(reason="it was not built")
    try:
        unlocked, locked = ctypes.CDLL(str(path)), ctypes.PyDLL(str(path))
        version = unlocked.fragir_core_version()
    except (OSError, AttributeError) as error:
        return CompiledLibrary(reason=f"{path.name} cannot be loaded: {error}")
    if version != VERSION:
        return CompiledLibrary(reason=f"{path.name} is of version {version}, not {VERSION}")
    return CompiledLibrary(unlocked, locked)
