"""`wgmma` and `wgmma.sp`: products of a warpgroup, sm_90a (PTX ISA 9.2, section 9.7.15.5)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from fragir.isa import fragments
from fragir.isa.build import descriptor, fragment, mnk, word
from fragir.isa.elements import FLOAT8, Signature, pairs, per_register
from fragir.isa.model import Form, Instruction, Operand, Types
from fragir.isa.spelling import aliases, mnemonic

TARGET = "sm_90a"
EVERY_N = tuple(range(8, 257, 8))
# One-byte integers and b1 skip the odd multiples of 8 from 40 on.
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


class Row(NamedTuple):
    """Types (D, A, B) that share K, N, versions and the operands after scale-d."""

    types: tuple[Signature, ...]
    k: int
    n: tuple[int, ...]
    tail: tuple[str, ...] = ()
    version: str = "8.0"
    sparse_version: str | None = "8.2"
    flags: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()


NEGATE = ("imm-scale-a", "imm-scale-b")
TRANSPOSE = ("imm-trans-a", "imm-trans-b")
_SAT = ("satfinite",)
_HALF = (("f16", "f16", "f16"), ("f32", "f16", "f16"), ("f32", "bf16", "bf16"))
_FP8 = tuple((d, a, b) for d, a, b, _ in pairs(FLOAT8, ("f16", "f32")))
_SAME = (("s32", "s8", "s8"), ("s32", "u8", "u8"))
_MIXED = (("s32", "s8", "u8"), ("s32", "u8", "s8"))
_POPC = frozenset(("and", "popc"))

ROWS: tuple[Row, ...] = (
    Row(_HALF, 16, EVERY_N, (*NEGATE, *TRANSPOSE)),
    Row((("f32", "tf32", "tf32"),), 8, EVERY_N, NEGATE),
    Row(_FP8, 32, EVERY_N, NEGATE),
    Row(_SAME, 32, INTEGER_N, optional=_SAT),
    Row(_MIXED, 32, INTEGER_N, version="8.4", sparse_version="8.4", optional=_SAT),
    Row((("s32", "b1", "b1"),), 256, INTEGER_N, sparse_version=None, flags=_POPC),
)


@cache
def index() -> dict[Signature, Row]:
    """(D, A, B) -> its row."""
    return {types: row for row in ROWS for types in row.types}


def forms() -> Iterator[Form]:
    """Every canonical form of both families."""
    for sparse, row in product((False, True), ROWS):
        if sparse and row.sparse_version is None:
            continue
        k = row.k * (2 if sparse else 1)
        for types, n in product(row.types, row.n):
            for extra in ((), *((flag,) for flag in row.optional)):
                family = "wgmma.sp" if sparse else "wgmma"
                yield Form(family, f"m64n{n}k{k}", (), types, row.flags | frozenset(extra))


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    row = index().get(form.types)
    if row is None or form.layouts or not form.shape.startswith("m64n"):
        return None
    sparse = form.family == "wgmma.sp"
    version = row.sparse_version if sparse else row.version
    m, n, k = mnk(form.shape)
    if version is None or m != 64 or n not in row.n or k != row.k * (2 if sparse else 1):
        return None
    if not row.flags <= form.flags or not form.flags - row.flags <= frozenset(row.optional):
        return None
    d, a, b = form.types
    return Instruction(
        mnemonic=mnemonic(form),
        family=form.family,
        shape=(m, n, k),
        types=Types(a, b, d, d),
        operands=_operands(form, row, n, k),
        targets={TARGET: version},
        lowering={TARGET: "native"},
        form=form,
        selectors=_selectors(a) if sparse else (),
        tail=("scale-d", *row.tail),
        variants=("registers", "descriptor"),
        aliases=aliases(form),
    )


def _selectors(a: str) -> tuple[int, ...]:
    return (0, 1) if a in ("f16", "bf16", "tf32") else (0,)


def _operands(form: Form, row: Row, n: int, k: int) -> dict[str, Operand]:
    d, a, b = form.types
    # Registers hold the packed A; its layout is that of the dense instruction.
    layout_a = fragments.dense_a(64, row.k, per_register(a), warps=4)
    layout_d = fragments.accumulator(64, n, warps=4)
    operands = [
        fragment("a", a, layout_a, (64, row.k)),
        descriptor("a-shared", a, (64, row.k)),
        descriptor("b", b, (k, n)),
        fragment("c", d, layout_d, (64, n)),
        fragment("d", d, layout_d, (64, n)),
    ]
    if form.family == "wgmma.sp":
        narrow = per_register(a) == 4
        chunk = 2 if a == "tf32" else 4
        metadata = fragments.metadata(4 if narrow else 2, 0, warps=4)
        operands.append(word("e", "metadata", "b4", metadata, (64, k // chunk), chunk))
    return {operand.name: operand for operand in operands}
