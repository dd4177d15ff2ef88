"""Sorting, prefix sums, scattered updates and stages of a Fourier transform as generics.

Each element of a result is computed from its place, with a loop along the dimension: n elements
take n x n steps, which run side by side for every element of the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    TensorType,
    i32,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.shorthands import constant_of
from fragir.dialects.tensors.extensions import (
    Extension,
    FftExtension,
    ScanExtension,
    ScatterExtension,
    SortExtension,
    YieldsElement,
    shape_of,
    shaped,
)
from fragir.mlir.diagnostics import fail
from fragir.passes.normalizing.building import TensorBuilder, index_in

Body = Callable[[Builder, Sequence[SSAValue], Sequence[SSAValue]], SSAValue]
"""An element from the places along the loops, and the elements that are read, the old one last."""


def expand_extensions(function: func.FuncOp) -> None:
    """Replaces each of a function."""
    for op in list(function.walk()):
        match op:
            case SortExtension():
                _sort(op)
            case ScanExtension():
                _scan(op)
            case ScatterExtension():
                _scatter(op)
            case FftExtension():
                _fft(op)
            case _:
                pass


class _Loops:
    """Generics over the dimensions of a tensor, and one more loop that reduces."""

    def __init__(self, op: Extension):
        self.op, self.at = op, TensorBuilder(op)
        self.rank = len(shape_of(op.outputs[0]))
        self.along = op.along

    def place(self, dim: int) -> AffineExpr:
        return AffineExpr.dimension(dim)

    def whole(self) -> list[AffineExpr]:
        """The places along the tensor's dimensions."""
        return [self.place(dim) for dim in range(self.rank)]

    def turned(self) -> list[AffineExpr]:
        """The same with the further loop along the dimension."""
        return [self.place(self.rank if d == self.along else d) for d in range(self.rank)]

    def generic(
        self,
        inputs: Sequence[tuple[SSAValue, Sequence[AffineExpr]]],
        into: SSAValue,
        body: Body,
        reduces: bool = True,
    ) -> SSAValue:
        """A tensor whose elements a body computes; `inputs` with where each is read."""
        loops = self.rank + reduces
        block = Block(
            arg_types=[*(shaped(x).element_type for x, _ in inputs), shaped(into).element_type]
        )
        build = Builder(InsertPoint.at_end(block))
        places = [build.insert(ops.IndexOp(dim)).result for dim in range(loops)]
        build.insert(ops.YieldOp(body(build, places, block.args)))
        maps = [AffineMap(loops, 0, tuple(where)) for _, where in inputs]
        maps.append(AffineMap(loops, 0, tuple(self.whole())))
        kinds = [attrs.IteratorTypeAttr.parallel()] * self.rank
        kinds += [attrs.IteratorTypeAttr.reduction()] * reduces
        return self.at.put(
            ops.GenericOp(
                [x for x, _ in inputs],
                [into],
                Region(block),
                [AffineMapAttr(one) for one in maps],
                kinds,
                [into.type],
            )
        )

    def zeros(self, element: IntegerType) -> SSAValue:
        """A tensor of zeros of the output's shape."""
        like = self.op.outputs[0]
        sizes = (self.at.size(like, dim) for dim in range(self.rank))
        dynamic = [size for size in sizes if isinstance(size, SSAValue)]
        zero = self.at.put(arith.ConstantOp(IntegerAttr(0, element)))
        return self.at.fill(zero, TensorType(element, shape_of(like)), dynamic)

    def applied(self, build: Builder, given: Sequence[SSAValue]) -> SSAValue:
        """What the operation's body gives for elements."""
        block = self.op.block
        known: dict[SSAValue, SSAValue] = dict(zip(block.args, given, strict=True))
        for inner in block.ops:
            if isinstance(inner, YieldsElement):
                return known.get(inner.values[0], inner.values[0])
            build.insert(inner.clone(known))
        fail(self.op, f"the body of {self.op.name} yields nothing")

    def replace(self, values: Sequence[SSAValue]) -> None:
        Rewriter.replace_op(self.op, [], list(values))


