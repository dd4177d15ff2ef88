"""Runs a function at matrix or tile level on bounded values: what the program means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, math, memref, scf, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ShapedType,
    TensorType,
)
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import YieldOp as LinalgYieldOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue

from fragir.diagnostics import located
from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.errors import FragirError
from fragir.reference import elementwise, integers, products
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import FLOATS, INTEGERS, Integers, round_to
from fragir.reference.memory import Memory, load, load_broadcast, store, unwritten
from fragir.reference.tensor_cores import chains, dot

PREDICATE = "pred"
Value = Bounded | Memory


class Interpreter:
    """Values of one run of a function by one block of the grid."""

    def __init__(self, target: str, source: str | None = None):
        self.target = target
        self.source = source
        self.values: dict[SSAValue, Value] = {}
        self.block_id = (0, 0, 0)
        # the memory of an argument that a tensor's value is written to in the end
        self.homes: dict[SSAValue, Memory] = {}
        # for returned tensors that come from no argument
        self.results: list[Memory] = []

    # --- functions ----------------------------------------------------------------------------

    def run(
        self,
        function: func.FuncOp,
        arguments: Sequence[Value],
        grid: tuple[int, int, int],
        results: Sequence[Memory] = (),
    ) -> None:
        """Runs every block of a grid, one after the other; memories among the arguments change.

        `results` take the returned tensors that come from no argument.
        """
        block = function.body.block
        self.results = list(results)
        with np.errstate(all="ignore"):
            for z, y, x in product(*(range(n) for n in reversed(grid))):
                self.block_id = (x, y, z)
                self.values = {}
                for parameter, value in zip(block.args, arguments, strict=True):
                    self._bind_argument(parameter, value)
                self.run_block(block)

    def _bind_argument(self, parameter: BlockArgument, value: Value) -> None:
        self.values[parameter] = value
        if isinstance(parameter.type, TensorType):
            assert isinstance(value, Memory)
            self.values[parameter] = value.content
            self.homes[parameter] = value

    def run_block(self, block: Block) -> list[Bounded]:
        """Runs operations in order; what the terminator passes on."""
        for op in block.ops:
            if isinstance(op, scf.YieldOp | frag.YieldOp | LinalgYieldOp):
                return [self.bounded(value) for value in op.operands]
            try:
                self._run_op(op)
            except FragirError as error:
                if error.line is not None:
                    raise
                raise located(op, error.sentence, self.source) from error
        return []

    def elementwise(
        self, block: Block, arguments: Sequence[Bounded], shape: Sequence[int]
    ) -> list[Bounded]:
        """A region of scalars applied to whole arrays."""
        for parameter, value in zip(block.args, arguments, strict=True):
            self.values[parameter] = value
        shape = tuple(shape)
        return [
            Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))
            for x in self.run_block(block)
        ]

    # --- values -------------------------------------------------------------------------------

    def bounded(self, value: SSAValue) -> Bounded:
        """A scalar, tile or tensor."""
        result = self.values[value]
        return result.content if isinstance(result, Memory) else result

    def memory(self, value: SSAValue) -> Memory:
        """A memref."""
        result = self.values[value]
        assert isinstance(result, Memory)
        return result

    def number(self, value: SSAValue | int) -> int:
        """An integer that must be known for certain: an index or a bound of a loop."""
        if isinstance(value, int):
            return value
        x = self.bounded(value)
        if x.bound.any():
            name = f"%{value.name_hint}" if value.name_hint else "a value"
            raise FragirError(f"{name} steers the program but depends on rounding")
        return int(x.value)

    def numbers(self, values: Sequence[SSAValue | int]) -> list[int]:
        return [self.number(value) for value in values]

    def shape(self, type_: ShapedType, sizes: Sequence[SSAValue]) -> list[int]:
        """A type's shape with the dynamic sizes that an allocation gives."""
        given = iter(self.numbers(sizes))
        return [next(given) if size < 0 else size for size in type_.get_shape()]

    def _run_op(self, op: Operation) -> None:
        handler = _HANDLERS.get(op.name)
        if handler is not None:
            handler(self, op)
            return
        if isinstance(op, LinalgStructuredOperation):
            from fragir.reference import contraction

            contraction.run(self, op)
            return
        self.values[op.results[0]] = self._scalar(op)

    # --- arith and math -----------------------------------------------------------------------

    def _scalar(self, op: Operation) -> Bounded:
        name = op.name
        operands = [self.bounded(value) for value in op.operands]
        if len(op.results) == 1 and (name in _CASTS or name.startswith(("arith.", "math."))):
            result = type_name(op.results[0].type)
            if name in elementwise.UNARY and result in FLOATS:
                return elementwise.UNARY[name](operands[0], FLOATS[result])
            if name in elementwise.BINARY and result in FLOATS:
                return elementwise.BINARY[name](operands[0], operands[1], FLOATS[result])
            if name in integers.BINARY:
                return self._integer(name, operands, result)
            if name in _CASTS:
                source = type_name(op.operands[0].type)
                if source == PREDICATE and name in ("arith.extsi", "arith.sitofp"):
                    operands[0] = Bounded(-operands[0].value.astype(np.int64), operands[0].bound)
                    source = "s8"
                first, second = _signs(name, source, result)
                return cast(operands[0], first, second)
        match op:
            case math.FmaOp():
                x, y, z = operands
                return elementwise.fma(x, y, z, FLOATS[type_name(op.result.type)])
            case math.AbsIOp():
                form = INTEGERS[type_name(op.result.type)]
                return Bounded(form.wrapped(np.abs(operands[0].value)), operands[0].bound)
            case arith.CmpfOp():
                return elementwise.compare(op.predicate.value.data, operands[0], operands[1])
            case arith.CmpiOp():
                form = _integers(type_name(op.lhs.type))
                return integers.compare(
                    op.predicate.value.data, _as_int(operands[0]), _as_int(operands[1]), form
                )
            case arith.SelectOp():
                return elementwise.select(*operands)
            case _:
                raise FragirError(f"the reference does not know {name}")

    def _integer(self, name: str, operands: Sequence[Bounded], result: str) -> Bounded:
        if result != PREDICATE:
            return integers.apply(name, operands[0], operands[1], INTEGERS[result])
        x, y = operands
        if name not in _LOGIC:
            raise FragirError(f"the reference does not know {name} on i1")
        value = _LOGIC[name](x.value, y.value)
        return Bounded(value, np.maximum(x.bound, y.bound) + np.zeros(value.shape))


