"""The meaning of frag's operations on tiles and memory, products of tiles apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.dialects.frag.generated import PHILOX, WORDS
from fragir.dialects.frag.memory_layout import last_two_turned
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import INTEGERS, Array, type_name
from fragir.reference.memory import load, load_broadcast, store
from fragir.reference.run import Run, anything
from fragir.reference.scalars import cast
from fragir.reference.tensor_cores import chain_in_tensor_memory, chains, dot

ALL = slice(None)

if TYPE_CHECKING:
    from xdsl.dialects import cf


def undefined(run: Run, op: frag.UndefinedOp) -> None:
    """Any contents."""
    tile = frag.tile_of(op.tile)
    run[op.tile] = anything(tile.shape, tile.element)


def in_flight(run: Run, op: frag.InFlightOp) -> None:
    """The tile."""
    run[op.result] = run[op.tile]


def fill(run: Run, op: frag.FillOp) -> None:
    x, shape = run[op.value], op.tile.type.shape
    run[op.tile] = Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))


def load_tile(run: Run, op: frag.LoadOp) -> None:
    memory, indices = run.memory(op.memory), run.numbers(op.all_indices())
    shape, masked = op.tile.type.shape, op.masked is not None
    other = None if op.other is None else run[op.other]
    if op.broadcast is not None:
        run[op.tile] = load_broadcast(memory, indices, (shape[0], shape[1]), masked, other)
        return
    turned = op.transposed is not None
    shape = last_two_turned(shape) if turned else shape
    x = load(memory, indices, shape, masked, op.name, other)
    run[op.tile] = _transpose(x) if turned else x


def store_tile(run: Run, op: frag.StoreOp) -> None:
    x = run[op.tile]
    if op.transposed is not None:
        x = _transpose(x)
    memory, indices = run.memory(op.memory), run.numbers(op.all_indices())
    store(memory, indices, x, op.masked is not None, op.name)


def copy(run: Run, op: frag.CopyOp) -> None:
    """Asynchronous copies arrive at once: what may be read before is for the emulator to find."""
    if op.tma is not None:
        _copy_tensor(run, op)
        return
    target = run.memory(op.target).at(run.numbers(op.all_target_indices()))
    source = run.memory(op.source)
    indices = run.numbers(op.all_source_indices())
    target.write(load(source, indices, target.value.shape, op.masked is not None, op.name))


def _copy_tensor(run: Run, op: frag.CopyOp) -> None:
    """Masked, either way; what is multicast is each block's own."""
    source, target = run.memory(op.source), run.memory(op.target)
    first, second = run.numbers(op.all_source_indices()), run.numbers(op.all_target_indices())
    if frag.is_shared(op.target.type):
        matrix = target.at(second)
        matrix.write(load(source, first, matrix.value.shape, True, op.name))
    elif op.add is not None:
        from fragir.reference.indexed import add_tile  # few programs need it

        add_tile(run, target, second, source.at(first).content)
    else:
        store(target, second, source.at(first).content, True, op.name)


def view(run: Run, op: frag.ViewOp) -> None:
    run[op.matrix] = run.memory(op.memory).at(run.numbers(op.all_indices()))


def _transpose(x: Bounded) -> Bounded:
    return Bounded(x.value.swapaxes(-1, -2), x.bound.swapaxes(-1, -2))


def _is_batch(x: Bounded, whole: Bounded, matrix: tuple[int, int]) -> bool:
    """Whether these are such matrices, one a matrix of the result or shared by several."""
    *batch, rows, columns = x.value.shape
    return (rows, columns) == matrix and all(
        size in (1, wanted) for size, wanted in zip(batch, whole.value.shape, strict=False)
    )


