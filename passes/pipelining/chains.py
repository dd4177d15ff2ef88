"""Sums that are carried round a loop and that nothing but products touches."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import SSAValue

from fragir.dialects import frag


@dataclass(frozen=True)
class SumChain:
    """The products that add to the carried value number `position`, in order."""

    position: int
    start: SSAValue
    products: tuple[frag.MmaOp, ...]


def chains_of(loop: scf.ForOp) -> list[SumChain]:
    """The chains of a loop: argument -> C of a product -> its D -> ... -> the value yielded.

    Each value of a chain has that one use, and the argument's tile is the result's.
    """
    body = loop.body.block
    terminator = body.last_op
    assert isinstance(terminator, scf.YieldOp)
    found: list[SumChain] = []
    for position, argument in enumerate(body.args[1:]):
        value, products = argument, list[frag.MmaOp]()
        while (use := value.get_user_of_unique_use()) is not None:
            if not isinstance(use, frag.MmaOp) or use.c is not value or use.parent is not body:
                break
            products.append(use)
            value = use.d
        if use is terminator and terminator.operands[position] is value and products:
            found.append(SumChain(position, loop.iter_args[position], tuple(products)))
    return found
