"""A target that NVIDIA does not have: an sm_90a with more shared memory, without stmatrix."""

from fragir.isa import Target

SM_95A = Target("sm_95a", "9.0", inherits="sm_90a", lacks=("stmatrix*",), shared=300 << 10)
