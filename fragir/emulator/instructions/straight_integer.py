"""Integer and logic instructions, and moves, as operations of straight-line runs.

The names are those of native/source/straight_list.h; what is not there is no operation.
"""

from __future__ import annotations

from fragir.emulator.instructions.integer import wide
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    elements,
    only,
)
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.numbers.types import width_of
from fragir.ptx import tree

#: Whether the sign of the type counts.
_SIGNED = {"min", "max", "div", "rem"}
_COUNTS = {"popc", "clz"}


def _typed(kind: str) -> str:
    """u32 for b32."""
    return kind.replace("b", "u")


def simple(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """add to brev: operands of one type, and nothing more in the opcode."""
    if len(ins.opcode) != 2:
        raise NoStraightCode
    name, kind = ins.opcode
    part, times = (kind[:3], 2) if kind in ("u16x2", "s16x2") else (kind, 1)
    if kind == "pred":
        function = "invert_8" if name == "not" else f"{name}_8"
    else:
        function = f"{name}_{_typed(part) if name in _SIGNED else part[1:]}"
    out = d.out(ins, 0, "u32" if name in _COUNTS else kind)
    operands = d.sources(ins, [kind] * (d.count(ins) - 1))
    return elements(function, out, operands, times=times)


_HALVES = {"lo": "", "hi": "high_", "wide": "wide_"}


def multiply(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """mul and mad of lo, hi and wide."""
    if len(ins.opcode) != 3 or ins.opcode[1] not in _HALVES:
        raise NoStraightCode
    name, half, kind = ins.opcode
    result = wide(kind) if half == "wide" else kind
    family = f"{'mad_' if name == 'mad' else ''}{_HALVES[half]}"
    function = f"{family}{kind}" if half != "lo" else f"{name}_{kind[1:]}"
    kinds = [kind, kind, *([result] if name == "mad" else [])]
    return elements(function, d.out(ins, 0, result), d.sources(ins, kinds))


def shift(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    name, kind = ins.opcode[0], _typed(ins.opcode[-1])
    if name == "shl":
        kind = f"u{kind[1:]}"
    function = f"shl_{kind[1:]}" if name == "shl" else f"shr_{kind}"
    return elements(function, d.out(ins, 0, kind), d.sources(ins, (kind, "u32")))


def extract(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    kind = ins.opcode[-1]
    return elements(f"bfe_{kind}", d.out(ins, 0, kind), d.sources(ins, (kind, "u32", "u32")))


def insert(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    kind = _typed(ins.opcode[-1])
    operands = d.sources(ins, (kind, kind, "u32", "u32"))
    return elements(f"bfi_{kind[1:]}", d.out(ins, 0, kind), operands)


def look_up(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    only(ins, "lop3", "b32")
    operands = d.sources(ins, ["u32"] * 3)
    table = (d.literal(ins, 4) or 0) & 0xFF
    return elements("lop3", d.out(ins, 0, "u32"), operands, table)


def permute(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    only(ins, "prmt", "b32")
    return elements("prmt", d.out(ins, 0, "u32"), d.sources(ins, ["u32"] * 3))


def funnel(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    way = "r" if "r" in ins.opcode else "l"
    function = f"funnel_{way}_{'wrap' if 'wrap' in ins.opcode else 'clamp'}"
    return elements(function, d.out(ins, 0, "u32"), d.sources(ins, ["u32"] * 3))


def select(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """selp; the library has the predicate first."""
    word = ins.opcode[-1]
    raw = f"u{width_of(word)}"
    kind = word if word[0] in "fb" else raw
    a, b = (d.bits(ins, d.operand(ins, i), kind, raw) for i in (1, 2))
    p = d.given(ins, 3, "pred")
    return elements(f"selp_{raw[1:]}", d.out(ins, 0, raw), [p, a, b])


def move(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """mov between registers, and to and from their parts."""
    kind = ins.opcode[-1]
    into, out_of = d.operand(ins, 0), d.operand(ins, 1)
    if kind == "b128" or len(ins.opcode) != 2:
        raise NoStraightCode
    width = width_of(kind)
    if isinstance(into, tree.Vector):
        part = width // len(into.elements)
        whole = d.sources(ins, [f"u{width}"])
        return [
            code
            for at, element in enumerate(into.elements)
            for code in elements(
                f"part_{part}_{width}",
                d.out_of(ins, element, f"u{part}"),
                whole,
                part * at,
            )
        ]
    if isinstance(out_of, tree.Vector):
        part = width // len(out_of.elements)
        rows = [d.operand_of(ins, e, f"u{part}") for e in out_of.elements]
        return elements(f"join_{part}_{width}", d.out(ins, 0, f"u{width}"), rows)
    if kind == "pred":
        return elements("copy_8", d.out(ins, 0, kind), d.sources(ins, [kind]))
    raw = f"u{width}"
    named = isinstance(out_of, tree.Name | tree.Component | tree.Float)
    source = d.bits(ins, out_of, kind if not named else raw, raw)
    return elements(f"copy_{width}", d.out(ins, 0, raw), [source])


ENCODERS: dict[str, Encode] = {
    **dict.fromkeys("add sub min max div rem abs neg and or xor not popc clz brev".split(), simple),
    "mul": multiply,
    "mad": multiply,
    "shl": shift,
    "shr": shift,
    "bfe": extract,
    "bfi": insert,
    "lop3": look_up,
    "prmt": permute,
    "shf": funnel,
    "selp": select,
    "mov": move,
}
