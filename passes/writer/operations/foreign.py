"""Functions with heads of their own: ends, directives, and registers without a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.dialects import ptx
from fragir.dialects.ptx.statement import filled_operands, opcode_and_operands
from fragir.errors import FragirError
from fragir.passes.writer.text import KernelText

if TYPE_CHECKING:
    from xdsl.dialects import cf


def undefined(w: KernelText, op: ptx.UndefinedOp) -> None:
    w.define(op.value)


def end(w: KernelText, op: ptx.EndOp) -> None:
    w.emit(op.word.data)


def text(w: KernelText, op: ptx.TextOp) -> None:
    w.lines.append(f"    {op.text.data}")


def branch(w: KernelText, op: cf.BranchOp) -> None:
    """The blocks around it write the copies and the branch."""


def conditional_branch(w: KernelText, op: cf.ConditionalBranchOp) -> None:
    """The same."""


# -- instruction -----------------------------------------------------------------------------------
# Any instruction, as its statement says it.


def instruction(w: KernelText, op: ptx.InstructionOp) -> None:
    opcode, operands = opcode_and_operands(op.statement.data)
    inputs = [w.in_registers(value) for value in op.inputs]
    guard = None
    if op.predicate is not None:
        guard = w.register(op.predicate)
    elif op.inverse is not None:
        guard = f"!{w.register(op.inverse)}"
    used = {name for names in inputs for name in names} | {(guard or "").lstrip("!")}
    if op.before:
        _begin(w, op, used, collective=opcode.startswith("wgmma"))
    else:
        for result in op.outputs:
            w.define(result)
    results = [w.names[result] for result in op.outputs]
    w.emit(opcode, *filled_operands(operands, [*results, *inputs]), guard=guard)


def _begin(w: KernelText, op: ptx.InstructionOp, used: set[str], *, collective: bool) -> None:
    """Registers for the results that hold what they are to hold before."""
    moves: list[tuple[str, str, int]] = []
    for before, result in zip(op.before, op.outputs, strict=True):
        if w.reserved.get(result) == w.names[before]:
            w.define(result)
            continue
        over = w.take_over(before, op)
        if over is not None and result not in w.reserved:
            w.own(result, over)
            continue
        if collective:
            raise FragirError(
                "the accumulator is read or kept elsewhere while the product is under way, and "
                "copying it then is undefined",
                hint="use the result of the wait, and ptx.copy before wgmma.fence",
            )
        if used.intersection(w.reserved.get(result, ())):
            del w.reserved[result]  # the loop copies it
        width = ptx.register_bits(result.type)
        names = w.define(result)
        moves += [(t, s, width) for t, s in zip(names, w.names[before], strict=True)]
    w.parallel_move(moves)
