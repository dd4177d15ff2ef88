"""The arguments of a kernel: memory as a pointer, its dynamic sizes and strides, and numbers."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import MULTIPLIED_ONLY, element_bits, element_name, is_element
from fragir.dialects.limits import check_index
from fragir.dialects.narrow import is_memref
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import INDEX, Value
from fragir.passes.lowering.counts import names_of_sizes
from fragir.passes.lowering.distances import Stride
from fragir.passes.lowering.memory import LaneMemory, row_major
from fragir.passes.lowering.state import LoweringState


class KernelArguments:
    """Gives the kernel's entry block the arguments that a function of tiles needs."""

    def __init__(self, function: func.FuncOp, entry: Block, state: LoweringState):
        self._function, self._entry, self.state = function, entry, state
        self._promises = frag.promises_of(function)
        self._sizes: dict[str, Value] = {}  # dynamic sizes and strides by their names
        self._names = names_of_sizes(state)

    def declare(self) -> None:
        """Declares all of them. FragirError for what a kernel cannot take."""
        for argument in self._function.body.block.args:
            self._argument(argument)
        self._check_promises()

    def _argument(self, argument: BlockArgument) -> None:
        type_, name = argument.type, argument.name_hint
        if is_memref(type_):
            self.state.memories[argument] = self._memory_argument(argument, type_)
        elif type_ in (INDEX, i64) or (
            is_element(type_) and element_name(type_) not in MULTIPLIED_ONLY
        ):
            self.state.values[argument] = self._add_argument(type_, name)
        else:
            raise FragirError(
                f"argument %{name or '?'} of {self._function.sym_name.data} has type {type_}",
                hint="a kernel takes memrefs in global memory, numbers and index",
            )

    def _add_argument(self, type_: Attribute, name: str | None) -> SSAValue:
        argument = self._entry.insert_arg(type_, len(self._entry.args))
        argument.name_hint = name
        return argument

    def _memory_argument(self, argument: BlockArgument, type_: MemRefType[Attribute]) -> LaneMemory:
        name = argument.name_hint
        if frag.is_shared(type_):
            raise FragirError(
                f"argument %{name or '?'} lies in shared memory",
                hint="allocate it in the kernel with memref.alloc",
            )
        element_bits(type_.element_type)
        # a launch passes a pointer to the first element, wherever that lies
        layout = type_.layout
        if isinstance(layout, StridedLayoutAttr) and layout.offset not in (IntAttr(0), NoneAttr()):
            raise FragirError(
                f"{type_} has an offset",
                hint="write `offset: ?`, or none, and pass a pointer to its first element",
            )
        for size in type_.get_shape():
            if size != DYNAMIC_INDEX:
                check_index(size, f"a size of {type_}")
        pointer = self._add_argument(ptx.GLOBAL, name)
        shape = [
            self._add_argument(INDEX, f"{name or 'arg'}_d{i}") if size == DYNAMIC_INDEX else size
            for i, size in enumerate(type_.get_shape())
        ]
        dims, stride_names = frag.size_names(self._function, argument.index)
        shape = self._named(dims, shape)
        known = frag.strides_of(type_)
        strides: Sequence[Stride]
        if known is None:
            strides = row_major(shape)
        else:
            given: list[Value] = [
                self._add_argument(INDEX, f"{name or 'arg'}_s{i}") if s == DYNAMIC_INDEX else s
                for i, s in enumerate(known)
            ]
            strides = self._named(stride_names or (), given)
        return LaneMemory(pointer, tuple(shape), tuple(strides), type_.element_type)

    def _named(self, names: Sequence[int | str], values: Sequence[Value]) -> list[Value]:
        """Dynamic sizes or strides, of equal names the first; with what the program promises."""
        found = list(values)
        for at, (name, value) in enumerate(zip(names, values, strict=True)):
            if isinstance(name, str) and not isinstance(value, int):
                found[at] = self._sizes.setdefault(name, value)
                self._names.setdefault(value, name)
                self.state.ar.assume_divisor(value, self._promises.get(name, 1))
        return found

    def _check_promises(self) -> None:
        unknown = sorted(self._promises.keys() - self._sizes)
        if unknown:
            raise FragirError(
                f"frag.divisible promises something of {', '.join(unknown)}, which is no dynamic "
                f"size of {self._function.sym_name.data}",
                hint=f"it has {', '.join(sorted(self._sizes)) or 'none'}",
            )
