"""Memory that kernels of linalg work on: views, names of sizes, copies, shares of grids."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from math import prod

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DictionaryAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from fragir.dialects import frag
from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.memory_types import RESHAPES, VIEWS, kept_dims, mixed_numbers
from fragir.dialects.shorthands import constant_of, is_memref, memref_type
from fragir.ptx.machines import GRID


def is_scalar(op: Operation) -> bool:
    """Whether an operation only computes with numbers."""
    return op.name.partition(".")[0] in ("arith", "math") and not op.regions


def erase_dead(candidates: Sequence[Operation], block: Block) -> None:
    """Erases scalars of a block that nothing uses, starting from some operations."""
    pending = list(candidates)
    while pending:
        op = pending.pop()
        dead = all(result.uses.get_length() == 0 for result in op.results)
        if op.parent is block and dead and (isinstance(op, memref.DimOp) or is_scalar(op)):
            pending += owners(op)
            Rewriter.erase_op(op)


def owners(op: Operation) -> list[Operation]:
    """The operations that compute an operation's operands."""
    return [value.owner for value in op.operands if isinstance(value.owner, Operation)]


Insert = Callable[[Operation], SSAValue]
"""Puts an operation into the program; its result."""


def erase_written(block: Block, work: Collection[Operation]) -> None:
    """Erases operations that a kernel has been written of, and the memory and views of theirs that
    nobody uses any more.
    """
    written = set(work)
    for op in reversed(list(block.ops)):
        unused = isinstance(op, (memref.AllocOp, *VIEWS)) and not op.results[0].uses
        if op in written or isinstance(op, memref.DeallocOp) or unused:
            Rewriter.erase_op(op)
    erase_dead([op for op in block.ops if op.results], block)


def collapsed(memory: SSAValue, groups: Sequence[Sequence[int]]) -> memref.CollapseShapeOp:
    """Memory with a dimension for each group of neighbouring ones."""
    type_ = memref_type(memory.type)
    shape = type_.get_shape()
    sizes = [[shape[dim] for dim in group] for group in groups]
    new = [-1 if min(every, default=1) < 0 else prod(every) for every in sizes]
    numbers = [ArrayAttr([IntegerAttr(dim, i64) for dim in group]) for group in groups]
    return memref.CollapseShapeOp.build(
        operands=[memory],
        properties={"reassociation": ArrayAttr(numbers)},
        result_types=[MemRefType(type_.element_type, new)],
    )


def size_of(memory: SSAValue, dim: int, insert: Insert) -> SSAValue | int:
    """A size of memory, as far as possible a number or that of an argument's dimension."""
    size = memref_type(memory.type).get_shape()[dim]
    if size >= 0:
        return size
    op = memory.owner
    if isinstance(op, memref.CastOp):
        return size_of(op.source, dim, insert)
    if isinstance(op, memref.AllocOp):
        shape = memref_type(memory.type).get_shape()
        return _known_size(op.dynamic_sizes[sum(n < 0 for n in shape[:dim])])
    if isinstance(op, memref.SubviewOp):
        sizes = mixed_numbers(op.static_sizes, op.sizes)
        kept = kept_dims(sizes, memref_type(memory.type).get_shape(), op.name)
        return _known_size(sizes[kept[dim]])
    if isinstance(op, memref.ReinterpretCastOp):
        return _known_size(mixed_numbers(op.static_sizes, op.sizes)[dim])
    if isinstance(op, memref.ExpandShapeOp):
        return _known_size(mixed_numbers(op.static_output_shape, op.output_shape)[dim])
    if isinstance(op, memref.CollapseShapeOp):
        group = [entry.value.data for entry in op.reassociation.data[dim]]
        known = [size_of(op.src, at, insert) for at in group]
        return product_of(known, insert)
    return insert(memref.DimOp(memory, insert(_number(dim))))


def product_of(sizes: list[SSAValue | int], insert: Insert) -> SSAValue | int:
    """The product of sizes."""
    number, total = 1, None
    for size in sizes:
        if isinstance(size, int):
            number *= size
        else:
            total = size if total is None else insert(arith.MuliOp(total, size))
    if total is None or number == 0:
        return number
    return total if number == 1 else insert(arith.MuliOp(total, insert(_number(number))))


