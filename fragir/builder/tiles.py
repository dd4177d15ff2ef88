"""Operations on tiles and memory: the methods of a kernel that are the `frag` dialect's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, SSAValue

from fragir.builder.elementwise import ElementwiseFunctions
from fragir.builder.places import (
    by,
    error_at,
    fail,
    items,
    place,
    require_dimension,
    require_number,
    require_shape,
    require_word,
)
from fragir.builder.trace import Trace
from fragir.builder.types import (
    byte,
    condition,
    require_scalar_type,
    require_tile_element,
    s32,
    stored_element,
    type_name,
)
from fragir.builder.values import IndexOperand, Memory, Scalar, Tile
from fragir.dialects import frag
from fragir.dialects.elements import element_name, element_type
from fragir.dialects.frag.instructions import accumulator_of
from fragir.errors import FragirError, pass_on
from fragir.layout import Layout
from fragir.mlir import diagnostics

# -- conditions ------------------------------------------------------------------------------------
# Memory of conditions: of bytes, 0 where one does not hold, 1 where it does, as numpy's bool.


def padding_value(trace: Trace, other: Scalar | float | None, memory: Memory) -> SSAValue | None:
    """What is read outside of memory, as memory would hold it."""
    if other is None or not memory.conditions:
        return None if other is None else trace.scalar(other, memory.element, "other")
    if not isinstance(other, Scalar):
        return trace.scalar(int(other != 0), byte, "other")
    if other.type != condition:
        fail(f"other is {other!r}, it must be a condition", "compare it, or write True or False")
    return trace.use(other.cast(s32).cast(byte))


def read(trace: Trace, tile: SSAValue, memory: Memory) -> Tile:
    """A tile of memory as the kernel computes with it."""
    found: Tile = trace.wrap(tile)
    return found.cast(s32) != 0 if memory.conditions else found


def as_stored(tile: Tile, memory: Memory) -> Tile:
    """A tile as memory holds it; an error at the user's line where that is of another type."""
    if memory.element == tile.element:
        return tile.cast(byte) if memory.conditions else tile
    if memory.conditions:
        fail(f"{memory!r} takes conditions, not {type_name(tile.element)}", "compare the tile")
    name = type_name(memory.element)
    fail(
        f"the tile holds {type_name(tile.element)}, the memory {name}",
        f"store tile.cast(fragir.{name})",
    )


# -- shared types ----------------------------------------------------------------------------------
# The types of shared memory that a user describes.


def shared_type(
    shape: Sequence[int],
    element: Attribute,
    swizzle: int,
    layout: Layout | str | None,
) -> MemRefType[Attribute]:
    """Shared memory as `Kernel.shared` describes it."""
    element = require_tile_element(element, "shared memory")
    if require_number(swizzle, "swizzle") not in (0, 32, 64, 128):
        fail(f"swizzle is {swizzle}, it must be 0, 32, 64 or 128 bytes")
    sizes = require_shape(shape)
    if len(sizes) < 2:
        fail(f"shared memory has two dimensions or more, not {len(sizes)}")
    try:
        own = NoneAttr() if layout is None else layout_attribute(layout)
        type_ = MemRefType(element, sizes, own, frag.SharedAttr(swizzle))
        frag.memory_layout(type_)
    except FragirError as error:
        fail(error.message, error.hint)
    return type_


def layout_attribute(layout: Layout | str) -> frag.ExplicitLayoutAttr:
    """A layout, given as one or as text, as an attribute."""
    if isinstance(layout, str):
        return frag.ExplicitLayoutAttr.read(layout)
    return frag.ExplicitLayoutAttr(layout)


Placement = frag.LayoutAttr | frag.MmaFragment | Layout


