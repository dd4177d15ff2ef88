"""Whole matrices in Python: the method `matmul` of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail, items, require_number, require_positive
from fragir.builder.tiles import TileOperations
from fragir.builder.trace import Trace
from fragir.builder.types import require_tile_element
from fragir.builder.values import Memory, Scalar
from fragir.dialects import frag
from fragir.errors import FragirError

# -- scales ----------------------------------------------------------------------------------------
# Scales of a `k.matmul`, as its arguments say them.

Scale: TypeAlias = Memory | Scalar | float
"""One f32 for a whole operand, or memory with more."""
Blocks: TypeAlias = tuple[int, int] | None


def scale_value(trace: Trace, given: Scale | None, name: str) -> SSAValue | None:
    """A scale in the IR; an error at the user's line for what is none."""
    if given is None:
        return None
    return trace.use(given) if isinstance(given, Memory) else trace.scalar(given, f32, name)


def say_blocks(
    op: frag.MatmulOp, blocks: tuple[Blocks, Blocks], transposed: tuple[bool, bool]
) -> None:
    """Notes for which elements of A and B a scale is, and how memory holds them."""
    for operand, block, turned in zip("ab", blocks, transposed, strict=True):
        if block is not None:
            extents = require_positive(block, 2, f"block_{operand}")
            op.properties[f"{operand}_block"] = DenseArrayBase.from_list(i64, extents)
        if turned:
            op.properties[f"{operand}_scale_transposed"] = UnitAttr()


def say_promotion(op: frag.MatmulOp, promote: int | None) -> None:
    """Notes after how many of K a partial sum is added."""
    if promote is not None:
        op.attributes["promote"] = IntegerAttr(require_number(promote, "promote", 1), i64)


Epilogue: TypeAlias = (
    Callable[[Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar, Scalar], Scalar]
    | Callable[..., Scalar]
)


class MatrixOperations(TileOperations):
    """Products of whole matrices."""

    _warps: tuple[int, int] | None
    _warpgroups: tuple[int, int] | None

    def matmul(
        self,
        a: Memory,
        b: Memory,
        *,
        into: Memory,
        transposed_a: bool = False,
        transposed_b: bool = False,
        extra: Sequence[Memory] = (),
        epilogue: Epilogue | None = None,
        accumulate: Attribute | None = None,
        tile: tuple[int, int, int] | None = None,
        warps: tuple[int, int] | None = None,
        stages: int | None = None,
        scale_a: Scale | None = None,
        scale_b: Scale | None = None,
        block_a: tuple[int, int] | None = None,
        block_b: tuple[int, int] | None = None,
        transposed_scale_a: bool = False,
        transposed_scale_b: bool = False,
        promote: int | None = None,
        roles: bool = False,
        consumers: int | None = None,
        cluster: int | None = None,
        pair: bool = False,
        split_k: int | None = None,
        stream_k: int | None = None,
        through: tuple[Memory, Memory] | None = None,
        groups: Memory | None = None,
    ) -> None:
        """`into = epilogue(a b)` for whole matrices; the compiler chooses tiles and stages.

        Dimensions before the last two count the matrices of a batch, which `a` or `b` may share.
        With `groups=ends`, an array of s32, rows of `a` and `into` are in groups that end there,
        each with a matrix of `b`.

        `epilogue` gets, for one element, the sum, the old value of `into` and one value of each
        array in `extra` (broadcast as in numpy: (n,) is one value a column, ("m", 1) one a row).

        `scale_a` and `scale_b` multiply A and B: an f32 all of it, an array of one dimension its
        rows (of A) or columns (of B), one of two dimensions blocks of it, of `block_a` rows and K,
        `block_b` K and columns; in front may be the dimensions of C's batch, or of `b` that of the
        groups. `promote` is after how many of K a partial sum is added in f32. Those of `ue8m0` or
        `e4m3`, of both, in blocks of (1, 32) or (1, 16) (of B (32, 1) or (16, 1)), tensor cores
        multiply in as they add: mxfp8, mxfp4, nvfp4.
        `roles`, `consumers`, `cluster`, `pair` and how sums are cut into parts, `split_k`,
        `stream_k` and `through=(partial, counts)`, are those of `frag.matmul`; `through` alone
        leaves to the compiler how many parts there are.
        """
        if self._warps or self._warpgroups:
            fail("the kernel's warps are for tiles", "give warps=... to k.matmul instead")
        more = items(extra)
        if more is None:
            fail(f"extra is {extra!r}, it must be a tuple of memory")
        parts = None if through is None else items(through) or []
        if parts is not None and len(parts) != 2:
            fail(f"through is {through!r}", "write through=(partial, counts)")
        operands = [self._memory(memory) for memory in (a, b, into, *(parts or ()), *more)]
        first = 3 + len(parts or ())
        if accumulate is not None:
            accumulate = require_tile_element(accumulate, "the sum")
        op = frag.MatmulOp(
            *operands[:3],
            extra=operands[first:],
            through=None if parts is None else (operands[3], operands[4]),
            groups=None if groups is None else self._memory(groups),
            a_transposed=transposed_a,
            b_transposed=transposed_b,
            accumulate=accumulate,
            a_scale=scale_value(self.trace, scale_a, "scale_a"),
            b_scale=scale_value(self.trace, scale_b, "scale_b"),
        )
        say_blocks(op, (block_a, block_b), (transposed_scale_a, transposed_scale_b))
        say_promotion(op, promote)
        for name, values, count in (("tile", tile, 3), ("warps", warps, 2)):
            if values is not None:
                numbers = require_positive(values, count, name)
                op.attributes[name] = DenseArrayBase.from_list(i64, numbers)
        numbered = {
            "stages": stages,
            "consumers": consumers,
            "cluster": cluster,
            "split_k": split_k,
            "stream_k": stream_k,
        }
        for name, number in numbered.items():
            if number is not None:
                op.attributes[name] = IntegerAttr(require_number(number, name, 1), i64)
        for name, said in (("roles", roles), ("pair", pair)):
            if said:
                op.attributes[name] = UnitAttr()
        if epilogue is not None:
            op = self._with_epilogue(op, epilogue)
        self.trace.insert(op)

    def _with_epilogue(self, op: frag.MatmulOp, epilogue: Epilogue) -> frag.MatmulOp:
        try:
            accumulator = op.accumulator()
        except (FragirError, KeyError):
            return op  # which the operation's verifier explains
        elements = [Memory(self.trace, value, ()).element for value in (op.c, *op.extra)]
        region = self._elementwise(epilogue, [accumulator, *elements])
        names = ["sum", "old", *(f"{value.name_hint or 'extra'}" for value in op.extra)]
        for argument, name in zip(region.block.args, names, strict=True):
            argument.name_hint = name
        op.add_region(region)
        return op
