"""How the sums of `frag.matmul` are taken: scales and promotions along K, parts by several blocks.

A scale is an f32 that a block of an operand's elements shares. (Or, of both operands, a byte for 16
or 32 elements of a row along K, f8E8M0FNU or f8E4M3FN, which tensor cores multiply in as they add:
`BlockScales`.) Those that change along K are
multiplied into partial sums, which begin at zero every so many of K and are added in f32; the
others are multiplied into the whole sum, or into each part of one that several blocks add up.

In front of its own dimensions a scale's memory may have those that count matrices: of a batch, or
of B where rows are in groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import NamedTuple, Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    Float32Type,
    IntegerAttr,
    MemRefType,
    i32,
)
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_name, is_element
from fragir.dialects.frag.atomics import KINDS
from fragir.dialects.frag.tensor_scales import (
    BLOCKS,
    CHUNK_SHAPE,
    ROWS,
    SCALES,
    is_multiplied,
    is_stack,
    kind_named,
)
from fragir.dialects.frag.types import is_shared
from fragir.dialects.interfaces import Names
from fragir.dialects.limits import MOST_PARTS
from fragir.dialects.shorthands import integers, is_memref, memref_type
from fragir.errors import FragirError

# --- scales and promotions ------------------------------------------------------------------------


class ScaledProduct(Protocol):
    """What is asked of a `frag.matmul` here."""

    @property
    def a_scale(self) -> SSAValue | None: ...
    @property
    def b_scale(self) -> SSAValue | None: ...
    @property
    def a_block(self) -> DenseArrayBase | None: ...
    @property
    def b_block(self) -> DenseArrayBase | None: ...
    @property
    def a_scale_transposed(self) -> Attribute | None: ...
    @property
    def b_scale_transposed(self) -> Attribute | None: ...
    @property
    def promote(self) -> IntegerAttr | None: ...
    @property
    def ends(self) -> SSAValue | None: ...
    def batch(self) -> tuple[int | None, ...]: ...
    def batch_names(self) -> tuple[str, ...]: ...
    def memories(
        self,
    ) -> tuple[MemRefType[Attribute], MemRefType[Attribute], MemRefType[Attribute]]: ...


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
    leads: Names = ()
    """What the dimensions in front count: "b" or "g"; None where one of size 1 is for all."""
    element: str = "f32"
    """What it is; ue8m0 and ue4m3 are multiplied in by tensor cores."""
    chunked: bool = False
    """Whether it lies as tensor memory takes it: `fragir.dialects.frag.tensor_scales`."""

    @property
    def side(self) -> str:
        """The size of the product that is the operand's other one beside K."""
        return "m" if self.name == "A" else "n"

    def dimensions(self) -> Names:
        """What the dimensions of its memory are called: "m" of the product, "k_by_128" of blocks of
        128; () where it has none but perhaps one of size 1.
        """
        if self.outer is None:
            return (*self.leads, None) if self.leads else ()
        if self.chunked:
            assert self.depth is not None
            return f"{self.side}_by_{ROWS}", f"k_by_{BLOCKS * self.depth}", None, None
        side = self.side if self.outer == 1 else f"{self.side}_by_{self.outer}"
        if self.depth is None:
            return (*self.leads, side)
        depth = "k" if self.depth == 1 else f"k_by_{self.depth}"
        return (*self.leads, *((depth, side) if self.k_first else (side, depth)))


def scalings_of(product: ScaledProduct) -> tuple[Scaling, ...]:
    """The scales of A and B, of those that have some; VerifyException where their form is none."""
    found: list[Scaling] = []
    grouped = product.ends is not None
    leading = ("g",) if grouped else product.batch_names()
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
        one = _scaling(name, scale, extents, transposed is not None, leading)
        if grouped and name == "A":
            _check_rows(one)
        found.append(one)
    return tuple(found)


