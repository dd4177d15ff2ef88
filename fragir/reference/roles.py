"""What the dimensions of a program's arguments mean: names of sizes, and which matrix is which."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, ShapedType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects import frag
from fragir.dialects.interfaces import (
    DIMENSIONS,
    Dimensions,
    Loops,
    Names,
    accesses_of,
    dimensions_of,
    root_of,
)


def dimension_names(function: func.FuncOp) -> tuple[list[Names], list[Names]]:
    """A name for every dimension of every argument, as far as the program tells.

    From `frag.sizes`, else from the product that uses the argument: A has m and k, B k and n, C m
    and n, operands of elementwise operations after it what they are indexed with. Where
    `frag.sizes` renames a size of the product, the others follow. () for scalars, None for a
    dimension without a name. Where several products give one name to sizes that are known and
    differ, it is the name of none of them; nor has a known size the name of a dynamic one that only
    tiles connect with it, which may be parts of both. The second list has these, too, as likely.
    """
    roles = _from_products(function)
    arguments = list(function.body.block.args)
    given = {argument: _given_names(function, i) for i, argument in enumerate(arguments)}
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
    is_given = [bool(given[argument]) for argument in arguments]
    likely = _without_unwritten_names(arguments, result, is_given, set(arguments))
    return _without_unwritten_names(arguments, likely, is_given, _whole_memory(function)), likely


def _without_unwritten_names(
    arguments: Sequence[BlockArgument],
    names: Sequence[Names],
    is_given: Sequence[bool],
    whole: set[SSAValue],
) -> list[Names]:
    """Without names that nobody wrote and that stand for several sizes, or may.

    `whole`: arguments whose sizes are those of what has their names.
    """
    sizes: dict[str, set[int]] = {}
    for argument, of in zip(arguments, names, strict=True):
        for name, size in zip(of, shape_of(argument) or (), strict=True):
            if name is not None:
                sizes.setdefault(name, set()).add(size)
    several = {name for name, found in sizes.items() if len(found - {DYNAMIC_INDEX}) > 1}
    dynamic = {name for name, found in sizes.items() if DYNAMIC_INDEX in found}
    result: list[Names] = []
    for argument, of, given in zip(arguments, names, is_given, strict=True):
        wrong = several if argument in whole else several | dynamic
        if not given and wrong:
            pairs = zip(of, shape_of(argument) or (), strict=True)
            of = tuple(
                None if name in wrong and size != DYNAMIC_INDEX else name for name, size in pairs
            )
        result.append(of)
    return result


def _whole_memory(function: func.FuncOp) -> set[SSAValue]:
    """Memory that operations without tiles name or connect: they take all of it."""
    found: set[SSAValue] = set()
    for op in function.walk():
        said = dimensions_of(op)
        types = [value.type for value in (*op.operands, *op.results)]
        if said is not None and not any(isinstance(type_, frag.TileType) for type_ in types):
            found |= {_root(value) for value, _ in (*said.dimensions(), *said.loops())}
    return found


def factors(function: func.FuncOp) -> set[int]:
    """The numbers of the arguments that are A or B of a product."""
    return {argument.index for argument, names in _from_products(function) if "k" in names}


def _given_names(function: func.FuncOp, index: int) -> tuple[str, ...]:
    if function.arg_attrs is None:
        return ()
    return frag.sizes_of(function.arg_attrs.data[index].data.get("frag.sizes"))


def shape_of(value: SSAValue) -> tuple[int, ...] | None:
    """The shape of a memref or tensor, DYNAMIC_INDEX for a dynamic size; None for a scalar."""
    type_ = value.type
    return type_.get_shape() if isinstance(type_, ShapedType) else None


def _from_products(function: func.FuncOp) -> list[tuple[BlockArgument, Names]]:
    """Arguments that take part in products, and their dimensions' names; the last use counts."""
    result: list[tuple[SSAValue, Names]] = []
    for op in function.walk():
        result += [_at_root(value, names) for value, names in _roles(op)]
    result += _spread_names(function, dict(result))
    return [(value, names) for value, names in result if isinstance(value, BlockArgument)]


def _spread_names(
    function: func.FuncOp, known: dict[SSAValue, Names]
) -> list[tuple[SSAValue, Names]]:
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
    """The operands whose dimensions run together, named after what is known of some."""
    said = dimensions_of(op)
    operands = [] if said is None else list(said.loops())
    named: dict[int | None, str] = {}
    for value, loops in operands:
        for loop, name in zip(loops, known.get(_root(value), ()), strict=False):
            if loop is not None and name is not None:
                named.setdefault(loop, name)
    return [(value, tuple(named.get(loop) for loop in loops)) for value, loops in operands]


