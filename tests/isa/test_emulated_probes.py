"""Probe kernels, run by the emulator with its own lane maps, give exact products.

The table says where each element goes into registers or shared memory; the emulator, which knows
nothing of the table, computes; the table says where each element of D comes out. Inputs are small
integers, which every type holds exactly. Sparse metadata and block scales are random too.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fragir import isa
from fragir.emulator import run
from fragir.isa import Instruction, Operand
from fragir.isa.emit import emit_ptx, parameters
from fragir.isa.model import BITS
from fragir.layout import Layout

Ints = NDArray[np.int64]
Words = NDArray[np.unsignedinteger[Any]]

# Codes of 0, 1, 2, 3 (where there is a 3).
CODES: dict[str, tuple[int, ...]] = {
    "f16": (0, 0x3C00, 0x4000, 0x4200),
    "bf16": (0, 0x3F80, 0x4000, 0x4040),
    "e4m3": (0, 0x38, 0x40),
    "e5m2": (0, 0x3C, 0x40),
    "e2m3": (0, 0x08, 0x10),
    "e3m2": (0, 0x0C, 0x10),
    "e2m1": (0, 2, 4),
    "ue8m0": (0, 127, 128),
    "ue4m3": (0, 0x38, 0x40),
}
NARROW = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
INSTRUCTIONS = [
    i
    for i in isa.instructions()
    if i.family.startswith(("mma", "wgmma"))
    and not i.refused
    and not i.form.flags & {"satfinite", "rz", "rm", "rp"}
    and (not i.family.startswith("wgmma") or i.shape[1] in (8, 24))
]


def code(element: str, value: int, packed: bool) -> int:
    """The bits of a small integer; e2m1 in a byte stands in bits 5:2."""
    if element == "f64":
        return int(np.float64(value).view(np.uint64))
    if element in ("f32", "tf32"):
        return int(np.float32(value).view(np.uint32))
    if element == "f16":
        return int(np.float16(value).view(np.uint16))
    bits = CODES[element][value] if element in CODES else value
    return bits << 2 if element == "e2m1" and not packed else bits


def packed_e2m1(instruction: Instruction) -> bool:
    return any(f.startswith("kind::mxf4") for f in instruction.form.flags)


def fill(instruction: Instruction, operand: Operand, values: Ints, empty: int = 0) -> Words:
    """[lane, register] words that hold `values` as the table's layout says."""
    layout = operand.layout
    assert layout is not None
    packed = packed_e2m1(instruction)
    bits = BITS.get(operand.element, 4)  # a nibble of metadata
    if operand.element in NARROW:
        bits = 4 if packed else 8
    width = 64 if operand.element == "f64" else 32
    rows: list[list[int]] = []
    for lane in range(instruction.lanes):
        words = [0] * operand.registers.count
        for i in range(layout.size("element")):
            point = layout(lane=lane, element=i)
            held = empty if point is None else code(operand.element, int(values[point]), packed)
            word, place = divmod(i * bits, width)
            words[word] |= held << place
        rows.append(words)
    return np.array(rows, np.uint64 if width == 64 else np.uint32)


