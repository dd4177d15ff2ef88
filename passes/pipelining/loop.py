"""One loop whose loads go through rings: a turn fills, awaits, multiplies and gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType, UnitAttr, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag, ptx
from fragir.dialects.shorthands import constant_of, memref_type
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail
from fragir.passes.pipelining.insertion import insert_before
from fragir.passes.pipelining.streams import Group
from fragir.passes.placing.placement import set_layout
from fragir.passes.tiling.operand_layouts import (
    in_pairs,
    instruction_of,
    is_across,
    loaded_as,
    shared_type,
)

# -- chains ----------------------------------------------------------------------------------------
# Sums that are carried round a loop and that nothing but products touches.


@dataclass(frozen=True)
class SumChain:
    """The products that add to the carried value number `position`, in order."""

    position: int
    start: SSAValue
    products: tuple[frag.MmaOp, ...]


def chains_of(loop: scf.ForOp) -> list[SumChain]:
    """The chains of a loop: argument -> C of a product -> its D -> ... -> the value yielded.

    Each value of a chain has that one use, and the argument's tile is the result's.
    """
    body = loop.body.block
    terminator = body.last_op
    assert isinstance(terminator, scf.YieldOp)
    found: list[SumChain] = []
    for position, argument in enumerate(body.args[1:]):
        value, products = argument, list[frag.MmaOp]()
        while (use := value.get_user_of_unique_use()) is not None:
            if not isinstance(use, frag.MmaOp) or use.c is not value or use.parent is not body:
                break
            products.append(use)
            value = use.d
        if use is terminator and terminator.operands[position] is value and products:
            found.append(SumChain(position, loop.iter_args[position], tuple(products)))
    return found


# -- crossed ---------------------------------------------------------------------------------------
# Products whose B wgmma cannot read as memory holds it, so that a transposed copy is made.


def lies_across(product: frag.MmaOp) -> bool:
    """Whether B lies across K in memory, and has elements other than of 16 bits: wgmma reads these
    K-major only.
    """
    load = product.b.owner
    turned = isinstance(load, frag.LoadOp) and load.transposed is not None
    return ptx.bits(frag.tile_of(product.b).element_type) != 16 and not turned


def order_sums(loop: scf.ForOp, warps: tuple[int, int], target: str) -> None:
    """Counts rows and columns of sums as their operands have them, which are copied in pairs.

    Values are replaced by others of the same place.
    """
    chained: list[frag.MmaOp] = []
    for chain in chains_of(loop):
        chained += chain.products
        crossed = next((p for p in chain.products if lies_across(p)), None)
        if crossed is None:
            continue
        layout = _layout(crossed, warps, target)
        set_layout(chain.start, layout)
        set_layout(loop.body.block.args[1 + chain.position], layout)
        for product in chain.products:
            set_layout(product.d, layout)
        set_layout(loop.results[chain.position], layout)
    for product in [op for op in loop.body.block.ops if isinstance(op, frag.MmaOp)]:
        if product not in chained and lies_across(product):
            layout = _layout(product, warps, target)
            for value in _same_layout_values(product, loop):
                set_layout(value, layout)


def _layout(crossed: frag.MmaOp, warps: tuple[int, int], target: str) -> frag.MmaLayoutAttr:
    name = instruction_of(crossed, warps, True, target)
    orders = (("m", in_pairs("m")), ("n", in_pairs("n")))
    return frag.MmaLayoutAttr(frag.MmaFragment(name, "c", warps, orders))


def _same_layout_values(product: frag.MmaOp, loop: scf.ForOp) -> list[SSAValue]:
    """The tiles of a product's sums, and those that must have one layout with them: of operations
    element by element, and what the loop carries of these.
    """
    found: list[SSAValue] = [product.c, product.d]
    body = loop.body.block
    for value in found:  # which grows
        more: list[SSAValue] = []
        for use in value.uses:
            op = use.operation
            if isinstance(op, frag.MapOp) and op.parent is body:
                more += [*op.tiles, op.result]
            elif op is body.last_op:
                more += _carried_values(loop, use.index)
        if value in loop.iter_args:
            more += _carried_values(loop, list(loop.iter_args).index(value))
        elif value in body.args:
            more += _carried_values(loop, body.args.index(value) - 1)
        found += [one for one in dict.fromkeys(more) if one not in found]
    return found


def _carried_values(loop: scf.ForOp, position: int) -> list[SSAValue]:
    """All values of what a loop carries."""
    body = loop.body.block
    assert body.last_op is not None
    return [
        loop.iter_args[position],
        body.args[1 + position],
        body.last_op.operands[position],
        loop.results[position],
    ]


STAGES = "frag.stages"
"""The attribute of a loop that says how many slots its rings have."""
TMA = "frag.tma"
"""The attribute of a loop whose loads the tensor memory accelerator shall make."""

TENSOR = "frag.tensor"
"""The attribute of a loop whose products are added up in tensor memory."""
PAIR = "frag.pair"
"""The attribute of such a loop whose products are of the two blocks of a cluster."""
MARKS = (STAGES, TMA, TENSOR, PAIR)
"""What a loop says of how it is to be pipelined, and no longer when it is."""


class PipelineWay(NamedTuple):
    """How a loop is pipelined."""

    stages: int
    tma: bool
    warps: tuple[int, int]
    """Warps along the rows and columns of the product; with `wgmma`, warpgroups."""
    wgmma: bool
    target: str
    multicast: frozenset[SSAValue] = frozenset()
    """Memories of which all blocks of a cluster take the same tile."""


class LoopPipeline:
    """Rewrites one loop. Each group of its loads gets a ring of its own.

    A product that adds to a sum carried round the loop, and that nothing else uses, stays under way
    into the next turn; its slot is then released a turn later, behind the next product. What else
    is multiplied by wgmma is awaited where it is first used.
    """

    def __init__(self, loop: scf.ForOp, groups: Sequence[Group], way: PipelineWay):
        self._loop, self._groups, self._way = loop, groups, way
        self._chains = chains_of(loop) if way.wgmma and way.stages > 1 else []
        chained = {product for chain in self._chains for product in chain.products}
        late = [
            group
            for group in groups
            if chained.issuperset(group.products)
            and not any(lies_across(p) for p in group.products)
        ]
        on_the_way = {product for group in late for product in group.products}
        self._chains = [c for c in self._chains if on_the_way.issuperset(c.products)]
        self._late = late

    def run(self) -> None:
        """Replaces the loop."""
        loop = self._loop
        if self._way.tma:
            check_maps(self._groups)
        rings = [self._ring(group) for group in self._groups]
        starts = list(loop.iter_args)
        for chain in self._chains:
            starts[chain.position] = self._start(chain)
        for group, ring in zip(self._groups, rings, strict=True):
            if group in self._late:
                starts.append(
                    insert_before(frag.NoSlotOp(ring.type.slot), InsertPoint.before(loop))
                )
        region = loop.detach_region(loop.body)
        body = region.block
        for argument, start in zip(body.args[1:], starts, strict=False):
            if argument.type != start.type:
                Rewriter.replace_value_with_new_type(argument, start.type)
        held = [
            body.insert_arg(start.type, len(body.args)) for start in starts[len(loop.iter_args) :]
        ]
        for slot in held:
            slot.name_hint = "last"
        given_back = dict(zip(self._late, held, strict=True))
        kept: list[SSAValue] = []
        for group, ring in zip(self._groups, rings, strict=True):
            slot = self._turn(body, group, ring, given_back.get(group))
            if group in given_back:
                kept.append(slot)
        terminator = body.last_op
        assert isinstance(terminator, scf.YieldOp)
        Rewriter.replace_op(terminator, scf.YieldOp(*terminator.operands, *kept))
        self._replace(region, starts)

    def _parts(self, group: Group) -> list[MemRefType[Attribute]]:
        """The matrices of a slot, as global memory holds them."""
        result: list[MemRefType[Attribute]] = []
        for load in group.loads:
            tile, transposed = frag.tile_of(load.tile), load.transposed is not None
            rows, cols = tile.shape
            is_a = any(product.a is load.tile for product in group.products)
            # by plain loads: f64, and where memory runs along M or N what ldmatrix does not turn
            bits = ptx.bits(tile.element_type)
            by_words = bits == 64 or (bits == 32 and is_across(is_a, transposed))
            shape = (cols, rows) if transposed else (rows, cols)
            plain = self._way.tma or not by_words
            result.append(shared_type(tile.element_type, [], shape, not plain))
        return result

    # --- before and behind the loop -----------------------------------------------------------

    def _ring(self, group: Group) -> SSAValue[frag.RingType]:
        """A ring for a group's loads, for the whole kernel."""
        op = frag.RingOp(self._way.stages, frag.RingType(self._parts(group)))
        insert_before(op, InsertPoint.before(self._outermost()), "ring")
        return op.ring

    def _outermost(self) -> Operation:
        """The operation at the top of the function that the loop stands in."""
        found: Operation = self._loop
        while (parent := found.parent_op()) is not None and parent.name != "func.func":
            found = parent
        return found

    def _start(self, chain: SumChain) -> SSAValue:
        """What a sum under way begins with: registers with anything in them, where the first
        product sets them; zeros where the loop may have no turn.
        """
        start = chain.start
        at = InsertPoint.before(self._loop)
        if self._is_set(chain):
            return insert_before(
                frag.UndefinedOp(frag.InFlightType(frag.tile_of(start))), at, "none"
            )
        return insert_before(frag.InFlightOp(start), at)

    def _is_set(self, chain: SumChain) -> bool:
        """Whether the first product of a sum sets it: it begins with zero, and there is one."""
        return is_zero(chain.start) and has_turn(self._loop)

    def _replace(self, region: Region, starts: Sequence[SSAValue]) -> None:
        """Puts the new loop in the old one's place; its sums are awaited, its slots released."""
        loop, after = self._loop, InsertPoint.after
        made = self._insert(region, starts)
        last: Operation = made
        results: list[SSAValue] = list(made.results[: len(loop.results)])
        for chain in self._chains:
            done = frag.AwaitOp(made.results[chain.position])
            Rewriter.insert_op(done, after(last))
            results[chain.position], last = done.result, done
        for slot in made.results[len(loop.results) :]:
            release = frag.ReleaseOp(slot)
            Rewriter.insert_op(release, after(last))
            last = release
        for old, new in zip(loop.results, results, strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        self._erase()

    def _insert(self, region: Region, starts: Sequence[SSAValue]) -> scf.ForOp:
        """The new loop, ahead of the old one."""
        loop = self._loop
        made = scf.ForOp(loop.lb, loop.ub, loop.step, starts, region)
        made.attributes = {k: v for k, v in loop.attributes.items() if k not in MARKS}
        made.attributes[ptx.NO_UNROLL] = UnitAttr()  # copies run ahead as it is
        made.location = loop.location
        Rewriter.insert_op(made, InsertPoint.before(loop))
        return made

    def _erase(self) -> None:
        """The old loop goes, and zeros with which sums began."""
        self._loop.detach()
        self._loop.erase()
        for chain in self._chains:
            start = chain.start.owner
            if isinstance(start, frag.FillOp) and not chain.start.uses:
                Rewriter.erase_op(start)

    # --- one turn -----------------------------------------------------------------------------

    def _turn(self, body: Block, group: Group, ring: SSAValue, held: SSAValue | None) -> SSAValue:
        """Fills the next slot, awaits it and multiplies; the slot that it was.

        With `held`, the last turn's slot, that one is released: this one is a turn later.
        """
        first = group.products[0]
        at = InsertPoint.before(first)
        for load in group.loads:
            for index in load.indices:
                hoist(index, first)
        self._fill(group, ring, at)
        slot = insert_before(frag.AwaitOp(ring), at, "slot")
        parts = {
            load: insert_before(frag.PartOp(slot, i), at, _name(load))
            for i, load in enumerate(group.loads)
        }
        if not self._way.wgmma:
            for load, part in parts.items():
                again = insert_before(
                    self._operand_load(group.products[0], load, part), at, load.tile.name_hint
                )
                load.tile.replace_all_uses_with(again)
        last: Operation = group.products[-1]
        for product in list(group.products) if self._way.wgmma else ():
            last = self._multiply(body, product, parts)
        for load in group.loads:
            Rewriter.erase_op(load)
        release = frag.ReleaseOp(slot if held is None else held)
        Rewriter.insert_op(release, InsertPoint.after(last))
        return slot

    def _fill(self, group: Group, ring: SSAValue, at: InsertPoint) -> None:
        slot = insert_before(frag.AcquireOp(ring), at, "free")
        for i, load in enumerate(group.loads):
            part = insert_before(frag.PartOp(slot, i), at, _name(load))
            copy = frag.CopyOp(
                load.memory,
                load.all_indices(),
                part,
                [],
                masked=load.masked is not None and not self._way.tma,
                is_async=not self._way.tma,
                tma=self._way.tma,
                multicast=load.memory in self._way.multicast,
            )
            copy.location = load.location
            Rewriter.insert_op(copy, at)
        self._fill_rest(group, slot, at)
        Rewriter.insert_op(frag.PublishOp(slot), at)

    def _fill_rest(self, group: Group, slot: SSAValue, at: InsertPoint) -> None:
        """Copies what a slot has besides the group's loads."""

    def _multiply(
        self, body: Block, product: frag.MmaOp, parts: dict[frag.LoadOp, SSAValue]
    ) -> Operation:
        """A product by wgmma; the operation after which its slot is read, or that reads it."""
        at = InsertPoint.before(product)
        a, a_transposed = self._left_operand(product, parts, at)
        b, b_transposed = self._right(body, product, parts, at)
        chain = next((c for c in self._chains if product in c.products), None)
        counts, addend = None, product.c
        if chain is None and is_zero(addend):  # set, instead of added to zeros
            addend = insert_before(frag.UndefinedOp(frag.tile_of(addend)), at, "none")
            counts = insert_before(arith.ConstantOp(IntegerAttr(0, i1)), at)
        elif chain is not None and product is chain.products[0] and self._is_set(chain):
            counts = self._later(body)
        wgmma = frag.WgmmaOp(
            a,
            b,
            addend,
            a_transposed=a_transposed,
            b_transposed=b_transposed,
            asynchronous=not lies_across(product),
            scale_d=counts,
        )
        wgmma.location = product.location
        wgmma.d.name_hint = product.d.name_hint
        Rewriter.insert_op(wgmma, at)
        last: Operation = wgmma
        result = wgmma.d
        if chain is None and wgmma.asynchronous is not None:
            users = [use.operation for use in product.d.uses]
            last = done = frag.AwaitOp(wgmma.d)
            last.location, result = product.location, done.result
            Rewriter.insert_op(last, InsertPoint.before(_first_of(users, body)))
        product.d.replace_all_uses_with(result)
        Rewriter.erase_op(product)
        return last

    def _left_operand(
        self, product: frag.MmaOp, parts: dict[frag.LoadOp, SSAValue], at: InsertPoint
    ) -> tuple[SSAValue, bool]:
        """A as wgmma takes it: the matrix in memory, turned or not, or a tile in registers."""
        load = product.a.owner
        if not isinstance(load, frag.LoadOp) or load not in parts:
            return product.a, False
        transposed = load.transposed is not None
        if not transposed or ptx.bits(frag.tile_of(product.a).element_type) == 16:
            return parts[load], transposed
        return insert_before(
            self._operand_load(product, load, parts[load]), at, load.tile.name_hint
        ), False

    def _operand_load(self, product: frag.MmaOp, load: frag.LoadOp, part: SSAValue) -> frag.LoadOp:
        """A load of an operand from shared memory, in a layout that is cheap to load."""
        name = instruction_of(product, self._way.warps, self._way.wgmma, self._way.target)
        transposed = load.transposed is not None
        tile = frag.tile_of(load.tile)
        if tile.placement is None:
            operand = "a" if product.a is load.tile else "b"
            tile = loaded_as(tile, name, operand, self._way.warps, transposed)
        return frag.LoadOp(part, [0, 0], tile, transposed=transposed)

    def _right(
        self,
        body: Block,
        product: frag.MmaOp,
        parts: dict[frag.LoadOp, SSAValue],
        at: InsertPoint,
    ) -> tuple[SSAValue, bool]:
        """B as wgmma takes it: the matrix in memory, or where it would have to be K-major a
        transposed copy of it.
        """
        load = product.b.owner
        if not isinstance(load, frag.LoadOp) or load not in parts:
            fail(product, "wgmma reads B from memory: load it from global memory in this loop")
        if not lies_across(product):
            return parts[load], load.transposed is not None
        from fragir.passes.tiling.operand_layouts import TransposedCopy  # few programs need it

        tile = frag.tile_of(product.b)
        warps = 4 * self._way.warps[0] * self._way.warps[1]
        # awaiting a slot that threads have copied, all of them meet; else they meet once a turn,
        # and once ahead of the loop, as what they read of a turn is not written in the next one
        met = not self._way.tma
        places = 1 if met else 2
        second = TransposedCopy(tile.element_type, (tile.cols, tile.rows), warps, places)
        Rewriter.insert_op(second.alloc, InsertPoint.before(self._outermost()))
        place = None
        if not met:
            Rewriter.insert_op(frag.BarrierOp(), InsertPoint.before(self._loop))
            place = self._place(body, at)
        memory, ops = second.fill(parts[load], place, met)
        for op in ops:
            op.location = product.location
            Rewriter.insert_op(op, at)
        return memory, True

    def _place(self, body: Block, at: InsertPoint) -> SSAValue:
        """0 and 1 by turns, as the loop counts."""
        turn = insert_before(arith.DivUIOp(body.args[0], self._loop.step), at)
        two = insert_before(arith.ConstantOp(IntegerAttr(2, IndexType())), at)
        return insert_before(arith.RemUIOp(turn, two), at, "place")

    def _later(self, body: Block) -> SSAValue:
        """Whether this is not the loop's first turn."""
        first = body.first_op
        assert first is not None
        if isinstance(first, arith.CmpiOp) and first.lhs is body.args[0]:
            return first.result
        made = arith.CmpiOp(body.args[0], self._loop.lb, "ne")
        return insert_before(made, InsertPoint.before(first), "later")


def check_maps(groups: Sequence[Group]) -> None:
    """Ends the pass where a tensor map cannot say the memory of a load."""
    from fragir.dialects.frag import tensor_copies  # few programs need it

    for load in (load for group in groups for load in group.loads):
        type_ = memref_type(load.memory.type)
        try:
            along = tensor_copies.contiguous(load.memory)
            tensor_copies.check_strides(type_, along)
            tensor_copies.check_column(type_, load.all_indices()[along])
        except FragirError as error:
            fail(load, f"{error.message}, to be copied by TMA ({error.hint})")


def _name(load: frag.LoadOp) -> str | None:
    return load.tile.name_hint or load.memory.name_hint


def hoist(value: SSAValue, before: Operation) -> None:
    """Moves what a pure value is computed from ahead of an operation of the same block."""
    owner = value.owner
    if isinstance(owner, Block) or owner.parent is not before.parent:
        return
    if owner.is_before_in_block(before):
        return
    for operand in owner.operands:
        hoist(operand, before)
    owner.detach()
    Rewriter.insert_op(owner, InsertPoint.before(before))


def _first_of(users: Sequence[Operation], body: Block) -> Operation:
    """The first operation of a body that uses a product, by itself or in its regions."""
    found = body.last_op
    assert found is not None
    for user in users:
        while user.parent is not body:
            parent = user.parent_op()
            assert parent is not None
            user = parent
        if user.is_before_in_block(found):
            found = user
    return found


def is_zero(value: SSAValue) -> bool:
    """Whether a tile is filled with zeros."""
    fill = value.owner
    if not isinstance(fill, frag.FillOp) or not isinstance(fill.value.owner, arith.ConstantOp):
        return False
    number = fill.value.owner.value
    if isinstance(number, FloatAttr):
        return str(number.value.data) == "0.0"
    return isinstance(number, IntegerAttr) and number.value.data == 0


def has_turn(loop: scf.ForOp) -> bool:
    """Whether a loop is known to have a turn."""
    first, end = (constant_of(value) for value in (loop.lb, loop.ub))
    return first is not None and end is not None and first < end
