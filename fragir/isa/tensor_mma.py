"""`tcgen05.mma` and its `.sp`, `.ws` and `.ws.sp` forms (PTX ISA 9.4, section 9.7.18.10).

A mnemonic says kind, CTAs, block scales and whether rows of A are shifted; M, N and types stand in
the instruction descriptor (`fragir.isa.descriptors`), and what of them is legal in
`fragir.isa.tensor_products`. Hints to collectors change no value: `resolve` takes them, `forms` has
none. Targets and versions are those of `fragir.isa.versions`.

>>> from fragir.isa import lookup
>>> mma = lookup("tcgen05.mma.cta_group::2.kind::f16.collector::a::fill")
>>> mma.shape, mma.types.a, mma.variants
((256, 256, 16), 'f16|bf16', ('descriptor', 'tensor-memory'))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product

from fragir.isa.fragments import descriptor
from fragir.isa.model import Form, Instruction, Lowering, Operand, RegisterClass, Registers, Types
from fragir.isa.spelling import mnemonic
from fragir.isa.tensor_products import ADDITIONS, KINDS, depths, shape_rules

#: The vector sizes of a block-scaled kind; "" is left out.
VECTORS: dict[str, tuple[str, ...]] = {
    "mxf8f6f4": ("", "scale_vec::1X", "block32"),
    "mxf4": ("", "scale_vec::2X", "block32"),
    "mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
_TABLES = ("f8f6f4", "mxf8f6f4")  # kinds whose B may be looked up
_LOOKED_UP, _SHIFTED = "decompress::lut::b", "ashift"
_NAMES = {
    (ws, sparse): "tcgen05.mma" + ".ws" * ws + ".sp" * sparse
    for ws, sparse in product((False, True), repeat=2)
}
_ADDRESS = ("b32",)  # no .u32 there, unlike in tcgen05.ld
_WORDS = ("b32", "u32", "s32")


def forms(family: str = "", a: str = "") -> Iterator[Form]:
    """Every canonical form without hints; of one family, or with this type of A."""
    for (ws, sparse), name in _NAMES.items():
        if family not in ("", name):
            continue
        for kind, group in product(KINDS, (1, 2)):
            if a not in ("", *KINDS[kind].types):
                continue
            if any(shape_rules(kind, group=group, ws=ws, sparse=sparse)):
                for flags in _flags(kind, ws, sparse):
                    words = {f"cta_group::{group}", f"kind::{kind}", *flags}
                    yield Form(name, "", (), (), frozenset(words))


def _flags(kind: str, ws: bool, sparse: bool) -> Iterator[tuple[str, ...]]:
    """What a kind's mnemonic may have besides."""
    ways: list[tuple[str, ...]] = [()]
    if kind in _TABLES and not ws and not sparse:
        ways.append((_LOOKED_UP,))
    if kind in VECTORS:
        for way, vector in product(ways, VECTORS[kind]):
            yield ("block_scale", *way, *filter(None, (vector,)))
        return
    yield from ways
    if not ws:
        yield (_SHIFTED,)


@cache
def _legal() -> frozenset[Form]:
    return frozenset(forms())


def resolve(form: Form) -> Instruction | None:
    """The instruction of a canonical form, with or without hints; None where there is none."""
    hints = frozenset(flag for flag in form.flags if flag.startswith("collector::"))
    if form._replace(flags=form.flags - hints) not in _legal():
        return None
    from fragir.isa.versions import lowest_version, requirement  # which ask this table

    name = mnemonic(form)
    if hints and not _is_legal(name):
        return None
    available = {target: lowest_version(name, target) for target in requirement(name).targets}
    lowering: dict[str, Lowering] = dict.fromkeys(available, "native")
    return _instruction(form, name, available, lowering)


def _is_legal(name: str) -> bool:
    from fragir.ptx.opcodes.row import NOT_EMULATED
    from fragir.ptx.opcodes.table import OPCODES

    found = OPCODES.find(tuple(name.split(".")))
    return not found.problem or NOT_EMULATED in found.problem


def product_of(form: Form) -> tuple[str, int, bool, bool]:
    """Kind, CTAs, whether it is `.ws` and whether sparse."""
    words = dict(flag.split("::", 1) for flag in form.flags if "::" in flag)
    parts = form.family.split(".")
    return words["kind"], int(words["cta_group"]), "ws" in parts, "sp" in parts


