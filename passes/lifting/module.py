"""PTX text as a module of the `ptx` dialect."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from fragir.dialects import ptx
from fragir.passes.lifting.build import body
from fragir.passes.lifting.scopes import refusal
from fragir.ptx import tree
from fragir.ptx.reader import parse
from fragir.ptx.writer import write_node


def lift(text: str, filename: str = "<ptx>") -> ModuleOp:
    """A module of functions whose registers are values and whose labels are blocks.

    Directives, variables and prototypes are kept as text; places in other sources and debugging
    sections are left out. FragirError, with its place, for text that is no PTX, and for what has no
    counterpart: indirect branches and calls, registers that are passed to functions.
    """
    module = parse(text, filename)
    operations: list[Operation] = []
    outside = {name for item in module.items for name in _names(item)}
    for item in module.items:
        if isinstance(item, tree.Function) and item.body is not None:
            operations.append(_function(item, module, outside))
        elif isinstance(
            item, tree.Target
        ):  # debugging sections are left out, so ptxas must not ask
            words = tuple(word for word in item.words if word != "debug")
            operations.append(ptx.TextOp(_line(tree.Target(words))))
        elif not isinstance(item, tree.Comment | tree.File | tree.Section | tree.Dwarf):
            operations.append(ptx.TextOp(_line(item)))
    return ModuleOp(operations)


def _function(function: tree.Function, module: tree.Module, outside: set[str]) -> ptx.FunctionOp:
    try:
        region, variables = body(function, module, outside)
    except RecursionError:
        raise refusal(module, function.at, f"{function.name.text} is nested too deeply") from None
    head = _line(replace(function, body=None)).removesuffix(";").rstrip()
    return ptx.FunctionOp(head, variables, region)


def _line(item: tree.Item) -> str:
    """The text of an item on one line: a break means no more than a blank, outside of strings."""
    return " ".join(write_node(item).split())


def _names(item: tree.Item) -> list[str]:
    match item:
        case tree.Function() | tree.Alias():
            return [item.name.text]
        case tree.Declaration():
            return [variable.name.text for variable in item.variables]
        case _:
            return []
