"""mma.sync and mma.sp: fragments in registers to fragments in registers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import numpy as np

from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.numbers.types import U32
from fragir.emulator.tensor_cores.compute import Compute, ScaleCodes
from fragir.emulator.tensor_cores.fragment import Codes, Fragment
from fragir.emulator.tensor_cores.maps import Ints
from fragir.emulator.tensor_cores.sparse import Metadata
from fragir.emulator.tensor_cores.types import OperandRegisters, RegisterWords, TensorOp
from fragir.errors import FragirError

# Products computed at once: large enough to hide numpy's overhead, small enough for the cache.
_CHUNK = 1 << 19
# Instances that a thread gets at least: with fewer, threads wait for Python's lock.
SHARED = 128


@dataclass(frozen=True, slots=True)
class MmaPlan:
    """What `Mma.execute` needs besides the arrays.

    Fragments load A as `[k, (product,) m, W]`, B as `[k, (product,) n, W]`, C and D as
    `[(product,) m, n, W]`; `product` only in m8n8k4 of f16, which computes four.
    """

    a: Fragment
    b: Fragment
    c: Fragment
    d: Fragment
    compute: Compute
    metadata: Metadata | None = None
    scale_blocks: int = 0


@dataclass(frozen=True, slots=True)
class Mma(TensorOp):
    """`mma... d, a, b, c[, e, f][, sfa, {byte, thread}, sfb, {byte, thread}]`.

    PTX ISA 9.7.14.5.14 and 9.7.14.6.3. `a`, `b`, `c`, `d`: the register operands. `e`: the metadata
    register of a sparse instruction, else None. `selectors`: the values that its immediate `f` may
    have (empty where dense). `scales`: true where the statement carries sfa and sfb with their
    selectors.
    """

    a: OperandRegisters
    b: OperandRegisters
    c: OperandRegisters
    d: OperandRegisters
    plan: MmaPlan = field(repr=False, compare=False)
    e: OperandRegisters | None = None
    selectors: tuple[int, ...] = ()
    scales: bool = False

    def execute(
        self,
        a: RegisterWords,
        b: RegisterWords,
        c: RegisterWords,
        *,
        e: U32 | None = None,
        selector: int = 0,
        sfa: U32 | None = None,
        select_a: tuple[int, int] = (0, 0),
        sfb: U32 | None = None,
        select_b: tuple[int, int] = (0, 0),
        jobs: int = 1,
    ) -> RegisterWords:
        """D = A*B + C for W warps, or for W independent instructions.

        `a`, `b`, `c`: `[count, W, 32]` with the operand's count; returns `[d.count, W, 32]`. `e`,
        `sfa`, `sfb`: `[1, W, 32]`, where the instruction has them; `select_a` and `select_b` are
        the immediates `{byte-id, thread-id}`. `jobs`: threads that may share the work. Raises
        FragirError for a selector out of range.
        """
        plan = self.plan
        if jobs > 1 and len(parts := pieces(a.shape[1], jobs, SHARED)) > 1:

            def share(part: slice) -> RegisterWords:
                options = {"e": e, "sfa": sfa, "sfb": sfb}
                given: Any = {k: None if x is None else x[:, part] for k, x in options.items()}
                given |= {"selector": selector, "select_a": select_a, "select_b": select_b}
                return self.execute(a[:, part], b[:, part], c[:, part], **given)

            shares = side_by_side(jobs, [partial(share, part) for part in parts])
            return np.concatenate(shares, axis=1)
        left, right, addend = plan.a.load(a), plan.b.load(b), plan.c.load(c)
        kept: Ints | None = None
        if plan.metadata is not None:
            if e is None or selector not in self.selectors:
                raise FragirError(
                    f"{self.mnemonic}: sparsity selector {selector} is not one of {self.selectors}"
                )
            kept = plan.metadata.columns(e[0], selector)
        scales: ScaleCodes | None = None
        if plan.scale_blocks:
            if sfa is None or sfb is None:
                raise FragirError(f"{self.mnemonic}: the scale operands are missing")
            scales = ScaleCodes(
                self._scale(sfa[0], plan.scale_blocks, select_a, rows=True),
                self._scale(sfb[0], plan.scale_blocks, select_b, rows=False),
            )
        warps = a.shape[1]
        depth = right.shape[0] if kept is None else left.shape[0]
        chunk = max(1, _CHUNK // (depth * max(1, addend.size // max(1, warps))))
        if warps <= chunk:
            return plan.d.store(plan.compute(left, right, addend, kept, scales))
        results: list[Codes] = []
        for start in range(0, warps, chunk):
            part = slice(start, start + chunk)
            results.append(
                plan.compute(
                    left[..., part],
                    right[..., part],
                    np.ascontiguousarray(addend[..., part]),
                    None if kept is None else kept[..., part],
                    None if scales is None else scales[part],
                )
            )
        return plan.d.store(cast(Codes, np.concatenate(cast(list[Any], results), axis=-1)))

    def check_scales(self, select: tuple[int, int], *, rows: bool) -> None:
        """FragirError for scale selectors `{byte-id, thread-id}` that are not legal."""
        byte, thread = select
        bytes_ = range(0, 4, self.plan.scale_blocks)
        if byte not in bytes_ or thread not in range(2 if rows else 4):
            raise FragirError(f"{self.mnemonic}: scale selector {{{byte}, {thread}}} is not legal")

    def scale_codes(self, words: U32, select: tuple[int, int], *, left: bool) -> Codes:
        """The scales in words `[W, 32]` by the selectors: `[rows or columns, blocks, W]`."""
        return self._scale(words, self.plan.scale_blocks, select, rows=left)

    def _scale(self, words: U32, blocks: int, select: tuple[int, int], *, rows: bool) -> Codes:
        """Scale codes `[rows or columns, blocks, W]`: block b of K uses byte `byte + b`."""
        self.check_scales(select, rows=rows)
        byte, thread = select
        found = words[:, scale_lanes(thread, rows=rows)].T  # [rows or columns, W]
        parts = [found >> np.uint32(8 * (byte + b)) & np.uint32(0xFF) for b in range(blocks)]
        return np.stack(parts, 1)


def scale_lanes(thread: int, *, rows: bool) -> Ints:
    """The lane that holds the scales of each row or column (PTX ISA 9.7.14.3).

    Rows: of each quad the lanes 2*thread and 2*thread+1 hold rows g and g+8. Columns: lane
    `thread` of each quad holds column g.
    """
    quads = 4 * np.arange(8)
    if rows:
        return np.concatenate([quads + 2 * thread, quads + 2 * thread + 1])
    return quads + thread
