"""What every tensor-core operation of the emulator has in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

RegisterWords: TypeAlias = npt.NDArray[np.unsignedinteger[Any]]  # u32, or u64 for 64-bit registers


@dataclass(frozen=True, slots=True)
class Settings:
    """What the bits depend on besides the target.

    `ptxas`: version of the assembler whose lowering is imitated where the hardware has no such
    instruction (fp8 mma.sync on sm_90 and sm_100: PTX is assembled by the driver, so its result
    can change with the driver).
    """

    ptxas: tuple[int, int] = (13, 2)


@dataclass(frozen=True, slots=True)
class OperandRegisters:
    """One register operand: `count` registers a lane, each `width` (32 or 64) bits."""

    count: int
    width: int = 32

    @property
    def dtype(self) -> type[np.uint32] | type[np.uint64]:
        return np.uint64 if self.width == 64 else np.uint32


@dataclass(frozen=True, slots=True)
class TensorOp:
    """A decoded tensor-core instruction; see the subclasses in `fragir.emulator.tensor_cores`.

    `opcode`: the words of the mnemonic as given. `target`: the `.target` it was decoded for.
    """

    opcode: tuple[str, ...]
    target: str

    @property
    def mnemonic(self) -> str:
        return ".".join(self.opcode)
