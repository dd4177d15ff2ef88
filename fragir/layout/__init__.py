"""Layouts: which lane holds which element of a matrix.

`fragir.layout.layout` explains the model; every subject has a file of its own. What is named here
is the room's public face; all but the values themselves is imported when it is first used. (As
an attribute, `fragir.layout.layout` is the constructor; its module is for `from` imports only.)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from fragir.layout.layout import Layout, layout
from fragir.layout.modes import Axis, Condition, LayoutError, Mode, axis

if TYPE_CHECKING:
    from fragir.layout.combine import (
        appended,
        concatenated,
        masked,
        merged,
        permuted,
        renamed,
        reordered,
        replicated,
        shifted,
        split,
        transposed,
    )
    from fragir.layout.completion import complement
    from fragir.layout.composition import compose, identity
    from fragir.layout.conversion import Conversion, Slot, plan
    from fragir.layout.cute import from_cute, to_cute
    from fragir.layout.division import logical_divide, quotient, zipped_divide
    from fragir.layout.formula import from_formula, to_formula
    from fragir.layout.inversion import inverse, left_inverse, right_inverse
    from fragir.layout.linear import LinearLayout, to_layout, to_linear
    from fragir.layout.parts import Part, restrict, subtile
    from fragir.layout.products import blocked_product, logical_product, raked_product
    from fragir.layout.shared import SharedLayout, Swizzle, conflicts, swizzle_of, wavefronts
    from fragir.layout.synthesis import from_function

__all__ = [
    "Axis",
    "Condition",
    "Conversion",
    "Layout",
    "LayoutError",
    "LinearLayout",
    "Mode",
    "Part",
    "SharedLayout",
    "Slot",
    "Swizzle",
    "appended",
    "axis",
    "blocked_product",
    "complement",
    "compose",
    "concatenated",
    "conflicts",
    "from_cute",
    "from_formula",
    "from_function",
    "identity",
    "inverse",
    "layout",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "masked",
    "merged",
    "permuted",
    "plan",
    "quotient",
    "raked_product",
    "renamed",
    "reordered",
    "replicated",
    "restrict",
    "right_inverse",
    "shifted",
    "split",
    "subtile",
    "swizzle_of",
    "to_cute",
    "to_formula",
    "to_layout",
    "to_linear",
    "transposed",
    "wavefronts",
    "zipped_divide",
]

_HOMES = {
    "combine": "appended concatenated masked merged permuted renamed reordered replicated shifted "
    "split transposed",
    "completion": "complement",
    "composition": "compose identity",
    "conversion": "Conversion Slot plan",
    "cute": "from_cute to_cute",
    "division": "logical_divide quotient zipped_divide",
    "formula": "from_formula to_formula",
    "inversion": "inverse left_inverse right_inverse",
    "linear": "LinearLayout to_layout to_linear",
    "parts": "Part restrict subtile",
    "products": "blocked_product logical_product raked_product",
    "shared": "SharedLayout Swizzle conflicts swizzle_of wavefronts",
    "synthesis": "from_function",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value
