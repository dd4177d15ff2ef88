"""Makes kernels of a function's groups, and launches of the function."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.constants import constant_of
from fragir.dialects.frag.kernels import HOST
from fragir.dialects.narrow import is_memref
from fragir.passes.contraction.scalars import erase_dead, is_scalar
from fragir.passes.contraction.size_names import name_sizes
from fragir.passes.contraction.views import VIEWS, root_of
from fragir.passes.dispatching.dead import erase_unread
from fragir.passes.dispatching.groups import groups_of, is_computed, units_of
from fragir.passes.dispatching.kernel_kinds import problem_of
from fragir.passes.dispatching.unit_dims import drop_unit_dims


class Dispatch:
    """One function."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, target: str):
        self._module, self._function, self._target = module, function, target
        self._block = function.body.block
        self._order: dict[SSAValue, int] = {}

    def run(self) -> None:
        """Replaces the groups by launches, unless there is one only."""
        erase_unread(self._block)
        drop_unit_dims(self._block)
        self._order = {value: at for at, value in enumerate(self._values())}
        units = units_of(self._block)
        alone = len(units) < 2 and all(len(unit.operations) < 2 for unit in units)
        if alone or problem_of(self._function, self._target) is None:
            return
        groups = groups_of(units, self._accepts)
        if len(groups) < 2:
            return
        self._name()
        name_sizes(self._function)
        kernels = [self._kernel(group, number) for number, group in enumerate(groups)]
        self._hoist()
        end = self._block.last_op
        assert end is not None
        for group, (kernel, arguments) in zip(groups, kernels, strict=True):
            # in their order: the first operation of a group may be a fill that stands further ahead
            launch = frag.LaunchOp(kernel.sym_name.data, arguments)
            launch.location = group[-1].location
            Rewriter.insert_op(launch, InsertPoint.before(end))
        for op in [x for x in self._block.ops if isinstance(x, memref.DeallocOp)]:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(end))
        for op in (op for group in groups for op in group):
            Rewriter.erase_op(op)
        self._clean()
        at = InsertPoint.after(self._function)
        Rewriter.insert_op([kernel for kernel, _ in kernels], at)
        self._function.attributes[HOST] = UnitAttr()

    def _values(self) -> Iterator[SSAValue]:
        """The values of the function, in the order in which kernels take them."""
        yield from self._block.args
        for op in self._block.ops:
            yield from op.results

    def _name(self) -> None:
        """Names what goes from kernel to kernel, as plans show it."""
        taken = {value.name_hint for value in self._order}
        names = (name for at in count() if (name := f"t{at}") not in taken)
        for value in self._order:
            if isinstance(value.owner, memref.AllocOp) and value.name_hint is None:
                value.name_hint = next(names)

    def _accepts(self, group: Sequence[Operation]) -> bool:
        """Whether one kernel can compute a group."""
        kernel, _ = self._kernel(group, 0)
        return problem_of(kernel, self._target) is None

    # --- kernels ------------------------------------------------------------------------------

    def _kernel(
        self, group: Sequence[Operation], number: int
    ) -> tuple[func.FuncOp, list[SSAValue]]:
        """A function that computes a group, in no module yet, and what it is launched with."""
        outside = self._outside(group)
        within = self._within(group, outside)
        inner = sorted(within, key=self._place)
        used = [value for op in inner for value in op.operands]
        roots = [
            value
            for value in (*used, *self._used(group))
            if not isinstance(value.owner, Operation) or value.owner not in within
        ]
        arguments = sorted(dict.fromkeys(roots), key=self._order.__getitem__)
        block = Block(arg_types=[value.type for value in arguments])
        names: dict[SSAValue, SSAValue] = dict(zip(arguments, block.args, strict=True))
        for value, argument in zip(arguments, block.args, strict=True):
            argument.name_hint = value.name_hint
        for op in (*inner, *group):
            copy = op.clone(names)
            for old, new in zip(op.walk(), copy.walk(), strict=True):
                new.location = old.location
            block.add_op(copy)
            for old, new in zip(op.results, copy.results, strict=True):
                new.name_hint = old.name_hint
        end = func.ReturnOp()
        end.location = self._function.location
        block.add_op(end)
        name = f"{self._function.sym_name.data}_{number}"
        kernel = func.FuncOp(name, ([value.type for value in arguments], []), Region(block))
        kernel.location = group[-1].location
        self._annotate(kernel, arguments)
        return kernel, arguments

    def _place(self, op: Operation) -> int:
        return self._order[op.results[0]]

    def _used(self, group: Sequence[Operation]) -> Iterator[SSAValue]:
        """What a group uses of the function."""
        for op in group:
            for inner in op.walk():
                for value in inner.operands:
                    if value in self._order:
                        yield value

    def _outside(self, group: Sequence[Operation]) -> set[SSAValue]:
        """The buffers of the function's own that others use as well, by their roots."""
        others = [op for op in self._block.ops if is_computed(op) and op not in group]
        used = (value for op in others for inner in op.walk() for value in inner.operands)
        return {root_of(value) for value in used if is_memref(value.type)}

    def _within(self, group: Sequence[Operation], outside: set[SSAValue]) -> set[Operation]:
        """The operations of the function that the kernel repeats: constants, its own buffers and
        their sizes, views."""
        found: set[Operation] = set()
        pending = list(self._used(group))
        while pending:
            value = pending.pop()
            op = value.owner
            if not isinstance(op, Operation) or op in found:
                continue
            own = isinstance(op, memref.AllocOp) and op.memref not in outside
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


_SIZES = "frag.sizes"
