"""Statements that the lanes of a warp execute together: exchanges, votes, matches, reductions.

The member mask says who takes part; of those only who executes the statement does. What a lane
gets that the mask leaves out is not known. PTX ISA 9.2, sections 9.7.9.6 and 9.7.13.9 to 9.7.13.12.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fragir.reference.bounded import Bounded
from fragir.reference.formats import PREDICATE, Array, type_name
from fragir.reference.lanes.exchange import fetch
from fragir.reference.lanes.statements import Executed, Given, StatementInput, opcode
from fragir.reference.lanes.threads import WARP, BlockThreads

_REDUCED: dict[str, Callable[..., object]] = {
    "add": np.add.reduce,
    "min": np.minimum.reduce,
    "max": np.maximum.reduce,
    "and": np.bitwise_and.reduce,
    "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce,
}


def _members(at: Executed, mask: StatementInput) -> Array | None:
    """Who takes part, [threads]; None where the mask is not known."""
    words = mask.words()
    if words is None or not words[1][at.threads.active].all():
        return None
    return at.threads.active & (words[0] >> at.threads.lane & 1 == 1)


def _by_warp(x: Array) -> Array:
    return x.reshape(-1, WARP)


def _of_warps(threads: BlockThreads, found: Any) -> Array:
    """One value for each warp as one for each thread."""
    return np.repeat(found, WARP)[: threads.count]


@opcode("shfl")
def shfl(at: Executed) -> Given:
    value, by, limits, mask = at.operands
    members = _members(at, mask)
    lane, sure = by.words() or (None, None)
    clamp = limits.words()
    if at.words[:2] != ("shfl", "sync") or at.words[3:] != ("b32",):
        return None
    if members is None or lane is None or sure is None or clamp is None or value.type is None:
        return None
    own, distance = at.threads.lane, lane & 31
    segment, bound = clamp[0] >> 8 & 31, clamp[0] & 31
    first, last = own & segment, (own & segment) | (bound & ~segment)
    source, inside = {
        "up": (own - distance, own - distance >= last),
        "down": (own + distance, own + distance <= last),
        "bfly": (own ^ distance, (own ^ distance) <= last),
        "idx": (first | (distance & ~segment), (first | (distance & ~segment)) <= last),
    }[at.words[2]]
    source = np.where(inside, source, own)
    if at.results[0] != value.type:
        words, known = value.words() or (None, None)
        if words is None or known is None:
            return None
        moved = at.from_words(words, known)
    else:
        moved = value.value
    known = sure & clamp[1] & members & members[at.threads.number - own + source]
    found = fetch(at.threads, moved, source)
    wide = known if found.bound.ndim == 1 else known[:, None]
    results = [Bounded(found.value, np.where(wide, found.bound, np.inf))]
    if len(at.results) == 2:
        results.append(Bounded(inside, np.where(sure & clamp[1], 0.0, np.inf)))
    return results


@opcode("redux")
def redux(at: Executed) -> Given:
    value, mask = at.operands
    members, words = _members(at, mask), value.words()
    if len(at.words) != 4 or at.words[3] == "f32" or members is None or words is None:
        return None
    number = words[0]
    if at.words[3] == "s32":
        number = np.where(number >> 31, number - (1 << 32), number)
    kind = at.words[2]
    neutral = {"min": (1 << 32) - 1, "max": -(1 << 31), "and": -1}.get(kind, 0)
    reduce = _REDUCED[kind]
    total = reduce(_by_warp(np.where(members, number, neutral)), axis=1)
    known = _by_warp(words[1] | ~members).all(axis=1)
    result, sure = (_of_warps(at.threads, x) for x in (total, known))
    return [at.from_words(result, sure & members)]


@opcode("vote")
def vote(at: Executed) -> Given:
    value, mask = at.operands
    members = _members(at, mask)
    if members is None or value.type is None or type_name(value.type) != PREDICATE:
        return None
    holds, kind = _by_warp(value.value.value & members), at.words[2]
    taking = _by_warp(members)
    known = _of_warps(at.threads, _by_warp((value.value.bound == 0) | ~members).all(axis=1))
    if kind == "ballot":
        bits = (holds.astype(np.int64) << np.arange(WARP)).sum(axis=1)
        return [at.from_words(_of_warps(at.threads, bits), known & members)]
    every, some = (holds | ~taking).all(axis=1), holds.any(axis=1)
    found = {"all": every, "any": some, "uni": every | ~some}[kind]
    result = _of_warps(at.threads, found)
    return [Bounded(result, np.where(known & members, 0.0, np.inf))]


@opcode("match")
def match(at: Executed) -> Given:
    value, mask = at.operands
    members, words = _members(at, mask), value.words()
    if members is None or words is None or at.words[3] != "b32":
        return None
    number, taking = _by_warp(words[0]), _by_warp(members)
    alike = (number[:, :, None] == number[:, None, :]) & taking[:, None, :]
    bits = (alike.astype(np.int64) << np.arange(WARP)).sum(axis=2).reshape(-1)
    known = _of_warps(at.threads, _by_warp(words[1] | ~members).all(axis=1)) & members
    if at.words[2] == "any":
        return [at.from_words(bits, known)]
    together = (taking.astype(np.int64) << np.arange(WARP)).sum(axis=1)
    whole = bits == _of_warps(at.threads, together)
    results = [at.from_words(np.where(whole, bits, 0), known)]
    if len(at.results) == 2:
        results.append(Bounded(whole, np.where(known, 0.0, np.inf)))
    return results


@opcode("activemask")
def activemask(at: Executed) -> Given:
    """Who executes it: the machine may let some lanes go ahead, so only a whole warp is known."""
    active = _by_warp(at.threads.active)
    whole = _of_warps(at.threads, active.all(axis=1))
    words = np.full(at.threads.count, 0xFFFFFFFF, np.int64)
    return [at.from_words(words, whole)]


@opcode("bar", "barrier", "fence", "membar", "nanosleep")
def nothing(at: Executed) -> Given:
    """One operation after the other, for all threads."""
    return None if at.results else ()