def type_name(type_: Attribute) -> str:
    """The PTX name of a scalar's or tile's element type; FragirError for others."""
    if isinstance(type_, frag.TileType | ShapedType):
        type_ = getattr(type_, "element_type")
    try:
        return element_name(type_)
    except KeyError:
        raise FragirError(f"the reference does not know the type {type_}") from None


def _integers(name: str) -> Integers:
    return INTEGERS["s32" if name == PREDICATE else name]


def _as_int(x: Bounded) -> Bounded:
    return Bounded(x.value.astype(np.int64), x.bound)


def cast(x: Bounded, source: str, target: str) -> Bounded:
    """An element as another type."""
    if source == target:
        return x
    if target == PREDICATE:
        return Bounded(x.value & 1 == 1, np.where(x.bound > 0, 1.0, 0.0))
    if source == PREDICATE:
        return integers.cast(Bounded(x.value.astype(np.int64), x.bound), "s32", target)
    if source in INTEGERS and not INTEGERS[source].signed:  # values may be kept with a sign
        x = Bounded(INTEGERS[source].wrapped(x.value), x.bound)
    return integers.cast(x, source, target)


_LOGIC: dict[str, Callable[..., Any]] = {
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "arith.xori": np.logical_xor,
    "arith.addi": np.logical_xor,
}
_CASTS = frozenset(
    f"arith.{name}"
    for name in "extf truncf sitofp uitofp fptosi fptoui extsi extui trunci index_cast".split()
)
_FROM_UNSIGNED = ("arith.uitofp", "arith.extui")


def _signs(name: str, source: str, target: str) -> tuple[str, str]:
    """The types of a cast with the signedness that the operation says."""
    if name in _FROM_UNSIGNED and source in ("s8", "s16", "s32"):
        # values are kept with a sign: read them without one
        source = {"s8": "u8", "s16": "u16", "s32": "u32"}[source]
    if name == "arith.fptoui" and target in ("s8", "s32"):
        target = {"s8": "u8", "s32": "u32"}[target]
    return source, target


# Operations with a handler of their own ----------------------------------------------------------


def _constant(it: Interpreter, op: arith.ConstantOp) -> None:
    attribute = op.value
    name = type_name(op.result.type)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        shape = op.result.type.get_shape() if isinstance(op.result.type, ShapedType) else ()
        values = np.array(list(attribute.iter_values()))
        values = np.broadcast_to(values, shape) if values.size == 1 else values.reshape(shape)
    elif isinstance(attribute, IntegerAttr | FloatAttr):
        values = np.array(attribute.value.data)
    else:
        raise FragirError(f"the reference does not know the constant {attribute}")
    if name in FLOATS:
        it.values[op.result] = exactly(round_to(values.astype(np.float64), FLOATS[name]))
    elif name == PREDICATE:
        it.values[op.result] = exactly(values.astype(np.int64) & 1 == 1)
    else:
        it.values[op.result] = exactly(INTEGERS[name].wrapped(values.astype(np.int64)))


