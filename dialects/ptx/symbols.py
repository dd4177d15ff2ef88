"""What a statement of a kernel may name: its variables, parameters, and those of the module."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.ir import Operation

from fragir.dialects.ptx.foreign import FunctionOp, TextOp, function_of, items_of
from fragir.errors import FragirError
from fragir.ptx import tree
from fragir.ptx.opcodes.table import Names
from fragir.ptx.writer import write_node

_PREDEFINED = ("WARP_SZ",)


def names_for(op: Operation, symbols: Sequence[str], registers: str) -> Names:
    """The declarations of what a statement names, and of its registers; FragirError for none."""
    wanted = [name for name in symbols if name not in _PREDEFINED]
    function = around(op)
    if function is None:
        wanted = [name for name in wanted if not name.startswith("%")]
    if not wanted:
        return Names(inside=registers)
    if function is None:
        raise FragirError(
            f"{wanted[0]} is not declared", hint="pass addresses as values; $0 is the first place"
        )
    variables = function.variables.data if function.variables else ""
    own = _own(function.head.data, variables)
    outside = {name: text for each in texts(function) for name, text in _outside(each).items()}
    parameters: list[str] = []
    above: dict[str, None] = {}
    inside: dict[str, None] = {}
    for name in wanted:
        if name in own:
            if own[name]:
                inside[own[name]] = None
            else:
                parameters.append(name)
        elif name in outside:
            above[outside[name]] = None
        elif not name.startswith("%"):  # a special register, or none: the table says
            raise FragirError(f"{name} is not declared")
    return Names(" ".join(above), tuple(parameters), " ".join((*inside, registers)))


def around(op: Operation) -> FunctionOp | None:
    """The function that an operation stands in."""
    above = op.parent_op()
    while above is not None and not isinstance(above, FunctionOp):
        above = above.parent_op()
    return above


def texts(function: FunctionOp) -> list[str]:
    """The texts of the module around a function, and the prototypes of its functions."""
    module = function.parent_op()
    found: list[str] = []
    for region in module.regions if module is not None else ():
        for block in region.blocks:
            for op in block.ops:
                if isinstance(op, TextOp):
                    found.append(op.text.data)
                elif isinstance(op, FunctionOp):
                    found.append(f"{op.head.data};")
    return found


@lru_cache(maxsize=256)
def _own(head: str, variables: str) -> dict[str, str]:
    """What a function declares, by name: the text of that; "" for a kernel's parameter."""
    function = function_of(head, variables)
    found: dict[str, str] = {}
    for declaration in (*(function.returns or ()), *(function.parameters or ())):
        name = declaration.variables[0].name.text
        plain = replace(declaration, pointer=None, attributes=())
        found[name] = "" if function.kind == "entry" else write_node(plain)
    for item in function.body.items if function.body is not None else ():
        if isinstance(item, tree.Declaration):
            found |= _declared(item)
    return found


@lru_cache(maxsize=1024)
def _outside(text: str) -> dict[str, str]:
    """What a module's text declares, by name."""
    found: dict[str, str] = {}
    for item in items_of(text):
        if isinstance(item, tree.Declaration):
            found |= _declared(item)
        elif isinstance(item, tree.Function):
            own = replace(item, linkage=(), attributes=(), directives=(), body=tree.Block(()))
            found[item.name.text] = write_node(own)
        elif isinstance(item, tree.Alias):
            found[item.name.text] = ""
    return found


def _declared(declaration: tree.Declaration) -> dict[str, str]:
    """The name of each variable, and its declaration alone, without what it holds at first."""
    found: dict[str, str] = {}
    for variable in declaration.variables:
        plain = _sized(variable)
        linkage = tuple(w for w in declaration.linkage if w == "extern" and not plain.dimensions)
        if any(d is None for d in plain.dimensions):
            linkage = declaration.linkage
        one = replace(declaration, variables=(plain,), linkage=linkage, attributes=())
        found[variable.name.text] = write_node(one)
    return found


def _sized(variable: tree.Variable) -> tree.Variable:
    """A variable without its initialiser, which may have said how large it is."""
    initial = variable.initializer
    dimensions = variable.dimensions
    if isinstance(initial, tree.Vector) and dimensions and dimensions[0] is None:
        dimensions = (tree.Integer(str(len(initial.elements))), *dimensions[1:])
    return replace(variable, initializer=None, dimensions=dimensions)
