"""One loop whose products are added up in tensor memory: frag.tcgen05_mma."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.frag.attributes import HALVED
from fragir.dialects.frag.tensor_memory import columns_of
from fragir.mlir.diagnostics import fail
from fragir.passes.pipelining.insertion import insert_before
from fragir.passes.pipelining.loop import (
    PAIR,
    LoopPipeline,
    PipelineWay,
    SumChain,
    chains_of,
    check_maps,
    has_turn,
    hoist,
    is_zero,
)
from fragir.passes.pipelining.scale_loads import ScaleLoad, scales_of
from fragir.passes.pipelining.streams import Group
from fragir.passes.tiling.operand_layouts import shared_type
from fragir.passes.tiling.tensor_schedule import sums_at_once


def halves(type_: MemRefType[Attribute], columns: bool) -> MemRefType[Attribute]:
    """The memory of a pair for a matrix of which each block has half of the rows, or columns."""
    rows, cols = type_.get_shape()
    half = (rows, cols // 2) if columns else (rows // 2, cols)
    space = shared_type(type_.element_type, [], half, False).memory_space
    assert isinstance(space, frag.SharedAttr)
    pair = frag.SharedAttr(space.swizzle.data, HALVED[columns])
    return MemRefType(type_.element_type, (rows, cols), memory_space=pair)


class TensorPipeline(LoopPipeline):
    """Rewrites one loop. Its operands go through rings as ever, and each of its sums through a ring
    of tensor memory: acquired ahead of the loop, published behind it, and there awaited and loaded.
    Scales lie beside the sums, to which they are copied in every turn. In chunks they come in the
    slot of A and B; others through a ring of their own, whose slots threads fill.
    """

    def __init__(self, loop: scf.ForOp, groups: Sequence[Group], way: PipelineWay):
        self._pair = PAIR in loop.attributes
        if self._pair:  # each block fetches its half of B
            way = way._replace(multicast=frozenset())
        super().__init__(loop, groups, way)

    def run(self) -> None:
        """Replaces the loop."""
        loop = self._loop
        check_maps(self._groups)
        self._chains = chains_of(loop)
        chained = [product for chain in self._chains for product in chain.products]
        every = [product for group in self._groups for product in group.products]
        if set(chained) != set(every) or len(self._chains) != len(loop.iter_args):
            fail(loop, "a loop in tensor memory carries sums of products, and nothing else")
        for chain in self._chains:
            if not is_zero(chain.start):
                fail(loop, "sums in tensor memory begin with zero")
        rings = [self._ring(group) for group in self._groups]
        self._scale_rings = {group: self._scale_ring(group) for group in self._groups}
        self._sums: dict[frag.MmaOp, SSAValue] = {}
        self._scales: dict[SSAValue, SSAValue] = {}
        """Of a load of scales, where they lie in tensor memory."""
        held = [self._acquire(chain) for chain in self._chains]
        region = loop.detach_region(loop.body)
        for group, ring in zip(self._groups, rings, strict=True):
            self._turn(region.block, group, ring, None)
        self._finish(region, held)

    def _parts(self, group: Group) -> list[MemRefType[Attribute]]:
        """The matrices of a slot, of a pair half of B in each block; scales that come by TMA."""
        found = super()._parts(group)
        if self._pair:
            found = [
                halves(type_, load.transposed is None)
                if any(product.b is load.tile for product in group.products)
                else type_
                for load, type_ in zip(group.loads, found, strict=True)
            ]
        return [*found, *(scale.in_shared for scale in _scales_of(group, chunked=True))]

    def _acquire(self, chain: SumChain) -> SSAValue:
        """A slot for a sum and its scales, ahead of the loop."""
        tile = frag.tile_of(chain.start)
        memory = MemRefType(tile.element_type, tile.shape, memory_space=frag.TensorMemoryAttr())
        scales = [scale for product in chain.products for scale in scales_of(product)]
        parts = [memory, *(scale.in_tensor_memory for scale in scales)]
        count = sums_at_once(sum(columns_of(part) for part in parts))
        op = frag.RingOp(count, frag.RingType(parts))
        insert_before(op, InsertPoint.before(self._outermost()), "sums")
        at = InsertPoint.before(self._loop)
        slot = insert_before(frag.AcquireOp(op.ring), at, "held")
        sums = insert_before(frag.PartOp(slot, 0), at, "acc")
        self._sums |= dict.fromkeys(chain.products, sums)
        for number, scale in enumerate(scales, 1):
            part = insert_before(frag.PartOp(slot, number), at, scale.load.tile.name_hint)
            self._scales[scale.load.tile] = part
        return slot

    # --- scales -------------------------------------------------------------------------------

    def _fill_rest(self, group: Group, slot: SSAValue, at: InsertPoint) -> None:
        for number, scale in enumerate(_scales_of(group, chunked=True), len(group.loads)):
            part = insert_before(frag.PartOp(slot, number), at, scale.load.tile.name_hint)
            for copy in scale.copies(part, at):
                Rewriter.insert_op(copy, at)

    def _scale_ring(self, group: Group) -> SSAValue | None:
        """A ring for scales that threads put into chunks; None where there are none."""
        parts = [scale.in_shared for scale in _scales_of(group, chunked=False)]
        if not parts:
            return None
        op = frag.RingOp(self._way.stages, frag.RingType(parts))
        return insert_before(op, InsertPoint.before(self._outermost()), "scales")

    def _turn(self, body: Block, group: Group, ring: SSAValue, held: SSAValue | None) -> SSAValue:
        """A turn, in which scales are fetched, too."""
        first = group.products[0]
        for scale in _scales_of(group):
            for index in scale.load.indices:
                hoist(index, first)
        at, scale_ring, slot = InsertPoint.before(first), self._scale_rings[group], None
        self._scales_at: dict[SSAValue, SSAValue] = {}
        """Of a load of scales, where they lie in shared memory in this turn."""
        if scale_ring is not None:
            free = insert_before(frag.AcquireOp(scale_ring), at, "free")
            plain = _scales_of(group, chunked=False)
            for number, scale in enumerate(plain):
                part = insert_before(frag.PartOp(free, number), at, scale.load.tile.name_hint)
                for copy in scale.copies(part, at):
                    Rewriter.insert_op(copy, at)
            Rewriter.insert_op(frag.PublishOp(free), at)
            slot = insert_before(frag.AwaitOp(scale_ring), at, "slot")
            for number, scale in enumerate(plain):
                part = insert_before(frag.PartOp(slot, number), at, scale.load.tile.name_hint)
                self._scales_at[scale.load.tile] = part
        loads = [scale.load for scale in _scales_of(group)]
        result = super()._turn(body, group, ring, held)
        if slot is not None:
            Rewriter.insert_op(frag.ReleaseOp(slot), InsertPoint.after(self._last))
        for load in loads:
            Rewriter.erase_op(load)
        return result

    def _copy_scales(self, product: frag.MmaOp, slot: SSAValue, loads: int) -> list[SSAValue]:
        """Copies the scales of a product to tensor memory: where they are."""
        at, number, found = InsertPoint.before(product), loads, list[SSAValue]()
        for scale in scales_of(product):
            source = self._scales_at.get(scale.load.tile)
            if source is None:
                source = insert_before(frag.PartOp(slot, number), at, scale.load.tile.name_hint)
                number += 1
            target = self._scales[scale.load.tile]
            Rewriter.insert_op(frag.TensorCopyOp(source, target, transposed=scale.turned), at)
            found.append(target)
        return found

    def _multiply(
        self, body: Block, product: frag.MmaOp, parts: dict[frag.LoadOp, SSAValue]
    ) -> Operation:
        """A product; its slot is released behind it, which waits for nothing."""
        a, b = product.a.owner, product.b.owner
        if not isinstance(a, frag.LoadOp) or not isinstance(b, frag.LoadOp):
            fail(product, "tcgen05.mma reads A and B from shared memory: load them in this loop")
        chain = next(c for c in self._chains if product in c.products)
        part = parts[a].owner
        assert isinstance(part, frag.PartOp)
        made = frag.TensorMmaOp(
            parts[a],
            parts[b],
            self._sums[product],
            a_transposed=a.transposed is not None,
            b_transposed=b.transposed is not None,
            later=self._later(body) if product is chain.products[0] else None,
            pair=self._pair,
            scales=self._copy_scales(product, part.slot, len(parts)),
        )
        made.location = product.location
        Rewriter.insert_op(made, InsertPoint.before(product))
        product.d.replace_all_uses_with(product.c)
        Rewriter.erase_op(product)
        self._last = made
        return made

    def _finish(self, region: Region, slots: list[SSAValue]) -> None:
        """Puts a loop that carries nothing in the old one's place; behind it the sums."""
        loop, body = self._loop, region.block
        terminator = body.last_op
        assert isinstance(terminator, scf.YieldOp)
        Rewriter.replace_op(terminator, scf.YieldOp())
        for argument in list(body.args[1:]):
            body.erase_arg(argument)
        self._insert(region, ())
        for slot in slots:
            Rewriter.insert_op(frag.PublishOp(slot), InsertPoint.before(loop))
        for chain, slot in zip(self._chains, slots, strict=True):
            result = loop.results[chain.position]
            result.replace_all_uses_with(self._load(chain, slot))
        self._erase()

    def _load(self, chain: SumChain, slot: SSAValue) -> SSAValue:
        """What a sum is: zero where the loop may have had no turn."""
        at = InsertPoint.before(self._loop)
        acquired = slot.owner
        assert isinstance(acquired, frag.AcquireOp)
        full = insert_before(frag.AwaitOp(acquired.ring), at, "full")
        part = insert_before(frag.PartOp(full, 0), at)
        tile = insert_before(frag.TensorLoadOp(part), at, "acc")
        Rewriter.insert_op(frag.ReleaseOp(full), at)
        if has_turn(self._loop):
            return tile
        some = insert_before(arith.CmpiOp(self._loop.lb, self._loop.ub, "ult"), at, "some")
        fill = chain.start.owner
        assert isinstance(fill, frag.FillOp)
        body = Block(arg_types=[fill.value.type])
        chosen = arith.SelectOp(some, body.args[0], fill.value)
        body.add_ops([chosen, frag.YieldOp(chosen.result)])
        return insert_before(frag.MapOp([tile], Region(body), frag.tile_of(tile)), at, "acc")


def _scales_of(group: Group, chunked: bool | None = None) -> list[ScaleLoad]:
    """Those of a group's products, in order; of them those that are in chunks, or are not."""
    found = [scale for product in group.products for scale in scales_of(product)]
    return [scale for scale in found if chunked in (None, scale.chunked)]
