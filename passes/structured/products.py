"""Recognises a linalg operation that is a matrix product: maps, body, types, operands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith, func, math, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    Signedness,
    StringAttr,
    i64,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import element_name, element_type, is_element
from fragir.dialects.frag.instructions import accumulator_of
from fragir.dialects.linalg import generic_text
from fragir.dialects.linalg.generic_text import dims_of, maps_of, mixed_types_hint
from fragir.dialects.shorthands import constant_of, is_memref, memref_type
from fragir.errors import FragirError
from fragir.mlir.diagnostics import fail


def name_of(value: SSAValue) -> str:
    """A value as messages call it."""
    if value.name_hint is not None:
        return f"%{value.name_hint}"
    return f"argument {value.index}" if isinstance(value, BlockArgument) else "a memref"


def is_local(value: SSAValue) -> bool:
    """Whether a buffer is the function's own."""
    return isinstance(value.owner, memref.AllocOp)


def retype(function: func.FuncOp, product: Product, factor: Factor) -> SSAValue:
    """A or B with the sign of its bytes in its type: `i8` that the body extends by extui is ui8.

    The array that is passed stays the same, so the function's argument gets the new type.
    """
    memory = factor.memory
    type_ = memref_type(memory.type)
    if type_.element_type == factor.element:
        return memory
    others = [u.operation for u in memory.uses if not isinstance(u.operation, memref.DimOp)]
    if not isinstance(memory, BlockArgument) or others != [product.op]:
        fail(
            product.op,
            f"the product reads {name_of(memory)} as unsigned, but others use it too; declare it "
            f"as a memref of {factor.element}",
        )
    new = MemRefType(factor.element, type_.shape, type_.layout, type_.memory_space)
    index = memory.index
    function.replace_argument_type(memory, new, Rewriter())
    return function.body.block.args[index]


def column_of(
    function: func.FuncOp, product: Product, vector: SSAValue, anchor: Operation
) -> SSAValue:
    """A vector of one value a row as a matrix of one column, which broadcasts along the rows."""
    type_ = memref_type(vector.type)
    if not isinstance(type_.layout, NoneAttr):
        fail(
            product.op,
            f"{name_of(vector)} holds one value a row and has strides; declare it as a matrix of "
            "one column, memref<?x1x...>, and index it by (row, 0)",
        )
    (size,) = type_.get_shape()
    shape: list[SSAValue] = []
    if size == DYNAMIC_INDEX:
        _name_size(function, product, vector)
        zero = arith.ConstantOp(IntegerAttr(0, IndexType()))
        length = memref.DimOp(vector, zero)
        for op in (zero, length):
            op.location = product.op.location
            Rewriter.insert_op(op, InsertPoint.before(anchor))
        shape.append(length.result)
    column = memref.ExpandShapeOp.build(
        operands=[vector, shape],
        properties={
            "reassociation": ArrayAttr([ArrayAttr([IntegerAttr(0, i64), IntegerAttr(1, i64)])]),
            "static_output_shape": DenseArrayBase.from_list(i64, [size, 1]),
        },
        result_types=[MemRefType(type_.element_type, [size, 1])],
    )
    column.location = product.op.location
    column.result.name_hint = vector.name_hint
    Rewriter.insert_op(column, InsertPoint.before(anchor))
    return column.result


def _name_size(function: func.FuncOp, product: Product, vector: SSAValue) -> None:
    """Notes that the vector is as long as C has rows, so that a launch checks it."""
    if not isinstance(vector, BlockArgument):
        return
    entries = _attributes(function)
    rows = "m"
    for value, dim in (
        (product.a.memory, 1 if product.a.transposed else 0),
        (product.c, 0),
    ):
        if not isinstance(value, BlockArgument):
            continue
        given = frag.sizes_of(entries[value.index].data.get("frag.sizes"))
        if given:
            rows = given[dim]
            break
    entry = entries[vector.index]
    if "frag.sizes" in entry.data:
        return
    sizes = ArrayAttr([StringAttr(rows)])
    entries[vector.index] = DictionaryAttr({**entry.data, "frag.sizes": sizes})
    function.arg_attrs = ArrayAttr(entries)


def _attributes(function: func.FuncOp) -> list[DictionaryAttr]:
    count = len(function.body.block.args)
    given = function.arg_attrs
    return list(given.data) if given is not None else [DictionaryAttr({})] * count


