"""What the operands of a statement of PTX held in a run on the emulator, as the matrices they are.

    line_values(ptx, "58", entry="gemm", grid=(2,), block=(128,), arguments=[a, b, c])
    line_values(ptx, "58:%r1,%r2=f16x2@last", ...)      # registers ahead of line 58

What a statement reads is looked at ahead of it, what it writes behind it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from fragir import isa
from fragir.dialects.elements import element_bits, element_type
from fragir.errors import FragirError, check_kind
from fragir.explain.held import (
    Disagreement,
    HeldValue,
    ValueAsked,
    collect_matrix,
    decode_elements,
    each_slot,
    notes_of,
    parse_request,
    several,
    unpack_elements,
)
from fragir.explain.looks import Look, Words, check_reached, looking, run_for
from fragir.isa.query import View
from fragir.ptx import parse, tree
from fragir.ptx.visit import walk

_READ_ONLY = ("st", "red", "stmatrix", "cp", "prefetch", "mbarrier", "fence")
_ENDS = ("bra", "brx", "ret", "exit", "call", "bar", "barrier", "trap")
_TYPE = re.compile(r"(bf16|tf32|f16|f32|f64|e\dm\d|ue8m0|[sub]\d+|pred)(?:x(\d+))?")
_ORDER = {
    "mma": ("d", "a", "b", "c"),
    "mma.sp": ("d", "a", "b", "c", "e"),
    "wgmma": ("d", "a"),
    "wgmma.sp": ("d", "a", "", "e"),
    "ldmatrix": ("registers",),
    "stmatrix": ("", "registers"),
    "movmatrix": ("d", "a"),
}
"""Operands with registers that hold a matrix, in the order of PTX; wgmma's c is its d before."""


class _Part(NamedTuple):
    """Registers of `width` bits that are one value, read as a type such as f16 or f16x2: those of
    an operand, whose `view` says which matrix they are, or one that has a value in each lane.
    """

    name: str
    registers: tuple[str, ...]
    after: bool
    view: View | None
    type: str
    width: int


def line_values(ptx: str, at: str | ValueAsked, **options: Any) -> list[HeldValue]:
    """What a statement's operands, or the registers that are named, held.

    `options` are those of `fragir.emulator.run`: entry, grid, block, arguments, ...; the arrays
    stay as they are. Operands of tensor-core instructions and matrix copies are matrices, of the
    first warp (warpgroup) that came there unless one is asked for; any other register has a value
    for each lane, [warp, lane] or, packed, [warp, lane, element]. FragirError for a line without a
    statement, and where the run never came there.
    """
    from fragir import emulator

    check_kind(ptx, str, "line_values takes PTX text")
    wanted = parse_request(at)
    parts = sorted(_Text(ptx).parts(wanted), key=lambda part: part.after)
    entry = options.get("entry")
    looks = [
        Look(wanted.line, part.registers, part.after, entry, wanted.block, wanted.occurrence)
        for part in parts
    ]
    options = copy.deepcopy(options)
    hooks = [*options.pop("checks", ()), looking(looks)]
    ended = run_for(lambda: emulator.run(ptx, checks=hooks, **options), looks)
    check_reached(wanted.where, wanted, looks)
    found: list[HeldValue] = []
    for part, look in zip(parts, looks, strict=True):
        if part.view is None:
            made = _lanes(part, look, wanted)
        else:
            made = _matrix(part, look, part.view, wanted)
        notes = [*notes_of(made)]
        if look.under_way:
            names = several(sorted(look.under_way))
            notes.append(f"a wgmma under way was still to write {names}: ask behind its wait")
        if ended:
            notes.append(f"the run ended with an error: {ended}")
        found.append(replace(made, notes=tuple(notes)))
    return found


