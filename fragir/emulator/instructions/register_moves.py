"""mov with packing and unpacking, selection, and conversions between predicates and registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.alu import Decode, copy, nothing, sequence
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    elements,
)
from fragir.emulator.machine.lanes import Mask, Row, Step, store
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.numbers.types import UINT, width_of
from fragir.emulator.values.c import joined, part_of, widened
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder


def move(d: Decoder, ins: tree.Instruction) -> Step:
    """mov: copies bits; `{a, b}` on either side packs or unpacks, low part first."""
    kind = ins.opcode[-1]
    into, out_of = d.operand(ins, 0), d.operand(ins, 1)
    if kind == "b128":
        return _move_128(d, ins, into, out_of)
    if "v2" in ins.opcode or "v4" in ins.opcode:
        return _vector(d, ins, into, out_of, kind)
    if isinstance(into, tree.Vector):
        return _unpack(d, ins, into, kind)
    if isinstance(out_of, tree.Vector):
        return _pack(d, ins, out_of, kind)
    if kind == "pred":
        return copy(d.target(ins, 0, kind), d.source(ins, 1, kind))
    raw = f"u{width_of(kind)}"
    named = isinstance(out_of, tree.Name | tree.Component | tree.Float)
    source = d.row(ins, out_of, kind if not named else raw)
    return copy(d.target(ins, 0, raw), source.view(UINT[width_of(kind) // 8]))


def _vector(
    d: Decoder, ins: tree.Instruction, into: tree.Operand, out_of: tree.Operand, kind: str
) -> Step:
    """mov.v4 from a special register of four parts, or between vectors."""
    targets = d.vector(into)
    count = 2 if "v2" in ins.opcode else 4
    if isinstance(out_of, tree.Vector):
        sources: tuple[tree.Operand, ...] = out_of.elements
    else:
        if not isinstance(out_of, tree.Name):
            raise d.error(ins, f"{ins.mnemonic} cannot take this operand")
        sources = tuple(tree.Component(out_of, part, out_of.at) for part in "xyzw"[:count])
    if len(targets) != count or len(sources) != count:
        raise d.error(ins, f"{ins.mnemonic} moves {count} elements")
    raw = f"u{width_of(kind)}"
    if not isinstance(out_of, tree.Vector):
        d.row(ins, sources[0], raw)
    pairs = [(d.target_of(ins, t, raw), d.row(ins, s, raw)) for t, s in zip(targets, sources)]
    return sequence([copy(t, s) for t, s in pairs])


def _move_128(d: Decoder, ins: tree.Instruction, into: tree.Operand, out_of: tree.Operand) -> Step:
    """mov.b128: between registers, or from and to two or four parts, the lowest first."""
    if isinstance(into, tree.Vector) and isinstance(out_of, tree.Vector):
        raise d.error(ins, f"{ins.mnemonic} needs a .b128 register")
    if isinstance(into, tree.Vector):
        return _pieces(ins, d, into, d.halves(ins, out_of, source=True), True)
    if isinstance(out_of, tree.Vector):
        return _pieces(ins, d, out_of, d.halves(ins, into), False)
    pairs = zip(d.halves(ins, into), d.halves(ins, out_of, source=True), strict=True)
    return sequence([copy(a, b) for a, b in pairs if b is not None])


def _pieces(
    ins: tree.Instruction, d: Decoder, vector: tree.Vector, halves: list[Row | None], unpack: bool
) -> Step:
    count = len(vector.elements)
    if count not in (2, 4):
        raise d.error(ins, f"{ins.mnemonic} cannot be split into {count} parts")
    width = 16 // count
    unit, each = UINT[width], count // 2
    steps: list[Step] = []
    for index, element in enumerate(vector.elements):
        half = halves[index // each]
        if half is None:
            continue
        piece = half.view(unit)[:, index % each :: each]
        if unpack:
            steps.append(copy(d.target_of(ins, element, f"u{8 * width}"), piece))
        else:
            steps.append(copy(piece, d.row(ins, element, f"u{8 * width}")))
    return sequence(steps)


def _part(d: Decoder, ins: tree.Instruction, kind: str, vector: tree.Vector) -> tuple[str, int]:
    count = len(vector.elements)
    width = width_of(kind)
    if count not in (2, 4, 8) or width // count < 8:
        raise d.error(ins, f"{ins.mnemonic} cannot be split into {count} parts")
    return f"u{width // count}", width // count


def _pack(d: Decoder, ins: tree.Instruction, vector: tree.Vector, kind: str) -> Step:
    part, width = _part(d, ins, kind, vector)
    rows = [d.row(ins, e, part) for e in vector.elements]
    out = d.target(ins, 0, f"u{width_of(kind)}")
    if out is None:
        return nothing
    pieces = out.view(UINT[width // 8])
    count = len(rows)
    whole = UINT[width_of(kind) // 8]
    overlaps = any(np.may_share_memory(r, out) for r in rows)

    def run(sel: Any, mask: Mask) -> None:
        if mask is None and not overlaps:
            for index, row in enumerate(rows):
                pieces[sel, index::count] = row[sel]
            return
        values = [row[sel] for row in rows]
        packed = np.stack(np.broadcast_arrays(*values), axis=-1)
        store(out, sel, mask, np.ascontiguousarray(packed).view(whole)[..., 0])

    return run


def _unpack(d: Decoder, ins: tree.Instruction, vector: tree.Vector, kind: str) -> Step:
    part, width = _part(d, ins, kind, vector)
    outs = [d.target_of(ins, e, part) for e in vector.elements]
    whole = d.source(ins, 1, f"u{width_of(kind)}")
    count = len(outs)
    unit = UINT[width // 8]

    def run(sel: Any, mask: Mask) -> None:
        pieces = np.ascontiguousarray(whole[sel]).view(unit)
        if np.may_share_memory(pieces, whole):
            pieces = pieces.copy()
        for index, out in enumerate(outs):
            if out is not None:
                store(out, sel, mask, pieces[:, index::count])

    return run


def straight_move(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """mov between registers, and to and from their parts."""
    kind = ins.opcode[-1]
    into, out_of = d.operand(ins, 0), d.operand(ins, 1)
    if kind == "b128" or len(ins.opcode) != 2:
        raise NoStraightCode
    width = width_of(kind)
    if isinstance(into, tree.Vector):
        part = width // len(into.elements)
        whole = d.sources(ins, [f"u{width}"])
        return [
            code
            for at, element in enumerate(into.elements)
            for code in elements(
                part_of(part, width).text,
                d.out_of(ins, element, f"u{part}"),
                whole,
                part * at,
            )
        ]
    if isinstance(out_of, tree.Vector):
        part = width // len(out_of.elements)
        rows = [d.operand_of(ins, e, f"u{part}") for e in out_of.elements]
        function = joined(len(rows), part)
        if function is None:
            raise NoStraightCode
        return elements(function.text, d.out(ins, 0, f"u{width}"), rows)
    if kind == "pred":
        return elements(widened(8, "u8").text, d.out(ins, 0, kind), d.sources(ins, [kind]))
    raw = f"u{width}"
    named = isinstance(out_of, tree.Name | tree.Component | tree.Float)
    source = d.bits(ins, out_of, kind if not named else raw, raw)
    return elements(widened(width, raw).text, d.out(ins, 0, raw), [source])


STEPS: dict[str, Decode] = {
    "move": move,
}
RUNS: dict[str, Encode] = {
    "move": straight_move,
}
