"""Which mma and mma.sp there are, on which target, and how each is computed.

Shapes and targets: PTX ISA 9.7.14.5.14 and 9.7.14.6.3, checked against ptxas 13.2 where the two
differ (docs/arithmetic.md lists the differences).
"""

from __future__ import annotations

from fragir.emulator.tensor_cores.arithmetic import Architecture, Fused, TargetName, fused
from fragir.emulator.tensor_cores.compute import (
    Compute,
    Double,
    ElementPlace,
    EmulatedFp8,
    FusedMma,
    IntegerProducts,
    Scaled,
    ScaledGroups,
    SoftwareM8N8K4,
)
from fragir.emulator.tensor_cores.fragment import Fragment, fragment, packed_column
from fragir.emulator.tensor_cores.maps import Formula, formula
from fragir.emulator.tensor_cores.mma import Mma, MmaPlan
from fragir.emulator.tensor_cores.mnemonic import Mnemonic
from fragir.emulator.tensor_cores.sparse import Metadata, granularity
from fragir.emulator.tensor_cores.types import OperandRegisters, Settings

_FP8 = ("e4m3", "e5m2")
_F8F6F4 = (*_FP8, "e3m2", "e2m3", "e2m1")
_INT8 = ("s8", "u8")
_INT4 = ("s4", "u4")

# Element class -> shape -> (lowest sm, accumulators as (D, C)).
_HALF = (("f16", "f16"), ("f32", "f32"))
_SINGLE = (("f32", "f32"),)
_S32 = (("s32", "s32"),)
_F64 = (("f64", "f64"),)
_DENSE: dict[str, dict[str, tuple[int, tuple[tuple[str, str], ...]]]] = {
    "f16": {
        "m8n8k4": (70, (*_HALF, ("f32", "f16"))),
        "m16n8k8": (75, _HALF),
        "m16n8k16": (80, _HALF),
    },
    "bf16": {"m16n8k8": (80, _SINGLE), "m16n8k16": (80, _SINGLE)},
    "tf32": {"m16n8k4": (80, _SINGLE), "m16n8k8": (80, _SINGLE)},
    "f64": {
        "m8n8k4": (80, _F64),
        "m16n8k4": (90, _F64),
        "m16n8k8": (90, _F64),
        "m16n8k16": (90, _F64),
    },
    "int8": {"m8n8k16": (75, _S32), "m16n8k16": (80, _S32), "m16n8k32": (80, _S32)},
    "int4": {"m8n8k32": (75, _S32), "m16n8k32": (80, _S32), "m16n8k64": (80, _S32)},
    "b1": {"m8n8k128": (75, _S32), "m16n8k128": (80, _S32), "m16n8k256": (80, _S32)},
    "fp8": {"m16n8k16": (89, _HALF), "m16n8k32": (89, _HALF)},
}
# ... and the sparsity selectors.
_SPARSE: dict[str, dict[str, tuple[int, tuple[tuple[str, str], ...], int]]] = {
    "f16": {"m16n8k16": (80, _HALF, 4), "m16n8k32": (80, _HALF, 2)},
    "bf16": {"m16n8k16": (80, _SINGLE, 4), "m16n8k32": (80, _SINGLE, 2)},
    "tf32": {"m16n8k8": (80, _SINGLE, 4), "m16n8k16": (80, _SINGLE, 2)},
    "int8": {"m16n8k32": (80, _S32, 2), "m16n8k64": (80, _S32, 1)},
    "int4": {"m16n8k64": (80, _S32, 2), "m16n8k128": (80, _S32, 1)},
    "fp8": {"m16n8k64": (89, _HALF, 1)},
}
# .kind -> shape (dense), shape (sparse), scale vectors and their types.
_SCALED: dict[str, tuple[str, str, dict[str, tuple[str, ...]], str | None]] = {
    "mxf8f6f4": ("m16n8k32", "m16n8k64", {"1X": ("ue8m0",)}, "1X"),
    "mxf4": ("m16n8k64", "m16n8k128", {"2X": ("ue8m0",)}, "2X"),
    "mxf4nvf4": ("m16n8k64", "m16n8k128", {"2X": ("ue8m0",), "4X": ("ue4m3", "ue8m0")}, None),
}
_BITS = {"f64": 64, "tf32": 32, "f16": 16, "bf16": 16, "s4": 4, "u4": 4, "b1": 1}


def _class(words: Mnemonic, a: str, b: str) -> str:
    for name, members in (("int8", _INT8), ("int4", _INT4), ("fp8", _FP8)):
        if a in members and b in members:
            return name
    if a == b and a in _DENSE:
        return a
    raise words.refuse(f"there is no product of {a} and {b}")


