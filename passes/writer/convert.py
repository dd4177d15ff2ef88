"""Conversions between element types (PTX ISA 9.2, section 9.7.9.22: cvt)."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import (
    FLOATS,
    MULTIPLIED_ONLY,
    NARROW_FLOATS,
    element_bits,
    element_name,
    element_type,
)
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.isa.model import FLOAT8
from fragir.isa.versions import requirement
from fragir.passes.writer import arith as tables
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import float_literal, vector

# -- packing ---------------------------------------------------------------------------------------
# Elements of a byte and less, packed in registers of 32 bits.


def pad_registers(names: list[str], count: int) -> list[str]:
    """What fills a register of `count` elements; the last of a vector may hold fewer."""
    return [*names, *names[-1:] * (count - len(names))]


def four_bytes(w: KernelText, target: str, words: list[str]) -> None:
    """A register of the lowest bytes of four."""
    low, high = w.registers.fresh_register(32), w.registers.fresh_register(32)
    w.emit("prmt.b32", low, words[0], words[1], "0x0040")
    w.emit("prmt.b32", high, words[2], words[3], "0x0040")
    w.emit("prmt.b32", target, low, high, "0x5410")


HALVES = ("f16", "bf16")
_INTEGER_BITS = {f"{sign}{bits}": bits for sign in "su" for bits in (4, 8, 16, 32, 64)}
_SMALL = {"f16", *FLOAT8} | NARROW_FLOATS
"""Floats whose numbers end before 2^24: what f32 rounds is infinite or the largest in them."""
_ONE_BYTE = {*FLOAT8, *NARROW_FLOATS, "e2m1x2"}
_ANY_FLOAT = FLOATS | NARROW_FLOATS | {"e2m1x2", "ue8m0"}


class Convert:
    """Writes casts: every element to f32, f64 or an integer register, and from there on."""

    def __init__(self, writer: KernelText):
        self.writer = writer
        self._order: tuple[int, ...] | None = None  # in which elements of the source are wanted

    def write(self, op: Operation) -> None:
        """Writes one cast."""
        source, result = op.operands[0], op.results[0]
        self._order = op.picked if isinstance(op, ptx.CvtOp) else None
        first = element_name(ptx.scalar_type(source.type))
        second = element_name(ptx.scalar_type(result.type))
        name = op.cast if isinstance(op, ptx.CvtOp) and op.cast else op.name
        rule = tables.CASTS.get(name, "")
        first, second = _signed_types(rule, first, second)
        if first == second:
            self.writer.alias(result, self.writer.names[source])
        elif "b1" in (first, second):
            raise FragirError(
                f"{first} is not converted to {second}", hint="convert before the kernel"
            )
        elif second in HALVES and is_vector(source.type) and self._halves(source, result, first):
            return
        elif first == "pred":
            self._from_predicate(source, result, second, rule in ("signed", "from_signed"))
        elif second == "pred":
            self._to_predicate(source, result, first)
        elif first in _ANY_FLOAT and second in _ANY_FLOAT:
            self._float(source, result, first, second)
        elif first in _ANY_FLOAT:
            self._to_integer(source, result, first, second)
        elif second in _ANY_FLOAT:
            self._from_integer(source, result, first, second)
        else:
            self._integer(source, result, first, second)

    def _halves(self, source: SSAValue, result: SSAValue, first: str) -> bool:
        """Elements of a byte and less as halves at once; False where it takes f32."""
        if _bits_of(first) > 8 or first in ("ue8m0", "pred"):
            return False
        from fragir.passes.writer.unpack import IN_BF16, Unpack

        second = element_name(ptx.scalar_type(result.type))
        if second == "bf16" and (first not in IN_BF16 or not self.writer.has("fma.rn.bf16x2")):
            return False
        self.writer.alias(result, Unpack(self.writer).halves(source, second, self._order, first))
        return True

    # --- between floats -----------------------------------------------------------------------

    def _float(self, source: SSAValue, result: SSAValue, first: str, second: str) -> None:
        w = self.writer
        if "f64" in (first, second):
            names = list(w.in_registers(source)) if first == "f64" else self.to_f32(source)
            if first == "f64" and second == "f32":
                for target, name in zip(w.define(result), names, strict=True):
                    w.emit("cvt.rn.f32.f64", target, name)
            elif first == "f64":
                self._rounded_once(result, names, first, second)
            else:
                for target, name in zip(w.define(result), names, strict=True):
                    w.emit("cvt.f64.f32", target, name)
            return
        names = self.to_f32(source)
        if second in ("f32", "tf32"):
            if first not in ("f32", "tf32") or second == "f32":
                w.alias(result, names)
                return
            for target, name in zip(w.define(result), names, strict=True):
                w.emit("cvt.rna.tf32.f32", target, name)
            return
        self.from_f32(result, names, second)

    def to_f32(self, value: SSAValue) -> list[str]:
        """Every element of a value as an f32 register."""
        w = self.writer
        name = element_name(ptx.scalar_type(value.type))
        if name in ("f32", "tf32"):
            return list(w.in_registers(value))
        if name == "ue8m0":
            from fragir.passes.writer.unpack import scales

            return scales(w, value)
        registers = w.in_registers(value)
        if name in FLOAT8 or name in MULTIPLIED_ONLY:
            return self._small_to_f32(value)
        if not is_vector(value.type):
            target = w.registers.fresh_register(32, "f")
            w.emit(f"cvt.f32.{name}", target, registers[0])
            return [target]
        result: list[str] = []
        for register in registers:
            pair = [w.registers.fresh_register(16), w.registers.fresh_register(16)]
            w.emit("mov.b32", vector(pair), register)
            for half in pair:
                result.append(w.registers.fresh_register(32, "f"))
                w.emit(f"cvt.f32.{name}", result[-1], half)
        return result[: ptx.length(value.type)]

    def _small_to_f32(self, value: SSAValue) -> list[str]:
        """Elements of a byte and less, by way of f16."""
        from fragir.passes.writer.unpack import Unpack

        w = self.writer
        result: list[str] = []
        for both in Unpack(w).halves(value):
            halves = [w.registers.fresh_register(16), w.registers.fresh_register(16)]
            w.emit("mov.b32", vector(halves), both)
            for half in halves:
                result.append(w.registers.fresh_register(32, "f"))
                w.emit("cvt.f32.f16", result[-1], half)
        return result[: ptx.length(value.type)]

    def from_f32(self, result: SSAValue, names: list[str], second: str) -> None:
        """A value from one f32 register or literal an element, rounded to nearest even."""
        w = self.writer
        if second == "tf32":
            for target, name in zip(w.define(result), names, strict=True):
                w.emit("cvt.rna.tf32.f32", target, name)
        elif second == "ue8m0":
            from fragir.passes.writer.sequences.rounding import UE8M0

            codes = [w.registers.fresh_register(32) for _ in names]
            for target, name in zip(codes, names, strict=True):
                UE8M0.write(w, [target], [name])
            self.narrow(result, codes, 8)
        elif second in _ONE_BYTE:
            write(w, result, names, second)
        elif not is_vector(result.type):
            w.emit(f"cvt.rn.{second}.f32", w.define(result)[0], names[0])
        else:
            for i, target in enumerate(w.define(result)):
                low, high = names[2 * i], names[min(2 * i + 1, len(names) - 1)]
                self._pair(target, low, high, second)

    def _pair(self, target: str, low: str, high: str, second: str) -> None:
        w = self.writer
        opcode = f"cvt.rn.{second}x2.f32"
        if w.has(opcode):
            w.emit(opcode, target, high, low)
            return
        if second == "bf16":
            lowest = requirement(opcode).lowest_target
            raise FragirError(f"f32 is converted to bf16 from {lowest} on")
        halves = [w.registers.fresh_register(16), w.registers.fresh_register(16)]
        for half, name in zip(halves, (low, high), strict=True):
            w.emit("cvt.rn.f16.f32", half, name)
        w.emit("mov.b32", target, vector(halves))

    # --- with integers ------------------------------------------------------------------------

    def widen(self, value: SSAValue, name: str) -> list[str]:
        """Integers as 32- or 64-bit registers, bytes extended by their sign."""
        w = self.writer
        registers = w.in_registers(value)
        bits = _INTEGER_BITS[name]
        if bits >= 32:
            return list(registers)
        sign = "s32" if name.startswith("s") else "u32"
        result: list[str] = []
        if not is_vector(value.type):
            result.append(w.registers.fresh_register(32))
            if bits == 16:
                w.emit(f"cvt.{sign}.{name}", result[0], registers[0])
            else:
                w.emit(f"bfe.{sign}", result[0], registers[0], "0", str(bits))
            return result
        per = 32 // bits
        for i in self._order or range(ptx.length(value.type)):
            result.append(w.registers.fresh_register(32))
            w.emit(f"bfe.{sign}", result[-1], registers[i // per], str(bits * (i % per)), str(bits))
        return result

    def _from_integer(self, source: SSAValue, result: SSAValue, first: str, second: str) -> None:
        w = self.writer
        names = self.widen(source, first)
        kind = first if _INTEGER_BITS[first] >= 32 else f"{first[0]}32"
        if second in ("f32", "f64"):
            for target, name in zip(w.define(result), names, strict=True):
                w.emit(f"cvt.rn.{second}.{kind}", target, name)
            return
        if _INTEGER_BITS[first] > 16 and second not in _SMALL:
            self._rounded_once(result, names, first, second)
            return
        floats = [w.registers.fresh_register(32, "f") for _ in names]
        for target, name in zip(floats, names, strict=True):
            w.emit(f"cvt.rn.f32.{kind}", target, name)
        self.from_f32(result, floats, second)

    def _rounded_once(self, result: SSAValue, names: list[str], first: str, second: str) -> None:
        """What f32 does not hold, in a narrower float: by an instruction, or by way of f32."""
        w = self.writer
        opcode = f"cvt.rn.{second}.{first}"
        if second not in HALVES or not w.has(opcode):
            from fragir.passes.writer.sequences.rounding import to_odd

            floats = [w.registers.fresh_register(32, "f") for _ in names]
            for target, name in zip(floats, names, strict=True):
                to_odd(first).write(w, [target], [name])
            self.from_f32(result, floats, second)
            return
        if not is_vector(result.type):
            w.emit(opcode, w.define(result)[0], names[0])
            return
        halves = [w.registers.fresh_register(16) for _ in names]
        for half, name in zip(halves, names, strict=True):
            w.emit(opcode, half, name)
        for i, target in enumerate(w.define(result)):
            w.emit("mov.b32", target, vector(pad_registers(halves[2 * i : 2 * i + 2], 2)))

    def _to_integer(self, source: SSAValue, result: SSAValue, first: str, second: str) -> None:
        w = self.writer
        names = list(w.in_registers(source)) if first == "f64" else self.to_f32(source)
        kind = "f64" if first == "f64" else "f32"
        if _INTEGER_BITS[second] >= 32:
            for target, name in zip(w.define(result), names, strict=True):
                w.emit(f"cvt.rzi.{second}.{kind}", target, name)
            return
        # cvt to 8 bits saturates (section 9.7.9.22: integer results are clamped)
        integers = [w.registers.fresh_register(32) for _ in names]
        for target, name in zip(integers, names, strict=True):
            w.emit(
                f"cvt.rzi.{second if second[1:] != '4' else second[0] + '8'}.{kind}", target, name
            )
        if _INTEGER_BITS[second] == 4:
            integers = [self._clamp(name, second) for name in integers]
        self.narrow(result, integers, _INTEGER_BITS[second])

    def _clamp(self, name: str, second: str) -> str:
        """A byte as a number of four bits; cvt saturates to eight."""
        low, high = (-8, 7) if second == "s4" else (0, 15)
        least, most = (
            self.writer.registers.fresh_register(32),
            self.writer.registers.fresh_register(32),
        )
        self.writer.emit("max.s32", least, name, str(low))
        self.writer.emit("min.s32", most, least, str(high))
        return most

    def _from_predicate(self, source: SSAValue, result: SSAValue, second: str, sign: bool) -> None:
        """1 or 0; one bit with a sign is -1 or 0."""
        w = self.writer
        one, conditions = -1 if sign else 1, w.in_registers(source)
        if second in FLOATS:
            kind = "f64" if second == "f64" else "f32"
            texts = tuple(float_literal(x, kind) for x in (one, 0))
            narrow = second not in ("f32", "f64", "tf32")
        else:
            bits = max(32, _INTEGER_BITS[second])
            kind, texts, narrow = f"b{bits}", (str(one), "0"), _INTEGER_BITS[second] < 32
        targets = w.define(result)
        if narrow:
            targets = [
                w.registers.fresh_register(32, "f" if kind == "f32" else None) for _ in conditions
            ]
        for target, condition in zip(targets, conditions, strict=True):
            w.emit(f"selp.{kind}", target, *texts, condition)
        if narrow and second in FLOATS:
            self.from_f32(result, list(targets), second)
        elif narrow:
            self.narrow(result, list(targets), _INTEGER_BITS[second])

    def _to_predicate(self, source: SSAValue, result: SSAValue, first: str) -> None:
        """The lowest bit of an integer."""
        w = self.writer
        if first in FLOATS:
            raise FragirError(f"{first} is not converted to i1", hint="compare: arith.cmpf")
        wide = _INTEGER_BITS[first] == 64
        names = list(w.in_registers(source)) if wide else self.widen(source, first)
        bits = 64 if wide else 32
        for target, name in zip(w.define(result), names, strict=True):
            low = w.registers.fresh_register(bits)
            w.emit(f"and.b{bits}", low, name, "1")
            w.emit(f"setp.ne.u{bits}", target, low, "0")

    def _integer(self, source: SSAValue, result: SSAValue, first: str, second: str) -> None:
        w = self.writer
        names = self.widen(source, first)
        from_bits, to_bits = _INTEGER_BITS[first], _INTEGER_BITS[second]
        kind = first if from_bits >= 32 else f"{first[0]}32"
        if to_bits == 64:
            for target, name in zip(w.define(result), names, strict=True):
                w.emit(f"cvt.{second[0]}64.{kind}", target, name)
        elif to_bits == 32 and from_bits <= 32:
            w.alias(result, names)
        elif to_bits == 32:
            for target, name in zip(w.define(result), names, strict=True):
                w.emit("cvt.u32.u64", target, name)
        else:
            if from_bits == 64:
                low = [w.registers.fresh_register(32) for _ in names]
                for target, name in zip(low, names, strict=True):
                    w.emit("cvt.u32.u64", target, name)
                names = low
            self.narrow(result, names, to_bits)

    def narrow(self, result: SSAValue, names: list[str], bits: int) -> None:
        """The low bits of 32-bit registers, packed."""
        w = self.writer
        if not is_vector(result.type):
            if bits == 16:
                w.emit("cvt.u16.u32", w.define(result)[0], names[0])
            else:
                w.alias(result, names)
            return
        per = 32 // bits
        for i, target in enumerate(w.define(result)):
            part = pad_registers(names[i * per : (i + 1) * per], per)
            if bits == 4:
                word = part[0]
                for at, name in enumerate(part[1:], 1):
                    longer = target if at == per - 1 else w.registers.fresh_register(32)
                    w.emit("bfi.b32", longer, name, word, str(4 * at), "4")
                    word = longer
                continue
            if bits == 16:
                w.emit("prmt.b32", target, part[0], part[-1], "0x5410")
                continue
            four_bytes(w, target, part)


def _bits_of(name: str) -> int:
    """The bits of an element."""
    return _INTEGER_BITS.get(name) or element_bits(element_type(name))


def _signed_types(rule: str, first: str, second: str) -> tuple[str, str]:
    """The types with the signedness that arith's operation says."""
    if rule in ("from_unsigned", "unsigned"):
        first = first.replace("s", "u") if first in _INTEGER_BITS else first
    if rule == "to_unsigned":
        second = second.replace("s", "u") if second in _INTEGER_BITS else second
    if rule == "unsigned" and second in _INTEGER_BITS:
        second = second.replace("s", "u")
    return first, second


