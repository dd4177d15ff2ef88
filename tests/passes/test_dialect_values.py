"""What the dialects say of attributes and types, asked without a program."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects import test
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    Float16Type,
    Float32Type,
    IntegerAttr,
    IntegerType,
    Signedness,
    StringAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import NoElementError, element_bits

F16, F32 = Float16Type(), Float32Type()


SIGNED, UNSIGNED, SIGNLESS = Signedness.SIGNED, Signedness.UNSIGNED, Signedness.SIGNLESS
#: width -> what of its signednesses registers and instructions know
INTEGERS = {
    1: {UNSIGNED, SIGNLESS},
    4: {SIGNED, UNSIGNED, SIGNLESS},
    8: {SIGNED, UNSIGNED, SIGNLESS},
    16: {SIGNLESS},
    32: {SIGNED, UNSIGNED, SIGNLESS},
    64: {SIGNLESS},
    128: set[Signedness](),
}


@pytest.mark.parametrize("width", list(INTEGERS))
@pytest.mark.parametrize("sign", list(Signedness))
def test_integers_have_the_bits_that_their_type_says(width: int, sign: Signedness) -> None:
    type_ = IntegerType(width, sign)
    if sign in INTEGERS[width]:
        assert element_bits(type_) == width
    else:
        with pytest.raises(NoElementError):
            element_bits(type_)


@pytest.mark.parametrize(("shape", "names"), [((-1, 0), 1), ((0, -1), 2), ((0,), 0), ((-1, -1), 2)])
def test_dynamic_dimensions_alone_need_names(shape: tuple[int, ...], names: int) -> None:
    """A static dimension of size 0 is none of them."""
    for count in range(len(shape) + 1):
        attribute = ArrayAttr([StringAttr(n) for n in "mn"[:count]])
        assert (frag.sizes_error(attribute, shape) is None) == (count >= names)


@pytest.mark.parametrize(
    ("number", "right"), [(0, False), (1, True), (2**31 - 1, True), (2**31, False)]
)
def test_promises_are_sizes_of_31_bits(number: int, right: bool) -> None:
    promise = DictionaryAttr({"n": IntegerAttr(number, i64)})
    assert (frag.promises_error(promise) is None) == right


def values(*types: Attribute) -> list[SSAValue]:
    return list(test.TestOp(result_types=types).results)


DENSE = "mma.sync.aligned.m16n8k16.row.col.{}.f16.f16.{}"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.{}.f16.f16.{}"


@pytest.mark.parametrize(("sums", "letter"), [(F16, "f16"), (F32, "f32")])
def test_products_have_the_type_of_their_addend_unless_another_is_given(
    sums: Any, letter: str
) -> None:
    c_type = VectorType(sums, [4])
    a, b, c = values(VectorType(F16, [8]), VectorType(F16, [4]), c_type)
    dense = ptx.MmaOp(DENSE.format(letter, letter), a, b, c)
    assert dense.d.type == c_type
    dense.verify()
    a, b, c, e = values(VectorType(F16, [4]), VectorType(F16, [4]), c_type, IntegerType(32))
    sparse = ptx.MmaSparseOp(SPARSE.format(letter, letter), a, b, c, e)
    assert sparse.d.type == c_type
    # D and C differ in m8n8k4 of f16: the type that is given is the product's
    other = VectorType(F32, [8])
    a, b, c = values(VectorType(F16, [4]), VectorType(F16, [4]), VectorType(F16, [8]))
    wide = ptx.MmaOp("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f16", a, b, c, other)
    assert wide.d.type == other
    wide.verify()
    assert ptx.MmaSparseOp(SPARSE.format(letter, letter), a, b, c, e, 0, other).d.type == other
