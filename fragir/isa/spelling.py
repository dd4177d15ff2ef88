"""Mnemonics as text: canonical spelling, and reading any spelling that ptxas takes.

Canonical order (PTX ISA 9.2, section 9.7.14.5.14 and others): everything as the ISA's syntax
lines have it, `.scale_vec` written, `.rn` of f64 and `.shared` left out, the wgmma `.satfinite`
right after the shape. ptxas takes qualifiers in nearly any order; types, and row and col, only
in theirs.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from fragir.isa.model import BITS, Form

_SHAPE = re.compile(r"m\d+n\d+(k\d+)?$|\d+x\d+b(x2)?$")
_FRAGMENT = re.compile(r"(m\d+n\d+k\d+)\.([a-z]\w*)(?:\.(row|col))?(?:\.(row|col))?")
# Data types of the 8-bit matrix copies have a dot inside.
_DOTTED = {"b8x16": ("b6x16_p32", "b4x16_p64")}
_DROPPED = frozenset(("sync", "aligned", "shared", "shared::cta"))
_BEFORE_TYPES = ("x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128")
# The order of a row of `fragir.ptx.opcodes.tensor_memory`.
_TENSOR_PRODUCT = (
    *("cta_group::", "kind::", "block_scale", "decompress::", "scale_vec::", "block16", "block32"),
    *(
        "ashift",
        "collector::a::",
        "collector::b::",
        *(f"collector::b{bank}::" for bank in range(4)),
    ),
)
_COPIES = ("ldmatrix", "stmatrix", "movmatrix")


def tokens(text: str) -> list[str]:
    """The dot-separated parts of a mnemonic, with the two-part types in one piece."""
    parts = text.strip().rstrip(";").split(".")
    joined: list[str] = []
    for part in parts:
        if joined and part in _DOTTED.get(joined[-1], ()):
            joined[-1] += "." + part
        else:
            joined.append(part)
    return joined


def family_of(parts: list[str]) -> str:
    """The family named by a mnemonic's parts; empty where it is none of them."""
    head = parts[0]
    if head == "mma":
        for version in ("sp::ordered_metadata", "sp"):
            if version in parts[1:]:
                return f"mma.{version}"
        return "mma"
    if head == "wgmma":
        if "mma_async" not in parts:
            return ""
        return "wgmma.sp" if "sp" in parts[1:] else "wgmma"
    if head == "tcgen05" and len(parts) > 1 and parts[1] in ("ld", "st"):
        return f"tcgen05.{parts[1]}" + (".red" if "red" in parts[2:] else "")
    if parts[:2] == ["tcgen05", "mma"]:
        return "tcgen05.mma" + ".ws" * (parts[2:3] == ["ws"]) + ".sp" * ("sp" in parts[2:])
    return head if head in _COPIES else ""


_HEAD = frozenset(("sp", "sp::ordered_metadata", "mma_async", "ld", "st", "red", "mma", "ws"))


def parse(text: str) -> Form | None:
    """The form of a mnemonic in any order of qualifiers, defaults filled in; None if it is none."""
    parts = tokens(text)
    family = family_of(parts)
    if not family:
        return None
    shape, layouts, types, flags = "", list[str](), list[str](), set[str]()
    for part in parts[1:]:
        if part in _DROPPED or part in _HEAD:
            continue
        if _SHAPE.match(part) and not shape:
            shape = part
        elif part in ("row", "col"):
            layouts.append(part)
        elif part in BITS:
            types.append(part)
        else:
            flags.add(part)
    return normal(Form(family, shape, tuple(layouts), tuple(types), frozenset(flags)))


def complaint(text: str) -> str | None:
    """What ptxas would say about the words themselves, whatever they mean; None if nothing."""
    parts = tokens(text)
    single = parts[:2] == ["tcgen05", "mma"]  # which one thread executes
    for word in ("sync", "aligned"):
        if (word in parts) == single:
            return f".{word} {'does not stand there' if single else 'is missing'}"
    if single and "ws" in parts[3:]:
        return ".ws stands right behind .mma"
    words = [part for part in parts if part not in BITS and part not in ("row", "col")]
    for word in words:
        if words.count(word) > 1:
            return f".{word} stands there twice"
    for word in ("xor", "and"):
        if word in parts and "popc" in parts and parts.index(word) > parts.index("popc"):
            return f".{word} stands before .popc"
    return None


