"""Shorter ways to the same bits, for what kernels are made of: see `numbers/quick.py`."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from fragir.emulator.numbers import quick
from fragir.emulator.numbers.types import Array, DType, some, width_of
from fragir.emulator.values import reals
from fragir.emulator.values.arrays import UFUNCS, Function, Writer, dtype, of1, of3
from fragir.emulator.values.language import (
    BOOL,
    INTEGERS,
    INTEGRAL,
    ROUNDINGS,
    Computation,
    Node,
    range_of,
    walk,
)


class Quick(NamedTuple):
    """A short road: a function of arrays of `given` to one of `into` (None: as they are)."""

    function: Function
    given: DType | None = None
    into: DType | None = None


#: The type in which the functions of `numbers/quick.py` take and give the values of a format.
TYPES: dict[str, DType] = {
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": np.dtype(np.uint16),
}
_SUMS: dict[str, np.ufunc] = {"+": np.add, "-": np.subtract, "*": np.multiply}
_NATIVE: dict[str, Callable[[np.ufunc], Function]] = {
    "f32": quick.native,
    "f16": quick.native_half,
    "bf16": quick.native_brain,
}
_FUSED: dict[str, Function] = {
    "f32": quick.fma_single,
    "f16": quick.fma_half,
    "bf16": quick.fma_brain,
}
_EXTREME: dict[str, Callable[[bool, bool], Function]] = {
    "f32": quick.extreme_single,
    "f16": quick.extreme_half,
    "bf16": quick.extreme_brain,
}


def _from_half(a: Array) -> Array:
    return quick.canonical(a.astype(np.float32))


def _from_brain(a: Array) -> Array:
    return quick.canonical(quick.brain_values(a))


_CONVERSIONS: dict[tuple[str, str], Function] = {
    ("f16", "f32"): quick.half,
    ("bf16", "f32"): quick.brain_of_single,
    ("f32", "f16"): _from_half,
    ("f32", "bf16"): _from_brain,
}
#: Words that the roads do not know; of ftz they know that of f32.
_LONG = frozenset(("sat", "relu", "oob", "xorsign", "satfinite", *INTEGRAL)) | {"abs"}


@lru_cache(maxsize=1 << 12)
def short_road(value: Computation) -> Quick | None:
    """A quick function of the operands; None where there is none."""
    node = value.results["d"]
    mode = next((w for w in value.words if w in ROUNDINGS), "rn")
    if node.op == "integer":
        return _to_integer(value, node)
    if node.type == BOOL:
        return _comparison(value, node)
    if mode != "rn" or not _LONG.isdisjoint(value.words) or len(value.results) > 1:
        return None
    if node.type not in TYPES:
        return None
    flushes, node = _without_flush(node)
    form, into = node.type, TYPES[node.type]
    kinds = [o.type for o in value.operands.values()]
    found: Function | None = None
    given = into
    if node.op in ("min", "max"):
        found = _extremes(node)
    elif node.op in ("round", "approx"):
        (exact,) = node.args
        if exact.op in ("operand", "flush"):
            return _conversion(exact, form, flushes)
        if set(kinds) == {form}:
            found = _arithmetic(exact, form) if node.op == "round" else _near(exact, form, value)
    if found is None:
        return None
    if flushes or any(n.op == "flush" for n in walk(node)):
        if form != "f32":
            return None
        found = _flushing(found)
    return Quick(found, given, into)


def _without_flush(node: Node) -> tuple[bool, Node]:
    return (True, node.args[0]) if node.op == "flush" else (False, node)


def _flushing(function: Function) -> Function:
    """Subnormal f32 operands and results become zeros."""

    def operate(*operands: Array) -> Array:
        return quick.flush_subnormal(function(*[quick.flush_subnormal(x) for x in operands]))

    return operate


def _are_plain_operands(nodes: tuple[Node, ...]) -> bool:
    """Whether they are the operands a, b, c in this order, or those flushed."""
    inner = [_without_flush(n)[1] for n in nodes]
    return all(n.op == "operand" and n.value == w for n, w in zip(inner, "abc", strict=False))


def _arithmetic(exact: Node, form: str) -> Function | None:
    if exact.op in _SUMS and _are_plain_operands(exact.args):
        return _NATIVE[form](_SUMS[exact.op])
    if exact.op == "+" and exact.args[0].op == "*":
        return _FUSED[form] if _are_plain_operands((*exact.args[0].args, exact.args[1])) else None
    if form == "f32" and exact.op in ("/", "sqrt") and _are_plain_operands(exact.args):
        return quick.native(np.divide if exact.op == "/" else np.sqrt)
    return None


def _near(exact: Node, form: str, value: Computation) -> Function | None:
    """A function computed in f64 and rounded once."""
    if form == "bf16":
        return None
    writer = Writer(value, {})
    writer.near = writer.values = True
    core = writer.function(list(value.operands), writer.real(_bare(exact)))
    narrow = quick.single if form == "f32" else quick.half

    def operate(*operands: Array) -> Array:
        return narrow(core(*[x.astype(np.float64) for x in operands]))

    return operate


def _bare(node: Node) -> Node:
    """Without flushing, which is done around it."""
    if node.op == "flush":
        return _bare(node.args[0])
    return Node(node.op, node.type, tuple(map(_bare, node.args)), node.value)


def _extremes(node: Node) -> Function | None:
    """max and min of two, or of three, operands."""
    pair = _EXTREME[node.type](node.op == "max", "NaN" in node.value)
    if _are_plain_operands(node.args):
        return pair
    inner, last = node.args
    if inner.op != node.op or not _are_plain_operands((*inner.args, last)):
        return None
    return of3(lambda a, b, c: pair(pair(a, b), c))


def _to(kind: DType) -> Function:
    return of1(lambda a: a.astype(kind))


def _conversion(exact: Node, form: str, flushes: bool) -> Quick | None:
    """cvt to a floating-point type: from another, or from an integer that f64 holds."""
    flushed, operand = _without_flush(exact)
    kind, into = operand.type, TYPES[form]
    if kind in INTEGERS:
        if width_of(kind) > 32:
            return None
        narrow = quick.brain if form == "bf16" else _to(into)
        return Quick(of1(lambda a: narrow(a.astype(np.float64))), dtype(kind), into)
    found = _CONVERSIONS.get((form, kind))
    if found is None:
        return None
    narrow = found
    if flushed:
        return Quick(of1(lambda a: narrow(quick.flush_subnormal(a))), TYPES[kind], into)
    if flushes:
        return Quick(of1(lambda a: quick.flush_subnormal(narrow(a))), TYPES[kind], into)
    return Quick(narrow, TYPES[kind], into)


def _to_integer(value: Computation, node: Node) -> Quick | None:
    """cvt of f32, f16 or bf16 to an integer of at most 32 bits."""
    (exact,) = node.args
    if exact.op != "operand" or exact.type not in TYPES or width_of(node.type) > 32:
        return None
    mode = next(INTEGRAL[w] for w in value.words if w in INTEGRAL)
    whole, into, is_brain = reals.WHOLE[mode], dtype(node.type), exact.type == "bf16"
    low, high = range_of(node.type)
    least, most = np.array(low, np.float64), np.array(high, np.float64)

    def convert(a: Array) -> Array:
        found = (quick.brain_values(a) if is_brain else a).astype(np.float64)
        whole(found, out=found)
        np.maximum(found, least, out=found)
        np.minimum(found, most, out=found)
        nan = np.isnan(found)
        if some(nan):
            found[nan] = 0
        return found.astype(into)

    return Quick(convert, TYPES[exact.type], into)


def _comparison(value: Computation, node: Node) -> Quick | None:
    """f32 and f64 are compared as numpy does."""
    kinds = sorted({o.type for o in value.operands.values()})
    if len(kinds) != 1 or kinds[0] not in ("f32", "f64") or value.elements > 1:
        return None
    kind = kinds[0]
    if any(n.type not in (BOOL, kind) or n.op == "flush" for n in walk(node)):
        return None
    if any(n.type == kind and n.op != "operand" for n in walk(node)):
        return None
    seen = np.dtype(f"f{width_of(kind) // 8}")
    names = [a.value for a in node.args]
    if node.op in UFUNCS and names == list(value.operands):
        return Quick(UFUNCS[node.op], seen)
    writer = Writer(value, {})
    writer.values = True
    return Quick(writer.function(list(value.operands), writer.text(node)), seen)
