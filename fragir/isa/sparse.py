"""`mma.sp` and `mma.sp::ordered_metadata` (PTX ISA 9.2, section 9.7.14.6).

A holds the kept elements, 16 x K/2; B is dense; E has a nibble for every chunk of a row of A:
bits 1:0 name the first kept element (or pair) of the chunk, bits 3:2 the second.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from fragir.isa import fragments, target_rows
from fragir.isa.dense import F8F6F4, narrow_pairs
from fragir.isa.fragments import (
    Steps,
    container,
    fragment,
    lowering_of,
    scale_blocks,
    scale_operands,
    word,
)
from fragir.isa.model import (
    FLOAT8,
    FLOAT8_6_4,
    Form,
    Instruction,
    Lowering,
    Operand,
    Signature,
    Types,
    pairs,
    per_register,
)
from fragir.isa.spelling import aliases, mnemonic, mnk
from fragir.isa.target_rows import BLACKWELL, BLACKWELL_CONSUMER
from fragir.ptx.targets import targets_with

ORDERED = "mma.sp::ordered_metadata"


class SparseRule(NamedTuple):
    """A shape and types; how the lanes spread metadata; the PTX version of either family.

    `plain` is None where `mma.sp` without ordered metadata is refused.
    """

    shape: str
    types: tuple[Signature, ...]
    spread: int
    selectors: tuple[int, ...]
    plain: str | None
    ordered: str
    targets: tuple[str, ...]
    required: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()


_sm80, _sm89 = target_rows.at_least("sm_80"), target_rows.at_least("sm_89")
_EXACT = targets_with("consumer", "a")
_SAT = ("satfinite",)
_HALF: tuple[Signature, ...] = (
    ("f16", "f16", "f16", "f16"),
    ("f32", "f16", "f16", "f32"),
    ("f32", "bf16", "bf16", "f32"),
)
_TF32: tuple[Signature, ...] = (("f32", "tf32", "tf32", "f32"),)
_INT8, _INT4 = pairs(("s8", "u8"), ("s32",)), pairs(("s4", "u4"), ("s32",))
_MX = tuple((*t, "ue8m0") for t in pairs(FLOAT8_6_4, ("f32",)))
_NARROW = narrow_pairs(("f16", "f32"))
_FP4: Signature = ("f32", "e2m1", "e2m1", "f32")
_E8, _E4 = ((*_FP4, "ue8m0"),), ((*_FP4, "ue4m3"),)
_MX8 = frozenset(("kind::mxf8f6f4", "block_scale", "scale_vec::1X"))
_MX4 = frozenset(("kind::mxf4", "block_scale", "scale_vec::2X"))
_NV2 = frozenset(("kind::mxf4nvf4", "block_scale", "scale_vec::2X"))
_NV4 = frozenset(("kind::mxf4nvf4", "block_scale", "scale_vec::4X"))
_FOUR, _TWO, _ONE = (0, 1, 2, 3), (0, 1), (0,)

# mma.sp sorts the metadata of some types on newer machines
_SORTED_FIRST: Steps = ((100, "emulated"),)

RULES: tuple[SparseRule, ...] = (
    SparseRule("m16n8k16", _HALF, 1, _FOUR, "7.1", "8.5", _sm80),
    SparseRule("m16n8k32", _HALF, 2, _TWO, "7.1", "8.5", _sm80),
    SparseRule("m16n8k8", _TF32, 1, _FOUR, "7.1", "8.5", _sm80),
    SparseRule("m16n8k16", _TF32, 2, _TWO, "7.1", "8.5", _sm80),
    SparseRule("m16n8k32", _INT8, 3, _TWO, "7.1", "8.5", _sm80, optional=_SAT),
    SparseRule("m16n8k64", _INT8, 4, _ONE, "7.1", "8.5", _sm80, optional=_SAT),
    SparseRule("m16n8k64", _INT4, 3, _TWO, "7.1", "8.5", _sm80, optional=_SAT),
    SparseRule("m16n8k128", _INT4, 4, _ONE, "7.1", "8.5", _sm80, optional=_SAT),
    SparseRule("m16n8k64", pairs(FLOAT8, ("f32",)), 4, _ONE, "8.4", "8.5", _sm89),
    SparseRule("m16n8k64", pairs(FLOAT8, ("f16",)), 4, _ONE, None, "8.7", BLACKWELL_CONSUMER),
    SparseRule("m16n8k64", pairs(FLOAT8, ("f32",)), 4, _ONE, None, "8.6", BLACKWELL, F8F6F4),
    SparseRule(
        "m16n8k64", pairs(FLOAT8, ("f16",)), 4, _ONE, None, "8.7", BLACKWELL_CONSUMER, F8F6F4
    ),
    SparseRule("m16n8k64", _NARROW, 4, _ONE, None, "8.7", BLACKWELL_CONSUMER, F8F6F4),
    SparseRule("m16n8k64", _MX, 4, _ONE, None, "8.7", BLACKWELL_CONSUMER, _MX8),
    SparseRule("m16n8k128", _E8, 4, _ONE, None, "8.7", _EXACT, _MX4),
    SparseRule("m16n8k128", _E8, 4, _ONE, None, "8.7", _EXACT, _NV2),
    SparseRule("m16n8k128", _E4, 4, _ONE, None, "8.7", _EXACT, _NV4),
    SparseRule("m16n8k128", _E8, 4, _ONE, None, "9.1", _EXACT, _NV4),
)


@cache
def index() -> dict[tuple[str, Signature, frozenset[str]], SparseRule]:
    """(shape, types, required flags) -> its rule."""
    return {(rule.shape, t, rule.required): rule for rule in RULES for t in rule.types}


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form of both families, or of one, or those with this type of A."""
    families = (family,) if family else ("mma.sp", ORDERED)
    for family, rule in product(families, RULES):
        if family == "mma.sp" and rule.plain is None:
            continue
        for types in rule.types:
            if a not in ("", types[1]):
                continue
            for extra in ((), *((flag,) for flag in rule.optional)):
                flags = rule.required | frozenset(extra)
                yield Form(family, rule.shape, ("row", "col"), types, flags)


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    optional = form.flags & frozenset(_SAT)
    rule = index().get((form.shape, form.types, form.flags - optional))
    if rule is None or not optional <= frozenset(rule.optional) or form.layouts != ("row", "col"):
        return None
    version = rule.ordered if form.family == ORDERED else rule.plain
    if version is None:
        return None
    available = target_rows.versions(rule.targets, version)
    lowering: dict[str, Lowering] = {target: _lowering(form, target) for target in available}
    d, a, b, c, *scale = form.types
    return Instruction(
        mnemonic=mnemonic(form),
        family=form.family,
        shape=mnk(form.shape),
        types=Types(a, b, c, d, *scale),
        operands=_operands(form, rule),
        targets=available,
        lowering=lowering,
        form=form,
        selectors=rule.selectors,
        tail=("selector",),
        aliases=aliases(form),
    )


