"""The types of shared memory that a user describes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute

from fragir.builder.checks import shape_of, whole
from fragir.builder.places import fail
from fragir.builder.types import tile_element
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout


def shared_type(
    shape: Sequence[int],
    element: Attribute,
    swizzle: int,
    layout: Layout | str | None,
) -> MemRefType[Attribute]:
    """Shared memory as `Kernel.shared` describes it."""
    element = tile_element(element, "shared memory")
    if whole(swizzle, "swizzle") not in (0, 32, 64, 128):
        fail(f"swizzle is {swizzle}, it must be 0, 32, 64 or 128 bytes")
    sizes = shape_of(shape)
    if len(sizes) < 2:
        fail(f"shared memory has two dimensions or more, not {len(sizes)}")
    try:
        own = NoneAttr() if layout is None else layout_attribute(layout)
        type_ = MemRefType(element, sizes, own, frag.SharedAttr(swizzle))
        frag.memory_layout(type_)
    except FragirError as error:
        fail(error.message, error.hint)
    return type_


def layout_attribute(layout: Layout | str) -> frag.ExplicitLayoutAttr:
    """A layout, given as one or as text, as an attribute."""
    if isinstance(layout, str):
        return frag.ExplicitLayoutAttr.read(layout)
    return frag.ExplicitLayoutAttr(layout)
