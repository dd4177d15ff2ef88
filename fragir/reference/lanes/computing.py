"""Statements that compute on a lane's own registers: integers, bits, and floats of f32."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fragir.reference import elementwise
from fragir.reference.formats import FLOATS, Array, type_name
from fragir.reference.lanes.exchange import permute_bytes
from fragir.reference.lanes.statements import Executed, Given, opcode

ALL = 0xFFFFFFFF
#: Of numbers without a sign, by all words of the opcode; PTX ISA 9.2, sections 9.7.1 and 9.7.8.
_ONE: dict[str, Callable[[Array], object]] = {
    "not.b32": lambda a: ~a,
    "cnot.b32": lambda a: (a == 0).astype(np.int64),
    "popc.b32": lambda a: _count(a),
    "clz.b32": lambda a: 32 - _length(a),
    "brev.b32": lambda a: _reverse_bits(a),
    "bfind.u32": lambda a: _length(a) - 1,
    "neg.s32": lambda a: -a,
    "abs.s32": lambda a: np.abs(_signed_values(a)),
    **{f"mov.{type_}": lambda a: a for type_ in ("b32", "u32", "s32")},
}
_TWO: dict[str, Callable[[Array, Array], object]] = {
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "shl.b32": lambda a, b: np.where(b > 31, 0, a << np.minimum(b, 31)),
    **{
        f"shr.{type_}": lambda a, b: np.where(b > 31, 0, a >> np.minimum(b, 31))
        for type_ in ("u32", "b32")
    },
    "shr.s32": lambda a, b: _signed_values(a) >> np.minimum(b, 31),
    **{f"add.{type_}": lambda a, b: a + b for type_ in ("s32", "u32")},
    **{f"sub.{type_}": lambda a, b: a - b for type_ in ("s32", "u32")},
    **{f"mul.lo.{type_}": lambda a, b: _low(a, b) for type_ in ("s32", "u32")},
    "min.u32": lambda a, b: np.minimum(a, b),
    "max.u32": lambda a, b: np.maximum(a, b),
    "min.s32": lambda a, b: np.minimum(_signed_values(a), _signed_values(b)),
    "max.s32": lambda a, b: np.maximum(_signed_values(a), _signed_values(b)),
}
_THREE: dict[str, Callable[[Array, Array, Array], object]] = {
    **{f"mad.lo.{type_}": lambda a, b, c: _low(a, b) + c for type_ in ("s32", "u32")},
    "bfe.u32": lambda a, b, c: (a >> np.minimum(b & 255, 63)) & _ones(c & 255),
    "shf.l.wrap.b32": lambda a, b, c: (_join_halves(a, b) << _shift(c)) >> np.uint64(32),
    "shf.r.wrap.b32": lambda a, b, c: _join_halves(a, b) >> _shift(c),
}
_WORDS: dict[str, Callable[..., object]] = {**_ONE, **_TWO, **_THREE}
#: Of f32, by the operation that means the same.
_FLOATS = {
    "add.rn.f32": "arith.addf",
    "sub.rn.f32": "arith.subf",
    "mul.rn.f32": "arith.mulf",
    "div.rn.f32": "arith.divf",
    "max.f32": "arith.maxnumf",
    "min.f32": "arith.minnumf",
    "max.NaN.f32": "arith.maximumf",
    "min.NaN.f32": "arith.minimumf",
    "neg.f32": "arith.negf",
    "abs.f32": "math.absf",
    "sqrt.rn.f32": "math.sqrt",
    "ex2.approx.f32": "math.exp2",
    "lg2.approx.f32": "math.log2",
    "rsqrt.approx.f32": "math.rsqrt",
    "sin.approx.f32": "math.sin",
    "cos.approx.f32": "math.cos",
    "tanh.approx.f32": "math.tanh",
}


def _signed_values(a: Array) -> Array:
    return np.where(a >> 31, a - (1 << 32), a)


def _ones(count: Array) -> Array:
    return (np.int64(1) << np.minimum(count, 32)) - 1


def _low(a: Array, b: Array) -> Array:
    return (a * (b & 0xFFFF) + ((a * (b >> 16) & ALL) << 16)) & ALL


def _bits(a: Array) -> Array:
    """[threads, 32], the lowest first."""
    return a[:, None] >> np.arange(32) & 1


def _count(a: Array) -> Array:
    return _bits(a).sum(axis=1)


def _length(a: Array) -> Array:
    """Bits up to the highest that is set."""
    return (_bits(a) * np.arange(1, 33)).max(axis=1)


def _reverse_bits(a: Array) -> Array:
    return (_bits(a) << np.arange(31, -1, -1)).sum(axis=1)


def _join_halves(a: Array, b: Array) -> Array:
    return (b.astype(np.uint64) << np.uint64(32)) | a.astype(np.uint64)


def _shift(c: Array) -> Array:
    return (c & 31).astype(np.uint64)


@opcode(*dict.fromkeys(name.partition(".")[0] for name in (*_WORDS, *_FLOATS)))
def computing_meaning(at: Executed) -> Given:
    name = ".".join(at.words)
    function = _WORDS.get(name)
    if function is None:
        return _of_floats(at, name)
    given = at.read()
    if given is None:
        return None
    words = np.asarray(function(*(value for value, _ in given)))
    known = np.all([known for _, known in given], axis=0)
    # a shift of the high half makes numbers of 64 bits without a sign
    low = words & np.uint64(ALL) if words.dtype == np.uint64 else words
    return [at.from_words(low.astype(np.int64), np.asarray(known))]


def _of_floats(at: Executed, name: str) -> Given:
    operation = _FLOATS.get(name)
    types = [operand.type for operand in at.operands]
    if operation is None or any(t is None or type_name(t) != "f32" for t in types):
        return None
    form, given = FLOATS["f32"], [operand.value for operand in at.operands]
    if len(given) == 1:
        return [elementwise.UNARY[operation](given[0], form)]
    return [elementwise.BINARY[operation](given[0], given[1], form)]


@opcode("fma")
def fma(at: Executed) -> Given:
    types = [operand.type for operand in at.operands]
    if at.words != ("fma", "rn", "f32") or any(t is None for t in types):
        return None
    x, y, z = (operand.value for operand in at.operands)
    return [elementwise.fma(x, y, z, FLOATS["f32"])]


@opcode("lop3")
def lop3(at: Executed) -> Given:
    """Bit i of the last operand is what the bits that make up the number i give."""
    given = at.read()
    if at.words != ("lop3", "b32") or given is None:
        return None
    (a, _), (b, _), (c, _), (table, _) = given
    result = np.zeros_like(a)
    for number in range(8):
        bits = (~(x ^ -(number >> place & 1)) for x, place in ((a, 2), (b, 1), (c, 0)))
        together = np.bitwise_and.reduce(list(bits))
        result |= np.where(table >> number & 1, together, 0)
    return [at.from_words(result, np.all([known for _, known in given], axis=0))]


@opcode("prmt")
def prmt(at: Executed) -> Given:
    given = at.read()
    if at.words != ("prmt", "b32") or given is None:
        return None
    (x, sure), (y, sure2), (selector, chosen_for_sure) = given
    words, chosen = permute_bytes(x, y, selector)
    uses = (chosen < 4).any(axis=-1), (chosen >= 4).any(axis=-1)
    return [at.from_words(words, (sure | ~uses[0]) & (sure2 | ~uses[1]) & chosen_for_sure)]


@opcode("selp")
def selp(at: Executed) -> Given:
    x, y, condition = at.operands
    if x.type != y.type or x.type is None or condition.type is None:
        return None
    return [elementwise.select(condition.value, x.value, y.value)]
