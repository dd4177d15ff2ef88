"""Fragment layouts of dense `mma.sync` and `wgmma` against the formulas of the PTX ISA.

The formulas stand here as the ISA writes them: PTX ISA 9.2, sections 9.7.14.5.1 to 9.7.14.5.13
(mma) and 9.7.15.5.1 (wgmma), with groupID = g = lane >> 2 and threadID_in_group = t = lane & 3.
One page erratum: for A of m16n8k256 the ISA prints `col = threadID_in_group * 32 + i` also for
32 <= i < 64; it must be `i & 31`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from fragir import isa
from fragir.isa import Instruction
from fragir.layout import Layout

Formula = Callable[[int, int, int], tuple[int, int]]  # g, t, i -> row, col

A: dict[tuple[str, str], Formula] = {
    ("m8n8k4", "f64"): lambda g, t, i: (g, t),
    ("m8n8k16", "s8"): lambda g, t, i: (g, 4 * t + i),
    ("m8n8k32", "s4"): lambda g, t, i: (g, 8 * t + i),
    ("m8n8k128", "b1"): lambda g, t, i: (g, 32 * t + i),
    ("m16n8k4", "tf32"): lambda g, t, i: (g if i == 0 else g + 8, t),
    ("m16n8k4", "f64"): lambda g, t, i: (g if i == 0 else g + 8, t),
    ("m16n8k8", "tf32"): lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
    ("m16n8k8", "f64"): lambda g, t, i: (g if i % 2 == 0 else g + 8, t if i < 2 else t + 4),
    ("m16n8k16", "f64"): lambda g, t, i: (g if i % 2 == 0 else g + 8, i * 2 - i % 2 * 2 + t),
    ("m16n8k8", "f16"): lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
    ("m16n8k16", "f16"): lambda g, t, i: (
        g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
        t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
    ),
    ("m16n8k16", "s8"): lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
    ("m16n8k32", "s8"): lambda g, t, i: (
        g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
        t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
    ),
    ("m16n8k32", "s4"): lambda g, t, i: (g if i < 8 else g + 8, t * 8 + (i & 7)),
    ("m16n8k64", "s4"): lambda g, t, i: (
        g if 0 <= i < 8 or 16 <= i < 24 else g + 8,
        t * 8 + (i & 7) if i < 16 else t * 8 + (i & 7) + 32,
    ),
    ("m16n8k128", "b1"): lambda g, t, i: (g if i < 32 else g + 8, t * 32 + (i & 31)),
    ("m16n8k256", "b1"): lambda g, t, i: (
        g if 0 <= i < 32 or 64 <= i < 96 else g + 8,
        t * 32 + (i & 31) if i < 64 else t * 32 + (i & 31) + 128,
    ),
}
B: dict[tuple[str, str], Formula] = {
    ("m8n8k4", "f64"): lambda g, t, i: (t, g),
    ("m8n8k16", "s8"): lambda g, t, i: (4 * t + i, g),
    ("m8n8k32", "s4"): lambda g, t, i: (8 * t + i, g),
    ("m8n8k128", "b1"): lambda g, t, i: (32 * t + i, g),
    ("m16n8k4", "tf32"): lambda g, t, i: (t, g),
    ("m16n8k4", "f64"): lambda g, t, i: (t, g),
    ("m16n8k8", "tf32"): lambda g, t, i: (t if i == 0 else t + 4, g),
    ("m16n8k8", "f64"): lambda g, t, i: (t + i * 4, g),
    ("m16n8k16", "f64"): lambda g, t, i: (t + i * 4, g),
    ("m16n8k8", "f16"): lambda g, t, i: (t * 2 + i, g),
    ("m16n8k16", "f16"): lambda g, t, i: (t * 2 + (i & 1) + (0 if i < 2 else 8), g),
    ("m16n8k16", "s8"): lambda g, t, i: (t * 4 + i, g),
    ("m16n8k32", "s8"): lambda g, t, i: (t * 4 + (i & 3) + (0 if i < 4 else 16), g),
    ("m16n8k32", "s4"): lambda g, t, i: (t * 8 + i, g),
    ("m16n8k64", "s4"): lambda g, t, i: (t * 8 + (i & 7) + (0 if i < 8 else 32), g),
    ("m16n8k128", "b1"): lambda g, t, i: (t * 32 + i, g),
    ("m16n8k256", "b1"): lambda g, t, i: (t * 32 + (i & 31) + (0 if i < 32 else 128), g),
}


def same(element: str, kind: str = "") -> str:
    """The type under which the ISA gives the formula."""
    if element in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"):
        return "s4" if kind.startswith("mxf4") else "s8"
    return {"bf16": "f16", "u8": "s8", "u4": "s4"}.get(element, element)


def kind_of(instruction: Instruction) -> str:
    kinds = [f.removeprefix("kind::") for f in instruction.form.flags if f.startswith("kind")]
    return kinds[0] if kinds else ""


def points(layout: Layout) -> list[tuple[int, ...] | None]:
    slots = product(range(layout.size("lane")), range(layout.size("element")))
    return [layout(lane=lane, element=i) for lane, i in slots]


def expected(formula: Formula, lanes: int, elements: int) -> list[tuple[int, int]]:
    return [formula(lane >> 2, lane & 3, i) for lane in range(lanes) for i in range(elements)]


def layout_of(instruction: Instruction, name: str) -> Layout:
    layout = instruction.operands[name].layout
    assert layout is not None
    return layout


DENSE = [i for i in isa.instructions() if i.family == "mma"]
QUAD_PAIR = [i for i in DENSE if i.mnemonic.split(".")[3] == "m8n8k4" and i.types.a == "f16"]
REGULAR = [i for i in DENSE if not i.refused and i not in QUAD_PAIR]


@pytest.mark.parametrize("instruction", REGULAR, ids=lambda i: i.mnemonic)
def test_dense_fragments_follow_the_isa(instruction: Instruction) -> None:
    shape, kind = instruction.form.shape, kind_of(instruction)
    m, n, k = instruction.shape
    for name, formulas, element, size in (
        ("a", A, instruction.types.a, m * k),
        ("b", B, instruction.types.b, k * n),
    ):
        got = points(layout_of(instruction, name))
        assert got == expected(formulas[shape, same(element, kind)], 32, size // 32)
        assert len(set(got)) == size
    for name in ("c", "d"):
        rows: Formula = lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1))  # noqa: E731
        got = points(layout_of(instruction, name))
        assert got == expected(rows, 32, m * n // 32)
        assert len(set(got)) == m * n


@pytest.mark.parametrize("instruction", QUAD_PAIR, ids=lambda i: i.mnemonic)
def test_quad_pair_fragments_follow_the_isa(instruction: Instruction) -> None:
    """PTX ISA 9.2, section 9.7.14.5.1: computation q in lanes 4q..4q+3 and 16+4q..16+4q+3."""
    order_a, order_b = instruction.form.layouts
    for lane in range(32):
        q, low, half = lane % 16 // 4, lane % 4, 0 if lane < 16 else 4
        for i in range(4):
            a = (low + half, i) if order_a == "row" else (i % 4 + half, low)
            b = (low, i + half) if order_b == "row" else (i, low + half)
            assert layout_of(instruction, "a")(lane=lane, element=i) == (*a, q)
            assert layout_of(instruction, "b")(lane=lane, element=i) == (*b, q)
        for name in ("c", "d"):
            operand = instruction.operands[name]
            for i in range(8):
                if operand.element == "f16":
                    point = (low + half, i)
                else:
                    point = (
                        (lane & 1) + (i & 2) + half,
                        (i & 4) + (lane & 2) + (i & 1),
                    )
                assert layout_of(instruction, name)(lane=lane, element=i) == (*point, q)
    for name, size in (("a", 128), ("b", 128), ("c", 256), ("d", 256)):
        assert len(set(points(layout_of(instruction, name)))) == size


WGMMA = [i for i in isa.instructions() if i.family.startswith("wgmma")]


@pytest.mark.parametrize("k", [8, 16, 32, 256])
def test_wgmma_a_follows_the_isa(k: int) -> None:
    """Warp w of the warpgroup holds rows 16w..16w+15, each like A of m16n8k."""
    chosen = [i for i in WGMMA if i.operands["a"].shape == (64, k)]
    layouts = {layout_of(i, "a") for i in chosen}
    assert len(layouts) == 1
    formula = A[f"m16n8k{k}", same(chosen[0].types.a)]
    layout = layouts.pop()
    seen = set[tuple[int, ...]]()
    for thread, i in product(range(128), range(64 * k // 128)):
        row, col = formula(thread % 32 >> 2, thread & 3, i)
        assert layout(lane=thread, element=i) == (16 * (thread // 32) + row, col)
        seen.add((16 * (thread // 32) + row, col))
    assert len(seen) == 64 * k


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_wgmma_d_follows_the_isa(n: int) -> None:
    """Warp w holds rows 16w..16w+15; 8 columns after the other like an m16n8 accumulator."""
    layouts = {layout_of(i, name) for i in WGMMA for name in "cd" if i.shape[1] == n}
    assert len(layouts) == 1
    layout = layouts.pop()
    assert layout.size("element") == n // 2
    seen = set[tuple[int, ...]]()
    for thread, i in product(range(128), range(n // 2)):
        row = 16 * (thread // 32) + (thread % 32 >> 2) + (8 if i % 4 >= 2 else 0)
        point = (row, 8 * (i // 4) + (thread % 4) * 2 + (i & 1))
        assert layout(lane=thread, element=i) == point
        seen.add(point)
    assert len(seen) == 64 * n


def test_wgmma_has_all_legal_n() -> None:
    by_type: dict[str, set[int]] = {}
    for instruction in isa.instructions(target="sm_90a"):
        if instruction.family == "wgmma":
            by_type.setdefault(instruction.types.a, set()).add(instruction.shape[1])
    for element in ("f16", "bf16", "tf32", "e4m3", "e5m2"):
        assert by_type[element] == set(range(8, 257, 8))
    sixteen = {8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176, 192, 208, 224, 240, 256}
    for element in ("s8", "u8", "b1"):
        assert by_type[element] == sixteen
