"""Matrix and instruction descriptors of wgmma and tcgen05: build, take apart, explain.

PTX ISA 9.2, sections 9.7.15.5.1.2 (wgmma), 9.7.16.4.1 (tcgen05 shared memory) and 9.7.16.4.2
(tcgen05 instruction). Fields are given in their own units: addresses and offsets in bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fragir.errors import FragirError
from fragir.isa.canonical import CanonicalLayout
from fragir.isa.versions import has, requirement

# What a target with either kind of descriptors has.
WGMMA, _TCGEN05 = "wgmma.fence", "tcgen05.cp"

_WGMMA_SWIZZLES = {0: 0, 1: 128, 2: 64, 3: 32}
# Mode 1 of tcgen05 swizzles 128 bytes in units of 32, for MN-major tf32.
_TCGEN05_SWIZZLES = {0: "none", 1: "128 with 32-byte atoms", 2: "128", 4: "64", 6: "32"}


class Field(NamedTuple):
    """Bits `high`:`low` of a word."""

    name: str
    high: int
    low: int
    meaning: str = ""

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
    def swizzle_bytes(self) -> int:
        """0, 32, 64 or 128; an error for a code that means nothing."""
        if has(WGMMA, self.target):
            return _WGMMA_SWIZZLES[self.swizzle]
        text = _TCGEN05_SWIZZLES.get(self.swizzle)
        if text is None:
            raise FragirError(f"swizzle mode {self.swizzle} of tcgen05 means nothing")
        return 0 if text == "none" else int(text.split()[0])

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
        if self.reserved:
            lines.append(f"  reserved bits are set: {self.reserved:#x}")
        return "\n".join(lines)


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
    codes = _WGMMA_SWIZZLES if has(WGMMA, target) else {0: 0, 2: 128, 4: 64, 6: 32}
    code = next(code for code, size in codes.items() if size == layout.swizzle)
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
    Field("n", 22, 17, "N / 8"),
)
_PLAIN = (
    Field("selector", 1, 0, "sparsity selector"),
    *_COMMON,
    Field("saturate", 3, 3, "i8 only"),
    Field("d", 5, 4, "type of D"),
    Field("a", 9, 7, "type of A"),
    Field("b", 12, 10, "type of B"),
    Field("mn_major_a", 15, 15),
    Field("mn_major_b", 16, 16),
    Field("m", 28, 24, "M / 16"),
    Field("max_shift", 31, 30, ".ws only"),
)
_SCALED_KIND = (
    *_COMMON,
    Field("sfb_id", 5, 4),
    Field("a", 9, 7, "type of A"),
    Field("b", 12, 10, "type of B"),
    Field("mn_major_a", 15, 15),
    Field("mn_major_b", 16, 16),
    Field("scale", 23, 23, "type of the scales"),
    Field("m", 28, 24, "M / 16"),
    Field("sfa_id", 30, 29),
)
_FP4_KIND = (
    *_COMMON,
    Field("sfb_id", 5, 4),
    Field("a", 9, 7, "type of A"),
    Field("b", 11, 10, "type of B"),
    Field("scale", 23, 23, "type of the scales"),
    Field("m", 28, 24, "M / 16"),
    Field("sfa_id", 30, 29),
    Field("k96", 31, 31, "K = 96 (sm_103a)"),
)
_FLOAT8 = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_ACCUMULATORS = {"f16": 0, "f32": 1, "s32": 2}
_SCALES = {"ue8m0": 1, "ue4m3": 0}

# Kind -> (fields, codes of A and B, types of D).
KINDS: Mapping[str, tuple[tuple[Field, ...], Mapping[str, int], tuple[str, ...]]] = {
    "f16": (_PLAIN, {"f16": 0, "bf16": 1}, ("f16", "f32")),
    "tf32": (_PLAIN, {"tf32": 2}, ("f32",)),
    "f8f6f4": (_PLAIN, _FLOAT8, ("f16", "f32")),
    "i8": (_PLAIN, {"u8": 0, "s8": 1}, ("s32",)),
    "mxf8f6f4": (_SCALED_KIND, _FLOAT8, ("f32",)),
    "mxf4": (_FP4_KIND, {"e2m1": 1}, ("f32",)),
    "mxf4nvf4": (_FP4_KIND, {"e2m1": 1}, ("f32",)),
}


def instruction_descriptor(
    kind: str, *, m: int, n: int, a: str, b: str = "", d: str = "f32", scale: str = "", **flags: int
) -> int:
    """The 32-bit instruction descriptor of `tcgen05.mma.kind::<kind>`.

    `m` and `n` in elements, `b` like `a` by default, `scale` ue8m0 or ue4m3 for the mx kinds.
    `flags` sets further fields of the kind by name: selector, sparse, saturate, negate_a,
    negate_b, mn_major_a, mn_major_b, max_shift, sfa_id, sfb_id, k96.
    """
    fields, codes, results = _kind(kind)
    b = b or a
    for name, element in (("A", a), ("B", b)):
        if element not in codes:
            raise FragirError(f"{name} of kind {kind} is one of {', '.join(codes)}, not {element}")
    if d not in results:
        raise FragirError(f"D of kind {kind} is one of {', '.join(results)}, not {d}")
    if m % 16 or n % 8:
        raise FragirError(f"M is a multiple of 16 and N of 8, not {m} and {n}")
    names = {field.name: field for field in fields}
    values = {"m": m // 16, "n": n // 8, "a": codes[a], "b": codes[b], **flags}
    if "d" in names:
        values["d"] = _ACCUMULATORS[d]
    if "scale" in names:
        if scale not in _SCALES:
            raise FragirError(f"kind {kind} needs scale = ue8m0 or ue4m3")
        values["scale"] = _SCALES[scale]
    word = 0
    for name, value in values.items():
        if name not in names:
            raise FragirError(f"the descriptor of kind {kind} has no field {name}")
        word |= names[name].put(value)
    return word


def decode_instruction(word: int, kind: str) -> dict[str, int | str]:
    """The fields of an instruction descriptor; m, n and the types in words."""
    fields, _, _ = _kind(kind)
    values: dict[str, int | str] = {field.name: field.of(word) for field in fields}
    values["m"], values["n"] = int(values["m"]) * 16, int(values["n"]) * 8
    for name, table in type_codes(kind).items():
        if name in values:
            found = [element for element, code in table.items() if code == values[name]]
            values[name] = found[0] if found else f"undefined ({values[name]})"
    return values


def type_codes(kind: str) -> dict[str, Mapping[str, int]]:
    """The codes of the fields of a kind that name types."""
    _, codes, _ = _kind(kind)
    return {"a": codes, "b": codes, "d": _ACCUMULATORS, "scale": _SCALES}


def _kind(
    kind: str,
) -> tuple[tuple[Field, ...], Mapping[str, int], tuple[str, ...]]:
    if kind not in KINDS:
        raise FragirError(f"tcgen05.mma has no kind {kind}", hint=f"one of {', '.join(KINDS)}")
    return KINDS[kind]
