"""Products and copies of tcgen05 by name, with their operands as layouts.

`tcgen05.mma` says neither shape nor types in its mnemonic; here a name has both behind it, in the
order of wgmma: `tcgen05.mma.cta_group::1.kind::f16.m128n256k16.f32.f16.f16` (D, A, B, and of block
scales their type). What follows from the rest may be left out, as in
`tcgen05.mma.m128n256k16.f16`; words come in any order, types in theirs.

>>> found = tensor_operation("tcgen05.mma.m128n256k16.f16")
>>> print(found.name)
tcgen05.mma.cta_group::1.kind::f16.m128n256k16.f32.f16.f16
>>> found.letter, list(found.operands)
('D', ['d', 'a', 'a-shared', 'b'])
>>> print(found.operand("d").layout)
lane [128:(1,0)] column [256:(0,1)]
>>> print(tensor_operation("tcgen05.cp.32x128b.warpx4").operand("d").layout)
lane [32:(1,0) 4:(0,0)] column [4:(0,1)] dims (row,word)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from fragir.errors import FragirError
from fragir.isa import tensor_layouts
from fragir.isa.canonical import PACKED_PAIR
from fragir.isa.model import BITS, FLOAT6_4
from fragir.isa.operand_tiles import CanonicalTile, tensor_tiles
from fragir.isa.tensor_layouts import DECOMPRESSIONS, arrangement
from fragir.isa.tensor_products import (
    KINDS,
    WIDE_K,
    TensorKind,
    check_shape,
    depths,
    kind_of,
    shape_notes,
    shape_rules,
)
from fragir.layout import Layout

_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)")
_SCALES = ("ue8m0", "ue4m3")
_BLOCKS = {"block16": 4, "block32": 2}
_IGNORED = ("block_scale", "cta_group::1", "cta_group::2", "sp", "ws")


@dataclass(frozen=True, slots=True)
class TensorOperand:
    """An operand of a product or copy: in tensor memory with its layout, or in shared memory.

    `shape` is the extent of the matrix in the layout's dimensions (of a layout with padding less
    than the layout's own), or (k, n) and (m, k) of one CTA's part in shared memory, with `tiles`,
    the packed canonical layouts. `chunk`: elements along K that a scale or a nibble is for.
    """

    name: str
    element: str
    shape: tuple[int, ...]
    make: Callable[[], Layout] | None = None
    chunk: int = 1
    tiles: tuple[CanonicalTile, ...] = ()

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        where = "shared" if self.tiles else "tensor"
        return f"<operand {self.name}: {size} {self.element} in {where} memory>"

    @property
    def layout(self) -> Layout:
        """FragirError for one in shared memory, and where no layout says it."""
        if self.make is None:
            raise FragirError(f"operand {self.name} lies in shared memory, no lane holds it")
        return self.make()


def _operand(name: str, operands: Mapping[str, TensorOperand], wanted: str) -> TensorOperand:
    found = operands.get(wanted)
    if found is None:
        raise FragirError(f"{name} has no operand {wanted!r}", hint=f"it has {', '.join(operands)}")
    return found


@dataclass(frozen=True)
class TensorMma:
    """A `tcgen05.mma` with shape and types. `vector`: scale_vec (1, 2, 4), 0 without scales.

    The scale factor ids and the sparsity selector, which its descriptor has too, are no part of
    the name; `dataclasses.replace` gives a product with others.
    """

    kind: str
    m: int
    n: int
    k: int
    d: str
    a: str
    b: str
    scale: str = ""
    vector: int = 0
    group: int = 1
    ws: bool = False
    sparse: bool = False
    sfa_id: int = 0
    sfb_id: int = 0
    selector: int = 0

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """The canonical name."""
        form = [word for word, on in (("ws", self.ws), ("sp", self.sparse)) if on]
        words = ["tcgen05", "mma", *form, f"cta_group::{self.group}", f"kind::{self.kind}"]
        if self.vector:
            words += ["block_scale", f"scale_vec::{self.vector}X"]
        words += [f"m{self.m}n{self.n}k{self.k}", self.d, self.a, self.b]
        return ".".join((*words, *([self.scale] if self.scale else [])))

    def operand(self, name: str) -> TensorOperand:
        """The operand called `name`; an error that lists the names where there is none."""
        return _operand(self.name, self.operands, name)

    @property
    def descriptor(self) -> int:
        """Its 32-bit instruction descriptor: K-major operands, nothing negated, no other field."""
        from fragir.isa.descriptors import instruction_descriptor  # names do without

        flags: dict[str, Any] = {"sparse": int(self.sparse)}
        if self.vector:
            flags |= {"sfa_id": self.sfa_id, "sfb_id": self.sfb_id}
        else:
            flags["selector"] = self.selector
        if self.k == WIDE_K:
            flags["k96"] = 1
        return instruction_descriptor(
            self.kind,
            m=self.m,
            n=self.n,
            a=self.a,
            b=self.b,
            d=self.d,
            scale=self.scale,
            cta_group=self.group,
            ws=self.ws,
            **flags,
        )

    @property
    def letter(self) -> str:
        """The letter of D's layout, A to G."""
        return self._arrangement.letter

    @property
    def _arrangement(self) -> tensor_layouts.Arrangement:
        return arrangement(self.m, group=self.group, ws=self.ws, sparse=self.sparse)

    @property
    def blocks(self) -> int:
        """Scales of a row along K; 0 without."""
        return self.vector * 3 // 2 if self.k == WIDE_K else self.vector

    @property
    def _rules(self) -> TensorKind:
        return kind_of(self.kind)

    @cached_property
    def operands(self) -> Mapping[str, TensorOperand]:
        """By name, in order."""
        m, n, bits = self.m, self.n, self._rules.bits
        form = {"group": self.group, "ws": self.ws, "sparse": self.sparse}
        kept = self.k // 2 if self.sparse else self.k
        rows = m // self.group
        found = [
            TensorOperand("d", self.d, (m, n), lambda: tensor_layouts.accumulator(m, n, **form)),
            TensorOperand(
                "a", self.a, (m, kept), lambda: tensor_layouts.multiplicand(m, kept, bits, **form)
            ),
            self._shared("a-shared", self.a, (rows, kept), rows, kept),
            self._shared("b", self.b, (self.k, n // self.group), n // self.group, self.k),
        ]
        if self.blocks:
            found += [self._scales(side) for side in "ab"]
        if self.sparse:
            chunk = {32: 2, 4: 8}.get(bits, 4)
            shape = m, self.k // chunk
            ways = {"group": self.group, "ws": self.ws, "selector": self.selector}
            found.append(
                TensorOperand(
                    "e", "b4", shape, lambda: tensor_layouts.metadata(*shape, **ways), chunk
                )
            )
        return {operand.name: operand for operand in found}

    def _shared(
        self, name: str, element: str, shape: tuple[int, int], mn: int, k: int
    ) -> TensorOperand:
        packed = self._rules.bits == 4
        held = PACKED_PAIR if packed else element
        padded = element in FLOAT6_4 and not packed
        tiles = tensor_tiles(held, mn, k, padded=padded)
        return TensorOperand(name, element, shape, tiles=tuple(tiles))

    def _scales(self, side: str) -> TensorOperand:
        blocks, group = self.blocks, self.group
        if side == "a":
            rows, first, halved = self.m // group, self.sfa_id, False
            shape = self.m, blocks
        else:
            rows, first, halved = self.n, self.sfb_id, group == 2 and self.m == 128
            shape = blocks, self.n

        def made() -> Layout:
            return tensor_layouts.scale_factors(
                rows, blocks, first=first, of=side, group=group, halved=halved
            )

        return TensorOperand(f"sf{side}", self.scale, shape, made, self.k // blocks)

    @property
    def facts(self) -> tuple[str, ...]:
        """What is to be said of it in words."""
        held = self._arrangement
        words = f"layout {held.letter}: {held.rows} rows in a CTA"
        if held.banks > 1:
            words += f", {held.banks} banks, of which each has a part of the columns and all of A"
        elif held.spread:
            words += ", 16 lanes of each 32 hold nothing"
        word = f"instruction descriptor {self.descriptor:#010x}, both operands K-major"
        return (words, _WARPS, word, *shape_notes(self.kind, self.m, self.n))


_WARPS = "warp w of a warpgroup reaches lanes 32 (w % 4) to 32 (w % 4) + 31"


@dataclass(frozen=True)
class TensorMemoryCopy:
    """A `tcgen05.cp`: operand `d` is what it writes, by rows and 32-bit words of the source.

    With a decompression by rows and elements.
    """

    shape: str
    multicast: str = ""
    decompression: str = ""
    group: int = 1

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        """The canonical name."""
        words = ["tcgen05", "cp", f"cta_group::{self.group}", self.shape]
        return ".".join((*words, *filter(None, (self.multicast, self.decompression))))

    @cached_property
    def operands(self) -> Mapping[str, TensorOperand]:
        """By name, in order."""
        decompressed = bool(self.decompression)
        layout = tensor_layouts.copied(self.shape, self.multicast, decompressed=decompressed)
        element = "b8" if decompressed else "b32"
        return {"d": TensorOperand("d", element, layout.shape, lambda: layout)}

    def operand(self, name: str) -> TensorOperand:
        """The operand called `name`; an error that lists the names where there is none."""
        return _operand(self.name, self.operands, name)

    @property
    def facts(self) -> tuple[str, ...]:
        """What is to be said of it in words."""
        both = ("each CTA of the pair copies from its own shared memory",)
        return both if self.group == 2 else ()


# -- reading ---------------------------------------------------------------------------------------


def is_tensor_operation(text: str) -> bool:
    """Whether a text begins as the name of a product or copy of tcgen05."""
    return text.strip().startswith(("tcgen05.mma", "tcgen05.cp"))


@lru_cache(maxsize=512)
def tensor_operation(text: str) -> TensorMma | TensorMemoryCopy:
    """The product or copy of a name; FragirError, with what is wrong, where there is none."""
    words = text.strip().split(".")
    if words[:2] == ["tcgen05", "cp"]:
        return _copy(text, words[2:])
    if words[:2] != ["tcgen05", "mma"]:
        raise FragirError(f"{text!r} names no product or copy of tcgen05")
    return _product(text, words[2:])


def _copy(text: str, words: list[str]) -> TensorMemoryCopy:
    rest = ".".join(word for word in words if not word.startswith("cta_group::"))
    found = next((d for d in DECOMPRESSIONS if d in rest), "")
    parts = [word for word in rest.replace(found, "").split(".") if word]
    shapes = [word for word in parts if word[0].isdigit()]
    if len(shapes) != 1 or len(parts) > 2:
        raise FragirError(
            f"{text!r} names no copy of tcgen05", hint="as in tcgen05.cp.cta_group::1.128x256b"
        )
    multicast = next((word for word in parts if word not in shapes), "")
    copy = TensorMemoryCopy(shapes[0], multicast, found, _group(words, 1))
    _ = copy.operands  # refuses what is no shape
    return copy


def _group(words: list[str], otherwise: int) -> int:
    found = [word.removeprefix("cta_group::") for word in words if word.startswith("cta_group::")]
    if [word for word in found if word not in ("1", "2")]:
        raise FragirError(f"cta_group::{found[0]} is none", hint="1 or 2")
    return int(found[0]) if found else otherwise


def _product(text: str, words: list[str]) -> TensorMma:
    shapes = [match for word in words if (match := _SHAPE.fullmatch(word))]
    types = [word for word in words if word in BITS and word not in _SCALES]
    scales = [word for word in words if word in _SCALES]
    said = [word.removeprefix("kind::") for word in words if word.startswith("kind::")]
    vectors = [int(word[-2]) for word in words if re.fullmatch(r"scale_vec::[124]X", word)]
    blocks = [word for word in words if word in _BLOCKS]
    known = {m[0] for m in shapes} | {*types, *scales, *_IGNORED, *_BLOCKS}
    for word in words:
        if word not in known and not word.startswith(("kind::", "scale_vec::", "cta_group::")):
            raise FragirError(f"{text!r}: .{word} is no word of a tcgen05.mma's name", hint=_HINT)
    if (
        len(shapes) != 1
        or len(types) not in (1, 2, 3)
        or max(map(len, (scales, said, vectors + blocks))) > 1
    ):
        raise FragirError(f"{text!r} names no product of tcgen05", hint=_HINT)
    m, n, k = map(int, shapes[0].groups())
    d, a, b = types if len(types) == 3 else ("", types[0], types[-1])
    scaled = bool(scales or vectors or blocks or "block_scale" in words)
    kind = said[0] if said else _kind_by_type(a, k, scaled)
    rules = kind_of(kind)
    sparse, ws = "sp" in words, "ws" in words
    group = _group(words, _least_group(kind, m))
    vector = vectors[0] if vectors else 0
    if blocks:
        vector = 1 if kind == "mxf8f6f4" else _BLOCKS[blocks[0]]
    vector, scale = _scaling(kind, rules, scales, vector, scaled)
    d = d or rules.results[-1]
    for name, element in (("A", a), ("B", b)):
        if element not in rules.types:
            raise FragirError(
                f"{name} of kind {kind} is one of {', '.join(rules.types)}, not {element}"
            )
    if d not in rules.results or (d == "f16" and "bf16" in (a, b)):
        raise FragirError(f"D of kind {kind} with {a} and {b} is not {d}")
    check_shape(kind, m, n, group=group, ws=ws, sparse=sparse)
    if k not in depths(kind, sparse=sparse):
        legal = " or ".join(map(str, depths(kind, sparse=sparse)))
        raise FragirError(
            f"tcgen05.mma{'.sp' if sparse else ''} kind::{kind} has no K = {k}",
            hint=f"K is {legal}",
        )
    return TensorMma(kind, m, n, k, d, a, b, scale, vector, group, ws, sparse)


_HINT = "as in tcgen05.mma.cta_group::1.kind::f16.m128n256k16.f32.f16.f16"


def _kind_by_type(a: str, k: int, scaled: bool) -> str:
    """The kind that multiplies a type: that of narrow floats by K and whether there are scales."""
    if scaled:
        return "mxf8f6f4" if k in (32, 64) and a != "e2m1" else "mxf4nvf4"
    found = next((kind for kind, rules in KINDS.items() if a in rules.types), "")
    if not found:
        raise FragirError(f"no tcgen05.mma multiplies {a}", hint=_HINT)
    return found


def _least_group(kind: str, m: int) -> int:
    """One CTA, or two where one has not so many rows."""
    return 1 if any(m in rule.m for rule in shape_rules(kind, group=1)) or m < 256 else 2


def _scaling(
    kind: str, rules: TensorKind, scales: list[str], vector: int, scaled: bool
) -> tuple[int, str]:
    """scale_vec and the type of the scales, with what follows where it is left out."""
    if not rules.scales:
        if scaled:
            raise FragirError(f"kind {kind} has no block scales")
        return 0, ""
    scale = scales[0] if scales else ""
    fitting = [
        (count, types)
        for count, types in rules.scales.items()
        if vector in (0, count) and (not scale or scale in types)
    ]
    if not fitting:
        said = " and ".join(filter(None, (f"scale_vec::{vector}X" if vector else "", scale)))
        ways = "; ".join(f"{n}X with {' or '.join(t)}" for n, t in rules.scales.items())
        raise FragirError(f"kind {kind} has no {said}", hint=ways)
    count, types = fitting[-1]
    return count, scale or types[-1]
