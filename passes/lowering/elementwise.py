"""Scalar operations on every element of a fragment: the same operations on vectors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import element_name
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic


def clone_elementwise(
    ar: Arithmetic,
    block: Block,
    arguments: Sequence[SSAValue],
    count: int,
    outside: Callable[[SSAValue], SSAValue],
) -> SSAValue:
    """The region's value on vectors of `count` elements; `outside` gives scalars from outside."""
    (value,) = clone_region(ar, block, arguments, count, outside)
    return value


def clone_region(
    ar: Arithmetic,
    block: Block,
    arguments: Sequence[SSAValue],
    count: int,
    outside: Callable[[SSAValue], SSAValue],
) -> list[SSAValue]:
    """The same of a region that yields any number of values."""
    values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
    fused: set[SSAValue] = set()  # products that are formed with the sum that they go into

    def operand(value: SSAValue) -> SSAValue:
        known = values.get(value)
        return ar.splat(outside(value), count) if known is None else known

    for op in block.ops:
        ar.location = op.location
        if op.next_op is None:
            return [operand(value) for value in op.operands]
        if op.regions:
            raise FragirError(
                f"{op.name} stands in an elementwise region",
                hint="use arith and math on scalars; arith.select instead of scf.if",
            )
        if isinstance(op, arith.ConstantOp):
            attribute = op.value
            scalar = ar.pure(("constant", attribute), (), lambda a=attribute: arith.ConstantOp(a))
            values[op.result] = ar.splat(scalar, count)
            continue
        if isinstance(op, arith.MulfOp) and op.fastmath.data and joins_a_sum(op):
            fused.add(op.result)
            continue
        if fused and isinstance(op, arith.AddfOp | arith.SubfOp) and fused & {op.lhs, op.rhs}:
            values[op.result] = _fma(ar, op, fused, operand)
            continue
        operands = [operand(value) for value in op.operands]
        if isinstance(op, arith.CmpiOp | arith.CmpfOp | arith.SelectOp):
            values[op.results[0]] = _vectorized(ar, op, operands)
            continue
        types = [ptx.vector_type(type_, count) for type_ in op.result_types]
        if (rule := op.name.removeprefix("arith.")) in ptx.CAST_RULES:
            new = ptx.CvtOp(operands[0], types[0], rule=rule)
            values[op.results[0]] = ar.insert(new).result
            continue
        new = ar.insert(
            type(op).create(operands=operands, result_types=types, properties=dict(op.properties))
        )
        values.update(zip(op.results, new.results, strict=True))
    raise FragirError("an elementwise region ends in frag.yield")


def joins_a_sum(op: arith.MulfOp) -> bool:
    """Whether a product may be formed with the one sum or difference that it goes into."""
    contract = FastMathFlag.ALLOW_CONTRACT
    use = op.result.get_user_of_unique_use()
    return (
        contract in op.fastmath.data
        and isinstance(use, arith.AddfOp | arith.SubfOp)
        and contract in use.fastmath.data
        and use.parent is op.parent
    )


def _fma(
    ar: Arithmetic,
    op: arith.AddfOp | arith.SubfOp,
    fused: set[SSAValue],
    operand: Callable[[SSAValue], SSAValue],
) -> SSAValue:
    """x y + z, x y - z or z - x y, rounded once."""
    from xdsl.dialects import math  # few programs need it, and it is large

    product, other = (op.lhs, op.rhs) if op.lhs in fused else (op.rhs, op.lhs)
    assert isinstance(product.owner, arith.MulfOp)
    x, y = (operand(value) for value in product.owner.operands)
    z = fused_value(ar, other, fused, operand)
    if isinstance(op, arith.SubfOp):
        if product is op.lhs:
            z = ar.insert(arith.NegfOp(z)).result
        else:
            x = ar.insert(arith.NegfOp(x)).result
    return ar.insert(math.FmaOp(x, y, z)).result


def fused_value(
    ar: Arithmetic,
    value: SSAValue,
    fused: set[SSAValue],
    operand: Callable[[SSAValue], SSAValue],
) -> SSAValue:
    """The other term of a sum: of two products one is rounded by itself."""
    if value not in fused:
        return operand(value)
    assert isinstance(value.owner, arith.MulfOp)
    x, y = (operand(factor) for factor in value.owner.operands)
    return ar.insert(arith.MulfOp(x, y)).result


def _vectorized(
    ar: Arithmetic, op: arith.CmpiOp | arith.CmpfOp | arith.SelectOp, operands: Sequence[SSAValue]
) -> SSAValue:
    """Comparisons and selections, which arith knows of one i1 only."""
    if isinstance(op, arith.SelectOp):
        return ar.insert(ptx.SelectOp(*operands)).result
    names = (
        arith.CMPI_COMPARISON_OPERATIONS
        if isinstance(op, arith.CmpiOp)
        else arith.CMPF_COMPARISON_OPERATIONS
    )
    return ar.insert(ptx.CompareOp(names[op.predicate.value.data], *operands)).result


def cast_op(ar: Arithmetic, value: SSAValue, source: Attribute, target: Attribute) -> SSAValue:
    """A vector with elements of another type."""
    if source == target:
        return value
    wanted = ptx.vector_type(target, ptx.length(value.type))
    owner = value.owner
    if isinstance(owner, Operation) and owner.name == "ptx.nibbles":
        if isinstance(owner, ptx.NibblesOp) and element_name(target) in ptx.ORDERED_CASTS:
            return ar.insert(ptx.CvtOp(owner.source, wanted, owner.picked)).result
    return ar.insert(ptx.CvtOp(value, wanted)).result
