"""`.loc` in PTX: machine code says from which line of the program it comes, and stays the same."""

from __future__ import annotations

import inspect
import itertools
import re
from pathlib import Path

import numpy as np
import pytest

import fragir
from fragir.passes.writer.text import file_directives
from fragir.ptx import parse
from fragir.ptx.writer import write
from fragir.toolchain.ptxas import with_lines
from fragir.toolchain.sass import disassemble, opcodes
from fragir.toolchain.sass_loops import Instruction, instructions

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LOC = re.compile(r"^ *\.loc (\d+) (\d+) (\d+)$")


def without(ptx: str) -> str:
    """PTX without its places."""
    text = re.sub(r"(?m)^    \.loc .*\n", "", ptx)
    return re.sub(r"(?m)^\n(\.file .*\n)+", "", text)


def statement(text: str, words: str) -> int:
    """The line (1-based) of a program that has these words, which no other has."""
    (line,) = [n for n, one in enumerate(text.splitlines(), 1) if words in one]
    return line


def coded(kernel: fragir.Kernel) -> list[Instruction]:
    """The machine code of a kernel, as its cubin tells it."""
    return list(instructions(disassemble(kernel.cubin, lines=True))[kernel.name])


@pytest.fixture(scope="module")
def by_hand() -> tuple[str, fragir.Kernel, fragir.Kernel]:
    """A program, compiled without lines and with them."""
    text = (EXAMPLES / "gemm_frag.mlir").read_text()
    name = "gemm_frag.mlir"
    plain = fragir.compile(text, filename=name)
    return text, plain, fragir.compile(text, filename=name, lines=True)


def test_nothing_else_changes(by_hand: tuple[str, fragir.Kernel, fragir.Kernel]) -> None:
    _, plain, told = by_hand
    assert '\n.file 1 "gemm_frag.mlir"\n' in told.ptx
    assert ".file" not in plain.ptx
    assert ".loc" not in plain.ptx
    assert without(told.ptx) == plain.ptx
    assert opcodes(disassemble(told.cubin), full=True) == opcodes(
        disassemble(plain.cubin), full=True
    )


def test_a_place_is_said_once(by_hand: tuple[str, fragir.Kernel, fragir.Kernel]) -> None:
    """No `.loc` says what is in force, and none is followed by another or by nothing."""
    lines = by_hand[2].ptx.splitlines()
    places = [n for n, line in enumerate(lines) if LOC.match(line)]
    assert len(places) > 30
    for first, second in itertools.pairwise(places):
        assert lines[first] != lines[second]
    for n in places:
        assert not LOC.match(lines[n + 1])
        assert lines[n + 1] != "}"


def test_places_are_the_origins(by_hand: tuple[str, fragir.Kernel, fragir.Kernel]) -> None:
    """Each statement is told as of the operation that `Kernel.origins` has for its line."""
    from fragir.compilation.notes import origin_of

    _, _, told = by_hand
    said = None
    for n, line in enumerate(told.ptx.splitlines(), 1):
        if match := LOC.match(line):
            said = (int(match[2]), int(match[3]))
        elif said and line.endswith(";"):
            origin = origin_of(n, told.origins)
            assert origin is not None
            assert (origin.line, origin.col) == said


def test_machine_code_of_tiles(by_hand: tuple[str, fragir.Kernel, fragir.Kernel]) -> None:
    text, _, told = by_hand
    product = statement(text, "frag.mma %ta")
    loads = {statement(text, "frag.load %sa"), statement(text, "frag.load %sb")}
    found: dict[str, set[tuple[str, int] | None]] = {}
    for one in coded(told):
        found.setdefault(one.opcode, set()).add(one.place)
    assert found["HMMA"] == {("gemm_frag.mlir", product)}
    assert found["LDSM"] == {("gemm_frag.mlir", line) for line in loads}
    assert found["STG"] == {("gemm_frag.mlir", statement(text, "frag.store %result"))}


