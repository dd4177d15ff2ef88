"""Undefined bits under atomics on shared memory.

An atomic works on values and on the bits that say which of them are undefined, lane after lane, as
the machine does: `and` with a zero, `or` with a one, an exchange and a comparison that fails in
whatever way leave fewer of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fragir.emulator.checks.definedness.spreading import full, logic
from fragir.emulator.checks.located import address_of
from fragir.emulator.checks.planes import Plane, PlaneDecoder
from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.atomics import act, legal, operand_rows
from fragir.emulator.instructions.operands import Decoder, MemoryOperand
from fragir.emulator.machine.lanes import Mask, store
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.numbers.types import UINT, dtype_of, where, width_of
from fragir.ptx import tree
from fragir.ptx.opcodes.row import LOGIC

#: (old value, its undefined bits, operands, their undefined bits) -> undefined bits of the new
#: value. Arrays `[access, part]`: a .b128 has two parts.
Rule = Callable[[Any, Any, list[Any], list[Any]], Any]


def rule(word: str, kind: str) -> Rule:
    """What an operation of `atom` or `red` leaves undefined."""
    if word == "exch":
        return lambda old, undefined, new, unknown: unknown[0]
    if word == "cas":
        return _compare_and_swap
    if word in LOGIC:
        table = LOGIC[word].table
        assert table is not None
        return lambda old, undefined, operands, unknown: logic(
            table, [old, *operands], [undefined, *unknown]
        )
    if kind[0] in "us" and word in ("min", "max"):
        return _extreme(word == "max", dtype_of(kind))
    if word in ("inc", "dec"):
        return _wrapping(word == "inc")
    return _anything


def _anything(old: Any, undefined: Any, operands: list[Any], unknown: list[Any]) -> Any:
    bad = undefined != 0
    for bits in unknown:
        bad = bad | (bits != 0)
    return full(bad, old.dtype)


def _compare_and_swap(old: Any, undefined: Any, operands: list[Any], unknown: list[Any]) -> Any:
    (compared, new), (vague, vague_new) = operands, unknown
    doubt = undefined | vague
    differs = ((old ^ compared) & ~doubt != 0).any(axis=-1, keepdims=True)
    equal = ~differs & (doubt == 0).all(axis=-1, keepdims=True)
    either = undefined | vague_new | (old ^ new)
    return where(differs, undefined, where(equal, vague_new, either))


def _range(value: Any, undefined: Any, dtype: Any) -> tuple[Any, Any]:
    """The lowest and the highest value that undefined bits allow."""
    low, high = value & ~undefined, value | undefined
    if dtype.kind != "i":
        return low, high
    sign = undefined & undefined.dtype.type(1 << (8 * undefined.dtype.itemsize - 1))
    return (low | sign).view(dtype), (high & ~sign).view(dtype)


def _extreme(largest: bool, dtype: Any) -> Rule:
    def left(old: Any, undefined: Any, operands: list[Any], unknown: list[Any]) -> Any:
        low, high = _range(old, undefined, dtype)
        other_low, other_high = _range(operands[0], unknown[0], dtype)
        if largest:
            stays, replaced = low >= other_high, high <= other_low
        else:
            stays, replaced = high <= other_low, low >= other_high
        some = _anything(old, undefined, operands, unknown)
        return where(replaced, unknown[0], where(stays, undefined, some))

    return left


def _wrapping(up: bool) -> Rule:
    """inc and dec: an old value above the limit, whichever it is, gives one result."""

    def left(old: Any, undefined: Any, operands: list[Any], unknown: list[Any]) -> Any:
        low = old & ~undefined
        limit = operands[0] | unknown[0]
        if up:
            return where(low >= limit, 0, _anything(old, undefined, operands, unknown))
        certain = (low > limit) | (limit == 0)
        return where(certain, unknown[0], _anything(old, undefined, operands, unknown))

    return left


class Shadowed:
    """One atomic on shared memory: what it does to the undefined bits, before it happens."""

    def __init__(self, d: Decoder, ins: tree.Instruction, plane: Plane, outs: list[Any]) -> None:
        word, kind, _, self.function = legal(d, ins)
        self.rule = rule(word, kind)
        self.parts, self.width = (2, 8) if kind == "b128" else (1, width_of(kind) // 8)
        beside = PlaneDecoder(d, plane)
        beside.placed = d.placed
        first = address_of(ins)
        count = 2 if word == "cas" else 1
        self.sources = [
            (operand_rows(d, ins, i, kind, 1), operand_rows(beside, ins, i, kind, 1))
            for i in range(first + 1, first + 1 + count)
        ]
        self.outs = outs
        self.plane, self.real = plane, d.machine

    def run(self, place: MemoryOperand, sel: Any, mask: Mask) -> None:
        """Act on what of the addresses lies in shared memory; other lanes get defined values."""
        for out in self.outs:
            store(out, sel, mask, 0)
        size = self.width * self.parts
        address = place.at(sel, mask)
        memory: DeviceMemory = self.real.memory
        for arena, at, which in memory.spaces(place.space, address, sel, mask, size):
            if arena is memory.shared:
                self._on_shared(at, which, address.shape, sel, mask)

    def _on_shared(self, at: Any, which: Any, shape: Any, sel: Any, mask: Mask) -> None:
        parts, shift = self.parts, (self.width * self.parts).bit_length() - 1

        def values(rows: list[Any]) -> Any:
            each = np.stack([get(r, sel, mask) for r in rows], axis=-1)
            return (each if which is None else each[which]).reshape(-1, parts)

        unknown = [values(beside) for _, beside in self.sources]
        flat = (at >> shift).ravel()
        bits = self.plane.memory.shared.view(self.width, parts).reshape(-1, parts)
        if not bits[flat].any() and not any(u.any() for u in unknown):
            return
        operands = [values(real) for real, _ in self.sources]
        cells, index = np.unique(flat, return_inverse=True)
        words = self.real.memory.shared.view(self.width, parts).reshape(-1, parts)
        both = np.concatenate([words[cells], bits[cells]], axis=1)

        def step(before: Any, *given: Any) -> Any:
            old, undefined = before[:, :parts], before[:, parts:]
            new = [g[:, :parts] for g in given]
            vague = [g[:, parts:] for g in given]
            plain = [old, *new] if parts == 2 else [x[:, 0] for x in (old, *new)]
            after = self.function(*plain).reshape(old.shape)
            return np.concatenate([after, self.rule(old, undefined, new, vague)], axis=1)

        given = [np.concatenate(pair, axis=1) for pair in zip(operands, unknown, strict=True)]
        before = act(both, index.reshape(-1), 0, given, step, self.plane.machine)
        bits[cells] = both[:, parts:]
        chosen = np.ones(shape, np.bool_) if which is None else which
        where_ = chosen if mask is None else np.zeros(mask.shape, np.bool_)
        if mask is not None:
            where_[mask] = chosen
        for part, out in enumerate(self.outs):
            value = np.zeros(where_.shape, UINT[self.width])
            value[where_] = before[:, parts + part]
            store(out, sel, where_, value)
