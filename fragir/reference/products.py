"""The meaning of frag.mma, frag.mma_sparse and frag.wgmma: scales, sparsity, saturation, signs."""

from __future__ import annotations

import numpy as np

from fragir.algebra.numpy_door import Values
from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.frag.instructions import How
from fragir.dialects.frag.products import are_chunks
from fragir.dialects.frag.sparse import dense_name
from fragir.dialects.frag.tensor_scales import BLOCKS, CHUNK_SHAPE, ROWS
from fragir.errors import FragirError
from fragir.isa.products import wgmma_k
from fragir.isa.spelling import mnk
from fragir.reference import algebra
from fragir.reference.bounded import Bounded, bounded, exactly
from fragir.reference.formats import INTEGERS, Array, Floats
from fragir.reference.run import Run
from fragir.reference.tensor_cores import chains, dot

Types = tuple[str, str, str, str]


def mma(run: Run, op: frag.MmaOp) -> None:
    """d = a b + c; four products at once are the last dimension of their tiles."""
    a, b, c = (run[value] for value in (op.a, op.b, op.c))
    types, how, name = _types(op), op.how(), op.instruction_name()
    if len(op.d.type.shape) == 3:  # products last in the tile, first in numpy's matmul
        a, b, c = (_bitcast(x, -1, 0) for x in (a, b, c))
        run[op.d] = _bitcast(_sum(run.target, types, name, how, a, b, c), 0, -1)
        return
    scales = None
    if op.scales:
        of_a, of_b = _scales_in_rows(run, op)
        a, b, scales = with_scales(a, b, of_a, of_b, how.block)
    run[op.d] = _sum(run.target, types, name, how, a, b, c, scales)


def _scales_in_rows(run: Run, op: frag.MmaOp) -> tuple[Bounded, Bounded]:
    """The scales of A by rows and blocks, those of B by blocks and columns."""
    _, _, _, d = op.tile_types()
    found: list[Bounded] = []
    for value, size, is_a in zip(op.scales, d.shape, (True, False), strict=True):
        x = run[value]
        if are_chunks(frag.tile_of(value)):
            x = Bounded(in_rows(x.value)[:size], in_rows(x.bound)[:size])
            x = x if is_a else _transpose(x)
        found.append(x)
    return found[0], found[1]


def mma_batched(run: Run, op: frag.MmaBatchedOp) -> None:
    """d = a b + c of every matrix of a batch."""
    a, b, c = (run[value] for value in (op.a, op.b, op.c))
    run[op.d] = _sum(run.target, _types(op), op.instruction_name(), op.how(), a, b, c)


def mma_sparse(run: Run, op: frag.MmaSparseOp) -> None:
    """d = a b + c with what the metadata say of A."""
    a, b, c, e = (run[value] for value in (op.a, op.b, op.c, op.metadata))
    types, how = _types(op), op.how()
    instruction = op.instruction()
    ordered = op.unordered is None
    columns = kept_columns(e, instruction.operands["e"].chunk, ordered)
    name = dense_name(instruction, types[0])
    scales = None
    if op.scales:
        of_a, of_b = (run[value] for value in op.scales)
        scales = _factors(of_a, of_b, how.block, b.value.shape[0])
    run[op.d] = _sparse_product(run.target, types, name, how, a, b, c, columns, scales)


def wgmma(run: Run, op: frag.WgmmaOp) -> None:
    """d = +- a b + c from shared memory; without c where its condition does not hold."""
    a, b, c = (run[value] for value in (op.a, op.b, op.c))
    if op.scale_d is not None and not run.number(op.scale_d):
        c = exactly(np.zeros_like(c.value))
    a = _transpose(a) if op.a_transposed is not None else a
    b = _transpose(b) if op.b_transposed is not None else b
    a = _negate(a) if op.a_negated is not None else a
    b = _negate(b) if op.b_negated is not None else b
    d = frag.tile_of(op.d)
    first, second = (element_name(type_) for type_ in op.elements())
    types, how = (first, second, d.element, d.element), op.how()
    name = f"m64n8k{wgmma_k(first)}.{first}"
    if op.metadata is None:
        run[op.d] = _sum(run.target, types, name, how, a, b, c)
        return
    chunk = op.instruction(8).operands["e"].chunk
    columns = kept_columns(run[op.metadata], chunk, True)
    run[op.d] = _sparse_product(run.target, types, name, how, a, b, c, columns, None)


