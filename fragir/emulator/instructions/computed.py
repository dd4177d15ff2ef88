"""Instructions whose rows say what they compute (`values/`): their steps and their part in runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.emulator.instructions.alu import elementwise, nothing, seen_as, typed_step
from fragir.emulator.instructions.straight_rows import (
    NoStraightCode,
    StraightDecoder,
    destination_or_none,
    elements,
)
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, store
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.native.straight import COMBINE, COMPARE
from fragir.emulator.numbers.types import dtype_of, width_of
from fragir.emulator.values.arrays import amounts, definition, dtype
from fragir.emulator.values.c import expression, immediate, widen
from fragir.emulator.values.language import INTEGERS, Computation, value_of
from fragir.emulator.values.roads import short_road

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.opcodes.row import Found
    from fragir.ptx.tree import Instruction


def value(found: Found, count: int) -> Computation:
    """What an instruction of that row computes, by the row's text."""
    row, line = found.opcode, found.line
    assert row is not None
    assert line is not None
    assert isinstance(row.decode, str)
    return value_of(row.decode, line, found.words, count, row.known)


def decode(d: Decoder, ins: Instruction, found: Found) -> Step:
    """The step of an instruction."""
    what = value(found, d.count(ins))
    wider = found.opcode is not None and found.opcode.wider
    outs = _outs(d, ins, what, wider)
    rows: list[Row] = []
    for operand in what.operands.values():
        if operand.place < 0:
            rows.append(d.carry_row())
        else:
            rows.append(d.source(ins, operand.place, operand.kind, wider))
    immediates: list[int] = []
    for index in what.immediates.values():
        literal = d.literal(ins, index)
        if literal is None:
            raise d.error(ins, f"{ins.mnemonic} needs an immediate as operand {index + 1}")
        immediates.append(literal)
    names = tuple(name for name, row in outs.items() if row is not None)
    if not names:
        return nothing
    if names != ("d",) or len(outs) > 1 or (what.elements > 1 and what.kinds["d"] == "pred"):
        return _several(what, outs, names, rows, tuple(immediates))
    out = outs["d"]
    assert out is not None
    narrow = out.dtype.itemsize == dtype(what.results["d"].type).itemsize or what.elements > 1
    quick = short_road(what) if narrow else None
    if quick is not None and not immediates:
        if quick.into is not None:
            step = typed_step(quick.function, out, rows, quick.into, quick.given)
            if step is not None:
                return step
        elif quick.given is not None:
            views = [seen_as(row, quick.given) for row in rows]
            seen = [row for row in views if row is not None]
            if len(seen) == len(rows):
                return elementwise(quick.function, out, seen)
    function = definition(what, ("d",), tuple(immediates), _constants(d, ins, what))
    return elementwise(function, out, rows)


def _constants(d: Decoder, ins: Instruction, what: Computation) -> tuple[tuple[str, int], ...]:
    """Literals by which something is shifted, as bits: what is made of them need not be made."""
    found: list[tuple[str, int]] = []
    for name in amounts(what):
        literal = d.literal(ins, what.operands[name].place)
        if literal is not None:
            found.append((name, literal))
    return tuple(found)


def _outs(d: Decoder, ins: Instruction, what: Computation, wider: bool) -> dict[str, Row | None]:
    """The rows of the results that the instruction has."""
    first, second = d.pair(d.operand(ins, 0))
    kind = what.kinds["d"]
    outs = {"d": d.wide_target(ins, first, kind) if wider else d.target_of(ins, first, kind)}
    for name in what.results:
        if name == "cc" and "cc" in what.words:
            outs[name] = d.carry_row()
        elif name not in ("d", "cc") and second is not None:
            outs[name] = d.target_of(ins, second, what.kinds[name])
    return outs