def _compare(build: Builder, x: SSAValue, y: SSAValue, how: str) -> SSAValue:
    return build.insert(arith.CmpiOp(x, y, how)).result


def _choose(build: Builder, test: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    return build.insert(arith.SelectOp(test, x, y)).result


def _sort(op: SortExtension) -> None:
    """How many elements come before each, which one has each number, and those in their order."""
    loops = _Loops(op)
    along, reads = loops.along, list[tuple[SSAValue, Sequence[AffineExpr]]]()
    for value in op.outputs:
        reads += [(value, loops.turned()), (value, loops.whole())]

    def counted(
        build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]
    ) -> SSAValue:
        *given, old = elements
        other = [x for pair in zip(given[1::2], given[::2], strict=True) for x in pair]
        first, second = loops.applied(build, given), loops.applied(build, other)
        tied = _compare(build, first, second, "eq")
        earlier = _compare(build, places[-1], places[along], "slt")
        before = _choose(build, tied, earlier, first)
        one = build.insert(arith.ExtUIOp(before, i32)).result
        return build.insert(arith.AddiOp(one, old)).result

    def found(build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]) -> SSAValue:
        number, old = elements
        wanted = build.insert(arith.IndexCastOp(places[along], i32)).result
        here = build.insert(arith.IndexCastOp(places[-1], i32)).result
        zero = build.insert(arith.ConstantOp(IntegerAttr(0, i32))).result
        hit = _choose(build, _compare(build, number, wanted, "eq"), here, zero)
        return build.insert(arith.MaxSIOp(hit, old)).result

    counts = loops.generic(reads, loops.zeros(i32), counted)
    order = loops.generic([(counts, loops.turned())], loops.zeros(i32), found)

    def moved(value: SSAValue) -> Body:
        def body(
            build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]
        ) -> SSAValue:
            at = build.insert(arith.IndexCastOp(elements[0], IndexType())).result
            where = [at if dim == along else place for dim, place in enumerate(places)]
            return build.insert(tensor.ExtractOp(value, where, shaped(value).element_type)).result

        return body

    loops.replace(
        [
            loops.generic([(order, loops.whole())], value, moved(value), reduces=False)
            for value in op.outputs
        ]
    )


def _scan(op: ScanExtension) -> None:
    """Each element is what the body makes of all up to it, in their order."""
    loops = _Loops(op)
    source, (into, start) = op.inputs[0], op.outputs
    inclusive = op.inclusive is None or bool(op.inclusive.value.data)
    along = loops.along
    kept = [loops.place(dim) for dim in range(loops.rank) if dim != along]

    def begun(build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]) -> SSAValue:
        return elements[0]

    def body(build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]) -> SSAValue:
        x, old = elements
        made = loops.applied(build, [old, x])
        if inclusive:
            first = _compare(build, places[-1], index_in(build, 0), "eq")
            made = _choose(build, first, x, made)
        counts = _compare(build, places[-1], places[along], "sle" if inclusive else "slt")
        return _choose(build, counts, made, old)

    begin = loops.generic([(start, kept)], into, begun, reduces=False)
    sums = loops.generic([(source, loops.turned())], begin, body)
    last = start
    if op.res[1].uses:
        if not inclusive:
            fail(op, f"what {op.name} that is exclusive ends with is not supported; take the sums")
        last = _last(loops, sums, start)
    loops.replace([sums, last])


def _last(loops: _Loops, sums: SSAValue, like: SSAValue) -> SSAValue:
    """The last of the sums, along all other dimensions."""
    at = loops.at
    size = at.size(sums, loops.along)

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        end = index_in(build, size) if isinstance(size, int) else size
        last = build.insert(arith.SubiOp(end, index_in(build, 1))).result
        where = [*places[: loops.along], last, *places[loops.along :]]
        return build.insert(tensor.ExtractOp(sums, where, shaped(sums).element_type)).result

    return at.generic(like, body)


