"""Masks that are one instruction with what takes them: `(a & m) ^ b` is a `lop3`.

But not where all that is asked of it is whether it is zero: ptxas 12.9 to 13.5 crashes at a `lop3`
whose only reader is a `setp.eq` with 0 that guards something, on every target. It makes one
instruction of the two that stand there instead.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, OpResult

from fragir.dialects import ptx
from fragir.dialects.constants import constant_of
from fragir.passes.writer.sharing import dies_at, is_alias
from fragir.passes.writer.text import KernelText

# truth tables of (a, m, b), made of 0xF0, 0xCC and 0xAA (PTX ISA 9.2, section 9.7.8.6)
_TABLES = {
    "arith.xori": 0xF0 & 0xCC ^ 0xAA,
    "arith.ori": 0xF0 & 0xCC | 0xAA,
    ptx.FlipOp.name: 0xF0 & 0xCC ^ 0xAA,
}


def is_part(op: arith.AndIOp) -> bool:
    """Whether a mask is written with the only operation that reads it."""
    user = op.result.get_user_of_unique_use()
    return user is not None and _part(user) is op


def write_with_mask(w: KernelText, op: Operation) -> bool:
    """Writes an operation with a mask that is part of it; False where none is."""
    mask = _part(op)
    if mask is None:
        return False
    other = next(value for value in op.operands if value is not mask.result)
    names = [w.one(value) for value in (*mask.operands, other)]
    (result,) = w.define(op.results[0])
    w.emit("lop3.b32", result, *names, f"0x{_TABLES[op.name]:02X}")
    return True


def _part(user: Operation) -> arith.AndIOp | None:
    """The first operand that is a mask of an index, if the other one is in a register too.

    What is masked must still be in its register where the mask's user stands.
    """
    if user.name not in _TABLES or len(user.operands) != 2 or _is_held_against_zero(user):
        return None
    for value, other in (user.operands, reversed(user.operands)):
        mask = value.owner
        if (
            isinstance(mask, arith.AndIOp)
            and isinstance(value.type, IndexType)
            and not isinstance(other.owner, arith.ConstantOp)
            and dies_at(value, user)
            and all(_stays(operand) for operand in mask.operands)
        ):
            return mask
    return None


def _is_held_against_zero(op: Operation) -> bool:
    return all(
        isinstance(use.operation, arith.CmpiOp)
        and any(constant_of(operand) == 0 for operand in use.operation.operands)
        for use in op.results[0].uses
    )


def _stays(value: object) -> bool:
    """Whether nothing overwrites a value's register: a loop's variable may be."""
    return isinstance(value, OpResult) and not is_alias(value.op) and not value.op.regions
