"""Bodies of linalg's named operations as text.

What xDSL gives them, and the linalg.generic to write instead.
"""

from __future__ import annotations

from xdsl.dialects.builtin import AnyFloat
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fragir.dialects.elements import element_name, element_type, is_element
from fragir.dialects.frag.instructions import accumulator_of, mma_types
from fragir.errors import FragirError

_LOOPS = "affine_map<(m, n, k) -> ({}, {})>"


def generic(
    a: Attribute,
    b: Attribute,
    total: Attribute,
    transposed: tuple[bool, bool] = (False, False),
    operands: str | None = None,
) -> str:
    """A linalg.generic that multiplies matrices of a and b and sums in `total`.

    `transposed`: whether memory holds A and B so; `operands`: `ins(...) outs(...)` as the program
    has them.
    """
    is_float = isinstance(total, AnyFloat)
    letter = "f" if is_float else "i"
    body = [f"^bb0(%x: {a}, %y: {b}, %s: {total}):"]
    factors: list[str] = []
    for name, type_ in (("%x", a), ("%y", b)):
        if type_ == total:
            factors.append(name)
            continue
        extend = "extf" if is_float else "extui" if element_name(type_) == "u8" else "extsi"
        body.append(f"{name}1 = arith.{extend} {name} : {type_} to {total}")
        factors.append(f"{name}1")
    body.append(f"%p = arith.mul{letter} {', '.join(factors)} : {total}")
    body.append(f"%t = arith.add{letter} %s, %p : {total}")
    body.append(f"linalg.yield %t : {total}")
    dims = ("km" if transposed[0] else "mk", "nk" if transposed[1] else "kn", "mn")
    maps = ", ".join(_LOOPS.format(*pair) for pair in dims)
    if operands is None:
        operands = f"ins(%a, %b : memref<?x?x{a}>, memref<?x?x{b}>) outs(%c : memref<?x?x{total}>)"
    return (
        f"linalg.generic {{indexing_maps = [{maps}], "
        'iterator_types = ["parallel", "parallel", "reduction"]} '
        f"{operands} {{ {' '.join(body)} }}"
    )


def usual_sum(a: Attribute, b: Attribute) -> Attribute | None:
    """The type in which products of a and b are usually summed; None where there is none."""
    if not is_element(a) or not is_element(b):
        return None
    try:
        return element_type(accumulator_of(element_name(a), element_name(b), None))
    except FragirError:
        return None


def instead(a: Attribute, b: Attribute, transposed: tuple[bool, bool] = (False, False)) -> str:
    """How to go on when a product of a and b cannot be formed as it is written."""
    total = usual_sum(a, b)
    if total is not None:
        return f"write {generic(a, b, total, transposed)}"
    f32, tf32 = element_type("f32"), element_type("tf32")
    if (a, b) == (f32, f32):
        return (
            "tensor cores take f32 as tf32, whose low 13 bits do not count: declare the inputs "
            f"so (the arrays stay float32) and write {generic(tf32, tf32, f32, transposed)}"
        )
    return (
        f"there are products of {mma_types()}, each by itself, signs and 8-bit floats "
        "mixed; store the inputs so"
    )


# -- hidden body -----------------------------------------------------------------------------------
# The body that xDSL gives a named linalg operation: no text, no place, ill-typed at times.


def maps_of(op: LinalgStructuredOperation) -> list[AffineMap]:
    """The indexing maps, one an operand."""
    return [attribute.data for attribute in op.get_indexing_maps()]


def dims_of(map_: AffineMap) -> list[int] | None:
    """The loops that index each dimension; None where one is indexed by anything else."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    return dims if len(dims) == len(map_.results) else None


def mixed_types_hint(op: ops.MatmulOp) -> str:
    """What to write where the types of a linalg.matmul differ."""
    a, b, c = (argument.type for argument in op.body.block.args)
    first, second, out = (dims_of(map_) or [] for map_ in maps_of(op))
    transposed = first[-1:] == out[:1], second[:1] == out[1:]
    return (
        f"linalg.matmul of {a} and {b} into {c} cannot say how the elements are extended; "
        + instead(a, b, transposed)
    )


def hidden_error(culprit: Operation) -> tuple[Operation, str] | None:
    """Operation and words for an error in the body that xDSL gives a linalg.matmul.

    The body is not in the text, has no place, and is ill-typed where element types differ.
    """
    owner = culprit.parent_op()
    if isinstance(owner, ops.MatmulOp) and len(owner.inputs) == 2 and len(owner.outputs) == 1:
        return owner, mixed_types_hint(owner)
    return None
