"""Fragments element by element and word by word.

Scalar operations, other names for the same registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import element_name, is_predicate
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.tile_access import split


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
            values[op.result] = ar.splat(ar.literal(op.value), count)
            continue
        if isinstance(op, arith.MulfOp) and op.fastmath.data and can_join_sum(op):
            fused.add(op.result)
            continue
        if fused and isinstance(op, arith.AddfOp | arith.SubfOp) and fused & {op.lhs, op.rhs}:
            values[op.result] = _fma(ar, op, fused, operand)
            continue
        operands = [operand(value) for value in op.operands]
        if isinstance(op, arith.CmpiOp | arith.CmpfOp | arith.SelectOp):
            values[op.results[0]] = _vectorize(ar, op, operands)
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


def can_join_sum(op: arith.MulfOp) -> bool:
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


def _vectorize(
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


# -- words -----------------------------------------------------------------------------------------
# Fragments as 32-bit words and back: other names for the same registers.
#
# Elements of 8 and 16 bits lie in a word lowest first, elements of 64 bits are two words, the low
# one first. Elements of less than a byte are moved with the registers that hold them.

WORD = 32  # bits


def words_of(ar: Arithmetic, fragments: Sequence[SSAValue]) -> list[SSAValue]:
    """The words of a tile's fragments in this lane, as i32."""
    element = ptx.scalar_type(fragments[0].type)
    whole = _join_fragments(ar, fragments, element)
    count = ptx.registers(whole.type) * ptx.register_bits(whole.type) // WORD
    words = ar.insert(ptx.BitcastOp(whole, ptx.vector_type(i32, count))).result
    return list(ar.insert(ptx.UnpackOp(words)).scalars)


def _join_fragments(ar: Arithmetic, fragments: Sequence[SSAValue], element: Attribute) -> SSAValue:
    """All fragments as one vector; elements are packed anew where they end inside of a word."""
    if len(fragments) == 1:
        return fragments[0]
    if ptx.length(fragments[0].type) * ptx.bits(element) % WORD == 0:
        return ar.insert(ptx.ConcatOp(fragments)).result
    scalars = [x for fragment in fragments for x in split(ar, fragment, 1)]
    return ar.insert(ptx.PackOp(scalars)).result


def fragments_from(
    ar: Arithmetic, words: Sequence[SSAValue], element: Attribute, chunk: int, count: int
) -> list[SSAValue]:
    """`count` fragments of `chunk` elements from the words of all of them, or from more."""
    bits = ptx.bits(element)
    vector = ar.insert(ptx.PackOp(words[: -(-chunk * count * bits // WORD)])).result
    if count == 1 or chunk * bits % WORD == 0:
        whole = ptx.vector_type(element, chunk * count)
        return _split_fragments(ar, ar.insert(ptx.BitcastOp(vector, whole)).result, chunk)
    filled = ptx.vector_type(element, ptx.length(vector.type) * WORD // bits)
    scalars = ar.insert(ptx.UnpackOp(ar.insert(ptx.BitcastOp(vector, filled)).result)).scalars
    return [
        ar.insert(ptx.PackOp(scalars[first : first + chunk])).result
        for first in range(0, chunk * count, chunk)
    ]


def _split_fragments(ar: Arithmetic, vector: SSAValue, chunk: int) -> list[SSAValue]:
    """A vector in vectors of `chunk` elements, which fill registers."""
    total, element = ptx.length(vector.type), ptx.scalar_type(vector.type)
    if total == chunk:
        return [vector]
    return [
        ar.insert(ptx.SliceOp(vector, first, ptx.vector_type(element, chunk))).result
        for first in range(0, total, chunk)
    ]


# -- renaming --------------------------------------------------------------------------------------
# Fragments made of elements of others in the same lane: registers get other names.


def per_register(element: Attribute) -> int:
    """How many elements of a type share a register."""
    return 1 if is_predicate(element) else max(1, WORD // ptx.bits(element))


def is_whole(picked: Sequence[int], per: int) -> bool:
    """Whether registers of so many elements stay whole: which they are, and their order."""
    return len(picked) % per == 0 and all(
        _follow_each_other(picked[at : at + per], per) for at in range(0, len(picked), per)
    )


def pick_elements(
    ar: Arithmetic, fragments: Sequence[SSAValue], picked: Sequence[int], chunk: int
) -> list[SSAValue]:
    """Vectors of `chunk` elements: for each its number among those of the fragments, in order.

    Registers that stay whole are not taken apart. Elements have a byte or more, or all stay whole.
    """
    per = per_register(ptx.scalar_type(fragments[0].type))
    if chunk % per or any(ptx.length(fragment.type) % per for fragment in fragments):
        scalars = [x for fragment in fragments for x in split(ar, fragment, 1)]
        return [
            ar.insert(ptx.PackOp([scalars[number] for number in picked[at : at + chunk]])).result
            for at in range(0, len(picked), chunk)
        ]
    registers = [part for fragment in fragments for part in split(ar, fragment, per)]
    apart: dict[int, list[SSAValue]] = {}

    def scalar(number: int) -> SSAValue:
        register, place = divmod(number, per)
        if register not in apart:
            apart[register] = split(ar, registers[register], 1)
        return apart[register][place]

    def made(numbers: Sequence[int]) -> SSAValue:
        if per == 1 or _follow_each_other(numbers, per):
            return registers[numbers[0] // per]
        return ar.insert(ptx.PackOp([scalar(number) for number in numbers])).result

    parts = [made(picked[at : at + per]) for at in range(0, len(picked), per)]
    size = chunk // per
    return [_join(ar, parts[at : at + size], per) for at in range(0, len(parts), size)]


def _follow_each_other(numbers: Sequence[int], per: int) -> bool:
    """Whether these are all the elements of one register."""
    first = numbers[0]
    return first % per == 0 and list(numbers) == list(range(first, first + per))


def _join(ar: Arithmetic, parts: Sequence[SSAValue], per: int) -> SSAValue:
    if per == 1:
        return ar.insert(ptx.PackOp(parts)).result
    return parts[0] if len(parts) == 1 else ar.insert(ptx.ConcatOp(parts)).result