def is_named(size: SSAValue | int) -> bool:
    """Whether a launch knows a size: a number, or a dimension of an argument."""
    if isinstance(size, int) or constant_of(size) is not None:
        return True
    op = size.owner
    return (
        isinstance(op, memref.DimOp)
        and isinstance(op.source, BlockArgument)
        and constant_of(op.index) is not None
    )


def _known_size(size: SSAValue | int) -> SSAValue | int:
    if isinstance(size, int):
        return size
    number = constant_of(size)
    return size if number is None else number


def _number(number: int) -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(number, IndexType()))


Dimension = tuple[SSAValue, int]


def name_sizes(function: func.FuncOp) -> None:
    """Names the dimensions of arguments that have no names, alike where a loop of an operation runs
    along them, or memory is allocated with a size of other memory.
    """
    parents: dict[Dimension, Dimension] = {}

    def root(node: Dimension) -> Dimension:
        while (parent := parents.get(node, node)) != node:
            node = parent
        return node

    for op in function.body.block.ops:
        for one, other in _equal_dimensions(op):
            parents[root(other)] = root(one)
    _name(function, root)


def _equal_dimensions(op: Operation) -> Iterator[tuple[Dimension, Dimension]]:
    """Dimensions that an operation says to be of one size."""
    if isinstance(op, LinalgStructuredOperation):
        first: dict[int, Dimension] = {}
        for value, map_ in zip(op.operands, maps_of(op), strict=True):
            for dim, expression in enumerate(map_.results if is_memref(value.type) else ()):
                if isinstance(expression, AffineDimExpr):
                    node = value, dim
                    yield first.setdefault(expression.position, node), node
    elif isinstance(op, memref.AllocOp):
        given = iter(op.dynamic_sizes)
        for dim, size in enumerate(op.memref.type.get_shape()):
            known = next(given).owner if size < 0 else None
            at = constant_of(known.index) if isinstance(known, memref.DimOp) else None
            if isinstance(known, memref.DimOp) and at is not None:
                yield (known.source, at), (op.memref, dim)
    elif isinstance(op, memref.CastOp) and is_memref(op.source.type) and is_memref(op.dest.type):
        for dim in range(len(op.source.type.get_shape())):
            yield (op.source, dim), (op.dest, dim)
    elif isinstance(op, memref.CollapseShapeOp):
        yield from _regrouped_dimensions(op.src, op.result, op.reassociation)
    elif isinstance(op, memref.ExpandShapeOp):
        yield from _regrouped_dimensions(op.result, op.src, op.reassociation)


def _regrouped_dimensions(
    wide: SSAValue, narrow: SSAValue, groups: ArrayAttr[ArrayAttr[IntegerAttr]]
) -> Iterator[tuple[Dimension, Dimension]]:
    """A dimension of several is the only one among them that has more than one element."""
    shape = memref_type(wide.type).get_shape()
    for dim, group in enumerate(groups):
        long = [entry.value.data for entry in group if shape[entry.value.data] != 1]
        if len(long) == 1:
            yield (wide, long[0]), (narrow, dim)


def _name(function: func.FuncOp, root: Callable[[Dimension], Dimension]) -> None:
    arguments, given = function.body.block.args, function.arg_attrs
    entries = list(given.data) if given is not None else [DictionaryAttr({}) for _ in arguments]
    names: dict[Dimension, str] = {}
    for argument, entry in zip(arguments, entries, strict=True):
        for dim, name in enumerate(frag.sizes_of(entry.data.get("frag.sizes"))):
            names[root((argument, dim))] = name
    taken = {*names.values(), *(x.name_hint for x in arguments)}
    fresh = (name for at in count() if (name := f"n{at}") not in taken)
    changed = False
    for at, argument in enumerate(arguments):
        type_ = argument.type
        if not isinstance(type_, MemRefType) or "frag.sizes" in entries[at].data:
            continue
        nodes = [root((argument, dim)) for dim in range(len(type_.get_shape()))]
        if min(type_.get_shape(), default=0) >= 0:
            continue
        for node in nodes:
            if node not in names:
                names[node] = next(fresh)
        said = ArrayAttr([StringAttr(names[node]) for node in nodes])
        entries[at] = DictionaryAttr({**entries[at].data, "frag.sizes": said})
        changed = True
    if changed:
        function.arg_attrs = ArrayAttr(entries)


