"""Values that do not fit into registers: default warps avoid it, and else it is said."""

from __future__ import annotations

import pytest

import fragir
from fragir.compilation.notes import remarks_of, spill_notes
from fragir.toolchain.ptxas import EntryInfo


def program(element: str, result: str, tile: tuple[int, int, int], more: str = "") -> str:
    a, c = f"memref<512x512x{element}>", f"memref<512x512x{result}>"
    return f"""func.func @f(%a: {a}, %b: {a}, %c: {c}) {{
  frag.matmul %a, %b transposed into %c {{tile = array<i64: {", ".join(map(str, tile))}>{more}}}
    : {a}, {a} into {c}
  func.return
}}"""


@pytest.mark.parametrize(
    ("element", "result", "tile", "target", "warps"),
    [
        ("f16", "f32", (128, 128, 32), "sm_80", 4),
        ("f16", "f32", (128, 256, 32), "sm_80", 8),
        ("bf16", "f32", (256, 128, 32), "sm_120a", 8),
        ("f16", "f32", (96, 192, 32), "sm_86", 8),
        ("i8", "i32", (128, 256, 64), "sm_89", 8),
        ("f64", "f64", (128, 128, 16), "sm_80", 8),
        ("f16", "f32", (48, 64, 32), "sm_80", 2),  # two warps beside each other
        ("f16", "f32", (128, 256, 64), "sm_90a", 8),
        ("f16", "f32", (192, 128, 64), "sm_90a", 12),  # three warpgroups
        ("f8E4M3FN", "f32", (128, 128, 64), "sm_90", 8),  # operands are converted
        ("f8E5M2", "f32", (128, 128, 64), "sm_100", 8),
        ("f8E4M3FN", "f32", (64, 128, 128), "sm_90", 8),  # deep tiles of them
        ("f8E5M2", "f32", (128, 64, 128), "sm_100", 8),
        ("f8E4M3FN", "f32", (64, 64, 128), "sm_90", 4),
    ],
)
def test_default_warps_keep_sums_in_registers(
    element: str, result: str, tile: tuple[int, int, int], target: str, warps: int
) -> None:
    kernel = fragir.compile(program(element, result, tile), target=target)
    assert kernel.block == (32 * warps, 1, 1)
    info = kernel.assembled.entries["f"]
    assert (info.spill_stores, info.spill_loads) == (0, 0)
    assert not any("spills" in words for words in kernel.notes)


@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
@pytest.mark.parametrize("size", ["512", "?"])
@pytest.mark.parametrize("turned", [("", ""), ("", " transposed"), (" transposed", " transposed")])
def test_emulated_products_do_not_spill(target: str, size: str, turned: tuple[str, str]) -> None:
    """mma of fp8 is made of conversions and mma of f16 there."""
    a, c = (f"memref<{size}x{size}x{element}>" for element in ("f8E4M3FN", "f32"))
    text = f"""func.func @f(%a: {a}, %b: {a}, %c: {c}) {{
  frag.matmul %a{turned[0]}, %b{turned[1]} into %c : {a}, {a} into {c}
  func.return
}}"""
    info = fragir.compile(text, target=target).assembled.entries["f"]
    assert (info.spill_stores, info.spill_loads) == (0, 0)


def test_emulated_products_that_no_warps_keep_in_registers() -> None:
    """More than eight warps have fewer registers each: what is spilled is said."""
    kernel = fragir.compile(program("f8E4M3FN", "f32", (128, 128, 128)), target="sm_90")
    stored = kernel.assembled.entries["f"].spill_stores
    assert kernel.block == (256, 1, 1)
    assert bool(stored) == any("f spills: " in words for words in kernel.notes)
    assert stored <= 20


FEW = program("f16", "f32", (128, 256, 32), ", warps = array<i64: 2, 2>")


def test_spills_are_in_the_notes() -> None:
    kernel = fragir.compile(FEW, target="sm_80")
    info = kernel.assembled.entries["f"]
    assert info.spill_stores > 0
    (words,) = kernel.schedule_notes()
    assert words in kernel.notes
    assert f"f spills: its values do not fit into {info.registers} registers" in words
    assert f"stores {info.spill_stores} and loads {info.spill_loads} bytes" in words


@pytest.mark.parametrize(
    ("element", "result", "tile", "more", "target", "overfull"),
    [
        ("f64", "f64", (128, 256, 16), "", "sm_80", "a tile of 128x256x16 take 65536 registers"),
        ("f64", "f64", (128, 128, 16), "", "sm_80", None),
        ("f16", "f32", (256, 256, 32), "", "sm_80", "a tile of 256x256x32 take 65536 registers"),
        ("f16", "f32", (128, 256, 64), ", roles, consumers = 2, stages = 2", "sm_90a", "2 tiles"),
        ("f16", "f32", (128, 128, 64), ", roles, consumers = 2", "sm_90a", None),
    ],
)
def test_sums_that_no_warps_hold(
    element: str,
    result: str,
    tile: tuple[int, int, int],
    more: str,
    target: str,
    overfull: str | None,
) -> None:
    module = fragir.parse(program(element, result, tile, more))
    notes = remarks_of(fragir.lower(module, target=target))
    said = [words for words in notes if "spill with any `warps`" in words]
    assert [overfull in words for words in said] == [True] if overfull else said == []


def test_one_sentence_for_each_kernel_that_spills() -> None:
    full = EntryInfo(255, 8, 0, 0, 8, 1)
    entries = {"f": EntryInfo(200, 0, 0, 0, 0, 1), "g": full, "h": EntryInfo(32, 0, 4, 0, 0, 0)}
    assert [words.split()[0] for words in spill_notes(entries)] == ["g", "h"]
    # 32 is no limit, but what ptxas took
    assert "do not fit into 255 registers" in spill_notes(entries)[0]
    assert "ptxas took 32 registers a thread at its start, and every" in spill_notes(entries)[1]
