"""Operations on whole tiles without memory: fill, convert, cast, map."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    operand_def,
    opt_prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import Canonical, op_definition
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.attributes import LayoutAttr
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import (
    DimensionsInterface,
    FragmentwiseInterface,
    LayoutInterface,
    Names,
    Threads,
)


@op_definition
class FillOp(IRDLOperation, LayoutInterface, FragmentwiseInterface):
    """A tile whose elements all have one value."""

    name = "frag.fill"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    value = operand_def(_T)
    tile = result_def(TileType.constr(element_type=_T))
    traits = traits_def(Pure())
    assembly_format = "$value attr-dict `:` type($tile)"

    def __init__(self, value: SSAValue | Operation, tile: TileType):
        super().__init__(operands=[value], result_types=[tile])

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """An instruction for each register."""
        return elementwise_cost(self.tile, layouts[self.tile], 1)

    def repeats(self) -> bool:
        """Always."""
        return True


def _check_shapes(name: str, source: SSAValue, result: SSAValue) -> None:
    """Whether two tiles have one shape."""
    shapes = [tile.type.shape for tile in (source, result) if isinstance(tile.type, TileType)]
    if shapes[0] != shapes[1]:
        text = " and ".join("x".join(map(str, shape)) for shape in shapes)
        raise VerifyException(f"{name}: {text} differ in shape")


@op_definition
class ConvertOp(IRDLOperation, LayoutInterface, DimensionsInterface):
    """The same tile in another layout: moves elements between registers, lanes and warps.

    `assert_free`: it is an error if that takes an instruction.
    """

    name = "frag.convert"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(TileType.constr(element_type=_T))
    result = result_def(TileType.constr(element_type=_T))
    assert_free = opt_prop_def(UnitAttr)
    traits = traits_def(NoMemoryEffect(), Canonical())
    assembly_format = (
        "$source (`assert_free` $assert_free^)? attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(
        self, source: SSAValue | Operation, result: TileType, *, assert_free: bool = False
    ):
        super().__init__(
            operands=[source],
            properties={"assert_free": UnitAttr() if assert_free else None},
            result_types=[result],
        )

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, element by element."""
        return self.source, names

    def verify_(self) -> None:
        _check_shapes(self.name, self.source, self.result)


@op_definition
class CastOp(IRDLOperation, LayoutInterface, FragmentwiseInterface, DimensionsInterface):
    """The same tile with elements of another type, rounded to nearest even; layout unchanged.

    Of i1, true becomes 1 and false 0.
    """

    name = "frag.cast"
    _L: ClassVar = VarConstraint("L", AnyAttr())
    source = operand_def(TileType.constr(layout=_L))
    result = result_def(TileType.constr(layout=_L))
    traits = traits_def(Pure(), Canonical())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue | Operation, result: TileType):
        super().__init__(operands=[source], result_types=[result])

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """Source and result."""
        return ((self.source, self.result),)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """An instruction for each element."""
        return elementwise_cost(self.result, layouts[self.result], 1)

    def repeats(self) -> bool:
        """Always."""
        return True

    def origin(self, names: Names) -> tuple[SSAValue, Names]:
        """The source, element by element."""
        return self.source, names

    def verify_(self) -> None:
        _check_shapes(self.name, self.source, self.result)
        source, result = (tile_of(tile).element_type for tile in (self.source, self.result))
        if is_predicate(result) and not is_predicate(source):
            raise VerifyException("frag.cast gives no i1; compare in frag.map (arith.cmpf, cmpi)")


@op_definition
class MapOp(IRDLOperation, LayoutInterface, FragmentwiseInterface):
    """Applies scalar operations to every element: the region gets one element of each tile.

    All tiles have one shape and one layout. Besides its arguments the region may use scalars
    defined outside.
    """

    name = "frag.map"
    tiles = var_operand_def(TileType)
    body = region_def("single_block")
    result = result_def(TileType)
    traits = traits_def(Pure())
    assembly_format = "$tiles attr-dict `:` type($tiles) `->` type($result) $body"

    def __init__(self, tiles: Sequence[SSAValue | Operation], body: Region, result: TileType):
        super().__init__(operands=[tiles], regions=[body], result_types=[result])

    def same_layout(self) -> Iterable[Sequence[SSAValue]]:
        """All tiles."""
        return ((*self.tiles, self.result),)

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """An instruction for each element and operation of the region."""
        operations = sum(1 for op in self.body.block.ops if op.operands) - 1
        return elementwise_cost(self.result, layouts[self.result], max(0, operations))

    def repeats(self) -> bool:
        """Always."""
        return True

    def verify_(self) -> None:
        wanted = self.result.type
        for tile in map(tile_of, self.tiles):
            if not tile.goes_with(wanted):
                raise VerifyException(
                    f"frag.map: {tile} and the result {wanted} differ in shape or layout"
                )
        check_elementwise(self.name, self.body.block, [tile_of(t).element_type for t in self.tiles])
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        if last.value.type != wanted.element_type:
            raise VerifyException(
                f"frag.map yields {last.value.type}, its result holds {wanted.element_type}"
            )