def _roles(op: Operation) -> Iterator[tuple[SSAValue, Names]]:
    """Memory and the names that an operation gives its dimensions, seen through tiles."""
    said, accesses = dimensions_of(op), accesses_of(op)
    if said is None:
        return
    written = () if accesses is None else accesses.writes()
    for value, names in said.dimensions():
        if value in written:
            yield value, names
        else:
            yield from _loaded_memory(value, names)


def metadata(function: func.FuncOp) -> dict[int, int]:
    """The numbers of the arguments that are metadata of a sparse product: how long a chunk is."""
    result: dict[int, int] = {}
    for op in function.walk():
        said = dimensions_of(op)
        sparsity = None if said is None else said.sparsity()
        if sparsity is None:
            continue
        value, chunk = sparsity
        for memory, _ in _loaded_memory(value, (None, None)):
            if isinstance(memory, BlockArgument):
                result[memory.index] = chunk
    return result


def counters(function: func.FuncOp) -> list[int]:
    """The numbers of the arguments in which blocks are counted."""
    found: list[int] = []
    for op in function.walk():
        accesses = accesses_of(op)
        for memory in () if accesses is None else accesses.counters():
            root = root_of(memory)
            if isinstance(root, BlockArgument):
                found.append(root.index)
    return found


def _loaded_memory(value: SSAValue, names: Names) -> list[tuple[SSAValue, Names]]:
    """The memory that a tile was loaded from, perhaps by way of shared memory."""
    while not isinstance(value.type, ShapedType):
        step = _origin(value, names)
        if step is None:
            return []
        value, names = step
    return _copied_memory(value, names)


def _copied_memory(memory: SSAValue, names: Names) -> list[tuple[SSAValue, Names]]:
    """Memory itself, and what was copied into it."""
    root = _root(memory)
    found = [(memory, names)]
    for use in root.uses:
        said, accesses = dimensions_of(use.operation), accesses_of(use.operation)
        if said is None or accesses is None or root not in accesses.writes():
            continue
        source = said.origin(names)
        if source is not None and source[0] is not root:
            found.append(source)
    return found


def _origin(value: SSAValue, names: Names) -> tuple[SSAValue, Names] | None:
    """What a value is made of element by element, with the names of its dimensions."""
    owner = value.owner
    said = None if isinstance(owner, Block) else dimensions_of(owner)
    return None if said is None else said.origin(names)


def _root(value: SSAValue) -> SSAValue:
    return _at_root(value, ())[0]


def _at_root(value: SSAValue, names: Names) -> tuple[SSAValue, Names]:
    """Memory and its dimensions' names, seen through views: a view leaves out leading ones."""
    while isinstance(value.type, ShapedType) and (step := _origin(value, names)) is not None:
        value, names = step
    missing = len(shape_of(value) or ()) - len(names)
    return value, (*[None] * missing, *names)


# --- operations of xDSL ---------------------------------------------------------------------------


@DIMENSIONS.attach(memref.CastOp)
class CastDimensions(Dimensions):
    """The same memory under a type that says more or less of it."""

    def __init__(self, op: memref.CastOp):
        self.op = op

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        return self.op.source, names


@DIMENSIONS.attach(memref.CopyOp)
class CopyDimensions(Dimensions):
    """Both memories have one shape."""

    def __init__(self, op: memref.CopyOp):
        self.op = op

    def loops(self) -> list[tuple[SSAValue, Loops]]:
        loops = tuple(range(len(shape_of(self.op.source) or ())))
        return [(self.op.source, loops), (self.op.destination, loops)]


@DIMENSIONS.attach(LinalgStructuredOperation)
class StructuredDimensions(Dimensions):
    """Contractions name their operands' dimensions; elementwise operations pass names on."""

    def __init__(self, op: LinalgStructuredOperation):
        self.op = op

    def dimensions(self) -> list[tuple[SSAValue, Names]]:
        return _of_contraction(self.op)

    def loops(self) -> list[tuple[SSAValue, Loops]]:
        op = self.op
        if _of_contraction(op):
            return []
        return list(zip((*op.inputs, *op.outputs), _loops(op), strict=True))


def _loops(op: LinalgStructuredOperation) -> list[Loops]:
    """For each operand the loops that index its dimensions."""
    return [
        tuple(e.position if isinstance(e, AffineDimExpr) else None for e in attribute.data.results)
        for attribute in op.get_indexing_maps()
    ]


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