def _scatter(op: ScatterExtension) -> None:
    """Each element takes the updates that are for it, in their order."""
    loops = _Loops(op)
    (updates, indices), into = op.inputs, op.outputs[0]
    whole, given, held = shape_of(into), shape_of(updates)[1:], op.mapped
    number = loops.place(loops.rank)
    others = [dim for dim in range(loops.rank) if dim not in held]
    if len(given) == len(whole) and all(given[dim] == 1 for dim in held):
        kept = [AffineExpr.constant(0) if d in held else loops.place(d) for d in range(loops.rank)]
        sizes = [given[dim] for dim in others]
    elif len(given) == len(others):
        kept, sizes = [loops.place(dim) for dim in others], list(given)
    else:
        kept, sizes = [], []
    if [whole[dim] for dim in others] != sizes or not held or len(op.inputs) != 2:
        fail(
            op,
            f"{op.name} of parts that are not whole rows is not supported; an update has one "
            "element along each indexed dimension, and all along the others",
        )
    depth = [AffineExpr.constant(at) for at in range(len(held))]
    rank = len(shape_of(indices))
    reads: list[tuple[SSAValue, Sequence[AffineExpr]]] = [(updates, [number, *kept])]
    reads += [(indices, [number, at] if rank == 2 else [number]) for at in depth]

    def body(build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]) -> SSAValue:
        update, *said, old = elements
        hit: SSAValue | None = None
        for dim, value in zip(held, said, strict=True):
            is_index = isinstance(value.type, IndexType)
            row = value if is_index else build.insert(arith.IndexCastOp(value, IndexType())).result
            same = _compare(build, row, places[dim], "eq")
            hit = same if hit is None else build.insert(arith.AndIOp(hit, same)).result
        assert hit is not None
        return _choose(build, hit, loops.applied(build, [update, old]), old)

    loops.replace([loops.generic(reads, into, body)])


def _fft(op: FftExtension) -> None:
    """Sums and differences of pairs half a group apart, the second ones times a factor."""
    loops = _Loops(op)
    stage = constant_of(op.inputs[0])
    if stage is None or len(op.inputs) != 3 or not 0 < stage < 31:
        fail(op, f"{op.name} takes the number of its stage as a constant, and its factors")
    factors, parts = op.inputs[1:], op.outputs
    size, half = 1 << stage, 1 << (stage - 1)

    def read(build: Builder, value: SSAValue, where: Sequence[SSAValue]) -> SSAValue:
        return build.insert(tensor.ExtractOp(value, where, shaped(value).element_type)).result

    def part(imaginary: bool) -> Body:
        def body(
            build: Builder, places: Sequence[SSAValue], elements: Sequence[SSAValue]
        ) -> SSAValue:
            *rest, place = places
            apart = index_in(build, half)
            within = build.insert(arith.RemUIOp(place, index_in(build, size))).result
            is_first = _compare(build, within, apart, "slt")
            behind = build.insert(arith.SubiOp(within, apart)).result
            pair = _choose(build, is_first, within, behind)
            start = build.insert(arith.SubiOp(place, within)).result
            first = build.insert(arith.AddiOp(start, pair)).result
            second = [*rest, build.insert(arith.AddiOp(first, apart)).result]
            real, other = (read(build, one, [pair]) for one in factors)
            x, y = (read(build, one, second) for one in parts)
            if imaginary:
                x, y = y, x
            left = build.insert(arith.MulfOp(real, x)).result
            right = build.insert(arith.MulfOp(other, y)).result
            combine = arith.AddfOp if imaginary else arith.SubfOp
            times = build.insert(combine(left, right)).result
            base = read(build, parts[imaginary], [*rest, first])
            more = build.insert(arith.AddfOp(base, times)).result
            less = build.insert(arith.SubfOp(base, times)).result
            return _choose(build, is_first, more, less)

        return body

    made = [loops.generic([], parts[at], part(bool(at)), reduces=False) for at in (0, 1)]
    loops.replace(made)
