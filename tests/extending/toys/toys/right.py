"""Operations that are as they should be."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, FloatAttr, MemRefType, f32, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    region_def,
    result_def,
)

import fragir.dialects.interfaces as interfaces
from fragir.dialects import frag, ptx
from fragir.layout import Axis, Layout, Mode


def tile(value: SSAValue) -> frag.TileType:
    assert isinstance(value.type, frag.TileType)
    return value.type


class OneLayout(IRDLOperation, interfaces.LayoutInterface, interfaces.LaneInterface):
    """Base of operations from a tile to one of the same type."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(T)
    result = result_def(T)
    assembly_format = "$source attr-dict `:` type($source)"

    def same_layout(self) -> Iterator[tuple[SSAValue, ...]]:
        yield self.source, self.result


@irdl_op_definition
class TransposeOp(
    IRDLOperation,
    interfaces.DimensionsInterface,
    interfaces.LayoutInterface,
    interfaces.LaneInterface,
    interfaces.ReferenceInterface,
):
    """Rows become columns: either layout follows from the other, and no register moves."""

    name = "toy.transpose"
    source = operand_def(frag.TileType)
    result = result_def(frag.TileType)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterator[tuple[SSAValue, Attribute]]:
        for value, other in ((self.source, self.result), (self.result, self.source)):
            layout = known.get(value)
            if isinstance(layout, frag.LayoutAttr):
                rows, cols = tile(value).shape
                yield other, frag.ExplicitLayoutAttr(turned(layout.layout(rows, cols)))

    def origin(self, names: interfaces.Names) -> tuple[SSAValue, interfaces.Names]:
        return self.source, names[::-1]

    def lower_to_lanes(self, lanes: Any) -> None:
        lanes.bind(self.result, lanes.elements(self.source))

    def evaluate(self, run: Any) -> None:
        from fragir.reference import Bounded

        x = run[self.source]
        run[self.result] = Bounded(x.value.T, x.bound.T)


def turned(layout: Layout) -> Layout:
    axes = [
        Axis(axis.name, tuple(Mode(m.size, m.stride[::-1]) for m in axis.modes))
        for axis in layout.axes
    ]
    return Layout(tuple(axes), layout.dims)


@irdl_op_definition
class RowSumOp(OneLayout, interfaces.ReferenceInterface):
    """Every element of a tile of f32 becomes the sum of its row, over lanes and warps."""

    name = "toy.row_sum"

    def lower_to_lanes(self, lanes: Any) -> None:
        def add(x: SSAValue, y: SSAValue) -> SSAValue:
            return lanes.insert(arith.AddfOp(x, y)).result

        rows = [point[0] for point in lanes.points(self.source)]
        sums: dict[int, SSAValue] = {}
        for row, x in zip(rows, lanes.elements(self.source), strict=True):
            sums[row] = add(sums[row], x) if row in sums else x
        layout = tile(self.source).resolve()
        here = layout(lane=0, warp=0, element=0)
        assert here is not None
        for mask in (1, 2, 4, 8, 16):
            there = layout(lane=mask, warp=0, element=0)
            if there is not None and there[0] == here[0]:
                sums = {row: add(x, lanes.shuffle_xor(x, mask)) for row, x in sums.items()}
        # each warp writes its sums of rows, then all read those of all warps
        height, warps, ar = tile(self.source).shape[0], lanes.threads // 32, lanes.arithmetic
        scratch = lanes.scratch(4 * height * warps)
        first = lanes.base(self.source)[0]

        def place(warp: Any, row: int) -> tuple[SSAValue, int]:
            index = ar.add(ar.add(ar.mul(warp, height), first), row)
            pointer, offset = ar.offset(scratch, index, 4)
            return pointer, offset

        for row, x in sums.items():
            lanes.insert(ptx.StoreOp(x, *place(lanes.warp, row)))
        lanes.barrier()
        for row in sums:
            parts = [
                lanes.insert(ptx.LoadOp(*place(warp, row), f32)).value for warp in range(warps)
            ]
            sums[row] = parts[0]
            for part in parts[1:]:
                sums[row] = add(sums[row], part)
        lanes.barrier()
        lanes.bind(self.result, [sums[row] for row in rows])

    def evaluate(self, run: Any) -> None:
        import numpy as np

        from fragir.reference.bounded import bounded

        x = run[self.source]
        n = x.value.shape[1]
        size = (np.abs(x.value) + x.bound).sum(1, keepdims=True)
        unit = (n - 1) * 2.0**-24  # in whatever order: Higham, Accuracy and Stability, 4.2
        error = unit / (1 - unit) * size + n * 2.0**-53 * size + x.bound.sum(1, keepdims=True)
        total = np.broadcast_to(x.value.sum(1, keepdims=True), x.value.shape)
        run[self.result] = bounded(total, np.broadcast_to(error, x.value.shape))


@irdl_op_definition
class DoubleOp(OneLayout, interfaces.FragmentwiseInterface):
    """Twice each element, which the reference is not told."""

    name = "toy.double"

    def lower_to_lanes(self, lanes: Any) -> None:
        fragments = lanes.fragments(self.source)

        def twice(i: int) -> SSAValue:
            return lanes.insert(arith.AddfOp(fragments[i], fragments[i])).result

        lanes.bind_each(self.result, twice)


