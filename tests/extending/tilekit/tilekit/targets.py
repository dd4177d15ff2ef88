"""A target that NVIDIA does not have, and a shape of mma.sync that it alone has."""

from fragir import isa
from fragir.isa import dense

# an sm_90a with more shared memory, without stmatrix
SM_95A = isa.Target(
    "sm_95a",
    "9.0",
    inherits="sm_90a",
    lacks=("stmatrix*",),
    shared=300 << 10,
    assembled_as="sm_90a",
)

# one rule gives operands, registers, layouts and mnemonics of every form that it covers
WIDE = dense.DenseRule(("m16n8k32",), (("f32", "f16", "f16", "f32"),), "9.0", ("sm_95a",))

for instruction in dense.instructions(WIDE):
    isa.register(instruction)
