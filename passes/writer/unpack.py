"""Elements of a byte and less as halves, two at a time, by a few instructions on every target.

An integer's bits are put into the fraction of 1024 (f16) or 128 (bf16) and that is subtracted:
nothing is rounded. A float's exponent and fraction are moved to where f16 has them, and a
multiplication by a power of two sets the bias right, of subnormal numbers too: exact. Each pair
of neighbours is picked by one `prmt`; in natural order the high nibble of a byte is 16 times as
large there, which the multiplication takes back.

Formats: OCP 8-bit floating point specification, OCP microscaling formats specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import vector

_SELECT = 0x6A  # (a & b) ^ c, lop3's table (PTX ISA 9.2, section 9.7.8.6)
_MERGE = 0xEA  # (a & b) | c

# nibbles by name: bits that are flipped, f16's factors and what is added, bf16's what is added
_NIBBLES = {
    "u4": (0x64006400, 0xD400E400, 0x43004300, 0xC300C300),
    "s4": (0x64806408, 0xD480E408, 0x43084308, 0xC308C308),
}


# the same of one half, for the lower and the upper four bits of a byte: the mask, bits that are
# flipped, the factor and what is added
_PICKED = {
    ("u4", "f16"): ((0x0F, 0xF0), (0x6400, 0x6400), (0x3C00, 0x2C00), (0xE400, 0xD400)),
    ("s4", "f16"): ((0x0F, 0xF0), (0x6408, 0x6480), (0x3C00, 0x2C00), (0xE408, 0xD480)),
    ("u4", "bf16"): ((0x0F, 0x0F), (0x4300, 0x4300), (0x3F80, 0x3F80), (0xC300, 0xC300)),
    ("s4", "bf16"): ((0x0F, 0x0F), (0x4308, 0x4308), (0x3F80, 0x3F80), (0xC308, 0xC308)),
}


@dataclass(frozen=True)
class Bits:
    """How a float in the upper byte of a half becomes f16: shifts to the left, masks, the scale."""

    moved: int
    fraction: int  # mask of exponent and fraction after the shift, of both halves
    sign: int  # how far the sign is from bit 15
    scale: int  # f16's bits of the power of two, twice


_FLOATS = {
    "e4m3": Bits(-1, 0x3F803F80, 0, 0x5C005C00),  # 2^8
    "e3m2": Bits(0, 0x1F001F00, 2, 0x6C006C00),  # 2^12
    "e2m3": Bits(-1, 0x0F800F80, 2, 0x74007400),  # 2^14
    "e2m1": Bits(1, 0x0E000E00, 4, 0x74007400),
    "e2m1x2": Bits(-3, 0x0E000E00, 0, 0x74007400),  # a nibble at the top
}
IN_BF16 = frozenset(_NIBBLES)
"""Types that are unpacked to bf16 in one step, as to f16."""


class Unpack:
    """Writes the conversions of one value."""

    def __init__(self, writer: KernelText):
        self.w = writer

    def halves(
        self,
        value: SSAValue,
        form: str = "f16",
        order: Sequence[int] | None = None,
        name: str | None = None,
    ) -> list[str]:
        """Registers of two f16 (bf16) each, in the elements' order; a last one may be half used.

        With an `order`, of s4 and u4, the elements that it names. `name`: what the elements are
        read as, where that is not their type: a signless integer as one without a sign.
        """
        name = name or element_name(ptx.scalar_type(value.type))
        if order is not None:
            return Picked(self.w, name, form, self.w.in_registers(value)).halves(order)
        count = ptx.length(value.type)
        result: list[str] = []
        per = 4 if name in ("s4", "u4", "e2m1x2") else 2  # pairs of a register
        for register in self.w.in_registers(value):
            pairs = min(per, -(-count // 2) - len(result))
            result += self._pairs(name, register, pairs, form)
        return result

    def _pairs(self, name: str, register: str, pairs: int, form: str) -> list[str]:
        if name in _NIBBLES:
            make = self._nibbles if form == "f16" else self._nibbles_as_bf16
            return make(name, register, pairs)
        if name in ("s8", "u8"):
            return self._bytes(name, register, pairs)
        if name == "e4m3" and self.w.has(direct := "cvt.rn.f16x2.e4m3x2"):
            return self._direct(direct, register, pairs)
        low = self._new("shl.b32", register, "4") if name == "e2m1x2" else register
        return [self._float(name, register, low, i) for i in range(pairs)]

    def _new(self, opcode: str, *operands: str) -> str:
        target = self.w.registers.fresh_register(32)
        self.w.emit(opcode, target, *operands)
        return target

    # --- integers -----------------------------------------------------------------------------

    def _nibbles(self, name: str, register: str, pairs: int) -> list[str]:
        """prmt, lop3, fma a pair: 1024 + n and 1024 + 16 n."""
        flipped, added, _, _ = _NIBBLES[name]
        factor, less = (self._new("mov.b32", f"0x{c:08X}") for c in (0x2C003C00, added))
        result: list[str] = []
        for i in range(pairs):
            both = self._new("prmt.b32", register, register, f"0x{i}{i}{i}{i}")
            both = self._new("lop3.b32", both, "0x00F0000F", f"0x{flipped:08X}", str(_SELECT))
            result.append(self._new("fma.rn.f16x2", both, factor, less))
        return result

    def _nibbles_as_bf16(self, name: str, register: str, pairs: int) -> list[str]:
        """The same with 128 + n twice, since bf16 has no room for 16 n."""
        _, _, flipped, added = _NIBBLES[name]
        one, less = (self._new("mov.b32", f"0x{c:08X}") for c in (0x3F803F80, added))
        high = self._new("shr.u32", register, "4")
        result: list[str] = []
        for i in range(pairs):
            both = self._new("prmt.b32", register, high, f"0x{4 + i}{4 + i}{i}{i}")
            both = self._new("lop3.b32", both, "0x000F000F", f"0x{flipped:08X}", str(_SELECT))
            result.append(self._new("fma.rn.bf16x2", both, one, less))
        return result

    def _bytes(self, name: str, register: str, pairs: int) -> list[str]:
        """prmt, sub a pair: 1024 + n; with a sign 1152 + n."""
        if name == "s8":
            register = self._new("xor.b32", register, "0x80808080")
        less = self._new("mov.b32", "0x64806480" if name == "s8" else "0x64006400")
        result: list[str] = []
        for i in range(pairs):
            both = self._new("prmt.b32", register, "0x64646464", f"0x4{2 * i + 1}4{2 * i}")
            result.append(self._new("sub.rn.f16x2", both, less))
        return result

    # --- floats -------------------------------------------------------------------------------

    def _float(self, name: str, register: str, low: str, i: int) -> str:
        if name == "e2m1x2":
            both = self._new("prmt.b32", low, register, f"0x{4 + i}{4 + i}{i}{i}")
        else:
            both = self._new("prmt.b32", register, "0", f"0x{2 * i + 1}4{2 * i}4")
        if name == "e5m2":  # the upper half of an f16
            return both
        form = _FLOATS[name]
        magnitude = both
        if form.moved:
            shift = "shl.b32" if form.moved > 0 else "shr.u32"
            magnitude = self._new(shift, both, str(abs(form.moved)))
        magnitude = self._new("and.b32", magnitude, f"0x{form.fraction:08X}")
        sign = self._new("shl.b32", both, str(form.sign)) if form.sign else both
        merged = self._new("lop3.b32", sign, "0x80008000", magnitude, str(_MERGE))
        scale = self._new("mov.b32", f"0x{form.scale:08X}")
        number = self._new("mul.rn.f16x2", merged, scale)
        return self._with_nan(number, both) if name == "e4m3" else number

    def _direct(self, opcode: str, register: str, pairs: int) -> list[str]:
        """One cvt a pair of bytes, where the target has it."""
        words = [self.w.registers.fresh_register(16), self.w.registers.fresh_register(16)]
        self.w.emit("mov.b32", vector(words), register)
        return [self._new(opcode, word) for word in words[:pairs]]

    def _with_nan(self, number: str, both: str) -> str:
        """0x7F is NaN: adding 1 to the seven bits reaches the eighth, of which 0x7E00 is made."""
        seven = self._new("and.b32", both, "0x7F007F00")
        over = self._new("add.s32", seven, "0x01000100")
        over = self._new("and.b32", over, "0x80008000")
        less = self._new("shr.u32", over, "6")
        nan = self._new("sub.s32", over, less)
        return self._new("or.b32", number, nan)


@dataclass
class Picked:
    """Nibbles of any places as pairs of halves.

    Neighbours four places apart, as in weights that were put in the order 0, 4, 1, 5, 2, 6, 3, 7,
    are in the same place of both halves already: `lop3` and `add` or `fma`, with one shift for four
    of them. Others are brought there by `prmt`.
    """

    w: KernelText
    name: str
    form: str
    words: Sequence[str]
    _made: dict[tuple[str, int], str] = field(default_factory=dict[tuple[str, int], str])

    def halves(self, order: Sequence[int]) -> list[str]:
        """A register for every two of these nibbles."""
        return [
            self._pair(first, order[min(i + 1, len(order) - 1)])
            for i, first in list(enumerate(order))[::2]
        ]

    def _pair(self, first: int, second: int) -> str:
        apart = first // 8 == second // 8 and second - first == 4
        if self.form == "bf16":  # 128 + n has room for the lowest four bits only
            if apart:
                both, masks = self._shift(first // 8, first % 4 * 4), (0, 0)
            else:
                both, masks = self._permute(first, second, shifted=True), (0, 0)
        elif apart:
            both, masks = self._shift(first // 8, first % 4 // 2 * 8), (first % 2, first % 2)
        else:
            both, masks = self._permute(first, second), (first % 2, second % 2)
        return self._number(both, masks)

    def _shift(self, word: int, by: int) -> str:
        """A word shifted to the right, once for all that want it."""
        name = self.words[word]
        if not by:
            return name
        known = self._made.get((name, by))
        if known is None:
            known = self._made[name, by] = self.w.registers.fresh_register(32)
            self.w.emit("shr.u32", known, name, str(by))
        return known

    def _permute(self, first: int, second: int, shifted: bool = False) -> str:
        """The byte of one nibble in the lower half, that of the other in the upper one."""
        low, high = (
            self._shift(number // 8, 4 * (number % 2) if shifted else 0)
            for number in (first, second)
        )
        a, b = first % 8 // 2, second % 8 // 2 + 4
        key = (f"{low} {high}", 16 * b + a)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = self.w.registers.fresh_register(32)
            self.w.emit("prmt.b32", known, low, high, f"0x{b}{b}{a}{a}")
        return known

    def _number(self, both: str, high: tuple[int, int]) -> str:
        """Numbers of the lower four (high: upper four) bits of both halves' lowest bytes."""
        mask, flipped, factor, less = (
            sum(half[place] << 16 * i for i, place in enumerate(high))
            for half in _PICKED[self.name, self.form]
        )
        target, result = self.w.registers.fresh_register(32), self.w.registers.fresh_register(32)
        self.w.emit("lop3.b32", target, both, f"0x{mask:08X}", f"0x{flipped:08X}", str(_SELECT))
        added = self._constant(less)
        if self.form == "f16" and not any(high):
            self.w.emit("add.rn.f16x2", result, target, added)
        else:
            by = self._constant(factor)
            self.w.emit(f"fma.rn.{self.form}x2", result, target, by, added)
        return result

    def _constant(self, bits: int) -> str:
        known = self._made.get(("", bits))
        if known is None:
            known = self._made["", bits] = self.w.registers.fresh_register(32)
            self.w.emit("mov.b32", known, f"0x{bits:08X}")
        return known


def scales(w: KernelText, value: SSAValue) -> list[str]:
    """ue8m0 as f32: 2^(c - 127) of a byte c; 0 is subnormal there, 255 NaN."""
    result: list[str] = []
    for register in w.in_registers(value):
        for i in range(4):
            byte, wide = w.registers.fresh_register(32), w.registers.fresh_register(32, "f")
            w.emit("bfe.u32", byte, register, str(8 * i), "8")
            w.emit("shl.b32", wide, byte, "23")
            for code, bits in ((0, "0x00400000"), (255, "0x7FFFFFFF")):
                is_it, picked = w.registers.fresh_register(1), w.registers.fresh_register(32, "f")
                w.emit("setp.eq.s32", is_it, byte, str(code))
                w.emit("selp.b32", picked, bits, wide, is_it)
                wide = picked
            result.append(wide)
    return result[: ptx.length(value.type)]
