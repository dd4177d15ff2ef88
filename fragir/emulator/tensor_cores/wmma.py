"""wmma.load, wmma.store and wmma.mma: matrices whose fragments PTX leaves opaque.

Where each element lies is as ptxas places it (`WMMA` in `maps_data.py`). wmma.mma is computed as
the mma instructions that ptxas makes of it; where they differ from mma of the same shape:

* tf32 m16n16k8 is two instructions of k4, so a step is at most 4 products on every machine;
* a D of f16 with a C of f32 is computed in f32 and then rounded; a C of f16 is widened first
  (read off SASS of ptxas 13.2; on Volta, whose tensor cores take both, the latter is theirs).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from fragir.emulator.numbers import ieee
from fragir.emulator.numbers.types import Array
from fragir.emulator.tensor_cores.arithmetic import (
    Architecture,
    Fused,
    TargetName,
    fused_parameters,
)
from fragir.emulator.tensor_cores.compute import (
    Compute,
    Double,
    ElementPlace,
    FusedMma,
    IntegerProducts,
    ScaleCodes,
)
from fragir.emulator.tensor_cores.forms import (
    BITS,
    Forms,
    Mnemonic,
    OperandRegisters,
    RegisterWords,
    TensorOp,
    read_words,
)
from fragir.emulator.tensor_cores.maps import Codes, Formula, Fragment, Ints, formula
from fragir.emulator.tensor_cores.mma import Mma, MmaPlan

FORMS = Forms(
    "product shape results target",
    """
    f16   m16n16k16|m32n8k16|m8n32k16  f16|f32  sm_70
    bf16  m16n16k16|m32n8k16|m8n32k16  f32      sm_80
    tf32  m16n16k8                     f32      sm_80
    f64   m8n8k4                       f64      sm_80
    s8    m16n16k16|m32n8k16|m8n32k16  s32      sm_72
    u8    m16n16k16|m32n8k16|m8n32k16  s32      sm_72
    s4    m8n8k32                      s32      sm_75
    u4    m8n8k32                      s32      sm_75
    b1    m8n8k128                     s32      sm_75
    """,
    """
    operand:a|operand:b => shape product ! there is no such fragment of {a}
    operand:c => shape results ! there is no such fragment of {a}
    does:mma => product shape results ! there is no such shape or combination of types
    and => sm_80 ! target {target} does not have it ! it needs sm_80
    => target ! target {target} does not have it ! it needs {least}
    satfinite => d:s32 !a:b1 ! .satfinite is for products of integers only
    does:mma a:s4|a:u4|a:b1 => layout:row.col\
        ! 4-bit and single-bit products exist only as .row.col
    operand:a a:s4|a:u4|a:b1 => layout:row ! 4-bit and single-bit A is .row and B is .col
    operand:b a:s4|a:u4|a:b1 => layout:col ! 4-bit and single-bit A is .row and B is .col
    """,
)


@cache
def _formula(shape: str, element: str, operand: str) -> Formula:
    """The map of A, B (by K's shape) or C (all shapes of one M and N alike)."""
    if shape.startswith("m8n8"):
        if operand == "c":
            element = {"m8n8k4": "f64", "m8n8k32": "s4", "m8n8k128": "b1"}[shape]
        return formula("DENSE", shape, element, operand)
    if operand == "c":
        shape = shape.partition("k")[0]
    return formula("WMMA", shape, element, operand)


def _extents(words: Mnemonic, operand: str) -> tuple[int, int]:
    """Rows and columns of A, B or C."""
    return {"a": (words.m, words.k), "b": (words.k, words.n), "c": (words.m, words.n)}[operand]


def _fragment(words: Mnemonic, element: str, operand: str, *names: str) -> Fragment:
    form = _formula(words.shape, element, operand)
    rows, columns = _extents(words, operand)
    extents = {"row": rows, "col": columns}
    bits = BITS[element]
    return Fragment(
        [form.evaluate(name) for name in names],
        tuple(extents[name] for name in names),
        bits,
        64 if bits == 64 else 32,
    )


def _repeats(words: Mnemonic, element: str, operand: str) -> int:
    """How often a fragment's registers follow each other: f16's A and B always have 8."""
    if element != "f16" or operand == "c":
        return 1
    return 8 * 2 // _formula(words.shape, element, operand).elements


# -- memory ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WmmaAccess(TensorOp):
    """`wmma.load.x r, [p], stride` and `wmma.store.d [p], r, stride`.

    Each lane makes `len(slow)` accesses of `unit` bytes: access j of lane l is at
    p + (slow[j, l] * stride + fast[j, l]) * bits / 8. `r`: the registers, `repeats` copies of the
    matrix's own. `stride`: what it is where the statement has none.
    """

    r: OperandRegisters
    repeats: int
    unit: int
    bits: int
    stride: int
    slow: Ints = field(repr=False, compare=False)
    fast: Ints = field(repr=False, compare=False)

    def addresses(self, base: Array, stride: Array) -> Array:
        """`base`, `stride`: `[W, 32]` -> `[accesses, W, 32]`."""
        step = self.slow[:, None] * stride.astype(np.int64) + self.fast[:, None]
        return base + (step * self.bits >> 3).astype(base.dtype)

    def join(self, values: Array) -> RegisterWords:
        """What was loaded, `[accesses, W, 32]` -> registers `[count, W, 32]`."""
        own = self.r.count // self.repeats
        per = len(values) // own
        width = 8 * self.unit
        words = np.zeros((own, *values.shape[1:]), self.r.dtype)
        for part in range(per):
            words |= values[part::per].astype(self.r.dtype) << self.r.dtype(part * width)
        return np.tile(words, (self.repeats, 1, 1))

    def split(self, registers: RegisterWords) -> Array:
        """Registers -> what is stored, `[accesses, W, 32]`."""
        own = self.r.count // self.repeats
        per = len(self.slow) // own
        width = 8 * self.unit
        values = np.repeat(registers[:own], per, axis=0)
        for part in range(per):
            values[part::per] >>= self.r.dtype(part * width)
        return values.astype(f"u{self.unit}")


def build_wmma_access(opcode: tuple[str, ...], target: TargetName) -> WmmaAccess:
    """Raises FragirError where PTX has no such form or the target does not have it."""
    words = read_words(opcode)
    (element,) = words.types
    operand = {"d": "c"}.get(opcode[2], opcode[2])
    FORMS.find(
        words, target, does="access", operand=operand, product=element, results=element, a=element
    )
    form = _formula(words.shape, element, operand)
    by_row = words.layouts == ("row",)
    slow, fast = (form.evaluate(x) for x in (("row", "col") if by_row else ("col", "row")))
    bits = BITS[element]
    width = 64 if bits == 64 else 32
    per = width // bits
    # Where a register's elements are neighbours in memory too, they are one access.
    whole = (np.diff(fast.reshape(-1, per, 32), axis=1) == 1).all()
    whole = whole and (np.diff(slow.reshape(-1, per, 32), axis=1) == 0).all()
    if whole:
        slow, fast = slow[::per], fast[::per]
    repeats = _repeats(words, element, operand)
    count = form.elements // per * repeats
    rows, columns = _extents(words, operand)
    return WmmaAccess(
        opcode,
        target.name,
        OperandRegisters(count, width),
        repeats,
        width // 8 if whole else bits // 8,
        bits,
        columns if by_row else rows,
        slow,
        fast,
    )


# -- arithmetic ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Converted:
    """Products of f16 in f32, where C or D is f16: C is widened before, D rounded after."""

    inner: Compute
    widens: bool
    narrows: bool

    def __call__(
        self, a: Codes, b: Codes, c: Codes, kept: Ints | None, scales: ScaleCodes | None
    ) -> Codes:
        if self.widens:
            c = ieee.half_values(c.astype(np.uint32)).view(np.uint32)
        result = self.inner(a, b, c, kept, scales)
        if not self.narrows:
            return result
        with np.errstate(invalid="ignore"):
            return ieee.to_f16(result.astype(np.uint32, copy=False).view(np.float32))


@dataclass(frozen=True, slots=True)
class Wmma(Mma):
    """`wmma.mma d, a, b, c`: an `Mma` whose A and B may have their registers several times."""

    def execute(
        self, a: RegisterWords, b: RegisterWords, c: RegisterWords, **extra: Any
    ) -> RegisterWords:
        plan = self.plan
        return Mma.execute(self, a[: plan.a.count], b[: plan.b.count], c, **extra)


def build_wmma(opcode: tuple[str, ...], target: TargetName) -> Mma:
    """wmma.mma. Raises FragirError where PTX has no such form or the target does not have it."""
    words = read_words(opcode)
    types = words.types
    if len(types) == 2:  # f16 alone: the types of D and C
        types = (types[0], "f16", "f16", types[1])
    d, a, b, c = types
    FORMS.find(
        words, target, does="mma", product=f"{a} {b}", results=f"{d} {c}", **{"a": a, "d": d}
    )
    plan = MmaPlan(
        _fragment(words, a, "a", "col", "row"),
        _fragment(words, b, "b", "row", "col"),
        _fragment(words, c, "c", "row", "col"),
        _fragment(words, d, "c", "row", "col"),
        _compute(words, types, target),
    )
    return Wmma(
        opcode,
        target.name,
        OperandRegisters(plan.a.count * _repeats(words, a, "a"), plan.a.width),
        OperandRegisters(plan.b.count * _repeats(words, b, "b"), plan.b.width),
        OperandRegisters(plan.c.count, plan.c.width),
        OperandRegisters(plan.d.count, plan.d.width),
        plan,
    )


def _compute(words: Mnemonic, types: tuple[str, ...], target: TargetName) -> Compute:
    d, a, _, c = types
    if d == "s32":
        return IntegerProducts(a, a, clamp="satfinite" in words.flags, xor="xor" in words.flags)
    if d == "f64":
        return Double.of(words.flags)
    volta = target.architecture is Architecture.VOLTA
    single = d == "f32" or c == "f32"
    how: Fused = fused_parameters(target.architecture, a, "f32" if single else "f16")
    if a == "tf32":
        how = replace(how, step=4)
    inner = FusedMma(
        ElementPlace(a), ElementPlace(a), how, half_addend=volta and c == "f16" and d == "f32"
    )
    if a != "f16" or d == c:
        return inner
    return Converted(inner, widens=c == "f16" and not volta, narrows=d == "f16")
