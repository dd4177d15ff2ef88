"""`func-inline`: what functions do stands where they are called."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

#: Operations of a function with what it calls: a few that call each other twice are without end.
LARGEST = 1 << 16


@dataclass(frozen=True)
class FuncInlinePass(ModulePass):
    """Calls become copies of what is called; private functions that were called are erased.

    Functions of one block are called, of any level but that of lanes. None may call itself.
    """

    name = "func-inline"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        from fragir.dialects.calls import CallError, called_by, calls_in
        from fragir.mlir.diagnostics import fail

        functions = [x for x in op.ops if isinstance(x, func.FuncOp) and not x.is_declaration]
        called: set[func.FuncOp] = set()
        for function in functions:
            try:
                called.update(called_by(function))
            except CallError as error:
                fail(error.op, str(error))
        known: dict[func.FuncOp, int] = {}
        for function in functions:
            if (size := _size(function, known)) > LARGEST:
                name = function.sym_name.data
                words = f"with what it calls @{name} has {size} operations; put them in a loop"
                fail(function, f"{words} ({LARGEST} at most)")
        for function in functions:
            while calls := list(calls_in(function)):
                for call in calls:
                    _inline(call)
        for function in functions:
            visibility = function.sym_visibility
            if function in called and visibility is not None and visibility.data == "private":
                Rewriter.erase_op(function)


def _size(function: func.FuncOp, known: dict[func.FuncOp, int]) -> int:
    """The operations of a function with those of all that it calls, as often as it does."""
    from fragir.dialects.calls import callee_of, calls_in

    if function not in known:
        own = sum(1 for _ in function.walk())
        known[function] = own + sum(_size(callee_of(call), known) for call in calls_in(function))
    return known[function]


def _inline(call: func.CallOp) -> None:
    """Puts a copy of what is called in a call's place, with the places of the lines copied."""
    from fragir.dialects.calls import callee_of

    block = callee_of(call).body.block
    names: dict[SSAValue, SSAValue] = dict(zip(block.args, call.arguments, strict=True))
    end = block.last_op
    assert end is not None
    for op in block.ops:
        if op is end:
            continue
        copy = op.clone(names)
        _keep_places(op, copy)
        Rewriter.insert_op(copy, InsertPoint.before(call))
    Rewriter.replace_op(call, [], [names.get(value, value) for value in end.operands])


def _keep_places(op: Operation, copy: Operation) -> None:
    for old, new in zip(op.walk(), copy.walk(), strict=True):
        new.location = old.location
        for before, after in zip(old.results, new.results, strict=True):
            after.name_hint = before.name_hint
        for one, other in zip(old.regions, new.regions, strict=True):
            for block, made in zip(one.blocks, other.blocks, strict=True):
                for before, after in zip(block.args, made.args, strict=True):
                    after.name_hint = before.name_hint