def build_mma(words: Mnemonic, target: TargetName, settings: Settings) -> Mma:
    """Raises FragirError where PTX has no such instruction or the target does not run it."""
    expected = 5 if "block_scale" in words.flags else 4
    if len(words.types) != expected or not words.shape or len(words.layouts) != 2:
        raise words.refuse(f"expected a shape, two layouts and {expected} types")
    d, a = words.types[:2]
    sparse = "sp" in words.flags
    selectors = 0
    if words.kind is not None:
        selectors = _check_kind(words, target, sparse)
    else:
        selectors = _check_plain(words, target, sparse)
    if words.layouts != ("row", "col") and not (words.shape == "m8n8k4" and a == "f16"):
        raise words.refuse("this shape exists only as .row.col")
    if "satfinite" in words.flags and d != "s32":
        raise words.refuse(".satfinite is for s32 results only")

    packed = words.kind in ("mxf4", "mxf4nvf4") or a in _INT4
    container = 4 if packed else _BITS.get(a, 8)
    fragments, metadata = _fragments(words, container, packed)
    compute = _compute(words, target, settings)
    blocks = 0
    if words.kind in _SCALED:
        blocks = int((words.vector or _SCALED[words.kind][3] or "1X")[0])
    plan = MmaPlan(*fragments, compute=compute, metadata=metadata, scale_blocks=blocks)
    left, right, addend, result = (OperandRegisters(each.count, each.width) for each in fragments)
    return Mma(
        words.opcode,
        target.name,
        left,
        right,
        addend,
        result,
        plan,
        OperandRegisters(1) if sparse else None,
        tuple(range(selectors)),
        bool(blocks),
    )


def _check_plain(words: Mnemonic, target: TargetName, sparse: bool) -> int:
    """Legality of forms without `.kind`; returns how many sparsity selectors there are."""
    d, a, b, c = words.types[:4]
    name = _class(words, a, b)
    selectors = 0
    if sparse:
        if words.shape not in _SPARSE.get(name, {}):
            raise words.refuse(f"sparse mma of {a} has no shape {words.shape}")
        least, accumulators, selectors = _SPARSE[name][words.shape]
        newest = target.number >= 120 and target.suffix != ""
        if name == "fp8" and d == "f16" and not (words.ordered and newest):
            raise words.refuse("f16 results need sp::ordered_metadata and sm_120a")
    else:
        if words.shape not in _DENSE[name]:
            raise words.refuse(f"mma of {a} has no shape {words.shape}")
        least, accumulators = _DENSE[name][words.shape]
    if (d, c) not in accumulators:
        raise words.refuse(f"products of {a} are not added to C of {c} giving D of {d}")
    if target.number < least:
        raise words.refuse(f"target {target.name} does not have it", f"it needs sm_{least}")
    if "block_scale" in words.flags:
        raise words.refuse("block_scale needs a .kind")
    if (name == "b1") != ("popc" in words.flags):
        raise words.refuse(".popc and one of .xor and .and belong to b1, and only there")
    if name == "b1":
        if ("xor" in words.flags) == ("and" in words.flags):
            raise words.refuse("one of .xor and .and is needed")
        if "and" in words.flags and target.number < 80:
            raise words.refuse(f"target {target.name} does not have it", ".and needs sm_80")
    if words.flags & {"rn", "rz", "rm", "rp"} and name != "f64":
        raise words.refuse("a rounding is for f64 only")
    return selectors


def _check_kind(words: Mnemonic, target: TargetName, sparse: bool) -> int:
    """Legality of `.kind::*`; returns how many sparsity selectors there are."""
    d, a, b, c = words.types[:4]
    native = target.architecture is Architecture.RTX_BLACKWELL and target.suffix != ""
    if words.kind == "f8f6f4":
        # ptxas also takes fp8 on sm_100a and its kin, and m16n8k16, which the ISA does not list.
        emulated = target.architecture is Architecture.BLACKWELL and target.suffix != ""
        shapes = ("m16n8k64",) if sparse else ("m16n8k32", "m16n8k16")
        if a not in _F8F6F4 or b not in _F8F6F4 or words.shape not in shapes or (d, c) not in _HALF:
            raise words.refuse("kind::f8f6f4 has no such form")
        if not native and not (emulated and a in _FP8 and b in _FP8 and (d == "f32" or not sparse)):
            raise words.refuse(f"target {target.name} does not have it", "it needs sm_120a")
        if words.shape == "m16n8k16" and not (a in _FP8 and b in _FP8):
            raise words.refuse("m16n8k16 is for e4m3 and e5m2")
    elif words.kind in _SCALED:
        dense_shape, sparse_shape, vectors, default = _SCALED[words.kind]
        elements = _F8F6F4 if words.kind == "mxf8f6f4" else ("e2m1",)
        vector = words.vector or default
        if words.shape != (sparse_shape if sparse else dense_shape) or (d, c) != ("f32", "f32"):
            raise words.refuse(f"kind::{words.kind} has no such shape or accumulator")
        if a not in elements or b not in elements:
            raise words.refuse(f"kind::{words.kind} does not multiply {a} and {b}")
        if "block_scale" not in words.flags or words.types[4] not in vectors.get(vector or "", ()):
            raise words.refuse("block_scale, scale_vec and the scale type do not fit the kind")
        if not native or (sparse and words.kind != "mxf8f6f4" and target.suffix != "a"):
            raise words.refuse(f"target {target.name} does not have it", "it needs sm_120a")
    else:
        raise words.refuse(f"there is no kind::{words.kind}")
    if sparse and not words.ordered:
        raise words.refuse("sparse forms with a .kind need sp::ordered_metadata")
    return 1 if sparse else 0


