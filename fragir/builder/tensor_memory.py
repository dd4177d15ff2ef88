"""Products in tensor memory in Python: `tensor_part`, `tcgen05_mma` and others of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, i1
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail, items, require_number, require_shape
from fragir.builder.rings import FlightOperations
from fragir.builder.types import require_tile_element
from fragir.builder.values import Memory, Scalar, Tile
from fragir.dialects import frag
from fragir.dialects.frag.attributes import SCALES


class TensorOperations(FlightOperations):
    """Sums that lie in tensor memory, where products add up by themselves (sm_100a and its kin)."""

    def tensor_part(
        self, shape: Sequence[int], element: Attribute, *, scales: bool = False
    ) -> MemRefType[Attribute]:
        """A matrix in tensor memory as a part of a ring: `k.ring(2, [k.tensor_part(...)])`.

        Its rows are lanes, 128 at a time, its columns are columns, of which a block has 512. With
        `scales` it holds a scale for each row of A or column of B and each block of K.
        """
        sizes = require_shape(shape)
        if len(sizes) != 2:
            fail(f"a part in tensor memory is a matrix, not {len(sizes)}-dimensional")
        space = frag.TensorMemoryAttr(SCALES if scales else "")
        type_ = require_tile_element(element, "tensor memory")
        return MemRefType(type_, sizes, memory_space=space)

    def tcgen05_mma(
        self,
        a: Memory,
        b: Memory,
        d: Memory,
        *,
        accumulate: Scalar | bool = True,
        transposed_a: bool = False,
        transposed_b: bool = False,
        scales: tuple[Memory, Memory] | None = None,
    ) -> None:
        """`d = a b + d` in tensor memory (tcgen05.mma): a and b in shared memory.

        It goes on by itself: the slots that hold a and b may be released at once, and that of d
        published; whoever waits for them waits until it is done. Where `accumulate` does not hold
        d is the product alone. `transposed_a`: memory holds K x M; `transposed_b`: memory holds
        N x K. `scales` are those of blocks along K, in tensor memory (`tcgen05_copy`). PTX ISA 9.2,
        section 9.7.16.10.
        """
        left, right = (
            self._shared_operand("tcgen05.mma", *given) for given in (("a", a), ("b", b))
        )
        both = () if scales is None else items(scales)
        if scales is not None and (both is None or len(both) != 2):
            fail(f"scales are {scales!r}, they must be those of a and those of b")
        op = frag.TensorMmaOp(
            left,
            right,
            self._memory(d),
            a_transposed=transposed_a,
            b_transposed=transposed_b,
            later=self._counts(accumulate),
            scales=[self._memory(scale) for scale in both or ()],
        )
        self.trace.insert(op)

    def tcgen05_load(self, memory: Memory, *, column: int = 0, columns: int | None = None) -> Tile:
        """A tile of what lies in tensor memory (tcgen05.ld), by one warpgroup or more: of
        `columns` from `column` on, or of all that follow. PTX ISA 9.2, section 9.7.16.8.
        """
        source, first = self._memory(memory), require_number(column, "column", 0)
        rows, width = memory.type.get_shape()[-2:]
        many = width - first if columns is None else require_number(columns, "columns", 1)
        if first + many > width or many < 1:
            fail(f"{memory!r} has no {many} columns from {first} on")
        type_ = frag.TileType((rows, many), memory.type.element_type)
        return self.trace.wrap(self.trace.insert(frag.TensorLoadOp(source, type_, first)).tile)

    def tcgen05_copy(self, source: Memory, target: Memory) -> None:
        """Scales of blocks go from shared to tensor memory (tcgen05.cp), ahead of the products
        that follow. The slot that it reads may be released at once. PTX ISA 9.2, section 9.7.16.9.
        """
        self.trace.insert(frag.TensorCopyOp(self._memory(source), self._memory(target)))

    def _counts(self, accumulate: object) -> SSAValue | None:
        """Whether what is there counts; None where it always does."""
        if accumulate is True:
            return None
        if isinstance(accumulate, Scalar) and accumulate.type == i1:
            return self.trace.use(accumulate)
        if accumulate is not False:
            fail(f"accumulate is {accumulate!r}, no condition", "compare something: index > 0")
        return self.trace.constant(0, i1)