def matmul(run: Run, op: frag.MatmulOp) -> None:
    """C = epilogue(A B), the sum in any order of the steps that any instruction may take."""
    a, b, old = (run[value] for value in (op.a, op.b, op.c))
    if op.a_transposed is not None:
        a = _transpose(a)
    if op.b_transposed is not None:
        b = _transpose(b)
    m, n = old.value.shape[-2:]
    k = a.value.shape[-1]
    grouped = op.ends is not None
    fits = b.value.shape[-2:] == (k, n) if grouped else _is_batch(b, old, (k, n))
    if not _is_batch(a, old, (m, k)) or not fits:
        shapes = ", ".join("x".join(map(str, x.value.shape)) for x in (a, b, old))
        raise FragirError(f"A, B and C do not fit: {shapes}")
    accumulator = element_name(op.accumulator())
    types = type_name(op.a.type), type_name(op.b.type), accumulator
    blocks, ways = op.block_scales(), ()
    if accumulator not in INTEGERS and blocks is None:
        ways = chains(run.target, types[0], accumulator)
    multiply = partial(dot, c=None, types=types, ways=ways)
    scales = None
    if blocks is not None:
        from fragir.reference.scaled_sums import with_block_scales

        a, b, scales = with_block_scales(run, blocks, a, b)
        ways = (chain_in_tensor_memory(types[0], blocks.element),)

    def finish(total: Bounded, before: Bounded, extra: Sequence[Bounded]) -> Bounded:
        if op.epilogue is None:
            return cast(total, accumulator, type_name(op.c.type))
        return run.region(op.epilogue.block, [total, before, *extra], before.value.shape)[0]

    parts = 1
    if op.in_parts:
        from fragir.dialects.frag.matmul_sums import most_parts  # few products have them

        parts = most_parts(op)
    # of what comes in parts without memory for them, each is added to C by itself
    added_to = old if op.in_parts and not op.through() else None

    def scaled(x: Bounded, y: Bounded, group: int | None = None, rows: slice = ALL) -> Bounded:
        from fragir.reference.scaled_sums import of_group, scaled_sum, scales_of

        scales = scales_of(run, op)
        if group is not None:
            scales = of_group(scales, group, rows)
        return scaled_sum(op, scales, x, y, multiply, parts, added_to)

    if grouped:
        from fragir.reference.grids import grouped_product  # few products have groups

        def of_rows(x: Bounded, y: Bounded, group: int, rows: slice) -> Bounded:
            return scaled(x, y, group, rows) if op.is_scaled else multiply(x, y)

        grouped_product(run, op, a, b, of_rows, finish)
        return
    if op.is_scaled and blocks is None:  # few products have scales
        total = scaled(a, b)
    else:
        parts += added_to is not None
        total = dot(a, b, added_to, types, ways, scales=scales, parts=parts)
    if added_to is None:
        total = finish(total, old, [run[value] for value in op.extra])
    run.memory(op.c).write(total)


def map_(run: Run, op: frag.MapOp) -> None:
    tiles = [run[tile] for tile in op.tiles]
    run[op.result] = run.region(op.body.block, tiles, op.result.type.shape)[0]


def cast_tile(run: Run, op: frag.CastOp) -> None:
    x = run[op.source]
    run[op.result] = cast(x, type_name(op.source.type), type_name(op.result.type))


def convert(run: Run, op: frag.ConvertOp) -> None:
    """A layout says where elements are, not what they are."""
    run[op.result] = run[op.source]


def nothing(run: Run, op: Operation) -> None:
    """One block after the other, one operation after the other."""


def block_id(run: Run, op: frag.BlockIdOp) -> None:
    place = "xyz".index(op.dimension.data.value)
    run[op.result] = exactly(np.int64(run.block_id[place]))


# -- shapes ----------------------------------------------------------------------------------------
# The meaning of operations that count elements otherwise: those of numpy, and exact.


def _apply(
    run: Run, result: SSAValue, source: SSAValue, function: Callable[[Array], Array]
) -> None:
    """A result's values and bounds, which are the source's."""
    x = run[source]
    run[result] = Bounded(function(x.value), function(x.bound))


def _together(
    run: Run,
    result: SSAValue,
    sources: tuple[SSAValue, SSAValue],
    function: Callable[[list[Array]], Array],
) -> None:
    """The same of two sources."""
    first, second = (run[source] for source in sources)
    value = function([first.value, second.value])
    run[result] = Bounded(value, function([first.bound, second.bound]))


