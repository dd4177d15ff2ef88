"""Tensors that a function returns as arguments of it."""

from __future__ import annotations

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.linalg.destinations import chain_start, homes_of
from fragir.dialects.memory_types import RESHAPES, root_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.mlir.diagnostics import fail
from fragir.passes.bufferizing.parts import collapse, expansion
from fragir.passes.bufferizing.tensor_memory import Size, TensorMemory, name_of
from fragir.passes.structured.memory import erase_dead, owners


class Results:
    """A result is written to the argument that it is computed in the place of, or to a new one."""

    def __init__(self, memory: TensorMemory, end: func.ReturnOp):
        self._memory, self._end = memory, end
        self._function, self._block = memory.function, memory.block
        self._homes = homes_of(end.operands)
        memory.returned = {home for home in self._homes if home is not None}

    def write(self) -> None:
        """Replaces the return of tensors."""
        values, homes = list(self._end.operands), self._homes
        count = len(self._block.args)
        attributes = _attributes(self._function.arg_attrs, count)
        given = _attributes(self._function.res_attrs, len(values))
        candidates: list[Operation] = []
        for value in values:
            if value not in self._memory:
                words = "which no linalg operation computes"
                fail(self._end, f"the function returns {name_of(value)}, {words}")
        for value, home, more in zip(values, homes, given, strict=True):
            if home is None:
                self._new(value, candidates)
                attributes.append(more)
            else:
                merged = {**more.data, **attributes[home.index].data}
                attributes[home.index] = DictionaryAttr(merged)
        for value, home in zip(values, homes, strict=True):
            if home is not None and root_of(self._memory[value]) is not home:
                self._memory.copy(self._end, self._memory[value], home)
        new = func.ReturnOp()
        new.location = self._end.location
        Rewriter.insert_op(new, InsertPoint.before(self._end))
        self._memory.replaced.append(self._end)
        self._function.properties.pop("res_attrs", None)
        if any(entry.data for entry in attributes):
            self._function.arg_attrs = ArrayAttr(attributes)
        erase_dead(candidates, self._block)

    def _new(self, value: SSAValue, candidates: list[Operation]) -> None:
        """A new last argument that holds a result."""
        memory = self._memory[value]
        type_ = memref_type(memory.type)
        plain = MemRefType(type_.element_type, type_.get_shape())
        argument = self._block.insert_arg(plain, len(self._block.args))
        argument.name_hint = self._name(value)
        root = root_of(memory)
        given = root.owner
        if isinstance(given, memref.AllocOp) and self._is_whole(memory):
            seen = self._seen_as(given, memory, argument)
            root.replace_all_uses_with(seen)
            self._memory.note_moved(root, seen)
            candidates += owners(given)
            Rewriter.erase_op(given)
        else:
            self._memory.copy(self._end, memory, argument)

    def _name(self, value: SSAValue) -> str:
        """What a result's argument is called: as the result, by another name than the others."""
        base = value.name_hint or chain_start(value).name_hint or "result"
        taken = {argument.name_hint for argument in self._block.args}
        names = (base, *(f"{base}{number}" for number in range(2, len(taken) + 2)))
        return next(name for name in names if name not in taken)

    def _is_whole(self, memory: SSAValue) -> bool:
        """Whether memory has all elements of an allocation, and its shape is told from it."""
        while isinstance(memory.owner, RESHAPES):
            source = memory.owner.operands[0]
            static = min(memref_type(source.type).get_shape(), default=0) >= 0
            if not (static or isinstance(source.owner, memref.AllocOp)):
                return False
            memory = source
        return isinstance(memory.owner, memref.AllocOp)

    def _seen_as(
        self, allocation: memref.AllocOp, memory: SSAValue, argument: SSAValue
    ) -> SSAValue:
        """An argument in the shape of the allocation whose place it takes."""
        while isinstance(memory.owner, RESHAPES):
            view, source = memory.owner, memory.owner.operands[0]
            type_ = memref_type(source.type)
            if isinstance(view, memref.CastOp):
                made: Operation = memref.CastOp.get(argument, type_)
            elif isinstance(view, memref.ExpandShapeOp):
                made = collapse(argument, view.reassociation, type_)
            else:
                sizes = self._sizes(allocation, type_)
                made = expansion(argument, view.reassociation, sizes, type_)
            argument = self._memory.put(allocation, made)
            argument.name_hint = source.name_hint
            memory = source
        return argument

    @staticmethod
    def _sizes(allocation: memref.AllocOp, type_: MemRefType[Attribute]) -> list[Size]:
        given = iter(allocation.dynamic_sizes)
        return [size if size >= 0 else next(given) for size in type_.get_shape()]


def _attributes(given: ArrayAttr[DictionaryAttr] | None, count: int) -> list[DictionaryAttr]:
    return list(given.data) if given is not None else [DictionaryAttr({})] * count


# -- memory results --------------------------------------------------------------------------------
# Memory that a function returns: an argument stays one, an allocation becomes the last one.


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
            _argument_for(function, end, value)
            attributes.append(DictionaryAttr({}))
    made = func.ReturnOp()
    made.location = end.location
    Rewriter.insert_op(made, InsertPoint.before(end))
    Rewriter.erase_op(end)
    function.properties.pop("res_attrs", None)
    if any(entry.data for entry in attributes):
        function.arg_attrs = ArrayAttr(attributes)
    function.update_function_type()


def _argument_for(function: func.FuncOp, end: func.ReturnOp, value: SSAValue) -> None:
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
