"""Functions of PTX that keep their own head, variables and module: what lifting makes.

Their blocks are those of `cf`; a branch that said `.uni` has the attribute `ptx.uni`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation, Region
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.ptx.types import registers
from fragir.errors import FragirError
from fragir.ptx import tree
from fragir.ptx.opcodes.table import Names
from fragir.ptx.reader import PtxSyntaxError, parse
from fragir.ptx.writer import write_node

ENDS = ("ret", "exit", "trap")


@op_definition
class FunctionOp(IRDLOperation):
    """A kernel or function: its head as PTX, its variables, and blocks of what one lane does.

    Statements name parameters and variables as the head and the declarations do.
    """

    name = "ptx.function"
    head = prop_def(StringAttr)
    variables = opt_prop_def(StringAttr)
    body = region_def()
    traits = traits_def(IsolatedFromAbove())
    assembly_format = "$head (`variables` $variables^)? attr-dict-with-keyword $body"

    def __init__(self, head: str, variables: str, body: Region):
        super().__init__(
            properties={
                "head": StringAttr(head),
                "variables": StringAttr(variables) if variables else None,
            },
            regions=[body],
        )

    @property
    def function(self) -> tree.Function:
        """Head and variables as they are read; FragirError where they are none."""
        return function_of(self.head.data, self.variables.data if self.variables else "")

    def verify_(self) -> None:
        try:
            self.function
        except FragirError as error:
            raise VerifyException(f"ptx.function: {error.message}") from error
        if not self.body.blocks or self.body.blocks[0].args:
            raise VerifyException(
                "ptx.function: the first block has no arguments: ld.param reads parameters"
            )


@op_definition
class TextOp(IRDLOperation):
    """PTX that is no instruction: directives and variables of a module, a `.pragma` of a function.

    A module's text stands before its functions; `.version` and `.target` are in it.
    """

    name = "ptx.text"
    text = prop_def(StringAttr)
    assembly_format = "$text attr-dict"

    def __init__(self, text: str):
        super().__init__(properties={"text": StringAttr(text)})

    def verify_(self) -> None:
        try:
            if isinstance(self.parent_op(), FunctionOp):
                items = function_of(".entry k()", self.text.data).body
                found = () if items is None else items.items
                if not all(isinstance(item, tree.Pragma) for item in found):
                    raise FragirError("a function's text is a .pragma; variables are `variables`")
            else:
                items_of(self.text.data)
        except FragirError as error:
            raise VerifyException(f"ptx.text: {error.message}") from error


@op_definition
class EndOp(IRDLOperation):
    """The end of a function's way: `ret`, `exit` or `trap`."""

    name = "ptx.end"
    word = prop_def(StringAttr)
    traits = traits_def(IsTerminator())
    assembly_format = "$word attr-dict"

    def __init__(self, word: str):
        super().__init__(properties={"word": StringAttr(word)})

    def verify_(self) -> None:
        if self.word.data.removesuffix(".uni") not in ENDS:
            raise VerifyException(f"ptx.end: '{self.word.data}' is none of {', '.join(ENDS)}")


@op_definition
class UndefinedOp(IRDLOperation):
    """What a register holds that nothing has written: anything."""

    name = "ptx.undefined"
    value = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($value)"

    def __init__(self, type_: Attribute):
        super().__init__(result_types=[type_])

    def verify_(self) -> None:
        try:
            registers(self.value.type)
        except FragirError as error:
            raise VerifyException(f"ptx.undefined: {error.message}") from error


@lru_cache(maxsize=256)
def function_of(head: str, variables: str) -> tree.Function:
    """The one function with this head and these declarations in its body, or FragirError."""
    try:
        items = items_of(f"{head} {{ {variables} }}")
    except FragirError as error:
        raise FragirError(f"head and variables are no function of PTX: {error.message}") from error
    if len(items) != 1 or not isinstance(items[0], tree.Function) or items[0].body is None:
        raise FragirError(f'"{head}" is not the head of one function')
    return items[0]


@lru_cache(maxsize=256)
def items_of(text: str) -> tuple[tree.Item, ...]:
    """What stands in a module's text."""
    try:
        return parse(f"{text}\n").items
    except PtxSyntaxError as error:
        raise FragirError(error.message) from error


# -- symbols ---------------------------------------------------------------------------------------
# What a statement of a kernel may name: its variables, parameters, and those of the module.

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
    own = _own_declarations(function.head.data, variables)
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
def _own_declarations(head: str, variables: str) -> dict[str, str]:
    """What a function declares, by name: the text of that; "" for a kernel's parameter."""
    function = function_of(head, variables)
    found: dict[str, str] = {}
    for declaration in (*(function.returns or ()), *(function.parameters or ())):
        name = declaration.variables[0].name.text
        plain = replace(declaration, pointer=None, attributes=())
        found[name] = "" if function.kind == "entry" else write_node(plain)
    for item in function.body.items if function.body is not None else ():
        if isinstance(item, tree.Declaration):
            found |= _declarations(item)
    return found


@lru_cache(maxsize=1024)
def _outside(text: str) -> dict[str, str]:
    """What a module's text declares, by name."""
    found: dict[str, str] = {}
    for item in items_of(text):
        if isinstance(item, tree.Declaration):
            found |= _declarations(item)
        elif isinstance(item, tree.Function):
            own = replace(item, linkage=(), attributes=(), directives=(), body=tree.Block(()))
            found[item.name.text] = write_node(own)
        elif isinstance(item, tree.Alias):
            found[item.name.text] = ""
    return found


def _declarations(declaration: tree.Declaration) -> dict[str, str]:
    """The name of each variable, and its declaration alone, without what it holds at first."""
    found: dict[str, str] = {}
    for variable in declaration.variables:
        plain = _without_initialiser(variable)
        linkage = tuple(w for w in declaration.linkage if w == "extern" and not plain.dimensions)
        if any(d is None for d in plain.dimensions):
            linkage = declaration.linkage
        one = replace(declaration, variables=(plain,), linkage=linkage, attributes=())
        found[variable.name.text] = write_node(one)
    return found


def _without_initialiser(variable: tree.Variable) -> tree.Variable:
    """A variable without its initialiser, which may have said how large it is."""
    initial = variable.initializer
    dimensions = variable.dimensions
    if isinstance(initial, tree.Vector) and dimensions and dimensions[0] is None:
        dimensions = (tree.Integer(str(len(initial.elements))), *dimensions[1:])
    return replace(variable, initializer=None, dimensions=dimensions)
