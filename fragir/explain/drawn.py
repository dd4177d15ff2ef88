"""The layouts of a program: types that have one, conversions, operands of instructions; pictures.

Every picture is drawn once, whatever shows it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, ParametrizedAttribute

from fragir import isa
from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.draw.grid import Drawing, drawing
from fragir.draw.layouts import conversion_drawing, layout_drawing
from fragir.draw.memory import banks_drawing
from fragir.draw.protocol import protocol_svg
from fragir.emulator.report import Why
from fragir.errors import FragirError
from fragir.explain.report import (
    MOST,
    InstructionShown,
    LayoutPicture,
    OperandShown,
    TypeShown,
    picture_of,
)
from fragir.isa.model import Instruction
from fragir.isa.query import View
from fragir.layout.layout import Layout
from fragir.layout.shared import swizzled

_COMPARED = 1 << 8
"""Cells of a conversion's pictures, of which there are two."""
_MNEMONIC = re.compile(
    r"^\s*(?:@!?%?[\w$]+\s+)?((?:mma|wgmma\.mma_async|ldmatrix|stmatrix|movmatrix)[\w.:]*)(?:\s|$)"
)


class Gallery:
    """Pictures, each once; `pictures` are those that were asked for."""

    def __init__(self) -> None:
        self.pictures: list[LayoutPicture] = []
        self._numbers: dict[tuple[str, ...], int | str] = {}

    def number(
        self, key: tuple[str, ...], draw: Callable[[], Drawing], most: int = MOST
    ) -> tuple[int | None, str]:
        """The number of a picture, or None and why it cannot be drawn."""
        if key not in self._numbers:
            try:
                self.pictures.append(picture_of(draw(), most))
                self._numbers[key] = len(self.pictures) - 1
            except FragirError as error:
                self._numbers[key] = error.sentence
        found = self._numbers[key]
        return (found, "") if isinstance(found, int) else (None, found)

    def protocol(self, why: Why) -> int | None:
        """The number of the picture of who waits for whom, None where there is none."""
        drawn = protocol_svg(why)
        if not drawn:
            return None
        self.pictures.append(LayoutPicture("who waits for whom", drawn))
        return len(self.pictures) - 1


# Types ---------------------------------------------------------------------------------------


def layout_types(module: ModuleOp) -> Iterator[Attribute]:
    """The placed tiles, and memory whose layout is no row after row, among a module's types."""
    seen: set[Attribute] = set()

    def inside(attribute: Attribute) -> Iterator[Attribute]:
        if attribute in seen:
            return
        seen.add(attribute)
        match attribute:
            case frag.TileType():
                if attribute.placement is not None:
                    yield attribute
            case _ if is_memref(attribute):
                if _memory_attribute(attribute) is not None:
                    yield attribute
            case ParametrizedAttribute():
                for part in attribute.parameters:
                    yield from inside(part)
            case _:
                for part in getattr(attribute, "data", ()) if _is_list(attribute) else ():
                    yield from inside(part)

    for op in module.walk():
        for value in (*op.results, *op.operands):
            yield from inside(value.type)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.args:
                    yield from inside(argument.type)


def _is_list(attribute: Attribute) -> bool:
    data: object = getattr(attribute, "data", None)
    return isinstance(data, tuple) and all(isinstance(one, Attribute) for one in data)  # pyright: ignore[reportUnknownVariableType]


def _memory_attribute(type_: MemRefType[Attribute]) -> Attribute | None:
    """What says how shared memory lies: its layout, or its swizzle."""
    if isinstance(type_.layout, frag.ExplicitLayoutAttr):
        return type_.layout
    space = type_.memory_space
    return space if isinstance(space, frag.SharedAttr) and space.swizzle.data else None


def shown_type(type_: Attribute, gallery: Gallery) -> TypeShown:
    """A type of `layout_types`, drawn."""
    if isinstance(type_, frag.TileType):
        layout = type_.resolve()
        number, why = gallery.number(
            ("registers", str(layout)), lambda: layout_drawing(layout, _facts(layout))
        )
        element, resolved = type_.element, str(layout)
        told = str(type_.placement)
        return TypeShown(str(type_), "tile", type_.shape, element, told, resolved, number, why)
    memref = memref_type(type_)
    shape, told = tuple(memref.get_shape()), _memory_attribute(memref)
    element, bits = element_name(memref.element_type), element_bits(memref.element_type)
    try:
        memory = _memory_layout(memref, shape, bits)
        number, why = gallery.number(
            ("memory", str(memory), str(bits)), lambda: banks_drawing(memory, bits=bits)
        )
        resolved = str(memory)
    except FragirError as error:
        number, why, resolved = None, error.sentence, ""
    return TypeShown(str(type_), "memory", shape, element, str(told), resolved, number, why)


def _memory_layout(type_: MemRefType[Attribute], shape: tuple[int, ...], bits: int) -> Layout:
    if min(shape, default=0) < 1:
        raise FragirError("its size is known at the launch only")
    if isinstance(type_.layout, frag.ExplicitLayoutAttr):
        return type_.layout.data
    space = type_.memory_space
    assert isinstance(space, frag.SharedAttr)
    return swizzled(shape[-2:], max(8, bits), space.swizzle.data)


def _facts(layout: Layout) -> tuple[tuple[str, str], ...]:
    return (("layout", str(layout)),)


def conversion_number(source: frag.TileType, target: frag.TileType, gallery: Gallery) -> int | None:
    """The picture of a conversion, before and after; None where it cannot be drawn."""
    before, after = source.resolve(), target.resolve()
    key = ("conversion", str(before), str(after))
    return gallery.number(key, lambda: conversion_drawing(before, after), _COMPARED)[0]


# Instructions --------------------------------------------------------------------------------


def instructions_shown(lines: Sequence[str], gallery: Gallery) -> tuple[InstructionShown, ...]:
    """The tensor-core instructions and matrix copies of PTX, each once, with their operands."""
    found: dict[str, list[int]] = {}
    for number, line in enumerate(lines, 1):
        match = _MNEMONIC.match(line)
        if match is not None:
            found.setdefault(match[1], []).append(number)
    return tuple(_instructions(found.items(), gallery))


def _instructions(
    found: Iterable[tuple[str, list[int]]], gallery: Gallery
) -> Iterator[InstructionShown]:
    for mnemonic, lines in found:
        try:
            instruction = isa.lookup(mnemonic)
        except FragirError:  # of another package's target, or none
            continue
        operands = tuple(_operand(instruction, name, gallery) for name in instruction.operands)
        yield InstructionShown(mnemonic, tuple(lines), operands)


def _operand(instruction: Instruction, name: str, gallery: Gallery) -> OperandShown:
    operand = instruction.operands[name]
    registers = f"{operand.registers.count} x .{operand.registers.type}"
    try:
        view = View.of(instruction, name)
    except FragirError as error:
        return OperandShown(name, f"{registers}: {error.message}", None)
    kind = str(view.layout), operand.element, registers, *map(str, view.shape)
    number, why = gallery.number(("operand", *kind), lambda: drawing(view))
    shape = " x ".join(map(str, view.shape))
    return OperandShown(name, f"{shape} {operand.element}, {registers} {why}".strip(), number)
