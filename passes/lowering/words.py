"""Fragments as 32-bit words and back: other names for the same registers.

Elements of 8 and 16 bits lie in a word lowest first, elements of 64 bits are two words, the low
one first. Elements of less than a byte are moved with the registers that hold them.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import ptx
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Arithmetic

WORD = 32  # bits


def words_of(ar: Arithmetic, fragments: Sequence[SSAValue]) -> list[SSAValue]:
    """The words of a tile's fragments in this lane, as i32."""
    element = ptx.scalar_type(fragments[0].type)
    whole = _joined(ar, fragments, element)
    count = ptx.registers(whole.type) * ptx.register_bits(whole.type) // WORD
    words = ar.insert(ptx.BitcastOp(whole, ptx.vector_type(i32, count))).result
    return list(ar.insert(ptx.UnpackOp(words)).scalars)


def _joined(ar: Arithmetic, fragments: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """All fragments as one vector; elements are packed anew where they end inside of a word."""
    if len(fragments) == 1:
        return fragments[0]
    if ptx.length(fragments[0].type) * ptx.bits(element) % WORD == 0:
        return ar.insert(ptx.ConcatOp(fragments)).result
    scalars = [x for fragment in fragments for x in split(ar, fragment, 1)]
    return ar.insert(ptx.PackOp(scalars)).result


def fragments_from(
    ar: Arithmetic, words: Sequence[SSAValue], element: Attribute, chunk: int, count: int
) -> list[SSAValue]:
    """`count` fragments of `chunk` elements from the words of all of them, or from more."""
    bits = ptx.bits(element)
    vector = ar.insert(ptx.PackOp(words[: -(-chunk * count * bits // WORD)])).result
    if count == 1 or chunk * bits % WORD == 0:
        whole = ptx.vector_type(element, chunk * count)
        return _split(ar, ar.insert(ptx.BitcastOp(vector, whole)).result, chunk)
    filled = ptx.vector_type(element, ptx.length(vector.type) * WORD // bits)
    scalars = ar.insert(ptx.UnpackOp(ar.insert(ptx.BitcastOp(vector, filled)).result)).scalars
    return [
        ar.insert(ptx.PackOp(scalars[first : first + chunk])).result
        for first in range(0, chunk * count, chunk)
    ]


def _split(ar: Arithmetic, vector: SSAValue, chunk: int) -> list[SSAValue]:
    """A vector in vectors of `chunk` elements, which fill registers."""
    total, element = ptx.length(vector.type), ptx.scalar_type(vector.type)
    if total == chunk:
        return [vector]
    return [
        ar.insert(ptx.SliceOp(vector, first, ptx.vector_type(element, chunk))).result
        for first in range(0, total, chunk)
    ]
