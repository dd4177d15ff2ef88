"""ldmatrix, stmatrix and movmatrix: moving 8x8, 16x16, 8x16 and 16x8 matrices between lanes."""

from __future__ import annotations

from dataclasses import dataclass

from fragir.emulator.tensor_types import U8, U32, Registers, TensorOp


@dataclass(frozen=True, slots=True)
class LdmatrixOp(TensorOp):
    """`ldmatrix... {r...}, [p]` (PTX ISA 9.7.14.5.15).

    The address register of lane l < `rows` holds the start of row l: 16 bytes, 16-byte aligned.
    On sm_75 and below (`all_lanes`) the other lanes' addresses must be valid too.
    Machine: `op.execute(read16(addresses[:, :op.rows]))`, with `read16: [W, R] -> u8[W, R, 16]`.
    """

    r: Registers
    rows: int
    all_lanes: bool

    def execute(self, data: U8) -> U32:
        """`u8[W, rows, 16]`, the bytes at each row's address -> registers `u32[r.count, W, 32]`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class StmatrixOp(TensorOp):
    """`stmatrix... [p], {r...}` (PTX ISA 9.7.14.5.16): rows as in `LdmatrixOp`, other direction."""

    r: Registers
    rows: int

    def execute(self, r: U32) -> U8:
        """Registers `u32[r.count, W, 32]` -> `u8[W, rows, 16]`: the bytes to be written at each of
        the addresses of lanes 0 to `rows`-1."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class MovmatrixOp(TensorOp):
    """`movmatrix.sync.aligned.m8n8.trans.b16 d, a` (PTX ISA 9.7.14.5.17)."""

    a: Registers
    d: Registers

    def execute(self, a: U32) -> U32:
        """Registers `u32[1, W, 32]` -> `u32[1, W, 32]`."""
        raise NotImplementedError
