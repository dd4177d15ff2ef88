"""What the dimensions of a program's arguments mean: names of sizes, and which matrix is which."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ShapedType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects import frag

Names = tuple[str | None, ...]


def dimension_names(function: func.FuncOp) -> list[Names]:
    """A name for every dimension of every argument, as far as the program tells.

    From `frag.sizes`, else from the product that uses the argument: A has m and k, B k and n, C m
    and n. () for scalars, None for a dimension without a name.
    """
    found: dict[SSAValue, Names] = dict(_from_products(function))
    result: list[Names] = []
    for i, argument in enumerate(function.body.block.args):
        shape = shape_of(argument)
        if shape is None:
            result.append(())
            continue
        rank = len(shape)
        names: Sequence[str | None] = _given(function, i) or found.get(argument, ())
        result.append((*names[:rank], *[None] * (rank - len(names))))
    return result


def factors(function: func.FuncOp) -> set[int]:
    """The numbers of the arguments that are A or B of a product."""
    return {argument.index for argument, names in _from_products(function) if "k" in names}


def _given(function: func.FuncOp, index: int) -> tuple[str, ...]:
    if function.arg_attrs is None:
        return ()
    return frag.sizes_of(function.arg_attrs.data[index].data.get("frag.sizes"))


def shape_of(value: SSAValue) -> tuple[int, ...] | None:
    """The shape of a memref or tensor, -1 for a dynamic size; None for a scalar."""
    type_ = value.type
    return type_.get_shape() if isinstance(type_, ShapedType) else None


def _from_products(function: func.FuncOp) -> list[tuple[BlockArgument, Names]]:
    """Arguments that take part in products, and their dimensions' names; the last use counts."""
    result: list[tuple[SSAValue, Names]] = []
    for op in function.walk():
        result += [(_root(value), names) for value, names in _roles(op)]
    return [(value, names) for value, names in result if isinstance(value, BlockArgument)]


def _roles(op: Operation) -> list[tuple[SSAValue, Names]]:
    match op:
        case frag.MatmulOp():
            roles = [
                (op.a, _turned(("m", "k"), op.a_transposed)),
                (op.b, _turned(("k", "n"), op.b_transposed)),
                (op.c, ("m", "n")),
            ]
            for extra in op.extra:
                shape = shape_of(extra) or ()
                roles.append((extra, ("m", "n")[2 - len(shape) :]))
            return roles
        case frag.MmaOp():
            return [*_loaded(op.a, ("m", "k")), *_loaded(op.b, ("k", "n"))]
        case frag.WgmmaOp():
            sides = (op.a, ("m", "k"), op.a_transposed), (op.b, ("k", "n"), op.b_transposed)
            return [
                role
                for value, names, turned in sides
                for role in _loaded(value, _turned(names, turned))
            ]
        case frag.StoreOp():
            return [(op.memory, _turned(("m", "n"), op.transposed))]
        case LinalgStructuredOperation():
            return _of_contraction(op)
        case _:
            return []


def _turned(names: Names, transposed: object) -> Names:
    return names if transposed is None else names[::-1]


def _loaded(value: SSAValue, names: Names) -> list[tuple[SSAValue, Names]]:
    """The memory that a tile was loaded from, perhaps by way of shared memory."""
    op = _maker(value)
    while isinstance(op, frag.CastOp | frag.ConvertOp):
        op = _maker(op.source)
    if isinstance(op, frag.LoadOp):
        rank = len(shape_of(op.memory) or ())
        tile = len(op.tile.type.shape)
        if tile == 3:
            names = (*names, "p")
        named: Names = (*[None] * (rank - tile), *_turned(names, op.transposed))
        return _copied(op.memory, named)
    return _copied(value, names) if isinstance(value.type, MemRefType) else []


def _copied(memory: SSAValue, names: Names) -> list[tuple[SSAValue, Names]]:
    root = _root(memory)
    if isinstance(root, BlockArgument):
        return [(root, names)]
    sources = [use.operation.source for use in root.uses if isinstance(use.operation, frag.CopyOp)]
    return [(source, names[-2:]) for source in sources if source is not root]


def _root(value: SSAValue) -> SSAValue:
    while isinstance(op := _maker(value), frag.ViewOp):
        value = op.memory
    return value


def _maker(value: SSAValue) -> Operation | None:
    owner = value.owner
    return None if isinstance(owner, Block) else owner


def _of_contraction(op: LinalgStructuredOperation) -> list[tuple[SSAValue, Names]]:
    """m, n and k by which operands a loop indexes; other operations tell nothing."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    if len(op.inputs) != 2 or len(maps) != 3:
        return []
    dims = [
        [e.position if isinstance(e, AffineDimExpr) else None for e in map_.results]
        for map_ in maps
    ]
    first, second, out = (set(d) for d in dims)
    if not (first & second) - out:
        return []

    def name(loop: int | None) -> str | None:
        where = (loop in first, loop in second, loop in out)
        return {
            (True, False, True): "m",
            (False, True, True): "n",
            (True, True, False): "k",
            (True, True, True): "batch",
        }.get(where)

    operands = (*op.inputs, *op.outputs)
    return [
        (value, tuple(name(loop) for loop in loops))
        for value, loops in zip(operands, dims, strict=True)
    ]
