"""What ptxas makes of each mma, read off the machine code: native, split or emulated.

The low 12 bits of a machine instruction name its operation. `native` means exactly one tensor-core
operation of the type's own kind and next to nothing around it, `split` several of them.
"""

from __future__ import annotations

import struct
from typing import Protocol

import pytest

from fragir import isa
from fragir.isa import Instruction
from fragir.isa.emit import emit_module, kernel
from fragir.isa.targets import NEWEST_VERSION, TARGETS, number

HMMA, IMMA, BMMA, DMMA = {0x236, 0x23C}, {0x237}, {0x23D}, {0x23F}
QMMA, OMMA = {0x27A, 0x47A}, {0x47F}
TENSOR = HMMA | IMMA | BMMA | DMMA | QMMA | OMMA
NOP = 0x918
# Instructions of a probe kernel besides its loads and stores: more than in the smallest kernel of
# the same module by this many, and they do part of the work. Measured: up to 8, or 30 and more.
AROUND = 15
SAMPLE = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_100a", "sm_120a")


class Assembler(Protocol):
    def cubin(self, ptx: str, target: str) -> bytes: ...


def own_operation(instruction: Instruction) -> set[int]:
    """The machine operation that computes this type natively."""
    a = instruction.types.a
    if any(f.startswith("kind::mxf4") for f in instruction.form.flags):
        return OMMA
    if a in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1"):
        return QMMA
    return {"b1": BMMA, "f64": DMMA, "f16": HMMA, "bf16": HMMA, "tf32": HMMA}.get(a, IMMA)


def operations(cubin: bytes) -> dict[str, list[int]]:
    """Entry -> the operation codes of its instructions, from the sections of the ELF file."""
    (headers,) = struct.unpack_from("<Q", cubin, 0x28)
    count, names = struct.unpack_from("<HH", cubin, 0x3C)
    table = [struct.unpack_from("<IIQQQQIIQQ", cubin, headers + 64 * i) for i in range(count)]
    found: dict[str, list[int]] = {}
    for section in table:
        start = table[names][4] + section[0]
        name = cubin[start : cubin.index(b"\0", start)].decode()
        if name.startswith(".text."):
            at, size = section[4], section[5]
            codes = [
                struct.unpack_from("<Q", cubin, i)[0] & 0xFFF for i in range(at, at + size, 16)
            ]
            found[name.removeprefix(".text.")] = [code for code in codes if code != NOP]
    return found


def moved(instruction: Instruction) -> int:
    """Loads and stores of the probe kernel: one for each register."""
    return sum(
        operand.registers.count
        for operand in instruction.operands.values()
        if operand.registers.cls in ("fragment", "metadata", "scale")
    )


@pytest.mark.parametrize("target", TARGETS)
def test_lowering(ptxas: Assembler, target: str, full_sweep: bool) -> None:
    if target not in SAMPLE and not full_sweep:
        pytest.skip("in the full sweep only: FRAGIR_FULL_SWEEP=1")
    found = [i for i in isa.instructions(target=target) if i.family.startswith("mma")]
    found = [i for i in found if not i.refused]
    version = "8.8" if target in ("sm_70", "sm_72") else NEWEST_VERSION
    module = emit_module([(i, "registers") for i in found], target, version)
    entries = operations(ptxas.cubin(module, target))
    least = min(len(entries[f"probe_{n}"]) - moved(i) for n, i in enumerate(found))
    wrong: list[str] = []
    for n, instruction in enumerate(found):
        codes = entries[f"probe_{n}"]
        own = sum(code in own_operation(instruction) for code in codes)
        around = len(codes) - moved(instruction) - least
        seen = "emulated"
        # the four products of m8n8k4 are two or four steps of one HMMA.884 where it is native
        steps = (2, 4) if instruction.form.shape == "m8n8k4" and number(target) < 80 else (1,)
        if own in steps and around <= AROUND:
            seen = "native"
        elif own > 1 and own_operation(instruction) in (BMMA, DMMA):
            seen = "split"
        if seen != instruction.lowering[target]:
            wrong.append(f"{instruction.mnemonic}: {seen}, {own} of its own, {around} around")
    assert not wrong, "\n".join(wrong)


def test_refused_instructions_compute_nothing(ptxas: Assembler) -> None:
    """ptxas takes them, and no tensor-core operation comes out."""
    refused = [i for i in isa.instructions() if i.refused]
    assert len(refused) == 8
    for target in ("sm_80", "sm_90", "sm_120a"):
        kernels = [kernel(i, name=f"probe_{n}") for n, i in enumerate(refused)]
        head = f".version 9.2\n.target {target}\n.address_size 64\n"
        for codes in operations(ptxas.cubin(head + "\n".join(kernels), target)).values():
            assert not TENSOR & set(codes)
