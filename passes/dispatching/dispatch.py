"""Makes kernels of a function's groups, and launches of the function.

A group for which a kernel was written is that kernel; one for which none could be is a function of
linalg still, of which the passes behind this one say why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import count

from xdsl.dialects import cf, func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.frag.kernels import HOST
from fragir.dialects.memory_types import VIEWS, root_of
from fragir.dialects.shorthands import constant_of, index_constant, is_memref
from fragir.passes.dispatching.groups import KernelGroup, groups_of, may_be_one, units_of
from fragir.passes.dispatching.split_sums import split_sums
from fragir.passes.dispatching.unit_dims import drop_unit_dims
from fragir.passes.structured.bodies import KernelProblem
from fragir.passes.structured.memory import erase_dead, is_scalar, name_sizes
from fragir.passes.structured.writing import (
    WrittenKernel,
    computed_in,
    copy_function,
    write,
)


class Dispatch:
    """One function."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, target: str):
        self._module, self._function, self._target = module, function, target
        self._block = function.body.block
        self._order: dict[SSAValue, int] = {}
        self._refused: tuple[list[Operation], KernelProblem | None] = [], None
        """All operations, and why they are not one kernel."""

    def run(self) -> None:
        """Replaces the groups by launches; a function of one kernel becomes that."""
        erase_unread(self._block)
        drop_unit_dims(self._block)
        split_sums(self._block, self._target)
        self._order = {value: at for at, value in enumerate(self._values())}
        units = units_of(self._block)
        if not units:
            return
        # what is asserted of sizes is seen by the host, also where it launches one kernel
        asserts = any(isinstance(op, cf.AssertOp) for op in self._block.ops)
        if may_be_one(units) and not asserts:
            found = write(copy_function(self._function), self._target)
            if isinstance(found, WrittenKernel):
                self._become(found)
                return
            self._refused = computed_in(self._function), found
        before, names = self._function.arg_attrs, self._name()
        name_sizes(self._function)
        groups = groups_of(units, self._write)
        if len(groups) < 2 and not asserts:
            self._function.arg_attrs = before
            for value in names:
                value.name_hint = None
            return
        kernels = [self._make_kernel(group, number) for number, group in enumerate(groups)]
        self._hoist()
        end = self._block.last_op
        assert end is not None
        for group, kernel in zip(groups, kernels, strict=True):
            # in their order: the first operation of a group may be a fill that stands further ahead
            arguments = self._arguments(group.operations)
            launch = frag.LaunchOp(kernel.sym_name.data, arguments)
            launch.location = group.operations[-1].location
            Rewriter.insert_op(launch, InsertPoint.before(end))
        for op in [x for x in self._block.ops if isinstance(x, memref.DeallocOp)]:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(end))
        for op in (op for group in groups for op in group.operations):
            Rewriter.erase_op(op)
        self._clean()
        Rewriter.insert_op(kernels, InsertPoint.after(self._function))
        self._function.attributes[HOST] = UnitAttr()

    def _become(self, kernel: WrittenKernel) -> None:
        """Puts a kernel in the place of the function."""
        kernel.function.detach()
        Rewriter.insert_op(kernel.function, InsertPoint.before(self._function))
        Rewriter.erase_op(self._function)

    def _write(self, group: Sequence[Operation]) -> WrittenKernel | KernelProblem:
        operations, problem = self._refused
        if problem is not None and list(group) == operations:
            return problem
        return write(self._kernel(group), self._target)

    def _make_kernel(self, group: KernelGroup, number: int) -> func.FuncOp:
        """The kernel of a group; where none could be written, the operations themselves."""
        kernel = self._kernel(group.operations) if group.kernel is None else group.kernel.function
        kernel.detach()
        kernel.sym_name = StringAttr(f"{self._function.sym_name.data}_{number}")
        return kernel

    def _values(self) -> Iterator[SSAValue]:
        """The values of the function, in the order in which kernels take them."""
        yield from self._block.args
        for op in self._block.ops:
            yield from op.results

    def _name(self) -> list[SSAValue]:
        """Names what goes from kernel to kernel, as plans show it; what it has named."""
        taken = {value.name_hint for value in self._order}
        names = (name for at in count() if (name := f"t{at}") not in taken)
        made: list[SSAValue] = []
        for value in self._order:
            if isinstance(value.owner, memref.AllocOp) and value.name_hint is None:
                value.name_hint = next(names)
                made.append(value)
        return made

    # --- kernels ------------------------------------------------------------------------------

    def _kernel(self, group: Sequence[Operation]) -> func.FuncOp:
        """A function that computes a group, in a module of its own."""
        inner, arguments = self._inner(group), self._arguments(group)
        block = Block(arg_types=[value.type for value in arguments])
        names: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
        for value, argument in zip(arguments, block.args, strict=True):
            argument.name_hint = value.name_hint
        block.add_ops(op.clone(names) for op in (*inner, *group))
        end = func.ReturnOp()
        end.location = self._function.location
        block.add_op(end)
        name = f"{self._function.sym_name.data}_0"
        kernel = func.FuncOp(name, ([value.type for value in arguments], []), Region(block))
        kernel.location = group[-1].location
        self._annotate(kernel, arguments)
        ModuleOp([kernel])
        return kernel

    def _inner(self, group: Sequence[Operation]) -> list[Operation]:
        """What the kernel of a group repeats of the function, in order."""
        return sorted(self._within(group), key=self._place)

    def _arguments(self, group: Sequence[Operation]) -> list[SSAValue]:
        """What the kernel of a group is launched with."""
        inner = self._inner(group)
        within = set(inner)
        used = [value for op in inner for value in op.operands]
        roots = [
            value
            for value in (*used, *self._used_values(group))
            if not isinstance(value.owner, Operation) or value.owner not in within
        ]
        return sorted(dict.fromkeys(roots), key=self._order.__getitem__)

    def _place(self, op: Operation) -> int:
        return self._order[op.results[0]]

    def _used_values(self, group: Sequence[Operation]) -> Iterator[SSAValue]:
        """What a group uses of the function."""
        for op in group:
            for inner in op.walk():
                for value in inner.operands:
                    if value in self._order:
                        yield value

    @cached_property
    def _users(self) -> dict[SSAValue, set[Operation]]:
        """By the roots of memory, what computes with it: `units_of` has all of that."""
        found: dict[SSAValue, set[Operation]] = {}
        for op in computed_in(self._function):
            for inner in op.walk():
                for value in inner.operands:
                    if is_memref(value.type):
                        found.setdefault(root_of(value), set()).add(op)
        return found

    def _within(self, group: Sequence[Operation]) -> set[Operation]:
        """The operations of the function that the kernel repeats: constants, buffers that no others
        use and their sizes, views."""
        found, own_users = set[Operation](), set(group)
        pending = list(self._used_values(group))
        while pending:
            value = pending.pop()
            op = value.owner
            if not isinstance(op, Operation) or op in found:
                continue
            own = isinstance(op, memref.AllocOp) and self._users.get(op.memref, set()) <= own_users
            pure = isinstance(op, (*VIEWS, memref.DimOp)) or is_scalar(op)
            if own or pure:
                found.add(op)
                pending += op.operands
        return found

    def _annotate(self, kernel: func.FuncOp, arguments: Sequence[SSAValue]) -> None:
        """Names of sizes, and what is promised of them."""
        given = [self._attributes(value) for value in arguments]
        if any(entry.data for entry in given):
            kernel.arg_attrs = ArrayAttr(given)
        promises = self._function.attributes.get(frag.DIVISIBLE)
        if isinstance(promises, DictionaryAttr):
            names = {name for entry in given for name in frag.sizes_of(entry.data.get(_SIZES))}
            kept = {name: by for name, by in promises.data.items() if name in names}
            if kept:
                kernel.attributes[frag.DIVISIBLE] = DictionaryAttr(kept)

    def _attributes(self, value: SSAValue) -> DictionaryAttr:
        """The attributes of an argument; a temporary's sizes are called as those that they are."""
        if isinstance(value, BlockArgument):
            every = self._function.arg_attrs
            return every.data[value.index] if every is not None else DictionaryAttr({})
        if not isinstance(value.owner, memref.AllocOp):
            return DictionaryAttr({})
        sizes = iter(value.owner.dynamic_sizes)
        shape = value.owner.memref.type.get_shape()
        names = [self._size_name(next(sizes)) if size < 0 else None for size in shape]
        known = all(name is not None for name, size in zip(names, shape, strict=True) if size < 0)
        if not names or not known or not any(names):
            return DictionaryAttr({})
        label = value.name_hint or f"t{self._order[value]}"
        shown = [name or f"{label}_d{dim}" for dim, name in enumerate(names)]
        return DictionaryAttr({_SIZES: ArrayAttr(map(StringAttr, shown))})

    def _size_name(self, size: SSAValue) -> str | None:
        """What the size is called that a `memref.dim` of an argument gives."""
        op = size.owner
        if not isinstance(op, memref.DimOp) or not isinstance(op.source, BlockArgument):
            return None
        names = frag.sizes_of(self._attributes(op.source).data.get(_SIZES))
        dim = constant_of(op.index)
        return names[dim] if dim is not None and dim < len(names) else None

    # --- the host -----------------------------------------------------------------------------

    def _hoist(self) -> None:
        """Memory and its sizes come ahead of all launches."""
        moved = [
            op
            for op in self._block.ops
            if isinstance(op, (memref.AllocOp, memref.DimOp, *VIEWS)) or is_scalar(op)
        ]
        for op in moved:
            op.detach()
        Rewriter.insert_op(moved, InsertPoint.at_start(self._block))

    def _clean(self) -> None:
        """Erases memory that only kernels have now, and what only it needed."""
        for op in reversed(list(self._block.ops)):
            users = [use.operation for result in op.results for use in result.uses]
            if isinstance(op, VIEWS) and not users:
                Rewriter.erase_op(op)
            elif isinstance(op, memref.AllocOp) and all(
                isinstance(user, memref.DeallocOp) for user in users
            ):
                for user in users:
                    Rewriter.erase_op(user)
                Rewriter.erase_op(op)
        erase_dead([op for op in self._block.ops if op.results], self._block)


