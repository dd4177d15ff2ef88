"""The page's tables, made from `fragir.isa`: every instruction, packed so that nothing is twice."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from fragir import isa
from fragir.isa.build import scale_blocks
from fragir.isa.descriptors import KINDS, TCGEN05_FIELDS, WGMMA_FIELDS, Field, type_codes
from fragir.isa.elements import BITS
from fragir.isa.model import Instruction, Operand
from fragir.isa.operand_tiles import operand_tiles

_IN_UNITS_OF_16 = ("start", "leading", "stride")


class _Values:
    """Values by number, each once."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.values: list[Any] = []

    def number(self, value: Any) -> int:
        key = repr(value)
        if key not in self._numbers:
            self._numbers[key] = len(self.values)
            self.values.append(value)
        return self._numbers[key]


class _Packed:
    def __init__(self) -> None:
        self.layouts, self.operands, self.operand_sets = _Values(), _Values(), _Values()
        self.targets, self.lowering, self.selectors = _Values(), _Values(), _Values()
        self.reasons, self.forms = _Values(), _Values()

    def instruction(self, found: Instruction) -> list[Any]:
        operands = [self.operand(operand) for operand in found.operands.values()]
        scaled = "sfa" in found.operands
        return [
            found.mnemonic,
            found.family,
            list(found.shape),
            self.operand_sets.number(operands),
            self.targets.number(dict(found.targets)),
            self.lowering.number(dict(found.lowering)),
            self.selectors.number(list(found.selectors)),
            scale_blocks(found.form) if scaled else 1,
            -1 if found.refused is None else self.reasons.number(found.refused),
        ]

    def operand(self, operand: Operand) -> int:
        registers = operand.registers
        layout = -1 if operand.layout is None else self.layouts.number(str(operand.layout))
        return self.operands.number(
            [
                operand.name,
                registers.count,
                registers.type,
                registers.cls,
                operand.element,
                layout,
                list(operand.shape),
                operand.chunk,
                self.forms.number(list(_forms(operand))),
            ]
        )


def _forms(operand: Operand) -> Iterator[list[Any]]:
    """The canonical layouts of a descriptor: major, swizzle, tile, LBO, SBO, layout."""
    if operand.registers.cls != "descriptor":
        return
    for major, per_major in operand_tiles(operand).items():
        for swizzle, form in per_major.items():
            shared = form.shared
            yield [major, swizzle, form.mn, form.k, shared.leading, shared.stride, form.text]


def _field(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "high": field.high,
        "low": field.low,
        "meaning": field.meaning,
        "bytes": field.name in _IN_UNITS_OF_16,
    }


def descriptor_tables() -> dict[str, Any]:
    """The fields of descriptors, by kind."""
    return {
        "matrix": {
            "wgmma": [_field(field) for field in WGMMA_FIELDS],
            "tcgen05": [_field(field) for field in TCGEN05_FIELDS],
        },
        "instruction": {
            name: {
                "fields": [{**_field(f), "bytes": False} for f in fields],
                "codes": type_codes(name),
            }
            for name, (fields, _, _) in KINDS.items()
        },
    }


def tables() -> dict[str, Any]:
    """All that the page knows, as JSON."""
    packed = _Packed()
    rows = [packed.instruction(found) for found in isa.instructions()]
    return {
        "instructions": rows,
        "layouts": packed.layouts.values,
        "operands": packed.operands.values,
        "operandSets": packed.operand_sets.values,
        "targetSets": packed.targets.values,
        "loweringSets": packed.lowering.values,
        "selectorSets": packed.selectors.values,
        "reasons": packed.reasons.values,
        "forms": packed.forms.values,
        "bits": dict(BITS),
        "descriptors": descriptor_tables(),
    }
