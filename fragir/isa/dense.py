"""`mma.sync`: dense matrix products of one warp (PTX ISA 9.2, sections 9.7.14.5 and 9.7.14.3).

The table has one row for a group of shapes and types with the same registers rule, PTX version
and targets; asked of ptxas 13.5 (12.9 for sm_70 and sm_72), which has the last word.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from fragir.errors import short_text
from fragir.isa import fragments, target_rows
from fragir.isa.fragments import (
    Steps,
    container,
    fragment,
    lowering_of,
    scale_blocks,
    scale_operands,
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

EMPTY = "ptxas accepts it from sm_80 on and emits no instruction: D is left as it was"


class DenseRule(NamedTuple):
    """Shapes and types that share versions and targets.

    `lowering` says what ptxas makes of them where that does not follow from the type of A.
    """

    shapes: tuple[str, ...]
    types: tuple[Signature, ...]
    version: str
    targets: tuple[str, ...]
    required: frozenset[str] = frozenset()
    optional: tuple[str, ...] = ()
    refused: str | None = None
    lowering: Steps = ()

    def __repr__(self) -> str:
        shapes, kinds = ", ".join(self.shapes), len(self.types)
        return short_text(
            f"<{shapes} of {kinds} types, PTX {self.version}, from {self.targets[0]} on>"
        )


def _f(d: str, a: str, b: str = "", c: str = "") -> Signature:
    return d, a, b or a, c or d


def narrow_pairs(d: tuple[str, ...]) -> tuple[Signature, ...]:
    """Every signature of the 8-, 6- and 4-bit floats in which A or B has less than 8 bits."""
    every = pairs(FLOAT8_6_4, d)
    return tuple(t for t in every if not (t[1] in FLOAT8 and t[2] in FLOAT8))


F16 = (_f("f16", "f16"), _f("f32", "f16"))
ROUNDINGS = ("rz", "rm", "rp")
XOR, AND = frozenset(("xor", "popc")), frozenset(("and", "popc"))
_sm80, _sm89, _sm90 = (target_rows.at_least(t) for t in ("sm_80", "sm_89", "sm_90"))
_sm70, _sm75 = target_rows.at_least("sm_70"), target_rows.at_least("sm_75")


def _scale_flags(kind: str, blocks: int) -> frozenset[str]:
    return frozenset((f"kind::{kind}", "block_scale", f"scale_vec::{blocks}X"))


F8F6F4 = frozenset(("kind::f8f6f4",))
MX_TYPES = tuple((*t, "ue8m0") for t in pairs(FLOAT8_6_4, ("f32",)))
MXF4_TYPES = (("f32", "e2m1", "e2m1", "f32", "ue8m0"),)
NVF4_TYPES = (("f32", "e2m1", "e2m1", "f32", "ue4m3"),)

_QUAD_F16 = (*F16, _f("f32", "f16", c="f16"))
_F64 = (_f("f64", "f64"),)
_INT8 = pairs(("s8", "u8"), ("s32",))
_INT4 = pairs(("s4", "u4"), ("s32",))
_B1 = (_f("s32", "b1"),)

_QUAD: Steps = ((80, "emulated"),)
_LARGE_F64 = ("m16n8k4", "m16n8k8", "m16n8k16")
_SPLIT: Steps = ((100, "split"),)
_XOR: Steps = ((90, "split"), (100, "emulated"))
_AND: Steps = ((100, "emulated"),)

RULES: tuple[DenseRule, ...] = (
    DenseRule(("m8n8k4",), _QUAD_F16, "6.4", _sm70, lowering=_QUAD),
    DenseRule(("m8n8k4",), (_f("f32", "bf16"), _f("f32", "tf32")), "7.0", _sm80, refused=EMPTY),
    DenseRule(("m16n8k8",), F16, "6.5", _sm75),
    DenseRule(("m16n8k16",), F16, "7.0", _sm80),
    DenseRule(("m16n8k8", "m16n8k16"), (_f("f32", "bf16"),), "7.0", _sm80),
    DenseRule(("m16n8k4", "m16n8k8"), (_f("f32", "tf32"),), "7.0", _sm80),
    DenseRule(("m8n8k4",), _F64, "7.0", _sm80, optional=ROUNDINGS),
    DenseRule(_LARGE_F64, _F64, "7.8", _sm90, optional=ROUNDINGS, lowering=_SPLIT),
    DenseRule(("m8n8k16",), _INT8, "6.5", _sm75, optional=("satfinite",)),
    DenseRule(("m16n8k16", "m16n8k32"), _INT8, "7.0", _sm80, optional=("satfinite",)),
    DenseRule(("m8n8k32",), _INT4, "6.5", _sm75, optional=("satfinite",)),
    DenseRule(("m16n8k32", "m16n8k64"), _INT4, "7.0", _sm80, optional=("satfinite",)),
    DenseRule(("m8n8k128",), _B1, "7.0", _sm75, XOR, lowering=_XOR),
    DenseRule(("m8n8k128",), _B1, "7.1", _sm80, AND, lowering=_AND),
    DenseRule(("m16n8k128", "m16n8k256"), _B1, "7.0", _sm80, XOR, lowering=_XOR),
    DenseRule(("m16n8k128", "m16n8k256"), _B1, "7.1", _sm80, AND, lowering=_AND),
    DenseRule(("m16n8k32",), pairs(FLOAT8, ("f32",)), "8.4", _sm89),
    DenseRule(("m16n8k32",), pairs(FLOAT8, ("f16",)), "8.7", _sm89),
    DenseRule(("m16n8k16",), pairs(FLOAT8, ("f16", "f32")), "8.7", _sm89),
    # The two fp8 types with the kind spelt out: wider than the ISA's page has it, emulated on
    # the server parts.
    DenseRule(("m16n8k32",), pairs(FLOAT8, ("f32",)), "8.6", BLACKWELL, F8F6F4),
    DenseRule(("m16n8k32",), pairs(FLOAT8, ("f16",)), "8.7", BLACKWELL, F8F6F4),
    DenseRule(("m16n8k16",), pairs(FLOAT8, ("f16", "f32")), "8.7", BLACKWELL, F8F6F4),
    DenseRule(("m16n8k32",), narrow_pairs(("f16", "f32")), "8.7", BLACKWELL_CONSUMER, F8F6F4),
    DenseRule(("m16n8k32",), MX_TYPES, "8.7", BLACKWELL_CONSUMER, _scale_flags("mxf8f6f4", 1)),
    DenseRule(("m16n8k64",), MXF4_TYPES, "8.7", BLACKWELL_CONSUMER, _scale_flags("mxf4", 2)),
    DenseRule(("m16n8k64",), MXF4_TYPES, "8.7", BLACKWELL_CONSUMER, _scale_flags("mxf4nvf4", 2)),
    DenseRule(("m16n8k64",), NVF4_TYPES, "8.7", BLACKWELL_CONSUMER, _scale_flags("mxf4nvf4", 4)),
    DenseRule(("m16n8k64",), MXF4_TYPES, "9.1", BLACKWELL_CONSUMER, _scale_flags("mxf4nvf4", 4)),
)

LAYOUTS = (("row", "col"), ("row", "row"), ("col", "row"), ("col", "col"))


def layouts_of(shape: str, types: Signature) -> tuple[tuple[str, str], ...]:
    """The legal (A, B) storage orders: all four for the f16-like m8n8k4, else row.col."""
    return LAYOUTS if shape == "m8n8k4" and types[1] != "f64" else LAYOUTS[:1]


@cache
def index() -> dict[tuple[str, Signature, frozenset[str]], DenseRule]:
    """(shape, types, required flags) -> its rule."""
    return {(s, t, rule.required): rule for rule in RULES for s in rule.shapes for t in rule.types}


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form of the family, or those with this type of A."""
    for rule in RULES:
        yield from _forms_of(rule, a)


