"""A second entry of a kernel, for sizes that are multiples of 16 bytes.

Rows whose length only a launch knows begin anywhere, so that accesses go element by element, copies
are written several times over, and no tensor map takes them. Most launches bring sizes of which
none of this is true. Such a call runs the same program with `frag.divisible` of what its sizes keep
to, compiled when the first call of this kind comes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import lcm
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    ShapedType,
    StringAttr,
    i64,
)

from fragir.compilation.arguments import ALIGNMENT
from fragir.compilation.program import function_of
from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.shorthands import memref_type

if TYPE_CHECKING:
    from fragir.compilation.signature import Argument

SIZES = "frag.sizes"


def multiples(signature: Sequence[Argument], promises: Mapping[str, int]) -> dict[str, int]:
    """What a second entry is promised of sizes: rows of every array that has such a name are
    multiples of 16 bytes. Nothing of what is promised already; of no size where memory is given
    that depends on how the program was compiled (`Argument.least`)."""
    found: dict[str, int] = {}
    if any(argument.least for argument in signature):
        return found
    for argument in signature:
        if not argument.is_memory:
            continue
        each = max(1, 8 * ALIGNMENT // element_bits(memref_type(argument.type).element_type))
        steps = argument.dims[-1:] if argument.strides is None else argument.strides[:-1]
        for name in (*argument.dims[-1:], *steps):
            if isinstance(name, str):
                found[name] = lcm(found.get(name, 1), each)
    return {name: by for name, by in found.items() if promises.get(name, 1) % by}


def promised(
    program: ModuleOp, entry: str, signature: Sequence[Argument], promises: Mapping[str, int]
) -> None:
    """Says in a program, in place, what is promised of the sizes of a signature."""
    function = function_of(program, entry)
    count = len(function.function_type.inputs)
    given = function.arg_attrs
    entries = list(given.data) if given is not None else [DictionaryAttr({})] * count
    for at, argument in enumerate(signature[:count]):
        named = any(isinstance(name, str) for name in argument.dims)
        if named and isinstance(function.function_type.inputs.data[at], ShapedType):
            names = ArrayAttr([StringAttr(str(name)) for name in argument.dims])
            entries[at] = DictionaryAttr({SIZES: names, **entries[at].data})
    function.arg_attrs = ArrayAttr(entries)
    known = frag.promises_of(function)
    every = {name: lcm(by, known.get(name, 1)) for name, by in (known | dict(promises)).items()}
    function.attributes[frag.DIVISIBLE] = DictionaryAttr(
        {name: IntegerAttr(by, i64) for name, by in every.items()}
    )