def _scaling(
    name: str,
    scale: SSAValue,
    extents: list[int] | None,
    transposed: bool,
    leading: tuple[str, ...],
) -> Scaling:
    type_ = scale.type
    element: Attribute = memref_type(type_).element_type if is_memref(type_) else type_
    if is_memref(type_) and (found := _of_block_scales(type_)):
        return _block_scaling(name, scale, extents, transposed, leading)._replace(element=found)
    if not isinstance(element, Float32Type):
        raise VerifyException(f"frag.matmul: the scales of {name} are {type_}; take {_FORMS[name]}")
    shape = memref_type(type_).get_shape() if is_memref(type_) else ()
    own = 2 if extents is not None else int(is_memref(type_))
    leads, core = shape[: len(shape) - own], shape[len(shape) - own :]
    if len(core) != own or len(leads) not in (0, len(leading)):
        hint = "say with `by` which blocks they are for; else " if len(leads) == 1 == own else ""
        raise VerifyException(
            f"frag.matmul: the scales of {name} are {type_}; {hint}take {_FORMS[name]}"
            f"{_in_front(name, leading)}"
        )
    names = tuple(None if size == 1 else lead for size, lead in zip(leads, leading, strict=False))
    if extents is None:
        if transposed:
            raise VerifyException(
                f"frag.matmul: scales of {name} without blocks have no two dimensions to be "
                "`transposed`; leave it out"
            )
        return Scaling(name, scale, None if core in ((), (1,)) else 1, None, leads=names)
    if len(extents) != 2 or min(extents) < 1:
        order = "[m, k]" if name == "A" else "[k, n]"
        raise VerifyException(
            f"frag.matmul: `by {extents}` is no block of {name}; write `by {order}`, how many "
            "elements a scale is for"
        )
    outer, depth = extents if name == "A" else extents[::-1]
    return Scaling(name, scale, outer, depth, (name == "B") != transposed, names)


def _of_block_scales(type_: MemRefType[Attribute]) -> str | None:
    """What scales of blocks are, by what tensor cores call them; None of others."""
    element = type_.element_type
    return SCALES.get(element_name(element)) if is_element(element) else None


def _block_scaling(
    name: str,
    scale: SSAValue,
    extents: list[int] | None,
    transposed: bool,
    leading: tuple[str, ...],
) -> Scaling:
    """Scales that tensor cores multiply in: a matrix of rows by blocks, or a stack of chunks."""
    type_ = memref_type(scale.type)
    shape = type_.get_shape()
    outer, depth = (extents or [0, 0]) if name == "A" else (extents or [0, 0])[::-1]
    if outer != 1 or depth not in (16, 32):
        how = "[1, 32] or [1, 16]" if name == "A" else "[32, 1] or [16, 1]"
        raise VerifyException(
            f"frag.matmul: the scales of {name} are {type_}, which are for 32 or 16 of K each; "
            f"write `by {how}`"
        )
    k_first = (name == "B") != transposed
    chunked = is_stack(type_) and not leading
    leads = shape[: len(shape) - 2]
    if chunked and k_first:
        raise VerifyException(
            f"frag.matmul: the scales of {name} are {type_}, chunks whose first dimension counts "
            f"rows of {name}{' as it is transposed' if name == 'B' else ''}; "
            + ("write `transposed` behind them" if name == "B" else "leave `transposed` out")
        )
    if not chunked and (len(shape) < 2 or len(leads) not in (0, len(leading))):
        raise VerifyException(
            f"frag.matmul: the scales of {name} are {type_}; take a matrix of rows by blocks of K, "
            "or chunks of 128 rows by four blocks as tensor memory takes them, memref<?x?x2x256>"
        )
    names = tuple(None if size == 1 else lead for size, lead in zip(leads, leading, strict=False))
    return Scaling(name, scale, 1, depth, k_first, () if chunked else names, chunked=chunked)


class BlockScales(NamedTuple):
    """The scales that tensor cores multiply in, of both operands."""

    a: Scaling
    b: Scaling

    @property
    def element(self) -> str:
        """ue8m0 or ue4m3."""
        return self.a.element

    @property
    def block(self) -> int:
        """How many of K each is for."""
        assert self.a.depth is not None
        return self.a.depth


def block_scales_of(product: ScaledProduct) -> BlockScales | None:
    """The scales of blocks of a product; None where it has none, or others."""
    found = scalings_of(product)
    if all(each.element == "f32" for each in found):
        return None
    kinds = {(each.element, each.depth) for each in found}
    if len(found) != 2 or len(kinds) != 1:
        raise VerifyException(
            "frag.matmul: tensor cores multiply scales into both operands, of one type and for as "
            f"many of K; these are {' and '.join(_scale_text(each) for each in found)}"
        )
    return BlockScales(*found)


def _scale_text(each: Scaling) -> str:
    how = "" if each.depth is None else f" for {each.depth} of K"
    return f"{each.scale.type} of {each.name}{how}"