def kept_columns(metadata: Bounded, chunk: int, ordered: bool) -> Array:
    """[row, packed column] -> the column of the full A that it stands for.

    FragirError for metadata that PTX leaves undefined (PTX ISA 9.2, section 9.7.14.6.1): a chunk
    of two columns keeps the first (0b0100) or the second (0b1110), others two different parts of
    four, in rising order where the instruction takes ordered metadata.
    """
    if not metadata.exact:
        raise FragirError("the metadata of a sparse product depend on rounding")
    nibbles = metadata.value.astype(np.int64)
    first, second = nibbles & 3, nibbles >> 2
    if chunk == 2:
        legal = (nibbles == 0b0100) | (nibbles == 0b1110)
        kept = (second >> 1)[..., None]
    else:
        legal = second > first if ordered else second != first
        kept = np.stack([first, second], -1)
    if not legal.all():
        row, at = (int(i) for i in np.argwhere(~legal)[0])
        raise FragirError(
            f"the metadata of row {row}, chunk {at}, are {int(nibbles[row, at]):#06b}, which names "
            "no two parts" + (" in rising order" if ordered and chunk > 2 else ""),
            hint="bits 1:0 are the first kept part of a chunk, bits 3:2 the second",
        )
    each = chunk // (2 if chunk == 2 else 4)
    columns: Array = kept[..., None] * each + np.arange(each)
    rows, chunks = (int(size) for size in nibbles.shape)
    start: Array = np.arange(0, chunk * chunks, chunk)
    columns = columns.reshape((rows, chunks, chunk // 2)) + start[:, None]
    return columns.reshape((rows, chunks * chunk // 2))


def _sparse_product(
    target: str,
    types: Types,
    name: str,
    how: How,
    a: Bounded,
    b: Bounded,
    c: Bounded,
    columns: Array,
    scales: tuple[Floats, Floats] | None,
) -> Bounded:
    """Row by row: the packed row of A with the rows of B that it meets."""
    rows = Bounded(a.value[:, None], a.bound[:, None])
    met = Bounded(b.value[columns], b.bound[columns])
    addend = Bounded(c.value[:, None], c.bound[:, None])
    if scales is not None:
        of_a, of_b = scales
        scales = np.take_along_axis(of_a, columns, 1)[:, None], of_b[columns]
    result = _sum(target, types, name, how, rows, met, addend, scales)
    return Bounded(result.value[:, 0], result.bound[:, 0])


def _sum(
    target: str,
    types: Types,
    name: str,
    how: How,
    a: Bounded,
    b: Bounded,
    c: Bounded,
    scales: tuple[Floats, Floats] | None = None,
) -> Bounded:
    """`c + a b` as the instruction with this short name sums it; of sparse ones the dense name."""
    if how.bitop == "xor":  # where exactly one of the bits is set
        a = Bounded(np.concatenate([a.value, 1 - a.value], -1), np.concatenate([a.bound] * 2, -1))
        b = Bounded(np.concatenate([1 - b.value, b.value], -2), np.concatenate([b.bound] * 2, -2))
    three = types[0], types[1], types[3]
    if types[3] in INTEGERS:
        return (
            _saturated_product(a, b, c, three, name) if how.satfinite else dot(a, b, c, three, ())
        )
    ways = chains(target, types[0], types[3], name, rounding=how.rounding, scale=how.scale)
    return dot(a, b, c, three, ways, types[2], scales)


def _saturated_product(
    a: Bounded, b: Bounded, c: Bounded, types: tuple[str, str, str], name: str
) -> Bounded:
    """Every instruction clamps its sum, so those along K one after the other."""
    step = mnk(name.partition(".")[0])[2]
    low, high = -(2**31), 2**31 - 1
    value, bound = c.value, c.bound
    for k in range(0, a.value.shape[-1], step):
        part = Bounded(a.value[..., k : k + step], a.bound[..., k : k + step])
        other = Bounded(b.value[..., k : k + step, :], b.bound[..., k : k + step, :])
        product = dot(part, other, None, types, ())
        value = np.clip(value + product.value, low, high)
        bound = bound + product.bound  # clamping brings no two numbers further apart
    return bounded(value, bound)


def in_rows(scales: Array) -> Array:
    """A matrix of scales by rows and blocks of a stack of chunks, as tensor memory takes them; of a
    matrix itself."""
    if scales.shape[2:] != CHUNK_SHAPE:
        return scales
    across, along, *_ = scales.shape
    parts = scales.reshape(across, along, 32, 4, BLOCKS)
    return parts.transpose(0, 3, 2, 1, 4).reshape(across * ROWS, along * BLOCKS)


def with_scales(
    a: Bounded, b: Bounded, of_a: Bounded, of_b: Bounded, block: int
) -> tuple[Bounded, Bounded, tuple[Floats, Floats] | None]:
    """A (... x M x K), B (... x K x N), and the scale of every element of both, which is for
    `block` of K.

    Where elements are terms of algebra they are multiplied here, and there are no scales any more.
    """
    k = a.value.shape[-1]
    if -(-k // block) > min(of_a.value.shape[-1], of_b.value.shape[-2]):
        raise FragirError(f"there are too few scales, of {block} each, for K = {k}")
    if not algebra.is_followed():
        return a, b, _factors(of_a, of_b, block, k)
    found: list[Bounded] = []
    for x, scale, axis in ((a, of_a, -1), (b, of_b, -2)):
        wide = Bounded(*(_wide(part, block, axis, k) for part in (scale.value, scale.bound)))
        positive = algebra.computed(Values.__abs__, [wide], "f64")
        found.append(algebra.computed(Values.__mul__, [x, positive], "f64"))
    return found[0], found[1], None


def _factors(of_a: Bounded, of_b: Bounded, block: int, k: int) -> tuple[Floats, Floats]:
    """The scale of every element of A (M x K) and of B (K x N)."""
    if not (of_a.exact and of_b.exact):
        raise FragirError("the scales of a product depend on rounding")
    # the sign of a ue4m3 does not count
    left, right = np.abs(of_a.value), np.abs(of_b.value)
    return _wide(left, block, -1, k), _wide(right, block, -2, k)


def _wide(scales: Array, block: int, axis: int, k: int) -> Array:
    """Each scale for so many of K, up to the last."""
    return np.take(np.repeat(scales, block, axis), np.arange(k), axis)


def _types(op: frag.MmaOp | frag.MmaBatchedOp | frag.MmaSparseOp) -> Types:
    a, b, c, d = (tile.element for tile in op.tile_types())
    return a, b, c, d


def _negate(x: Bounded) -> Bounded:
    if algebra.is_followed():
        return algebra.computed(Values.__neg__, [x], "f64")
    return Bounded(-x.value, x.bound)


def _transpose(x: Bounded) -> Bounded:
    return Bounded(x.value.T, x.bound.T)


def _bitcast(x: Bounded, source: int, target: int) -> Bounded:
    return Bounded(np.moveaxis(x.value, source, target), np.moveaxis(x.bound, source, target))
