"""Builds operations on tensors ahead of one that they replace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.mlir.diagnostics import fail

MOST_ELEMENTS = 64
"""Of a table that is written out: a choice an element."""
Size = SSAValue | int
Tensor = TensorType[Attribute]
Memory = MemRefType[Attribute]


class TensorBuilder:
    """Builds ahead of an operation, which is replaced."""

    def __init__(self, op: Operation):
        self.op = op

    def put(self, made: Operation) -> SSAValue:
        """Inserts an operation with the place of the one replaced; its first result."""
        value = self.put_optional(made)
        assert value is not None
        return value

    def put_optional(self, made: Operation) -> SSAValue | None:
        """The same, of an operation that has no result where it writes memory."""
        for inner in made.walk():
            inner.location = self.op.location
        Rewriter.insert_op(made, InsertPoint.before(self.op))
        return made.results[0] if made.results else None

    def replace(self, value: SSAValue | None) -> None:
        """The value takes the place and the name of the operation's result, if it has one."""
        if value is not None:
            value.name_hint = self.op.results[0].name_hint
        Rewriter.replace_op(self.op, [], [] if value is None else [value])

    def number(self, number: int) -> SSAValue:
        """A constant of type index."""
        return self.put(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def size(self, value: SSAValue, dim: int) -> Size:
        """How large a tensor is in a dimension: a number where its type says so."""
        type_ = self.require_shaped(value.type)
        known = type_.get_shape()[dim]
        if known >= 0:
            return known
        dims = memref.DimOp if isinstance(type_, MemRefType) else tensor.DimOp
        return self.put(dims(value, self.number(dim)))

    def sum(self, sizes: Sequence[Size]) -> Size:
        """The sum of sizes: a number where all of them are."""
        known = sum(size for size in sizes if isinstance(size, int))
        found: Size = known
        for size in sizes:
            if isinstance(size, int):
                continue
            first = found if isinstance(found, SSAValue) else self.number(found) if found else None
            found = size if first is None else self.put(arith.AddiOp(first, size))
        return found

    def empty(self, type_: Attribute, sizes: Sequence[SSAValue] = ()) -> SSAValue:
        """A tensor of any elements. `sizes`: those that the type leaves open."""
        return self.put(tensor.EmptyOp(sizes, self.require_tensor(type_)))

    def fill(self, value: SSAValue, type_: Attribute, sizes: Sequence[SSAValue] = ()) -> SSAValue:
        """A tensor whose elements are all the same."""
        if isinstance(value.type, IndexType):  # which xDSL's fill does not take
            return self.generic(self.empty(type_, sizes), lambda build, places: value)
        return self.put(ops.FillOp([value], [self.empty(type_, sizes)], [type_]))

    def zeros(self, like: SSAValue, element: AnyFloat) -> SSAValue:
        """A tensor or memory of a float's zeros, of the shape of another one."""
        type_ = self.require_shaped(like.type)
        zero = self.put(arith.ConstantOp(FloatAttr(0.0, element)))
        known = (self.size(like, dim) for dim in range(len(type_.get_shape())))
        sizes = [size for size in known if isinstance(size, SSAValue)]
        if isinstance(type_, TensorType):
            return self.fill(zero, TensorType(element, type_.get_shape()), sizes)
        made = self.put(memref.AllocOp.get(element, None, list(type_.get_shape()), sizes))
        self.put_optional(ops.FillOp([zero], [made], []))
        return made

    def table(self, elements: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """A tensor of these elements in row-major order."""
        kind = self.require_tensor(type_)
        if len(elements) > MOST_ELEMENTS:
            fail(
                self.op,
                f"a table of {len(elements)} elements is not written out; pass it as an argument, "
                f"or give at most {MOST_ELEMENTS}",
            )
        if not elements:
            return self.empty(type_)
        if len(set(elements)) == 1:
            return self.fill(elements[0], type_)
        shape = kind.get_shape()

        def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
            at: SSAValue | None = None
            for dim, place in enumerate(places):
                step = prod(shape[dim + 1 :])
                scaled = place if step == 1 else build.insert(
                    arith.MuliOp(place, index_in(build, step))
                ).result  # fmt: skip
                at = scaled if at is None else build.insert(arith.AddiOp(at, scaled)).result
            assert at is not None
            found = elements[-1]
            for number, element in enumerate(elements[:-1]):
                here = build.insert(arith.CmpiOp(at, index_in(build, number), "eq")).result
                found = build.insert(arith.SelectOp(here, element, found)).result
            return found

        return self.generic(self.empty(type_), body)

    def generic(
        self, into: SSAValue, body: Callable[[Builder, Sequence[SSAValue]], SSAValue]
    ) -> SSAValue:
        """Every element of a tensor from its place. The old element is the body's argument."""
        value = self.generic_optional(into, body)
        assert value is not None
        return value

    def generic_optional(
        self, into: SSAValue, body: Callable[[Builder, Sequence[SSAValue]], SSAValue]
    ) -> SSAValue | None:
        """The same of a tensor or of memory, which has no result."""
        type_ = self.require_shaped(into.type)
        rank = len(type_.get_shape())
        block = Block(arg_types=[type_.element_type])
        build = Builder(InsertPoint.at_end(block))
        places = [build.insert(ops.IndexOp(dim)).result for dim in range(rank)]
        build.insert(ops.YieldOp(body(build, places)))
        parallel = attrs.IteratorTypeAttr(attrs.IteratorType.PARALLEL)
        identity = AffineMapAttr(AffineMap.identity(rank))
        results = [type_] if isinstance(type_, TensorType) else []
        return self.put_optional(
            ops.GenericOp([], [into], Region(block), [identity], [parallel] * rank, results)
        )

    def elementwise(
        self,
        inputs: Sequence[SSAValue],
        into: SSAValue,
        body: Callable[[Builder, Sequence[SSAValue]], SSAValue],
    ) -> SSAValue | None:
        """What the elements of tensors of one shape give, the old one the last of them."""
        types = [self.require_shaped(value.type) for value in (*inputs, into)]
        rank = len(types[-1].get_shape())
        block = Block(arg_types=[type_.element_type for type_ in types])
        build = Builder(InsertPoint.at_end(block))
        build.insert(ops.YieldOp(body(build, block.args)))
        parallel = attrs.IteratorTypeAttr(attrs.IteratorType.PARALLEL)
        identity = AffineMapAttr(AffineMap.identity(rank))
        results = [types[-1]] if isinstance(types[-1], TensorType) else []
        maps = [identity] * len(types)
        return self.put_optional(
            ops.GenericOp(inputs, [into], Region(block), maps, [parallel] * rank, results)
        )

    def require_tensor(self, type_: Attribute) -> Tensor:
        """A type that must be a tensor of known rank."""
        if not isinstance(type_, TensorType):
            words = f"{self.op.name} on {type_} is not supported; take a tensor of known rank"
            fail(self.op, words)
        return cast("Tensor", type_)

    def require_shaped(self, type_: Attribute) -> Tensor | Memory:
        """A type that must be a tensor of known rank, or memory."""
        return (
            cast("Memory", type_) if isinstance(type_, MemRefType) else self.require_tensor(type_)
        )


def index_in(build: Builder, number: int) -> SSAValue:
    """A number as an index, in a body."""
    return build.insert(arith.ConstantOp(IntegerAttr(number, IndexType()))).result