BLOCKS = 1024
"""Of a kernel whose launch does not know its sizes, at most: those that run at once."""


def identity_copy(source: SSAValue, target: SSAValue) -> ops.GenericOp:
    """A generic that copies memory to memory of its shape."""
    types = [memref_type(x.type) for x in (source, target)]
    rank = len(types[1].get_shape())
    map_ = AffineMapAttr(AffineMap.identity(rank))
    block = Block(arg_types=[type_.element_type for type_ in types])
    block.add_op(ops.YieldOp(block.args[0]))
    loops = [attrs.IteratorTypeAttr.parallel()] * rank
    return ops.GenericOp([source], [target], Region(block), [map_, map_], loops)


def share_tiles(function: func.FuncOp, loop: frag.ForTilesOp) -> None:
    """Lets blocks take tiles until none is left, where a launch cannot tell how many there are.

    Where there may be more rows of tiles than a grid has blocks along y, or matrices along z, tiles
    are numbered along x.
    """
    *counts, columns = (
        -(-extent // size) if isinstance(extent, int) else None
        for extent, size in zip(loop.all_extents(), loop.tile_shape, strict=True)
    )
    outer = counts[:-1]
    many = [counts[-1], None if None in outer else prod(x for x in outer if x is not None)]
    if any(count is None or count > GRID[1] for count in many):
        loop.order = StringAttr("columns" if columns == 1 and not outer else "linear")
    if not all(map(is_named, loop.all_extents())) and "frag.grid" not in function.attributes:
        loop.persistent = UnitAttr()
        count = frag.BlockCount((frag.Extent(BLOCKS),), resident=True)
        function.attributes["frag.grid"] = frag.GridAttr((count,))


def write_copies(function: func.FuncOp) -> None:
    """Makes a generic of every copy of a function."""
    for op in list(function.body.block.ops):
        if isinstance(op, memref.CopyOp):
            made = identity_copy(op.source, op.destination)
            for inner in made.walk():
                inner.location = op.location
            Rewriter.replace_op(op, made, [])


# -- reshapes --------------------------------------------------------------------------------------
# Where an element lies in one view of memory, by where it lies in another one.
#
# A place along a dimension is a row of digits, each a loop's expression and how far it runs, the
# outermost first: dimensions taken together have the digits of all of them, a dimension taken apart
# divides its own. So what was taken together and apart again is no division.

Digit = tuple[AffineExpr, int]
Digits = list[Digit]


class NoPlaceError(Exception):
    """A view whose places are not told by affine expressions."""


def places_through(read: SSAValue, written: SSAValue) -> list[AffineExpr]:
    """The place in one view of memory, `written`, of what lies at (d0, d1, ...) of another one.

    NoPlaceError where sizes are not known, or `written` is a part.
    """
    shape = memref_type(read.type).get_shape()
    found = [[(AffineExpr.dimension(at), size)] for at, size in enumerate(shape)]
    while isinstance(read.owner, VIEWS) and read is not written:
        found = _outward(read, found)
        read = read.owner.operands[0]
    back: list[SSAValue] = []
    while isinstance(written.owner, VIEWS) and written is not read:
        back.append(written)
        written = written.owner.operands[0]
    for view in reversed(back):
        found = _inward(view, found)
    return [_linear(digits) for digits in found]


def is_part(view: SSAValue) -> bool:
    """Whether a view may lack elements of what it is a view of."""
    while isinstance(view.owner, VIEWS):
        if not isinstance(view.owner, RESHAPES):
            return True
        view = view.owner.operands[0]
    return False


def _outward(view: SSAValue, digits: list[Digits]) -> list[Digits]:
    """The places in the memory that a view is of."""
    op = view.owner
    if not isinstance(op, VIEWS):
        raise NoPlaceError
    source = memref_type(op.operands[0].type).get_shape()
    if isinstance(op, memref.CastOp):
        return digits
    if isinstance(op, memref.ExpandShapeOp):
        return [_join_digits(digits, group) for group in _groups(op.reassociation)]
    if isinstance(op, memref.CollapseShapeOp):
        groups = zip(digits, _groups(op.reassociation), strict=True)
        return [
            one for own, group in groups for one in _split_digits(own, [source[d] for d in group])
        ]
    if isinstance(op, memref.SubviewOp):
        offsets, steps = (
            mixed_numbers(op.static_offsets, op.offsets),
            mixed_numbers(op.static_strides, op.strides),
        )
        sizes = mixed_numbers(op.static_sizes, op.sizes)
        kept = kept_dims(sizes, memref_type(view.type).get_shape(), op.name)
        found: list[Digits] = []
        for dim, (first, step) in enumerate(zip(offsets, steps, strict=True)):
            if not isinstance(first, int) or not isinstance(step, int):
                raise NoPlaceError
            if dim in kept and (first, step) == (0, 1) and sizes[dim] == source[dim]:
                found.append(digits[kept.index(dim)])
                continue
            place = AffineExpr.constant(first)
            if dim in kept:
                inner = _linear(digits[kept.index(dim)])
                place = (inner if step == 1 else inner * step) + first
            found.append([(place, source[dim])])
        return found
    raise NoPlaceError


def _inward(view: SSAValue, digits: list[Digits]) -> list[Digits]:
    """The places in a view, by those in the memory that it is of."""
    op, shape = view.owner, memref_type(view.type).get_shape()
    if isinstance(op, memref.CastOp):
        return digits
    if isinstance(op, memref.CollapseShapeOp):
        return [_join_digits(digits, group) for group in _groups(op.reassociation)]
    if isinstance(op, memref.ExpandShapeOp):
        groups = zip(digits, _groups(op.reassociation), strict=True)
        return [
            one for own, group in groups for one in _split_digits(own, [shape[d] for d in group])
        ]
    raise NoPlaceError


def _groups(attribute: ArrayAttr[ArrayAttr[IntegerAttr]]) -> list[list[int]]:
    return [[entry.value.data for entry in group] for group in attribute]


def _join_digits(digits: Sequence[Digits], group: Sequence[int]) -> Digits:
    return [digit for dim in group for digit in digits[dim] if digit[1] != 1]


def _split_digits(digits: Digits, sizes: Sequence[int]) -> list[Digits]:
    """The digits of dimensions of these sizes, the outermost first."""
    left, found = [digit for digit in digits if digit[1] != 1], list[Digits]()
    wide = next((at for at, size in enumerate(sizes) if size != 1), 0)
    for at, size in reversed(list(enumerate(sizes))):
        own: Digits = []
        if at == wide:
            own, left = left, []
        while size > prod(n for _, n in own) and left and left[-1][1] > 0:
            own.insert(0, left.pop())
        if at != wide and prod(n for _, n in own) != size:
            return _divide_digits(digits, sizes)
        found.append(own or [(AffineExpr.constant(0), 1)])
    return found[::-1]


def _divide_digits(digits: Digits, sizes: Sequence[int]) -> list[Digits]:
    if any(size < 0 for size in sizes[1:]):
        raise NoPlaceError
    place, found = _linear(digits), list[Digits]()
    for at, size in enumerate(sizes):
        own, behind = place, prod(sizes[at + 1 :])
        own = own if behind == 1 else own // behind
        found.append([(own % size if any(n != 1 for n in sizes[:at]) else own, size)])
    return found


def _linear(digits: Digits) -> AffineExpr:
    """All digits of a place as one expression."""
    found: AffineExpr | None = None
    for at, (expression, _) in enumerate(digits):
        behind = [size for _, size in digits[at + 1 :]]
        if any(size < 0 for size in behind):
            raise NoPlaceError
        scaled = expression if prod(behind) == 1 else expression * prod(behind)
        found = scaled if found is None else found + scaled
    return AffineExpr.constant(0) if found is None else found
