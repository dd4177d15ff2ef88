"""`wgmma` and `wgmma.sp`: products of a warpgroup, sm_90a (PTX ISA 9.2, section 9.7.15.5)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from fragir.isa import fragments
from fragir.isa.fragments import descriptor, fragment, word
from fragir.isa.model import (
    FLOAT8,
    Form,
    Instruction,
    Operand,
    Signature,
    Types,
    pairs,
    per_register,
)
from fragir.isa.spelling import aliases, mnemonic, mnk

TARGET = "sm_90a"
EVERY_N = tuple(range(8, 257, 8))
# One-byte integers and b1 skip the odd multiples of 8 from 40 on.
INTEGER_N = (8, 16, 24, *range(32, 257, 16))


class WarpgroupRule(NamedTuple):
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

RULES: tuple[WarpgroupRule, ...] = (
    WarpgroupRule(_HALF, 16, EVERY_N, (*NEGATE, *TRANSPOSE)),
    WarpgroupRule((("f32", "tf32", "tf32"),), 8, EVERY_N, NEGATE),
    WarpgroupRule(_FP8, 32, EVERY_N, NEGATE),
    WarpgroupRule(_SAME, 32, INTEGER_N, optional=_SAT),
    WarpgroupRule(_MIXED, 32, INTEGER_N, version="8.4", sparse_version="8.4", optional=_SAT),
    WarpgroupRule((("s32", "b1", "b1"),), 256, INTEGER_N, sparse_version=None, flags=_POPC),
)


@cache
def index() -> dict[Signature, WarpgroupRule]:
    """(D, A, B) -> its rule."""
    return {types: rule for rule in RULES for types in rule.types}


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form of both families, or of one, or those with this type of A."""
    for sparse, rule in product((False, True), RULES):
        if family not in ("", "wgmma.sp" if sparse else "wgmma"):
            continue
        if sparse and rule.sparse_version is None:
            continue
        k = rule.k * (2 if sparse else 1)
        for types, n in product(rule.types, rule.n):
            if a not in ("", types[1]):
                continue
            for extra in ((), *((flag,) for flag in rule.optional)):
                name = "wgmma.sp" if sparse else "wgmma"
                yield Form(name, f"m64n{n}k{k}", (), types, rule.flags | frozenset(extra))


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    rule = index().get(form.types)
    if rule is None or form.layouts or not form.shape.startswith("m64n"):
        return None
    sparse = form.family == "wgmma.sp"
    version = rule.sparse_version if sparse else rule.version
    m, n, k = mnk(form.shape)
    if version is None or m != 64 or n not in rule.n or k != rule.k * (2 if sparse else 1):
        return None
    if not rule.flags <= form.flags or not form.flags - rule.flags <= frozenset(rule.optional):
        return None
    d, a, b = form.types
    return Instruction(
        mnemonic=mnemonic(form),
        family=form.family,
        shape=(m, n, k),
        types=Types(a, b, d, d),
        operands=_operands(form, rule, n, k),
        targets={TARGET: version},
        lowering={TARGET: "native"},
        form=form,
        selectors=_selectors(a) if sparse else (),
        tail=("scale-d", *rule.tail),
        variants=("registers", "descriptor"),
        aliases=aliases(form),
    )


def _selectors(a: str) -> tuple[int, ...]:
    return (0, 1) if a in ("f16", "bf16", "tf32") else (0,)


def _operands(form: Form, rule: WarpgroupRule, n: int, k: int) -> dict[str, Operand]:
    d, a, b = form.types
    # Registers hold the packed A; its layout is that of the dense instruction.
    layout_a = fragments.dense_a(64, rule.k, per_register(a), warps=4)
    layout_d = fragments.accumulator(64, n, warps=4)
    operands = [
        fragment("a", a, layout_a, (64, rule.k)),
        descriptor("a-shared", a, (64, rule.k)),
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
