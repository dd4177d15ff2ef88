"""mma.sync and mma.sp: fragments in registers to fragments in registers."""

from __future__ import annotations

from dataclasses import dataclass

from fragir.emulator.tensor_types import U32, Registers, TensorOp, Words


@dataclass(frozen=True, slots=True)
class MmaOp(TensorOp):
    """`mma...  d, a, b, c[, e, f][, sfa, {byte, thread}, sfb, {byte, thread}]` (PTX ISA 9.7.14.5-6).

    `a`, `b`, `c`, `d`: the register operands. `e`: the metadata register of a sparse instruction,
    else None. `selectors`: the values that its immediate `f` may have (empty where dense).
    `scales`: true where the statement carries sfa and sfb with their selectors.
    """

    a: Registers
    b: Registers
    c: Registers
    d: Registers
    e: Registers | None = None
    selectors: tuple[int, ...] = ()
    scales: bool = False

    def execute(
        self,
        a: Words,
        b: Words,
        c: Words,
        *,
        e: U32 | None = None,
        selector: int = 0,
        sfa: U32 | None = None,
        select_a: tuple[int, int] = (0, 0),
        sfb: U32 | None = None,
        select_b: tuple[int, int] = (0, 0),
    ) -> Words:
        """D = A*B + C for W warps (or W independent instructions): `[n, W, 32]` -> `[d.count, W, 32]`.

        `e`, `sfa`, `sfb`: `[1, W, 32]`, where the instruction has them; `select_a` and `select_b`
        are the immediates `{byte-id, thread-id}`. Raises FragirError for a selector out of range.
        """
        raise NotImplementedError