def replace_sizes(allocation: memref.AllocOp) -> None:
    """Puts the sizes that a buffer was allocated with in the place of every memref.dim of it."""
    type_ = memref_type(allocation.memref.type)
    dynamic = iter(allocation.dynamic_sizes)
    sizes = [next(dynamic) if n == DYNAMIC_INDEX else n for n in type_.get_shape()]
    for use in list(allocation.memref.uses):
        op = use.operation
        if not isinstance(op, memref.DimOp):
            continue
        position = constant_of(op.index)
        if position is None:
            fail(op, "memref.dim takes a constant number of a dimension")
        if not 0 <= position < len(sizes):
            fail(op, f"{type_} has no dimension {position}")
        size = sizes[position]
        if isinstance(size, int):
            constant = arith.ConstantOp(IntegerAttr(size, IndexType()))
            constant.location = op.location
            Rewriter.insert_op(constant, InsertPoint.before(op))
            size = constant.result
        op.result.replace_all_uses_with(size)
        Rewriter.erase_op(op)


EXTENSIONS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp)
# without a sign of its own, signed, unsigned
BYTES: tuple[Attribute, ...] = (
    IntegerType(8),
    IntegerType(8, Signedness.SIGNED),
    IntegerType(8, Signedness.UNSIGNED),
)
UNSIGNED = (arith.ExtUIOp, arith.UIToFPOp)
TO_FLOAT = (arith.SIToFPOp, arith.UIToFPOp)
# the largest product of two factors, by how many of them are unsigned
LARGEST = (1 << 14, 128 * 255, 255 * 255)


@dataclass(frozen=True)
class Factor:
    """A or B: its memory, whether that holds the transposed matrix, and signed elements."""

    memory: SSAValue
    transposed: bool
    element: Attribute


@dataclass(frozen=True)
class Product:
    """C += A B as one linalg operation says it.

    `accumulate` is what the tensor cores sum in; `total` is the type of C. They differ only where
    integers are converted to a float in the body: the sum is then exact, and converted once.
    """

    op: LinalgStructuredOperation
    a: Factor
    b: Factor
    c: SSAValue
    accumulate: Attribute
    total: Attribute


def is_reduction(op: LinalgStructuredOperation) -> bool:
    """Whether an operation sums or otherwise reduces over a loop: one that its output lacks."""
    iterators, parallel = op.get_iterator_types(), attrs.IteratorTypeAttr.parallel()
    output = maps_of(op)[-1]
    return any(iterator != parallel for iterator in iterators) or any(
        AffineDimExpr(loop) not in output.results for loop in range(len(iterators))
    )


def recognise(op: LinalgStructuredOperation) -> Product:
    """The product that an operation with a reduction is; ends the pass where it is none."""
    if isinstance(op, ops.MatmulOp):
        _check_named(op)
    if len(op.inputs) != 2 or len(op.outputs) != 1:
        fail(
            op,
            f"{op.name} reduces {len(op.inputs)} inputs into {len(op.outputs)} outputs; a matrix "
            "product has two inputs and one output",
        )
    for value in op.operands:
        if not is_memref(value.type):
            fail(
                op,
                f"{op.name} multiplies {value.type}; it takes memrefs: run frag-bufferize before",
            )
    first, second = _orientation(op)
    body = Body(op)
    elements = [body.element(op.body.block.args[i]) for i in (0, 1)]
    factors = [
        Factor(value, transposed, element)
        for value, (_, transposed), element in zip(
            op.inputs, (first, second), elements, strict=True
        )
    ]
    if first[0] == "b":
        factors.reverse()
    accumulate = accumulator(op, body, elements)
    return Product(op, factors[0], factors[1], op.outputs[0], accumulate, body.total)


def _check_named(op: ops.MatmulOp) -> None:
    """linalg.matmul multiplies equal types only: its hidden body has no casts."""
    types = [argument.type for argument in op.body.block.args]
    if len(set(types)) > 1:
        fail(op, mixed_types_hint(op))


# --- maps -----------------------------------------------------------------------------------------