@irdl_op_definition
class ApplyOp(OneLayout, interfaces.ReferenceInterface):
    """A region of scalars on every element."""

    name = "toy.apply"
    body = region_def("single_block")
    assembly_format = "$source attr-dict `:` type($source) $body"

    def lower_to_lanes(self, lanes: Any) -> None:
        values = [lanes.region(self.body.block, [x])[0] for x in lanes.elements(self.source)]
        lanes.bind(self.result, values)

    def evaluate(self, run: Any) -> None:
        shape = tile(self.result).shape
        run[self.result] = run.region(self.body.block, [run[self.source]], shape)[0]


@irdl_op_definition
class SettledOp(
    IRDLOperation,
    interfaces.LayoutInterface,
    interfaces.LaneInterface,
    interfaces.ReferenceInterface,
):
    """The same tile in the layout that this operation likes best: column by column."""

    name = "toy.settled"
    source = operand_def(frag.TileType)
    result = result_def(frag.TileType)
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def demands(self, threads: interfaces.Threads) -> Iterator[interfaces.LayoutDemand]:
        rows, cols = tile(self.result).shape
        text = f"warp [1:(0,0)] lane [32:(0,1)] element [{rows}:(1,0) {cols // 32}:(0,32)]"
        layout = frag.ExplicitLayoutAttr(Layout.parse(text))
        yield interfaces.LayoutDemand(self.result, layout, "result")

    def lower_to_lanes(self, lanes: Any) -> None:
        scalars = lanes.elements(self.source)
        lanes.bind(self.result, lanes.convert(tile(self.source), tile(self.result), scalars))

    def evaluate(self, run: Any) -> None:
        run[self.result] = run[self.source]


@irdl_op_definition
class ThreadsOp(IRDLOperation, interfaces.LaneInterface, interfaces.ReferenceInterface):
    """How many threads a block of one warp has."""

    name = "toy.threads"
    result = result_def(Float32Type)
    assembly_format = "attr-dict `:` type($result)"

    def lower_to_lanes(self, lanes: Any) -> None:
        number = FloatAttr(lanes.threads, f32)
        found = lanes.pure(("toy.threads",), (), lambda: arith.ConstantOp(number))
        lanes.bind_scalar(self.result, found)

    def evaluate(self, run: Any) -> None:
        import numpy as np

        from fragir.reference.bounded import exactly

        run[self.result] = exactly(np.float64(32))


@irdl_op_definition
class ScribbleOp(IRDLOperation, interfaces.LaneInterface, interfaces.MemoryInterface):
    """Writes the first element of memory; the reference is told where, but not what."""

    name = "toy.scribble"
    memory = operand_def(MemRefType)
    assembly_format = "$memory attr-dict `:` type($memory)"

    def writes(self) -> tuple[SSAValue]:
        return (self.memory,)

    def lower_to_lanes(self, lanes: Any) -> None:
        one = lanes.insert(arith.ConstantOp(FloatAttr(1.0, f32))).result
        lanes.insert(ptx.StoreOp(one, lanes.memory(self.memory).pointer, 0))


@irdl_op_definition
class BrevOp(IRDLOperation, interfaces.PtxInterface):
    """`brev.b32`, which fragir's lane level lacks: PTX ISA 9.2, section 9.7.1.17."""

    name = "toy.brev"
    source = operand_def(i32)
    result = result_def(i32)
    assembly_format = "$source attr-dict"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[i32])

    def write_ptx(self, text: Any) -> None:
        (register,) = text.define(self.result)
        text.emit("brev.b32", register, text.register(self.source))


@irdl_op_definition
class ReversedOp(OneLayout, interfaces.ReferenceInterface):
    """The bits of each i32 the other way round."""

    name = "toy.reversed"

    def lower_to_lanes(self, lanes: Any) -> None:
        elements = lanes.elements(self.source)
        lanes.bind(self.result, [lanes.insert(BrevOp(x)).result for x in elements])

    def evaluate(self, run: Any) -> None:
        import numpy as np

        from fragir.reference.bounded import exactly

        bits = [run[self.source].value >> i & 1 for i in range(32)]
        turned = sum(bit << (31 - i) for i, bit in enumerate(bits))
        run[self.result] = exactly(np.asarray(turned).astype(np.int32).astype(np.int64))


@irdl_op_definition
class SwappedOp(OneLayout, interfaces.ReferenceInterface):
    """Each row of two the other way round, between neighbouring lanes."""

    name = "toy.swapped"

    def demands(self, threads: interfaces.Threads) -> Iterator[interfaces.LayoutDemand]:
        layout = Layout.parse("lane [2:(0,1) 16:(1,0)] element [1:(0,0)]")
        yield interfaces.LayoutDemand(self.result, frag.ExplicitLayoutAttr(layout), "result")

    def lower_to_lanes(self, lanes: Any) -> None:
        lanes.bind(self.result, [lanes.shuffle_xor(x, 1) for x in lanes.elements(self.source)])

    def evaluate(self, run: Any) -> None:
        from fragir.reference import Bounded

        x = run[self.source]
        run[self.result] = Bounded(x.value[:, ::-1], x.bound[:, ::-1])
