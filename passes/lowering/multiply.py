"""Products of tiles as products of fragments: mma.sync and wgmma."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, VectorType, i32
from xdsl.ir import Block, Operation, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.product_layouts import turns
from fragir.dialects.interfaces import accesses_of
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.tiling import sharing
from fragir.layout import Layout
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.forward import Forward
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.tile_access import split

if TYPE_CHECKING:
    from fragir.isa.canonical import Major
    from fragir.passes.lowering.lane_builder import Lanes
    from fragir.passes.lowering.state import LoweringState


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
    from fragir.passes.lowering.descriptors import DescribedOperand  # only wgmma has descriptors

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
    b = _require_counted_memory(b, "kn" if b_major == "mn" else "nk", orders, "b")
    b_side = DescribedOperand(ar, b, b_major, "b", ar.mul(group_n, cols), n, step)
    a_side = None
    if isinstance(a, LaneMemory):
        a = _require_counted_memory(a, "mk" if a_major == "k" else "km", orders, "a")
        a_side = DescribedOperand(ar, a, a_major, "a", ar.mul(group_m, rows), 64, packed)
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


def _require_counted_memory(
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


# -- in flight -------------------------------------------------------------------------------------
# Products in flight: how many groups `wgmma.wait_group` may leave under way, and where it stands.
#
# Every asynchronous product is a group of its own. It is waited for
#
# * by `frag.await` of its accumulator,
# * by `frag.release` of a slot of which it reads a part,
# * at the end of a loop's body, where A or metadata are registers that the next turn writes anew.
#
# What is waited for has an *age*: how many groups have been committed since its own, the least of
# all ways to that place. That many may be under way behind the wait. What is complete on every way,
# since something else was waited for, is not waited for again.

SUBJECT = "products in flight"
"""Under which name the lowering keeps what is known of them, once that has been asked for."""
MOST_PENDING = 7
"""Groups that a wait may leave under way: what an instruction of the machine has room for."""


class ReadRegisters(NamedTuple):
    """A tile whose registers a product reads while it is under way."""

    tile: SSAValue


class Flying(NamedTuple):
    """What is known of groups of products on all paths to a place."""

    ages: Mapping[Hashable, int]
    """Of tiles in flight, slots and `ReadRegisters`, the age of the youngest group of each."""
    complete: int
    """Groups of this age and older are complete."""

    def committed(self, concerned: Sequence[Hashable]) -> Flying:
        """One group more, which concerns these."""
        ages = {key: min(age + 1, MOST_PENDING) for key, age in self.ages.items()}
        ages.update(dict.fromkeys(concerned, 0))
        return Flying(ages, min(self.complete + 1, MOST_PENDING + 1))

    def waited(self, pending: int | None) -> Flying:
        """No more than the `pending` youngest groups are under way."""
        return self if pending is None else self._replace(complete=min(self.complete, pending))

    def merged(self, other: Flying) -> Flying:
        """What is known where two paths meet."""
        ages = dict(self.ages)
        for key, age in other.ages.items():
            ages[key] = min(age, ages.get(key, age))
        return Flying(ages, max(self.complete, other.complete))

    def passed_on(self, values: Sequence[SSAValue], names: Sequence[SSAValue]) -> Flying:
        """The same for those that take the values over."""
        found = {
            name: self.ages[value]
            for value, name in zip(values, names, strict=False)
            if value in self.ages
        }
        others = {key: age for key, age in self.ages.items() if key not in names}
        return self._replace(ages={**others, **found})

    def pending(self, op: Operation) -> int | None:
        """How many groups an operation that waits leaves under way; None where it need not."""
        if op.name == "frag.await" and frag.held_tile(op.operands[0].type) is not None:
            # without an age no product adds to it; what is complete is so for fewer groups, too,
            # and ptxas sees that better
            age = self.ages.get(op.operands[0], MOST_PENDING)
            return min(age, self.complete)
        keys: list[Hashable] = []
        if op.name == "frag.release":
            keys = [op.operands[0]]
        elif isinstance(op, scf.YieldOp) and isinstance(op.parent_op(), scf.ForOp | scf.WhileOp):
            read = [key for key in self.ages if isinstance(key, ReadRegisters)]
            keys += [key for key in read if _is_made_in(key.tile, op.parent_op())]
        found = [self.ages[key] for key in keys if key in self.ages]
        return min((age for age in found if age < self.complete), default=None)


def _step(op: Operation, flying: Flying) -> Flying:
    if not isinstance(op, frag.WgmmaOp):
        return flying.waited(flying.pending(op))
    if op.asynchronous is None:
        return flying.committed(()).waited(0)
    concerned: list[Hashable] = [op.d]
    for operand in (op.a, op.b, op.metadata):
        if operand is not None and frag.held_tile(operand.type) is not None:
            concerned.append(ReadRegisters(operand))
        elif operand is not None:
            slot = slot_of(operand)
            concerned += [] if slot is None else [slot]
    return flying.committed(concerned)


def slot_of(memory: SSAValue) -> SSAValue | None:
    """The slot of a ring of which memory is a part, or a view of one."""
    while isinstance(memory.owner, Operation):
        owner = memory.owner
        if owner.name == "frag.part":
            return owner.operands[0]
        model = accesses_of(owner)
        below = None if model is None else model.view_of()
        if below is None:
            break
        memory = below
    return None


def _is_made_in(value: SSAValue, loop: Operation | None) -> bool:
    """Whether a value is made in a loop's body, so that each turn writes its registers."""
    owner = value.owner
    block = owner if isinstance(owner, Block) else owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is loop:
            return True
        block = None if parent is None else parent.parent
    return False