def transpose(run: Run, op: frag.TransposeOp) -> None:
    _apply(run, op.result, op.source, lambda x: np.transpose(x, op.order))


def reshape(run: Run, op: frag.ReshapeOp) -> None:
    shape = op.result.type.shape
    _apply(run, op.result, op.source, lambda x: np.reshape(x, shape))


def slice_(run: Run, op: frag.SliceTileOp) -> None:
    parts = tuple(slice(c.start, c.start + c.length * c.step, c.step) for c in op.cutouts)
    _apply(run, op.result, op.source, lambda x: x[parts])


def concat(run: Run, op: frag.ConcatenateOp) -> None:
    dim = op.along
    _together(run, op.result, (op.first, op.second), lambda parts: np.concatenate(parts, dim))


def split(run: Run, op: frag.SplitOp) -> None:
    _apply(run, op.first, op.source, lambda x: x[..., 0])
    _apply(run, op.second, op.source, lambda x: x[..., 1])


def join(run: Run, op: frag.JoinOp) -> None:
    _together(run, op.result, (op.first, op.second), lambda parts: np.stack(parts, -1))


# -- random ----------------------------------------------------------------------------------------
# The meaning of random bits: Philox 4x32-10, exact.

_LOW = (1 << 32) - 1


def random(run: Run, op: frag.RandomOp) -> None:
    seed, words = run[op.seed], [run[word] for word in op.words()]
    bits = philox([word.value for word in words], int(seed.value))
    uncertain = sum((word.bound for word in words), np.full(op.first.type.shape, seed.bound))
    bound = np.where(uncertain > 0, np.inf, 0.0)
    for result, word in zip(op.results, bits, strict=True):
        run[result] = Bounded(INTEGERS["s32"].wrap(word.astype(np.int64)), bound)


def philox(counter: list[Array], seed: int) -> list[Array]:
    """The four words of a counter's bits, as uint64; words of the counter left out are zero.

    Section 3.4 of the paper that `fragir.dialects.frag.generated` names.
    """
    low = np.uint64(_LOW)
    c = [np.asarray(word).astype(np.int64).view(np.uint64) & low for word in counter]
    c += [np.zeros_like(c[0])] * (WORDS - len(c))
    key = [seed & _LOW, seed >> 32 & _LOW]
    for _ in range(PHILOX.rounds):
        products = [c[at] * np.uint64(factor) for at, factor in zip((0, 2), PHILOX.factors)]
        (high0, low0), (high2, low2) = ((p >> np.uint64(32), p & low) for p in products)
        c = [high2 ^ c[1] ^ np.uint64(key[0]), low2, high0 ^ c[3] ^ np.uint64(key[1]), low0]
        key = [(k + step) & _LOW for k, step in zip(key, PHILOX.steps, strict=True)]
    return c


# -- reporting -------------------------------------------------------------------------------------
# The meaning of print and assert: nothing is printed, and what fails for certain is an error.


def print_(run: Run, op: frag.PrintOp) -> None:
    """Memory and tiles stay as they are."""


def assert_(run: Run, op: frag.AssertOp) -> None:
    """A condition that may go either way is left to the runs."""
    _check_holds(
        run[op.condition], op.text.data, f" in block ({', '.join(map(str, run.block_id))})"
    )


def assert_element(run: Run, op: cf.AssertOp) -> None:
    """The same of the elements of a structured operation."""
    _check_holds(run[op.arg], op.msg.data)


def _check_holds(x: Bounded, text: str, where: str = "") -> None:
    failing = np.argwhere(~x.value.astype(bool) & (x.bound == 0))
    if not len(failing):
        return
    place = f" at [{', '.join(map(str, failing[0]))}]" if x.value.ndim else ""
    others = f" (and at {len(failing) - 1} more)" if len(failing) > 1 else ""
    raise FragirError(f"{text}: this does not hold{place}{where}{others}")