class TileOperations(ElementwiseFunctions):
    """Shared memory, copies, loads and stores, products, conversions."""

    # --- memory -------------------------------------------------------------------------------

    def shared(
        self,
        shape: Sequence[int],
        element: Attribute | type[bool],
        *,
        swizzle: int = 0,
        layout: Layout | str | None = None,
    ) -> Memory:
        """Shared memory: the last two sizes form a matrix, those before count such matrices.

        `swizzle` is 0, 32, 64 or 128 bytes; 128, or the bytes of a row where that is less, keeps
        `ldmatrix` free of bank conflicts, and wgmma needs one. A `layout` says instead where every
        element lies, with an axis for every size in order: "row [64:72] col [64:1]" are rows of 64
        elements, 72 apart.
        """
        stored, conditions = stored_element(element, "shared memory")
        type_ = shared_type(shape, stored, swizzle, layout)
        ssa = self.trace.insert(memref.AllocOp([], [], type_)).memref
        return Memory(self.trace, ssa, type_.get_shape(), conditions=conditions)

    def view(self, memory: Memory, at: Sequence[IndexOperand]) -> Memory:
        """One matrix of a stack in shared memory."""
        source = self._memory(memory)
        indices = self._indices(at)
        try:
            op = self.trace.insert(frag.ViewOp(source, indices))
        except FragirError as error:
            fail(error.message, error.hint)
        return Memory(self.trace, op.matrix, memory.sizes[-2:], conditions=memory.conditions)

    def load(
        self,
        memory: Memory,
        at: Sequence[IndexOperand],
        *,
        shape: Sequence[int],
        transposed: bool = False,
        masked: bool = False,
        other: Scalar | float | None = None,
        broadcast: bool = False,
        layout: Placement | None = None,
    ) -> Tile:
        """A tile from memory; `at` is where its first element stands, one index a dimension.

        `transposed`: memory holds the transposed matrix. `masked`: what lies outside the array is
        read as `other`, zero unless given (else it must not exist). `broadcast`: an array of one
        dimension is one value a column, a dimension of size 1 stands for all rows or columns.
        """
        source = self._memory(memory)
        type_ = self._tile_type(shape, memory.type.element_type, layout)
        beyond = padding_value(self.trace, other, memory)
        op = frag.LoadOp(
            source,
            self._indices(at),
            type_,
            transposed=transposed,
            masked=masked,
            other=beyond,
            broadcast=broadcast,
        )
        return read(self.trace, self.trace.insert(op).tile, memory)

    def store(
        self,
        tile: Tile,
        memory: Memory,
        at: Sequence[IndexOperand],
        *,
        transposed: bool = False,
        masked: bool = False,
    ) -> None:
        """Writes a tile; `masked`: what lies outside the array is not written."""
        self._tile(tile)  # which it must be
        target = self._memory(memory)
        source = self._tile(as_stored(tile, memory))
        op = frag.StoreOp(source, target, self._indices(at), transposed=transposed, masked=masked)
        self.trace.insert(op)

    def copy(
        self,
        source: Memory,
        at: Sequence[IndexOperand],
        target: Memory,
        to: Sequence[IndexOperand] = (),
        *,
        masked: bool = False,
        asynchronous: bool = False,
        tma: bool = False,
        multicast: bool = False,
        add: bool = False,
    ) -> None:
        """Copies from `source`, beginning at `at`, into a whole matrix of shared memory.

        `to` picks one of a stack of matrices. All see it after `barrier`; with `asynchronous` after
        `commit`, `wait` and `barrier`. With `tma` one thread has the copy engine do it, always
        masked: into shared memory, where all see it at once, or from there to `target`, from `to`
        on, where `add` adds. `multicast`: each block of a cluster fetches a part of it for all.
        """
        first, second = self._memory(source), self._memory(target)
        starts, ends = self._indices(at), self._indices(to)
        op = frag.CopyOp(
            *(first, starts, second, ends),
            masked=masked,
            is_async=asynchronous,
            tma=tma,
            multicast=multicast,
            add=add,
        )
        self.trace.insert(op)

    def commit(self) -> None:
        """Closes a group of asynchronous copies."""
        self.trace.insert(frag.CommitOp())

    def wait(self, pending: int = 0) -> None:
        """Waits until at most `pending` of the newest groups are under way."""
        self.trace.insert(frag.WaitOp(require_number(pending, "pending")))

    def barrier(self) -> None:
        """All threads of the block wait for each other and then see each other's writes."""
        self.trace.insert(frag.BarrierOp())

    # --- tiles --------------------------------------------------------------------------------

    def constant(self, value: float, type_: Attribute) -> Scalar:
        """A number as a scalar of a type."""
        type_ = require_scalar_type(type_, "a constant")
        number = self.trace.operand(value)
        if not isinstance(number, int | float):
            fail(f"a constant is {value!r}, it must be a number of Python's")
        return Scalar(self.trace, self.trace.constant(number, type_))

    def fill(
        self,
        value: Scalar | float,
        shape: Sequence[int],
        element: Attribute,
        *,
        layout: Placement | None = None,
    ) -> Tile:
        """A tile whose elements all are `value`."""
        element = require_tile_element(element, "a tile")
        number = self.trace.scalar(value, element, "the value")
        op = frag.FillOp(number, self._tile_type(shape, element, layout))
        return self.trace.wrap(self.trace.insert(op).tile)

    def iota(self, axis: int, shape: Sequence[int], *, layout: Placement | None = None) -> Tile:
        """A tile of s32: every element's place along a dimension, from 0 on."""
        type_ = self._tile_type(shape, s32, layout)
        op = frag.IotaOp(
            require_dimension(axis, len(type_.shape), f"a tile of shape {shape}"), type_
        )
        return self.trace.wrap(self.trace.insert(op).tile)

    def mma(
        self,
        a: Tile,
        b: Tile,
        c: Tile | None = None,
        *,
        using: str = "",
        result: Attribute | None = None,
        scales: tuple[Tile, Tile] | None = None,
        satfinite: bool = False,
        rounding: str = "",
        bitop: str = "",
        kind: str = "",
    ) -> Tile:
        """`a b + c` by warps (mma.sync): a is M x K, b is K x N, c is M x N.

        Without c the sums begin at zero, in `result` or the type that the instruction sums in.
        Tiles are multiples of an instruction's shape; `using` names one, as in `"m16n8k8.f16"`,
        where several fit. `result` is the element type, c's without it. `scales` are those of
        blocks along K, (M x blocks, blocks x N). `satfinite` clamps sums of integers; `rounding`
        (`"rz"`) is that of f64, `bitop` (`"xor"`) that of single bits; `kind` (`"mxf4nvf4"`) is for
        types that leave it open. PTX ISA 9.2, section 9.7.14.5.

        Tiles of three dimensions are batches, batch x M x K and so on: a product for every matrix.
        (m8n8k4.f16, which forms four products at once, has them last: B is K x N x 4.)
        """
        first, second = self._tile(a), self._tile(b)
        is_batch = False
        if 3 in (len(a.shape), len(b.shape)):
            from fragir.builder.broadcasting import check_batch, leads  # few programs need it

            is_batch = leads(a, b, require_word(using, "using"))
            if is_batch:
                check_batch(a, b, c, scales)
        if c is None:
            shape = (*a.shape[:-1], b.shape[-1]) if is_batch else _sums_of(a, b)
            c = self._zeros(shape, a.element, b.element, result)
        third = self._tile(c)
        if not is_batch:
            _check_matrices(a, b, c)
        tiles = first, second, third, self._sums(c, result)
        words: dict[str, Any] = {"using": require_word(using, "using"), "satfinite": satfinite}
        words |= {
            "rounding": require_word(rounding, "rounding"),
            "bitop": require_word(bitop, "bitop"),
        }
        words["kind"] = require_word(kind, "kind")
        if is_batch:
            return self.trace.wrap(self.trace.insert(frag.MmaBatchedOp(*tiles, **words)).d)
        op = frag.MmaOp(*tiles, scales=self._scales(scales), **words)
        return self.trace.wrap(self.trace.insert(op).d)

    def mma_sparse(
        self,
        a: Tile,
        b: Tile,
        c: Tile,
        metadata: Tile,
        *,
        using: str = "",
        result: Attribute | None = None,
        scales: tuple[Tile, Tile] | None = None,
        unordered: bool = False,
        satfinite: bool = False,
        kind: str = "",
    ) -> Tile:
        """`a b + c` with two of every four elements of A kept (mma.sp): a is M x K/2.

        `metadata` are u4, a nibble for every chunk of a row of A, M x K/4: which elements are kept
        (tf32: M x K/2; s4, u4 and e2m1x2: M x K/8). `unordered`: they may name them in any order.
        The rest is as for `mma`. PTX ISA 9.2, section 9.7.14.6.
        """
        first, second, third, fourth = (self._tile(tile) for tile in (a, b, c, metadata))
        (m, half), (k, n) = _matrix(a), _matrix(b)
        if k != 2 * half or c.shape[:2] != (m, n):
            fail(
                f"mma_sparse: {by(a.shape)} times {by(b.shape)} plus {by(c.shape)}",
                "a is M x K/2 (what is kept), b is K x N, c is M x N",
            )
        op = frag.MmaSparseOp(
            *(first, second, third, fourth, self._sums(c, result)),
            scales=self._scales(scales),
            unordered=unordered,
            satfinite=satfinite,
            kind=require_word(kind, "kind"),
            using=require_word(using, "using"),
        )
        return self.trace.wrap(self.trace.insert(op).d)

    def _sums(self, c: Tile, result: Attribute | None) -> frag.TileType:
        """The type of a product's tile: c's, with the elements of `result`."""
        type_ = frag.tile_of(self._tile(c))
        return (
            type_ if result is None else type_.with_element(require_tile_element(result, "a tile"))
        )

    def _scales(self, scales: tuple[Tile, Tile] | None) -> list[SSAValue]:
        if scales is None:
            return []
        given = items(scales)
        if given is None or len(given) != 2:
            fail(f"scales are {scales!r}, they must be two tiles: those of a and those of b")
        return [self._tile(scale) for scale in given]

    def wgmma(
        self,
        a: Tile | Memory,
        b: Memory,
        c: Tile | None = None,
        *,
        transposed_a: bool = False,
        transposed_b: bool = False,
        negated_a: bool = False,
        negated_b: bool = False,
        metadata: Tile | None = None,
        satfinite: bool = False,
    ) -> Tile:
        """`a b + c` by warpgroups (wgmma, sm_90a): b, and a unless it is a tile, in shared memory.

        Without c the sums begin at zero, in the type that the instruction sums in.

        `transposed_a`: memory holds K x M; `transposed_b`: memory holds N x K. `negated_a` and
        `negated_b` flip signs of floats. With `metadata`, as for `mma_sparse`, a is M x K/2.
        `satfinite` clamps sums of integers. PTX ISA 9.2, section 9.7.15.
        """
        first, second = self._wgmma_operands(a, b)
        if c is None:
            sizes = sizes_of(a)[transposed_a], sizes_of(b)[not transposed_b]
            c = self._zeros(sizes, a.element, b.element, None)
        op = frag.WgmmaOp(
            first,
            second,
            self._tile(c),
            a_transposed=transposed_a,
            b_transposed=transposed_b,
            a_negated=negated_a,
            b_negated=negated_b,
            metadata=None if metadata is None else self._tile(metadata),
            satfinite=satfinite,
        )
        return self.trace.wrap(self.trace.insert(op).d)

    def convert(self, tile: Tile, layout: Placement) -> Tile:
        """The same tile in another layout: `fragir.fragment(...)`, or any `Layout`."""
        source = self._tile(tile)
        type_ = self._tile_type(tile.shape, tile.element, layout)
        return self.trace.wrap(self.trace.insert(frag.ConvertOp(source, type_)).result)

    def _wgmma_operands(self, a: Tile | Memory, b: Memory) -> tuple[SSAValue, SSAValue]:
        first = self._tile(a) if isinstance(a, Tile) else self._shared_operand("wgmma", "a", a)
        return first, self._shared_operand("wgmma", "b", b)

    def _shared_operand(self, product: str, name: str, operand: Memory) -> SSAValue:
        """An operand that the instruction reads from shared memory."""
        source = self._memory(operand)
        if not operand.is_shared:
            fail(
                f"{product}: {name} is {operand!r}; {product} reads shared memory",
                "k.copy it to k.shared(..., swizzle=128) first",
            )
        return source

    def _zeros(
        self, shape: tuple[int, ...], a: Attribute, b: Attribute, result: Attribute | None
    ) -> Tile:
        """What a product of these element types is added to where the caller gives nothing."""
        return self.fill(0, shape, self._sum_type(a, b) if result is None else result)

    def _sum_type(self, a: Attribute, b: Attribute) -> Attribute:
        """What products of these element types are summed in."""
        try:
            return element_type(accumulator_of(element_name(a), element_name(b), None))
        except FragirError as error:
            fail(error.message, error.hint)

    # --- checks -------------------------------------------------------------------------------

    def _memory(self, value: object) -> SSAValue:
        return require_memory(self.trace, value)

    def _indices(self, values: object) -> list[int | SSAValue]:
        if (given := items(values)) is None:
            fail(f"{values!r} is no list of indices", "write (row, column)")
        return [self.trace.index(value, "an index") for value in given]

    def _tile_type(
        self, shape: Sequence[int], element: Attribute, layout: Placement | None
    ) -> frag.TileType:
        sizes = require_shape(shape)
        if not 1 <= len(sizes) <= frag.MOST_DIMENSIONS:
            fail(f"a tile has one to four dimensions, not {len(sizes)}")
        try:
            return frag.TileType(sizes, element, placement_of(layout))
        except Exception as error:
            pass_on(error)
            raise error_at(place(), diagnostics.message_of(error)) from diagnostics.cause_of(error)


