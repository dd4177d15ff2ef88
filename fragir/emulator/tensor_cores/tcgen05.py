"""tcgen05.mma: what an instruction descriptor says, and the arithmetic of one block's rows.

Instruction descriptors: PTX ISA 9.1, section 9.7.16.4.2; shapes: section 9.7.16.2.1. The arithmetic
is that of `fused.py` and `compute.py`; which of its rules have been measured for tcgen05, by whom,
and which are assumed, says `RULES`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import FORMATS, U32, Bools
from fragir.emulator.tensor_cores.arithmetic import TargetName, fused_parameters
from fragir.emulator.tensor_cores.arithmetic import target as read_target
from fragir.emulator.tensor_cores.compute import (
    Compute,
    ElementPlace,
    FusedMma,
    IntegerProducts,
    ScaleCodes,
    Scaled,
    ScaledGroups,
)
from fragir.emulator.tensor_cores.tensor_places import Banks, banks
from fragir.errors import FragirError

Ints = npt.NDArray[np.int64]


class Rule(NamedTuple):
    """`source`: who has measured it; "" where it is assumed."""

    text: str
    source: str


_MMASIM = "MMA-Sim 2.1.1 (arXiv 2511.10909), random bits on a B200"
RULES: dict[str, Rule] = {
    "f16": Rule("f16 and bf16: steps of 16 products, F = 25, towards zero to f32", _MMASIM),
    "tf32": Rule("tf32: steps of 8 products, F = 25, towards zero to f32", _MMASIM),
    "f8f6f4": Rule("8 bits and less: steps of 32 products, F = 25, towards zero to f32", _MMASIM),
    "mxf8f6f4": Rule("the exponents of scales are added to those of products, F = 25", _MMASIM),
    "mxf4": Rule("groups of 16 products are exact, then scaled and added with F = 35", _MMASIM),
    "mxf4nvf4": Rule("groups of 16 products are exact, then scaled and added with F = 35", _MMASIM),
    "half": Rule(
        "D in f16 is rounded once, to nearest, when it is stored",
        "a comment of the simulator in TIRx-harness: measured on a B200",
    ),
    "i8": Rule("integers are exact, and saturate or wrap once for an instruction", "the ISA"),
    "sparse": Rule("the steps of a sparse product are made of the kept elements", ""),
    "k96": Rule("K = 96 is one step of six groups", ""),
    "scale-d": Rule("scale-input-d rounds subnormal results towards zero", ""),
    "ws": Rule(".ws has the bits of the other forms", ""),
    "shift": Rule("shift moves the rows of all four partitions of 32 lanes", ""),
}


class ProductForm(NamedTuple):
    """What the words of a tcgen05.mma say. `vector`: scales along K, as in scale_vec (1, 2, 4)."""

    kind: str
    group: int
    sparse: bool
    separate: bool
    shifted: bool
    vector: int

    @classmethod
    def of(cls, words: Sequence[str]) -> ProductForm:
        said = {w.partition("::")[0]: w.partition("::")[2] for w in words if "::" in w}
        kind, vector = said["kind"], 0
        if "block_scale" in words:
            vector = {"mxf8f6f4": 1, "mxf4": 2}.get(kind, 4)
            if "scale_vec" in said:
                vector = int(said["scale_vec"][0])
            elif "block32" in words and kind != "mxf8f6f4":
                vector = 2
        flags = "sp" in words, "ws" in words, "ashift" in words
        return cls(kind, int(said["cta_group"]), *flags, vector)


# -- kinds -----------------------------------------------------------------------------------------

_FLOATS = {0: "e4m3", 1: "e5m2", 3: "e2m3", 4: "e3m2", 5: "e2m1"}


class Kind(NamedTuple):
    """`bits`: of an element in its container; `types`: the codes of A and B, `results` those of D;
    `step`: of N beyond 16, with one block."""

    bits: int
    types: dict[int, str]
    results: dict[int, str]
    step: int = 8


KINDS: dict[str, Kind] = {
    "f16": Kind(16, {0: "f16", 1: "bf16"}, {0: "f16", 1: "f32"}),
    "tf32": Kind(32, {2: "tf32"}, {1: "f32"}),
    "f8f6f4": Kind(8, _FLOATS, {0: "f16", 1: "f32"}),
    "i8": Kind(8, {0: "u8", 1: "s8"}, {2: "s32"}, 16),
    "mxf8f6f4": Kind(8, _FLOATS, {}),
    "mxf4": Kind(4, {1: "e2m1"}, {}),
    "mxf4nvf4": Kind(4, {1: "e2m1"}, {}),
}
_SCALES = {0: "ue4m3", 1: "ue8m0"}


@dataclass(frozen=True, slots=True)
class TensorProduct:
    """One tcgen05.mma with its instruction descriptor.

    `m`, `n`, `k`: of the whole product; `rows`: of D that each block has; `banks`: how these lie in
    tensor memory; `a`, `b`, `d`: types; `mn_major`: of A and B; `negate` likewise; `scale`: type of
    the scales, `first` their first bytes, `blocks` how many along K; `selector`: of the metadata;
    `assumed`: the rules in `RULES` that nobody has measured.
    """

    form: ProductForm
    m: int
    n: int
    k: int
    rows: int
    banks: Banks
    a: str
    b: str
    d: str
    mn_major: tuple[bool, bool]
    negate: tuple[bool, bool]
    scale: str
    first: tuple[int, int]
    blocks: int
    selector: int
    compute: Compute = field(repr=False, compare=False)
    assumed: tuple[str, ...] = ()

    @property
    def bits(self) -> int:
        """Of an element of A or B in its container."""
        return KINDS[self.form.kind].bits

    @property
    def kept(self) -> int:
        """Elements of A along K."""
        return self.k // 2 if self.form.sparse else self.k

    @property
    def columns(self) -> int:
        """Columns of B that each block has."""
        return self.n // self.form.group

    @property
    def d_columns(self) -> int:
        """Columns of tensor memory that D takes."""
        return self.n // len(self.banks.lanes)

    @property
    def a_columns(self) -> int:
        """Columns of tensor memory that A takes where it lies there."""
        return self.kept * self.bits // 32

    @property
    def chunk(self) -> int:
        """Elements of K that a nibble of the metadata is for."""
        return {"tf32": 2, "mxf4": 8, "mxf4nvf4": 8}.get(self.form.kind, 4)

    @property
    def metadata_columns(self) -> int:
        return self.k // self.chunk // 8

    def packed_bits(self, element: str) -> int:
        """Of an element as it lies in shared memory."""
        return FORMATS[element].bits if element in FORMATS and self.bits == 8 else self.bits

    def sign(self, element: str) -> int:
        """The sign bit of a code."""
        return 1 << ((FORMATS[element].bits if self.bits <= 8 else self.bits) - 1)

    def multiply(
        self,
        a: U32,
        b: U32,
        c: U32,
        kept: Ints | None = None,
        scales: tuple[U32, U32] | None = None,
    ) -> U32:
        """D `[rows, columns]` of codes A `[kept, rows]`, B `[k, columns]` and C `[rows, columns]`.

        `kept`: the column of A of every kept element; `scales`: those of A `[rows, blocks]` and of
        B `[columns, blocks]`.
        """
        a = a ^ np.uint32(self.sign(self.a)) if self.negate[0] else a
        b = b ^ np.uint32(self.sign(self.b)) if self.negate[1] else b
        columns = b.shape[1]
        depth = len(a) if kept is None else 2 * len(a)
        size = max(1, _TOGETHER // (columns * depth))
        result = np.empty_like(c)
        for start in range(0, len(c), size):
            part = slice(start, start + size)
            of_kept = None if kept is None else kept[:, part]
            of_scales = None if scales is None else (scales[0][part], scales[1])
            result[part] = self._rows(a[:, part], b, c[part], of_kept, of_scales)
        return result

    def _rows(
        self, a: U32, b: U32, c: U32, kept: Ints | None, scales: tuple[U32, U32] | None
    ) -> U32:
        compute = self.compute
        if isinstance(compute, IntegerProducts) or kept is not None:
            of_scales = None
            if scales is not None:
                of_scales = ScaleCodes(scales[0][..., None], scales[1][..., None])
            which = None if kept is None else kept[..., None]
            return compute(a[..., None], b[..., None], c[..., None], which, of_scales)[..., 0]
        # A is broadcast along the innermost dimension, which is N.
        of_scales = None
        if scales is not None:
            of_scales = ScaleCodes(scales[0][..., None], scales[1].T[None])
        return compute(a[..., None], b[:, None, :], c[:, None, :], None, of_scales)[:, 0, :]


_TOGETHER = 1 << 18  # products computed at once


# -- instruction descriptors -----------------------------------------------------------------------


def _refuse(form: ProductForm, word: int, why: str) -> FragirError:
    return FragirError(f"the instruction descriptor {word:#010x} of kind::{form.kind}: {why}")


@lru_cache(maxsize=1024)
def read_product(form: ProductForm, word: int, target: str) -> TensorProduct:
    """Raises FragirError for an instruction descriptor that has no meaning."""
    kind, where = KINDS[form.kind], read_target(target)

    def at(low: int, count: int = 1) -> int:
        return word >> low & ((1 << count) - 1)

    scaled, narrow = form.vector > 0, kind.bits == 4
    if bool(at(2)) != form.sparse:
        has = "sparse" if at(2) else "dense"
        raise _refuse(form, word, f"it is of a {has} product, and the instruction is not")
    reserved = at(3) | at(0, 2) | at(6) if scaled else at(6) | at(23) | at(29)
    if form.kind != "i8" and not scaled:
        reserved |= at(3)
    if narrow:
        reserved |= at(12) | at(15, 2)
    if not form.separate and not scaled:
        reserved |= at(30, 2)
    if not form.sparse or form.kind not in ("f16", "tf32"):
        reserved |= at(0, 2)  # of the metadata, of which these kinds have no choice
    if reserved:
        raise _refuse(form, word, "bits are set that mean nothing in this kind")
    types = [kind.types.get(at(7, 3)), kind.types.get(at(10, 2 if narrow else 3))]
    for name, found, code in zip("AB", types, (at(7, 3), at(10, 3)), strict=True):
        if found is None:
            raise _refuse(form, word, f"{code} is no type of {name}")
    a, b = types[0] or "", types[1] or ""
    if form.kind == "f16" and a != b:
        raise _refuse(form, word, f"A is {a} and B is {b}, which must be the same")
    d = "f32" if scaled else kind.results.get(at(4, 2), "")
    if not d:
        raise _refuse(form, word, f"{at(4, 2)} is no type of D")
    if d == "f16" and a == "bf16":
        raise _refuse(form, word, "D is f16, and A and B are bf16")
    if form.kind == "i8" and at(13, 2):
        raise _refuse(form, word, "integers cannot be negated")
    m, n = 16 * at(24, 5), 8 * at(17, 6)
    if scaled:
        m = 128 * at(27, 2)
        if at(24, 3):
            raise _refuse(form, word, "bits are set that mean nothing in this kind")
    _check_shape(form, word, kind, m, n)
    transposed = bool(at(15)), bool(at(16))
    _check_majors(form, word, kind, n, transposed, (a, b))
    if at(30, 2) and form.separate:
        raise FragirError("a shift of B's columns (tcgen05.mma.ws) is not emulated")
    k = 256 // kind.bits * (2 if form.sparse else 1)
    if narrow and at(31):
        if where.number not in (103, 107) or form.sparse:
            raise _refuse(form, word, f"K = 96 is for dense products of sm_103a, not {target}")
        k = 96
    elif scaled and at(31):
        raise _refuse(form, word, "bit 31 means nothing in this kind")
    blocks, scale, first = 0, "", (0, 0)
    if scaled:
        scale = _SCALES[at(23)]
        blocks = form.vector * k // 64 if k == 96 else form.vector
        first = at(29, 2), at(4, 2)
        _check_scales(form, word, scale, first, k)
    rows = m // form.group
    found = banks(rows, group=form.group, separate=form.separate, sparse=form.sparse)
    return TensorProduct(
        form, m, n, k, rows, found, a, b, d,
        transposed, (bool(at(13)), bool(at(14))), scale, first, blocks,
        0 if scaled else at(0, 2),
        _compute(form, where, a, b, d, scale, clamp=bool(at(3))),
        tuple(
            name
            for name, there in (("sparse", form.sparse), ("k96", k == 96), ("ws", form.separate))
            if there and form.kind != "i8"
        ),
    )  # fmt: skip


def _check_shape(form: ProductForm, word: int, kind: Kind, m: int, n: int) -> None:
    if form.separate:
        of_m, of_n = (32, 64, 128), (64, 128) if form.sparse else (64, 128, 256)
    else:
        pair = form.group == 2
        of_m = (128, 256) if pair else (64, 128)
        if form.vector:
            of_m = of_m if pair and not form.sparse else (of_m[1],)
        step = kind.step * form.group
        of_n = tuple(range(step, 257, step))
        if form.kind == "i8" and not pair:
            of_n = (8, 16, 24, *range(32, 257, 16))
    if m not in of_m:
        raise _refuse(form, word, f"M is {m}, and one of {_list(of_m)} is needed")
    if n not in of_n:
        raise _refuse(form, word, f"N is {n}, and one of {_list(of_n)} is needed")


def _list(numbers: Sequence[int]) -> str:
    if len(numbers) > 4:
        return f"{numbers[0]}, {numbers[1]}, ... {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _check_majors(
    form: ProductForm,
    word: int,
    kind: Kind,
    n: int,
    transposed: tuple[bool, bool],
    types: tuple[str, str],
) -> None:
    for name, turned, element in zip("AB", transposed, types, strict=True):
        if turned and element in FORMATS and FORMATS[element].bits < 8:
            raise _refuse(form, word, f"{name} is {element}, which cannot be MN-major")
    if transposed[1] and kind.bits == 8 and n % (16 * form.group):
        raise _refuse(form, word, f"N is {n}; of an MN-major B of 8 bits it is a multiple of 16")


def _check_scales(form: ProductForm, word: int, scale: str, first: tuple[int, int], k: int) -> None:
    if scale == "ue4m3" and (form.kind != "mxf4nvf4" or form.vector != 4):
        raise _refuse(form, word, "scales of ue4m3 are for mxf4nvf4 with four for each 64 of K")
    if k == 96:
        legal = (0, 1, 2, 3) if form.vector == 2 else (0, 2)
    else:
        legal = {1: (0, 1, 2, 3), 2: (0, 2), 4: (0,)}[form.vector]
    for name, byte in zip("AB", first, strict=True):
        if byte not in legal:
            raise _refuse(form, word, f"the scales of {name} cannot begin at byte {byte}")


def _compute(
    form: ProductForm, where: TargetName, a: str, b: str, d: str, scale: str, *, clamp: bool
) -> Compute:
    if form.kind == "i8":
        return IntegerProducts(a, b, clamp)
    if form.kind in ("mxf4", "mxf4nvf4"):
        return ScaledGroups(scale)
    how = fused_parameters(where.architecture, a, d)
    left, right = ElementPlace(a), ElementPlace(b)
    return Scaled(left, right, how) if form.vector else FusedMma(left, right, how)


# -- sparse A --------------------------------------------------------------------------------------


def kept_columns(product: TensorProduct, nibbles: Ints) -> tuple[Ints, Bools]:
    """The columns of A's kept elements `[kept, rows]`, and which nibbles mean something.

    `nibbles`: metadata `[rows, chunks]` (section 9.7.16.10.8).
    """
    low, high = nibbles & 3, nibbles >> 2
    base = product.chunk * np.arange(nibbles.shape[1], dtype=np.int64)
    if product.chunk == 2:
        legal = (nibbles == 0b0100) | (nibbles == 0b1110)
        return np.ascontiguousarray((base + low // 2).T), legal
    pair = np.stack([low, high], axis=-1)
    if product.chunk == 8:  # two of four pairs
        pair = (2 * pair[..., None] + np.arange(2)).reshape(*nibbles.shape, 4)
    columns = base[:, None] + pair
    legal = low != high
    legal &= np.isin(nibbles, _CODES)
    return np.ascontiguousarray(columns.reshape(len(nibbles), -1).T), legal


_CODES = (0x4, 0x8, 0xC, 0x9, 0xD, 0x6, 0xE)


# -- lanes of .ws ----------------------------------------------------------------------------------


def zeroed_columns(mask: int, rows: int, n: int) -> Bools:
    """The columns of B that a zero-column mask of .ws makes zero (section 9.7.16.4.3)."""
    found: Bools = np.zeros(n, np.bool_)
    if not mask >> 39 & 1:
        return found
    skip, use = mask >> 40 & 0xFF, mask >> 48 & 0xFF
    parts = 128 // rows
    size = n // parts
    for part in range(parts):
        start, zero_first = mask >> 8 * part & 0xFF, bool(mask >> 32 + part & 1)
        first = (skip if zero_first else use) + 1
        place = (np.arange(size) + min(start, first - 1)) % (use + skip + 2)
        inside = place < first
        found[part * size : (part + 1) * size] = inside if zero_first else ~inside
    return found
