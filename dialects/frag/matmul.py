"""`frag.matmul`: a whole matrix product on memory, with what follows it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    Float32Type,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    operand_def,
    opt_attr_def,
    opt_operand_def,
    opt_prop_def,
    opt_region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_name, element_type, is_element
from fragir.dialects.frag.instructions import accumulator_of
from fragir.dialects.frag.pointwise import YieldOp, check_elementwise
from fragir.dialects.interfaces import DimensionsInterface, MemoryInterface, Names
from fragir.dialects.limits import MAPPED_DIMENSIONS
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.dialects.frag.matmul_sums import BlockScales, Scaling

_WORDS = {"a_block", "b_block", "a_scale_transposed", "b_scale_transposed"}
"""Properties that say something of scales."""
SCALES = BaseAttr(Float32Type) | BaseAttr(MemRefType)
Matrix: TypeAlias = MemRefType[Attribute]


@op_definition
class MatmulOp(IRDLOperation, MemoryInterface, DimensionsInterface):
    """`C = epilogue(A B)` on memory, of any size, also dynamic.

    Of more dimensions than two, those before the last two count the matrices of a batch: C has all
    of them; A and B have the same, 1 in place of some, or none, where all products share a matrix.

    `transposed` after A or B: memory holds the transposed matrix (K x M, or N x K). The sum is
    formed in `accumulate` (f32 for f16, bf16, tf32 and 8-bit floats; i32 for 8-bit integers; f64
    for f64; f16 may be asked for with f16). The epilogue's region gets, for one element: the sum,
    the old value of C, and one value of each operand after `with`, which is broadcast like in
    numpy: a memref<N> is one value a column, a memref<Mx1> one a row of every matrix. Without an
    epilogue the sum is rounded to C's type.

    `scaled %s` behind an operand: its elements count times scales, which are f32. A number, or a
    memref<1>, is for all, memref<M> one a row of A, memref<N> one a column of B. With `by [m, k]`,
    for B `by [k, n]`, one is for a block of so many elements: memref<M/m x K/k>, memref<K/k x N/n>,
    rounded up, or `transposed`. In front of these dimensions may be those of C's batch, 1 in place
    of some: memref<Bx1> is one a matrix, memref<BxM> one a row of each. The sum is multiplied in
    f32 by the product of both scales. Where they change along K, a partial sum begins at zero every
    `promote` of K (as many as share a scale) and is added to the whole one by a fused multiply-add.
    `promote = 128` alone adds partial sums too: 8-bit floats lose less so, of whose sums tensor
    cores keep 14 bits.

    Scales of f8E8M0FNU or f8E4M3FN, of both operands, `by [1, 32]` or `by [1, 16]` (of B
    `by [32, 1]` or `by [16, 1]`), tensor cores multiply in as they add: of fp8 and
    `!frag.packed<f4E2M1FN>`, in the formats mxfp8, mxfp4 and nvfp4. They lie as others do, or as
    tensor memory takes them, memref<M/128 x K/128 x 2 x 256>: 512 bytes of 128 rows by four blocks,
    the byte of row r and block j at 16 (r % 32) + 4 (r / 32) + j; those of B are then `transposed`.
    What a chunk has beyond K is multiplied by zeros, so that it is anything but NaN.

    `groups %ends`: the rows of A and C are in groups, one a matrix of B (G x K x N), as those of
    experts in a mixture: group g has the rows up to, not with, ends[g], an i32 in memory, and
    begins where the one before it ends. Rows behind the last group are not written. Scales of B may
    have G in front; those of A are one a row, memref<Gx1> one a group, or one for all.

    `tile = array<i64: M, N, K>`, `warps = array<i64: M, N>` (for wgmma: warpgroups) and `stages`
    override what the compiler chooses.

    `split_k = N` lets N blocks add up a tile, each a part of K; `stream_k = N` lets the blocks that
    run at once share all steps of all tiles evenly, at most N of them a tile. The parts go through
    memory: `through %partial, %counts` gives N matrices like C in the type of the sum, which may
    hold anything, and an i32 for each tile of C, zeros, which are zeros again afterwards. The last
    of a tile's blocks adds the parts in their order, so that each launch of a grid has the same
    result, and applies the epilogue. `through` alone, with neither word: as many parts as suit, of
    those that there is memory for, also one. Without `through` the parts are added to C by atomics,
    in any order, for the epilogue `sum + old` and a C of the sum's type; never unasked. A block
    scales its own part.

    On sm_90a `roles` lets a warp fetch by TMA what warpgroups
    multiply, in blocks that compute tile after tile, `cluster = 2` lets so many blocks share what
    they fetch of B; A and B have rows of multiples of 16 bytes then. With `consumers = 2` beside
    `roles` two roles of `warps` each take tiles by turns: one stores while the other multiplies.

    In tensor memory `pair` lets the two blocks of a cluster multiply together, each with half of B
    (cta_group::2), and `cluster = 1` lets each block multiply alone.
    """

    name = "frag.matmul"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    a_scale = opt_operand_def(SCALES)
    b_scale = opt_operand_def(SCALES)
    ends = opt_operand_def(MemRefType)
    partial = opt_operand_def(MemRefType)
    counts = opt_operand_def(MemRefType)
    extra = var_operand_def(MemRefType)
    a_transposed = opt_prop_def(UnitAttr)
    b_transposed = opt_prop_def(UnitAttr)
    a_scale_transposed = opt_prop_def(UnitAttr)
    b_scale_transposed = opt_prop_def(UnitAttr)
    a_block = opt_prop_def(DenseArrayBase.constr(i64))
    b_block = opt_prop_def(DenseArrayBase.constr(i64))
    accumulate = opt_prop_def(AnyAttr())
    promote = opt_attr_def(IntegerAttr.constr(i64))
    tile = opt_attr_def(DenseArrayBase.constr(i64))
    warps = opt_attr_def(DenseArrayBase.constr(i64))
    stages = opt_attr_def(IntegerAttr.constr(i64))
    cluster = opt_attr_def(IntegerAttr.constr(i64))
    pair = opt_attr_def(UnitAttr)
    roles = opt_attr_def(UnitAttr)
    consumers = opt_attr_def(IntegerAttr.constr(i64))
    split_k = opt_attr_def(IntegerAttr.constr(i64))
    stream_k = opt_attr_def(IntegerAttr.constr(i64))
    epilogue = opt_region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$a (`transposed` $a_transposed^)? (`scaled` $a_scale^)?"
        " (`transposed` $a_scale_transposed^)? (`by` $a_block^)?"
        " `,` $b (`transposed` $b_transposed^)? (`scaled` $b_scale^)?"
        " (`transposed` $b_scale_transposed^)? (`by` $b_block^)?"
        " `into` $c (`groups` $ends^)? (`through` $partial^ `,` $counts)?"
        " (`accumulate` $accumulate^)? (`with` $extra^)? attr-dict"
        " `:` type($a) (`scaled` type($a_scale)^)? `,` type($b) (`scaled` type($b_scale)^)?"
        " `into` type($c) (`groups` type($ends)^)? (`through` type($partial)^ `,` type($counts))?"
        " (`with` type($extra)^)?"
        " (`epilogue` $epilogue^)?"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        *,
        extra: Sequence[SSAValue | Operation] = (),
        through: tuple[SSAValue | Operation, SSAValue | Operation] | None = None,
        groups: SSAValue | Operation | None = None,
        a_transposed: bool = False,
        b_transposed: bool = False,
        accumulate: Attribute | None = None,
        epilogue: Region | None = None,
        a_scale: SSAValue | Operation | None = None,
        b_scale: SSAValue | Operation | None = None,
    ):
        super().__init__(
            operands=[a, b, c, a_scale, b_scale, groups, *(through or (None, None)), extra],
            properties={
                "a_transposed": UnitAttr() if a_transposed else None,
                "b_transposed": UnitAttr() if b_transposed else None,
                "accumulate": accumulate,
            },
            regions=[[] if epilogue is None else [epilogue]],
        )

    def reads(self) -> Sequence[SSAValue]:
        """A, B, their scales, what the epilogue takes besides; C is written, and read by it."""
        scales = (self.a_scale, self.b_scale)
        in_memory = [x for x in scales if x is not None and is_memref(x.type)]
        ends = () if self.ends is None else (self.ends,)
        return self.a, self.b, *in_memory, *ends, *self.extra

    def writes(self) -> Sequence[SSAValue]:
        """C, and what its parts go through."""
        return (self.c, *self.through())

    def scratch(self) -> Sequence[SSAValue]:
        """The memory for parts."""
        return self.through()[:1]

    def counters(self) -> Sequence[SSAValue]:
        """How many parts are there."""
        return self.through()[1:]

    def through(self) -> tuple[SSAValue, SSAValue] | tuple[()]:
        """The memory for parts of sums, and the counts of those that are there, if given."""
        if self.partial is None or self.counts is None:
            return ()
        return self.partial, self.counts

    def parts(self) -> tuple[int, bool] | None:
        """How many parts a sum has, and whether that is at most so many (`stream_k`), if it has."""
        if self.stream_k is not None:
            return self.stream_k.value.data, True
        return None if self.split_k is None else (self.split_k.value.data, False)

    @property
    def in_parts(self) -> bool:
        """Whether sums may have parts: how many is said, or there is memory for some."""
        return self.parts() is not None or bool(self.through())

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """Those of the product, and what operands of the epilogue share with C."""
        batch = self.batch_names()
        for value, last in (
            (self.a, ("m", "k") if self.a_transposed is None else ("k", "m")),
            (self.b, ("k", "n") if self.b_transposed is None else ("n", "k")),
        ):
            shape = memref_type(value.type).get_shape()[:-2]
            if self.ends is not None and value is self.b:
                yield value, ("g", *last)
                continue
            yield value, (*_unless_one(batch[len(batch) - len(shape) :], shape), *last)
        yield self.c, (*batch, "m", "n")
        for each in self.scalings():
            if is_memref(each.scale.type):
                yield each.scale, each.dimensions()
        for extra in self.extra:
            shape = memref_type(extra.type).get_shape()
            names = (*batch, "m", "n")[len(batch) + 2 - len(shape) :]
            yield extra, _unless_one(names, shape)
        if self.ends is not None:
            yield self.ends, ("g",)
        if self.partial is not None:
            yield self.partial, (None, *batch, "m", "n")

    @property
    def is_scaled(self) -> bool:
        """Whether an operand has scales, or the sum is promoted."""
        if len(self.operands) > 3 and (self.a_scale is not None or self.b_scale is not None):
            return True
        return self.promote is not None

    def scalings(self) -> tuple[Scaling, ...]:
        """The scales of A and B, of those that have some."""
        if not self.is_scaled:
            return ()
        from fragir.dialects.frag.matmul_sums import scalings_of  # few products have scales

        return scalings_of(self)

    def block_scales(self) -> BlockScales | None:
        """Those that tensor cores multiply in, a byte for so many of K; None without any."""
        if not self.is_scaled:
            return None
        from fragir.dialects.frag.matmul_sums import block_scales_of  # few products have scales

        return block_scales_of(self)

    def promotion(self) -> int | None:
        """After how many of K a partial sum is added in f32; None where the sum is one."""
        if not self.is_scaled:
            return None
        from fragir.dialects.frag.matmul_sums import promotion_of  # few products have scales

        return promotion_of(self)

    def memories(self) -> tuple[Matrix, Matrix, Matrix]:
        """The types of A, B and C in memory."""
        a, b, c = self.operands[:3]  # which are always there, and asked for often
        return memref_type(a.type), memref_type(b.type), memref_type(c.type)

    def accumulator(self) -> Attribute:
        """The type the sum is formed in; FragirError where no instruction multiplies these."""
        a, b, _ = self.memories()
        if self.block_scales() is not None:  # of types, too, that are not multiplied without
            return self.accumulate or element_type("f32")
        wanted = None if self.accumulate is None else element_name(self.accumulate)
        return element_type(
            accumulator_of(element_name(a.element_type), element_name(b.element_type), wanted)
        )

    def sizes(self) -> tuple[int | None, int | None, int | None]:
        """M, N and K as far as they are static; VerifyException where operands disagree."""
        for name, memory in zip("ABC", self.memories(), strict=True):
            if not 2 <= len(memory.get_shape()) <= MAPPED_DIMENSIONS:
                raise VerifyException(
                    f"frag.matmul: {name} is {memory}, it must be a matrix, or matrices in up to "
                    f"{MAPPED_DIMENSIONS - 2} dimensions of a batch"
                )
        shapes = [memory.get_shape()[-2:] for memory in self.memories()]
        (m, k), (k2, n), (m2, n2) = (
            shapes[0][::-1] if self.a_transposed else shapes[0],
            shapes[1][::-1] if self.b_transposed else shapes[1],
            shapes[2],
        )
        return (
            _require_same_size("M", m, m2),
            _require_same_size("N", n, n2),
            _require_same_size("K", k, k2),
        )

    def batch(self) -> tuple[int | None, ...]:
        """The dimensions of a batch of products as far as they are static; none for one product."""
        sizes = self.memories()[2].get_shape()[:-2]
        return tuple(None if size == DYNAMIC_INDEX else size for size in sizes)

    def batch_names(self) -> tuple[str, ...]:
        """What the dimensions of a batch are called where a program does not name them."""
        count = len(self.batch())
        return ("b",) if count == 1 else tuple(f"b{dim}" for dim in range(count))

    def _check_groups(self, ends: Matrix) -> None:
        a, b, c = (memory.get_shape() for memory in self.memories())
        if (len(a), len(b), len(c)) != (2, 3, 2) or ends.element_type != i32:
            raise VerifyException(
                "frag.matmul: groups are of the rows of two matrices A and C, with a matrix of B "
                "(G x K x N) each, and end where a memref<?xi32> says"
            )
        known = DYNAMIC_INDEX not in (b[0], *ends.get_shape())
        if len(ends.get_shape()) != 1 or (known and b[0] != ends.get_shape()[0]):
            raise VerifyException(
                f"frag.matmul: {ends} does not say where a group of rows ends for each matrix of B"
            )
        if self.in_parts or self.cluster is not None or self.pair is not None:
            raise VerifyException(
                "frag.matmul: products of groups of rows have no sums in parts, and no clusters, "
                "whose blocks would share a matrix of B"
            )

    def verify_(self) -> None:
        sizes = m, n, _ = self.sizes()
        whole = (*self.batch(), m, n)
        if self.pair is not None and self.cluster is not None and self.cluster.value.data != 2:
            raise VerifyException(
                "frag.matmul: a pair is a cluster of 2 blocks; leave `cluster` out"
            )
        for name, memory in zip("AB", self.memories(), strict=False):
            if self.ends is None:
                _check_batch(name, memory, self.memories()[2])
        if self.ends is not None:
            self._check_groups(memref_type(self.ends.type))
        for memory in self.memories():
            if not is_element(memory.element_type):
                raise VerifyException(f"frag.matmul: no instruction takes {memory.element_type}")
        try:
            accumulator = self.accumulator()
        except FragirError as error:
            raise VerifyException(f"frag.matmul: {error}") from error
        except KeyError as error:
            raise VerifyException(
                f"frag.matmul: nothing accumulates in {self.accumulate}; write f16, f32, f64 or i32"
            ) from error
        if self.is_scaled or not _WORDS.isdisjoint(self.properties):
            from fragir.dialects.frag.matmul_sums import check_scales  # few products have scales

            check_scales(self, accumulator, sizes)
        c = self.memories()[2]
        for memory in self.extra.types:
            _check_broadcast(memref_type(memory), whole)
        if self.in_parts:
            from fragir.dialects.frag.matmul_sums import check_parts  # few products have them

            check_parts(self)
        if self.epilogue is None:
            if self.extra:
                raise VerifyException("frag.matmul: `with` needs an epilogue that uses the operand")
            return
        extra = [memref_type(t).element_type for t in self.extra.types]
        check_elementwise(self.name, self.epilogue.block, [accumulator, c.element_type, *extra])
        last = self.epilogue.block.last_op
        assert isinstance(last, YieldOp)
        if last.value.type != c.element_type:
            raise VerifyException(
                f"frag.matmul: the epilogue yields {last.value.type}, C holds {c.element_type}"
            )


def _require_same_size(name: str, first: int, second: int) -> int | None:
    if DYNAMIC_INDEX in (first, second):
        known = [size for size in (first, second) if size != DYNAMIC_INDEX]
        return known[0] if known else None
    if first != second:
        raise VerifyException(
            f"frag.matmul: {name} is {first} in one operand and {second} in another; write "
            "`transposed` after an operand that memory holds the other way round"
        )
    return first


def _unless_one(names: Sequence[str], shape: Sequence[int]) -> Names:
    """Names of dimensions; one of size 1 is not the product's: the operand broadcasts."""
    return tuple(None if size == 1 else name for name, size in zip(names, shape, strict=True))


def _check_batch(name: str, memory: Matrix, c: Matrix) -> None:
    """Whether the matrices of A or B are those of a batch, or shared by its products."""
    given, batch = memory.get_shape()[:-2], c.get_shape()[:-2]
    fits = len(given) in (0, len(batch)) and all(
        size in (1, DYNAMIC_INDEX) or whole in (size, DYNAMIC_INDEX)
        for size, whole in zip(given, batch, strict=False)
    )
    if not fits:
        raise VerifyException(
            f"frag.matmul: {name} is {memory}, C {c}; before its last two dimensions {name} has "
            "those of C, 1 in place of some, or none"
        )


def _check_broadcast(memory: Matrix, whole: Sequence[int | None]) -> None:
    shape = memory.get_shape()
    fits = 1 <= len(shape) <= len(whole) and all(
        size in (1, DYNAMIC_INDEX) or extent in (None, size)
        for size, extent in zip(reversed(shape), reversed(whole), strict=False)
    )
    if not fits:
        shown = "x".join("?" if size is None else str(size) for size in whole)
        raise VerifyException(
            f"frag.matmul: {memory} cannot be broadcast to {shown}; write memref<N>, "
            "memref<1xN>, memref<Mx1> or memref<MxN>"
        )