def chunk_of(form: Form) -> int:
    """Columns of A that one nibble of metadata describes: 2, 4 or 8."""
    a = form.types[1]
    if a == "tf32":
        return 2
    pairwise = a in ("s4", "u4") or container(form, a) == 4
    return 8 if pairwise else 4


def _operands(form: Form, rule: SparseRule) -> dict[str, Operand]:
    m, n, k = mnk(form.shape)
    d, a, b, c, *scale = form.types
    bits_a, bits_b = container(form, a), container(form, b)
    layout_a = fragments.dense_a(m, k // 2, per_register(a, bits_a))
    layout_b = fragments.dense_b(k, per_register(b, bits_b))
    layout_d = fragments.accumulator(m, n)
    metadata, chunk = fragments.metadata(rule.spread, 0), chunk_of(form)
    operands = [
        fragment("a", a, layout_a, (m, k // 2), bits_a),
        fragment("b", b, layout_b, (k, n), bits_b),
        fragment("c", c, layout_d, (m, n)),
        fragment("d", d, layout_d, (m, n)),
        word("e", "metadata", "b4", metadata, (m, k // chunk), chunk),
    ]
    if scale:
        operands += scale_operands(scale_blocks(form), scale[0], k)
    return {operand.name: operand for operand in operands}


def _lowering(form: Form, target: str) -> Lowering:
    if form.family == "mma.sp" and form.types[1] in ("f16", "s8", "u8"):
        return lowering_of(_SORTED_FIRST, form, target)
    return lowering_of((), form, target)
