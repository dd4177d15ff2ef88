from __future__ import annotations

import importlib.util
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

DATA = Path(__file__).parent / "data"
PATHS = sorted(DATA.glob("*.ptx"))


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request: pytest.FixtureRequest) -> Path:
    return request.param


@pytest.fixture
def text(path: Path) -> str:
    return path.read_text("utf-8")


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in PATHS}


def find_ptxas() -> str | None:
    """The ptxas of the Python package nvidia-cuda-nvcc, else the one on the PATH."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec and spec.submodule_search_locations) or ():
        for found in sorted(Path(root).glob("*/bin/ptxas")):  # that of CUDA 13 before that of 12
            return str(found)
    return shutil.which("ptxas")


def code_sections(cubin: bytes) -> dict[str, bytes]:
    """The machine code of an ELF file: name of section -> bytes, for every `.text.*`."""
    (offset,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", cubin, 0x3A)
    rows = [struct.unpack_from("<IIQQQQ", cubin, offset + size * i) for i in range(count)]
    names = cubin[rows[names_index][4] : rows[names_index][4] + rows[names_index][5]]
    found: dict[str, bytes] = {}
    for name, _, _, _, begin, length in rows:
        title = names[name : names.index(b"\0", name)].decode()
        if title.startswith(".text"):
            found[title] = cubin[begin : begin + length]
    return found


@pytest.fixture(scope="session")
def machine_code(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], dict[str, bytes]]:
    """PTX text -> the machine code that ptxas makes of it, by section."""
    ptxas = find_ptxas()
    if ptxas is None:
        pytest.skip("no ptxas: pip install nvidia-cuda-nvcc")
    folder = tmp_path_factory.mktemp("ptxas")

    def assemble(ptx: str) -> dict[str, bytes]:
        target = next(
            line.split()[1].rstrip(",") for line in ptx.splitlines() if line.startswith(".target")
        )
        source, cubin = folder / "kernel.ptx", folder / "kernel.cubin"
        source.write_text(ptx, "utf-8")
        subprocess.run(
            [ptxas, "-c", f"-arch={target}", source, "-o", cubin], check=True, capture_output=True
        )
        return code_sections(cubin.read_bytes())

    return assemble