class _Text:
    """PTX by lines, and the registers that it declares."""

    def __init__(self, ptx: str) -> None:
        module = parse(ptx)
        assert module.source is not None
        self.lines: dict[int, tree.Instruction] = {}
        self._types: dict[str, str] = {}
        self._ranges: dict[str, str] = {}
        for node in walk(module):
            if isinstance(node, tree.Instruction):
                self.lines.setdefault(module.source.place(node.at)[0], node)
            elif isinstance(node, tree.Declaration) and node.space == "reg":
                for variable in node.variables:
                    types = self._types if variable.count is None else self._ranges
                    types[variable.name.text] = node.type

    def statement(self, wanted: ValueAsked) -> tree.Instruction:
        """The instruction of the line that is asked for."""
        if wanted.name is not None or not wanted.line:
            raise FragirError(
                f"{wanted.where} is no line of PTX", hint="write 58, or 58:%r1 for a register"
            )
        if wanted.line not in self.lines:
            behind = min((line for line in self.lines if line > wanted.line), default=None)
            raise FragirError(
                f"line {wanted.line} of the PTX has no instruction",
                hint=None if behind is None else f"the next one stands in line {behind}",
            )
        return self.lines[wanted.line]

    def type_of(self, name: str) -> str:
        """The type that a register is declared with; empty for what is none."""
        return self._types.get(name) or self._ranges.get(name.rstrip("0123456789"), "")

    def registers(self, node: tree.Node) -> Iterator[str]:
        """The registers that an operand names, in order."""
        for part in walk(node):
            if isinstance(part, tree.Name) and self.type_of(part.text):
                yield part.text

    # --- what is looked at ------------------------------------------------------------------------

    def parts(self, wanted: ValueAsked) -> Iterator[_Part]:
        """The values that a request is about."""
        found = self.statement(wanted)
        if wanted.registers:
            if wanted.after and found.opcode[0] in _ENDS:
                raise FragirError(
                    f"behind {found.mnemonic} stands what runs elsewhere",
                    hint="ask ahead of the statement that is to run next",
                )
            for name, kind in wanted.registers:
                yield self._register(found, name, kind, wanted.after)
            return
        operands = list(self._operands(found, wanted.type))
        if not operands:
            writes = found.opcode[0] not in (*_READ_ONLY, *_ENDS)
            named = [
                (name, writes and number == 0)
                for number, operand in enumerate(found.operands)
                for name in self.registers(operand)
            ]
            operands = [
                self._register(found, name, wanted.type, after)
                for name, after in dict.fromkeys(named)
            ]
        if not operands:
            raise FragirError(
                f"{found.mnemonic} in line {wanted.line} has no register",
                hint=f"name one: {wanted.line}:%r1",
            )
        yield from operands

    def _register(self, found: tree.Instruction, name: str, kind: str, after: bool) -> _Part:
        declared = self.type_of(name)
        if not declared:
            raise FragirError(f"the PTX declares no register {name}")
        width = 1 if declared == "pred" else int(declared.lstrip("sbuf"))
        if width == 128:
            raise FragirError(f"{name} has 128 bits", hint="ask for the halves it is made of")
        if not kind:
            said = found.opcode if self._is_plain(found, name) else ()
            kind = next((word for word in reversed(said) if _is_filling(word, width)), declared)
        elif not _per(kind, width):
            raise FragirError(
                f"{name} has {width} bits and cannot be read as {kind}",
                hint="write f32, s32, f16x2, bf16x2, e4m3x4, ...",
            )
        return _Part(name, (name,), after, None, kind, width)

    def _is_plain(self, found: tree.Instruction, name: str) -> bool:
        """Whether the opcode's types are that of a register: not of a matrix, nor of no operand."""
        if found.opcode[0] in ("mma", "wgmma", "ldmatrix", "stmatrix", "movmatrix"):
            return False
        return any(name in self.registers(operand) for operand in found.operands)

    def _operands(self, instruction: tree.Instruction, kind: str) -> Iterator[_Part]:
        """The operands of a tensor-core instruction or matrix copy that are matrices in registers.

        The accumulator of a wgmma is read and written in place.
        """
        try:
            found = isa.lookup(instruction.mnemonic)
        except FragirError:
            return
        for name, operand in zip(_ORDER.get(found.family, ()), instruction.operands, strict=False):
            registers, known = tuple(self.registers(operand)), found.operands.get(name)
            if known is None or known.layout is None or len(registers) != known.registers.count:
                continue
            numbers = [one.value for one in instruction.operands if isinstance(one, tree.Integer)]
            view = View.of(found, name, selector=numbers[0] if name == "e" and numbers else 0)
            read = kind or view.operand.element
            width = 64 if known.registers.type.endswith("64") else 32
            if found.family.startswith("wgmma") and name == "d":
                yield _Part("c", registers, False, view, read, width)
            else:
                after = name == "d" or (name, found.family) == ("registers", "ldmatrix")
                yield _Part(name, registers, after, view, read, width)


