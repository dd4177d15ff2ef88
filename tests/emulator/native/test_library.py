"""Which core is found, what FRAGIR_CORE asks for, and libraries that are none of ours."""

from __future__ import annotations

import ctypes
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import zlib
from pathlib import Path

import pytest

from fragir.emulator import run
from fragir.emulator.native import library
from fragir.errors import FragirError

SOURCE = Path(library.__file__).parent / "source"
COMPILER = shlex.split(str(sysconfig.get_config_var("CC") or "cc"))[0]
HAS_COMPILER = SOURCE.is_dir() and shutil.which(COMPILER) is not None
LEVEL = """\
from fragir.emulator.native import library
print(library.level())
"""
EMPTY = """\
.version 7.0
.target sm_80
.address_size 64
.visible .entry nothing() { ret; }
"""


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(library.VARIABLE, raising=False)


@pytest.mark.skipif(not HAS_COMPILER, reason="there are no sources of the core, or no compiler")
def test_core_is_built_from_the_sources_that_are_here() -> None:
    """A core that does not compile fails here, and a stale one: `make core` builds it anew."""
    assert library.reason() is None
    found = library.library()
    assert found is not None
    found.fragir_core_sources.restype = ctypes.c_uint32
    number = 0
    for path in sorted(SOURCE.glob("*.[ch]"), key=lambda path: path.name):
        number = zlib.crc32(path.name.encode() + path.read_bytes(), number)
    assert found.fragir_core_sources() == number, "make core"
    assert library.core() == "compiled"


@pytest.mark.skipif(not SOURCE.is_dir(), reason="there are no sources of the core")
def test_version_is_written_in_two_places() -> None:
    text = (SOURCE / "core.h").read_text()
    assert re.findall(r"^#define FRAGIR_CORE_VERSION (\d+)$", text, re.M) == [str(library.VERSION)]


@pytest.mark.skipif(not HAS_COMPILER, reason="there are no sources of the core, or no compiler")
def test_two_handles_on_one_library() -> None:
    unlocked, locked = library.library(), library.quick()
    assert isinstance(unlocked, ctypes.CDLL)
    assert isinstance(locked, ctypes.PyDLL)
    assert unlocked.fragir_core_version() == locked.fragir_core_version() == library.VERSION


def without(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the library had not been built."""
    missing = library.CompiledLibrary(reason="it was not built")
    monkeypatch.setattr(library, "compiled_library", lambda: missing)


def test_numpy_without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    assert library.core() == "numpy"
    assert library.library() is library.quick() is library.level() is None
    assert "not built" in str(library.why_not_faster())
    assert "gcc or clang" in str(library.why_not_faster())


def test_numpy_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, "numpy")
    assert library.core() == "numpy"
    assert library.library() is None
    assert library.quick() is None
    assert library.why_not_faster() == "FRAGIR_CORE asks for it"


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("compiled", "FRAGIR_CORE asks for compiled: it was not built"),
        ("numba", "FRAGIR_CORE is 'numba', it must be one of compiled, numpy"),
        ("Numpy", "FRAGIR_CORE is 'Numpy', it must be one of compiled, numpy"),
    ],
)
def test_what_is_not_there(monkeypatch: pytest.MonkeyPatch, asked: str, words: str) -> None:
    """One sentence, of a launch too, which blames no statement of the kernel."""
    without(monkeypatch)
    monkeypatch.setenv(library.VARIABLE, asked)
    with pytest.raises(FragirError, match=words):
        library.core()
    with pytest.raises(FragirError, match=words) as caught:
        run(EMPTY, "nothing", grid=(1,), block=(32,), arguments=[])
    assert caught.value.place == ""


def test_libraries_that_are_none(tmp_path: Path) -> None:
    """Not there; no library at all; for another machine, which the system refuses likewise."""
    assert library.load(tmp_path / "core.so").reason == "it was not built"
    broken = tmp_path / "broken.so"
    broken.write_bytes(b"\x7fELF" + bytes(60))
    found = library.load(broken)
    assert found.unlocked is found.locked is None
    assert str(found.reason).startswith("broken.so cannot be loaded: ")


@pytest.mark.skipif(not HAS_COMPILER, reason="there are no sources of the core, or no compiler")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int fragir_core_version(void) { return 12345; }", "is of version 12345, not"),
        ("int something_else(void) { return 1; }", "cannot be loaded: "),
    ],
)
def test_libraries_of_others(tmp_path: Path, text: str, words: str) -> None:
    made = tmp_path / "other.so"
    (tmp_path / "other.c").write_text(text)
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, tmp_path / "other.c"], check=True)
    found = library.load(made)
    assert found.unlocked is found.locked is None
    assert words in str(found.reason)


@pytest.mark.skipif(not HAS_COMPILER, reason="there are no sources of the core, or no compiler")
def test_level_can_be_lowered() -> None:
    """By the environment, never beyond what the CPU has; nonsense changes nothing."""
    here = library.level()
    assert here in library.LEVELS
    highest = library.LEVELS.index(here)
    for asked, wanted in (("0", 0), ("1", min(1, highest)), ("2", highest), ("7", highest)):
        done = subprocess.run(
            [sys.executable, "-c", LEVEL],
            env={"FRAGIR_CORE_LEVEL": asked},
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == library.LEVELS[wanted]