def _for(it: Interpreter, op: scf.ForOp) -> None:
    carried = [it.bounded(value) for value in op.iter_args]
    block = op.body.block
    for i in range(*it.numbers((op.lb, op.ub, op.step))):
        it.values[block.args[0]] = exactly(np.int64(i))
        for parameter, value in zip(block.args[1:], carried, strict=True):
            it.values[parameter] = value
        carried = it.run_block(block)
    for result, value in zip(op.results, carried, strict=True):
        it.values[result] = value


def _if(it: Interpreter, op: scf.IfOp) -> None:
    condition = it.bounded(op.cond)
    if condition.bound.any():
        raise FragirError("the condition of scf.if depends on rounding", hint="use arith.select")
    region = op.true_region if condition.value else op.false_region
    values = it.run_block(region.block) if region.blocks else []
    for result, value in zip(op.results, values, strict=True):
        it.values[result] = value


def _fill(it: Interpreter, op: frag.FillOp) -> None:
    x, shape = it.bounded(op.value), op.tile.type.shape
    it.values[op.tile] = Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))


def _load(it: Interpreter, op: frag.LoadOp) -> None:
    memory, indices = it.memory(op.memory), it.numbers(op.all_indices())
    shape, masked = op.tile.type.shape, op.masked is not None
    if op.broadcast is not None:
        it.values[op.tile] = load_broadcast(memory, indices, (shape[0], shape[1]), masked)
        return
    turned = op.transposed is not None
    x = load(memory, indices, shape[::-1] if turned else shape, masked, op.name)
    it.values[op.tile] = Bounded(x.value.T, x.bound.T) if turned else x


def _store(it: Interpreter, op: frag.StoreOp) -> None:
    x = it.bounded(op.tile)
    if op.transposed is not None:
        x = Bounded(x.value.T, x.bound.T)
    memory, indices = it.memory(op.memory), it.numbers(op.all_indices())
    store(memory, indices, x, op.masked is not None, op.name)


def _copy(it: Interpreter, op: frag.CopyOp) -> None:
    """Asynchronous copies arrive at once: what may be read before is for the emulator to find."""
    target = it.memory(op.target).at(it.numbers(op.all_target_indices()))
    source = it.memory(op.source)
    indices = it.numbers(op.all_source_indices())
    target.write(load(source, indices, target.value.shape, op.masked is not None, op.name))


def _view(it: Interpreter, op: frag.ViewOp) -> None:
    it.values[op.matrix] = it.memory(op.memory).at(it.numbers(op.all_indices()))


def _turned(x: Bounded) -> Bounded:
    return Bounded(x.value.T, x.bound.T)


def _matmul(it: Interpreter, op: frag.MatmulOp) -> None:
    """C = epilogue(A B), the sum in any order of the steps that any instruction may take."""
    a, b, old = (it.bounded(value) for value in (op.a, op.b, op.c))
    if op.a_transposed is not None:
        a = _turned(a)
    if op.b_transposed is not None:
        b = _turned(b)
    m, n = old.value.shape
    if a.value.shape != (m, a.value.shape[1]) or b.value.shape != (a.value.shape[1], n):
        shapes = ", ".join("x".join(map(str, x.value.shape)) for x in (a, b, old))
        raise FragirError(f"A, B and C do not fit: {shapes}")
    accumulator = element_name(op.accumulator())
    types = type_name(op.a.type), type_name(op.b.type), accumulator
    ways = () if accumulator in INTEGERS else chains(it.target, types[0], accumulator)
    total = dot(a, b, None, types, ways)
    if op.epilogue is None:
        result = cast(total, accumulator, type_name(op.c.type))
    else:
        extra = [it.bounded(value) for value in op.extra]
        result = it.elementwise(op.epilogue.block, [total, old, *extra], (m, n))[0]
    it.memory(op.c).write(result)


def _map(it: Interpreter, op: frag.MapOp) -> None:
    tiles = [it.bounded(tile) for tile in op.tiles]
    it.values[op.result] = it.elementwise(op.body.block, tiles, op.result.type.shape)[0]


def _cast(it: Interpreter, op: frag.CastOp) -> None:
    x = it.bounded(op.source)
    it.values[op.result] = cast(x, type_name(op.source.type), type_name(op.result.type))


