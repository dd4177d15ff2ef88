"""Scales of a `frag.matmul`: how they lie, and where along K sums are promoted.

A scale is an f32 that a block of an operand's elements shares. Those that change along K are
multiplied into partial sums, which begin at zero every so many of K and are added in f32; the
others are multiplied into the whole sum.
"""

from __future__ import annotations

from math import gcd
from typing import Any, NamedTuple, Protocol

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    Float32Type,
    IntegerAttr,
    MemRefType,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_name
from fragir.dialects.narrow import integers, is_memref, memref_type


class ScaledProduct(Protocol):
    """What is asked of a `frag.matmul` here."""

    @property
    def a_scale(self) -> SSAValue | None: ...
    @property
    def b_scale(self) -> SSAValue | None: ...
    @property
    def a_block(self) -> DenseArrayBase[Any] | None: ...
    @property
    def b_block(self) -> DenseArrayBase[Any] | None: ...
    @property
    def a_scale_transposed(self) -> Attribute | None: ...
    @property
    def b_scale_transposed(self) -> Attribute | None: ...
    @property
    def promote(self) -> IntegerAttr | None: ...


_FORMS = {
    "A": "an f32, memref<1xf32>, memref<Mxf32>, or with `by [m, k]` memref<M/m x K/k x f32>",
    "B": "an f32, memref<1xf32>, memref<Nxf32>, or with `by [k, n]` memref<K/k x N/n x f32>",
}


class Scaling(NamedTuple):
    """Which elements of an operand one scale is for, and where it lies."""

    name: str
    """The operand: "A" or "B"."""
    scale: SSAValue
    outer: int | None
    """Rows of A, or columns of B, that share a scale; None: all do."""
    depth: int | None
    """How many of K share a scale; None: all do."""
    k_first: bool = False
    """Whether memory's first dimension is that along K."""

    @property
    def side(self) -> str:
        """The size of the product that is the operand's other one beside K."""
        return "m" if self.name == "A" else "n"

    def dimensions(self) -> tuple[str, ...]:
        """What the dimensions of its memory are called: "m" of the product, "k_by_128" of blocks of
        128; () where it has none but perhaps one of size 1.
        """
        if self.outer is None:
            return ()
        side = self.side if self.outer == 1 else f"{self.side}_by_{self.outer}"
        if self.depth is None:
            return (side,)
        depth = "k" if self.depth == 1 else f"k_by_{self.depth}"
        return (depth, side) if self.k_first else (side, depth)


def scalings_of(product: ScaledProduct) -> tuple[Scaling, ...]:
    """The scales of A and B, of those that have some; VerifyException where their form is none."""
    found: list[Scaling] = []
    for name, scale, block, transposed in (
        ("A", product.a_scale, product.a_block, product.a_scale_transposed),
        ("B", product.b_scale, product.b_block, product.b_scale_transposed),
    ):
        if scale is None:
            if block is not None or transposed is not None:
                raise VerifyException(
                    f"frag.matmul: {name} has no scales, to be `transposed` or `by` blocks; write "
                    f"`scaled %s` behind %{name.lower()}"
                )
            continue
        extents = None if block is None else integers(block)
        found.append(_scaling(name, scale, extents, transposed is not None))
    return tuple(found)


def _scaling(name: str, scale: SSAValue, extents: list[int] | None, transposed: bool) -> Scaling:
    type_ = scale.type
    element: Attribute = memref_type(type_).element_type if is_memref(type_) else type_
    if not isinstance(element, Float32Type):
        raise VerifyException(f"frag.matmul: the scales of {name} are {type_}; take {_FORMS[name]}")
    shape = memref_type(type_).get_shape() if is_memref(type_) else ()
    if len(shape) > 2 or (extents is not None) != (len(shape) == 2):
        hint = "say with `by` which blocks they are for; else " if len(shape) == 2 else ""
        raise VerifyException(
            f"frag.matmul: the scales of {name} are {type_}; {hint}take {_FORMS[name]}"
        )
    if extents is None:
        if transposed:
            raise VerifyException(
                f"frag.matmul: scales of {name} without blocks have no two dimensions to be "
                "`transposed`; leave it out"
            )
        return Scaling(name, scale, None if shape in ((), (1,)) else 1, None)
    if len(extents) != 2 or min(extents) < 1:
        order = "[m, k]" if name == "A" else "[k, n]"
        raise VerifyException(
            f"frag.matmul: `by {extents}` is no block of {name}; write `by {order}`, how many "
            "elements a scale is for"
        )
    outer, depth = extents if name == "A" else extents[::-1]
    return Scaling(name, scale, outer, depth, (name == "B") != transposed)


def promotion_of(product: ScaledProduct) -> int | None:
    """After how many of K a partial sum is added in f32; None where the sum is one."""
    depths = [each.depth for each in scalings_of(product) if each.depth is not None]
    if product.promote is not None:
        return product.promote.value.data
    return gcd(*depths) if depths else None


def check_scales(
    product: ScaledProduct, accumulator: Attribute, sizes: tuple[int | None, int | None, int | None]
) -> None:
    """VerifyException where scales or `promote` do not suit a product of these sizes."""
    scalings = scalings_of(product)
    if not isinstance(accumulator, Float32Type):
        raise VerifyException(
            f"frag.matmul: sums in {element_name(accumulator)} are neither scaled nor promoted, "
            "only those in f32; scale them in the epilogue"
        )
    m, n, k = sizes
    promote = promotion_of(product)
    if promote is not None and promote < 1:
        raise VerifyException("frag.matmul: promote is a number of elements of K, 1 or more")
    for each in scalings:
        if each.depth is not None and promote is not None and each.depth % promote:
            raise VerifyException(
                f"frag.matmul: scales of {each.name} for {each.depth} of K change within a partial "
                f"sum of {promote}; let promote divide {each.depth}"
            )
        _check_sizes(each, m if each.name == "A" else n, k)


def _check_sizes(each: Scaling, outer: int | None, k: int | None) -> None:
    """Whether a scale's memory has as many as there are blocks, as far as sizes are known."""
    if each.outer is None:
        return
    wanted = [_blocks(outer, each.outer)]
    if each.depth is not None:
        wanted.append(_blocks(k, each.depth))
        if each.k_first:
            wanted.reverse()
    type_: MemRefType[Attribute] = memref_type(each.scale.type)
    shape = type_.get_shape()
    if any(
        size not in (DYNAMIC_INDEX, whole) and whole is not None
        for size, whole in zip(shape, wanted, strict=True)
    ):
        text = "x".join("?" if size is None else str(size) for size in wanted)
        hint = "" if each.depth is None else "; write `transposed` behind scales that lie otherwise"
        raise VerifyException(
            f"frag.matmul: the scales of {each.name} are {type_}, there are {text} of them{hint}"
        )


def _blocks(size: int | None, extent: int) -> int | None:
    return None if size is None else -(-size // extent)
