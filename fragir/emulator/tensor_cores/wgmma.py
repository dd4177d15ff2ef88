"""wgmma.mma_async: the arithmetic of one warpgroup, operands from registers or shared memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.threads import pieces, side_by_side
from fragir.emulator.numbers.types import U8, U32, U64
from fragir.emulator.tensor_cores import descriptor
from fragir.emulator.tensor_cores.arithmetic import TargetName, fused_parameters
from fragir.emulator.tensor_cores.compute import Compute, ElementPlace, FusedMma, IntegerProducts
from fragir.emulator.tensor_cores.forms import BITS, Forms, Mnemonic, OperandRegisters, TensorOp
from fragir.emulator.tensor_cores.maps import (
    Codes,
    Fragment,
    Metadata,
    formula,
    fragment,
    granularity,
)
from fragir.errors import FragirError

# (addresses: u32[G, X], each a multiple of 16, an offset in the block's shared window)
#   -> u8[G, X, 16]: the 16 bytes at each of them, row g read from the block of warpgroup g.
ReadShared: TypeAlias = Callable[[U32], U8]

_CHUNK = 1 << 18  # products computed at once
_SHARED = 1 << 18  # products that a thread gets at least


def _one_by_one(work: Sequence[Callable[[], None]]) -> None:
    for part in work:
        part()


@dataclass(frozen=True, slots=True)
class WgmmaPlan:
    """What `Wgmma.execute` needs besides the arrays. `bits`: of an element of A and B."""

    a: Fragment
    d: Fragment
    n: int
    k: int
    bits: int
    negates: bool
    compute: Compute
    metadata: Metadata | None


@dataclass(frozen=True, slots=True)
class Wgmma(TensorOp):
    """`wgmma.mma_async[.sp]... d, a, b-desc[, e, f], scale-d[, scale-a, scale-b[, trans...]]`.

    PTX ISA 9.7.15.5.2 and 9.7.15.6.3. `d`: accumulator registers. `a`: A's registers where A comes
    from registers (always 4; the statement decides). `e`, `selectors`: as in `MmaOp`.
    `scales_inputs`: imm-scale-a and -b are in the statement. `transposes`: so are imm-trans-b and,
    with A in shared memory, imm-trans-a before it.
    """

    d: OperandRegisters
    a: OperandRegisters
    plan: WgmmaPlan = field(repr=False, compare=False)
    e: OperandRegisters | None = None
    selectors: tuple[int, ...] = ()
    scales_inputs: bool = False
    transposes: bool = False

    def addresses(self, words: U64, *, left: bool, transposed: bool) -> U32:
        """The starts of the 16-byte chunks of A (`left`) or B: `u32[G, outer, inner]`."""
        plan = self.plan
        if transposed and not self.transposes:
            raise FragirError(f"{self.mnemonic}: only 16-bit operands can be transposed")
        columns = plan.k // 2 if left and plan.metadata is not None else plan.k
        return descriptor.chunk_addresses(
            words,
            64 if left else plan.n,
            columns * plan.bits // 8,
            element_bytes=max(1, plan.bits // 8),
            transposed=transposed,
        )

    def shared_addresses(
        self, a: U64 | None, b: U64, *, transpose_a: bool = False, transpose_b: bool = False
    ) -> U32:
        """Where the operands lie: `u32[G, X]`, starts of 16-byte chunks in the shared window.

        Exactly the chunks that `execute` with the same descriptors will read (A, if `a` is given,
        then B), so that the machine can lock them from issue to retirement.
        """
        parts = [self.addresses(b, left=False, transposed=transpose_b)]
        if a is not None:
            parts.insert(0, self.addresses(a, left=True, transposed=transpose_a))
        return np.concatenate([part.reshape(len(b), -1) for part in parts], axis=1)

    def read_operand(
        self, words: U64, read_shared: ReadShared, *, left: bool, transposed: bool
    ) -> npt.NDArray[np.uint32]:
        """Element bits `[G, k, m or n]`."""
        addresses = self.addresses(words, left=left, transposed=transposed)
        data = read_shared(addresses.reshape(len(words), -1))
        data = data.reshape(*addresses.shape, 16)
        return descriptor.elements(data, self.plan.bits, transposed=transposed)

    def execute(
        self,
        d: U32,
        a: U32 | U64,
        b: U64,
        read_shared: ReadShared,
        *,
        scale_d: bool | npt.NDArray[np.bool_] = True,
        scale_a: int = 1,
        scale_b: int = 1,
        transpose_a: bool = False,
        transpose_b: bool = False,
        e: U32 | None = None,
        selector: int = 0,
        jobs: int = 1,
    ) -> U32:
        """D = A*B (+ D where `scale_d`) for G warpgroups: `u32[d.count, G, 4, 32]`, a new array.

        `a`: registers `u32[4, G, 4, 32]`, or descriptors `u64[G]`; `b`: descriptors `u64[G]`.
        `scale_d`: one truth value or one per warpgroup `bool[G]`. `scale_a`, `scale_b`: 1 or -1.
        `transpose_*`: the immediates imm-trans (true: MN-major). `e`: `u32[1, G, 4, 32]`.
        The operands are read through `read_shared` here, so call it when the instruction retires.
        `jobs`: threads that may share the products.
        """
        plan = self.plan
        groups = len(b)
        if a.ndim == 1:
            words = a.astype(np.uint64, copy=False)
            left: Codes = self.read_operand(words, read_shared, left=True, transposed=transpose_a)
        else:
            left = np.moveaxis(plan.a.load(a.reshape(-1, groups, 128)), -1, 0)
        right: Codes = self.read_operand(b, read_shared, left=False, transposed=transpose_b)
        if plan.negates:
            # The sign bit: exact, also for zeros; a NaN's sign does not matter.
            sign = np.uint32(1 << (plan.bits - 1))
            left = left ^ sign if scale_a == -1 else left
            right = right ^ sign if scale_b == -1 else right
        addend = np.moveaxis(plan.d.load(d.reshape(-1, groups, 128)), -1, 0)  # [G, 64, N]
        addend = addend * np.broadcast_to(scale_d, (groups,)).astype(addend.dtype)[:, None, None]
        kept = None
        if plan.metadata is not None:
            if e is None or selector not in self.selectors:
                raise FragirError(
                    f"{self.mnemonic}: sparsity selector {selector} is not one of {self.selectors}"
                )
            kept = plan.metadata.columns(e.reshape(groups, 128), selector)  # [k, 64, G]
        result = np.empty_like(addend)
        if groups > plan.n and plan.n < 32:  # lay the warpgroups innermost
            size = max(1, _CHUNK // (64 * plan.n * plan.k))
            products = 64 * plan.n * plan.k * size

            def product(start: int) -> None:
                part = slice(start, start + size)
                inner = (np.moveaxis(each[part], 0, -1) for each in (left, right, addend))
                x, y, z = (np.ascontiguousarray(each) for each in inner)
                chosen = None if kept is None else kept[..., part]
                result[part] = np.moveaxis(plan.compute(x, y, z, chosen, None), -1, 0)

            work = [partial(product, start) for start in range(0, groups, size)]
        else:  # lay N innermost: as if it were the batch of a product of N = 1
            size = max(1, _CHUNK // (plan.n * plan.k))
            products = plan.n * plan.k * min(size, 64)

            def rows_of(group: int, start: int) -> None:
                rows = slice(start, start + size)
                result[group, rows] = self._rows(
                    left[group][:, rows], right[group], addend[group, rows],
                    None if kept is None else kept[:, rows, group],
                )  # fmt: skip

            starts = range(0, 64, size)
            work = [partial(rows_of, group, start) for group in range(groups) for start in starts]
        shares = pieces(len(work), jobs, -(-_SHARED // products))
        side_by_side(jobs, [partial(_one_by_one, work[share]) for share in shares])
        registers = plan.d.store(np.moveaxis(result, 0, -1))
        return registers.reshape(-1, groups, 4, 32).astype(np.uint32, copy=False)

    def _rows(self, a: Codes, b: Codes, c: Codes, kept: npt.NDArray[np.int64] | None) -> Codes:
        """One warpgroup: A `[k, m]`, B `[K, N]`, C `[m, N]`."""
        compute = self.plan.compute
        if isinstance(compute, IntegerProducts) or kept is not None:
            which = None if kept is None else kept[..., None]
            return compute(a[..., None], b[..., None], c[..., None], which, None)[..., 0]
        # A broadcasts along the innermost dimension, which is N: `[k, m, 1, 1]` by `[k, 1, 1, N]`.
        return compute(a[..., None], b[:, None, :], c[:, None, :], None, None)[:, 0, :]


FORMS = Forms(
    "product depth n results",
    """
    f16        k16   n8|n16  f16|f32
    bf16       k16   n8|n16  f32
    tf32       k8    n8|n16  f32
    e4m3|e5m2  k32   n8|n16  f16|f32
    s8|u8      k32   n16     s32
    b1         k256  n16     s32
    """,
    # Multiples of 8 that are none of 16 are no N of integers, but for 8 and 24.
    """
    => sm_90a ! target {target} does not have it ! wgmma needs sm_90a
    => product ! there is no product of {a} and {b}
    => depth n results ! there is no such shape or result for {a}
    satfinite => d:s32 !a:b1 ! .satfinite is for 8-bit integers only
    """,
)


def build_wgmma(words: Mnemonic, target: TargetName) -> Wgmma:
    """Raises FragirError where PTX has no such form or the target does not have it."""
    d, a, b = words.types
    sparse, n = "sp" in words.flags, words.n
    FORMS.find(
        words,
        target,
        product=f"{a} {b}",
        depth=f"k{words.k / (1 + sparse):g}",
        n="n16" if n in (8, 24) or n % 16 == 0 else "n8",
        results=d,
        **{"a": a, "b": b, "d": d},
    )
    bits, depth = BITS[a], words.k // (1 + sparse)
    integer = d == "s32"
    left = fragment(
        formula("WGMMA", f"m64nNk{depth}", a, "a"), ("col", "row"), (depth, 64), bits, lanes=128
    )
    accumulator = fragment(
        formula("WGMMA", "m64nN", a, "d"), ("row", "col"), (64, n),
        16 if d == "f16" else 32, lanes=128, elements=n // 2,
    )  # fmt: skip
    metadata = None
    if sparse:
        form = formula("WGMMA", f"m64nNk{words.k}", a, "e")
        metadata = Metadata(form, granularity(a, packed=False), 64, words.k, lanes=128)
    compute: Compute
    if integer:
        compute = IntegerProducts(a, b, clamp="satfinite" in words.flags)
    else:
        compute = FusedMma(
            ElementPlace(a), ElementPlace(b), fused_parameters(target.architecture, a, d)
        )
    plan = WgmmaPlan(left, accumulator, n, words.k, bits, not integer, compute, metadata)
    return Wgmma(
        words.opcode,
        target.name,
        OperandRegisters(accumulator.count),
        OperandRegisters(4),
        plan,
        OperandRegisters(1) if metadata else None,
        tuple(range(metadata.selectors)) if metadata else (),
        not integer,
        a in ("f16", "bf16"),
    )
