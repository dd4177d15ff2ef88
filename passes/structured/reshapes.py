"""Where an element lies in one view of memory, by where it lies in another one.

A place along a dimension is a row of digits, each a loop's expression and how far it runs, the
outermost first: dimensions taken together have the digits of all of them, a dimension taken apart
divides its own. So what was taken together and apart again is no division.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import memref
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from fragir.dialects.narrow import memref_type
from fragir.dialects.slices import kept_dims, mixed
from fragir.passes.structured.memory import RESHAPES, VIEWS

Digit = tuple[AffineExpr, int]
Digits = list[Digit]


class NoPlaceError(Exception):
    """A view whose places are not told by affine expressions."""


def places_through(read: SSAValue, written: SSAValue) -> list[AffineExpr]:
    """The place in one view of memory, `written`, of what lies at (d0, d1, ...) of another one.

    NoPlaceError where sizes are not known, or `written` is a part.
    """
    shape = memref_type(read.type).get_shape()
    found = [[(AffineExpr.dimension(at), size)] for at, size in enumerate(shape)]
    while isinstance(read.owner, VIEWS) and read is not written:
        found = _outward(read, found)
        read = read.owner.operands[0]
    back: list[SSAValue] = []
    while isinstance(written.owner, VIEWS) and written is not read:
        back.append(written)
        written = written.owner.operands[0]
    for view in reversed(back):
        found = _inward(view, found)
    return [_linear(digits) for digits in found]


def is_part(view: SSAValue) -> bool:
    """Whether a view may lack elements of what it is a view of."""
    while isinstance(view.owner, VIEWS):
        if not isinstance(view.owner, RESHAPES):
            return True
        view = view.owner.operands[0]
    return False


def _outward(view: SSAValue, digits: list[Digits]) -> list[Digits]:
    """The places in the memory that a view is of."""
    op = view.owner
    if not isinstance(op, VIEWS):
        raise NoPlaceError
    source = memref_type(op.operands[0].type).get_shape()
    if isinstance(op, memref.CastOp):
        return digits
    if isinstance(op, memref.ExpandShapeOp):
        return [_joined(digits, group) for group in _groups(op.reassociation)]
    if isinstance(op, memref.CollapseShapeOp):
        groups = zip(digits, _groups(op.reassociation), strict=True)
        return [one for own, group in groups for one in _apart(own, [source[d] for d in group])]
    if isinstance(op, memref.SubviewOp):
        offsets, steps = mixed(op.static_offsets, op.offsets), mixed(op.static_strides, op.strides)
        sizes = mixed(op.static_sizes, op.sizes)
        kept = kept_dims(sizes, memref_type(view.type).get_shape(), op.name)
        found: list[Digits] = []
        for dim, (first, step) in enumerate(zip(offsets, steps, strict=True)):
            if not isinstance(first, int) or not isinstance(step, int):
                raise NoPlaceError
            if dim in kept and (first, step) == (0, 1) and sizes[dim] == source[dim]:
                found.append(digits[kept.index(dim)])
                continue
            place = AffineExpr.constant(first)
            if dim in kept:
                inner = _linear(digits[kept.index(dim)])
                place = (inner if step == 1 else inner * step) + first
            found.append([(place, source[dim])])
        return found
    raise NoPlaceError


def _inward(view: SSAValue, digits: list[Digits]) -> list[Digits]:
    """The places in a view, by those in the memory that it is of."""
    op, shape = view.owner, memref_type(view.type).get_shape()
    if isinstance(op, memref.CastOp):
        return digits
    if isinstance(op, memref.CollapseShapeOp):
        return [_joined(digits, group) for group in _groups(op.reassociation)]
    if isinstance(op, memref.ExpandShapeOp):
        groups = zip(digits, _groups(op.reassociation), strict=True)
        return [one for own, group in groups for one in _apart(own, [shape[d] for d in group])]
    raise NoPlaceError


def _groups(attribute: ArrayAttr[ArrayAttr[IntegerAttr]]) -> list[list[int]]:
    return [[entry.value.data for entry in group] for group in attribute]


def _joined(digits: Sequence[Digits], group: Sequence[int]) -> Digits:
    return [digit for dim in group for digit in digits[dim] if digit[1] != 1]


def _apart(digits: Digits, sizes: Sequence[int]) -> list[Digits]:
    """The digits of dimensions of these sizes, the outermost first."""
    left, found = [digit for digit in digits if digit[1] != 1], list[Digits]()
    wide = next((at for at, size in enumerate(sizes) if size != 1), 0)
    for at, size in reversed(list(enumerate(sizes))):
        own: Digits = []
        if at == wide:
            own, left = left, []
        while size > prod(n for _, n in own) and left and left[-1][1] > 0:
            own.insert(0, left.pop())
        if at != wide and prod(n for _, n in own) != size:
            return _divided(digits, sizes)
        found.append(own or [(AffineExpr.constant(0), 1)])
    return found[::-1]


def _divided(digits: Digits, sizes: Sequence[int]) -> list[Digits]:
    if any(size < 0 for size in sizes[1:]):
        raise NoPlaceError
    place, found = _linear(digits), list[Digits]()
    for at, size in enumerate(sizes):
        own, behind = place, prod(sizes[at + 1 :])
        own = own if behind == 1 else own // behind
        found.append([(own % size if any(n != 1 for n in sizes[:at]) else own, size)])
    return found


def _linear(digits: Digits) -> AffineExpr:
    """All digits of a place as one expression."""
    found: AffineExpr | None = None
    for at, (expression, _) in enumerate(digits):
        behind = [size for _, size in digits[at + 1 :]]
        if any(size < 0 for size in behind):
            raise NoPlaceError
        scaled = expression if prod(behind) == 1 else expression * prod(behind)
        found = scaled if found is None else found + scaled
    return AffineExpr.constant(0) if found is None else found
