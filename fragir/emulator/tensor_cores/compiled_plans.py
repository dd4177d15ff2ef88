"""What the compiled core needs to know of an instruction: the structures of `native/source/mma.h`.

A plan is made once for an operation and its immediates (sparsity selector, scale selectors). Its
matrices lie as the core wants them: A as `[product][m][k]`, B as `[product][n / 8][k][8]`, C as
`[product][m][n]`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fragir.emulator.numbers.types import FORMATS, I32, Array
from fragir.emulator.tensor_cores.arithmetic import Fused, Rounding
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
    scale_values,
)
from fragir.emulator.tensor_cores.forms import BITS
from fragir.emulator.tensor_cores.fused import decode, f16_codes
from fragir.emulator.tensor_cores.maps import Fragment, Metadata
from fragir.emulator.tensor_cores.mma import Mma, scale_lanes
from fragir.emulator.tensor_cores.wgmma import Wgmma
from fragir.emulator.tensor_cores.wmma import Converted

COLUMNS = 8
NOTHING = -1000

_ARITHMETIC: dict[type[Compute], int] = {
    FusedMma: 0,
    EmulatedFp8: 1,
    SoftwareM8N8K4: 2,
    Double: 3,
    IntegerProducts: 4,
    Scaled: 5,
    ScaledGroups: 6,
}
_ROUNDING = {Rounding.RZ_F32: 0, Rounding.RZ_E8M13: 1, Rounding.RNE_F16: 2}
_DIRECTION = {"rn": 0, "rz": 1, "rm": 2, "rp": 3}
_KIND = {"f16": 0, "bf16": 1, "tf32": 2}
_TABLE, _F64, _INTEGERS, _BITS = 3, 4, 5, 6

_POINTER, _INT = ctypes.c_void_p, ctypes.c_int32


class NativeFragment(ctypes.Structure):
    """`Fragment` of mma.h."""

    _fields_: ClassVar = [
        ("word", _POINTER),
        ("shift", _POINTER),
        ("mask", ctypes.c_uint32),
        ("elements", _INT),
        ("count", _INT),
        ("lanes", _INT),
    ]


class NativeElement(ctypes.Structure):
    """`Element` of mma.h."""

    _fields_: ClassVar = [
        ("value", _POINTER),
        ("exponent", _POINTER),
        ("special", _POINTER),
        ("kind", _INT),
        ("shift", _INT),
        ("mask", ctypes.c_uint32),
        ("sign", _INT),
    ]


class NativeScales(ctypes.Structure):
    """`Scales` of mma.h."""

    _fields_: ClassVar = [("lane", _POINTER), ("shift", _INT), ("blocks", _INT)]


_NUMBERS = (
    *("arithmetic", "products", "m", "n", "k", "depth", "d_count", "d_per", "d_bits"),
    *("chunk", "kept", "group", "fraction", "floor", "step", "rounding", "half_addend"),
    *("widens", "narrows", "half_result", "chained", "clamps", "exclusive", "direction"),
)


class NativePlan(ctypes.Structure):
    """`Plan` of mma.h."""

    _fields_: ClassVar = [
        ("a", NativeFragment),
        ("b", NativeFragment),
        ("c", NativeFragment),
        ("left", NativeElement),
        ("right", NativeElement),
        ("parts", _POINTER),
        ("metadata_lane", _POINTER),
        ("metadata_shift", _POINTER),
        ("order", _POINTER),
        ("significand", _POINTER),
        ("power", _POINTER),
        ("scale_a", NativeScales),
        ("scale_b", NativeScales),
        *((name, _INT) for name in _NUMBERS),
    ]


@dataclass
class CompiledPlan:
    """A plan for the core, and the arrays that it points to."""

    native: NativePlan = field(default_factory=NativePlan)
    kept: list[Array] = field(default_factory=list[Array])

    def pointer(self, values: Array, dtype: npt.DTypeLike) -> int:
        """The address of values as a contiguous array, which lives as long as the plan."""
        array = np.ascontiguousarray(values, dtype)
        self.kept.append(array)
        return array.ctypes.data

    def fragment(
        self, to: NativeFragment, source: Fragment, order: Callable[[Array], Array]
    ) -> None:
        """`order`: from elements `[*extents]` to the core's order."""
        to.word = self.pointer(order(source.word.reshape(source.extents)), np.int32)
        to.shift = self.pointer(order(source.shift.reshape(source.extents)), np.int32)
        to.mask = source.mask & 0xFFFFFFFF
        to.elements, to.count, to.lanes = source.word.size, source.count, source.lanes

    def element(self, to: NativeElement, place: ElementPlace, as_half: bool) -> None:
        """A floating-point element; `as_half`: it becomes f16 before it is multiplied."""
        to.shift, to.mask = place.shift, place.mask
        if place.name in _KIND:
            to.kind = _KIND[place.name]
            return
        codes = np.arange(1 << FORMATS[place.name].bits, dtype=np.uint32)
        found = decode("f16", f16_codes(place.name)) if as_half else decode(place.name, codes)
        exponent = np.where(found.value == 0, NOTHING, found.exponent.astype(np.int32))
        special = found.value if found.special is None else found.special
        to.kind, to.mask = _TABLE, place.mask & (len(codes) - 1)
        to.value = self.pointer(found.value, np.float32)
        to.exponent = self.pointer(exponent, np.int32)
        to.special = self.pointer(special, np.float32)

    def integers(self, to: NativeElement, name: str) -> None:
        to.kind = _BITS if name == "b1" else _INTEGERS
        to.mask = 0xFFFFFFFF
        to.sign = 1 << (BITS[name] - 1) if name[0] == "s" else 0

    def computes(self, compute: Compute, depth: int) -> None:
        """How D comes from A, B and C. `depth`: columns of A."""
        native = self.native
        if isinstance(compute, Converted):
            native.narrows = compute.narrows
            self.computes(compute.inner, depth)
            native.widens = native.widens or compute.widens
            return
        native.arithmetic = _ARITHMETIC[type(compute)]
        match compute:
            case FusedMma() | EmulatedFp8() | Scaled():
                half = isinstance(compute, EmulatedFp8)
                self.element(native.left, compute.a, half)
                self.element(native.right, compute.b, half)
                self._set_fused(compute.how)
                if isinstance(compute, FusedMma):
                    native.half_addend = native.widens = compute.half_addend
                elif isinstance(compute, EmulatedFp8):
                    native.chained = compute.chained
                else:
                    self._scales("ue8m0")
            case SoftwareM8N8K4():
                native.widens, native.half_result = compute.half_addend, compute.half_result
                for side in (native.left, native.right):
                    self.element(side, ElementPlace("f16"), False)
            case Double():
                native.left.kind = native.right.kind = _F64
                native.direction = _DIRECTION[compute.rounding]
            case IntegerProducts():
                self.integers(native.left, compute.a)
                self.integers(native.right, compute.b)
                native.clamps, native.exclusive = compute.clamp, compute.xor
            case ScaledGroups():
                for side in (native.left, native.right):
                    self.element(side, ElementPlace("e2m1", mask=0xF), False)
                self._scales(compute.scale)
            case _:
                raise AssertionError(compute)

    def _set_fused(self, how: Fused) -> None:
        native = self.native
        native.fraction, native.floor, native.step = how.fraction, how.floor, how.step
        native.rounding = _ROUNDING[how.rounding]

    def _scales(self, kind: str) -> None:
        significand, power = scale_values(kind, np.arange(256, dtype=np.uint32))
        self.native.significand = self.pointer(significand, np.float64)
        self.native.power = self.pointer(power, np.int32)

    def metadata(self, metadata: Metadata, selector: int) -> None:
        lane, nibble = metadata.place(selector)
        native, how = self.native, metadata.how
        native.metadata_lane = self.pointer(lane, np.int32)
        native.metadata_shift = self.pointer(4 * nibble, np.int32)
        native.chunk, native.kept, native.group = how.chunk, how.kept, how.group


