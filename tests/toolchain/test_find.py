"""Where the tools are looked for, and what is said where they are not found."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir.errors import FragirError
from fragir.toolchain import find as finding
from fragir.toolchain.find import NVDISASM, PTXAS, Wanted, every, find

NOWHERE = Wanted("no-such-tool", "FRAGIR_NO_SUCH_TOOL", ("no-such-package",), "ask for it")


def tool(folder: Path, version: str, name: str = "ptxas") -> Path:
    """A script that reports a version as NVIDIA's tools do."""
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f'#!/bin/sh\necho "Cuda compilation tools, release 99.1, V{version}"\n')
    path.chmod(0o755)
    return path


def test_package_comes_before_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_TOOLS", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", str(tool(tmp_path, "99.1.2").parent), prepend=":")
    assert find(PTXAS).origin == "nvidia-cuda-nvcc"
    assert find(PTXAS, "99").origin == "PATH"
    assert [t.origin for t in every(PTXAS)] == [
        "nvidia-cuda-nvcc",
        "nvidia-cuda-nvcc-cu12",
        "PATH",
    ]


def test_variable_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_PTXAS", str(tool(tmp_path, "99.1.2")))
    found = find(PTXAS)
    assert (found.version, found.origin) == ("99.1.2", "FRAGIR_PTXAS")
    assert find(PTXAS, "13").origin == "nvidia-cuda-nvcc"


def test_folders_of_further_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Behind the package, newest first, before PATH; each says which folder it is in."""
    monkeypatch.setenv("FRAGIR_TOOLS", str(tmp_path))
    for folder, version in (("9.7", "9.7.1"), ("98.10", "98.10.3"), ("98.9", "98.9.4")):
        inner = tmp_path / folder / "nvidia" / "cu98" / "bin"
        inner.mkdir(parents=True)
        tool(inner, version)
    (tmp_path / "empty").mkdir()
    (tmp_path / "97" / "bin").mkdir(parents=True)
    tool(tmp_path / "97" / "bin", "97.0.1")
    found = [(t.version, t.origin) for t in every(PTXAS) if not t.origin.startswith("nvidia")]
    wanted = [("98.10.3", "98.10"), ("98.9.4", "98.9"), ("97.0.1", "97"), ("9.7.1", "9.7")]
    assert found[:4] == [(v, f"{tmp_path.name}/{f}") for v, f in wanted]
    assert find(PTXAS).origin == "nvidia-cuda-nvcc"
    assert find(PTXAS, "98.9").version == "98.9.4"
    with pytest.raises(FragirError, match=rf"--target {tmp_path}/96.1 'nvidia-cuda-nvcc==96.1.\*'"):
        find(PTXAS, "96.1")


def test_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool runs in a folder of its own, where a relative path means nothing."""
    path = tool(tmp_path, "99.1.2")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAGIR_PTXAS", "ptxas")
    assert find(PTXAS).path == path
    monkeypatch.delenv("FRAGIR_PTXAS")
    monkeypatch.setenv("PATH", ".", prepend=":")
    assert find(PTXAS, "99").path == path


def test_version_is_no_textual_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAGIR_PTXAS", str(tool(tmp_path, "1.2.3")))
    assert find(PTXAS, "1").version == "1.2.3"
    assert find(PTXAS, "12").version != "1.2.3"


@pytest.mark.parametrize("content", [None, "a file, but not executable"])
def test_wrong_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None
) -> None:
    path = tmp_path / "ptxas"
    if content is not None:
        path.write_text(content)
    monkeypatch.setenv("FRAGIR_PTXAS", str(path))
    with pytest.raises(FragirError, match=r"FRAGIR_PTXAS is set to .* no executable file"):
        find(PTXAS)


def test_executable_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ptxas"
    path.write_bytes(b"\x7fELF garbage")
    path.chmod(0o755)
    monkeypatch.setenv("FRAGIR_PTXAS", str(path))
    with pytest.raises(FragirError, match="could not be started"):
        find(PTXAS)


def test_program_that_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ptxas"
    path.write_text("#!/bin/sh\necho hello\n")
    path.chmod(0o755)
    monkeypatch.setenv("FRAGIR_PTXAS", str(path))
    with pytest.raises(FragirError, match="reports no version"):
        find(PTXAS)


def test_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FragirError, match=r"no-such-tool was not found \(ask for it\)"):
        find(NOWHERE)
    assert every(NOWHERE) == []


def test_absent_ptxas_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(package: str, name: str) -> None:
        return None

    monkeypatch.setattr(finding, "_in_package", nothing)
    monkeypatch.setenv("FRAGIR_TOOLS", str(tmp_path / "none"))
    monkeypatch.setenv("PATH", "")
    for wanted, words in ((PTXAS, "pip install nvidia-cuda-nvcc"), (NVDISASM, "disassembler")):
        with pytest.raises(FragirError) as caught:
            find(wanted)
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(FragirError, match=r"found: none .*ptxas12"):
        find(PTXAS, "12.9")
