"""Instructions in which the lanes of a warp meet (PTX ISA 9.2, sections 9.7.9.6, 9.7.13)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode, Function, nothing
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    check_words,
    destination_or_none,
)
from fragir.emulator.machine.lanes import LANE_BITS, LANES, Mask, Select, Step, store
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import SHUFFLE, SHUFFLES, VOTE, VOTES
from fragir.emulator.numbers.types import Array, distinct, where, word_of
from fragir.emulator.values.reals import extreme

if TYPE_CHECKING:
    from collections.abc import Callable

    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction

_LANE = np.arange(LANES)
_NONE = np.uint32(0)


def needs(d: Decoder, ins: Instruction) -> Callable[[Select, Mask], Array] | None:
    """The lanes that must be there, as bits per warp; None where all are needed."""
    if d.program.opcode(ins).together == "warp":
        return None
    row = d.row(ins, ins.operands[-1], "u32")

    def members(sel: Select, mask: Mask) -> Array:
        value = row[sel]
        if mask is not None:
            value = np.where(mask, value, np.uint32(0))
        return np.bitwise_or.reduce(value, axis=1)

    return members


def names_all(d: Decoder, ins: Instruction) -> bool:
    """Whether its membermask is a number that names all lanes."""
    members = d.literal(ins, d.count(ins) - 1)
    return members is not None and ~members & 0xFFFFFFFF == 0


def by_members(decode: Decode) -> Decode:
    """Lanes that name different lanes at one instruction are groups of their own."""

    def decoded(d: Decoder, ins: Instruction) -> Step:
        step = decode(d, ins)
        if d.literal(ins, d.count(ins) - 1) is not None:
            return step
        row = d.row(ins, ins.operands[-1], "u32")

        def run(sel: Select, mask: Mask) -> None:
            named = row[sel]
            present = named if mask is None else named[mask]
            values = distinct(present)
            if len(values) == 1:
                step(sel, mask)
                return
            lowest = named.min(axis=1) if mask is None else where(mask, named, ~_NONE).min(axis=1)
            highest = named.max(axis=1) if mask is None else where(mask, named, _NONE).max(axis=1)
            if (lowest >= highest).all():
                step(sel, mask)
                return
            for value in values:
                lanes = named == value if mask is None else (named == value) & mask
                step(sel, lanes)

        return run

    return decoded


def source_lanes(mode: str, b: Array, c: Array) -> tuple[Array, Array]:
    """Which lane each lane of a shuffle reads, its own where that is out of range, and whether it
    is in range. `b` and `c` as rows of lanes (PTX ISA 9.2, section 9.7.9.6)."""
    b = b.astype(np.int64) & 31
    c = c.astype(np.int64)
    segment, clamp = c >> 8 & 31, c & 31
    highest = (_LANE & segment) | (clamp & ~segment)
    if mode == "up":
        j = _LANE - b
        inside = j >= highest
    else:
        if mode == "down":
            j = _LANE + b
        elif mode == "bfly":
            j = _LANE ^ b
        else:
            j = (_LANE & segment) | (b & ~segment)
        inside = j <= highest
    return np.where(inside, j, _LANE) & 31, inside


def sources_of(d: Decoder, ins: Instruction) -> Callable[[Select], tuple[Array, Array]]:
    """`source_lanes` of a shuffle, for the warps that it is called with."""
    mode = word_of(ins.opcode, ("up", "down", "bfly", "idx"))
    b, c = d.source(ins, 2, "u32"), d.source(ins, 3, "u32")
    if d.literal(ins, 2) is not None and d.literal(ins, 3) is not None:
        fixed = source_lanes(mode, b[0], c[0])
        return lambda sel: fixed
    return lambda sel: source_lanes(mode, b[sel], c[sel])


def shuffle(d: Decoder, ins: Instruction) -> Step:
    first, second = d.pair(d.operand(ins, 0))
    out = d.target_of(ins, first, "u32")
    valid = None if second is None else d.target_of(ins, second, "pred")
    a, sources = d.source(ins, 1, "u32"), sources_of(d, ins)

    def run(sel: Select, mask: Mask) -> None:
        value = a[sel]
        source, inside = sources(sel)
        if source.ndim == 1:
            result = value[:, source]
        else:
            result = np.take_along_axis(value, np.broadcast_to(source, value.shape), axis=1)
        if out is not None:
            store(out, sel, mask, result)
        if valid is not None:
            store(valid, sel, mask, np.broadcast_to(inside, value.shape))

    return run


def vote(d: Decoder, ins: Instruction) -> Step:
    how = word_of(ins.opcode, ("all", "any", "uni", "ballot"))
    out = d.target(ins, 0, "u32" if how == "ballot" else "pred")
    p = d.source(ins, 1, "pred")

    def run(sel: Select, mask: Mask) -> None:
        value = p[sel]
        yes = value if mask is None else value & mask
        no = ~value if mask is None else ~value & mask
        result: Any
        if how == "ballot":
            result = (yes * LANE_BITS).sum(axis=1, dtype=np.uint32)
        elif how == "any":
            result = yes.any(axis=1)
        elif how == "all":
            result = ~no.any(axis=1)
        else:
            result = ~(no.any(axis=1) & yes.any(axis=1))
        if out is not None:
            store(out, sel, mask, result[:, None])

    return run


def match(d: Decoder, ins: Instruction) -> Step:
    everyone = "all" in ins.opcode
    width = 64 if "b64" in ins.opcode else 32
    first, second = d.pair(d.operand(ins, 0))
    out = d.target_of(ins, first, "u32")
    valid = None if second is None else d.target_of(ins, second, "pred")
    a = d.source(ins, 1, f"u{width}")

    def run(sel: Select, mask: Mask) -> None:
        value = a[sel]
        same = value[:, :, None] == value[:, None, :]
        if mask is not None:
            same = same & mask[:, None, :]
        bits = (same * LANE_BITS).sum(axis=2, dtype=np.uint32)
        if everyone:
            full = np.uint32(0xFFFFFFFF)
            if mask is not None:
                full = (mask * LANE_BITS).sum(axis=1, dtype=np.uint32)[:, None]
            equal = bits == full
            bits = np.where(equal, bits, np.uint32(0))
            if valid is not None:
                store(valid, sel, mask, equal)
        if out is not None:
            store(out, sel, mask, bits)

    return run


_REDUCTIONS: dict[str, tuple[Function, int]] = {
    "add": (np.add, 0),
    "and": (np.bitwise_and, -1),
    "or": (np.bitwise_or, 0),
    "xor": (np.bitwise_xor, 0),
}


def reduce(d: Decoder, ins: Instruction) -> Step:
    how = word_of(ins.opcode, ("add", "min", "max", "and", "or", "xor"))
    kind = ins.opcode[-1]
    if kind == "f32":
        return _reduce_float(d, ins, how)
    kind = kind if kind[0] == "s" else "u32"
    out, a = d.target(ins, 0, kind), d.source(ins, 1, kind)
    if how in _REDUCTIONS:
        function, neutral = _REDUCTIONS[how]
        start = np.array(neutral & 0xFFFFFFFF, np.uint32).view(a.dtype)
    else:
        function = np.minimum if how == "min" else np.maximum
        info = np.iinfo(a.dtype)
        start = np.array(info.max if how == "min" else info.min, a.dtype)
    assert isinstance(function, np.ufunc)
    ufunc = function

    def run(sel: Select, mask: Mask) -> None:
        value = a[sel] if mask is None else np.where(mask, a[sel], start)
        result = ufunc.reduce(value, axis=1, dtype=a.dtype)
        if out is not None:
            store(out, sel, mask, result[:, None])

    return run


def _reduce_float(d: Decoder, ins: Instruction, how: str) -> Step:
    pair = extreme("f32", how == "max", "NaN" in ins.opcode)
    out, a = d.target(ins, 0, "u32"), d.source(ins, 1, "u32")
    magnitude = np.uint32(0x7FFFFFFF if "abs" in ins.opcode else 0xFFFFFFFF)

    def run(sel: Select, mask: Mask) -> None:
        value = a[sel] & magnitude
        if mask is not None:
            first = np.argmax(mask, axis=1)
            value = np.where(mask, value, np.take_along_axis(value, first[:, None], axis=1))
        result = value[:, 0]
        for lane in range(1, LANES):
            result = pair(result, value[:, lane])
        if out is not None:
            store(out, sel, mask, result[:, None])

    return run


def active_mask(d: Decoder, ins: Instruction) -> Step:
    out = d.target(ins, 0, "u32")

    def run(sel: Select, mask: Mask) -> None:
        bits = np.array(0xFFFFFFFF, np.uint32)
        if mask is not None:
            bits = (mask * LANE_BITS).sum(axis=1, dtype=np.uint32)[:, None]
        if out is not None:
            store(out, sel, mask, bits)

    return run


def elect(d: Decoder, ins: Instruction) -> Step:
    first, second = d.pair(d.operand(ins, 0))
    out = d.target_of(ins, first, "u32")
    if second is None:
        raise d.error(ins, f"{ins.mnemonic} needs a predicate: %r|%p")
    chosen = d.target_of(ins, second, "pred")

    def run(sel: Select, mask: Mask) -> None:
        leader = np.zeros(1, np.int64) if mask is None else np.argmax(mask, axis=1)
        if out is not None:
            store(out, sel, mask, leader[:, None].astype(np.uint32))
        if chosen is not None:
            store(chosen, sel, mask, leader[:, None] == _LANE)

    return run


def set_registers(d: Decoder, ins: Instruction) -> Step:
    """setmaxnreg: registers are as many as there are."""
    count = d.literal(ins, 0)
    if count is None or d.count(ins) != 1 or not 24 <= count <= 256 or count % 8:
        raise d.error(ins, f"{ins.mnemonic} takes a multiple of 8 from 24 to 256")
    return nothing


# -- straight runs ---------------------------------------------------------------------------------


def _check_literal_members(d: StraightDecoder, ins: Instruction) -> None:
    if d.literal(ins, d.count(ins) - 1) is None:
        raise NoStraightCode


def straight_shuffle(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    _check_literal_members(d, ins)
    check_words(ins, "shfl", "sync", "b32", *SHUFFLES)
    mode = next(SHUFFLES[w] for w in ins.opcode if w in SHUFFLES)
    first, second = d.pair(d.operand(ins, 0))
    out = destination_or_none(d.out_of(ins, first, "u32"))
    valid = destination_or_none(None if second is None else d.out_of(ins, second, "pred"))
    operands = d.sources(ins, ["u32"] * 3)
    return [StraightCode("", operands, out, valid, SHUFFLE, immediate=mode)]


def straight_vote(d: StraightDecoder, ins: Instruction) -> list[StraightCode]:
    _check_literal_members(d, ins)
    how = next(w for w in ins.opcode if w in VOTES)
    out = destination_or_none(d.out(ins, 0, "u32" if how == "ballot" else "pred"))
    return [StraightCode("", d.sources(ins, ["pred"]), out, kind=VOTE, immediate=VOTES[how])]


STEPS: dict[str, Decode] = {
    "shuffle": shuffle,
    "vote": by_members(vote),
    "match": by_members(match),
    "reduce lanes": by_members(reduce),
    "active lanes": active_mask,
    "elect": by_members(elect),
    "set registers": set_registers,
}
RUNS: dict[str, Encode] = {
    "shuffle": straight_shuffle,
    "vote": straight_vote,
}