def require_memory(trace: Trace, value: object) -> SSAValue:
    """Memory in the IR; an error at the user's line for anything else."""
    if not isinstance(value, Memory):
        fail(f"{value!r} is no memory", "k.memory(...) and k.shared(...) make memory")
    return trace.use(value)


def placement_of(layout: object) -> frag.LayoutAttr | None:
    """A layout as the attribute of a tile's type; None for anything else."""
    match layout:
        case frag.MmaFragment():
            return frag.MmaLayoutAttr(layout)
        case Layout():
            return frag.ExplicitLayoutAttr(layout)
        case frag.LayoutAttr():
            return layout
        case _:
            return None


def sizes_of(operand: Tile | Memory) -> tuple[int, ...]:
    """The shape of a product's operand, in registers or in shared memory."""
    return operand.shape if isinstance(operand, Tile) else tuple(operand.type.get_shape()[-2:])


def _sums_of(a: Tile, b: Tile) -> tuple[int, ...]:
    """The shape of a product of matrices; products behind each other are the last dimension."""
    return _matrix(a)[0], _matrix(b)[1], *a.shape[2:]


def _check_matrices(a: Tile, b: Tile, c: Tile) -> None:
    """An error at the user's line where c has not the shape of a b."""
    (m, k), (k2, n) = _matrix(a), _matrix(b)
    if k != k2 or c.shape[:2] != (m, n) or a.shape[2:] != b.shape[2:] != c.shape[2:]:
        fail(
            f"mma: {by(a.shape)} times {by(b.shape)} plus {by(c.shape)}",
            "a is M x K, b is K x N, c is M x N; k.load(..., transposed=True) turns one",
        )


def _matrix(tile: Tile) -> tuple[int, int]:
    """Rows and columns of an operand of a product."""
    if len(tile.shape) not in (2, 3):
        fail(f"{tile!r} is no matrix", "products take tiles of two dimensions")
    return tile.shape[0], tile.shape[1]