def _check_block_scales(product: ScaledProduct, scales: BlockScales) -> None:
    """VerifyException where no tensor cores multiply such operands with such scales."""
    if product.promote is not None or product.ends is not None:
        what = "promoted" if product.promote is not None else "of groups of rows"
        raise VerifyException(
            f"frag.matmul: sums with scales of blocks are not {what}; leave that, or take scales "
            "of f32"
        )
    a, b, _ = product.memories()
    try:
        kind_named(
            element_name(a.element_type),
            element_name(b.element_type),
            scales.element,
            scales.block,
            is_multiplied,
        )
    except FragirError as error:
        raise VerifyException(f"frag.matmul: {error}") from error


def _in_front(name: str, leading: tuple[str, ...]) -> str:
    """What else a scale of a product with groups or a batch may be."""
    if not leading:
        return ""
    if leading != ("g",):
        return ", with the dimensions of C's batch in front or without them"
    if name == "A":
        return ", or memref<Gx1xf32>, one a group"
    return ", with the dimension of the groups in front or without it"


def _check_rows(each: Scaling) -> None:
    """Whether the scales of A suit rows in groups, which begin anywhere."""
    if each.leads and each.outer is not None:
        raise VerifyException(
            f"frag.matmul: the scales of A are {each.scale.type}; a row is in one group, so that "
            "scales of rows have no dimension of groups; take memref<Mxf32>, or memref<Gx1xf32>"
        )
    if each.outer is not None and each.outer > 1:
        raise VerifyException(
            f"frag.matmul: groups of rows begin anywhere, so no {each.outer} rows share a scale of "
            f"A; take one a row, `by [1, {each.depth}]`"
        )


def promotion_of(product: ScaledProduct) -> int | None:
    """After how many of K a partial sum is added in f32; None where the sum is one."""
    found = scalings_of(product)
    depths = [each.depth for each in found if each.depth is not None and each.element == "f32"]
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
    blocks = block_scales_of(product)
    if blocks is not None:
        _check_block_scales(product, blocks)
    promote = promotion_of(product)
    if promote is not None and promote < 1:
        raise VerifyException("frag.matmul: promote is a number of elements of K, 1 or more")
    for each in scalings:
        if each.depth is not None and promote is not None and each.depth % promote:
            raise VerifyException(
                f"frag.matmul: scales of {each.name} for {each.depth} of K change within a partial "
                f"sum of {promote}; let promote divide {each.depth}"
            )
        _check_leads(each, product)
        several = bool(product.batch()) or product.ends is not None
        _check_sizes(each, m if each.name == "A" else n, k, several)


def _check_leads(each: Scaling, product: ScaledProduct) -> None:
    """Whether there are scales of as many matrices as there are, as far as that is known."""
    type_: MemRefType[Attribute] | None = (
        memref_type(each.scale.type) if is_memref(each.scale.type) else None
    )
    if type_ is None or not each.leads:
        return
    several = product.memories()[1].get_shape()[:1]
    counts = product.batch() if product.ends is None else several
    if any(
        size not in (1, DYNAMIC_INDEX) and whole not in (None, DYNAMIC_INDEX, size)
        for size, whole in zip(type_.get_shape(), counts, strict=False)
    ):
        text = "x".join("?" if size in (None, DYNAMIC_INDEX) else str(size) for size in counts)
        raise VerifyException(
            f"frag.matmul: the scales of {each.name} are {type_}, for {text} matrices; in front of "
            f"their own dimensions they have {text}, 1 in place of some, or nothing"
        )


def _check_sizes(each: Scaling, outer: int | None, k: int | None, several: bool) -> None:
    """Whether a scale's memory has as many as there are blocks, as far as sizes are known."""
    if each.outer is None:
        return
    wanted = [_blocks(outer, each.outer)]
    if each.chunked:
        assert each.depth is not None
        wanted = [_blocks(outer, ROWS), _blocks(k, BLOCKS * each.depth), *CHUNK_SHAPE]
    elif each.depth is not None:
        wanted.append(_blocks(k, each.depth))
        if each.k_first:
            wanted.reverse()
    type_: MemRefType[Attribute] = memref_type(each.scale.type)
    shape = type_.get_shape()[len(each.leads) :]
    if any(
        size not in (DYNAMIC_INDEX, whole) and whole is not None
        for size, whole in zip(shape, wanted, strict=True)
    ):
        text = "x".join("?" if size is None else str(size) for size in wanted)
        hint = "" if each.depth is None else "; write `transposed` behind scales that lie otherwise"
        if each.chunked:
            hint = f"; the last dimensions are a chunk of {ROWS} rows by {BLOCKS} blocks"
        if several and len(shape) == 1 and not each.leads:
            hint = f"; one a matrix is memref<{shape[0]}x1xf32>"
        raise VerifyException(
            f"frag.matmul: the scales of {each.name} are {type_}, there are {text} of them{hint}"
        )


