"""Products of tiles as products of fragments: mma.sync and wgmma."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.product_layouts import turns
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.tiling import sharing
from fragir.layout import Layout
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory

if TYPE_CHECKING:
    from fragir.isa.canonical import Major


def mma(
    ar: Arithmetic,
    op: frag.MmaOp | frag.MmaSparseOp,
    a: Sequence[SSAValue],
    b: Sequence[SSAValue],
    c: Sequence[SSAValue],
    metadata: Sequence[SSAValue] | None = None,
    scales: Sequence[SSAValue] = (),
) -> list[SSAValue]:
    """`frag.mma` and `frag.mma_sparse`: one operation for every instruction, K outermost.

    Fragments of an operand come rows fastest: A (m, k) is a[m + M k], B (k, n) is b[k + K n]. Of a
    sparse product A, C and D are fragments of the dense instruction of half the K, B is two.
    """
    types = op.tile_types()
    instruction = op.instruction()
    steps_k = types[1].rows // instruction.shape[2]
    pieces = 1 if metadata is None else 2  # of B
    steps_m, steps_n = len(a) // steps_k, len(b) // (pieces * steps_k)
    a, b = ([_in_container(ar, x) for x in fragments] for fragments in (a, b))
    selected = _Scales(ar, instruction, scales, steps_m, steps_n) if scales else None
    positions = _Metadata(ar, instruction, metadata, steps_m, steps_k) if metadata else None
    result = list(c)
    placement = types[3].placement
    assert placement is not None
    d_type = VectorType(types[3].element_type, [placement.chunk])
    mnemonic = instruction.mnemonic
    for k in range(steps_k):
        for n in range(steps_n):
            first = pieces * (k + steps_k * n)
            right = b[first]
            if pieces == 2:
                right = ar.insert(ptx.ConcatOp(b[first : first + 2])).result
            for m in range(steps_m):
                at = m + steps_m * n
                operands = a[m + steps_m * k], right, result[at]
                chosen = None if selected is None else selected.at(m, n, k)
                product: ptx.MmaOp | ptx.MmaSparseOp
                if positions is None:
                    product = ptx.MmaOp(mnemonic, *operands, d_type, chosen)
                else:
                    product = ptx.MmaSparseOp(
                        mnemonic, *operands, *positions.at(m, k), d_type, chosen
                    )
                result[at] = ar.insert(product).d
    return result


class _Metadata:
    """A lane's registers of sparse metadata, laid out by `fragir.dialects.frag.product_layouts`."""

    def __init__(
        self,
        ar: Arithmetic,
        instruction: Instruction,
        metadata: Sequence[SSAValue],
        steps_m: int,
        steps_k: int,
    ):
        (nibbles,) = metadata
        self._registers = split(ar, nibbles, 8)
        self._turns = turns(instruction, "e", steps_k)
        self._steps_m = steps_m

    def at(self, m: int, k: int) -> tuple[SSAValue, int]:
        """The register of the instruction at (m, k), and the selector of its lanes."""
        group, selector = divmod(k, self._turns)
        return self._registers[m + self._steps_m * group], selector


class _Scales:
    """A lane's registers of block scales, laid out by `fragir.dialects.frag.product_layouts`."""

    def __init__(
        self,
        ar: Arithmetic,
        instruction: Instruction,
        scales: Sequence[SSAValue],
        steps_m: int,
        steps_n: int,
    ):
        self._ar = ar
        self._each = instruction.operands["sfa"].shape[1]
        steps = {"sfa": steps_m, "sfb": steps_n}
        self._vectors = dict(zip(steps, scales, strict=True))
        self._turns = {name: turns(instruction, name, count) for name, count in steps.items()}
        self._blocks = {
            name: ptx.length(self._vectors[name].type) * self._turns[name] // steps[name]
            for name in steps
        }
        self._registers: dict[tuple[str, int], SSAValue] = {}

    def at(self, m: int, n: int, k: int) -> ptx.Scales:
        """The registers and selectors of the instruction at (m, n, k)."""
        left, byte_a, thread_a = self._one("sfa", m, k)
        right, byte_b, thread_b = self._one("sfb", n, k)
        return ptx.Scales((left, right), (byte_a, thread_a, byte_b, thread_b))

    def _one(self, name: str, step: int, k: int) -> tuple[SSAValue, int, int]:
        group, thread = divmod(step, self._turns[name])
        number, byte = divmod(k * self._each + self._blocks[name] * group, 4)
        return self._register(name, number), byte, thread

    def _register(self, name: str, number: int) -> SSAValue:
        vector = self._vectors[name]
        total = ptx.length(vector.type)
        if total <= 4:
            return vector
        found = self._registers.get((name, number))
        if found is None:
            count = min(4, total - 4 * number)
            type_ = ptx.vector_type(ptx.scalar_type(vector.type), count)
            found = self._ar.insert(ptx.SliceOp(vector, 4 * number, type_)).result
            self._registers[name, number] = found
        return found


def _in_container(ar: Arithmetic, fragment: SSAValue) -> SSAValue:
    """e2m1 moved from the lowest bits of its bytes to bits 5:2, where kind::f8f6f4 reads it.

    PTX ISA 9.2, section 9.7.14.5.11. Fragments of other types stay.
    """
    type_ = fragment.type
    if element_name(ptx.scalar_type(type_)) != "e2m1":
        return fragment
    words = VectorType(i32, [ptx.registers(type_)])
    moved = arith.ShLIOp(
        ar.insert(ptx.BitcastOp(fragment, words)).result,
        ar.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(words, [2]))).result,
    )
    return ar.insert(ptx.BitcastOp(ar.insert(moved).result, type_)).result


