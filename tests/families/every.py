"""Every tensor-core instruction as a program of tiles, and what it must compute.

A `Case` is made from an instruction of the table alone: its element types, shape and words say
what the program looks like. Values come from ml_dtypes and plain formulas, nothing from the code
under test.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from fragir.isa import Instruction

Array = npt.NDArray[Any]

PACKED = "!frag.packed<f4E2M1FN>"
# Names of the PTX ISA -> types of the IR.
IR_TYPES = {
    **{name: name for name in ("f16", "bf16", "tf32", "f32", "f64")},
    **{"s8": "si8", "u8": "ui8", "s4": "si4", "u4": "ui4", "b1": "ui1", "s32": "i32"},
    **{"e4m3": "f8E4M3FN", "e5m2": "f8E5M2", "e3m2": "f6E3M2FN", "e2m3": "f6E2M3FN"},
    **{"e2m1": "f4E2M1FN", "ue8m0": "f8E8M0FNU", "ue4m3": "f8E4M3FN"},
}
_NUMPY: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32},
    **{"f64": np.float64, "s8": np.int8, "u8": np.uint8, "s32": np.int32},
    **{"f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2},
    **{"f6E3M2FN": ml_dtypes.float6_e3m2fn, "f6E2M3FN": ml_dtypes.float6_e2m3fn},
    **{"f4E2M1FN": ml_dtypes.float4_e2m1fn, "f8E8M0FNU": ml_dtypes.float8_e8m0fnu},
    **{"si8": np.int8, "ui8": np.uint8, "i32": np.int32},
}
_RANGES = {"s8": (-128, 128), "u8": (0, 256), "s4": (-8, 8), "u4": (0, 16), "b1": (0, 2)}
# Nibbles of metadata by how a chunk is kept (PTX ISA 9.2, section 9.7.14.6.1): the kept parts.
_RISING: dict[int, tuple[int, ...]] = {
    0b0100: (0, 1),
    0b1000: (0, 2),
    0b1100: (0, 3),
    0b1001: (1, 2),
    0b1101: (1, 3),
    0b1110: (2, 3),
}
_FALLING: dict[int, tuple[int, ...]] = {
    places[1] | places[0] << 2: places[::-1] for places in _RISING.values()
}
_HALVES: dict[int, tuple[int, ...]] = {0b0100: (0,), 0b1110: (1,)}


@dataclass(frozen=True)
class Case:
    """One instruction, wgmma with A from "registers" or "descriptor".

    The tiles have `repeats` times its M, N and K, over `warps` (of wgmma: warpgroups). `negated`
    and `turned` are what a wgmma says of A and of B: signs, and M or N running along the rows of
    memory; `swizzles` are the least bytes of each in shared memory.
    """

    instruction: Instruction
    form: str = "registers"
    repeats: tuple[int, int, int] = (1, 1, 1)
    warps: tuple[int, int] = (1, 1)
    negated: tuple[bool, bool] = (False, False)
    turned: tuple[bool, bool] = (False, False)
    swizzles: tuple[int, int] = (32, 32)

    # --- what it is ---------------------------------------------------------------------------

    @property
    def flags(self) -> frozenset[str]:
        return self.instruction.form.flags

    @property
    def is_wgmma(self) -> bool:
        return self.instruction.family.startswith("wgmma")

    @property
    def is_sparse(self) -> bool:
        return "e" in self.instruction.operands

    @property
    def is_quad(self) -> bool:
        """Four products at once: m8n8k4 of f16."""
        return len(self.instruction.operands["a"].shape) == 3

    @property
    def is_packed(self) -> bool:
        """4-bit floats, two to a byte."""
        return bool(self.flags & {"kind::mxf4", "kind::mxf4nvf4"})

    @property
    def scale(self) -> str:
        return self.instruction.types.scale

    @property
    def blocks(self) -> int:
        """Scales of one row along K."""
        return self.instruction.operands["sfa"].shape[1] if self.scale else 0

    @property
    def words(self) -> str:
        """What the operation says besides shapes and types."""
        types, flags = self.instruction.types, self.flags
        words: list[str] = []
        if self.instruction.family == "mma.sp":
            words.append("unordered")
        if self.scale:
            words.append("scaled %tx, %ty")
        if "satfinite" in flags:
            words.append("satfinite")
        words += [f'rounding "{mode}"' for mode in ("rz", "rm", "rp") if mode in flags]
        words += ['bitop "xor"'] if "xor" in flags else []
        if "kind::f8f6f4" in flags and {types.a, types.b} <= {"e4m3", "e5m2"}:
            words.append('kind "f8f6f4"')  # these types have an instruction without a kind, too
        if {"kind::mxf4nvf4", "scale_vec::2X"} <= flags:
            words.append('kind "mxf4nvf4"')  # computes what mxf4 does
        if self.is_quad:
            words.append(f'using "m8n8k4.f16.{".".join(self.instruction.form.layouts)}"')
        elif self.repeats != (1, 1, 1):  # else there may be an instruction of a larger shape
            element = "e2m1x2" if self.is_packed else types.a
            words.append(f'using "{self.instruction.form.shape}.{element}"')
        return " ".join(words)

    def ir_type(self, operand: str) -> str:
        """The element type of an operand in the program."""
        if operand in ("a", "b") and self.is_packed:
            return PACKED
        if operand in ("x", "y"):
            return IR_TYPES[self.scale]
        return "ui4" if operand == "e" else IR_TYPES[getattr(self.instruction.types, operand)]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The tiles' shapes: A, B, C, metadata, scales and D."""
        m, n, k = (x * y for x, y in zip(self.instruction.shape, self.repeats, strict=True))
        more = (4,) if self.is_quad else ()
        shapes = {
            "a": (m, k // 2 if self.is_sparse else k, *more),
            "b": (k, n, *more),
            "c": (m, n, *more),
        }
        if self.is_sparse:
            shapes["e"] = (m, k // self.instruction.operands["e"].chunk)
        if self.scale:
            blocks = self.blocks * self.repeats[2]
            shapes |= {"x": (m, blocks), "y": (blocks, n)}
        return shapes | {"d": (m, n, *more)}

    # --- the program --------------------------------------------------------------------------

    def program(self, name: str = "f", blocks: int = 1) -> str:
        """Block b multiplies A[b] by B[b]; B and its scales lie transposed, but four products."""
        memory, tiles, loads = dict[str, str](), dict[str, str](), dict[str, str]()
        for x, shape in self.shapes().items():
            turned = self.is_turned(x)
            stored = shape[::-1] if turned else shape
            memory[x] = f"memref<{blocks}x{_times(stored)}x{self.ir_type(x)}>"
            tiles[x] = f"!frag.tile<{_times(shape)}x{self.ir_type(x)}>"
            zeros = ", 0" * len(shape)
            loads[x] = (
                f"%t{x} = frag.load %{x}[%block{zeros}]{' transposed' * turned} : "
                f"{memory[x]} -> {tiles[x]}"
            )
        zeros = ", 0" * len(self.shapes()["d"])
        arguments = ", ".join(f"%{x}: {type_}" for x, type_ in memory.items())
        lines = ["%block = frag.block_id x"]
        if self.is_wgmma:
            lines += self._wgmma(memory, tiles, loads)
        else:
            lines += [loads[x] for x in self.shapes() if x != "d"]
            op = "frag.mma_sparse" if self.is_sparse else "frag.mma"
            operands = ["%ta", "%tb", "%tc", *(["%te"] if self.is_sparse else [])]
            types = ", ".join(tiles[x] for x in self.shapes() if x != "d")
            lines.append(f"%r = {op} {', '.join(operands)} {self.words} : {types} -> {tiles['d']}")
        lines.append(f"frag.store %r, %d[%block{zeros}] : {tiles['d']}, {memory['d']}")
        body = "\n  ".join(lines)
        kind = "frag.warpgroups" if self.is_wgmma else "frag.warps"
        return f"""
func.func @{name}({arguments}) attributes {{
    frag.grid = #frag.grid<{blocks}>, {kind} = array<i64: {self.warps[0]}, {self.warps[1]}>}} {{
  {body}
  func.return
}}
"""

    def is_turned(self, operand: str) -> bool:
        """Whether memory holds the transposed matrix: all of B and its scales but four products."""
        if operand == "a":
            return self.turned[0]
        if operand == "b":
            return not (self.is_quad or self.turned[1])
        return operand == "y"

    def _wgmma(
        self, memory: dict[str, str], tiles: dict[str, str], loads: dict[str, str]
    ) -> list[str]:
        lines: list[str] = []
        shapes = self.shapes()
        shared: dict[str, str] = {}
        least = 64 if self.is_sparse and not self.turned[1] else 32  # bytes of K read of B at once
        for x, swizzle in (("a", self.swizzles[0]), ("b", max(least, self.swizzles[1]))):
            if x == "a" and self.form == "registers":
                continue
            stored = shapes[x][::-1] if self.is_turned(x) else shapes[x]
            shared[x] = (
                f"memref<{_times(stored)}x{self.ir_type(x)}, #frag.shared<swizzle = {swizzle}>>"
            )
            lines += [
                f"%s{x} = memref.alloc() : {shared[x]}",
                f"frag.copy async %{x}[%block, 0, 0] to %s{x}[] : {memory[x]} to {shared[x]}",
            ]
        lines += ["frag.commit", "frag.wait 0", "frag.barrier", loads["c"]]
        first, type_ = "%sa", shared.get("a", tiles["a"])
        if self.form == "registers":
            lines.append(loads["a"])
            first = "%ta"
        first += " transposed" * self.turned[0] + " negated" * self.negated[0]
        second = "%sb" + " transposed" * self.is_turned("b") + " negated" * self.negated[1]
        words, types = "", f"{type_}, {shared['b']}, {tiles['c']}"
        if self.is_sparse:
            lines.append(loads["e"])
            words, types = " sparse %te", f"{types}, {tiles['e']}"
        words += " satfinite" * ("satfinite" in self.flags)
        lines.append(f"%r = frag.wgmma {first}, {second}, %tc{words} : {types}")
        return lines

    # --- values -------------------------------------------------------------------------------

    def stored(self, operand: str, values: Array) -> Array:
        """[block, row, column] values as the array that the program takes."""
        turned = self.is_turned(operand)
        array = np.ascontiguousarray(values.transpose(0, 2, 1)) if turned else values
        type_ = self.ir_type(operand)
        if type_ == PACKED:
            codes = array.astype(np.float32).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)
            return _packed(codes, 4)
        if type_ in ("si4", "ui4", "ui1"):
            return _packed(array.astype(np.int64), int(type_[-1]))
        return array.astype(_NUMPY[type_])

    def random(self, rng: np.random.Generator, operand: str, blocks: int, small: bool) -> Array:
        """Values [block, row, column] of an operand: small ones give exact sums in every type."""
        shape = (blocks, *self.shapes()[operand])
        name = self.scale if operand in ("x", "y") else getattr(self.instruction.types, operand, "")
        if operand in ("x", "y"):
            return 2.0 ** rng.integers(-1, 2, shape)
        if name in _RANGES:
            low, high = (max(-2, _RANGES[name][0]), min(3, _RANGES[name][1]))
            return rng.integers(*((low, high) if small else _RANGES[name]), shape)
        if name == "s32":
            edge = rng.choice([0, 2**31 - 16, -(2**31) + 16], shape)
            near = rng.integers(-16, 16, shape)
            return near if small else edge + near
        return rng.integers(-2, 3, shape).astype(np.float64)

    def normal(self, rng: np.random.Generator, operand: str, blocks: int) -> Array:
        """Normal numbers of many magnitudes; integers of the whole range."""
        shape = (blocks, *self.shapes()[operand])
        types = self.instruction.types
        if operand in ("x", "y"):
            width = 2 if self.scale == "ue4m3" else 20
            factors: Array = 2.0 ** rng.integers(-width, width, shape)
            return factors if self.scale == "ue8m0" else factors * rng.choice([1.0, 1.5], shape)
        if types.d == "s32":
            return self.random(rng, operand, blocks, False)
        return rng.standard_normal(shape) * 2.0 ** rng.integers(-3, 4, shape)

    def metadata(self, rng: np.random.Generator, blocks: int) -> tuple[Array, Array]:
        """Nibbles [block, row, chunk]; [block, row, packed column]: the column it stands for."""
        chunk = self.instruction.operands["e"].chunk
        rows, chunks = self.shapes()["e"][:2]
        table = _HALVES if chunk == 2 else _RISING
        if self.instruction.family == "mma.sp" and chunk != 2:
            table = _RISING | _FALLING
        legal: Array = np.array(list(table), np.int64)
        nibbles: Array = legal[rng.integers(len(legal), size=(blocks, rows, chunks))]
        nothing = next(iter(table.values()))
        kept: Array = np.array([table.get(nibble, nothing) for nibble in range(16)])
        parts = {2: 2, 4: 4, 8: 4}[chunk]
        each = chunk // parts
        columns: Array = kept[nibbles][..., None] * each + np.arange(each)
        start: Array = np.arange(0, chunk * chunks, chunk)
        columns = columns.reshape((blocks, rows, chunks, chunk // 2)) + start[:, None]
        return nibbles, columns.reshape((blocks, rows, chunks * chunk // 2))

    def expected(self, values: dict[str, Array]) -> Array:
        """D of these values, exactly (`positions`: the columns of a sparse A)."""
        a: Array = values["a"]
        b, c = values["b"], values["c"]
        if self.is_sparse:
            full: Array = np.zeros((*a.shape[:2], b.shape[1]), a.dtype)
            np.put_along_axis(full, values["positions"], a, 2)
            a = full
        if self.scale:
            each = self.instruction.shape[2] // self.blocks
            a = a * np.repeat(values["x"], each, 2)
            b = b * np.repeat(values["y"], each, 1)
        a = -a if self.negated[0] else a
        b = -b if self.negated[1] else b
        step = self.instruction.shape[2]
        total = c
        for k in range(0, a.shape[2], step):  # every instruction clamps its own sum
            total = total + self._product(a[:, :, k : k + step], b[:, k : k + step])
            if "satfinite" in self.flags:
                total = np.clip(total, -(2**31), 2**31 - 1)
        return total.astype(np.int32) if self.instruction.types.d == "s32" else total

    def _product(self, a: Array, b: Array) -> Array:
        if "xor" in self.flags:
            return (a[..., None] != b[:, None]).sum(2)
        return np.einsum("bmk...,bkn...->bmn...", a, b)

    @cached_property
    def target(self) -> str:
        """The first target of today's ptxas that has it, natively where one does."""
        from fragir.isa.emit import default_target

        return default_target(self.instruction)


def _times(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _packed(values: Array, bits: int) -> Array:
    """Integers as bytes, the first one lowest."""
    per = 8 // bits
    grouped = (values & ((1 << bits) - 1)).reshape(*values.shape[:-1], -1, per)
    return (grouped << (bits * np.arange(per))).sum(-1).astype(np.uint8)


def rounded(value: Fraction, mode: str) -> float:
    """A rational as a double, rounded to nearest even, to zero, down or up."""
    nearest = value.numerator / value.denominator  # Python's division of integers is exact
    if mode == "rn" or Fraction(nearest) == value:
        return nearest
    above = nearest if Fraction(nearest) > value else float(np.nextafter(nearest, np.inf))
    below = nearest if Fraction(nearest) < value else float(np.nextafter(nearest, -np.inf))
    if mode == "rz":
        return below if value > 0 else above
    return above if mode == "rp" else below


def chain(a: Array, b: Array, c: float, mode: str) -> float:
    """A chain of fused multiply-adds in rising k, each rounded so."""
    total = c
    for x, y in zip(a, b, strict=True):
        total = rounded(Fraction(float(x)) * Fraction(float(y)) + Fraction(total), mode)
    return total
