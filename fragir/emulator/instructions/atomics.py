"""atom and red (PTX ISA 9.2, sections 9.7.13.12 and 13): lanes act one after the other.

Lanes with distinct addresses act together; where several lanes name one address they take turns
in the order of warps and lanes. The elements of a vector are atomic one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.access import check_cache_policy, get, put
from fragir.emulator.instructions.alu import Decode, Function
from fragir.emulator.machine.lanes import Mask, Row, Select, Step
from fragir.emulator.numbers.types import UINT, Array, count_of, dtype_of, kind_of, where, width_of
from fragir.emulator.values.arrays import operation
from fragir.emulator.values.language import is_real, type_of
from fragir.emulator.values.reals import flush
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine

WORDS = {"add", "min", "max", "inc", "dec", "cas", "exch", "and", "or", "xor"}


#: What is kept of the old value a and the operands b, c.
_INTEGER: dict[str, str] = {
    "add": "a + b",
    "min": "min(a, b)",
    "max": "max(a, b)",
    "inc": "0 if a >= b else a + 1",
    "dec": "b if a == 0 or a > b else a - 1",
    "and": "a & b",
    "or": "a | b",
    "xor": "a ^ b",
    "exch": "b",
    "cas": "c if a == b else a",
}
#: f32 and f64 have no minimum; f32 and halves keep subnormals.
_FLOATING: dict[str, str] = {"add": "round(a + b)"}
_NARROW: dict[str, str] = {**_FLOATING, "min": "min(a, b)", "max": "max(a, b)"}
_BITS = {"and", "or", "xor", "exch", "cas"}


def _swap(old: Array, b: Array) -> Array:
    return b


def _swap_128(old: Array, b: Array, c: Array) -> Array:
    """cas.b128: the two halves lie along the last axis."""
    return where((old == b).all(axis=-1, keepdims=True), c, old)


def operator(word: str, kind: str) -> Function | None:
    """(old, operands...) -> new on raw unsigned bits; None where the type has no such operation."""
    if kind == "b128":
        return {"exch": _swap, "cas": _swap_128}.get(word)
    if is_real(type_of(kind)):
        text = (_FLOATING if kind in ("f32", "f64") else _NARROW).get(word)
        return None if text is None else operation(text, kind)
    text = _INTEGER.get(word)
    counts = word in ("inc", "dec") and kind != "u32"
    if text is None or (word in _BITS) != (kind[0] == "b") or counts:
        return None
    inner = operation(text, kind)
    if kind[0] != "s":
        return inner
    signed = dtype_of(kind)

    def function(old: Array, *operands: Array) -> Array:
        values = (x.view(signed) for x in (old, *operands))
        return inner(*values).view(old.dtype)

    return function


def flushing(function: Function, form: str) -> Function:
    """The same with subnormal inputs and results as zeros of their sign."""

    def flushed(old: Array, *operands: Array) -> Array:
        return flush(function(flush(old, form), *[flush(x, form) for x in operands]), form)

    return flushed


def require_atomic(d: Decoder, ins: tree.Instruction) -> tuple[str, str, int, Function]:
    """(operation, type, elements, function) of an atomic."""
    words = ins.opcode
    word = next((w for w in words[1:] if w in WORDS), None)
    kind, count = kind_of(words), count_of(words)
    function = None if word is None else operator(word, kind)
    half = is_real(type_of(kind)) and kind not in ("f32", "f64")
    vector = count == 1 or (d.space(ins) in ("global", "generic") and (half or kind == "f32"))
    narrow = width_of(kind) < 32 and not half and (word, kind) != ("cas", "b16")
    if word is None or function is None or not vector or narrow or half != ("noftz" in words):
        raise d.error(ins, f"there is no atomic operation {ins.mnemonic}")
    if words[0] == "red" and word in ("cas", "exch"):
        raise d.error(ins, f"there is no {ins.mnemonic}, only atom.{word}")
    return word, kind, count, function


def operand_rows(d: Decoder, ins: tree.Instruction, index: int, kind: str, count: int) -> list[Any]:
    """The rows of one operand: an element each, both halves of a .b128."""
    if kind == "b128":
        return d.halves(ins, d.operand(ins, index), source=True)
    elements = d.vector(d.operand(ins, index))
    if len(elements) != count:
        raise d.error(ins, f"{ins.mnemonic} takes {count} elements, not {len(elements)}")
    raw = f"u{width_of(kind)}"
    named = tree.Name | tree.Component
    return [
        d.row(ins, e, raw if isinstance(e, named) else kind).view(UINT[width_of(kind) // 8])
        for e in elements
    ]


def atomic(d: Decoder, ins: tree.Instruction) -> Step:
    words = ins.opcode
    word, kind, count, function = require_atomic(d, ins)
    wide = kind == "b128"
    width, parts = (8, 2) if wide else (width_of(kind) // 8, 1)
    returns = words[0] == "atom"
    first = 1 if returns else 0
    place = d.place(ins, first, d.space(ins))
    outs: list[Row | None] = []
    if returns:
        out = d.operand(ins, 0)
        outs = (
            d.halves(ins, out)
            if wide
            else [d.target_of(ins, e, f"u{8 * width}") for e in d.vector(out)]
        )
        if count > 1 and len(outs) != count and not isinstance(out, tree.Sink):
            raise d.error(ins, f"{ins.mnemonic} gives {count} elements, not {len(outs)}")
    number = 2 if word == "cas" else 1
    sources = [operand_rows(d, ins, first + 1 + i, kind, count) for i in range(number)]
    check_cache_policy(d, ins, first + 1 + number)
    machine = d.machine
    memory = machine.memory
    on_global = flushing(function, "f32") if kind == "f32" else function
    size = width * parts * count
    shift = (width * parts).bit_length() - 1

    def run(sel: Select, mask: Mask) -> None:
        address = place.at(sel, mask)
        places = memory.spaces(place.space, address, sel, mask, size)
        for arena, at, _ in places:
            if memory.poisoned:
                memory.check_poison(arena, at, size)
        for index in range(count):
            rows = [s[parts * index : parts * (index + 1)] for s in sources]
            operands = [
                get(r[0], sel, mask)
                if parts == 1
                else np.stack([get(half, sel, mask) for half in r], axis=-1)
                for r in rows
            ]
            shape = address.shape if parts == 1 else (*address.shape, parts)
            old = np.empty(shape, UINT[width])
            for arena, at, which in places:
                apply = on_global if arena is memory.globals else function
                cells = at + index * width if index else at
                values = operands if which is None else [o[which] for o in operands]
                if arena.footprint is not None:
                    arena.footprint.note_written(cells, width * parts)
                before = act(arena.view(width, parts), cells, shift, values, apply, machine)
                if which is None:
                    old = before
                else:
                    old[which] = before
            for part in range(parts):
                out = outs[parts * index + part] if parts * index + part < len(outs) else None
                if out is not None:
                    put(out, sel, mask, old if parts == 1 else old[..., part])
        machine.report.statistics.stored[place.space] += size * address.size

    return run


def act(
    memory: Array,
    positions: Array,
    shift: int,
    operands: Sequence[Array],
    function: Function,
    machine: Machine,
) -> Array:
    """Apply to memory in turns; the old values in the shape of `positions`."""
    flat = (positions >> shift).ravel()
    more = memory.shape[1:]
    values = [np.broadcast_to(o, (*positions.shape, *more)).reshape(-1, *more) for o in operands]
    old: Array = np.empty((len(flat), *more), memory.dtype)
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    starts = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    turn = np.arange(len(flat)) - np.maximum.accumulate(where(starts, np.arange(len(flat)), 0))
    rounds = int(turn.max()) + 1
    by_turn = order if rounds == 1 else order[np.argsort(turn, kind="stable")]
    bounds = np.cumsum(np.bincount(turn))
    begin = 0
    changed = False
    for end in bounds:
        now = by_turn[begin:end]
        begin = int(end)
        cells = flat[now]
        before = memory[cells]
        after = function(before, *[v[now] for v in values])
        old[now] = before
        memory[cells] = after
        changed = changed or bool((after != before).any())
    if changed:
        machine.progress = True
    return old.reshape(*positions.shape, *more)


STEPS: dict[str, Decode] = {
    "atomic": atomic,
}