def _orientation(op: LinalgStructuredOperation) -> tuple[tuple[str, bool], tuple[str, bool]]:
    """For each input whether it is a or b, and transposed."""
    maps, iterators = maps_of(op), [iterator.data for iterator in op.get_iterator_types()]
    loops = [dims_of(map_) for map_ in maps]
    if None in loops:
        fail(
            op,
            f"{op.name} indexes an operand by more than a loop, as a convolution does; only matrix "
            "products become tensor-core code: write the operands as matrices (im2col)",
        )
    x, y, out = (dims for dims in loops if dims is not None)
    reductions = [i for i, kind in enumerate(iterators) if kind is attrs.IteratorType.REDUCTION]
    wrong = [d for d in out if iterators[d] is not attrs.IteratorType.PARALLEL]
    missing = [d for d in range(len(iterators)) if d not in out and d not in reductions]
    if wrong or missing:
        d = (wrong or missing)[0]
        fail(
            op,
            f"iterator_types says that d{d} is {iterators[d].value}, but the output's map "
            f"{'has' if wrong else 'lacks'} it; a matrix product has two parallel loops, which "
            "index the output, and one reduction",
        )
    if len(out) < 2 or len(reductions) != 1:
        fail(
            op,
            f"{op.name} has {len(out)} parallel and {len(reductions)} reduction loops; a matrix "
            "product has two and one, and one parallel loop more for each dimension of a batch "
            "(write a vector as a matrix of one row or column)",
        )
    *batch, m, n = out
    k = reductions[0]
    ways = {(m, k): ("a", False), (k, m): ("a", True), (k, n): ("b", False), (n, k): ("b", True)}
    first, second = (_way(dims, batch, ways) for dims in (x, y))
    if first is None or second is None or first[0] == second[0]:
        shown = " and ".join(f"({', '.join(f'd{d}' for d in dims)})" for dims in (x, y))
        fail(
            op,
            f"the inputs are indexed by {shown}, the output by "
            f"({', '.join(f'd{d}' for d in out)}); in a matrix product one input has d{m} and d{k} "
            f"and the other d{k} and d{n}, in either order"
            + (", behind the dimensions of the batch or without them" if batch else ""),
        )
    return first, second


Way = tuple[str, bool]


def _way(dims: list[int], batch: list[int], ways: Mapping[tuple[int, int], Way]) -> Way | None:
    """Which operand an input is, and whether transposed; behind all of the batch or none of it."""
    *leading, row, column = dims if len(dims) > 1 else (-1, -1)
    return ways.get((row, column)) if leading in ([], batch) else None


# --- body -----------------------------------------------------------------------------------------


class Body:
    """`yield acc + x * y` with the extensions of x and y."""

    def __init__(self, op: LinalgStructuredOperation):
        self.op, self.block = op, op.body.block
        x, y, accumulator = self.block.args
        self.total = accumulator.type
        self.extensions: dict[SSAValue, Operation] = {}
        factors = self._factors(self.block, accumulator)
        inputs = [self._input(factor) for factor in factors]
        if set(inputs) != {x, y}:
            self._fail()

    def _fail(self) -> None:
        x, y, _ = (argument.type for argument in self.block.args)
        fail(
            self.op,
            f"the body of {self.op.name} is no `output + input * input` with arith.extf, extsi or "
            f"extui of the inputs; {generic_text.instead(x, y)}",
        )

    def _factors(self, block: Block, accumulator: SSAValue) -> tuple[SSAValue, SSAValue]:
        last = block.last_op
        if isinstance(last, ops.YieldOp) and len(last.operands) == 1:
            total = last.operands[0].owner
            if isinstance(total, math.FmaOp) and total.c is accumulator:
                return total.a, total.b
            if isinstance(total, arith.AddfOp | arith.AddiOp):
                for old, product in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
                    if old is accumulator and isinstance(
                        product.owner, arith.MulfOp | arith.MuliOp
                    ):
                        return product.owner.lhs, product.owner.rhs
        self._fail()
        raise AssertionError

    def _input(self, factor: SSAValue) -> SSAValue:
        """The block's argument that a factor is, perhaps extended."""
        extension = factor.owner
        if not isinstance(extension, EXTENSIONS):
            return factor
        self.extensions[extension.input] = extension
        return extension.input

    def element(self, argument: SSAValue) -> Attribute:
        """The element type of an input with the sign that its extension gives it."""
        type_, extension = argument.type, self.extensions.get(argument)
        if type_ not in BYTES or extension is None:
            return type_
        unsigned = isinstance(extension, UNSIGNED)
        if type_ != BYTES[0] and unsigned != (element_name(type_) == "u8"):
            fail(self.op, f"{extension.name} of {type_} contradicts the sign of the memory")
        return element_type("u8") if unsigned else type_


# --- types ----------------------------------------------------------------------------------------


def accumulator(op: LinalgStructuredOperation, body: Body, elements: list[Attribute]) -> Attribute:
    """What the tensor cores sum in, checked against what the body says."""
    a, b = elements
    for type_ in (a, b, body.total):
        if not is_element(type_):
            fail(op, f"{op.name}: no tensor core takes {type_}; {generic_text.instead(a, b)}")
    if any(isinstance(extension, TO_FLOAT) for extension in body.extensions.values()):
        return _integer_accumulator(op, body, elements)
    try:
        name = accumulator_of(element_name(a), element_name(b), element_name(body.total))
    except FragirError:
        fail(op, f"{op.name}: no tensor core sums {a} times {b} in {body.total}; " + _way_out(a, b))
    return element_type(name)


def _way_out(a: Attribute, b: Attribute) -> str:
    total = generic_text.usual_sum(a, b)
    more = "" if total is None else f" and convert {total} in a second, elementwise linalg.generic"
    return generic_text.instead(a, b) + more


