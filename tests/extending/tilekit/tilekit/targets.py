"""A target that NVIDIA does not have, and a shape of mma.sync that it alone has."""

from dataclasses import replace

from fragir import isa
from fragir.isa import dense

# an sm_90a with more shared memory, without stmatrix
SM_95A = isa.Target("sm_95a", "9.0", inherits="sm_90a", lacks=("stmatrix*",), shared=300 << 10)

# one rule gives operands, registers, layouts and mnemonics of every form that it covers
WIDE = dense.DenseRule(("m16n8k32",), (("f32", "f16", "f16", "f32"),), "9.0", ("sm_90a",))

for instruction in dense.instructions(WIDE):
    own = replace(instruction, targets={"sm_95a": "9.0"}, lowering={"sm_95a": "native"})
    isa.register(own)
