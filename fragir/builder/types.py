"""The element types under the names that the PTX ISA gives them."""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import IndexType, IntegerType
from xdsl.ir import Attribute, TypeAttribute

from fragir.builder.places import error_at, fail, place, require_pair, require_word
from fragir.dialects import frag
from fragir.dialects.elements import FLOATS, element_name, element_type, is_element
from fragir.errors import FragirError, pass_on
from fragir.layout import Layout
from fragir.mlir import diagnostics

f16 = element_type("f16")
bf16 = element_type("bf16")
tf32 = element_type("tf32")
f32 = element_type("f32")
f64 = element_type("f64")
e4m3 = element_type("e4m3")
e5m2 = element_type("e5m2")
e3m2 = element_type("e3m2")
e2m3 = element_type("e2m3")
e2m1 = element_type("e2m1")
e2m1x2 = element_type("e2m1x2")
ue8m0 = element_type("ue8m0")
s8 = element_type("s8")
u8 = element_type("u8")
s4 = element_type("s4")
u4 = element_type("u4")
b1 = element_type("b1")
s32 = element_type("s32")
s64 = element_type("s64")
index: TypeAttribute = IndexType()
condition: TypeAttribute = IntegerType(1)
byte: TypeAttribute = IntegerType(8)
"""What memory holds of a condition, as that of i1 in linalg (passes/normalizing)."""

NAMES = (
    *(
        "f16",
        "bf16",
        "tf32",
        "f32",
        "f64",
        "e4m3",
        "e5m2",
        "e3m2",
        "e2m3",
        "e2m1",
        "e2m1x2",
        "ue8m0",
    ),
    *("s8", "u8", "s4", "u4", "b1", "s32", "s64", "index"),
)


def type_name(type_: Attribute) -> str:
    """How a user writes a type."""
    if not isinstance(cast("object", type_), Attribute):
        return repr(type_)
    if type_ == index:
        return "index"
    if type_ == condition:
        return "condition"
    try:
        return element_name(type_)
    except KeyError:
        return str(type_)


def is_float(type_: Attribute) -> bool:
    """Whether a scalar type is a floating-point type."""
    return type_name(type_) in FLOATS


def require_scalar_type(type_: object, what: str) -> TypeAttribute:
    """A type that a scalar may have, else an error at the user's line."""
    if isinstance(type_, TypeAttribute):
        try:
            element_name(type_)
        except KeyError:
            pass
        else:
            return type_
    fail(f"{what} cannot be {type_!r}", "write fragir.f32, fragir.s32, fragir.index, ...")


def stored_element(type_: object, what: str) -> tuple[TypeAttribute, bool]:
    """A type that memory may hold, and whether it stands for conditions, a byte each."""
    if type_ is bool or (isinstance(type_, Attribute) and type_ == condition):
        return byte, True
    return require_tile_element(type_, what), False


def require_tile_element(type_: object, what: str) -> TypeAttribute:
    """A type that tiles may hold, else an error at the user's line."""
    if isinstance(type_, TypeAttribute) and is_element(type_):
        return type_
    shown = type_name(type_) if isinstance(type_, Attribute) else repr(type_)
    known = ", ".join(f"fragir.{name}" for name in NAMES if name not in ("index", "s64"))
    fail(f"{what} cannot hold {shown}", f"write one of {known}")


# -- fragments -------------------------------------------------------------------------------------
# `fragir.fragment`: the layout of an instruction's operand, said from Python.


def fragment(
    instruction: str,
    operand: str,
    warps: tuple[int, int] = (1, 1),
    *,
    m: str = "",
    n: str = "",
    k: str = "",
) -> frag.MmaFragment:
    """The layout of an instruction's operand, as in `fragment("m16n8k16.f16", "a")`.

    `m`, `n` and `k` count that dimension of the product in another order, by the modes of a layout
    as in `k="2:1 4:8 4:2"`: which k of the tile stands where the instruction has its 0, 1, 2, ...
    """
    over = require_pair(warps, "warps") or (1, 1)
    orders = tuple(
        (name, _order(name, modes))
        for name, modes in (("k", k), ("m", m), ("n", n))
        if require_word(modes, f"the order of {name}")
    )
    names = require_word(instruction, "instruction"), require_word(operand, "operand")
    made = frag.MmaFragment(*names, over, orders)
    try:
        frag.MmaLayoutAttr(made)
    except Exception as error:
        pass_on(error)
        raise error_at(place(), diagnostics.message_of(error)) from diagnostics.cause_of(error)
    return made


def _order(dimension: str, modes: str) -> Layout:
    try:
        return Layout.parse(f"{dimension} [{modes}] dims ({dimension})")
    except FragirError as error:
        fail(f"{dimension} = {modes!r}: {error.message}", 'write modes as in k="2:1 4:8 4:2"')