def _blocks(size: int | None, extent: int) -> int | None:
    return None if size is None else -(-size // extent)


# --- parts of sums --------------------------------------------------------------------------------


class SummedInParts(Protocol):
    """What is asked of a `frag.matmul` here."""

    @property
    def split_k(self) -> Attribute | None: ...
    @property
    def stream_k(self) -> Attribute | None: ...
    @property
    def extra(self) -> Sequence[SSAValue]: ...
    @property
    def epilogue(self) -> Region | None: ...
    def parts(self) -> tuple[int, bool] | None: ...
    def through(self) -> tuple[SSAValue, SSAValue] | tuple[()]: ...
    def accumulator(self) -> Attribute: ...
    def memories(
        self,
    ) -> tuple[MemRefType[Attribute], MemRefType[Attribute], MemRefType[Attribute]]: ...


def check_parts(op: SummedInParts) -> None:
    """VerifyException where the parts of a product's sums cannot come together."""
    if op.split_k is not None and op.stream_k is not None:
        raise VerifyException("frag.matmul: sums are cut by split_k or by stream_k, not by both")
    count, even = op.parts() or (1, False)
    if count < (2 if even else 1):
        name, least = ("stream_k", 2) if even else ("split_k", 1)
        raise VerifyException(f"frag.matmul: {name} is {count}, it must be {least} or more")
    if op.through():
        _check_through(op, count)
    elif not adds_to_old(op):
        raise VerifyException(
            "frag.matmul: parts are added to C by atomics only for the epilogue `sum + old`; write "
            "that and set C before, or give memory for the parts: through %partial, %counts"
        )
    elif op.accumulator() != op.memories()[2].element_type:
        raise VerifyException(
            f"frag.matmul: parts of {op.accumulator()} are not added to a C of "
            f"{op.memories()[2].element_type}; give memory for them: through %partial, %counts"
        )
    elif element_name(op.accumulator()) not in KINDS["add"]:
        raise VerifyException(f"frag.matmul: no atomic adds {op.accumulator()}")


def _check_through(op: SummedInParts, count: int) -> None:
    partial, counts = (memref_type(value.type) for value in op.through())
    c, total = op.memories()[2], op.accumulator()
    shape = c.get_shape()
    first = count if op.parts() is not None else DYNAMIC_INDEX
    wanted = "x".join("?" if n == DYNAMIC_INDEX else str(n) for n in (first, *shape))
    given = partial.get_shape()
    if (
        partial.element_type != total
        or is_shared(partial)
        or len(given) != len(shape) + 1
        or (given[0] != DYNAMIC_INDEX and given[0] < count)
        or any(x != y and DYNAMIC_INDEX not in (x, y) for x, y in zip(given[1:], shape))
    ):
        raise VerifyException(
            f"frag.matmul: parts of sums go through memref<{wanted}x{total}>, not {partial}"
        )
    if counts.element_type != i32 or is_shared(counts) or len(counts.get_shape()) != len(shape):
        raise VerifyException(
            f"frag.matmul: the parts of each tile of C are counted in a memref of i32 with "
            f"{len(shape)} dimensions, not in {counts}"
        )


def most_parts(op: SummedInParts) -> int:
    """How many parts a sum of a product may have: as many as it says, else as it gives memory for,
    or `MOST_PARTS` where that is as large as a launch makes it."""
    parts, memory = op.parts(), op.through()
    if parts is not None or not memory:
        return 1 if parts is None else parts[0]
    given = memref_type(memory[0].type).get_shape()[0]
    return MOST_PARTS if given == DYNAMIC_INDEX else max(1, min(given, MOST_PARTS))


def adds_to_old(op: SummedInParts) -> bool:
    """Whether the epilogue is the sum plus the old value of C, and nothing else."""
    if op.epilogue is None or op.extra:
        return False
    block = op.epilogue.block
    add = block.first_op
    if not isinstance(add, arith.AddfOp | arith.AddiOp) or add.next_op is not block.last_op:
        return False
    assert block.last_op is not None
    return set(add.operands) == set(block.args) and block.last_op.operands[0] is add.result
