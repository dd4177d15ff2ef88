"""What the reference calls the types of elements: their PTX names."""

from __future__ import annotations

from xdsl.dialects.builtin import ShapedType
from xdsl.ir import Attribute

from fragir.dialects import frag
from fragir.dialects.elements import element_name
from fragir.errors import FragirError

PREDICATE = "pred"


def type_name(type_: Attribute) -> str:
    """The PTX name of a scalar's or tile's element type; FragirError for others."""
    if isinstance(type_, frag.TileType | ShapedType):
        type_ = getattr(type_, "element_type")
    try:
        return element_name(type_)
    except KeyError:
        raise FragirError(f"the reference does not know the type {type_}") from None