def legal_products(instruction: Instruction) -> dict[str, list[object]]:
    """The types of A (and B), D and scales, K, and M with its N, that the descriptor may say.

    `beside`: what it may say on some of the instruction's targets alone.
    """
    kind, group, ws, sparse = product_of(instruction.form)
    found, by_m = KINDS[kind], dict[int, set[int]]()
    for rule in shape_rules(kind, group=group, ws=ws, sparse=sparse):
        for m in rule.m:
            by_m.setdefault(m, set()).update(rule.n)
    return {
        "a": [*found.types],
        "d": [*found.results],
        "scale": [*filter(None, instruction.types.scale.split("|"))],
        "k": [depths(kind, sparse=sparse)[0]],
        "mn": [{"m": m, "n": sorted(n)} for m, n in sorted(by_m.items())],
        "beside": [] if sparse or ws else [*_beside(kind, instruction.targets)],
    }


def _beside(kind: str, targets: Mapping[str, str]) -> Iterator[dict[str, object]]:
    for addition in ADDITIONS:
        on = [target for target in addition.targets if target in targets]
        if kind in addition.kinds and on:
            types = {"a": [*addition.types]} if addition.types else {}
            what = {"k": addition.k} if addition.k else {"scale": addition.scale}
            yield {**what, **types, "targets": on}


def _instruction(
    form: Form, name: str, available: dict[str, str], lowering: dict[str, Lowering]
) -> Instruction:
    kind, group, ws, sparse = product_of(form)
    rules = list(shape_rules(kind, group=group, ws=ws, sparse=sparse))
    most = max(max(r.m) for r in rules), max(max(r.n) for r in rules)
    (k, *_), types = depths(kind, sparse=sparse), KINDS[kind]
    element, result = "|".join(types.types), "|".join(types.results)
    scales = "|".join(dict.fromkeys(t for each in types.scales.values() for t in each))
    return Instruction(
        mnemonic=name,
        family=form.family,
        shape=(*most, k),
        types=Types(element, element, result, result, scales),
        operands=_operands(form, (*most, k)),
        targets=available,
        lowering=lowering,
        form=form,
        tail=_tail(kind, ws),
        variants=("tensor-memory",) if _SHIFTED in form.flags else ("descriptor", "tensor-memory"),
    )


def _tail(kind: str, ws: bool) -> tuple[str, ...]:
    """What stands behind the instruction descriptor, or may: the names of the ISA."""
    if kind in VECTORS:
        return ("enable-input-d",)
    if ws:
        return ("enable-input-d", "zero-column-mask-desc")
    scale = ("scale-input-d",) if kind in ("f16", "tf32") else ()
    return ("disable-output-lane", "enable-input-d", *scale)


def _operands(form: Form, shape: tuple[int, int, int]) -> dict[str, Operand]:
    """Of the largest shape; of several types the first, or the widest of D, stands for all."""
    kind, *_ = product_of(form)
    found = KINDS[kind]
    element, result = next(iter(found.types)), found.results[-1]
    m, n, k = shape
    sparse = form.family.endswith(".sp")
    held = k // 2 if sparse else k  # of A in one row
    operands = [
        _in_tensor_memory("d", result, (m, n)),
        _in_tensor_memory("a", element, (m, held)),
        descriptor("a-shared", element, (m, held)),
        descriptor("b", element, (k, n)),
    ]
    if sparse:
        operands.append(_in_tensor_memory("e", "b4", (m, k // 4)))
    if _LOOKED_UP in form.flags:
        operands.append(_in_tensor_memory("table", "b32", ()))
    operands.append(_word("idesc", 1, "instruction", _WORDS))
    if "block_scale" in form.flags:
        scale = next(iter(found.scales.values()))[0]
        operands += [_in_tensor_memory(name, scale, ()) for name in ("sfa", "sfb")]
    return {operand.name: operand for operand in operands}


def _in_tensor_memory(name: str, element: str, shape: tuple[int, ...]) -> Operand:
    """A matrix in tensor memory, named by the 32-bit address of its first lane and column."""
    return Operand(name, Registers(1, "b32", "address", _ADDRESS), element, None, shape)


def _word(name: str, count: int, cls: RegisterClass, accepts: tuple[str, ...]) -> Operand:
    return Operand(name, Registers(count, "b32", cls, accepts), "", None, ())
