"""Memory that a function returns: an argument stays one, an allocation becomes the last one."""

from __future__ import annotations

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects.narrow import is_memref
from fragir.passes.bufferizing.tensor_memory import name_of
from fragir.passes.structured.memory import erase_dead, owners


def returns_memory(function: func.FuncOp) -> bool:
    """Whether a function returns memrefs."""
    return any(is_memref(type_) for type_ in function.function_type.outputs)


def keep_memory(function: func.FuncOp) -> None:
    """Makes arguments of the memrefs that a function returns, in the order of the return."""
    block, end = function.body.block, function.body.block.last_op
    if not isinstance(end, func.ReturnOp):
        fail(function, "a function that returns memory ends in func.return")
    for value in end.operands:
        if not is_memref(value.type):
            fail(end, f"the function returns {value.type} besides memory; return only memrefs")
    given = function.arg_attrs
    attributes = list(given.data) if given else [DictionaryAttr({}) for _ in block.args]
    for value in list(end.operands):
        if not isinstance(value, BlockArgument):
            _allocated(function, end, value)
            attributes.append(DictionaryAttr({}))
    made = func.ReturnOp()
    made.location = end.location
    Rewriter.insert_op(made, InsertPoint.before(end))
    Rewriter.erase_op(end)
    function.properties.pop("res_attrs", None)
    if any(entry.data for entry in attributes):
        function.arg_attrs = ArrayAttr(attributes)
    function.update_function_type()


def _allocated(function: func.FuncOp, end: func.ReturnOp, value: SSAValue) -> None:
    """A new last argument in the place of an allocation."""
    block, made = function.body.block, value.owner
    if not isinstance(made, memref.AllocOp) or made.parent is not block:
        fail(
            end,
            f"the function returns {name_of(value)}, which is a view or is allocated in a region; "
            "return an argument, or what a memref.alloc of the function's own block gives",
        )
    if list(end.operands).count(value) > 1:
        fail(end, f"the function returns {name_of(value)} twice; return it once")
    argument = block.insert_arg(value.type, len(block.args))
    taken = {other.name_hint for other in block.args}
    base = value.name_hint or "result"
    names = (base, *(f"{base}{number}" for number in range(2, len(taken) + 3)))
    argument.name_hint = next(name for name in names if name not in taken)
    sizes = owners(made)
    Rewriter.replace_op(made, [], [argument])
    erase_dead(sizes, block)