def _fragments(
    words: Mnemonic, bits: int, packed: bool
) -> tuple[tuple[Fragment, Fragment, Fragment, Fragment], Metadata | None]:
    d, a, b, c = words.types[:4]
    m, n, k = words.m, words.n, words.k
    width = 64 if a == "f64" else 32
    half = {"f16": 16}
    part = "SPARSE" if "sp" in words.flags else "DENSE"
    if words.shape == "m8n8k4" and a == "f16":

        def four(
            operand: str, names: tuple[str, ...], extents: tuple[int, ...], size: int
        ) -> Fragment:
            return fragment(formula("DENSE", "m8n8k4", "f16", operand), names, extents, size)

        layout_a, layout_b = words.layouts
        return (
            four(f"a.{layout_a}", ("col", "product", "row"), (4, 4, 8), 16),
            four(f"b.{layout_b}", ("row", "product", "col"), (4, 4, 8), 16),
            four(f"c.{c}", ("product", "row", "col"), (4, 8, 8), half.get(c, 32)),
            four(f"c.{d}", ("product", "row", "col"), (4, 8, 8), half.get(d, 32)),
        ), None
    right = fragment(formula(part, words.shape, b, "b"), ("row", "col"), (k, n), bits, width=width)
    accumulators = _accumulator(words, a)
    results = (
        fragment(accumulators, ("row", "col"), (m, n), half.get(c, width), width=width),
        fragment(accumulators, ("row", "col"), (m, n), half.get(d, width), width=width),
    )
    if part == "DENSE":
        form = formula(part, words.shape, a, "a")
        left = fragment(form, ("col", "row"), (k, m), bits, width=width)
        return (left, right, *results), None
    form = formula(part, words.shape, a, "a")
    columns = packed_column(form, 32 // bits)
    left = Fragment([columns, form.evaluate("row")], (k // 2, m), bits)
    metadata = Metadata(formula(part, words.shape, a, "e"), granularity(a, packed), m, k)
    return (left, right, *results), metadata


def _accumulator(words: Mnemonic, element: str) -> Formula:
    """All m16n8 accumulators are alike, and so are all m8n8; sparse pages refer to dense ones."""
    if "sp" in words.flags:
        return formula("DENSE", "m16n8k16", "f16", "c")
    return formula("DENSE", words.shape, element, "c")


def _compute(words: Mnemonic, target: TargetName, settings: Settings) -> Compute:
    d, a, b, c = words.types[:4]
    architecture = target.architecture
    if d == "s32":
        return IntegerProducts(a, b, clamp="satfinite" in words.flags, xor="xor" in words.flags)
    if d == "f64":
        for rounding in ("rz", "rm", "rp"):
            if rounding in words.flags:
                return Double(rounding)
        return Double("rn")
    if a == "f16" and words.shape == "m8n8k4":
        if target.number >= 80:
            return SoftwareM8N8K4(half_addend=c == "f16", half_result=d == "f16")
        how = fused(architecture, "f16", d, volta=True)
        return FusedMma(
            ElementPlace("f16"), ElementPlace("f16"), how, half_addend=d == "f32" and c == "f16"
        )
    if words.kind in ("mxf4", "mxf4nvf4"):
        return ScaledGroups(words.types[4])
    left, right = (_element(each) for each in (a, b))
    if words.kind == "mxf8f6f4":
        return Scaled(left, right, fused(architecture, "e4m3", "f32"))
    if a in _FP8 and architecture in (Architecture.HOPPER, Architecture.BLACKWELL):
        how: Fused = fused(architecture, "f16", d)
        return EmulatedFp8(left, right, how, chained=settings.ptxas >= (12, 8) or d == "f16")
    return FusedMma(left, right, fused(architecture, a, d))


def _element(name: str) -> ElementPlace:
    """Where a type of at most 8 bits lies in its byte (PTX ISA 9.7.14.2): e2m1 in bits 5:2."""
    if name == "e2m1":
        return ElementPlace(name, shift=2, mask=0xF)
    return ElementPlace(name, mask=0x3F) if name in ("e3m2", "e2m3") else ElementPlace(name)