def test_machine_code_of_a_matmul() -> None:
    """What passes make has the place of what they made it of; lines of PTX can be had too."""
    text = (EXAMPLES / "gemm.mlir").read_text()
    kernel = fragir.compile(text, target="sm_90a", filename="gemm.mlir", lines=True)
    code = coded(kernel)
    products = [one for one in code if one.opcode == "HGMMA"]
    assert {one.place for one in products} == {("gemm.mlir", statement(text, "frag.matmul %a"))}
    scaled = statement(text, "arith.mulf %alpha")
    lines = kernel.ptx.splitlines()
    found = [one for one in code if one.place == ("gemm.mlir", scaled) and one.line is not None]
    assert found
    assert any("mul" in lines[(one.line or 1) - 1] for one in found)


def test_of_python() -> None:
    from fragir import f16, f32

    with fragir.kernel("product", warps=(1, 1)) as k:
        a = k.memory("a", f16, (16, 16))
        b = k.memory("b", f16, (16, 8))
        c = k.memory("c", f32, (16, 8))
        zero = k.fill(0, (16, 8), f32)
        ta = k.load(a, (0, 0), shape=(16, 16))
        tb = k.load(b, (0, 0), shape=(16, 8))
        product = k.mma(ta, tb, zero)
        k.store(product, c, (0, 0))
    kernel = k.compile("sm_80", lines=True)
    assert f'.file 1 "{__file__}"' in kernel.ptx
    own, start = inspect.getsourcelines(test_of_python)
    line = start + statement("".join(own[:-4]), " = k.mma(") - 1
    (one,) = [one for one in coded(kernel) if one.opcode == "HMMA"]
    assert one.place == (__file__, line)


def test_the_reader_and_the_emulator_take_it(
    by_hand: tuple[str, fragir.Kernel, fragir.Kernel],
) -> None:
    _, plain, told = by_hand
    assert without(write(parse(told.ptx))).count("mma.sync") == plain.ptx.count("mma.sync")
    rng = np.random.default_rng(0)
    a = rng.standard_normal((40, 72)).astype(np.float16)
    b = rng.standard_normal((72, 24)).astype(np.float16)
    bias = rng.standard_normal(24).astype(np.float16)
    results = [np.zeros((40, 24), np.float16) for _ in range(2)]
    for kernel, c in zip((plain, told), results, strict=True):
        kernel(a, b, bias, c, on="emulator")
    np.testing.assert_array_equal(results[0], results[1])


def test_findings_are_told_as_before() -> None:
    """At the statement of the PTX, whose line is another; the words are the same."""
    text = (EXAMPLES / "ldmatrix.mlir").read_text().replace("  frag.barrier\n", "")
    found: list[list[tuple[str, str, str]]] = []
    for lines in (False, True):
        kernel = fragir.compile(text, entry="swizzled", lines=lines)
        arrays = [np.ones((64, 64), dtype) for dtype in (np.float16, np.float16, np.float32)]
        report = kernel(*arrays, on="emulator", check=True)
        texts = kernel.ptx.splitlines()
        assert report.findings
        found.append(
            [
                (one.kind, re.sub(r"\bPTX \d+", "PTX", one.message), texts[(one.line or 0) - 1])
                for one in report.findings
            ]
        )
    assert found[0] == found[1]


def test_of_lifted_ptx() -> None:
    """The lines of PTX that was read: of what a person wrote, for instance."""
    text = (EXAMPLES / "store.ptx").read_text()
    told = fragir.emit(fragir.lift(text, "store.ptx"), lines=True)
    assert '.file 1 "store.ptx"' in told
    parse(told)
    (sass,) = instructions(disassemble(with_lines(told, "sm_80"), lines=True)).values()
    (store,) = [one for one in sass if one.opcode == "STG"]
    assert store.place == ("store.ptx", statement(text, "st.global"))


def test_names_that_ptxas_does_not_take() -> None:
    assert file_directives({'a "b"\n.mlir': 1, "größe.mlir": 2}) == (
        '.file 1 "a \'b\' .mlir"\n.file 2 "gr??e.mlir"\n'
    )
    text = (EXAMPLES / "mma_m8n8k4_f64.mlir").read_text()
    kernel = fragir.compile(text, filename='x "é".mlir', lines=True)
    assert any(one.place and one.place[0] == "x '?'.mlir" for one in coded(kernel))
