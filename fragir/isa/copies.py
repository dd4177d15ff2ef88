"""`ldmatrix`, `stmatrix`, `movmatrix`: matrix copies of one warp.

PTX ISA 9.2, sections 9.7.14.5.15 to 9.7.14.5.17.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from fragir.isa import fragments, target_rows
from fragir.isa.fragments import fragment
from fragir.isa.model import Form, Instruction, Lowering, Operand, Registers, Types
from fragir.isa.spelling import aliases, mnemonic, mnk
from fragir.isa.target_rows import BLACKWELL

_PACKED = ("b8x16.b6x16_p32", "b8x16.b4x16_p64")


class CopyRule(NamedTuple):
    """One shape of one copy: `nums` matrices at a time, whether transposing is legal."""

    family: str
    shape: str
    nums: tuple[int, ...]
    trans: tuple[bool, ...]
    types: tuple[str, ...]
    version: str
    targets: tuple[str, ...]


_ANY, _MUST, _NEVER = (False, True), (True,), (False,)
_sm75, _sm90 = target_rows.at_least("sm_75"), target_rows.at_least("sm_90")

RULES: tuple[CopyRule, ...] = (
    CopyRule("ldmatrix", "m8n8", (1, 2, 4), _ANY, ("b16",), "6.5", _sm75),
    CopyRule("ldmatrix", "m16n16", (1, 2), _MUST, ("b8", *_PACKED), "8.6", BLACKWELL),
    CopyRule("ldmatrix", "m8n16", (1, 2, 4), _NEVER, _PACKED, "8.6", BLACKWELL),
    CopyRule("stmatrix", "m8n8", (1, 2, 4), _ANY, ("b16",), "7.8", _sm90),
    CopyRule("stmatrix", "m16n8", (1, 2, 4), _MUST, ("b8",), "8.6", BLACKWELL),
    CopyRule("movmatrix", "m8n8", (1,), _MUST, ("b16",), "7.8", _sm75),
)


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form of the three families, or of one, or those of this type."""
    for rule in RULES:
        if family not in ("", rule.family):
            continue
        for num in rule.nums:
            for trans in rule.trans:
                for element in rule.types:
                    if a not in ("", element):
                        continue
                    flags = {"trans"} if trans else set[str]()
                    if rule.family != "movmatrix":
                        flags.add(f"x{num}")
                    yield Form(rule.family, rule.shape, (), (element,), frozenset(flags))


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    trans = "trans" in form.flags
    rest = form.flags - {"trans"}
    for rule in RULES:
        if (rule.family, rule.shape) != (form.family, form.shape) or trans not in rule.trans:
            continue
        if len(form.types) != 1 or form.types[0] not in rule.types or form.layouts:
            continue
        for num in rule.nums:
            if rest == (frozenset((f"x{num}",)) if rule.family != "movmatrix" else frozenset()):
                return _instruction(form, rule, num, trans)
    return None


def _instruction(form: Form, rule: CopyRule, num: int, trans: bool) -> Instruction:
    available = target_rows.versions(rule.targets, rule.version)
    lowering: dict[str, Lowering] = dict.fromkeys(available, "native")
    element = form.types[0]
    m, n, _ = mnk(form.shape)
    operands = (
        _movmatrix_operands()
        if form.family == "movmatrix"
        else _matrix_operands(form.shape, num, trans, element)
    )
    return Instruction(
        mnemonic=mnemonic(form),
        family=form.family,
        shape=(m, n, num),
        types=Types(a=element, d=element),
        operands={operand.name: operand for operand in operands},
        targets=available,
        lowering=lowering,
        form=form,
        aliases=aliases(form),
    )


def _movmatrix_operands() -> tuple[Operand, ...]:
    """movmatrix: D's lanes hold the transposed A; both maps give A's (row, col)."""
    return (
        fragment("a", "b16", fragments.dense_a(8, 8, 2), (8, 8)),
        fragment("d", "b16", fragments.movmatrix_layout(), (8, 8)),
    )


def _matrix_operands(shape: str, num: int, trans: bool, element: str) -> tuple[Operand, ...]:
    rows, cols = stored_shape(shape)
    registers = fragments.matrix_copy(shape, num, trans)
    addresses = Operand(
        "addresses",
        Registers(1, "b64", "address", ("b32", "u32", "s32", "b64", "u64", "s64")),
        "row address",
        fragments.matrix_addresses(rows, num),
        (rows, 1, num),
        cols,
    )
    return fragment("registers", element, registers, (rows, cols, num)), addresses


def stored_shape(shape: str) -> tuple[int, int]:
    """Rows and columns of one matrix as it is stored: stmatrix m16n8 stores 8 rows of 16."""
    m, n, _ = mnk(shape)
    return (n, m) if shape == "m16n8" else (m, n)
