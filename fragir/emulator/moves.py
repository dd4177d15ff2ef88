"""mov with packing and unpacking, selection, and conversions between predicates and registers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.alu import Decode, copy, elementwise, nothing, of3
from fragir.emulator.common import UINT, Mask, Step, store, where, width_of
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder


def move(d: Decoder, ins: tree.Instruction) -> Step:
    """mov: copies bits; `{a, b}` on either side packs or unpacks, low part first."""
    kind = ins.opcode[-1]
    into, out_of = d.operand(ins, 0), d.operand(ins, 1)
    if kind == "b128":
        raise d.error(ins, f"{ins.mnemonic} is not supported")
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


def select(d: Decoder, ins: tree.Instruction) -> Step:
    """selp: a where the predicate holds, else b."""
    raw = f"u{width_of(ins.opcode[-1])}"
    kind = ins.opcode[-1] if ins.opcode[-1][0] in "fb" else raw
    a, b = (d.source(ins, i, kind).view(UINT[width_of(raw) // 8]) for i in (1, 2))
    return elementwise(
        of3(lambda p, a, b: where(p, a, b)),
        d.target(ins, 0, raw),
        [d.source(ins, 3, "pred"), a, b],
    )


def select_sign(d: Decoder, ins: tree.Instruction) -> Step:
    """slct: a where c >= 0, else b (NaN counts as negative)."""
    raw = f"u{width_of(ins.opcode[-2])}"
    c = d.source(ins, 3, ins.opcode[-1])
    return elementwise(
        of3(lambda c, a, b: where(c >= 0, a, b)),
        d.target(ins, 0, raw),
        [c, d.source(ins, 1, raw), d.source(ins, 2, raw)],
    )


TABLE: dict[str, Decode] = {"mov": move, "selp": select, "slct": select_sign}
