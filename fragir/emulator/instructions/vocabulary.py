"""The words that scalar instructions can have at all (PTX ISA 9.2, section 9.7.1 to 9.7.10).

Which of them go together is decided where an instruction is decoded; `forms.py` has those of
memory, asynchronous and control instructions in full.
"""

from __future__ import annotations

from fragir.emulator.numbers.types import DTYPES

_UNSIGNED, _SIGNED, _BITS = "u16 u32 u64", "s16 s32 s64", "b16 b32 b64"
_INTEGERS = f"{_UNSIGNED} {_SIGNED}"
_PACKED = "u16x2 s16x2 u8x4 s8x4"
_HALVES = "f16 f16x2 bf16 bf16x2"
_FLOATS = f"{_HALVES} f32 f32x2 f64"
_ROUNDED = "rn rz rm rp"
_COMPARED = "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan"
_BOOLEAN = "and or xor"
_VIDEO = "u32 s32 sat"
_NARROW = "e4m3 e5m2 e2m3 e3m2 e2m1"

_WORDS: dict[str, str] = {
    **dict.fromkeys(("add", "sub"), f"{_INTEGERS} {_PACKED} {_FLOATS} {_ROUNDED} ftz sat cc"),
    **dict.fromkeys(("addc", "subc"), f"{_INTEGERS} cc sat"),
    "mul": f"{_INTEGERS} {_FLOATS} {_ROUNDED} lo hi wide ftz sat",
    "mad": f"{_INTEGERS} {_FLOATS} {_ROUNDED} lo hi wide ftz sat cc",
    "madc": f"{_INTEGERS} lo hi cc sat",
    "fma": f"{_FLOATS} {_ROUNDED} ftz sat relu oob",
    "mul24": "u32 s32 lo hi",
    "mad24": "u32 s32 lo hi sat",
    "div": f"{_INTEGERS} f32 f64 {_ROUNDED} approx full ftz",
    "rem": _INTEGERS,
    "sad": _INTEGERS,
    **dict.fromkeys(("abs", "neg"), f"{_SIGNED} {_PACKED} {_FLOATS} ftz"),
    **dict.fromkeys(("min", "max"), f"{_INTEGERS} {_PACKED} {_FLOATS} ftz NaN xorsign abs relu"),
    **dict.fromkeys(("rcp", "sqrt", "rsqrt"), f"f32 f64 {_ROUNDED} approx ftz"),
    **dict.fromkeys(("sin", "cos", "lg2"), "approx ftz f32"),
    **dict.fromkeys(("ex2", "tanh"), f"approx ftz f32 {_HALVES}"),
    "copysign": "f32 f64",
    "testp": "f32 f64 finite infinite number notanumber normal subnormal",
    **dict.fromkeys(("and", "or", "xor", "not"), f"{_BITS} pred"),
    **dict.fromkeys(("cnot", "shl"), _BITS),
    "shr": f"{_BITS} {_INTEGERS}",
    "shf": "l r clamp wrap b32",
    **dict.fromkeys(("popc", "clz", "brev", "bfi"), "b32 b64"),
    "bfind": "u32 s32 u64 s64 shiftamt",
    "bfe": "u32 s32 u64 s64",
    "fns": "b32",
    "bmsk": "b32 clamp wrap",
    "szext": "u32 s32 clamp wrap",
    "lop3": f"b32 {_BOOLEAN}",
    "prmt": "b32 f4e b4e rc8 ecl ecr rc16",
    "dp4a": "u32 s32",
    "dp2a": "u32 s32 lo hi",
    "setp": f"{_COMPARED} {_BOOLEAN} {_INTEGERS} {_BITS} {_HALVES} f32 f64 ftz",
    "set": f"{_COMPARED} {_BOOLEAN} {_INTEGERS} {_BITS} {_HALVES} f32 f64 ftz",
    "selp": f"{_INTEGERS} {_BITS} f32 f64",
    "slct": f"{_INTEGERS} {_BITS} f32 f64 ftz",
    "mov": f"{' '.join(DTYPES)} v2 v4",
    "cvt": f"{' '.join(DTYPES)} u2 s2 u4 s4 {_NARROW} {_ROUNDED} rna rs rni rzi rmi rpi ftz sat "
    "satfinite relu pack scaled::n2::ue8m0",
    "shfl": "sync up down bfly idx b32",
    "vote": "sync all any uni ballot pred b32",
    "match": "any all sync b32 b64",
    "redux": f"sync add min max {_BOOLEAN} u32 s32 b32 f32 abs NaN",
    **dict.fromkeys(
        (f"v{name}" for name in ("add", "sub", "absdiff", "min", "max")), f"{_VIDEO} add min max"
    ),
    **dict.fromkeys(("vshl", "vshr"), f"{_VIDEO} add min max clamp wrap"),
    "vmad": f"{_VIDEO} po shr7 shr15",
    "vset": f"{_VIDEO} add min max {_COMPARED}",
    **{
        f"v{name}{many}": f"{_VIDEO} add"
        for name in ("add", "sub", "avrg", "absdiff", "min", "max")
        for many in (2, 4)
    },
    **dict.fromkeys(("vset2", "vset4"), f"{_VIDEO} add {_COMPARED}"),
    "nop": "",
}

VOCABULARY: dict[str, frozenset[str]] = {
    name: frozenset(words.split()) for name, words in _WORDS.items()
}


def foreign(opcode: tuple[str, ...]) -> str | None:
    """The first word of an opcode that its instruction cannot have; None where there is none."""
    known = VOCABULARY.get(opcode[0])
    return None if known is None else next((w for w in opcode[1:] if w not in known), None)
