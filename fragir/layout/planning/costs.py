"""What the instructions of a conversion cost, and what a machine offers for them.

Costs are half clock cycles of one SM for the instructions of one warp. They are a model, not a
measurement: shuffles and shared memory move 32 words a clock, selects and byte permutes go twice
as fast, every instruction takes an issue slot, and barriers wait. Give other numbers for another
machine.
"""

from typing import NamedTuple


class Costs(NamedTuple):
    """The price of each kind of work, in half cycles of an SM for one warp."""

    shuffle: float = 2  # 32 words a clock
    transpose: float = 2  # movmatrix; not measured, counted like a shuffle
    wavefront: float = 2  # one pass over the banks of shared memory
    move: float = 1  # prmt, selp
    issue: float = 0.5  # for every instruction
    formula: float = 3  # what lanes compute once of their own number
    warp_barrier: float = 8
    group_barrier: float = 30  # a named barrier of some warps
    block_barrier: float = 40
    sector: float = 2  # 32 bytes of global memory
    request: float = 2  # for every access to global memory, beside its sectors

    def barrier(self, reach: str) -> float:
        """The price of one barrier: of a `warp`, a `group` of warps or the `block`."""
        return {
            "warp": self.warp_barrier,
            "group": self.group_barrier,
            "block": self.block_barrier,
        }[reach]


COSTS = Costs()


class Features(NamedTuple):
    """Instructions that a target has beyond shuffles and plain shared memory.

    ldmatrix and movmatrix are of sm_75, stmatrix of sm_90 (PTX ISA 9.2, sections 9.7.14.5.15 to
    9.7.14.5.17).
    """

    ldmatrix: bool = True
    stmatrix: bool = False
    movmatrix: bool = True
    scratch: int = 48 * 1024
    """Bytes of shared memory that one conversion may take."""


FEATURES = Features()