def check_elementwise(name: str, block: Block, expected: Sequence[Attribute]) -> None:
    """Whether a region takes scalars of these types and ends in frag.yield."""
    found = [argument.type for argument in block.args]
    if found != list(expected):
        raise VerifyException(
            f"{name}: the region takes ({', '.join(map(str, found))}), "
            f"it needs ({', '.join(map(str, expected))})"
        )
    if not isinstance(block.last_op, YieldOp):
        raise VerifyException(f"{name}: the region must end in frag.yield")
    if len(block.last_op.values) != 1:
        raise VerifyException(
            f"{name}: the region yields {len(block.last_op.values)} values; an element is one"
        )


@op_definition
class YieldOp(IRDLOperation):
    """The values of a region: of an elementwise one, the element."""

    name = "frag.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "($values^)? attr-dict (`:` type($values)^)?"

    def __init__(self, *values: SSAValue | Operation):
        super().__init__(operands=[values])

    @property
    def value(self) -> SSAValue:
        """The only one."""
        (value,) = self.values
        return value


def elementwise_cost(tile: SSAValue, layout: Attribute, operations: int) -> float:
    """What it costs to do so many operations on every element that a lane has of a tile."""
    from fragir.layout.planning.costs import COSTS

    if not isinstance(layout, LayoutAttr):
        return 0.0
    places = layout.layout(*tile_of(tile).shape)
    elements = places.size("element") if "element" in places.names else 1
    return elements * operations * COSTS.issue


# --- layouts in two spellings ---------------------------------------------------------------------


def respell(module: ModuleOp) -> bool:
    """Joins what loops yield, functions return, and calls hand over and get; whether anything."""
    functions = {op.sym_name.data: op for op in module.walk() if isinstance(op, func.FuncOp)}
    changed = False
    for op in list(module.walk()):
        if isinstance(op, func.CallOp):
            called = functions.get(op.callee.string_value())
            if called is not None:
                changed |= _join(op, list(called.function_type.inputs))
                changed |= _join_results(op, list(called.function_type.outputs))
        elif isinstance(op, func.ReturnOp):
            owner = op.parent_op()
            if isinstance(owner, func.FuncOp):
                changed |= _join(op, list(owner.function_type.outputs))
        elif isinstance(op, scf.YieldOp):
            loop = op.parent_op()
            if isinstance(loop, scf.ForOp):
                changed |= _join(op, [value.type for value in loop.iter_args])
    return changed


def _join(op: Operation, wanted: list[Attribute]) -> bool:
    """Operands get the types that are wanted."""
    changed = False
    for number, (value, type_) in enumerate(zip(op.operands, wanted, strict=False)):
        if value.type != type_ and _are_alike(value.type, type_):
            op.operands[number] = _cast_sign(op, value, type_, InsertPoint.before(op))
            changed = True
    return changed


def _join_results(call: func.CallOp, given: list[Attribute]) -> bool:
    """Results get the types that the function gives, and are converted into those written."""
    changed = False
    for result, type_ in zip(call.results, given, strict=False):
        written = result.type
        if written != type_ and _are_alike(written, type_):
            uses = list(result.uses)
            result = Rewriter.replace_value_with_new_type(result, type_)
            converted = _cast_sign(call, result, written, InsertPoint.after(call))
            for use in uses:
                use.operation.operands[use.index] = converted
            changed = True
    return changed


def _are_alike(one: Attribute, other: Attribute) -> bool:
    if not isinstance(one, TileType) or not isinstance(other, TileType):
        return False
    placed = one.placement is not None and other.placement is not None
    return placed and one.element_type == other.element_type and one.goes_with(other)


def _cast_sign(op: Operation, value: SSAValue, type_: Attribute, at: InsertPoint) -> SSAValue:
    assert isinstance(type_, TileType)
    made = ConvertOp(value, type_)
    made.location = op.location
    Rewriter.insert_op(made, at)
    return made.result
