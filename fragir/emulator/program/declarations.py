"""Declarations that there cannot be (PTX ISA 9.2, sections 5.1 and 5.4), as ptxas refuses them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fragir.ptx import tree

#: What a module may declare, and what may begin with a value.
_OF_MODULES = frozenset({"global", "const", "shared", "tex"})
_INITIALISED = frozenset({"global", "const"})
#: Linkage of variables that other declarations may name again.
_SHARED = frozenset({"extern", "weak", "common"})
_VECTOR_BITS, _MOST_ALIGNED = 128, 1 << 31


def problem(node: tree.Declaration, bits: int, of_module: bool) -> str | None:
    """What is wrong with a declaration of elements of `bits` bits, None where nothing is."""
    align = node.align.value if node.align is not None else 1
    if align < 1 or align & (align - 1) or align > _MOST_ALIGNED:
        return f"an alignment is a power of two, not {align}"
    if of_module and node.space not in _OF_MODULES:
        return f"there are no variables in .{node.space} outside of functions"
    if node.vector is not None and bits * int(node.vector[1:]) > _VECTOR_BITS:
        return f".{node.vector} .{node.type} has more than {_VECTOR_BITS} bits"
    if node.type == "pred" and node.space != "reg":
        return "a .pred is a register"
    return next((text for v in node.variables if (text := _variable(node, v))), None)


def _variable(node: tree.Declaration, variable: tree.Variable) -> str | None:
    name = variable.name.text
    if variable.initializer is not None and node.space not in _INITIALISED:
        return f"{name} has an initial value, which variables in .{node.space} have not"
    if node.space in ("reg", "param") or "extern" in node.linkage:
        return None
    for index, dimension in enumerate(variable.dimensions):
        empty = isinstance(dimension, tree.Integer) and dimension.value == 0
        open_ = dimension is None and (index > 0 or variable.initializer is None)
        if empty or open_:
            return f"{name} has no size"
    return None


def twice(nodes: Iterable[tree.Declaration]) -> Iterator[tree.Variable]:
    """The variables of one scope that are declared before; not those that may be."""
    seen: set[str] = set()
    for node in nodes:
        if _SHARED & set(node.linkage):
            continue
        for variable in node.variables:
            key = f"{variable.name.text}<" if variable.count is not None else variable.name.text
            if key in seen:
                yield variable
            seen.add(key)


def functions_twice(module: tree.Module) -> Iterator[tree.Function]:
    """Functions with a body that another one of that name has already; `.weak` ones aside."""
    seen: set[str] = set()
    for function in module.functions:
        if function.body is None or "weak" in function.linkage:
            continue
        if function.name.text in seen:
            yield function
        seen.add(function.name.text)
