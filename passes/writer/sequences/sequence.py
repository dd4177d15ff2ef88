"""A few PTX instructions as a text with names of its own, written once for every element.

    Sequence("x", "abs.f32 a, x; add.rn.f32 d, a, 1.0")

Operands are the names that it is given, results `d` (of two: `d` and `e`), all others are registers
of the sequence. Numbers with a point, `inf` and `nan` are literals of the instruction's type. A
word that ends in a colon is a label, `@p` in front of an instruction its guard; `{d, e}` are two
results that one instruction writes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import float_literal

_WIDTH = re.compile(r"[a-z](\d+)$")
_SEPARATOR = re.compile(r",(?![^{]*})")
_BRACED = re.compile(r"\w+")


@dataclass(frozen=True)
class Sequence:
    """The instructions that compute `d` from operands."""

    operands: str
    """Their names, separated by blanks."""
    text: str
    """Instructions, separated by semicolons or newlines."""

    def write(self, writer: KernelText, results: list[str], operands: list[str]) -> None:
        """Writes it for one element, whose registers are given."""
        names = dict(zip(self.operands.split(), operands, strict=True))
        names |= dict(zip("de", results, strict=False))
        for step in steps(self.text):
            if step.label:
                if step.label not in names:
                    names[step.label] = writer.labels.fresh_label(step.label)
                writer.label(names[step.label])
                continue
            for name in step.local:
                if name not in names:
                    hint = {"f32": "f", "f64": "fd"}.get(step.kind)
                    names[name] = writer.registers.fresh_register(step.width, hint)
            if step.opcode == "bra" and step.operands[0] not in names:
                names[step.operands[0]] = writer.labels.fresh_label(step.operands[0])
            guard = step.guard
            if guard:
                guard = f"!{names[guard[1:]]}" if guard[0] == "!" else names[guard]
            writer.emit(
                step.opcode, *(_spelt(x, names) for x in step.operands), guard=guard or None
            )


@dataclass(frozen=True)
class Step:
    """One instruction, or a label."""

    opcode: str
    operands: tuple[str, ...]
    guard: str = ""
    label: str = ""
    kind: str = ""
    """The type of its result."""
    width: int = 0

    @property
    def local(self) -> tuple[str, ...]:
        """The register that it writes."""
        return self.operands[:1] if self.width else ()


@cache
def steps(text: str) -> tuple[Step, ...]:
    lines = (line.strip() for line in text.replace(";", "\n").splitlines())
    return tuple(_step(line) for line in lines if line)


def _step(line: str) -> Step:
    if line.endswith(":"):
        return Step("", (), label=line[:-1])
    guard = ""
    if line.startswith("@"):
        guard, line = line[1:].split(" ", 1)
    opcode, _, rest = line.partition(" ")
    kind, width = result_type(opcode)
    read = opcode.rsplit(".", 1)[-1]
    operands = tuple(_operand(word.strip(), read) for word in _SEPARATOR.split(rest))
    if operands[0].startswith("{"):
        width = 0  # results, which have registers
    return Step(opcode, operands, guard, "", kind, width)


def result_type(opcode: str) -> tuple[str, int]:
    """The type and width of what an instruction writes; a branch writes nothing."""
    words = opcode.split(".")
    if words[0] == "bra":
        return "", 0
    if words[0] == "setp" or words[-1] == "pred":
        return "pred", 1
    if "wide" in words:
        return words[-1], 2 * int(words[-1][1:])
    kind = words[-2] if words[0] == "cvt" else "u32" if words[0] in ("popc", "clz") else words[-1]
    match = _WIDTH.search(kind)
    assert match is not None
    return kind, int(match[1])


def _spelt(operand: str, names: dict[str, str]) -> str:
    """An operand with the names' registers."""
    if operand.startswith("{"):
        return _BRACED.sub(lambda name: names[name[0]], operand)
    return names.get(operand, operand)


def _operand(word: str, type_: str) -> str:
    number = word.lstrip("-")
    if number in ("inf", "nan") or (number[:1].isdigit() and "." in number):
        return float_literal(float(word), type_)
    return word


def horner(result: str, x: str, coefficients: tuple[float, ...]) -> str:
    """The polynomial with these coefficients, the lowest first, at x, in f32."""
    *rest, last = coefficients
    lines = [f"mov.b32 {result}, {float_literal(last, 'f32')}"]
    for c in reversed(rest):
        lines.append(f"fma.rn.f32 {result}, {result}, {x}, {c!r}")
    return "\n".join(lines)
