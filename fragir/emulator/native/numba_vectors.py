"""Vectors of eight and bit patterns for functions that numba compiles, as LLVM has them.

numba's own loops become vectors only for some processors; these do for all of them.
"""

# numba has no types, and its intrinsics have an argument more than their callers give.
# pyright: basic, reportMissingImports=false, reportMissingTypeStubs=false, reportCallIssue=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WORD, _LONG, _FLOAT = ir.IntType(32), ir.IntType(64), ir.FloatType()
_WORDS, _FLOATS = ir.VectorType(_WORD, 8), ir.VectorType(_FLOAT, 8)


class _Rows:
    """Code for a row of A against eight columns of B: arrays, and a loop over k."""

    def __init__(self, context: Any, builder: Any, signature: Any, arguments: Any) -> None:
        self.builder = builder
        self.arguments = arguments
        self.types = signature.args
        self.context = context

    def at(self, number: int, index: Any) -> Any:
        """The address of an element of an argument that is an array."""
        array = self.context.make_array(self.types[number])
        data = array(self.context, self.builder, self.arguments[number]).data
        return self.builder.gep(data, [index])

    def load(self, number: int, index: Any, vector: Any) -> Any:
        pointer = self.builder.bitcast(self.at(number, index), vector.as_pointer())
        found = self.builder.load(pointer)
        found.align = 4
        return found

    def store(self, value: Any, number: int, index: Any) -> None:
        pointer = self.builder.bitcast(self.at(number, index), value.type.as_pointer())
        self.builder.store(value, pointer).align = 4

    def eight(self, value: Any) -> Any:
        """A number, eight times."""
        none = ir.Constant(ir.VectorType(value.type, 8), ir.Undefined)
        one = self.builder.insert_element(none, value, ir.Constant(_WORD, 0))
        return self.builder.shuffle_vector(one, none, ir.Constant(_WORDS, [0] * 8))

    def loop(self, sparse: bool, vector: Any, step: Any) -> None:
        """`out[x..x+8] = step(out, a[at_a + k], b[at_b + 8 row])` for k from first to last.

        Arguments: out, x, a, at_a, b, at_b, kept, at_kept, first, last. Row: k, or `kept` of it.
        """
        builder = self.builder
        _, x, _, at_a, _, at_b, _, at_kept, first, last = self.arguments[:10]
        total = cgutils.alloca_once_value(builder, self.load(0, x, _WORDS))
        one, eight = ir.Constant(_LONG, 1), ir.Constant(_LONG, 8)
        with cgutils.for_range_slice(builder, first, last, one) as (k, _):
            row = k
            if sparse:
                row = builder.sext(builder.load(self.at(6, builder.add(at_kept, k))), _LONG)
            a = self.eight(builder.load(self.at(2, builder.add(at_a, k))))
            b = self.load(4, builder.add(at_b, builder.mul(row, eight)), vector)
            builder.store(step(builder.load(total), a, b), total)
        self.store(builder.load(total), 0, x)


def _leading_code(sparse: bool) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def step(total: Any, a: Any, b: Any) -> Any:
            one = builder.add(a, b)
            return builder.select(builder.icmp_signed(">", one, total), one, total)

        _Rows(context, builder, signature, arguments).loop(sparse, _WORDS, step)
        return context.get_dummy_value()

    return code


def _terms_code(sparse: bool) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        rows = _Rows(context, builder, signature, arguments)
        scale = rows.load(10, arguments[1], _FLOATS)

        def step(total: Any, a: Any, b: Any) -> Any:
            term = builder.fmul(builder.fmul(a, b), scale)
            return builder.add(total, builder.fptosi(term, _WORDS))

        rows.loop(sparse, _FLOATS, step)
        return context.get_dummy_value()

    return code


def _integers_code(sparse: bool) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def step(total: Any, a: Any, b: Any) -> Any:
            return builder.add(total, builder.mul(a, b))

        _Rows(context, builder, signature, arguments).loop(sparse, _WORDS, step)
        return context.get_dummy_value()

    return code


@intrinsic
def leading(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last):
    """out = max(out, a + b): the largest exponents of products."""
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last)
    return types.void(*arguments), _leading_code(False)


@intrinsic
def leading_sparse(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last):
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last)
    return types.void(*arguments), _leading_code(True)


@intrinsic
def terms(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last, scale):
    """out += int32(a b scale): products, cut."""
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last, scale)
    return types.void(*arguments), _terms_code(False)


@intrinsic
def terms_sparse(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last, scale):
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last, scale)
    return types.void(*arguments), _terms_code(True)


@intrinsic
def integers(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last):
    """out += a b, in 32 bits."""
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last)
    return types.void(*arguments), _integers_code(False)


@intrinsic
def integers_sparse(typing, out, x, a, at_a, b, at_b, kept, at_kept, first, last):
    arguments = (out, x, a, at_a, b, at_b, kept, at_kept, first, last)
    return types.void(*arguments), _integers_code(True)


def _cast_code(to: Any) -> Any:
    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], to)

    return code


@intrinsic
def float_of(typing, x):
    return types.float32(types.uint32), _cast_code(_FLOAT)


@intrinsic
def bits_of(typing, x):
    return types.uint32(types.float32), _cast_code(_WORD)


@intrinsic
def double_of(typing, x):
    return types.float64(types.int64), _cast_code(ir.DoubleType())


@intrinsic
def bits_of_double(typing, x):
    return types.int64(types.float64), _cast_code(_LONG)


@intrinsic
def trunc(typing, x):
    """A double without its fraction."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.DoubleType()
        function = builder.module.declare_intrinsic("llvm.trunc", [kind])
        return builder.call(function, arguments)

    return types.float64(types.float64), code