def _integer_accumulator(
    op: LinalgStructuredOperation, body: Body, elements: list[Attribute]
) -> Attribute:
    """i32 for factors converted to float, where it cannot overflow: the sum is exact then."""
    i32 = element_type("s32")
    names = [element_name(element) for element in elements]
    if set(names) - {"s8", "u8"} or len(body.extensions) != 2:
        fail(op, f"{op.name}: no tensor core sums {names[0]} times {names[1]} in {body.total}")
    limit = ((1 << 31) - 1) // LARGEST[names.count("u8")]
    k = _static_k(op)
    if k is None or k > limit:
        fail(
            op,
            f"{op.name} sums products of integers in {body.total}; tensor cores sum them in i32, "
            f"which is certain to hold the sum only for a static K up to {limit}; write "
            + generic_text.generic(elements[0], elements[1], i32)
            + f" and arith.sitofp to {body.total} in a second, elementwise linalg.generic",
        )
    return i32


def _static_k(op: LinalgStructuredOperation) -> int | None:
    """K, where an input's type says it."""
    out = dims_of(maps_of(op)[2]) or []
    for value, map_ in zip(op.inputs, maps_of(op), strict=False):
        assert is_memref(value.type)
        for size, dim in zip(value.type.get_shape(), dims_of(map_) or [], strict=True):
            if dim not in out and size >= 0:
                return size
    return None


ROW, COLUMN = "row", "column"
ElementIndex = tuple[str | int, ...]
"""How an operand is indexed: by the row, by the column, or by a number."""
WHOLE: ElementIndex = (ROW, COLUMN)


def whole_of(rank: int) -> ElementIndex:
    """How the result is indexed, a matrix or a batch of them."""
    return (*(f"batch {dim}" for dim in range(rank - 2)), ROW, COLUMN)


def indices_of(op: LinalgStructuredOperation) -> list[ElementIndex]:
    """How the operands are indexed; the loops are named by the output's map."""
    maps = maps_of(op)
    loops = [e.position for e in maps[-1].results if isinstance(e, AffineDimExpr)]
    rank = len(op.get_iterator_types())
    if rank < 2 or sorted(loops) != list(range(rank)):
        fail(
            op,
            f"{op.name} with the output at {maps[-1]}; an elementwise operation after a matrix "
            "product has two parallel loops, which index the output, a matrix, or one more for "
            "each dimension of a batch",
        )
    names = dict(zip(loops, map(str, whole_of(rank)), strict=True))
    return [
        _index(op, operand, map_, names) for operand, map_ in zip(op.operands, maps, strict=True)
    ]


def _index(
    op: Operation,
    operand: SSAValue,
    map_: AffineMap,
    names: Mapping[int, str],
) -> ElementIndex:
    place: list[str | int] = []
    for expression in map_.results:
        if isinstance(expression, AffineDimExpr):
            place.append(names[expression.position])
        elif isinstance(expression, AffineConstantExpr):
            place.append(expression.value)
        else:
            fail(op, f"{op.name} reads {name_of(operand)} at {expression}, which is no loop")
    return tuple(place)


def check_broadcast(op: Operation, memory: SSAValue, place: ElementIndex, rank: int) -> None:
    """An error unless memory that is not the result, of so many dimensions, is read as numpy
    broadcasts: by the last of its indices, or at 0 where the size is 1. A vector may be one value a
    row.
    """
    if place == ():
        fail(op, f"{op.name} reads {memory.type}; pass the number itself as an argument")
    sizes = memref_type(memory.type).get_shape()
    wanted = whole_of(rank)[-len(place) :]
    legal = [(at, 0) for at in wanted]
    if len(place) == 1 and rank == 2:
        legal = [(ROW, COLUMN, 0)]
    if len(place) > rank or any(
        at not in ways or (at == 0 and size != 1)
        for at, size, ways in zip(place, sizes, legal, strict=True)
    ):
        fail(
            op,
            f"{op.name} reads {name_of(memory)} at {place_text(place)}; what follows a product is "
            "read at (row, column), (column) or (row), or at 0 where the size is 1",
        )


def check_buffer(op: Operation, value: SSAValue) -> None:
    """An error unless an operand is a matrix in global memory."""
    type_ = value.type
    if not is_memref(type_):
        fail(op, f"{op.name} has an operand of type {type_}; run frag-bufferize before")
    if not is_element(type_.element_type):
        fail(op, f"{op.name}: a tile cannot hold elements of {type_.element_type}")
    if not isinstance(type_.memory_space, NoneAttr):
        fail(op, f"{op.name} works on {type_}; linalg is compiled for global memory only")


def place_text(place: ElementIndex) -> str:
    """A place as messages print it."""
    return f"({', '.join(map(str, place))})"