def _several(
    what: Computation,
    outs: dict[str, Row | None],
    names: tuple[str, ...],
    rows: list[Row],
    immediates: tuple[int, ...],
) -> Step:
    """Several results, or predicates of both elements of a packed type."""
    packed = what.elements if what.kinds["d"] == "pred" else 1
    if packed > 1:  # p of the low elements, q of the high ones
        names, targets = ("d",), [outs["d"], outs.get("q")]
    else:
        targets = [outs[name] for name in names]
    function = definition(what, names, immediates)

    def run(sel: Select, mask: Mask) -> None:
        found = function(*[row[sel] for row in rows])
        results = (found,) if len(names) == 1 else found
        if packed > 1:
            results = [found[:, at::packed] for at in range(len(targets))]
        for out, result in zip(targets, results, strict=True):
            if out is not None:
                store(out, sel, mask, result)

    return run


# -- straight runs ---------------------------------------------------------------------------------


def encode(d: StraightDecoder, ins: Instruction, found: Found) -> list[StraightCode]:
    """An instruction as an operation of the compiled library."""
    what = value(found, d.count(ins))
    assert found.opcode is not None
    first, second = d.pair(d.operand(ins, 0))
    combine = next((COMBINE[w] for w in what.words if w in COMBINE), 0)
    if "q" in what.results and (second is not None or combine):
        return _comparison(d, ins, found, combine)
    if second is not None or len(what.immediates) > 1:
        raise NoStraightCode
    if found.opcode.wider:
        return _conversion(d, ins, what)
    function = expression(what)
    if function is None:
        raise NoStraightCode
    operands = [d.destination_at(ins, o.place, o.kind) for o in what.operands.values()]
    number = immediate(what.words)
    for index in what.immediates.values():
        number = (d.literal(ins, index) or 0) & 0xFF
    out = d.out_of(ins, first, what.kinds["d"])
    return elements(function.text, out, operands, number, what.elements)


def _comparison(
    d: StraightDecoder, ins: Instruction, found: Found, combine: int
) -> list[StraightCode]:
    """setp with both its results, or a predicate that they are combined with."""
    words = tuple(w for w in found.words if w not in COMBINE)
    what = value(found._replace(words=words), 3)
    function = expression(what)
    if function is None or what.elements > 1:
        raise NoStraightCode
    first, second = d.pair(d.operand(ins, 0))
    operands = [d.destination_at(ins, o.place, o.kind) for o in what.operands.values()]
    if combine:
        operands.append(d.destination_at(ins, 3, "pred"))
    p = destination_or_none(d.out_of(ins, first, "pred"))
    q = destination_or_none(None if second is None else d.out_of(ins, second, "pred"))
    return [StraightCode(function.text, operands, p, q, kind=COMPARE, combine=combine)]


def _conversion(d: StraightDecoder, ins: Instruction, what: Computation) -> list[StraightCode]:
    """cvt, whose registers may be wider than its types."""
    (operand,) = what.operands.values()
    into, kind = what.results["d"].type, operand.kind
    row = d.source(ins, 1, kind, True)
    out = d.wide_target(ins, d.operand(ins, 0), what.kinds["d"])
    if out is None:
        return []
    function = expression(what)
    register, width, given_width = out.dtype.itemsize * 8, width_of(into), width_of(kind)
    if into in INTEGERS and operand.type in INTEGERS and "sat" not in what.words:
        # The low bits, or all and the sign; then extended to the register by the sign of `into`.
        if width < register:
            if width < given_width:
                if 0 in row.strides:
                    raise NoStraightCode
                row, kind = row.view(dtype_of(into))[:, :: given_width // width], into
            elif width == given_width:
                kind = into
            elif kind[0] == "s" and into[0] == "u":
                raise NoStraightCode
        function = widen(register, kind)
    elif register != width:
        raise NoStraightCode
    if function is None:
        raise NoStraightCode
    source = d.direct(d.operand(ins, 1), kind) or d.read(row)
    to = d.wide_out(ins, d.operand(ins, 0), what.kinds["d"])
    return elements(function.text, to, [source], immediate(what.words))