def normal(form: Form) -> Form:
    """The canonical form: defaults written out or left out as in the canonical spelling."""
    flags = set(form.flags)
    flags.discard("rn")
    if form.family.startswith("tcgen05.mma"):  # where a vector size that is left out is one more
        return form._replace(flags=frozenset(flags))
    if "block_scale" in flags and not any(f.startswith("scale_vec") for f in flags):
        default = {"kind::mxf4": "scale_vec::2X", "kind::mxf8f6f4": "scale_vec::1X"}
        flags.update(default[kind] for kind in default if kind in flags)
    return Form(form.family, form.shape, form.layouts, form.types, frozenset(flags))


def _ordered_flags(flags: frozenset[str], *prefixes: str) -> list[str]:
    found = [
        f for prefix in prefixes for f in sorted(flags) if f == prefix or _is_prefixed(f, prefix)
    ]
    return found


def _is_prefixed(flag: str, prefix: str) -> bool:
    return prefix.endswith("::") and flag.startswith(prefix)


def mnemonic(form: Form) -> str:
    """The canonical spelling of a form."""
    return ".".join((*_head(form), *_qualifiers(form)))


def _head(form: Form) -> tuple[str, ...]:
    if form.family.startswith("wgmma"):
        sparse = ("sp",) if form.family.endswith("sp") else ()
        return ("wgmma", "mma_async", *sparse, "sync", "aligned")
    if form.family.startswith("tcgen05.mma"):
        return tuple(form.family.split("."))
    return (*form.family.split("."), "sync", "aligned")


def _qualifiers(form: Form) -> list[str]:
    flags = form.flags
    if form.family in _COPIES:
        num = _ordered_flags(flags, *_BEFORE_TYPES)
        return [form.shape, *num, *_ordered_flags(flags, "trans"), *form.types]
    if form.family.startswith("tcgen05.mma"):
        return _ordered_flags(flags, *_TENSOR_PRODUCT)
    if form.family.startswith("tcgen05"):
        num = _ordered_flags(flags, *_BEFORE_TYPES)
        middle = _ordered_flags(flags, "pack::", "unpack::", "min", "max", "abs", "NaN")
        return [form.shape, *num, *middle, *form.types]
    before = _ordered_flags(flags, "satfinite", "kind::", "block_scale", "scale_vec::")
    after = _ordered_flags(flags, "rz", "rm", "rp", "xor", "and", "popc")
    return [form.shape, *form.layouts, *before, *form.types, *after]


def aliases(form: Form) -> tuple[str, ...]:
    """Other spellings that ptxas takes and people write; lookup takes more, in any order."""
    text = mnemonic(form)
    found: list[str] = []
    if form.family in ("ldmatrix", "stmatrix"):
        head, _, last = text.rpartition("." + form.types[0])
        found += [f"{head}.{space}.{form.types[0]}{last}" for space in ("shared", "shared::cta")]
    if "f64" in form.types and not form.flags:
        found.append(text + ".rn")
    if form.flags & {"kind::mxf4", "kind::mxf8f6f4"} and "block_scale" in form.flags:
        found.append(re.sub(r"\.scale_vec::\dX", "", text))
    if "satfinite" in form.flags:
        found.append(text.replace(".satfinite", "") + ".satfinite")
    return tuple(found)


def sizes(shape: str) -> tuple[int, ...]:
    """The numbers of a shape of any family: (16, 8, 16), (16, 64)."""
    return tuple(map(int, re.findall(r"\d+", shape)))


def is_shape(word: str) -> bool:
    """Whether a word has the form of a shape: m16n8k16, 16x64b."""
    return _SHAPE.match(word) is not None


def mnk(shape: str) -> tuple[int, int, int]:
    """(m, n, k) of "m16n8k16"; k is 0 in "m8n8"."""
    m, _, rest = shape.removeprefix("m").partition("n")
    n, _, k = rest.partition("k")
    return int(m), int(n), int(k or 0)


class FragmentName(NamedTuple):
    """A short name of an instruction: its shape, the type of A, and storage orders if any."""

    shape: str
    type: str
    orders: tuple[str, ...] = ()

    @property
    def is_by_warpgroups(self) -> bool:
        """Whether it is a wgmma's: those have 64 rows."""
        return self.shape.startswith("m64")


@lru_cache(maxsize=4096)
def fragment_name(text: str) -> FragmentName | None:
    """`m16n8k16.f16`, `m8n8k4.f16.row.col` taken apart; None where it is no such name."""
    match = _FRAGMENT.fullmatch(text)
    if match is None:
        return None
    return FragmentName(match[1], match[2], tuple(word for word in match.groups()[2:] if word))