class _Known(NamedTuple):
    """What is known of products in flight ahead of each operation."""

    before: Mapping[Operation, Flying]


# --- lowering -------------------------------------------------------------------------------------


def pending_behind(state: LoweringState, op: Operation) -> int | None:
    """How many groups an operation that waits leaves under way; None where it need not."""
    known = state.of_subject.get(SUBJECT)
    if known is None:
        function: Operation | None = op
        while not isinstance(function, func.FuncOp):
            assert function is not None
            function = function.parent_op()
        forward = Forward[Flying](_step, Flying.merged, Flying.passed_on)
        forward.run(function.body.block, Flying({}, 0))
        known = state.of_subject[SUBJECT] = _Known(forward.before)
    assert isinstance(known, _Known)
    return known.before[op].pending(op)


def wait_for_products(lanes: Lanes, op: Operation) -> None:
    """Waits for the products that an operation must not overtake: before `frag.release`."""
    pending = pending_behind(lanes.state, op)
    if pending is not None:
        _keep_behind(lanes, op)
        lanes.insert(ptx.WgmmaWaitOp(pending, ()))


def wait_for_tile(lanes: Lanes, op: frag.AwaitOp) -> None:
    """`frag.await` of a tile in flight: its registers behind the wait."""
    tiles = lanes.state.tiles
    pending = pending_behind(lanes.state, op)
    assert pending is not None
    _keep_behind(lanes, op)
    wait = lanes.insert(ptx.WgmmaWaitOp(pending, list(tiles[op.source])))
    tiles[op.result] = list(wait.completed)


def _keep_behind(lanes: Lanes, op: Operation) -> None:
    """Keeps a wait behind what has been computed while the product was under way.

    ptxas moves `wgmma.wait_group` up to the last instruction that it orders, so that nothing is
    left to be done in the meantime. It moves nothing across a branch: here one that is never taken,
    which it cannot know, to a wait that would do no harm.
    """
    if not _computes_before(op):
        return
    ar = lanes.state.ar
    size = ar.pure("dynamic_smem_size", (), lambda: _dynamic_size())
    all_ones = ar.compare("eq", size, -1)
    assert isinstance(all_ones, SSAValue)
    block = Block()
    with ar.inside(block):
        lanes.insert(ptx.WgmmaWaitOp(0, ()))
        lanes.insert(scf.YieldOp())
    lanes.insert(scf.IfOp(all_ones, [], Region(block), Region()))


def _dynamic_size() -> Operation:
    return ptx.InstructionOp("mov.u32 $0, %dynamic_smem_size", (), (IndexType(),))


def _computes_before(op: Operation) -> bool:
    """Whether tiles are computed between a product, or what waits for one, and an operation."""
    before = op.prev_op
    while before is not None and not isinstance(before, frag.WgmmaOp | scf.ForOp | scf.WhileOp):
        tiles = [v for v in before.results if isinstance(v.type, frag.TileType)]
        if before.name == "frag.await" and tiles:
            return False
        if tiles and before.name not in _NOT_COMPUTED:
            return True
        before = before.prev_op
    return False


_NOT_COMPUTED = ("frag.fill", "frag.iota", "frag.undefined", "frag.broadcast")
"""What makes tiles without an instruction that may wait."""
