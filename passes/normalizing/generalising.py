"""Operations of other kinds as generics: named ones, softmax, arith and affine on tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import affine, arith, func, math, memref, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.linalg.scalar_bodies import is_float
from fragir.dialects.linalg.shaped import SoftmaxOp
from fragir.dialects.linalg.structured import rank_of, shaped_type, tensors_of
from fragir.dialects.tensors.arithmetic import OnTensors
from fragir.mlir.diagnostics import fail
from fragir.passes.normalizing.building import TensorBuilder
from fragir.passes.structured.values import compute, value_of


def generalise(function: func.FuncOp) -> None:
    """Replaces every structured operation but fills by its maps, iterators and body."""
    named = [
        op
        for op in function.walk()
        if isinstance(op, LinalgStructuredOperation)
        and not isinstance(op, ops.GenericOp | ops.FillOp)
    ]
    for op in named:
        maps, iterators = op.get_indexing_maps(), op.get_iterator_types()
        results = [result.type for result in op.res]
        made = ops.GenericOp(
            op.inputs, op.outputs, op.detach_region(op.body), maps, iterators, results
        )
        made.attributes.update(op.attributes)
        made.location = op.location
        for inner in made.body.walk():
            inner.location = op.location
        for old, new in zip(op.res, made.res, strict=True):
            new.name_hint = old.name_hint
        Rewriter.replace_op(op, made)


# -- elementwise -----------------------------------------------------------------------------------
# `arith` and `math` on whole tensors as generics, which compute with their elements.


def is_elementwise(op: Operation) -> bool:
    """Whether an operation of arith or math works on tensors; constants are no such."""
    return (
        op.name.startswith(("arith.", "math."))
        and not isinstance(op, arith.ConstantOp)
        and len(op.results) == 1
        and isinstance(op.results[0].type, TensorType)
    )


def expand_elementwise(function: func.FuncOp) -> None:
    """Replaces them; what is no tensor is the same for all elements."""
    for op in list(function.walk()):
        if is_elementwise(op):
            _expand(op)


def _expand(op: Operation) -> None:
    at = TensorBuilder(op)
    type_ = at.require_tensor(op.results[0].type)
    inputs = list(dict.fromkeys(x for x in op.operands if isinstance(x.type, TensorType)))
    sizes = (at.size(inputs[0], dim) for dim in range(len(type_.get_shape())))
    into = at.empty(type_, [size for size in sizes if isinstance(size, SSAValue)])

    def body(build: Builder, elements: Sequence[SSAValue]) -> SSAValue:
        known: dict[SSAValue, SSAValue] = dict(zip(inputs, elements, strict=False))
        made = (op.scalar if isinstance(op, OnTensors) else type(op)).create(
            operands=[known.get(value, value) for value in op.operands],
            result_types=[type_.element_type],
            properties=op.properties,
            attributes=op.attributes,
        )
        return build.insert(made).results[0]

    at.replace(at.elementwise(inputs, into, body))


# -- affine ----------------------------------------------------------------------------------------
# `affine.apply` and `affine.min` as arith: the sizes and places that others compute with them.


def expand_affine(function: func.FuncOp) -> None:
    """Replaces them wherever they stand."""
    for op in list(function.walk()):
        if isinstance(op, affine.ApplyOp | affine.MinOp):
            _expand_affine(op)


def _expand_affine(op: affine.ApplyOp | affine.MinOp) -> None:
    def insert(made: Operation) -> SSAValue:
        made.location = op.location
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.results[0]

    map_ = op.map.data
    numbers = dict(enumerate(op.operands))
    dims = [AffineExpr.dimension(at) for at in range(map_.num_dims)]
    symbols = [AffineExpr.dimension(map_.num_dims + at) for at in range(map_.num_symbols)]
    found: SSAValue | None = None
    for expression in map_.results:
        one = expression.replace_dims_and_symbols(dims, symbols)
        value = value_of(insert, compute(insert, one, numbers, is_index=True), True)
        found = value if found is None else insert(arith.MinSIOp(found, value))
    assert found is not None
    name = op.results[0].name_hint
    Rewriter.replace_op(op, [], [found])
    if found not in numbers.values():
        found.name_hint = name


# -- softmax ---------------------------------------------------------------------------------------
# `linalg.softmax` as generics.


def expand_softmax(function: func.FuncOp) -> None:
    """Replaces every softmax of a function."""
    for op in [x for x in function.walk() if x.name == "linalg.softmax"]:
        assert isinstance(op, SoftmaxOp)
        _Expansion(op).run()


Combine = Callable[..., list[Operation]]
"""Operations on elements; the last one gives the result."""


class _Expansion:
    """exp(x - max(x)) / sum(exp(x - max(x))) along one dimension."""

    def __init__(self, op: SoftmaxOp):
        self._op = op
        self._rank, self._along = rank_of(op.input), op.dimension.value.data
        type_ = shaped_type(op.input.type)
        assert type_ is not None
        self._type, self._element = type_, type_.element_type

    def run(self) -> None:
        op, rank = self._op, self._rank
        if not is_float(self._element):
            fail(op, f"linalg.softmax is that of floats, not of {op.input.type}")
        whole = AffineMap.identity(rank)
        kept = [d for d in range(rank) if d != self._along]
        less = AffineMap(rank, 0, tuple(AffineExpr.dimension(d) for d in kept))
        most = self._reduce(-inf, [op.input], [whole, less], _largest)
        less_than = [whole, less, whole]
        powers = self._generic([op.input, most], self._empty_value(kept=None), less_than, _power)
        total = self._reduce(0.0, [powers], [whole, less], _sum)
        result = self._generic([powers, total], op.output, less_than, _quotient)
        if op.result:
            op.result[0].replace_all_uses_with(result)
        Rewriter.erase_op(op)

    def _insert(self, op: Operation) -> Operation:
        op.location = self._op.location
        Rewriter.insert_op(op, InsertPoint.before(self._op))
        return op

    def _number(self, value: float) -> SSAValue:
        number = FloatAttr(value, cast("AnyFloat", self._element))
        return self._insert(arith.ConstantOp(number)).results[0]

    def _empty_value(self, kept: Sequence[int] | None) -> SSAValue:
        """A tensor or memory of these dimensions; of all of them."""
        shape, sizes = list[int](), list[SSAValue]()
        for dim in range(self._rank) if kept is None else kept:
            size = self._type.get_shape()[dim]
            shape.append(size)
            if size < 0:
                number = self._insert(arith.ConstantOp(IntegerAttr(dim, IndexType()))).results[0]
                kind = tensor.DimOp if isinstance(self._type, TensorType) else memref.DimOp
                sizes.append(self._insert(kind(self._op.input, number)).results[0])
        if isinstance(self._type, TensorType):
            made: Operation = tensor.EmptyOp(sizes, TensorType(self._element, shape))
        else:
            made = memref.AllocOp(sizes, (), MemRefType(self._element, shape))
        return self._insert(made).results[0]

    def _reduce(
        self, start: float, inputs: Sequence[SSAValue], maps: Sequence[AffineMap], combine: Combine
    ) -> SSAValue:
        kept = [d for d in range(self._rank) if d != self._along]
        output = self._empty_value(kept)
        fill = self._insert(ops.FillOp([self._number(start)], [output], self._results(output)))
        begun = fill.results[0] if fill.results else output
        return self._generic(inputs, begun, maps, combine)

    def _results(self, output: SSAValue) -> list[Attribute]:
        return tensors_of([output])

    def _generic(
        self,
        inputs: Sequence[SSAValue],
        output: SSAValue,
        maps: Sequence[AffineMap],
        combine: Combine,
    ) -> SSAValue:
        block = Block(arg_types=[self._element] * (len(inputs) + 1))
        made = combine(*block.args)
        block.add_ops([*made, ops.YieldOp(made[-1].results[0])])
        kinds = attrs.IteratorTypeAttr.parallel(), attrs.IteratorTypeAttr.reduction()
        reduces = len(maps[-1].results) < self._rank
        iterators = [kinds[reduces and d == self._along] for d in range(self._rank)]
        op = ops.GenericOp(
            inputs,
            [output],
            Region(block),
            ArrayAttr(map(AffineMapAttr, maps)),
            ArrayAttr(iterators),
            self._results(output),
        )
        for inner in block.ops:
            inner.location = self._op.location
        self._insert(op)
        return op.res[0] if op.res else output


def _largest(x: SSAValue, old: SSAValue) -> list[Operation]:
    return [arith.MaximumfOp(x, old)]


def _power(x: SSAValue, most: SSAValue, _: SSAValue) -> list[Operation]:
    below = arith.SubfOp(x, most)
    return [below, math.ExpOp(below.result)]


def _sum(x: SSAValue, old: SSAValue) -> list[Operation]:
    return [arith.AddfOp(x, old)]


def _quotient(x: SSAValue, total: SSAValue, _: SSAValue) -> list[Operation]:
    return [arith.DivfOp(x, total)]
