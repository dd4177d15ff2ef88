"""Kernels that do nothing but a conversion: what it costs in machine instructions.

Every thread loads the words of its fragment, which lie beside each other in global memory, shuffles
each once, and stores those of the target. Without the conversion the kernel does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i32, i64
from xdsl.ir import Attribute, Block, Region

from fragir.dialects import frag, ptx
from fragir.dialects.frag.attributes import ExplicitLayoutAttr
from fragir.emulator import run
from fragir.layout import Layout
from fragir.layout.conversion import points_of
from fragir.layout.modes import WARP, Point
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.convert import convert
from fragir.passes.lowering.elementwise import fragments_from, words_of
from fragir.passes.lowering.state import LoweringState
from fragir.passes.writer.module import write_module

Bytes = npt.NDArray[np.uint8]


def bare_kernel(
    source: Layout,
    target: Layout,
    shape: Sequence[int],
    element: Attribute,
    warps: int,
    machine: str,
    *,
    converts: bool = True,
) -> str:
    """PTX of a kernel that converts the fragments of a tile, or leaves them as they are."""
    block = Block(arg_types=[ptx.GLOBAL, ptx.GLOBAL])
    ar = Arithmetic(block)
    state = LoweringState(machine, 32 * warps, False, ar, lambda _: None)
    hardware = state.hardware
    tiles = [frag.TileType(shape, element, ExplicitLayoutAttr(side)) for side in (source, target)]
    counts = [side.size("element") for side in (source, target)]
    words = [-(-count * ptx.bits(element) // 32) for count in counts]
    thread = ar.value(hardware.thread)
    given, wanted = (
        ar.offset(pointer, thread, 4 * count)[0]
        for pointer, count in zip(block.args, words, strict=True)
    )
    # one by one, so that registers are free to stand together as the conversion likes; shuffled,
    # so that no select becomes a load that is done or not
    held = [ar.insert(ptx.LoadOp(given, 4 * i, i32)).value for i in range(words[0])]
    held = [ar.insert(ptx.ShuffleXorOp(word, 1)).result for word in held]
    if converts:
        fragments = fragments_from(ar, held, element, counts[0], 1)
        held = words_of(ar, convert(state, tiles[0], tiles[1], fragments))
    for i in range(words[1]):
        ar.insert(ptx.StoreOp(held[i % len(held)], wanted, 4 * i))
    state.scratch.finish(block)
    ar.insert(func.ReturnOp())
    function = func.FuncOp("k", ([ptx.GLOBAL, ptx.GLOBAL], []), Region(block))
    function.attributes["ptx.ntid"] = IntegerAttr(32 * warps, i64)
    return write_module(ModuleOp([function]), machine)


def wrong_slots(
    source: Layout, target: Layout, shape: Sequence[int], element: Attribute, machine: str
) -> tuple[str, int]:
    """The kernel's PTX, and how many slots of the target do not hold their element.

    Elements of whole bytes; each point of the tile has a random one.
    """
    sides = [points_of(side) for side in (source, target)]
    warps, bits = len(sides[0]), ptx.bits(element)
    text = bare_kernel(source, target, shape, element, warps, machine)
    rng = np.random.default_rng(1)
    values = rng.integers(0, 1 << 8, (*shape, bits // 8), dtype=np.uint8)
    given, wanted = (_fragments(side, values) for side in sides)
    held = np.array([[[p is not None for p in lane] for lane in warp] for warp in sides[1]])
    # the kernel shuffles every word once
    words = np.ascontiguousarray(given[:, np.arange(WARP) ^ 1])
    result = np.zeros_like(wanted)
    report = run(text, grid=(1,), block=(WARP * warps,), arguments=[words, result], check=True)
    assert not report.findings, report.findings
    elements = held.shape[2]
    differs = (result != wanted)[..., : elements * bits // 8]
    return text, int(differs.reshape(*held.shape, bits // 8).any(axis=-1)[held].sum())


def _fragments(side: Sequence[Sequence[Sequence[Point | None]]], values: Bytes) -> Bytes:
    """The bytes of every lane's words: [warp, lane, byte]."""
    size = values.shape[-1]
    missing = np.zeros(size, np.uint8)
    rows = [
        [np.concatenate([missing if p is None else values[p] for p in lane]) for lane in warp]
        for warp in side
    ]
    found = np.array(rows)
    padded = np.zeros((*found.shape[:2], -(-found.shape[2] // 4) * 4), np.uint8)
    padded[..., : found.shape[2]] = found
    return padded
