"""What a program promises of sizes that a launch brings with it: `frag.divisible`.

    func.func @gemm(...) attributes {frag.divisible = {n = 16, k = 16}}

says that n and k are multiples of 16 in every launch. Names are those of `frag.sizes`, else what
the product calls its sizes (m, n, k); a dimension without a name is `a_d1`, a dynamic stride
`a_s0`, after the argument and the dimension. The compiler uses it for the width of accesses and to
leave out tests; a launch that breaks a promise is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DictionaryAttr,
    IntAttr,
    IntegerAttr,
    StridedLayoutAttr,
)
from xdsl.ir import Attribute

from fragir.dialects.frag.attributes import ExplicitLayoutAttr, sizes_of
from fragir.dialects.frag.grid import Extent
from fragir.dialects.narrow import memref_type

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp

DIVISIBLE = "frag.divisible"
LEAST = "frag.least"
Names = tuple[int | str, ...]


def promises_error(attribute: Attribute | None) -> str | None:
    """What is wrong with a `frag.divisible`; None where all is well."""
    if attribute is None:
        return None
    hint = "write a positive number for each size: frag.divisible = {n = 16}"
    if not isinstance(attribute, DictionaryAttr):
        return f"frag.divisible = {attribute} names no sizes; {hint}"
    for name, number in attribute.data.items():
        if not isinstance(number, IntegerAttr) or not 1 <= number.value.data < 1 << 31:
            return f"frag.divisible promises that {name} is a multiple of {number}; {hint}"
    return None


def promises_of(function: FuncOp) -> dict[str, int]:
    """What a function's `frag.divisible` promises: name of a size -> what divides it."""
    attribute = function.attributes.get(DIVISIBLE)
    if not isinstance(attribute, DictionaryAttr):
        return {}
    return {
        name: number.value.data
        for name, number in attribute.data.items()
        if isinstance(number, IntegerAttr)
    }


def least_of(function: FuncOp, index: int) -> tuple[Extent, ...]:
    """How large an argument must at least be (`frag.least`), one extent a dimension; () where
    nothing is said."""
    if function.arg_attrs is None:
        return ()
    given = function.arg_attrs.data[index].data.get(LEAST)
    if given is None:
        return ()
    from fragir.dialects.frag.least import LeastAttr  # few programs have them

    return given.data if isinstance(given, LeastAttr) else ()


def size_names(function: FuncOp, index: int) -> tuple[Names, Names | None]:
    """The dimensions and the strides of a function's memory argument.

    Static ones are numbers, dynamic ones names. None for the strides of row-major order.
    """
    argument = function.body.block.args[index]
    type_ = memref_type(argument.type)
    base = argument.name_hint or f"arg{index}"
    given: tuple[str, ...] = ()
    if function.arg_attrs is not None:
        given = sizes_of(function.arg_attrs.data[index].data.get("frag.sizes"))
    dims = tuple(
        (given[d] if d < len(given) else f"{base}_d{d}") if size == DYNAMIC_INDEX else size
        for d, size in enumerate(type_.get_shape())
    )
    if isinstance(type_.layout, ExplicitLayoutAttr):
        known = type_.layout.get_strides()
        return dims, None if known is None else tuple(known)
    if not isinstance(type_.layout, StridedLayoutAttr):
        return dims, None
    strides = tuple(
        stride.data if isinstance(stride, IntAttr) else f"{base}_s{d}"
        for d, stride in enumerate(type_.layout.strides.data)
    )
    return dims, strides
