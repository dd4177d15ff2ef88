"""Tiles that are made of no other: places of elements, and random numbers (Philox 4x32-10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32, i64
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.constants import constant_of
from fragir.dialects.frag.generated import PHILOX, WORDS
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lane_builder import Lanes

# --- places ---------------------------------------------------------------------------------------


def iota(lanes: Lanes, op: frag.IotaOp) -> None:
    lanes.bind(op.tile, lanes.places(op.tile.type, op.along))


# --- random numbers -------------------------------------------------------------------------------

Word: TypeAlias = SSAValue | None
"""A vector of words, None for zeros."""
Key: TypeAlias = tuple[SSAValue, SSAValue]


def random(lanes: Lanes, op: frag.RandomOp) -> None:
    ar, words = lanes.state.ar, [lanes.fragments(word) for word in op.words()]
    placement = op.first.type.placement
    assert placement is not None
    chunk, zeros = placement.chunk, [None] * (WORDS - len(words))
    vectors = Vectors(ar, chunk)
    keys = _keys(ar, lanes.scalar(op.seed))
    made = [vectors.bits([*counter, *zeros], keys) for counter in zip(*words, strict=True)]
    for number, result in enumerate(op.results):
        lanes.bind_each(result, lambda i, number=number: made[i][number])


def _keys(ar: Arithmetic, seed: SSAValue) -> list[Key]:
    """The two words of the key in each round, made once for a seed."""
    low, high = _constants(seed) or _halves(ar, seed)
    return [
        (_plus(ar, low, turn * PHILOX.steps[0]), _plus(ar, high, turn * PHILOX.steps[1]))
        for turn in range(PHILOX.rounds)
    ]


def _constants(seed: SSAValue) -> tuple[int, int] | None:
    """The key of a seed that is written in the program."""
    number = constant_of(seed)
    return None if number is None else (number, number >> 32)


def _halves(ar: Arithmetic, seed: SSAValue) -> Key:
    if seed.type == i32:
        attribute = IntegerAttr(31, i32)
        all_bits = ar.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))
        sign = ar.pure(("sign", seed), (seed,), lambda: arith.ShRSIOp(seed, all_bits))
        return seed, sign
    attribute = IntegerAttr(32, i64)
    half = ar.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))
    upper = ar.pure(("shrui", seed, 32), (seed,), lambda: arith.ShRUIOp(seed, half))
    low, high = (
        ar.pure(("trunci", x, i32), (x,), lambda x=x: arith.TruncIOp(x, i32)) for x in (seed, upper)
    )
    return low, high


def _plus(ar: Arithmetic, word: SSAValue | int, step: int) -> SSAValue:
    """A word of 32 bits and a number."""
    if isinstance(word, int):
        return _number(ar, word + step)
    if step == 0:
        return word
    number = _number(ar, step)
    return ar.pure(("addi", word, number), (word,), lambda: arith.AddiOp(word, number))


def _number(ar: Arithmetic, number: int) -> SSAValue:
    attribute = IntegerAttr(((number + (1 << 31)) & (1 << 32) - 1) - (1 << 31), i32)
    return ar.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))


class Vectors:
    """Arithmetic on vectors of so many words; what is zero for certain takes no instruction."""

    def __init__(self, ar: Arithmetic, count: int):
        self.ar, self.count = ar, count

    def bits(self, counter: Sequence[Word], keys: Sequence[Key]) -> list[SSAValue]:
        """What a counter becomes."""
        c0, c1, c2, c3 = counter
        for low, high in keys:
            (down0, up0), (down2, up2) = (
                self.product(c, factor) for c, factor in zip((c0, c2), PHILOX.factors, strict=True)
            )
            c0, c1 = self.xor(self.xor(up2, c1), self.splat(low)), down2
            c2, c3 = self.xor(self.xor(up0, c3), self.splat(high)), down0
        found: list[SSAValue] = []
        for word in (c0, c1, c2, c3):
            assert word is not None  # two rounds reach every word
            found.append(word)
        return found

    def splat(self, scalar: SSAValue) -> SSAValue:
        return self.ar.splat(scalar, self.count)

    def product(self, x: Word, factor: int) -> tuple[Word, Word]:
        """The lower and the upper half of a product."""
        if x is None:
            return None, None
        op = arith.MulUIExtendedOp(x, self.splat(_number(self.ar, factor)))
        low, high = self.ar.insert(op).results
        return low, high

    def xor(self, x: Word, y: Word) -> Word:
        if x is None or y is None:
            return x or y
        return self.ar.insert(arith.XOrIOp(x, y)).result
