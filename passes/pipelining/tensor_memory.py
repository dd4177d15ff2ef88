"""One loop whose products are added up in tensor memory: frag.tcgen05_mma."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag, ptx
from fragir.dialects.frag.attributes import HALVED
from fragir.mlir.diagnostics import fail
from fragir.passes.pipelining.insertion import insert_before
from fragir.passes.pipelining.loop import (
    PAIR,
    STAGES,
    TENSOR,
    TMA,
    LoopPipeline,
    PipelineWay,
    SumChain,
    chains_of,
    check_maps,
    has_turn,
    is_zero,
)
from fragir.passes.pipelining.streams import Group
from fragir.passes.tiling.operand_layouts import shared_type
from fragir.passes.tiling.tensor_schedule import SUMS


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
        held = [self._acquire(chain) for chain in self._chains]
        self._sums = {
            product: part
            for chain, (_, part) in zip(self._chains, held, strict=True)
            for product in chain.products
        }
        region = loop.detach_region(loop.body)
        for group, ring in zip(self._groups, rings, strict=True):
            self._turn(region.block, group, ring, None)
        self._finish(region, [slot for slot, _ in held])

    def _parts(self, group: Group) -> list[MemRefType[Attribute]]:
        """The matrices of a slot: of a pair half of B in each block."""
        found = super()._parts(group)
        if not self._pair:
            return found
        return [
            halves(type_, load.transposed is None)
            if any(product.b is load.tile for product in group.products)
            else type_
            for load, type_ in zip(group.loads, found, strict=True)
        ]

    def _acquire(self, chain: SumChain) -> tuple[SSAValue, SSAValue]:
        """A slot for a sum, ahead of the loop, and its memory."""
        tile = frag.tile_of(chain.start)
        memory = MemRefType(tile.element_type, tile.shape, memory_space=frag.TensorMemoryAttr())
        op = frag.RingOp(SUMS, frag.RingType([memory]))
        insert_before(op, InsertPoint.before(self._outermost()), "sums")
        at = InsertPoint.before(self._loop)
        slot = insert_before(frag.AcquireOp(op.ring), at, "held")
        return slot, insert_before(frag.PartOp(slot, 0), at, "acc")

    def _multiply(
        self, body: Block, product: frag.MmaOp, parts: dict[frag.LoadOp, SSAValue]
    ) -> Operation:
        """A product; its slot is released behind it, which waits for nothing."""
        a, b = product.a.owner, product.b.owner
        if not isinstance(a, frag.LoadOp) or not isinstance(b, frag.LoadOp):
            fail(product, "tcgen05.mma reads A and B from shared memory: load them in this loop")
        chain = next(c for c in self._chains if product in c.products)
        made = frag.TensorMmaOp(
            parts[a],
            parts[b],
            self._sums[product],
            a_transposed=a.transposed is not None,
            b_transposed=b.transposed is not None,
            later=self._later(body) if product is chain.products[0] else None,
            pair=self._pair,
        )
        made.location = product.location
        Rewriter.insert_op(made, InsertPoint.before(product))
        product.d.replace_all_uses_with(product.c)
        Rewriter.erase_op(product)
        return made

    def _finish(self, region: Region, slots: list[SSAValue]) -> None:
        """Puts a loop that carries nothing in the old one's place; behind it the sums."""
        loop, body = self._loop, region.block
        terminator = body.last_op
        assert isinstance(terminator, scf.YieldOp)
        Rewriter.replace_op(terminator, scf.YieldOp())
        for argument in list(body.args[1:]):
            body.erase_arg(argument)
        made = scf.ForOp(loop.lb, loop.ub, loop.step, (), region)
        marks = (STAGES, TMA, TENSOR, PAIR)
        made.attributes = {k: v for k, v in loop.attributes.items() if k not in marks}
        made.attributes[ptx.NO_UNROLL] = UnitAttr()
        made.location = loop.location
        Rewriter.insert_op(made, InsertPoint.before(loop))
        for slot in slots:
            Rewriter.insert_op(frag.PublishOp(slot), InsertPoint.before(loop))
        for chain, slot in zip(self._chains, slots, strict=True):
            result = loop.results[chain.position]
            result.replace_all_uses_with(self._load(chain, slot))
        loop.detach()
        loop.erase()
        for chain in self._chains:
            start = chain.start.owner
            if isinstance(start, frag.FillOp) and not chain.start.uses:
                Rewriter.erase_op(start)

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
