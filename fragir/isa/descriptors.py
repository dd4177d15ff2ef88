"""Matrix and instruction descriptors of wgmma and tcgen05: build, take apart, explain.

PTX ISA 9.2, sections 9.7.15.5.1.2 (wgmma), 9.7.16.4.1 (tcgen05 shared memory) and 9.7.16.4.2
(tcgen05 instruction). Fields are given in their own units: addresses and offsets in bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from fragir.errors import FragirError
from fragir.isa.canonical import CanonicalLayout, Major, element_form
from fragir.isa.model import FLOAT6_4
from fragir.isa.operand_tiles import MODES, check_major, mode_name
from fragir.isa.tensor_products import KINDS as _KINDS
from fragir.isa.tensor_products import (
    WIDE_KINDS,
    WIDE_TARGETS,
    check_shape,
    check_target,
    kind_of,
    shape_notes,
    shape_rules,
)
from fragir.isa.versions import has, requirement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fragir.layout import SharedLayout

# What a target with either kind of descriptors has.
WGMMA, _TCGEN05 = "wgmma.fence", "tcgen05.cp"

# Code -> name of the mode (`fragir.isa.operand_tiles.MODES`).
_WGMMA_SWIZZLES = {0: "0", 1: "128", 2: "64", 3: "32"}
_TCGEN05_SWIZZLES = {0: "0", 1: "128/32", 2: "128", 4: "64", 6: "32"}


class Field(NamedTuple):
    """Bits `high`:`low` of a word."""

    name: str
    high: int
    low: int
    meaning: str = ""
    unit: int = 1
    """What the field counts in, of M and N."""

    def of(self, word: int) -> int:
        return word >> self.low & (1 << self.high - self.low + 1) - 1

    def put(self, value: int) -> int:
        if value < 0 or value >> (self.high - self.low + 1):
            raise FragirError(
                f"{value} does not fit in the {self.high - self.low + 1} bits of {self.name}"
            )
        return value << self.low


_OFFSETS = (
    Field("start", 13, 0, "start address, 16-byte units"),
    Field("leading", 29, 16, "leading dimension byte offset (LBO), 16-byte units"),
    Field("stride", 45, 32, "stride dimension byte offset (SBO), 16-byte units"),
)
_BASE = Field("base_offset", 51, 49, "(start of the swizzle pattern >> 7) & 7")
WGMMA_FIELDS = (*_OFFSETS, _BASE, Field("swizzle", 63, 62, "0 none, 1 128 B, 2 64 B, 3 32 B"))
TCGEN05_FIELDS = (
    *_OFFSETS,
    Field("version", 48, 46, "always 1"),
    _BASE,
    Field("leading_mode", 52, 52, "1: LBO is an absolute address (sm_103a, K = 96)"),
    Field("swizzle", 63, 61, "0 none, 1 128 B with 32-byte atoms, 2 128 B, 4 64 B, 6 32 B"),
)
_SCALED = ("start", "leading", "stride")


class MatrixDescriptor(NamedTuple):
    """The 64-bit descriptor of a matrix in shared memory, taken apart.

    `start`, `leading` and `stride` in bytes (multiples of 16, below 2^18), `swizzle` as encoded.
    `reserved` has bits that no field covers; a sound descriptor has none.
    """

    target: str
    start: int
    leading: int
    stride: int
    swizzle: int
    base_offset: int = 0
    leading_mode: int = 0
    version: int = 0
    reserved: int = 0

    def __repr__(self) -> str:
        try:
            return f"<descriptor {self.word:#018x} of {self.target}>"
        except FragirError as error:
            return f"<no descriptor of {self.target}: {error.message}>"

    @property
    def fields(self) -> tuple[Field, ...]:
        return _fields(self.target)

    @property
    def word(self) -> int:
        """The descriptor itself."""
        word = self.reserved
        for field in self.fields:
            value = getattr(self, field.name)
            if field.name in _SCALED:
                if value % 16 or not 0 <= value < 1 << 18:
                    raise FragirError(
                        f"{field.name} of a descriptor is a multiple of 16 bytes below 2^18, "
                        f"not {value}"
                    )
                value >>= 4
            word |= field.put(value)
        return word

    @property
    def mode(self) -> str:
        """The swizzle mode, as `fragir.isa.operand_tiles.MODES` calls it; an error for a code that
        means nothing."""
        modes = _WGMMA_SWIZZLES if has(WGMMA, self.target) else _TCGEN05_SWIZZLES
        text = modes.get(self.swizzle)
        if text is None:
            raise FragirError(f"swizzle mode {self.swizzle} of tcgen05 means nothing")
        return text

    @property
    def swizzle_bytes(self) -> int:
        """0, 32, 64 or 128; an error for a code that means nothing."""
        return MODES[self.mode][0]

    def faults(self) -> Iterator[str]:
        """Why it means nothing; nothing where it is sound."""
        if self.reserved:
            yield f"reserved bits are set: {self.reserved:#x}"
        if has(WGMMA, self.target):
            return
        if self.swizzle not in _TCGEN05_SWIZZLES:
            yield f"swizzle mode {self.swizzle} means nothing"
        if self.version != 1:
            yield f"version (bits 48:46) is {self.version}, but must be 1"

    def notes(self, major: Major = "k") -> tuple[str, ...]:
        """What is to be said of it all the same: who refuses what is legal."""
        if not has(WGMMA, self.target) and self.swizzle == 1 and major == "k":
            return (
                "K-major with 32-byte atoms is legal by the PTX ISA, but CuTe refuses it: it has "
                "them MN-major alone",
            )
        return ()

    def canonical(
        self, element: str, major: Major = "k", *, padded: bool = False
    ) -> CanonicalLayout:
        """Where it says that elements (mn, k) of a type lie, before the start is added.

        `e2m1x2` and `padded` elements as `fragir.isa.canonical.element_form` has them. Errors for a
        descriptor that means nothing, and a type that cannot be of this major-ness and mode.
        """
        for fault in self.faults():
            raise FragirError(f"{self.word:#018x} is no descriptor of {self.target}: {fault}")
        if self.leading_mode:
            raise FragirError(
                "the leading offset of this descriptor is an absolute address: rows of 48 bytes in "
                "two parts (K = 96), which no layout of one matrix says"
            )
        tcgen05 = not has(WGMMA, self.target)
        check_major(element, major, self.mode, tcgen05=tcgen05)
        swizzle, atom = MODES[self.mode]
        size, bits, per_chunk = element_form(element, padded=padded)
        return CanonicalLayout(
            major, swizzle, size, self.leading, self.stride, atom, bits, per_chunk
        )

    def layout(
        self, element: str, major: Major, mn: int, k: int, *, padded: bool = False
    ) -> SharedLayout:
        """The map of `mn` x `k` elements to bytes (bits, of elements below a byte).

        Addresses are absolute. Errors as of `canonical`, and where the extents are not whole core
        matrices or the base offset is not 0: then `places` has the addresses.
        """
        found = self.canonical(element, major, padded=padded)
        if self.base_offset and found.swizzle:
            raise FragirError(
                f"with the base offset {self.base_offset} the pattern of the swizzle begins within "
                "its own period, which is no layout followed by a swizzle",
                hint="`MatrixDescriptor.places` has the addresses",
            )
        return found.shared(mn, k, self.start)

    def places(
        self, element: str, major: Major, mn: int, k: int, *, padded: bool = False
    ) -> NDArray[np.int64]:
        """int64 [mn, k]: the address of every element, as `layout`, with the base offset."""
        found = self.canonical(element, major, padded=padded)
        return found.places(mn, k, self.start, self.base_offset)

    def advanced(self, layout: CanonicalLayout, steps: int = 1) -> MatrixDescriptor:
        """The descriptor `steps` steps of K further (32 bytes of K each)."""
        if layout.major == "k" and layout.swizzle and steps * 32 >= layout.swizzle:
            raise FragirError(
                f"{steps} steps of 32 bytes leave the {layout.swizzle}-byte swizzle width",
                hint="start from the descriptor of the next swizzle atom",
            )
        return self._replace(start=self.start + steps * layout.advance())

    def explain(self) -> str:
        """One line a field: bits, value, what it says."""
        lines = [f"{self.word:#018x} on {self.target}"]
        for field in self.fields:
            value = getattr(self, field.name)
            shown = f"{value} bytes" if field.name in _SCALED else str(value)
            if field.name == "leading" and value == 0:
                shown += ", which is no stride: unused"
            lines.append(
                f"  {field.high:>2}:{field.low:<2} {field.name} = {shown}  ({field.meaning})"
            )
        return "\n".join([*lines, *(f"  {fault}" for fault in self.faults())])


def _fields(target: str) -> tuple[Field, ...]:
    if has(WGMMA, target):
        return WGMMA_FIELDS
    if has(_TCGEN05, target):
        return TCGEN05_FIELDS
    first, other = requirement(WGMMA).lowest_target, requirement(_TCGEN05).lowest_target
    raise FragirError(
        f"{target} has no matrix descriptors", hint=f"{first} (wgmma), {other}, ... (tcgen05)"
    )


def decode(word: int, target: str) -> MatrixDescriptor:
    """Take a 64-bit matrix descriptor apart."""
    if word < 0 or word >> 64:
        raise FragirError(f"{word:#x} is no 64-bit descriptor")
    values: dict[str, int] = {}
    rest = word
    for field in _fields(target):
        values[field.name] = field.of(word) << (4 if field.name in _SCALED else 0)
        rest &= ~(((1 << field.high - field.low + 1) - 1) << field.low)
    return MatrixDescriptor(target=target, reserved=rest, **values)


def describe(layout: CanonicalLayout, start: int, target: str) -> MatrixDescriptor:
    """The descriptor of a canonical layout whose matrix starts at shared address `start`.

    The swizzle pattern is taken to start where its repetition does (1024, 512 or 256 bytes), so
    the base offset is 0; LBO, not used by K-major swizzled layouts, is written as 16 bytes.
    """
    codes = _WGMMA_SWIZZLES if has(WGMMA, target) else _TCGEN05_SWIZZLES
    wanted = mode_name(layout.swizzle, layout.atom)
    code = next((code for code, mode in codes.items() if mode == wanted), None)
    if code is None:
        raise FragirError(f"the descriptors of {target} have no swizzle mode {wanted}")
    unused = layout.major == "k" and layout.swizzle != 0
    version = 0 if _fields(target) is WGMMA_FIELDS else 1
    leading = 16 if unused else layout.leading
    # Only 18 bits of a shared address count.
    return MatrixDescriptor(target, start & 0x3FFFF, leading, layout.stride, code, version=version)


# The tcgen05 instruction descriptor: one set of fields for each group of kinds.
_COMMON = (
    Field("sparse", 2, 2),
    Field("negate_a", 13, 13),
    Field("negate_b", 14, 14),
    Field("n", 22, 17, "N / 8", 8),
)
_TYPES = (Field("a", 9, 7, "type of A"), Field("b", 12, 10, "type of B"))
_MAJORS = (Field("mn_major_a", 15, 15), Field("mn_major_b", 16, 16))
_PLAIN = (
    Field("selector", 1, 0, "sparsity selector"),
    *_COMMON,
    Field("saturate", 3, 3, "i8 only"),
    Field("d", 5, 4, "type of D"),
    *_TYPES,
    *_MAJORS,
    Field("m", 28, 24, "M / 16", 16),
    Field("max_shift", 31, 30, ".ws only"),
)
_SCALES_OF = (
    Field("sfb_id", 5, 4),
    Field("scale", 23, 23, "type of the scales"),
    Field("m", 28, 27, "M / 128", 128),
    Field("sfa_id", 30, 29),
)
_SCALED_KIND = (*_COMMON, *_TYPES, *_MAJORS, *_SCALES_OF)
_FP4_KIND = (
    *_COMMON,
    Field("a", 9, 7, "type of A"),
    Field("b", 11, 10, "type of B"),
    *_SCALES_OF,
    Field("k96", 31, 31, "K = 96 (sm_103a)"),
)
_ACCUMULATORS = {"f16": 0, "f32": 1, "s32": 2}
_SCALES = {"ue8m0": 1, "ue4m3": 0}


def _fields_of(kind: str) -> tuple[Field, ...]:
    if kind in WIDE_KINDS:
        return _FP4_KIND
    return _SCALED_KIND if kind_of(kind).scales else _PLAIN


# Kind -> (fields, codes of A and B, types of D).
KINDS: Mapping[str, tuple[tuple[Field, ...], Mapping[str, int], tuple[str, ...]]] = {
    name: (_fields_of(name), kind.types, kind.results) for name, kind in _KINDS.items()
}
_SELECTED = ("f16", "tf32", "ti16")
"""Kinds whose metadata the sparsity selector chooses."""


def instruction_descriptor(
    kind: str,
    *,
    m: int,
    n: int,
    a: str,
    b: str = "",
    d: str = "",
    scale: str = "",
    cta_group: int = 0,
    ws: bool | None = None,
    target: str = "",
    **flags: int,
) -> int:
    """The 32-bit instruction descriptor of `tcgen05.mma.kind::<kind>`.

    `m` and `n` in elements, `b` like `a` by default, `d` f32 (s32 of i8), `scale` ue8m0 or ue4m3
    for the mx kinds. `flags` sets further fields of the kind by name: selector, sparse, saturate,
    negate_a, negate_b, mn_major_a, mn_major_b, max_shift, sfa_id, sfb_id, k96. Errors for what no
    such instruction has; of the form with `cta_group` CTAs, with or without `.ws`, on `target`,
    where they are given. `instruction_notes` has what is legal, but refused by others.
    """
    fields, codes, results = _kind(kind)
    b, d = b or a, d or results[-1]
    for name, element in (("A", a), ("B", b)):
        if element not in codes:
            raise FragirError(f"{name} of kind {kind} is one of {', '.join(codes)}, not {element}")
    if d not in results:
        raise FragirError(f"D of kind {kind} is one of {', '.join(results)}, not {d}")
    names = {field.name: field for field in fields}
    for name in flags:
        if name not in names:
            raise FragirError(f"the descriptor of kind {kind} has no field {name}")
    values = {"m": m, "n": n, "a": codes[a], "b": codes[b], **flags}
    if "d" in names:
        values["d"] = _ACCUMULATORS[d]
    if "scale" in names:
        if scale not in _SCALES:
            raise FragirError(f"kind {kind} needs scale = ue8m0 or ue4m3")
        values["scale"] = _SCALES[scale]
    elif scale:
        raise FragirError(f"kind {kind} has no block scales, but scale = {scale} is given")
    sparse = bool(flags.get("sparse"))
    check_shape(kind, m, n, group=cta_group, ws=ws, sparse=sparse, target=target)
    word = 0
    for name, value in values.items():
        word |= names[name].put(value // names[name].unit)
    for fault in instruction_faults(word, kind, cta_group=cta_group, ws=ws, target=target):
        raise FragirError(f"tcgen05.mma kind::{kind} has no such form: {fault}")
    return word


def decode_instruction(word: int, kind: str) -> dict[str, int | str]:
    """The fields of an instruction descriptor; m, n and the types in words."""
    fields, _, _ = _kind(kind)
    values: dict[str, int | str] = {field.name: field.of(word) * field.unit for field in fields}
    for name, table in type_codes(kind).items():
        if name in values:
            found = [element for element, code in table.items() if code == values[name]]
            values[name] = found[0] if found else f"undefined ({values[name]})"
    return values


def type_codes(kind: str) -> dict[str, Mapping[str, int]]:
    """The codes of the fields of a kind that name types."""
    _, codes, _ = _kind(kind)
    return {"a": codes, "b": codes, "d": _ACCUMULATORS, "scale": _SCALES}


def instruction_faults(
    word: int, kind: str, *, cta_group: int = 0, ws: bool | None = None, target: str = ""
) -> Iterator[str]:
    """Why an instruction descriptor means nothing; nothing where it is sound.

    With `cta_group`, `ws` and `target`: as the operand of an instruction of that form, there.
    """
    fields, _, results = _kind(kind)
    rest = word
    for field in fields:
        rest &= ~(((1 << field.high - field.low + 1) - 1) << field.low)
    if rest:
        yield f"reserved bits are set: {rest:#x}"
    found = decode_instruction(word, kind)
    for name in ("a", "b", "d"):
        if str(found.get(name)).startswith("undefined"):
            yield f"the type of {name.upper()} is {found[name]}"
    d, sparse = found.get("d", results[-1]), bool(found["sparse"])
    if d not in results and not str(d).startswith("undefined"):
        yield f"D of kind {kind} is one of {', '.join(results)}, not {d}"
    if d == "f16" and "bf16" in (found["a"], found["b"]):
        yield "D of bf16 is f32, not f16"
    m, n = int(found["m"]), int(found["n"])
    try:
        if target:
            check_target(kind, target)
        check_shape(kind, m, n, group=cta_group, ws=ws, sparse=sparse)
    except FragirError as error:
        yield str(error)
    if found.get("k96") and target and target not in WIDE_TARGETS:
        yield f"{target} has no K = 96; {' and '.join(WIDE_TARGETS)} have"
    yield from _field_faults(found, kind, ws)


def _field_faults(found: dict[str, int | str], kind: str, ws: bool | None) -> Iterator[str]:
    """Of single fields of a descriptor, in words."""
    sparse = found["sparse"]
    if kind != "i8" and found.get("saturate"):
        yield "only integers saturate (kind::i8)"
    if kind == "i8" and (found["negate_a"] or found["negate_b"]):
        yield "integers are not negated"
    if found.get("selector") and (not sparse or kind not in _SELECTED):
        yield f"a sparsity selector is of sparse {', '.join(_SELECTED)} alone"
    if found.get("max_shift") and (ws is False or not _is_ws_shape(found, kind)):
        yield "a maximum shift is of .ws alone"
    for side in ("a", "b"):
        if found.get(f"mn_major_{side}") and found[side] in FLOAT6_4:
            yield f"{side.upper()} of {found[side]} cannot be MN-major: it is below a byte"
    if found.get("mn_major_b") and kind_of(kind).bits == 8 and int(found["n"]) % 16:
        yield f"N of an MN-major B of 8-bit types is a multiple of 16, not {found['n']}"
    if found.get("k96") and sparse:
        yield "K = 96 is of dense products alone"
    if "scale" not in found:
        return
    scales = kind_of(kind).scales
    if not any(found["scale"] in types for types in scales.values()):
        yield f"the scales of kind {kind} are ue8m0, not {found['scale']}"
    for side in ("sfa_id", "sfb_id"):
        steps = scale_ids(kind, str(found["scale"]), k96=bool(found.get("k96")))
        if found[side] not in steps:
            yield f"{side} is one of {', '.join(map(str, steps))}, not {found[side]}"


def scale_ids(kind: str, scale: str, *, k96: bool = False) -> tuple[int, ...]:
    """The legal scale factor ids of a kind: the byte at which the scales of a row begin.

    The descriptor does not say how many scales a row has; what any `scale_vec` allows is legal
    here (PTX ISA 9.2, section 9.7.16.10.7.2).
    """
    counts = [count for count, types in kind_of(kind).scales.items() if scale in types]
    if 1 in counts or k96:
        return (0, 1, 2, 3)
    return (0, 2) if 2 in counts else (0,)


def _is_ws_shape(found: dict[str, int | str], kind: str) -> bool:
    rules = shape_rules(kind, ws=True, sparse=bool(found["sparse"]))
    return any(found["m"] in rule.m and found["n"] in rule.n for rule in rules)


def instruction_notes(word: int, kind: str) -> tuple[str, ...]:
    """What is to be said of a sound instruction descriptor all the same: who refuses it."""
    found = decode_instruction(word, kind)
    notes = shape_notes(kind, int(found["m"]), int(found["n"]))
    if kind == "f16" and found["a"] != found["b"]:
        mixed = "A and B of different types have codes, but CUTLASS's table of kind::f16 lacks them"
        return (*notes, mixed)
    return notes


def _kind(
    kind: str,
) -> tuple[tuple[Field, ...], Mapping[str, int], tuple[str, ...]]:
    kind_of(kind)
    return KINDS[kind]