def _forms_of(rule: DenseRule, a: str = "") -> Iterator[Form]:
    for shape, types in product(rule.shapes, rule.types):
        if a not in ("", types[1]):
            continue
        for layouts in layouts_of(shape, types):
            for extra in ((), *((flag,) for flag in rule.optional)):
                yield Form("mma", shape, layouts, types, rule.required | frozenset(extra))


def instructions(rule: DenseRule) -> Iterator[Instruction]:
    """The instructions of a rule, of one's own too: `fragir.isa.register` adds each."""
    return (_instruction(form, rule) for form in _forms_of(rule))


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form; None where there is none."""
    for extra in (frozenset[str](), *(frozenset((f,)) for f in ("satfinite", *ROUNDINGS))):
        if not extra <= form.flags:
            continue
        rule = index().get((form.shape, form.types, form.flags - extra))
        if rule is None or not extra <= frozenset(rule.optional):
            continue
        if form.layouts in layouts_of(form.shape, form.types):
            return _instruction(form, rule)
    return None


def _instruction(form: Form, rule: DenseRule) -> Instruction:
    shape = mnk(form.shape)
    available = target_rows.versions(rule.targets, rule.version)
    lowering: dict[str, Lowering] = (
        {}
        if rule.refused
        else {target: lowering_of(rule.lowering, form, target) for target in available}
    )
    d, a, b, c, *scale = form.types
    return Instruction(
        mnemonic=mnemonic(form),
        family="mma",
        shape=shape,
        types=Types(a, b, c, d, *scale),
        operands=_operands(form, shape),
        targets=available,
        lowering=lowering,
        form=form,
        refused=rule.refused,
        aliases=aliases(form),
    )


def _operands(form: Form, shape: tuple[int, int, int]) -> dict[str, Operand]:
    m, n, k = shape
    d, a, b, c, *scale = form.types
    if form.shape == "m8n8k4" and a != "f64":
        return _quad_pair_operands(form)
    bits_a, bits_b = container(form, a), container(form, b)
    layout_a = fragments.dense_a(m, k, per_register(a, bits_a))
    layout_b = fragments.dense_b(k, per_register(b, bits_b))
    layout_d = fragments.accumulator(m, n)
    operands = [
        fragment("a", a, layout_a, (m, k), bits_a),
        fragment("b", b, layout_b, (k, n), bits_b),
        fragment("c", c, layout_d, (m, n)),
        fragment("d", d, layout_d, (m, n)),
    ]
    if scale:
        operands += scale_operands(scale_blocks(form), scale[0], k)
    return {operand.name: operand for operand in operands}


def _quad_pair_operands(form: Form) -> dict[str, Operand]:
    d, a, b, c = form.types
    order_a, order_b = form.layouts
    container_a = 16 if a != "tf32" else 0
    operands = (
        fragment("a", a, fragments.quad_pair_a(order_a), (8, 4, 4), container_a),
        fragment("b", b, fragments.quad_pair_b(order_b), (4, 8, 4), container_a),
        fragment("c", c, fragments.quad_pair_accumulator(c), (8, 8, 4)),
        fragment("d", d, fragments.quad_pair_accumulator(d), (8, 8, 4)),
    )
    return {operand.name: operand for operand in operands}
