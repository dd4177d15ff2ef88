"""atom and red (PTX ISA 9.2, sections 9.7.13.12 and 13): lanes act one after the other.

Lanes with distinct addresses act together; where several lanes name one address they take turns
in the order of warps and lanes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.access import get, put
from fragir.emulator.alu import Decode, Function, of2, of3
from fragir.emulator.common import DTYPES, UINT, Mask, Row, Step, where
from fragir.emulator.floating import KINDS, extreme, ieee, modified
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder

_WORDS = {"add", "min", "max", "inc", "dec", "cas", "exch", "and", "or", "xor"}


def _increment(old: Any, limit: Any) -> Any:
    return where(old >= limit, old.dtype.type(0), old + old.dtype.type(1))


def _decrement(old: Any, limit: Any) -> Any:
    return where((old == 0) | (old > limit), limit, old - old.dtype.type(1))


_INTEGER: dict[str, Function] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "inc": _increment,
    "dec": _decrement,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "exch": of2(lambda old, b: b),
    "cas": of3(lambda old, b, c: where(old == b, c, old)),
}


def _operator(d: Decoder, ins: tree.Instruction, word: str, kind: str) -> Function:
    """(old, operands...) -> new, on raw unsigned bits."""
    if kind in KINDS and word in ("add", "min", "max"):
        form, _, split = KINDS[kind]
        if word == "add":
            # f32 add without .noftz on global memory flushes on some targets; IEEE here.
            function = ieee("add", form, "rn")
        else:
            function = extreme(form, word == "max", False, False)
        return modified(function, form, ftz=False, sat=False, relu=False, split=split)
    inner = _INTEGER[word]
    if kind[0] != "s":
        return inner
    signed = DTYPES[kind][0]

    def function(old: Any, *operands: Any) -> Any:
        values = (x.view(signed) for x in (old, *operands))
        return inner(*values).view(old.dtype)

    return function


def atomic(d: Decoder, ins: tree.Instruction) -> Step:
    words = ins.opcode
    word = next((w for w in words[1:] if w in _WORDS), None)
    if word is None or "async" in words:
        raise d.error(ins, f"the instruction {ins.mnemonic} is not supported")
    kind = words[-1]
    if kind not in DTYPES or kind == "b128":
        raise d.error(ins, f"the instruction {ins.mnemonic} is not supported")
    count = next((int(w[1:]) for w in words if w in ("v2", "v4", "v8")), 1)
    width = DTYPES[kind][1] // 8
    raw = f"u{8 * width}"
    returns = words[0] == "atom"
    first = 1 if returns else 0
    place = d.place(ins, first, d.space(ins))
    outs: list[Row | None] = [None] * count
    if returns:
        outs = [d.target_of(ins, e, raw) for e in d.vector(d.operand(ins, 0))]
    number = 2 if word == "cas" else 1
    sources: list[list[Row]] = []
    for index in range(first + 1, first + 1 + number):
        elements = d.vector(d.operand(ins, index))
        sources.append(
            [
                d.row(ins, e, raw if isinstance(e, tree.Name) else kind).view(UINT[width])
                for e in elements
            ]
        )
    function = _operator(d, ins, word, kind)
    machine = d.machine

    def run(sel: Any, mask: Mask) -> None:
        address = place.at(sel, mask)
        for index in range(count):
            at = address + address.dtype.type(index * width) if index else address
            operands = [get(s[index], sel, mask) for s in sources]
            parts = machine.memory.spaces(place.space, at, sel, mask, width * (count - index))
            old = np.empty(address.shape, UINT[width])
            for arena, positions, which in parts:
                values = operands if which is None else [o[which] for o in operands]
                before = _act(arena.view(width), positions, width, values, function, machine)
                if which is None:
                    old = before
                else:
                    old[which] = before
            out = outs[index]
            if out is not None:
                put(out, sel, mask, old)
        machine.report.statistics.stored[place.space] += width * count * address.size

    return run


def _act(
    memory: Any,
    positions: Any,
    width: int,
    operands: list[Any],
    function: Callable[..., Any],
    machine: Any,
) -> Any:
    """Apply to memory in turns; the old values in the shape of `positions`."""
    flat = (positions >> (width.bit_length() - 1)).ravel()
    values = [np.broadcast_to(o, positions.shape).ravel() for o in operands]
    old: Any = np.empty(flat.shape, memory.dtype)
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
    return old.reshape(positions.shape)


TABLE: dict[str, Decode] = {"atom": atomic, "red": atomic}