def erase_unread(block: Block) -> None:
    """Erases operations of linalg that write memory of the block's own which nothing behind them
    reads. Sizes of such memory are those that it was allocated with.
    """
    for op in list(block.ops):
        if isinstance(op, memref.DimOp) and isinstance(op.source.owner, memref.AllocOp):
            _forward(op, op.source.owner)
    read: set[SSAValue] = set()
    for op in reversed(list(block.ops)):
        if isinstance(op, (memref.AllocOp, memref.DeallocOp, memref.DimOp, *VIEWS)):
            continue
        memories = {
            root_of(value)
            for inner in op.walk()
            for value in inner.operands
            if is_memref(value.type)
        }
        if isinstance(op, LinalgStructuredOperation):
            written = {root_of(output) for output in op.outputs}
            asserts = any(isinstance(inner, cf.AssertOp) for inner in op.body.block.ops)
            if not asserts and all(
                isinstance(m.owner, memref.AllocOp) and m not in read for m in written
            ):
                Rewriter.erase_op(op)
                continue
        read |= memories


def _forward(op: memref.DimOp, memory: memref.AllocOp) -> None:
    """Gives a size of memory as it was given when that was allocated."""
    dim = constant_of(op.index)
    shape = memory.memref.type.get_shape()
    if dim is None or not 0 <= dim < len(shape):
        return
    if shape[dim] < 0:
        size: SSAValue = memory.dynamic_sizes[sum(s < 0 for s in shape[:dim])]
    else:
        made: Operation = index_constant(shape[dim])
        Rewriter.insert_op(made, InsertPoint.before(op))
        size = made.results[0]
    Rewriter.replace_op(op, [], [size])


_SIZES = "frag.sizes"
