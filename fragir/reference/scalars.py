"""The meaning of arith and math, on scalars and element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, ShapedType
from xdsl.ir import Block, Operation

from fragir.dialects.interfaces import MEANINGS
from fragir.dialects.tensors.arithmetic import OnTensors, element_of
from fragir.errors import FragirError
from fragir.reference import elementwise, integers
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    PREDICATE,
    Integers,
    decode,
    encode,
    round_to,
    storage,
    type_name,
)
from fragir.reference.run import Run

_LOGIC: dict[str, np.ufunc] = {
    "arith.andi": np.logical_and,
    "arith.ori": np.logical_or,
    "arith.xori": np.logical_xor,
    "arith.addi": np.logical_xor,
}
# arithmetic of one bit: the low bit of what wider integers give, 1 being -1 where there is a sign
_OF_ONE_BIT = frozenset(
    f"arith.{name}" for name in ("subi", "muli", "maxsi", "minsi", "maxui", "minui")
)
_CASTS = frozenset(
    f"arith.{name}"
    for name in "extf truncf sitofp uitofp fptosi fptoui extsi extui trunci index_cast".split()
)
_FROM_UNSIGNED = ("arith.uitofp", "arith.extui")
_WITHOUT_SIGN = {f"s{bits}": f"u{bits}" for bits in (4, 8, 16, 32, 64)}


def _signs(name: str, source: str, target: str) -> tuple[str, str]:
    """The types of a cast with the signedness that the operation says."""
    if name in _FROM_UNSIGNED:  # values are kept with a sign: read them without one
        source = _WITHOUT_SIGN.get(source, source)
    if name == "arith.fptoui":
        target = _WITHOUT_SIGN.get(target, target)
    return source, target


def constant(run: Run, op: arith.ConstantOp) -> None:
    attribute = op.value
    name = type_name(op.result.type)
    if isinstance(attribute, DenseIntOrFPElementsAttr):
        shape = op.result.type.get_shape() if isinstance(op.result.type, ShapedType) else ()
        values = np.array(list(attribute.iter_values()))
        values = np.full(shape, values.flat[0]) if values.size == 1 else values.reshape(shape)
    elif isinstance(attribute, IntegerAttr | FloatAttr):
        values = np.array(attribute.value.data)
    else:
        raise FragirError(f"the reference does not know the constant {attribute}")
    if name in FLOATS:
        run[op.result] = exactly(round_to(values.astype(np.float64), FLOATS[name]))
    elif name == PREDICATE:
        run[op.result] = exactly(values.astype(np.int64) & 1 == 1)
    else:
        run[op.result] = exactly(INTEGERS[name].wrap(values.astype(np.int64)))


@MEANINGS.attach(
    *(op for op in (*arith.Arith.operations, *math.Math.operations) if op is not arith.ConstantOp)
)
def scalar(run: Run, op: Operation) -> None:
    if len(op.results) == 2:
        form = _integers(type_name(op.results[0].type))
        x, y = (run[value] for value in op.operands)
        run[op.results[0]], run[op.results[1]] = integers.extended_result(op.name, x, y, form)
        return
    run[op.results[0]] = _scalar(run, op)


@MEANINGS.attach(OnTensors)
def on_tensors(run: Run, op: OnTensors) -> None:
    """What the operation on elements gives, of all of them at once."""
    block = Block(arg_types=[element_of(value.type) for value in op.inputs])
    for element, value in zip(block.args, op.inputs, strict=True):
        run[element] = run[value]
    type_ = element_of(op.result.type)
    one = op.scalar.create(operands=block.args, result_types=[type_], properties=op.properties)
    run[op.result] = _scalar(run, one)


def _scalar(run: Run, op: Operation) -> Bounded:
    name = op.name
    operands = [run[value] for value in op.operands]
    if len(op.results) == 1 and (name in _CASTS or name.startswith(("arith.", "math."))):
        result = type_name(op.results[0].type)
        flags = frozenset(f.value for f in getattr(op.properties.get("fastmath"), "data", ()))
        if (
            flags
            and result in FLOATS
            and (found := elementwise.apply(name, flags, operands, result))
        ):
            return found
        if name in elementwise.UNARY and result in FLOATS:
            return elementwise.UNARY[name](operands[0], FLOATS[result])
        if name in elementwise.BINARY and result in FLOATS:
            return elementwise.BINARY[name](operands[0], operands[1], FLOATS[result])
        if name in integers.BINARY:
            return _integer(name, operands, result)
        if name in ("math.ctlz", "math.cttz", "math.ctpop"):
            return integers.bit_counts(name, operands[0], INTEGERS[result])
        if name in _CASTS:
            return cast_as(name, operands[0], type_name(op.operands[0].type), result)
    match op:
        case math.FmaOp():
            x, y, z = operands
            return elementwise.fma(x, y, z, FLOATS[type_name(op.result.type)])
        case math.AbsIOp():
            form = INTEGERS[type_name(op.result.type)]
            return Bounded(form.wrap(np.abs(operands[0].value)), operands[0].bound)
        case arith.BitcastOp():
            return _bitcast(operands[0], type_name(op.input.type), type_name(op.result.type))
        case arith.CmpfOp():
            return elementwise.compare(op.predicate.value.data, operands[0], operands[1])
        case arith.CmpiOp():
            name, number = type_name(op.lhs.type), op.predicate.value.data
            x, y = (_as_int(operand, name, 2 <= number <= 5) for operand in operands)
            return integers.compare(number, x, y, _integers(name))
        case arith.SelectOp():
            return elementwise.select(*operands)
        case _:
            raise FragirError(f"the reference does not know {name}")


def _integer(name: str, operands: Sequence[Bounded], result: str) -> Bounded:
    if result != PREDICATE:
        return integers.apply(name, operands[0], operands[1], INTEGERS[result])
    x, y = operands
    if name not in _LOGIC:
        if name not in _OF_ONE_BIT:
            raise FragirError(f"the reference does not know {name} on i1")
        x, y = (_as_int(operand, result, name.endswith("si")) for operand in operands)
        found = integers.apply(name, x, y, INTEGERS["s32"])
        return Bounded(found.value & 1 == 1, found.bound)
    value = _LOGIC[name](x.value, y.value)
    return Bounded(value, np.maximum(x.bound, y.bound) + np.zeros(value.shape))


def _bitcast(x: Bounded, source: str, target: str) -> Bounded:
    """The same bits as another type; of NaN only that it is one is known."""
    kinds = (storage(source), storage(target))
    if kinds[0].itemsize != kinds[1].itemsize:
        raise FragirError(f"{source} and {target} differ in their bits")
    value = decode(encode(x.value, source).view(kinds[1]), target)
    unsure = (x.bound > 0) | np.isnan(x.value.astype(np.float64))
    return Bounded(value, np.where(unsure, np.inf, 0.0))


def _integers(name: str) -> Integers:
    return INTEGERS["s32" if name == PREDICATE else name]


def _as_int(x: Bounded, name: str, signed: bool) -> Bounded:
    """Of one bit, 1 is -1 where an operation has a sign."""
    value = x.value.astype(np.int64)
    return Bounded(-value if signed and name == PREDICATE else value, x.bound)


def cast_as(name: str, x: Bounded, source: str, target: str) -> Bounded:
    """What a cast of arith makes of a value."""
    if source == PREDICATE and name in ("arith.extsi", "arith.sitofp", "arith.index_cast"):
        x, source = Bounded(-x.value.astype(np.int64), x.bound), "s8"
    found = cast(x, *_signs(name, source, target))
    if name == "arith.fptoui" and target in _WITHOUT_SIGN:  # kept with a sign
        return Bounded(INTEGERS[target].wrap(found.value), found.bound)
    return found


def cast(x: Bounded, source: str, target: str) -> Bounded:
    """An element as another type."""
    if source == target:
        return x
    if target == PREDICATE:
        return Bounded(x.value & 1 == 1, np.where(x.bound > 0, 1.0, 0.0))
    if source == PREDICATE:
        return integers.cast(Bounded(x.value.astype(np.int64), x.bound), "s32", target)
    if source in INTEGERS and not INTEGERS[source].signed:  # values may be kept with a sign
        x = Bounded(INTEGERS[source].wrap(x.value), x.bound)
    return integers.cast(x, source, target)
