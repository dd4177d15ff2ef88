"""Elements of one and four bits with a byte each, and back, for conversions that part bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i32
from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic

Binary = Callable[[SSAValue, SSAValue], Operation]

_NIBBLES = 0x0F0F0F0F
_LOWEST = 0x01010101
# bit i of four to the lowest of byte i: no two of the shifted copies meet in those that are kept
_SPREAD = 1 | 1 << 7 | 1 << 14 | 1 << 21
_GATHER = 1 << 28 | 1 << 21 | 1 << 14 | 1 << 7


class Narrow:
    """Takes the words of elements of `bits` apart, and makes them of bytes again."""

    def __init__(self, ar: Arithmetic, bits: int):
        if bits not in (1, 4):
            raise FragirError(f"elements of {bits} bits are not moved one by one")
        self.ar, self.bits = ar, bits

    def bytes_of(self, words: Sequence[SSAValue]) -> list[SSAValue]:
        """Words with a byte for every element, in their order."""
        return [part for word in words for part in self._apart(word)]

    def words_of(self, bytes_: Sequence[SSAValue]) -> list[SSAValue]:
        """Words of elements from words with a byte for each; the last may not be full."""
        each = 8 // self.bits
        full = [*bytes_, *([bytes_[-1]] * (-len(bytes_) % each))]
        return [self._together(full[first : first + each]) for first in range(0, len(full), each)]

    def _apart(self, word: SSAValue) -> list[SSAValue]:
        if self.bits == 4:
            low = self._with(arith.AndIOp, word, _NIBBLES)
            high = self._with(arith.AndIOp, self._with(arith.ShRUIOp, word, 4), _NIBBLES)
            return [self._permuted(low, high, selector) for selector in (0x5140, 0x7362)]
        found: list[SSAValue] = []
        for shift in range(0, 32, 4):
            low = self._with(arith.ShRUIOp, word, shift) if shift else word
            four = self._with(arith.AndIOp, low, 15)
            spread = self._with(arith.MuliOp, four, _SPREAD)
            found.append(self._with(arith.AndIOp, spread, _LOWEST))
        return found

    def _together(self, parts: Sequence[SSAValue]) -> SSAValue:
        if self.bits == 4:
            low, high = parts
            even, odd = self._permuted(low, high, 0x6420), self._permuted(low, high, 0x7531)
            return self._op(arith.OrIOp, even, self._with(arith.ShLIOp, odd, 4))
        fours = [
            self._with(arith.ShRUIOp, self._with(arith.MuliOp, part, _GATHER), 28) for part in parts
        ]
        word = fours[0]
        for number, four in enumerate(fours[1:], 1):
            word = self._op(arith.OrIOp, word, self._with(arith.ShLIOp, four, 4 * number))
        return word

    def _permuted(self, a: SSAValue, b: SSAValue, selector: int) -> SSAValue:
        return self.ar.insert(ptx.PermuteOp(a, b, self.ar.constant(selector))).result

    def _with(self, make: Binary, word: SSAValue, number: int) -> SSAValue:
        attribute = IntegerAttr(number, i32)
        constant = self.ar.pure(("constant", attribute), (), lambda: arith.ConstantOp(attribute))
        return self._op(make, word, constant)

    def _op(self, make: Binary, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.ar.insert(make(a, b)).results[0]
