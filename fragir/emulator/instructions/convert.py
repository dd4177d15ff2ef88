"""Moves and conversions.

Packing, selection, predicates, cvt of several values (PTX ISA 9.2, 9.7.9).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.alu import Decode, copy, elementwise, nothing, seen_as, sequence
from fragir.emulator.instructions.straight_rows import (
    Encode,
    NoStraightCode,
    StraightDecoder,
    check_words,
    elements,
)
from fragir.emulator.machine.lanes import Mask, Row, Select, Step, store
from fragir.emulator.machine.straight import StraightCode
from fragir.emulator.numbers.quick import brain_of_single, canonical_half
from fragir.emulator.numbers.rounding import (
    decode,
    fixed_point,
    from_fixed_point,
    narrow_at_random,
    narrowed_bits,
    power_of_two,
    scale_value,
)
from fragir.emulator.numbers.types import DTYPES, F64, FORMATS, UINT, Array, Format, width_of
from fragir.emulator.values.c import PAIRS, immediate, join_parts, part_of, widen
from fragir.emulator.values.reals import flush
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder


#: Packed types -> the element; x4 are results only. ue8m0 and s2f6 are no ordinary formats.
ELEMENTS = {
    "f16x2": "f16",
    "bf16x2": "bf16",
    **{f"{e}x{n}": e for e in ("e4m3", "e5m2", "e2m1", "e2m3", "e3m2") for n in (2, 4)},
    "ue8m0x2": "ue8m0",
    "s2f6x2": "s2f6",
}
MODES = ("rn", "rna", "rz", "rm", "rp")
_WIDTHS = {"f16": 16, "bf16": 16, "e2m1": 4}
#: Which byte of rbits each result takes, lowest result first, and which of them are read with
#: their bits in reverse order (observed on B200 and B300, as stated by Dao-AILab/quack; that
#: sm_100 takes the bytes of e2m1 in this order is inferred from the ISA's text).
_RANDOM_BYTES = {
    ("sm_100", 8): ((0, 1, 2, 3), ()),
    ("sm_100", 4): ((0, 2, 1, 3), ()),
    ("sm_103", 8): ((1, 0, 3, 2), (1, 3)),
    ("sm_103", 4): ((2, 0, 3, 1), (1, 3)),
}


def element_width(name: str) -> int:
    """Bits that an element takes in its register (6-bit formats: 8)."""
    return _WIDTHS.get(name, 8)


def _split(packed: Array, width: int) -> tuple[Array, Array]:
    """Low and high element of a pair."""
    of = packed.dtype.type
    return packed & of((1 << width) - 1), packed >> of(width) & of((1 << width) - 1)


def _join(parts: list[Array], width: int, total: int) -> Array:
    """Elements, lowest first, as one register of `total` bits."""
    dtype = np.dtype(f"u{total // 8}")
    packed = parts[0].astype(dtype)
    for at, part in enumerate(parts[1:], 1):
        packed = packed | part.astype(dtype) << dtype.type(width * at)
    return packed


def _reverse_byte(bits: Array) -> Array:
    table = np.array([int(f"{n:08b}"[::-1], 2) for n in range(256)], np.uint32)
    return table[bits]


def _values(bits: Array, name: str) -> F64:
    return from_fixed_point(bits) if name == "s2f6" else decode(bits, FORMATS[name])


def convert_pairs(d: Decoder, ins: tree.Instruction) -> Step:
    """Two values: from two registers, or from the halves of one; four from four registers."""
    words = ins.opcode
    into, kind = [w for w in words[1:] if w in DTYPES]
    if "rs" in words:
        return _at_random(d, ins, into)
    scaled = any(w.startswith("scaled") for w in words)
    element, width, total = ELEMENTS[into], element_width(ELEMENTS[into]), width_of(into)
    given = 2 if kind == "f32" else 1
    if kind != "f32" and kind not in ELEMENTS:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    if d.count(ins) != 1 + given + scaled:
        raise d.error(ins, f"{ins.mnemonic} takes {1 + given + scaled} operands")
    source = "f32" if kind == "f32" else ELEMENTS[kind]
    one = _converter(words, element, source)

    def function(*operands: Array) -> Array:
        # Lowest element first; of two registers the second is the low one.
        parts = (
            (operands[1], operands[0]) if given == 2 else _split(operands[0], element_width(source))
        )
        scales = _split(operands[-1], 8) if scaled else (None, None)
        return _join([one(x, s) for x, s in zip(parts, scales, strict=True)], width, total)

    rows = [d.source(ins, i, f"u{width_of(kind)}", True) for i in range(1, 1 + given)]
    if scaled:
        rows.append(d.source(ins, 1 + given, "u16"))
    out = d.wide_target(ins, d.operand(ins, 0), f"u{total}")
    quick = pair_of_singles(into, words) if given == 2 else None
    views = [seen_as(row, np.dtype(np.float32)) for row in rows]
    if quick is not None and all(row is not None for row in views):
        return elementwise(quick, out, [row for row in views if row is not None])
    return elementwise(function, out, rows)


#: Words of cvt to pairs that are computed the long way.
_BESIDE = frozenset(("relu", "satfinite", "ftz"))


def pair_of_singles(into: str, words: tuple[str, ...]) -> Callable[..., Array] | None:
    """cvt of two f32 to f16x2 or bf16x2: the bits, the second operand in the low half."""
    if "rn" not in words or not _BESIDE.isdisjoint(words):
        return None
    if into == "f16x2":

        def halves(high: Array, low: Array) -> Array:
            both = np.empty((*low.shape, 2), np.float16)
            both[..., 0], both[..., 1] = low, high
            return canonical_half(both, np.isnan(both)).view(np.uint32)[..., 0]

        return halves
    if into == "bf16x2":

        def brains(high: Array, low: Array) -> Array:
            both = np.empty((*low.shape, 2), np.float32)
            both[..., 0], both[..., 1] = low, high
            return brain_of_single(both).view(np.uint32)[..., 0]

        return brains
    return None


def straight_pairs(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
    """Two f32 to a pair of 16 bits."""
    into, kind = [w for w in ins.opcode[1:] if w in DTYPES]
    if into not in PAIRS or kind != "f32":
        raise NoStraightCode
    check_words(ins, "cvt", into, kind, "rn", "rz")
    near, by = PAIRS[into]
    how = immediate(ins.opcode)
    out = d.wide_out(ins, d.operand(ins, 0), "u32")
    return elements((by if how else near).text, out, d.sources(ins, ["u32"] * 2), how)


def _converter(
    words: tuple[str, ...], element: str, source: str
) -> Callable[[Array, Array | None], Array]:
    """One element's bits, and its scale's or None, to the result's bits."""
    mode = next((w for w in words if w in MODES), "rn")
    ftz = "ftz" in words and source == "f32"
    if element == "ue8m0":

        def to_scale(bits: Array, scale: Array | None) -> Array:
            single = bits.astype(np.uint32) << np.uint32(16) if source == "bf16" else bits
            return power_of_two(single, mode, "satfinite" in words)

        return to_scale
    if source == "ue8m0":
        form = FORMATS[element]
        return lambda bits, scale: narrowed_bits(scale_value(bits), form, mode, words)

    def convert(bits: Array, scale: Array | None) -> Array:
        value = _values(flush(bits, "f32") if ftz else bits, source)
        if scale is not None:
            factor = scale_value(scale)
            value = value / factor if element == "s2f6" else value * factor
        if element == "s2f6":
            return fixed_point(value, words)
        return narrowed_bits(value, FORMATS[element], mode, words)

    return convert


