"""Places of parts that are said by offsets, sizes and strides."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref, tensor
from xdsl.ir import SSAValue

from fragir.dialects.slices import kept_dims, mixed
from fragir.errors import FragirError
from fragir.reference.memory import Where
from fragir.reference.run import Run


def part_of(
    run: Run,
    op: memref.SubviewOp | tensor.ExtractSliceOp | tensor.InsertSliceOp,
    shape: Sequence[int],
) -> Where:
    """Where the elements of a part lie, whose type has a shape: an index for each dimension that
    the type leaves out. FragirError where some lie outside.
    """
    declared = mixed(op.static_sizes, op.sizes)
    kept = kept_dims(declared, shape, op.name)
    offsets = run.numbers(mixed(op.static_offsets, op.offsets))
    sizes, strides = run.numbers(declared), run.numbers(mixed(op.static_strides, op.strides))
    whole = _shape(run, op.dest if isinstance(op, tensor.InsertSliceOp) else op.source)
    where: list[int | slice] = []
    for dim, (offset, size, stride, extent) in enumerate(
        zip(offsets, sizes, strides, whole, strict=True)
    ):
        last = offset + (size - 1) * stride
        if size < 0 or (size and not (0 <= offset < extent and 0 <= last < extent)):
            raise FragirError(
                f"{op.name} takes {size} elements from {offset} by {stride} of {extent}"
            )
        places = slice(offset, last + 1, max(1, stride)) if size else slice(0, 0)
        where.append(places if dim in kept else offset)
    return tuple(where)


def _shape(run: Run, value: SSAValue) -> tuple[int, ...]:
    return run[value].value.shape
