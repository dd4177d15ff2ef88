"""What to write instead of a named operation of linalg that is not there: for messages."""

from __future__ import annotations

import re

from xdsl.context import Context
from xdsl.ir import Attribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from fragir.dialects.elements import element_name, is_element
from fragir.dialects.frag.instructions import accumulator_of
from fragir.dialects.linalg import generic_text
from fragir.errors import FragirError

# `ins(%a, %b : T, U) outs(%c : V)`; types here hold no parentheses
_OPERANDS = re.compile(r"\s*ins\s*\([^:()]*:([^()]*)\)\s*outs\s*\([^:()]*:([^()]*)\)")
_MAPS = re.compile(r"\s*indexing_maps\s*=\s*\[([^\[\]]*)\]")
_RESULTS = re.compile(r"->\s*\(([^()]*)\)")
_SHAPED = re.compile(r"(memref|tensor)<((?:[0-9?]+x)*)([A-Za-z]\w*)[^<>]*(?:<[^<>]*>[^<>]*)*>")
_PRODUCT = re.compile(r"linalg\.(batch_|batch_reduce_)?matmul(_transpose_[ab])?")
_VECTOR = ("dot", "matvec", "vecmat", "batch_matvec", "batch_vecmat")
# elementwise operations and what their bodies hold
_ELEMENTWISE = {
    **{"abs": "math.absf", "ceil": "math.ceil", "floor": "math.floor", "tanh": "math.tanh"},
    **{
        "rsqrt": "math.rsqrt",
        "negf": "arith.negf",
        "div": "arith.divf",
        "div_unsigned": "arith.divui",
    },
}
_OTHERS = {
    "broadcast": "a linalg.generic that follows the product reads it by a map that leaves out a "
    "loop, as affine_map<(m, n) -> (n)>",
    "reduce": "only products of matrices reduce: multiply by a column or a row of ones, in a "
    "kernel of its own",
    "softmax": "a kernel sums nothing along the rows of its result",
    "transpose": "a product reads its inputs transposed by their maps",
}


def instead(name: str, rest: str = "") -> str:
    """The form that works; `rest` is the program from behind the operation's name."""
    product = _PRODUCT.fullmatch(name)
    if product is not None:
        return _product(product[1] or "", product[2] or "", rest)
    short = name.partition(".")[2]
    if short in _VECTOR:
        return (
            "a product has two matrices, so let a vector be a matrix of one row or column, and "
            "write linalg.generic as for matrices: " + generic_text.generic(*_usual())
        )
    if short.startswith(("conv_", "depthwise_", "pooling_")) or short in ("mmt4d", "pack"):
        return (
            "only products of matrices become tensor-core code: write the operands as matrices "
            f"(im2col) and {generic_text.generic(*_usual())}"
        )
    if short == "contract":
        return f"write {generic_text.generic(*_usual())}"
    if short in _OTHERS:
        return _OTHERS[short]
    if short in _ELEMENTWISE:
        return _elementwise(_ELEMENTWISE[short], rest)
    return "write it as a linalg.generic that follows a product, with arith and math in its body"


def _elementwise(scalar: str, rest: str) -> str:
    """The linalg.generic of one operation on matrices."""
    operands = _OPERANDS.match(rest)
    types = list(_SHAPED.finditer(operands[0])) if operands is not None else []
    shown = " ".join(operands[0].split()) if operands is not None else "ins(...) outs(...)"
    element = types[-1][3] if types else "f32"
    count = max(len(types) - 1, 1)
    names = ["%x", "%y"][:count]
    maps = ", ".join(["affine_map<(m, n) -> (m, n)>"] * (count + 1))
    arguments = ", ".join(f"{name}: {element}" for name in [*names, "%o"])
    return (
        f"write linalg.generic {{indexing_maps = [{maps}], "
        f'iterator_types = ["parallel", "parallel"]}} {shown} {{ ^bb0({arguments}): '
        f"%r = {scalar} {', '.join(names)} : {element} linalg.yield %r : {element} }}"
    )


def _usual() -> tuple[Attribute, Attribute, Attribute]:
    f16, f32 = _type("f16"), _type("f32")
    assert f16 is not None
    assert f32 is not None
    return f16, f16, f32


def _product(batch: str, transposed: str, rest: str) -> str:
    ways = "_a" in transposed, "_b" in transposed
    operands = _OPERANDS.match(rest)
    types: list[re.Match[str]] = []
    if operands is not None:
        types = [found for part in operands.groups() for found in _SHAPED.finditer(part)]
    a, b, c = (_type(found[3]) for found in types) if len(types) == 3 else (None, None, None)
    if operands is None or a is None or b is None or c is None:
        a, b, c = _usual()
        shown = None
    else:
        shown = " ".join(operands[0].split())
        if batch:
            shown = re.sub(r"(memref|tensor)<[0-9?]+x", r"\1<", shown)
        if types[2][1] == "tensor":
            shown = None  # the form for memrefs
        if not _sums(a, b, c):
            return generic_text.instead(a, b, ways)
    written = generic_text.generic(a, b, c, ways, shown)
    if not batch:
        return f"write {written}"
    return (
        "a kernel multiplies two matrices: launch it once for each of the batch, with "
        f"{written}; or write tiles, whose frag.load takes the batch as its first index"
    )


def with_maps(rest: str) -> str | None:
    """The linalg.generic for a linalg.matmul with indexing maps before its operands, a form that
    xDSL does not read; None for any other text behind the name."""
    found = _MAPS.match(rest)
    if found is None:
        return None
    loops = [tuple(x.strip() for x in dims.split(",")) for dims in _RESULTS.findall(found[1])]
    if len(loops) != 3 or len(loops[2]) != 2:
        return None
    m, n = loops[2]
    way = ("_a" if loops[0][-1] == m else "") + ("_b" if loops[1][0] == n else "")
    return _product("", way, rest[found.end() :])


def _sums(a: Attribute, b: Attribute, total: Attribute) -> bool:
    """Whether tensor cores sum products of these in that type."""
    if not all(is_element(type_) for type_ in (a, b, total)):
        return False
    try:
        accumulator_of(element_name(a), element_name(b), element_name(total))
    except FragirError:
        return False
    return True


def _type(name: str) -> Attribute | None:
    try:
        return Parser(Context(), name).parse_optional_type()
    except ParseError:
        return None
