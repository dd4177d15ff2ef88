"""Calls of functions of the same module."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue

from fragir.errors import FragirError


class CallError(Exception):
    """A call for which nothing can stand, and why."""

    def __init__(self, op: func.CallOp, words: str):
        super().__init__(words)
        self.op = op


def calls_in(function: Operation) -> Iterator[func.CallOp]:
    """The calls of a function, in order."""
    return (op for op in function.walk() if isinstance(op, func.CallOp))


def callee_of(op: func.CallOp) -> func.FuncOp:
    """The function that is called; FragirError where there is none, or one that has no body, or
    several blocks, or other types.
    """
    name = op.callee.string_value()
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    for function in module.ops if module is not None else ():
        if isinstance(function, func.FuncOp) and function.sym_name.data == name:
            _check(op, function)
            return function
    raise FragirError(f"there is no function @{name}")


def _check(op: func.CallOp, function: func.FuncOp) -> None:
    name = function.sym_name.data
    if function.is_declaration:
        raise FragirError(f"@{name} has no body; its code cannot stand for the call")
    if len(function.body.blocks) > 1 or not isinstance(function.body.block.last_op, func.ReturnOp):
        raise FragirError(f"@{name} has several blocks; a function that is called has one")
    given = [value.type for value in op.arguments], [result.type for result in op.res]
    type_ = function.function_type
    if given != (list(type_.inputs), list(type_.outputs)):
        raise FragirError(f"@{name} is a function {type_}, and is called with other types")


def returned_by(result: OpResult) -> SSAValue:
    """What the function that is called returns for a result of the call."""
    op = result.op
    assert isinstance(op, func.CallOp)
    end = callee_of(op).body.block.last_op
    assert end is not None
    return end.operands[result.index]


def called_by(function: func.FuncOp) -> list[func.FuncOp]:
    """The functions that one calls, and those that they call; CallError where one cannot be.

    The order is one in which each comes after those that call it.
    """
    found: dict[func.FuncOp, None] = {}
    done: set[func.FuncOp] = set()

    def visit(at: func.FuncOp, above: tuple[func.FuncOp, ...]) -> None:
        for op in calls_in(at):
            try:
                callee = callee_of(op)
            except FragirError as error:
                raise CallError(op, str(error)) from error
            if callee in (*above, at):
                raise CallError(op, f"@{callee.sym_name.data} calls itself")
            if callee not in done:
                visit(callee, (*above, at))
        done.add(at)
        found[at] = None

    visit(function, ())
    return list(found)[-2::-1]