def wgmma(
    ar: Arithmetic,
    hardware: Hardware,
    op: frag.WgmmaOp,
    a: LaneMemory | Sequence[SSAValue],
    b: LaneMemory,
    c: Sequence[SSAValue],
    metadata: Sequence[SSAValue] = (),
    scale_d: SSAValue | None = None,
) -> list[SSAValue]:
    """`frag.wgmma` as fence, one wgmma for every instruction, commit and, unless `async`, wait.

    Each warpgroup computes its block of C; its A and B begin at its own rows and columns. What of C
    is in flight stays in its registers; `scale_d` is for the first step along K.
    """
    from fragir.passes.lowering.descriptors import WgmmaOperand  # only wgmma has descriptors

    tile = frag.tile_of(op.d)
    placement = tile.placement
    if not isinstance(placement, frag.MmaLayoutAttr) or not placement.data.is_wgmma:
        raise FragirError(
            "the accumulator of frag.wgmma has no wgmma layout", hint="run the pass frag-place"
        )
    _, _, k = op.shapes()
    n = placement.data.mnk[1]
    instruction = op.instruction(n)
    step = instruction.shape[2]
    packed = instruction.operands["a"].shape[1]  # K of A: half of a sparse product's
    groups_m, groups_n = placement.data.warps
    shares_m, shares_n = sharing(groups_m, tile.rows // 64), sharing(groups_n, tile.cols // n)
    rows, cols = tile.rows // shares_m, tile.cols // shares_n
    group = hardware.axis("warp") if hardware.threads > 128 else 0
    group = ar.div(group, 4)
    group_m = ar.rem(group, groups_m) if groups_n > 1 else group
    group_n = ar.div(group, groups_m) if groups_n > 1 else 0
    if (shares_m, shares_n) != (groups_m, groups_n):  # the others compute the same
        group_m, group_n = ar.rem(group_m, shares_m), ar.rem(group_n, shares_n)
    b_major: Major = "k" if op.b_transposed is not None else "mn"
    a_major: Major = "k" if op.a_transposed is None else "mn"
    orders = op.orders()
    b = _as_counted(b, "kn" if b_major == "mn" else "nk", orders, "b")
    b_side = WgmmaOperand(ar, b, b_major, "b", ar.mul(group_n, cols), n, step)
    a_side = None
    if isinstance(a, LaneMemory):
        a = _as_counted(a, "mk" if a_major == "k" else "km", orders, "a")
        a_side = WgmmaOperand(ar, a, a_major, "a", ar.mul(group_m, rows), 64, packed)
    repeats_m, repeats_n = rows // 64, cols // n
    positions = _Metadata(ar, instruction, metadata, repeats_m, k // step) if metadata else None
    negated = op.a_negated is not None, op.b_negated is not None
    result: list[SSAValue] = list(c)
    if isinstance(op.c.type, frag.TileType):
        result = [ar.insert(ptx.CopyOp(value)).result for value in c]
    ar.insert(ptx.SyncOp("wgmma.fence.sync.aligned"))
    for kk in range(k // step):
        for j in range(repeats_n):
            for i in range(repeats_m):
                at = i + repeats_m * j
                if a_side is None:
                    assert not isinstance(a, LaneMemory)
                    left = a[i + repeats_m * kk]
                else:
                    left = a_side.descriptor(64 * i, kk * packed)
                product = ptx.WgmmaOp(
                    instruction.mnemonic,
                    left,
                    b_side.descriptor(n * j, kk * step),
                    result[at],
                    scale_d=None if kk else scale_d,
                    a_major="k" if a_side is None else a_side.major,
                    b_major=b_side.major,
                    negated=negated,
                    metadata=None if positions is None else positions.at(i, kk),
                )
                result[at] = ar.insert(product).d
    ar.insert(ptx.SyncOp("wgmma.commit_group.sync.aligned"))
    if op.asynchronous is not None:
        return result
    return list(ar.insert(ptx.WgmmaWaitOp(0, result)).completed)


def _as_counted(
    memory: LaneMemory, dimensions: str, orders: Mapping[str, Layout], name: str
) -> LaneMemory:
    """The matrix with its dimensions counted as the instruction counts them.

    Where a tile has rows, columns or K in another order than the instruction, the instruction's
    x-th row of the matrix in memory is the order(x)-th one of the memref.
    """
    given = [(dim, orders[d]) for dim, d in enumerate(dimensions) if d in orders]
    if not given or memory.layout is None:
        return memory
    from fragir.layout.composition import compose, identity  # few programs need them
    from fragir.layout.reorder import in_order

    layout = memory.layout
    counted = identity(dict(zip(layout.names, map(layout.size, layout.names), strict=True)))
    try:
        for dim, order in given:
            counted = in_order(counted, dim, order)
        return memory._replace(layout=compose(layout, counted))
    except FragirError as error:
        raise FragirError(
            f"operand {name} of wgmma lies as {layout}: {error.message}", hint=error.hint
        ) from error
