"""Lane-level code from Python: what it can say, and errors at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from fragir import FragirError, f16, f32, s32
from fragir.builder.lane import Lane, LaneRegisters
from fragir.layout import Layout

C = fragir.fragment("m16n8k16.f16", "c")
EACH = Layout.parse("warp [2:(32)] lane [32:(1)] element []")


def test_registers_memory_and_statements() -> None:
    with fragir.kernel("all", warps=(2, 1)) as k:
        x = k.memory("x", f32, (64,))
        n = k.memory("n", s32, (64,))
        o = k.memory("o", f32, (2, 64))

        def code(lane: Lane, v: LaneRegisters) -> tuple[Any, ...]:
            (place,) = v.coordinates(0)
            back = lane.load(x, (63 - place,))
            low, high = lane.unpack(lane.pack([v[0].cast(f16), back.cast(f16)]).words[0], f16)
            first = lane.lane == 0
            bits = lane.ptx("mov.b32 $0, $1", v[0], results=s32)
            lane.store(lane.bitcast(bits, s32), n, (lane.thread,))
            lane.ptx("red.global.add.u32", lane.pointer(n, (place,)), 1, where=first)
            up, inside = lane.ptx(
                "shfl.sync.up.b32 $0|$1, $2, 1, 0, -1",
                v[0],
                results=(f32, bool),
            )
            lane.ptx("bar.warp.sync", -1)
            near = lane.shuffle(lane.shuffle_xor(v, 1), (lane.lane + 1) % 32)
            return [k.select(inside, up, 0.0) + low.cast(f32)], [near[0] + high.cast(f32)]

        t = k.load(x, (0,), shape=(64,))
        one, two = k.lanes(code, t, layouts=EACH)
        k.store(k.concatenate([one.reshape(1, 64), two.reshape(1, 64)]), o, (0, 0))
    x_, n_, o_ = np.arange(64, dtype=np.float32), np.zeros(64, np.int32), np.zeros((2, 64), "f4")
    report = k.compile()(x_, n_, o_, check=True)
    assert report.findings == []
    lane = np.arange(64) % 32
    up = np.where(lane > 0, x_ - 1, 0)
    assert (o_[0] == up + x_).all()
    near = (np.arange(64) - lane) + (((lane + 1) % 32) ^ 1)
    assert (o_[1] == near + x_[::-1]).all()
    assert (n_ == x_.view(np.int32) + (lane == 0)).all()


def same(lane: Any, v: Any) -> Any:
    return v


def few(lane: Any, v: Any) -> Any:
    return [v[0]]


def unknown(lane: Any, v: Any) -> Any:
    return [lane.ptx("redux.sync.mul.u32", v[0], -1)] * 4


def operands(lane: Any, v: Any) -> Any:
    return [lane.ptx("add.f32", v[0])] * 4


def text(lane: Any, v: Any) -> Any:
    return "registers"


def computed(lane: Any, v: Any) -> Any:
    return lane.shuffle_xor(v, 1).coordinates(0)


def wide(lane: Any, v: Any) -> Any:
    return [lane.shuffle_xor(v[0], 32)] * 4


A = fragir.fragment("m16n8k16.f16", "a")
ERRORS: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (same, {}, "the layout in which lanes hold the tile is not given"),
    (same, {"layouts": A}, "8 columns of operand a are no multiple of 16"),
    (same, {"layouts": [C, C]}, "2 layouts are given for 1 tiles"),
    (same, {"layouts": C, "results": [((16, 8), C)] * 2}, "returns 1 tiles, `results` has 2"),
    (same, {"layouts": C, "results": [(16, C)]}, "16 is no shape"),
    (few, {"layouts": C}, "returns 1 elements of tile 0; a lane has 4"),
    (unknown, {"layouts": C}, "redux.sync.mul.u32"),
    (operands, {"layouts": C}, "add.f32 takes 3 operands, not 2"),
    (text, {"layouts": C}, "returns 'registers'"),
    (computed, {"layouts": C}, "stand in no tile"),
    (wide, {"layouts": C}, "a mask of 1 to 31"),
]


@pytest.mark.parametrize("number", range(len(ERRORS)))
def test_errors_point_at_the_line(number: int) -> None:
    code, how, words = ERRORS[number]

    def build() -> None:
        with fragir.kernel("k") as k:
            x = k.memory("x", f32, (16, 8))
            k.lanes(code, k.load(x, (0, 0), shape=(16, 8)), **how)

    with pytest.raises(FragirError) as caught:
        build()
    assert words in caught.value.message
    assert caught.value.file == __file__
    # in the function where it is wrong there, else where it is handed over
    within = code.__code__.co_firstlineno + 1
    called = build.__code__.co_firstlineno + 3
    assert caught.value.line in (within, called)


def test_a_tile_from_nothing() -> None:
    with fragir.kernel("k") as k:
        o = k.memory("o", s32, (16, 8))

        def code(lane: Lane) -> list[Any]:
            at = [lane.coordinates(e) for e in range(4)]
            return [(i * 8 + j).cast(s32) for i, j in at]

        k.store(k.lanes(code, results=((16, 8), C)), o, (0, 0))
    o_ = np.zeros((16, 8), np.int32)
    k.compile()(o_, check=True)
    assert (o_.reshape(-1) == np.arange(128)).all()
