"""The meaning of exchanges between the lanes of a warp, in regions of lane-level code."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from fragir.dialects import ptx
from fragir.reference.bounded import Bounded
from fragir.reference.formats import Array, type_name
from fragir.reference.lanes.registers import columns, from_words, words_of
from fragir.reference.lanes.threads import WARP, BlockThreads


def fetch(threads: BlockThreads, x: Bounded, lane: Array) -> Bounded:
    """What each thread gets from a lane of its warp; nothing is known of one that does not run."""
    source = threads.number - threads.lane + lane
    missing = ~threads.active[source]
    bound = x.bound[source]
    missing = missing if bound.ndim == 1 else missing[:, None]
    return Bounded(x.value[source], np.where(missing, np.inf, bound))


def shuffle(threads: BlockThreads, op: ptx.ShuffleOp) -> None:
    lane = threads[op.source]
    found = fetch(threads, threads[op.value], lane.value % WARP)
    unsure = (lane.bound > 0) if found.bound.ndim == 1 else (lane.bound > 0)[:, None]
    threads[op.result] = Bounded(found.value, np.where(unsure, np.inf, found.bound))


def shuffle_xor(threads: BlockThreads, op: ptx.ShuffleXorOp) -> None:
    lane = threads.lane ^ op.mask.value.data
    threads[op.result] = fetch(threads, threads[op.value], lane)


def movmatrix(threads: BlockThreads, op: ptx.MovmatrixOp) -> None:
    """Lane l has row l / 4 of an 8x8 matrix, columns 2 (l mod 4) and the next."""
    x = threads[op.value]
    element = np.arange(ptx.length(op.value.type), dtype=np.int64)
    row = (threads.lane // 4)[:, None]
    column = 2 * (threads.lane % 4)[:, None] + element % 2
    source = (threads.number - threads.lane)[:, None] + 4 * column + row // 2
    at = element - element % 2 + row % 2
    missing = ~threads.active[source]
    threads[op.result] = Bounded(
        x.value[source, at], np.where(missing, np.inf, x.bound[source, at])
    )


def permute_bytes(x: Array, y: Array, selector: Array) -> tuple[Array, Array]:
    """`prmt.b32` of numbers without a sign; and for each byte of the result which it is of.

    PTX ISA 9.2, section 9.7.9.7.
    """
    both = (y.astype(np.uint64) << np.uint64(32)) | x.astype(np.uint64)
    result, chosen = np.zeros(both.shape, np.int64), np.zeros((*both.shape, 4), np.int64)
    for byte in range(4):
        nibble = (selector >> 4 * byte) & 15
        chosen[..., byte] = nibble & 7
        picked = ((both >> (8 * (nibble & 7)).astype(np.uint64)) & np.uint64(255)).astype(np.int64)
        sign = np.where(picked & 128, 255, 0)
        result |= np.where(nibble & 8, sign, picked) << 8 * byte
    return result, chosen


def permute(threads: BlockThreads, op: ptx.PermuteOp) -> None:
    name, shape = type_name(op.result.type), threads.shape(op.result.type)
    first, sure = words_of(threads[op.lhs], name)
    second, sure2 = words_of(threads[op.rhs], name)
    selector = columns(threads[op.selector])
    words, chosen = permute_bytes(first, second, np.broadcast_to(selector.value, first.shape))
    uses = [(chosen < 4).any(axis=-1), (chosen >= 4).any(axis=-1)]
    known = (sure | ~uses[0]) & (sure2 | ~uses[1]) & (selector.bound == 0)
    threads[op.result] = from_words(words, known, name, shape)


def nothing(threads: BlockThreads, op: Operation) -> None:
    """One operation after the other, for all threads."""
