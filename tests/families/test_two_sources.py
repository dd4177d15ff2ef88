"""The compiler's lane maps and the emulator's, element by element.

The compiler takes them from a few rules (fragir.isa), the emulator from the text of the PTX ISA
(fragir.emulator.tensor_cores.maps). They meet here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from fragir import isa
from fragir.emulator.tensor_cores.maps import Formula, Ints, formula, formulas
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.layout import Layout

Pair = tuple[Instruction, str, Formula]


def dense_key(instruction: Instruction, operand: str, element: str) -> str:
    """What the formulas call an operand: the f16 m8n8k4 has one for every variant."""
    if instruction.shape != (8, 8, 4) or instruction.types.a != "f16":
        return "c" if operand in ("c", "d") else operand
    if operand in ("a", "b"):
        return f"{operand}.{instruction.form.layouts['ab'.index(operand)]}"
    return f"c.{element}"


def text_of(instruction: Instruction, operand: str) -> tuple[str, str, str, str] | None:
    """Part, shape, type and operand of the formula for an operand; None where it needs none."""
    held = instruction.operands[operand]
    m, n, k = instruction.shape
    first = instruction.types.a
    if held.layout is None or operand in ("sfa", "sfb"):
        return None
    family = instruction.family
    if family.startswith("wgmma"):
        if operand in ("c", "d"):
            return "WGMMA", "m64nN", first, "d"
        sparse = family == "wgmma.sp"
        if operand == "e":
            return "WGMMA", f"m64nNk{k}", first, "e"
        return "WGMMA", f"m64nNk{k // 2 if sparse else k}", first, "a"
    if not family.startswith("mma"):
        return None
    element = instruction.types.b if operand == "b" else first
    if family == "mma" or operand in ("c", "d"):
        shape = f"m{m}n{n}k{k}" if family == "mma" else "m16n8k16"
        if family != "mma":
            element = "f16"  # the sparse accumulators are those of m16n8k16
        key = dense_key(instruction, operand, held.element) if family == "mma" else "c"
        return "DENSE", shape, element, key
    return "SPARSE", f"m{m}n{n}k{k}", element, operand


def instructions(family: str) -> list[Instruction]:
    """Those of a family that may be used."""
    every = isa.instructions()
    return [i for i in every if i.family.startswith(family) and not i.refused]


def pairs(family: str) -> Iterator[Pair]:
    """Every operand of a family's instructions with its formula."""
    for instruction in instructions(family):
        for operand in instruction.operands:
            key = text_of(instruction, operand)
            if key is not None:
                yield instruction, operand, formula(*key)


def from_table(layout: Layout) -> Ints:
    """[element, lane, dimension], -1 where the table says that there is nothing."""
    lanes, elements = layout.size("lane"), layout.size("element")
    nothing = (-1,) * len(layout.dims)
    return np.array(
        [
            [layout(lane=lane, element=e) or nothing for lane in range(lanes)]
            for e in range(elements)
        ],
        np.int64,
    )


def from_text(form: Formula, instruction: Instruction, operand: str, elements: int) -> Ints:
    """The same from the formula's text."""
    lanes = instruction.lanes

    def value(name: str, **constants: int) -> Ints:
        return form.evaluate(name, lanes, **constants)[:elements]

    if operand == "e":
        selected = value("selected", F=0) != 0
        points = np.stack([value("row"), value("chunk")], -1)
        return np.where(selected[..., None], points, -1)
    if form.has("firstcol"):
        # packed: half the columns; element i is one of the P that its register holds
        first = value("firstcol")
        per = int((value("lastcol") - first + 1)[0, 0]) // 2
        column = first // 2 + np.arange(elements)[:, None] % per
        return np.stack([value("row"), column], -1)
    names = ("row", "col", "product") if form.has("product") else ("row", "col")
    return np.stack([value(name) for name in names], -1)


@pytest.mark.parametrize("family", ["mma", "wgmma"])
def test_every_operand_of_every_instruction(family: str) -> None:
    """One comparison for each pair of layout and formula; many instructions share one."""
    seen: set[tuple[str, str, str]] = set()
    compared: set[str] = set()
    for instruction, operand, form in pairs(family):
        layout = instruction.operands[operand].layout
        assert layout is not None
        compared.add(instruction.mnemonic)
        key = (str(layout), form.text, operand)
        if key in seen:
            continue
        seen.add(key)
        table = from_table(layout)
        text = from_text(form, instruction, operand, table.shape[0])
        np.testing.assert_array_equal(
            table, text, f"{instruction.mnemonic}, operand {operand} (PTX ISA {form.section})"
        )
    assert compared == {instruction.mnemonic for instruction in instructions(family)}


COPIES = [
    ("ldmatrix.sync.aligned.m8n8.x4.b16", "registers", ("m8n8", "b16", "ld")),
    ("ldmatrix.sync.aligned.m8n8.x2.trans.b16", "registers", ("m8n8", "b16", "ld.trans")),
    ("stmatrix.sync.aligned.m8n8.x4.b16", "registers", ("m8n8", "b16", "st")),
    ("stmatrix.sync.aligned.m8n8.x1.trans.b16", "registers", ("m8n8", "b16", "st.trans")),
    ("ldmatrix.sync.aligned.m16n16.x2.trans.b8", "registers", ("m16n16", "b8", "ld.trans")),
    ("ldmatrix.sync.aligned.m8n16.x2.b8x16.b4x16_p64", "registers", ("m8n16", "b8", "ld")),
    ("stmatrix.sync.aligned.m16n8.x2.trans.b8", "registers", ("m16n8", "b8", "st.trans")),
    ("movmatrix.sync.aligned.m8n8.trans.b16", "a", ("m8n8", "b16", "mov.a")),
    ("movmatrix.sync.aligned.m8n8.trans.b16", "d", ("m8n8", "b16", "mov.d")),
]


@pytest.mark.parametrize(("mnemonic", "operand", "key"), COPIES, ids=str)
def test_matrix_copies(mnemonic: str, operand: str, key: tuple[str, str, str]) -> None:
    """The registers of one matrix; the table counts the matrices as a third dimension."""
    layout = isa.lookup(mnemonic).operands[operand].layout
    assert layout is not None
    form = formula("MATRIX", *key)
    table = from_table(layout)[..., :2]
    matrices = table.shape[0] // form.elements
    text = np.stack([form.evaluate("row"), form.evaluate("col")], -1)
    np.testing.assert_array_equal(table, np.concatenate([text] * matrices))


def test_every_formula_is_compared() -> None:
    """No formula of the emulator's is left out above."""
    used = {form.text for family in ("mma", "wgmma") for _, _, form in pairs(family)}
    used |= {formula("MATRIX", *key).text for _, _, key in COPIES}
    left = [
        f"{form.shape} {form.types} {form.operand}"
        for part in ("DENSE", "SPARSE", "WGMMA", "MATRIX")
        for form in formulas(part)
        if form.text not in used
    ]
    assert left == []


def test_an_unknown_fragment_is_an_error() -> None:
    with pytest.raises(FragirError, match="no dense fragment m16n8k5"):
        formula("DENSE", "m16n8k5", "f16", "a")
