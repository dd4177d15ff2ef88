"""`fragir assemble`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fragir = Callable[..., Any]


def test_table(fragir: Fragir, store: Path) -> None:
    result = fragir("assemble", "store.ptx", "--target", "sm_80")
    assert (result.code, result.err) == (0, "")
    head, _, row = result.out.splitlines()
    assert head.split()[:2] == ["entry", "registers"]
    assert row.split()[0] == "store"
    assert row.split()[-1] == "0"


@pytest.mark.parametrize(
    ("line", "target"),
    [
        (".target sm_90a", "sm_90a"),
        ("/* .target sm_80\n.target sm_80 */ .target\tsm_75, texmode_independent", "sm_75"),
        ("// .target sm_80\n  .target // sm_80\n sm_86", "sm_86"),
    ],
)
def test_own_target(fragir: Fragir, in_folder: Path, line: str, target: str) -> None:
    Path("k.ptx").write_text(f".version 8.0\n{line}\n.address_size 64\n.entry k() {{ ret; }}\n")
    assert fragir("assemble", "k.ptx", "-o", "own.cubin").code == 0
    assert fragir("assemble", "k.ptx", "--target", target, "-o", "told.cubin").code == 0
    assert Path("own.cubin").read_bytes() == Path("told.cubin").read_bytes()


@pytest.mark.parametrize("text", ["", ".version 8.0\n// .target sm_80\n", "/* .version 8.0"])
def test_no_target(fragir: Fragir, in_folder: Path, text: str) -> None:
    Path("k.ptx").write_text(text)
    result = fragir("assemble", "k.ptx")
    assert result.code == 1
    assert "k.ptx: this PTX has no .target" in result.err
    assert "--target says for which machine" in result.err


def test_json_and_cubin(fragir: Fragir, store: Path, in_folder: Path) -> None:
    result = fragir("assemble", "store.ptx", "--target", "sm_90a", "-o", "k.cubin", "--json")
    assert (result.code, result.err) == (0, "")
    document = json.loads(result.out)
    assert document["warnings"] == []
    assert set(document["entries"]["store"]) == {
        "registers",
        "spill_stores",
        "spill_loads",
        "shared",
        "stack",
        "barriers",
    }
    assert (in_folder / "k.cubin").read_bytes().startswith(b"\x7fELF")


def test_cubin_to_stdout(store: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    from fragir.cli.main import main

    assert main(["assemble", "store.ptx", "--target", "sm_80", "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert out.startswith(b"\x7fELF")
    assert err == b""


def test_older_ptxas(fragir: Fragir, store: Path) -> None:
    assert fragir("assemble", "store.ptx", "--target", "sm_80", "--ptxas", "12.9").code == 0
    result = fragir("assemble", "store.ptx", "--target", "sm_80", "--ptxas", "11.8")
    assert result.code == 1
    assert "ptxas 11.8 was not found" in result.err


@pytest.mark.parametrize(
    ("content", "target", "place", "words"),
    [
        (None, "sm_80", "k.ptx", "cannot read this file: No such file"),
        (b"", "sm_80", "k.ptx:1", "Missing .version"),
        (b"\x7fELF\2\1\1\0\0", "sm_80", "k.ptx", "binary file"),
        (b"\xff\xfe.version", "sm_80", "k.ptx:1:1", "no UTF-8"),
        (b".version 7.0\n.target sm_80\n.entry k(", "sm_80", "k.ptx:3", "cut off"),
        (b".version 7.0\n.target sm_80\n.entry k { rot; }", "sm_80", "k.ptx:3:12", "rot"),
        (b".version 7.0\n.target sm_80\n", "sm_1", None, "no target `sm_1`"),
        (b".version 7.0\n.target sm_80\n", "", None, "no target ``"),
        (b".version 7.0\n.target sm_90a\n", "sm_80", "k.ptx:2", "newer GPU"),
    ],
)
def test_bad_input(
    fragir: Fragir,
    in_folder: Path,
    content: bytes | None,
    target: str,
    place: str | None,
    words: str,
) -> None:
    if content is not None:
        (in_folder / "k.ptx").write_bytes(content)
    (in_folder / "k.cubin").write_bytes(b"as it was")
    result = fragir("assemble", "k.ptx", "--target", target, "-o", "k.cubin")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith(f"error: {place}: " if place else "error: ptxas")
    assert words in result.err.splitlines()[0]
    assert (in_folder / "k.cubin").read_bytes() == b"as it was"
    assert {p.name for p in in_folder.iterdir()} <= {"k.ptx", "k.cubin", ".cache"}
    as_json = fragir("assemble", "k.ptx", "--target", target, "--json")
    assert (as_json.code, as_json.err) == (1, "")
    error = json.loads(as_json.out)["error"]
    assert words in error["message"]
    assert error["file"] == (place.split(":")[0] if place else None)


def test_output_that_cannot_be_written(fragir: Fragir, store: Path) -> None:
    result = fragir("assemble", "store.ptx", "--target", "sm_80", "-o", "none/k.cubin", "--json")
    assert result.code == 1
    assert "cannot write this file" in json.loads(result.out)["error"]["message"]


def test_absent_ptxas(fragir: Fragir, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(package: str, name: str) -> None:
        return None

    monkeypatch.setattr("fragir.toolchain.find._in_package", nothing)
    monkeypatch.setenv("FRAGIR_TOOLS", "none")
    monkeypatch.setenv("PATH", "")
    result = fragir("assemble", "store.ptx", "--target", "sm_80")
    assert result.code == 1
    assert "pip install nvidia-cuda-nvcc" in result.err
    assert result.err.count("\n") == 1
