"""Lowers one function of tiles to what one lane does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import MULTIPLIED_ONLY, element_bits, element_name, is_element
from fragir.dialects.frag.kernels import BLOCKS_PER_SM, blocks_per_sm
from fragir.dialects.interfaces import LOWERINGS, WarpgroupCollective
from fragir.dialects.limits import check_index, check_registers
from fragir.dialects.shorthands import is_memref, operations_in
from fragir.errors import FragirError
from fragir.isa.registry import per_table
from fragir.layout.modes import WARP
from fragir.mlir.diagnostics import asking, fail
from fragir.passes.lowering import operations as operations
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Stride, Value
from fragir.passes.lowering.copies import has_cp_async
from fragir.passes.lowering.lane_builder import Lanes, names_of_sizes
from fragir.passes.lowering.memory import LaneMemory, row_major
from fragir.passes.lowering.state import LoweringState
from fragir.passes.remarks import REMARKS, lone_blocks
from fragir.plugins import package_of

if TYPE_CHECKING:
    from fragir.passes.dead_memory import DeadMemory


# -- arguments -------------------------------------------------------------------------------------
# The arguments of a kernel: memory as a pointer, its dynamic sizes and strides, and numbers.


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
        shape = self._named_values(dims, shape)
        known = frag.strides_of(type_)
        strides: Sequence[Stride]
        if known is None:
            strides = row_major(shape)
        else:
            given: list[Value] = [
                self._add_argument(INDEX, f"{name or 'arg'}_s{i}") if s == DYNAMIC_INDEX else s
                for i, s in enumerate(known)
            ]
            strides = self._named_values(stride_names or (), given)
        return LaneMemory(pointer, tuple(shape), tuple(strides), type_.element_type)

    def _named_values(self, names: Sequence[int | str], values: Sequence[Value]) -> list[Value]:
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


class FunctionLowering:
    """Walks a function front to back; each operation is lowered by what `LOWERINGS` has for it."""

    def __init__(self, function: func.FuncOp, threads: int, target: str):
        self.function = function
        self.entry = Block()
        ar = Arithmetic(self.entry)
        operations = operations_in(function)
        tma = any("tma" in op.properties for op in operations)
        async_proxy = tma or any(op.has_trait(WarpgroupCollective) for op in operations)
        self._threads = threads
        self.state = LoweringState(target, threads, async_proxy, ar, self.lower_block, operations)
        self.lanes = Lanes(self.state)
        self._dead: DeadMemory | None = None
        if any(op.name == "frag.convert" for op in operations):
            self._look_for_dead_memory()
        if tma or "frag.cluster" in function.attributes:
            from fragir.passes.lowering import bulk_groups  # few programs need it

            bulk_groups.begin(self.lanes, function)

    def _look_for_dead_memory(self) -> None:
        """Lets conversions have memory that nothing else needs any more."""
        from fragir.passes.dead_memory import dead_memory  # few programs need it

        dead = dead_memory(self.function)
        if dead is not None and any(
            op.name == "frag.convert" and dead.is_dead_at(op) for op in self.state.operations
        ):
            self._dead = dead

    def _convert_over(self, dead: DeadMemory) -> None:
        """From here on conversions have that memory."""
        pointers: list[SSAValue] = []
        for alloc in dead.allocations:
            if isinstance(alloc, frag.RingOp):
                from fragir.passes.lowering.operations.rings import rings

                made = rings(self.lanes).made[alloc.ring]
                pointers += [part.first.pointer for part in made.parts]
                # copies of slots that nobody awaited may be under way
                if has_cp_async(self.state.target):
                    self.state.ar.insert(ptx.SyncOp("cp.async.wait_group", 0))
            else:
                pointers.append(self.state.memories[alloc.results[0]].pointer)
        owners = [pointer.owner for pointer in pointers]
        self.state.convert_over([owner for owner in owners if isinstance(owner, ptx.SharedOp)])

    def run(self) -> func.FuncOp:
        """The lowered function, not yet in the module."""
        KernelArguments(self.function, self.entry, self.state).declare()
        self.lower_block(self.function.body.block)
        self.state.finish(self.entry)
        types = [argument.type for argument in self.entry.args]
        lowered = func.FuncOp(self.function.sym_name.data, (types, []), Region(self.entry))
        lowered.attributes["ptx.ntid"] = IntegerAttr(self._threads, i64)
        lowered.attributes.update(self.state.attributes)
        if BLOCKS_PER_SM in self.function.attributes:
            from fragir.passes.lowering.roles import RESIDENT  # few programs need it

            lowered.attributes[RESIDENT] = IntegerAttr(self._resident(), i64)
        remarks = [*frag.sizes_of(self.function.attributes.get(REMARKS))]
        remarks += [*self.state.remarks, *lone_blocks(self.function, self.state.operations)]
        if remarks:
            lowered.attributes["ptx.remarks"] = ArrayAttr(map(StringAttr, remarks))
        return lowered

    def _resident(self) -> int:
        """The blocks that the function wants a multiprocessor to hold."""
        from fragir.passes.lowering.roles import check_shared_out

        try:
            blocks = blocks_per_sm(self.function)
            assert blocks is not None
            if blocks > 1:
                check_shared_out(self.state.operations, self.state.target)
        except FragirError as error:
            fail(self.function, str(error))
        return blocks

    def lower_block(self, block: Block) -> None:
        """Lowers every operation of a block into the current one."""
        for op in block.ops:
            self.state.ar.location = op.location
            with asking(op):
                for result in op.results:
                    tile = frag.held_tile(result.type)
                    if tile is not None:
                        _check_fragment(tile, self.state.threads)
                if op in self.state.ahead:
                    self.state.ahead[op]()
                self.lower(op)
                if self._dead is not None and op is self._dead.behind:
                    self._convert_over(self._dead)

    def lower(self, op: Operation) -> None:
        """Lowers one operation and binds its results."""
        lowering = LOWERINGS.of(type(op))
        if lowering is None:
            self._take_over(op)
        else:
            lowering(self.lanes, op)
            self.lanes.check_bound(op)

    def _take_over(self, op: Operation) -> None:
        """Any operation on scalars is taken over as it is."""
        state = self.state
        if op.regions or any(
            isinstance(v.type, frag.TileType | MemRefType) for v in (*op.operands, *op.results)
        ):
            package = package_of(type(op))
            raise FragirError(
                f"{op.name} has no lowering to lanes",
                hint="tiles take frag, arith in frag.map, scf.for and scf.if"
                if package is None
                else f"the package {package} must give it a LaneInterface, or a pass for it",
            )
        operands = [state.scalar(operand) for operand in op.operands]
        lowered = state.ar.insert(
            type(op).create(
                operands=operands,
                result_types=op.result_types,
                properties=dict(op.properties),
                attributes=dict(op.attributes),
            )
        )
        for old, new in zip(op.results, lowered.results, strict=True):
            new.name_hint = old.name_hint
            state.values[old] = new


@per_table
def _check_fragment(tile: frag.TileType, threads: int) -> None:
    """FragirError where a lane's share of a tile is more than anything should unroll, or where the
    block has too few warps to hold the tile.
    """
    sizes = tile.resolve().sizes
    elements = sizes.get("element", 1)
    check_registers(-(-elements * element_bits(tile.element_type) // 32), str(tile))
    warps, has = sizes.get("warp", 1) * max(1, sizes.get("lane", 1) // WARP), threads // WARP
    if warps > has:
        raise FragirError(
            f"{tile} is spread over {warps} warps, but a block of this function has {has}",
            hint=f"write frag.warps = array<i64: {warps}, 1> at the function, or another layout",
        )