def _per(kind: str, width: int) -> int:
    """How many elements of a type a register holds; 0 where it cannot be read as that."""
    match = _TYPE.fullmatch(kind)
    if match is None:
        return 0
    bits = _bits(match[1])
    count = int(match[2]) if match[2] else 1
    return count if 0 < bits * count <= width and (bits == 1) == (width == 1) else 0


def _is_filling(kind: str, width: int) -> bool:
    match = _TYPE.fullmatch(kind)
    return match is not None and _bits(match[1]) * int(match[2] or 1) == width


def _bits(element: str) -> int:
    if element == "pred":
        return 1
    if element[0] in "sub" and element[1:].isdigit():
        return int(element[1:])
    try:
        return element_bits(element_type(element))
    except (FragirError, KeyError):
        return 0


# What was seen ----------------------------------------------------------------------------------


def _lanes(part: _Part, look: Look, wanted: ValueAsked) -> HeldValue:
    """A register with a value for each lane."""
    match = _TYPE.fullmatch(part.type)
    assert match is not None
    codes = unpack_elements([look.words[part.name]], part.width, _bits(match[1]))
    codes = codes[..., : _per(part.type, part.width)]
    known = np.broadcast_to(look.reached[..., None], codes.shape).copy()
    if codes.shape[-1] == 1:
        codes, known = codes[..., 0], known[..., 0]
    return _held_value(part, look, wanted, match[1], codes, known, each_slot(known), ())


def _matrix(part: _Part, look: Look, view: View, wanted: ValueAsked) -> HeldValue:
    """An operand as the matrix of the warp or warpgroup."""
    group = view.instruction.warps
    came = np.flatnonzero(look.reached.any(axis=1)) // group
    chosen = int(came[0]) if wanted.warp is None else wanted.warp // group
    if chosen not in came:
        raise FragirError(
            f"{wanted.where}: warp {wanted.warp} never came there",
            hint=f"these did: {several(sorted({int(n) * group for n in came}))}",
        )
    own = slice(chosen * group, (chosen + 1) * group)
    held = view.place(0, 0)
    slot = part.width * len(part.registers) // view.elements
    codes = unpack_elements([look.words[name][own] for name in part.registers], part.width, slot)
    codes = (codes >> np.uint64(held.low)) & np.uint64((1 << held.high - held.low + 1) - 1)
    there = np.broadcast_to(look.reached[own][..., None], codes.shape)
    element = part.type if _bits(part.type) else f"u{slot}"
    bits, known, slots, said = collect_matrix(
        view.layout, view.shape, element, codes, there, chosen * group
    )
    return _held_value(part, look, wanted, element, bits, known, slots, said, view)


def _held_value(
    part: _Part,
    look: Look,
    wanted: ValueAsked,
    element: str,
    bits: Words,
    known: npt.NDArray[np.bool_],
    slots: npt.NDArray[np.int64],
    said: Sequence[Disagreement],
    view: View | None = None,
) -> HeldValue:
    return HeldValue(
        name=part.name,
        element=element,
        shape=bits.shape,
        matrix=decode_elements(bits, element),
        bits=bits,
        known=known,
        slots=slots,
        layout=None if view is None else view.layout,
        ptx_line=look.line,
        block=wanted.block,
        occurrence=wanted.occurrence,
        times=int(look.times.max(initial=0)),
        disagreements=tuple(said),
    )
