"""What the dimensions of a program's arguments mean: names of sizes, and which matrix is which."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ShapedType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects import frag

Names = tuple[str | None, ...]


def dimension_names(function: func.FuncOp) -> list[Names]:
    """A name for every dimension of every argument, as far as the program tells.

    From `frag.sizes`, else from the product that uses the argument: A has m and k, B k and n, C m
    and n, operands of elementwise operations after it what they are indexed with. Where
    `frag.sizes` renames a size of the product, the others follow. () for scalars, None for a
    dimension without a name.
    """
    roles = _from_products(function)
    arguments = list(function.body.block.args)
    given = {argument: _given(function, i) for i, argument in enumerate(arguments)}
    renamed: dict[str | None, str] = {}
    for argument, names in roles:
        for name, other in zip(names, given[argument], strict=False):
            if name is not None and other != name:
                renamed.setdefault(name, other)
    found = {value: tuple(renamed.get(name, name) for name in names) for value, names in roles}
    result: list[Names] = []
    for argument in arguments:
        shape = shape_of(argument)
        if shape is None:
            result.append(())
            continue
        rank = len(shape)
        names: Sequence[str | None] = given[argument] or found.get(argument, ())
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
        result += [_at_root(value, names) for value, names in _roles(op)]
    result += _spread(function, dict(result))
    return [(value, names) for value, names in result if isinstance(value, BlockArgument)]


def _spread(function: func.FuncOp, known: dict[SSAValue, Names]) -> list[tuple[SSAValue, Names]]:
    """Names for what elementwise operations and copies use together with what has names."""
    result: list[tuple[SSAValue, Names]] = []
    found = True
    while found:
        found = False
        for op in function.walk():
            for value, names in _companions(op, known):
                root, names = _at_root(value, names)
                if root not in known and any(names):
                    known[root] = names
                    result.append((root, names))
                    found = True
    return result


def _companions(op: Operation, known: dict[SSAValue, Names]) -> list[tuple[SSAValue, Names]]:
    """All operands of an elementwise operation, their dimensions named after its loops."""
    if isinstance(op, memref.CopyOp):
        names = known.get(_root(op.source)) or known.get(_root(op.destination)) or ()
        return [(op.source, names), (op.destination, names)]
    if not isinstance(op, LinalgStructuredOperation) or _of_contraction(op):
        return []
    operands = list(zip((*op.inputs, *op.outputs), _loops(op), strict=True))
    named: dict[int | None, str] = {}
    for value, loops in operands:
        for loop, name in zip(loops, known.get(_root(value), ()), strict=False):
            if loop is not None and name is not None:
                named.setdefault(loop, name)
    return [(value, tuple(named.get(loop) for loop in loops)) for value, loops in operands]


def _loops(op: LinalgStructuredOperation) -> list[list[int | None]]:
    """For each operand the loops that index its dimensions."""
    return [
        [e.position if isinstance(e, AffineDimExpr) else None for e in attribute.data.results]
        for attribute in op.get_indexing_maps()
    ]


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
                names = zip(("m", "n")[2 - len(shape) :], shape, strict=True)
                # a dimension of size 1 is not the product's: the operand broadcasts
                roles.append((extra, tuple(None if size == 1 else name for name, size in names)))
            return roles
        case frag.MmaOp():
            return [*_loaded(op.a, ("m", "k")), *_loaded(op.b, ("k", "n")), *_scales(op)]
        case frag.MmaSparseOp():
            sides = (op.a, ("m", None)), (op.b, ("k", "n")), (op.metadata, ("m", None))
            roles = [role for value, names in sides for role in _loaded(value, names)]
            return [*roles, *_scales(op)]
        case frag.WgmmaOp():
            of_a: Names = ("m", "k" if op.metadata is None else None)
            sides = (op.a, of_a, op.a_transposed), (op.b, ("k", "n"), op.b_transposed)
            roles = [
                role
                for value, names, turned in sides
                for role in _loaded(value, _turned(names, turned))
            ]
            return roles if op.metadata is None else [*roles, *_loaded(op.metadata, ("m", None))]
        case frag.StoreOp():
            tile = op.tile.type
            stacked = isinstance(tile, frag.TileType) and len(tile.shape) == 3
            names = ("m", "n", "p") if stacked else ("m", "n")
            return [(op.memory, _turned(names, op.transposed))]
        case LinalgStructuredOperation():
            return _of_contraction(op)
        case _:
            return []


def _scales(op: frag.MmaOp | frag.MmaSparseOp) -> list[tuple[SSAValue, Names]]:
    """Scales of A have its rows, those of B its columns; along K there are fewer."""
    sides: tuple[Names, Names] = (("m", None), (None, "n"))
    return [
        role
        for value, names in zip(op.scales, sides, strict=False)
        for role in _loaded(value, names)
    ]


def metadata(function: func.FuncOp) -> dict[int, int]:
    """The numbers of the arguments that are metadata of a sparse product: how long a chunk is."""
    result: dict[int, int] = {}
    for op in function.walk():
        if isinstance(op, frag.MmaSparseOp):
            value, chunk = op.metadata, op.instruction().operands["e"].chunk
        elif isinstance(op, frag.WgmmaOp) and op.metadata is not None:
            value, chunk = op.metadata, op.instruction(8).operands["e"].chunk
        else:
            continue
        for memory, _ in _loaded(value, (None, None)):
            if isinstance(memory, BlockArgument):
                result[memory.index] = chunk
    return result


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
    while isinstance(op := _maker(value), frag.ViewOp | memref.CastOp):
        value = op.operands[0]
    return value


def _at_root(value: SSAValue, names: Names) -> tuple[SSAValue, Names]:
    """Memory and its dimensions' names, seen through views: a view leaves out leading ones."""
    root = _root(value)
    missing = len(shape_of(root) or ()) - len(names)
    return root, (*[None] * missing, *names)


def _maker(value: SSAValue) -> Operation | None:
    owner = value.owner
    return None if isinstance(owner, Block) else owner


def _of_contraction(op: LinalgStructuredOperation) -> list[tuple[SSAValue, Names]]:
    """m, n and k by which operands a loop indexes; other operations tell nothing."""
    dims = _loops(op)
    if len(op.inputs) != 2 or len(dims) != 3:
        return []
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