def _at_random(d: Decoder, ins: tree.Instruction, into: str) -> Step:
    """.rs: the last operand has the random bits."""
    words = ins.opcode
    name = ELEMENTS[into]
    form, width, total = FORMATS[name], element_width(name), width_of(into)
    if into.endswith("x2"):
        sources = [d.operand(ins, i) for i in (2, 1)]
        bits = 13 if name == "f16" else 16

        def shares(random: Array) -> list[Array]:
            return [part & ((1 << bits) - 1) for part in _split(random, 16)]

    else:
        vector = d.vector(d.operand(ins, 1))
        if len(vector) != 4:
            raise d.error(ins, f"{ins.mnemonic} takes four values in braces")
        sources, bits = list(reversed(vector)), 8
        family = "sm_103" if d.target_name.startswith("sm_103") else "sm_100"
        order, reverse = _RANDOM_BYTES[family, 4 if name == "e2m1" else 8]

        def shares(random: Array) -> list[Array]:
            parts = [random >> np.uint32(8 * byte) & np.uint32(0xFF) for byte in order]
            return [_reverse_byte(p) if i in reverse else p for i, p in enumerate(parts)]

    def function(*operands: Array) -> Array:
        *values, random = operands
        return _join(
            [
                _stochastic(x, form, r, bits, words)
                for x, r in zip(values, shares(random), strict=True)
            ],
            width,
            total,
        )

    rows = [d.row(ins, x, "u32") for x in sources]
    rows.append(d.source(ins, d.count(ins) - 1, "u32"))
    return elementwise(function, d.target(ins, 0, f"u{total}"), rows)


