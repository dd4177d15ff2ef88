"""Fragments that a turn loads for the next one: where that is done, and that it is right."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import main_loop

ELEMENTS = {"f16": ("f32", np.float16), "tf32": ("f32", np.float32), "si8": ("i32", np.int8)}
DEPTH = {"f16": 16, "tf32": 8, "si8": 32}
"""Of an instruction along K (PTX ISA 9.2, section 9.7.15.5)."""


def program(
    element: str,
    sizes: tuple[int | str, ...],
    tile: tuple[int, int, int],
    more: str = "",
    *,
    divisible: bool = False,
) -> str:
    m, n, k = sizes
    a, b = f"memref<{m}x{k}x{element}>", f"memref<{k}x{n}x{element}>"
    c = f"memref<{m}x{n}x{ELEMENTS[element][0]}>"
    by = ", ".join(f"{name} = {size}" for name, size in zip("mnk", tile, strict=True))
    words = f"attributes {{frag.divisible = {{{by}}}}}" if divisible else ""
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {words} {{
  frag.matmul %a, %b into %c {{tile = array<i64: {", ".join(map(str, tile))}>{more}}}
    : {a}, {b} into {c}
  func.return
}}"""


def carries(text: str, target: str = "sm_80") -> bool:
    """Whether the loop carries a slot, and with it fragments of it."""
    lowered = fragir.lower(fragir.parse(text), target=target, to="placed")
    loops = [line for line in str(lowered).splitlines() if "scf.for" in line]
    return any("!frag.slot" in line and "f16" in line for line in loops)


@pytest.mark.parametrize(
    ("sizes", "tile", "more", "divisible", "expected"),
    [
        ((256, 256, 256), (128, 128, 32), "", False, True),
        (("?", "?", "?"), (128, 128, 32), "", True, True),
        # four instructions along K: all would be in registers
        ((256, 256, 256), (128, 128, 64), "", False, False),
        ((256, 256, 256), (128, 128, 16), "", False, False),
        # fewer turns than slots: one is never filled
        ((256, 256, 64), (128, 128, 32), ", stages = 3", False, False),
        ((256, 256, 96), (128, 128, 32), ", stages = 3", False, True),
        # tests of what lies outside take the registers, unless sums take few
        (("?", "?", "?"), (128, 128, 32), "", False, False),
        (("?", "?", "?"), (64, 64, 32), "", False, True),
        ((256, 256, 256), (128, 128, 32), ", stages = 1", False, False),
    ],
)
def test_where_it_is_done(
    sizes: tuple[int | str, ...],
    tile: tuple[int, int, int],
    more: str,
    divisible: bool,
    expected: bool,
) -> None:
    assert carries(program("f16", sizes, tile, more, divisible=divisible)) == expected


def test_products_are_issued_between_the_barrier_and_what_it_guards() -> None:
    """ptxas keeps what the pass arranges: fragments are loaded among products."""
    kernel = fragir.compile(program("f16", (512, 512, 512), (128, 128, 32)), target="sm_80")
    (info,) = kernel.assembled.entries.values()
    assert (info.spill_stores, info.spill_loads) == (0, 0)
    loop = main_loop(disassemble(kernel.cubin))
    ops = [instruction.opcode.partition(".")[0] for instruction in loop.instructions]
    behind = ops[ops.index("BAR") :]
    loads = [at for at, op in enumerate(behind) if op == "LDSM"]
    assert len(loads) == 8
    assert behind[loads[0] :].count("HMMA") >= 24
    between = behind[loads[0] : loads[-1]]
    assert between.count("HMMA") >= 6  # products that need none of them


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_results_and_checks(data: st.DataObject) -> None:
    """Whatever the sizes, slots and types: the emulator with every check, to the bit."""
    element = data.draw(st.sampled_from(sorted(ELEMENTS)))
    depth = 2 * DEPTH[element]
    target = data.draw(st.sampled_from(["sm_80", "sm_89", "sm_120a"]))
    m, n = (32 * data.draw(st.integers(1, 2)) for _ in range(2))
    k = data.draw(st.integers(0, 6)) * depth + data.draw(st.sampled_from([0, 0, 8, 16]))
    static = k > 0 and data.draw(st.booleans())
    stages = data.draw(st.integers(2, 4))
    sizes = (m, n, k) if static else ("?", "?", "?")
    text = program(element, sizes, (32, 32, depth), f", stages = {stages}")
    kernel = fragir.compile(text, target=target)
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    out, type_ = ELEMENTS[element]
    a = rng.integers(-3, 4, (m, k)).astype(type_)
    b = rng.integers(-3, 4, (k, n)).astype(type_)
    c = np.full((m, n), 7, np.int32 if out == "i32" else np.float32)
    how = data.draw(st.sampled_from(["late", "early", "random"]))
    report = kernel(a, b, c, on="emulator", check=True, asynchrony=how, schedule=1)
    assert report.findings == []
    assert np.array_equal(c, a.astype(np.int64) @ b.astype(np.int64))