# -- narrow floats ---------------------------------------------------------------------------------
# f32 as floats of eight bits and fewer, two at a time (PTX ISA 9.2, section 9.7.9.22).


def write(w: KernelText, result: SSAValue, names: list[str], second: str) -> None:
    """A value from one f32 register or literal an element; FragirError on other targets."""
    opcode = f"cvt.rn.satfinite.{second.removesuffix('x2')}x2.f32"
    if not w.has(opcode):
        lowest = requirement(opcode).lowest_target
        raise FragirError(f"f32 is converted to {second} from {lowest} on, not on {w.target}")
    per = 8 if second == "e2m1x2" else 4
    for i, target in enumerate(w.define(result)):
        part = pad_registers(names[per * i : per * (i + 1)], per)
        pairs = list(zip(part[::2], part[1::2], strict=True))
        if second in FLOAT8:
            both = [w.registers.fresh_register(16) for _ in pairs]
            for pair, (low, high) in zip(both, pairs, strict=True):
                w.emit(opcode, pair, high, low)
            w.emit("mov.b32", target, vector(both))
            continue
        words = [_word(w, opcode, low, high) for low, high in pairs]
        if per == 8:
            four_bytes(w, target, words)
            continue
        if second == "e2m1":
            words = [_spread_nibbles(w, word) for word in words]
        w.emit("prmt.b32", target, *words, "0x5410")


def _word(w: KernelText, opcode: str, low: str, high: str) -> str:
    """Two floats as the lowest bits of a register: a byte each, or two nibbles of one byte."""
    word = w.registers.fresh_register(32)
    if ".e2m1x2" not in opcode:
        pair = w.registers.fresh_register(16)
        w.emit(opcode, pair, high, low)
        w.emit("cvt.u32.u16", word, pair)
        return word
    # the byte register exists inside of braces only
    w.lines.append("    { .reg .b8 %b;")
    w.emit(opcode, "%b", high, low)
    w.emit("cvt.u32.u8", word, "%b")
    w.lines.append("    }")
    return word


def _spread_nibbles(w: KernelText, word: str) -> str:
    """Two nibbles of a byte as two bytes."""
    spread = w.registers.fresh_register(32)
    w.emit("shl.b32", spread, word, "4")
    w.emit("and.b32", spread, spread, "0x0F00")
    w.emit("lop3.b32", word, word, "0x0F", spread, "0xEA")
    return word