def _stochastic(
    bits: Array, form: Format, random: Array, count: int, words: tuple[str, ...]
) -> Array:
    return narrow_at_random(decode(bits, FORMATS["f32"]), form, random, count, words)


# -- register moves --------------------------------------------------------------------------------
# mov with packing and unpacking, selection, and conversions between predicates and registers.


def move(d: Decoder, ins: tree.Instruction) -> Step:
    """mov: copies bits; `{a, b}` on either side packs or unpacks, low part first."""
    kind = ins.opcode[-1]
    into, out_of = d.operand(ins, 0), d.operand(ins, 1)
    if kind == "b128":
        return _move_128(d, ins, into, out_of)
    if "v2" in ins.opcode or "v4" in ins.opcode:
        return _vector(d, ins, into, out_of, kind)
    if isinstance(into, tree.Vector):
        return _unpack(d, ins, into, kind)
    if isinstance(out_of, tree.Vector):
        return _pack(d, ins, out_of, kind)
    if kind == "pred":
        return copy(d.target(ins, 0, kind), d.source(ins, 1, kind))
    raw = f"u{width_of(kind)}"
    named = isinstance(out_of, tree.Name | tree.Component | tree.Float)
    source = d.row(ins, out_of, kind if not named else raw)
    return copy(d.target(ins, 0, raw), source.view(UINT[width_of(kind) // 8]))


def _vector(
    d: Decoder, ins: tree.Instruction, into: tree.Operand, out_of: tree.Operand, kind: str
) -> Step:
    """mov.v4 from a special register of four parts, or between vectors."""
    targets = d.vector(into)
    count = 2 if "v2" in ins.opcode else 4
    if isinstance(out_of, tree.Vector):
        sources: tuple[tree.Operand, ...] = out_of.elements
    else:
        if not isinstance(out_of, tree.Name):
            raise d.error(ins, f"{ins.mnemonic} cannot take this operand")
        sources = tuple(tree.Component(out_of, part, out_of.at) for part in "xyzw"[:count])
    if len(targets) != count or len(sources) != count:
        raise d.error(ins, f"{ins.mnemonic} moves {count} elements")
    raw = f"u{width_of(kind)}"
    if not isinstance(out_of, tree.Vector):
        d.row(ins, sources[0], raw)
    pairs = [(d.target_of(ins, t, raw), d.row(ins, s, raw)) for t, s in zip(targets, sources)]
    return sequence([copy(t, s) for t, s in pairs])


def _move_128(d: Decoder, ins: tree.Instruction, into: tree.Operand, out_of: tree.Operand) -> Step:
    """mov.b128: between registers, or from and to two or four parts, the lowest first."""
    if isinstance(into, tree.Vector) and isinstance(out_of, tree.Vector):
        raise d.error(ins, f"{ins.mnemonic} needs a .b128 register")
    if isinstance(into, tree.Vector):
        return _pieces(ins, d, into, d.halves(ins, out_of, source=True), True)
    if isinstance(out_of, tree.Vector):
        return _pieces(ins, d, out_of, d.halves(ins, into), False)
    pairs = zip(d.halves(ins, into), d.halves(ins, out_of, source=True), strict=True)
    return sequence([copy(a, b) for a, b in pairs if b is not None])


def _pieces(
    ins: tree.Instruction, d: Decoder, vector: tree.Vector, halves: list[Row | None], unpack: bool
) -> Step:
    count = len(vector.elements)
    if count not in (2, 4):
        raise d.error(ins, f"{ins.mnemonic} cannot be split into {count} parts")
    width = 16 // count
    unit, each = UINT[width], count // 2
    steps: list[Step] = []
    for index, element in enumerate(vector.elements):
        half = halves[index // each]
        if half is None:
            continue
        piece = half.view(unit)[:, index % each :: each]
        if unpack:
            steps.append(copy(d.target_of(ins, element, f"u{8 * width}"), piece))
        else:
            steps.append(copy(piece, d.row(ins, element, f"u{8 * width}")))
    return sequence(steps)


def _part(d: Decoder, ins: tree.Instruction, kind: str, vector: tree.Vector) -> tuple[str, int]:
    count = len(vector.elements)
    width = width_of(kind)
    if count not in (2, 4, 8) or width // count < 8:
        raise d.error(ins, f"{ins.mnemonic} cannot be split into {count} parts")
    return f"u{width // count}", width // count


def _pack(d: Decoder, ins: tree.Instruction, vector: tree.Vector, kind: str) -> Step:
    part, width = _part(d, ins, kind, vector)
    rows = [d.row(ins, e, part) for e in vector.elements]
    out = d.target(ins, 0, f"u{width_of(kind)}")
    if out is None:
        return nothing
    pieces = out.view(UINT[width // 8])
    count = len(rows)
    whole = UINT[width_of(kind) // 8]
    overlaps = any(np.may_share_memory(r, out) for r in rows)

    def run(sel: Select, mask: Mask) -> None:
        if mask is None and not overlaps:
            for index, row in enumerate(rows):
                pieces[sel, index::count] = row[sel]
            return
        values = [row[sel] for row in rows]
        packed = np.stack(np.broadcast_arrays(*values), axis=-1)
        store(out, sel, mask, np.ascontiguousarray(packed).view(whole)[..., 0])

    return run


def _unpack(d: Decoder, ins: tree.Instruction, vector: tree.Vector, kind: str) -> Step:
    part, width = _part(d, ins, kind, vector)
    outs = [d.target_of(ins, e, part) for e in vector.elements]
    whole = d.source(ins, 1, f"u{width_of(kind)}")
    count = len(outs)
    unit = UINT[width // 8]

    def run(sel: Select, mask: Mask) -> None:
        pieces = np.ascontiguousarray(whole[sel]).view(unit)
        if np.may_share_memory(pieces, whole):
            pieces = pieces.copy()
        for index, out in enumerate(outs):
            if out is not None:
                store(out, sel, mask, pieces[:, index::count])

    return run


def straight_move(d: StraightDecoder, ins: tree.Instruction) -> list[StraightCode]:
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
                part_of(part, width).text,
                d.out_of(ins, element, f"u{part}"),
                whole,
                part * at,
            )
        ]
    if isinstance(out_of, tree.Vector):
        part = width // len(out_of.elements)
        rows = [d.operand_of(ins, e, f"u{part}") for e in out_of.elements]
        function = join_parts(len(rows), part)
        if function is None:
            raise NoStraightCode
        return elements(function.text, d.out(ins, 0, f"u{width}"), rows)
    if kind == "pred":
        return elements(widen(8, "u8").text, d.out(ins, 0, kind), d.sources(ins, [kind]))
    raw = f"u{width}"
    named = isinstance(out_of, tree.Name | tree.Component | tree.Float)
    source = d.bits(ins, out_of, kind if not named else raw, raw)
    return elements(widen(width, raw).text, d.out(ins, 0, raw), [source])


STEPS: dict[str, Decode] = {
    "convert packed": convert_pairs,
    "convert to pair": convert_pairs,
    "move": move,
}
RUNS: dict[str, Encode] = {
    "convert to pair": straight_pairs,
    "move": straight_move,
}
