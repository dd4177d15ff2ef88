"""What sizes and indices known at run time are multiples of, before anything is lowered."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Block, BlockArgument, SSAValue

from fragir.dialects import frag
from fragir.dialects.constants import constant_of
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.grid import Names, promises_of, size_names
from fragir.dialects.frag.tensor_copies import UNIT
from fragir.dialects.narrow import memref_type


class Multiples:
    """Of one function: what it promises (`frag.divisible`), and what the tensor maps of `copies`
    demand of its sizes."""

    def __init__(self, function: func.FuncOp, copies: Sequence[frag.CopyOp]):
        self.function = function
        self._known = dict(promises_of(function))
        for memory in dict.fromkeys(op.source for op in copies if op.tma is not None):
            if not isinstance(memory, BlockArgument) or memory.block is not function.body.block:
                continue
            names, strides = size_names(function, memory.index)
            unit = UNIT * 8 // element_bits(memref_type(memory.type).element_type)
            for name in names[-1:] if strides is None else strides[-2:-1]:
                if isinstance(name, str):
                    old = self._known.get(name, 1)
                    self._known[name] = old * unit // gcd(old, unit)

    def rows_fit(self, memory: BlockArgument) -> bool:
        """Whether rows of memory begin, and end, at multiples of 16 bytes."""
        names, strides = size_names(self.function, memory.index)
        steps = names[-1:] if strides is None else strides[:-1]
        return self._are_units(memory, steps) and self._are_units(memory, names[-1:])

    def begins_at_unit(self, memory: BlockArgument, column: int | SSAValue) -> bool:
        """Whether a column of memory begins at a multiple of 16 bytes of its row."""
        bits = element_bits(memref_type(memory.type).element_type)
        number = column if isinstance(column, int) else divisor_of(column)
        return number * bits % (8 * UNIT) == 0

    def _are_units(self, memory: BlockArgument, sizes: Names) -> bool:
        bits = element_bits(memref_type(memory.type).element_type)
        numbers = [self._known.get(s, 1) if isinstance(s, str) else s for s in sizes]
        return DYNAMIC_INDEX not in numbers and all(n * bits % (8 * UNIT) == 0 for n in numbers)


def divisor_of(value: SSAValue) -> int:
    """A number that divides an index, 1 where nothing is known; 0 for 0."""
    number = constant_of(value)
    if number is not None:
        return abs(number)
    if isinstance(value.owner, Block):
        return _of_argument(value.owner, value)
    match value.owner:
        case arith.MuliOp(lhs=x, rhs=y):
            return divisor_of(x) * divisor_of(y)
        case arith.AddiOp(lhs=x, rhs=y) | arith.SubiOp(lhs=x, rhs=y):
            return gcd(divisor_of(x), divisor_of(y))
        case arith.SelectOp(lhs=x, rhs=y):
            return gcd(divisor_of(x), divisor_of(y))
        case arith.IndexCastOp(input=x):
            return divisor_of(x)
        case _:
            return 1


def _of_argument(block: Block, value: SSAValue) -> int:
    loop = block.parent_op()
    if isinstance(loop, scf.ForOp) and value is block.args[0]:
        return gcd(divisor_of(loop.lb), divisor_of(loop.step))
    if isinstance(loop, frag.ForTilesOp) and value in loop.places:
        dim = loop.places.index(value)
        moved = loop.ends is not None and dim == len(loop.places) - 2  # begins where a group does
        return 1 if moved else loop.tile_shape[dim]
    return 1