def _same(it: Interpreter, op: Operation) -> None:
    it.values[op.results[0]] = it.values[op.operands[0]]


def _nothing(it: Interpreter, op: Operation) -> None:
    """Waits, barriers and the like: one block after the other, one operation after the other."""


def _block_id(it: Interpreter, op: frag.BlockIdOp) -> None:
    place = "xyz".index(op.dimension.data.value)
    it.values[op.result] = exactly(np.int64(it.block_id[place]))


def _dim(it: Interpreter, op: memref.DimOp | tensor.DimOp) -> None:
    shape = it.bounded(op.source).value.shape
    index = it.number(op.index)
    if not 0 <= index < len(shape):
        raise FragirError(f"{op.name}: there is no dimension {index}")
    it.values[op.result] = exactly(np.int64(shape[index]))


def _alloc(it: Interpreter, op: memref.AllocOp | memref.AllocaOp) -> None:
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    shape = it.shape(type_, op.dynamic_sizes)
    it.values[op.memref] = unwritten(shape, type_name(type_))


def _empty(it: Interpreter, op: tensor.EmptyOp) -> None:
    type_ = op.tensor.type
    assert isinstance(type_, TensorType)
    shape = it.shape(type_, op.dynamic_sizes)
    it.values[op.tensor] = unwritten(shape, type_name(type_)).content


def _expand(it: Interpreter, op: memref.ExpandShapeOp) -> None:
    sizes = iter(it.numbers(op.output_shape))
    shape = [next(sizes) if s < 0 else s for s in op.static_output_shape.iter_values()]
    it.values[op.result] = it.memory(op.src).reshaped(shape)


def _collapse(it: Interpreter, op: memref.CollapseShapeOp) -> None:
    memory = it.memory(op.src)
    groups = [[index.value.data for index in group] for group in op.reassociation]
    shape = [prod(memory.value.shape[dim] for dim in group) for group in groups]
    it.values[op.result] = memory.reshaped(shape)


def _memref_load(it: Interpreter, op: memref.LoadOp) -> None:
    it.values[op.res] = it.memory(op.memref).at(it.numbers(op.indices)).content


def _memref_store(it: Interpreter, op: memref.StoreOp) -> None:
    indices = it.numbers(op.indices)
    memory = it.memory(op.memref)
    memory.at(indices)
    x = it.bounded(op.value)
    memory.value[tuple(indices)], memory.bound[tuple(indices)] = x.value, x.bound


def _memref_copy(it: Interpreter, op: memref.CopyOp) -> None:
    it.memory(op.destination).write(it.bounded(op.source))


def _return(it: Interpreter, op: func.ReturnOp) -> None:
    """A returned tensor is written to the argument it was made from (outs), else to a result."""
    results = iter(it.results)
    for value in op.arguments:
        home = it.homes.get(value) or next(results, None)
        if home is None:
            raise FragirError(
                "a returned tensor has no argument that it could be written to",
                hint="give one more array, for the result",
            )
        result = it.bounded(value)
        if result.value.shape != home.value.shape:
            shapes = ["x".join(map(str, s)) for s in (result.value.shape, home.value.shape)]
            raise FragirError(f"the result is {shapes[0]}, its memory {shapes[1]}")
        home.write(result)


_HANDLERS: dict[str, Callable[[Interpreter, Any], None]] = {
    "arith.constant": _constant,
    "scf.for": _for,
    "scf.if": _if,
    "frag.fill": _fill,
    "frag.load": _load,
    "frag.store": _store,
    "frag.copy": _copy,
    "frag.view": _view,
    "frag.mma": products.mma,
    "frag.mma_sparse": products.mma_sparse,
    "frag.wgmma": products.wgmma,
    "frag.matmul": _matmul,
    "frag.map": _map,
    "frag.cast": _cast,
    "frag.convert": _same,
    "frag.commit": _nothing,
    "frag.wait": _nothing,
    "frag.barrier": _nothing,
    "frag.block_id": _block_id,
    "memref.dim": _dim,
    "tensor.dim": _dim,
    "memref.alloc": _alloc,
    "memref.alloca": _alloc,
    "memref.dealloc": _nothing,
    "memref.cast": _same,
    "memref.expand_shape": _expand,
    "memref.collapse_shape": _collapse,
    "memref.load": _memref_load,
    "memref.store": _memref_store,
    "memref.copy": _memref_copy,
    "tensor.empty": _empty,
    "tensor.cast": _same,
    "func.return": _return,
}
