"""What an instruction costs at best: multiply-adds, and cycles of an SM at its dense peak.

The rates are the dense peaks of NVIDIA's data sheets divided by SMs and boost clock: V100 and T4
(125 and 65 TFLOP/s f16), A100 (312 TFLOP/s f16, 19.5 f64), A40 (150), L40S (362), H100 SXM (989).
They are ceilings: `mma.sync` reaches some 63 % of the peak of an H100, `wgmma` more than 95 %
(arXiv 2501.12084). The sm_86 and sm_89 of GeForce cards add f16 products into f32 at half the rate.
"""

from __future__ import annotations

from fragir.isa.model import Instruction
from fragir.isa.target_rows import number as target_number

# Multiply-adds per clock and SM: target number -> type of A.
_SAME = {"bf16": "f16", "u8": "s8", "e5m2": "e4m3", "u4": "s4"}
PEAK: dict[int, dict[str, int]] = {
    70: {"f16": 512},
    75: {"f16": 512, "s8": 1024, "s4": 2048},
    80: {"f16": 1024, "tf32": 512, "f64": 64, "s8": 2048, "s4": 4096, "b1": 16384},
    86: {"f16": 512, "tf32": 256, "s8": 1024, "s4": 2048},
    89: {"f16": 512, "tf32": 256, "s8": 1024, "s4": 2048, "e4m3": 1024},
    90: {"f16": 2048, "tf32": 1024, "f64": 128, "s8": 4096, "e4m3": 4096},
}
_PARTS = {70: "V100", 75: "T4", 80: "A100", 86: "A40", 89: "L40S", 90: "H100 SXM"}


def multiply_adds(instruction: Instruction) -> int:
    """How many the instruction stands for; a sparse one counts those that it skips."""
    if "d" not in instruction.operands or instruction.family == "movmatrix":
        return 0
    m, n, k = instruction.shape
    products = instruction.operands["d"].shape[2:]
    return m * n * k * (products[0] if products else 1)


def cycles(instruction: Instruction, target: str) -> float | None:
    """Cycles of an SM at its peak; None where unknown, or where it is not one instruction."""
    if instruction.lowering.get(target) != "native":
        return None
    number = target_number(target)
    rates = PEAK.get(number, {})
    a = instruction.types.a
    rate = rates.get(_SAME.get(a, a))
    work = multiply_adds(instruction)
    if rate is None or not work:
        return None
    return work / (rate * (2 if "e" in instruction.operands else 1))


def notes(instruction: Instruction) -> list[str]:
    """In words, what there is to know about speed, by target."""
    found: list[str] = []
    work = multiply_adds(instruction)
    if work:
        found.append(f"{work} multiply-adds")
    for target in instruction.targets:
        lowering = instruction.lowering.get(target)
        number = target_number(target)
        ideal = cycles(instruction, target)
        if ideal is not None:
            found.append(f"{target}: at least {ideal:g} cycles of an SM ({_PARTS[number]})")
        elif lowering == "emulated":
            found.append(f"{target}: emulated, a routine of other instructions")
        elif lowering == "split":
            found.append(f"{target}: split into several instructions")
    return found