def image(element: str, values: Ints) -> Words:
    """A K-major matrix without swizzle, rows mn: core matrices along K next to each other."""
    bits = BITS[element]
    rows, k = values.shape
    row_bytes = k * bits // 8
    out = np.zeros(rows * row_bytes, np.uint8)
    for r, c in product(range(rows), range(k)):
        chunk, bit = divmod(c * bits, 128)
        at = row_bytes * 8 * (r // 8) + 128 * chunk + 16 * (r % 8) + bit // 8
        held = code(element, int(values[r, c]), False)
        for byte in range(max(1, bits // 8)):
            out[at + byte] |= (held >> 8 * byte & 0xFF) << bit % 8
    return out


def unpacked(a: Ints, e: Ints, chunk: int) -> Ints:
    """The full A of a packed one: nibbles name the kept columns (pairs) of each chunk."""
    full = np.zeros((a.shape[0], 2 * a.shape[1]), np.int64)
    for r, c in product(range(a.shape[0]), range(a.shape[1])):
        at = 2 * c // chunk
        nibble = int(e[r, at])
        if chunk == 2:
            column = 0 if nibble == 0b0100 else 1
        elif chunk == 4:
            column = nibble >> 2 * (c % 2) & 3
        else:
            column = 2 * (nibble >> 2 * (c // 2 % 2) & 3) + c % 2
        full[r, chunk * at + column] = a[r, c]
    return full


def expected(instruction: Instruction, m: dict[str, Ints]) -> Ints:
    """A B + C in integers."""
    a, b = m["a"], m["b"]
    if "e" in m:
        a = unpacked(a, m["e"], instruction.operands["e"].chunk)
    if "sfa" in m:
        a = a * np.repeat(m["sfa"], instruction.operands["sfa"].chunk, 1)
        b = b * np.repeat(m["sfb"], instruction.operands["sfb"].chunk, 0)
    if a.ndim == 3:
        return np.einsum("ikp,kjp->ijp", a, b) + m["c"]
    if "xor" in instruction.form.flags:
        return (a[:, :, None] ^ b[None]).sum(1) + m["c"]
    return a @ b + m["c"]


def probe(instruction: Instruction, variant: str) -> bool:
    """Whether the emulated probe kernel gives the exact D."""
    rng = np.random.default_rng(0)
    operands = instruction.operands
    top = 2 if instruction.types.a in ("b1",) or instruction.types.d == "f16" else 3
    m: dict[str, Ints] = {
        "a": rng.integers(0, top, operands["a"].shape),
        "b": rng.integers(0, 2, operands["b"].shape),
        "c": rng.integers(0, 3, operands["c"].shape),
    }
    if "e" in operands:
        legal = [4, 14] if operands["e"].chunk == 2 else [4, 8, 9, 12, 13, 14]
        m["e"] = rng.choice(legal, operands["e"].shape)
    for name in ("sfa", "sfb"):
        if name in operands:
            m[name] = rng.integers(1, 3, operands[name].shape)
    arguments: list[Words] = []
    for name in parameters(instruction, variant):
        operand = operands[name]
        if name == "d":
            arguments.append(np.zeros_like(fill(instruction, operand, m["c"])))
        elif operand.registers.cls == "descriptor":
            values = m["b"].T if name == "b" else m["a"]
            arguments.append(image(operand.element, values))
        else:
            empty = 4 if name == "e" else 0
            arguments.append(fill(instruction, operand, m[name], empty))
    target = list(instruction.targets)[-1]
    run(
        emit_ptx(instruction, target, variant),
        arguments=arguments,
        block=(instruction.lanes, 1, 1),
    )
    result = arguments[parameters(instruction, variant).index("d")]
    return bool(np.array_equal(result, fill(instruction, operands["d"], expected(instruction, m))))


def groups() -> dict[str, list[Instruction]]:
    found: dict[str, list[Instruction]] = defaultdict(list)
    for instruction in INSTRUCTIONS:
        found[f"{instruction.family} {instruction.types.a}"].append(instruction)
    return found


@pytest.mark.parametrize("group", groups())
def test_probes_give_exact_products(group: str, full_sweep: bool) -> None:
    """One of every shape and storage order by default, all types in the full sweep."""
    chosen = groups()[group]
    if not full_sweep:
        one = {(i.form.shape, i.form.layouts, i.form.flags): i for i in chosen}
        chosen = list(one.values())
    wrong = [
        f"{instruction.mnemonic} {variant}"
        for instruction in chosen
        for variant in instruction.variants or ("registers",)
        if not probe(instruction, variant)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["a", "b", "d"])
def test_a_wrong_layout_is_seen(name: str) -> None:
    """Two modes of an operand swapped: the probe no longer gives the product."""
    mma = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert probe(mma, "registers")
    operand = mma.operands[name]
    right = str(operand.layout)
    wrong = {
        "a": right.replace("2:(8,0) 2:(0,8)", "2:(0,8) 2:(8,0)"),
        "b": right.replace("2:(1,0) 2:(8,0)", "2:(8,0) 2:(1,0)"),
        "d": right.replace("2:(0,1) 2:(8,0)", "2:(8,0) 2:(0,1)"),
    }[name]
    assert wrong != right
    changed = replace(operand, layout=Layout.parse(wrong))
    assert not probe(mma.with_operands(changed), "registers")
