"""Loads, stores and addresses (PTX ISA 9.2, section 9.7.9). Cache hints have no effect here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.alu import Decode, copy, elementwise, nothing, of1
from fragir.emulator.common import DTYPES, UINT, Mask, Row, Step, is_slice, store
from fragir.emulator.memory import (
    CLUSTER_SHIFT,
    GLOBAL_BASE,
    LOCAL_WINDOW,
    SHARED_WINDOW,
    WINDOW,
)

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder
    from fragir.ptx.tree import Instruction, Operand


def put(row: Row, sel: Any, mask: Mask, value: Any) -> None:
    """Write values of the active lanes: [warps, 32], or one per active lane where masked."""
    if mask is None:
        row[sel] = value
    elif is_slice(sel):
        row[sel][mask] = value
    else:
        part = row[sel]
        part[mask] = value
        row[sel] = part


def get(row: Row, sel: Any, mask: Mask) -> Any:
    """Values of the active lanes, in the shape that `put` takes."""
    return row[sel] if mask is None else row[sel][mask]


def shape_of(d: Decoder, ins: Instruction) -> tuple[str, int, int]:
    """(type, bytes of an element, elements) of a load or store."""
    kind = ins.opcode[-1]
    if kind not in DTYPES or kind == "pred":
        raise d.error(ins, f"{ins.mnemonic}: .{kind} cannot be loaded or stored")
    count = next((int(w[1:]) for w in ins.opcode if w in ("v2", "v4", "v8")), 1)
    width = DTYPES[kind][1] // 8
    if kind == "b128":
        raise d.error(ins, f"{ins.mnemonic}: .b128 is not supported")
    return kind, width, count


def _elements(d: Decoder, ins: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    elements = d.vector(operand)
    if len(elements) != count:
        raise d.error(ins, f"{ins.mnemonic} moves {count} elements, not {len(elements)}")
    return elements


def load(d: Decoder, ins: Instruction) -> Step:
    kind, width, count = shape_of(d, ins)
    space = d.space(ins)
    place = d.place(ins, 1, space)
    rows = [d.wide_target(ins, e, kind) for e in _elements(d, ins, d.operand(ins, 0), count)]
    memory, counted = d.machine.memory, d.machine.report.statistics.loaded
    space = place.space
    signed = kind[0] == "s"
    view = np.dtype(f"{'i' if signed else 'u'}{width}")
    # Rows of equal width and float rows take raw bits.
    targets = [
        None if r is None else r.view(UINT[width]) if r.dtype.itemsize == width else r for r in rows
    ]

    if count == 1:
        only = targets[0]
        extend = only is not None and only.dtype.itemsize != width

        def single(sel: Any, mask: Mask) -> None:
            address = place.at(sel, mask)
            value = memory.load(space, address, sel, mask, width, 1)
            counted[space] += width * address.size
            if only is not None:
                put(only, sel, mask, value.view(view) if extend else value)

        return single

    def run(sel: Any, mask: Mask) -> None:
        address = place.at(sel, mask)
        value = memory.load(space, address, sel, mask, width, count)
        counted[space] += width * count * address.size
        for index, row in enumerate(targets):
            if row is not None:
                part = value[..., index]
                put(row, sel, mask, part.view(view) if row.dtype.itemsize != width else part)

    return run


def save(d: Decoder, ins: Instruction) -> Step:
    kind, width, count = shape_of(d, ins)
    if "async" in ins.opcode or "bulk" in ins.opcode:
        raise d.error(ins, f"{ins.mnemonic} is not supported")
    place = d.place(ins, 0, d.space(ins))
    raw = f"b{8 * width}"
    rows = [
        d.row(ins, e, raw if _is_raw(e) else kind, True).view(UINT[width])
        for e in _elements(d, ins, d.operand(ins, 1), count)
    ]
    machine = d.machine
    memory, counted = machine.memory, machine.report.statistics.stored
    space = place.space

    def run(sel: Any, mask: Mask) -> None:
        address = place.at(sel, mask)
        if count == 1:
            value = get(rows[0], sel, mask)
        else:
            value = np.stack([get(r, sel, mask) for r in rows], axis=-1)
        memory.save(space, address, sel, mask, width, count, value)
        counted[space] += width * count * address.size
        machine.progress = True

    return run


def _is_raw(operand: Operand) -> bool:
    """Whether an operand is a register (its bits are stored) rather than a literal."""
    return type(operand).__name__ in ("Name", "Component")


def convert_address(d: Decoder, ins: Instruction) -> Step:
    """cvta: between a space's addresses and generic ones."""
    kind = ins.opcode[-1]
    window = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(d.space(ins), 0)
    source, out = d.source(ins, 1, kind), d.target(ins, 0, kind)
    if window == 0:
        return copy(out, source)
    if kind != "u64":
        raise d.error(ins, "generic addresses have 64 bits here")
    shift = np.uint64((1 << 64) - window if "to" in ins.opcode else window)
    return elementwise(of1(lambda a: a + shift), out, [source])


def is_space(d: Decoder, ins: Instruction) -> Step:
    """isspacep: which window a generic address lies in."""
    space = d.space(ins)
    source, out = d.source(ins, 1, "u64"), d.target(ins, 0, "pred")
    base = {"shared": SHARED_WINDOW, "local": LOCAL_WINDOW}.get(space)
    if base is None:
        return elementwise(of1(lambda a: a >= np.uint64(GLOBAL_BASE)), out, [source])
    return elementwise(of1(lambda a: (a >= base) & (a < base + WINDOW)), out, [source])


def map_address(d: Decoder, ins: Instruction) -> Step:
    """mapa: the same variable in another block of the cluster (9.7.9.24)."""
    kind = ins.opcode[-1]
    a, rank = d.source(ins, 1, kind), d.source(ins, 2, "u32")
    low = (1 << CLUSTER_SHIFT) - 1
    high = 0 if d.space(ins) == "shared" else SHARED_WINDOW

    def function(address: Any, rank: Any) -> Any:
        of = address.dtype.type
        return (address & of(low)) + (rank.astype(address.dtype) << of(CLUSTER_SHIFT)) + of(high)

    return elementwise(function, d.target(ins, 0, kind), [a, rank])


def cluster_rank(d: Decoder, ins: Instruction) -> Step:
    """getctarank: which block of the cluster an address lies in."""
    kind = ins.opcode[-1]

    def function(address: Any) -> Any:
        return ((address >> address.dtype.type(CLUSTER_SHIFT)) & address.dtype.type(0xFF)).astype(
            np.uint32
        )

    return elementwise(function, d.target(ins, 0, "u32"), [d.source(ins, 1, kind)])


def _policy(d: Decoder, ins: Instruction) -> Step:
    out = d.target(ins, 0, "u64")

    def run(sel: Any, mask: Mask) -> None:
        if out is not None:
            store(out, sel, mask, 0)

    return run


def _hint(d: Decoder, ins: Instruction) -> Step:
    return nothing


TABLE: dict[str, Decode] = {
    "ld": load,
    "ldu": load,
    "st": save,
    "cvta": convert_address,
    "isspacep": is_space,
    "mapa": map_address,
    "getctarank": cluster_rank,
    "prefetch": _hint,
    "prefetchu": _hint,
    "discard": _hint,
    "applypriority": _hint,
    "createpolicy": _policy,
}