def _as_it_is(places: Array) -> Array:
    return places


def _by_row(places: Array) -> Array:
    """A's elements `[k, m]` as `[m, k]`."""
    return np.moveaxis(places, 0, -1)


def _halves(depth: int) -> I32:
    """The columns in the order in which EmulatedFp8 takes them: those of the first HMMA first."""
    order = np.arange(depth, dtype=np.int32)
    first = order % 4 < 2
    return np.concatenate([order[first], order[~first]])


def _plan(
    a: Fragment, b: Fragment, c: Fragment, d: Fragment, compute: Compute, metadata: Metadata | None
) -> CompiledPlan:
    made = CompiledPlan()
    native = made.native
    depth, k, n = a.extents[0], b.extents[0], b.extents[-1]
    native.products = a.extents[1] if len(a.extents) == 3 else 1
    native.depth, native.k, native.m, native.n = depth, k, a.extents[-1], n
    made.computes(compute, depth)
    order = np.arange(depth, dtype=np.int32)
    if isinstance(compute, EmulatedFp8):
        order = _halves(depth)
        native.order = made.pointer(np.argsort(order), np.int32)
    of_b = order if metadata is None else np.arange(k, dtype=np.int32)

    def left(places: Array) -> Array:
        return np.moveaxis(places[order], 0, -1)

    def right(places: Array) -> Array:
        blocks = places[of_b].reshape(k, -1, n // COLUMNS, COLUMNS)
        return blocks.transpose(1, 2, 0, 3)

    made.fragment(native.a, a, left)
    made.fragment(native.b, b, right)
    made.fragment(native.c, c, _as_it_is)
    native.parts = made.pointer(np.stack(d.parts), np.int32)
    native.d_count, native.d_per, native.d_bits = d.count, d.per, d.bits
    return made


#: Plans by the operation's own and the immediates. Operations are made once and kept
#: (`tensor_instruction`), and these hold theirs: an identity is never another's.
_MADE: dict[tuple[object, ...], tuple[object, CompiledPlan]] = {}


def mma_plan(
    op: Mma,
    selector: int = 0,
    select_a: tuple[int, int] = (0, 0),
    select_b: tuple[int, int] = (0, 0),
) -> CompiledPlan:
    """The plan of an mma with its immediates (those of forms that have them)."""
    plan = op.plan
    key = (id(plan), selector, select_a, select_b)
    if key in _MADE:
        return _MADE[key][1]
    made = _plan(plan.a, plan.b, plan.c, plan.d, plan.compute, plan.metadata)
    if plan.metadata is not None:
        made.metadata(plan.metadata, selector)
    if plan.scale_blocks:
        sides = ((made.native.scale_a, select_a, True), (made.native.scale_b, select_b, False))
        for to, (byte, thread), rows in sides:
            op.check_scales((byte, thread), rows=rows)
            to.lane = made.pointer(scale_lanes(thread, rows=rows), np.int32)
            to.shift, to.blocks = 8 * byte, plan.scale_blocks
    _MADE[key] = plan, made
    return made


def wgmma_plan(op: Wgmma, selector: int = 0) -> CompiledPlan:
    """The plan of a wgmma; B's registers, which it has not, are left out."""
    plan = op.plan
    key = (id(plan), selector)
    if key in _MADE:
        return _MADE[key][1]
    made = CompiledPlan()
    native = made.native
    native.products, native.m, native.n, native.k = 1, 64, plan.n, plan.k
    native.depth = plan.a.extents[0]
    made.computes(plan.compute, native.depth)
    made.fragment(native.a, plan.a, _by_row)
    made.fragment(native.c, plan.d, _as_it_is)
    native.parts = made.pointer(np.stack(plan.d.parts), np.int32)
    native.d_count, native.d_per, native.d_bits = plan.d.count, plan.d.per, plan.d.bits
    if plan.metadata is not None:
        made.metadata(plan.metadata, selector)
    _MADE[key] = plan, made
    return made
