"""Lowers one function of tiles to what one lane does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import singledispatchmethod
from math import gcd

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    IntegerAttr,
    MemRefType,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from fragir.diagnostics import fail, note_place
from fragir.dialects import frag, ptx
from fragir.dialects.elements import MULTIPLIED_ONLY, element_bits, element_name, is_element
from fragir.dialects.limits import check_index, check_registers
from fragir.dialects.narrow import is_memref, memref_type
from fragir.errors import FragirError
from fragir.isa.table import derived
from fragir.passes.limits import allocate
from fragir.passes.lowering import copies, multiply
from fragir.passes.lowering.access import TileAccess
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.deferred import Deferred, defers
from fragir.passes.lowering.elementwise import cast_op, clone_elementwise
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import Memory, row_major, shared_memory, strides_of
from fragir.passes.lowering.packed import PackedAccess


class FunctionLowering:
    """Walks a function front to back with a map from its values to values of the lane level.

    A tile becomes a list of vectors, one for every fragment of the instruction of its layout.
    """

    def __init__(self, function: func.FuncOp, threads: int, target: str):
        self.function = function
        self.threads = threads
        self.target = target
        self.uses_wgmma = any(isinstance(op, frag.WgmmaOp) for op in function.walk())
        self.entry = Block()
        self.ar = Arithmetic(self.entry)
        self.hardware = Hardware(self.ar, threads)
        self.tiles: dict[SSAValue, Sequence[SSAValue]] = {}
        self.values: dict[SSAValue, Value] = {}
        self.memories: dict[SSAValue, Memory] = {}
        self.promises = frag.promises_of(function)
        self.sizes: set[str] = set()  # names of dynamic sizes and strides

    def run(self) -> func.FuncOp:
        """The lowered function, not yet in the module."""
        for argument in self.function.body.block.args:
            self._argument(argument)
        self._check_promises()
        self.lower_block(self.function.body.block)
        types = [argument.type for argument in self.entry.args]
        lowered = func.FuncOp(self.function.sym_name.data, (types, []), Region(self.entry))
        lowered.attributes["ptx.ntid"] = IntegerAttr(self.threads, i64)
        return lowered

    # --- arguments ----------------------------------------------------------------------------

    def _argument(self, argument: BlockArgument) -> None:
        type_, name = argument.type, argument.name_hint
        if is_memref(type_):
            self.memories[argument] = self._memory_argument(argument, type_)
        elif type_ in (INDEX, i64) or (
            is_element(type_) and element_name(type_) not in MULTIPLIED_ONLY
        ):
            self.values[argument] = self._add_argument(type_, name)
        else:
            raise FragirError(
                f"argument %{name or '?'} of {self.function.sym_name.data} has type {type_}",
                hint="a kernel takes memrefs in global memory, numbers and index",
            )

    def _add_argument(self, type_: Attribute, name: str | None) -> SSAValue:
        argument = self.entry.insert_arg(type_, len(self.entry.args))
        argument.name_hint = name
        return argument

    def _memory_argument(self, argument: BlockArgument, type_: MemRefType[Attribute]) -> Memory:
        name = argument.name_hint
        if frag.is_shared(type_):
            raise FragirError(
                f"argument %{name or '?'} lies in shared memory",
                hint="allocate it in the kernel with memref.alloc",
            )
        element_bits(type_.element_type)
        for size in (*type_.get_shape(), *(strides_of(type_) or ())):
            if size != DYNAMIC_INDEX:
                check_index(size, f"a size or stride of {type_}")
        pointer = self._add_argument(ptx.GLOBAL, name)
        shape = [
            self._add_argument(INDEX, f"{name or 'arg'}_d{i}") if size == DYNAMIC_INDEX else size
            for i, size in enumerate(type_.get_shape())
        ]
        dims, stride_names = frag.size_names(self.function, argument.index)
        self._promised(dims, shape)
        known = strides_of(type_)
        strides: Sequence[Value]
        if known is None:
            strides = row_major(self.ar, shape)
        else:
            strides = [
                self._add_argument(INDEX, f"{name or 'arg'}_s{i}") if s == DYNAMIC_INDEX else s
                for i, s in enumerate(known)
            ]
            self._promised(stride_names or (), strides)
        return Memory(pointer, tuple(shape), tuple(strides), type_.element_type)

    def _promised(self, names: Sequence[int | str], values: Sequence[Value]) -> None:
        """Uses what the program promises of an argument's dynamic sizes or strides."""
        for name, value in zip(names, values, strict=True):
            if isinstance(name, str) and not isinstance(value, int):
                self.sizes.add(name)
                self.ar.assume_divisor(value, self.promises.get(name, 1))

    def _check_promises(self) -> None:
        unknown = sorted(self.promises.keys() - self.sizes)
        if unknown:
            raise FragirError(
                f"frag.divisible promises something of {', '.join(unknown)}, which is no dynamic "
                f"size of {self.function.sym_name.data}",
                hint=f"it has {', '.join(sorted(self.sizes)) or 'none'}",
            )

    # --- values -------------------------------------------------------------------------------

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar as a value of the lane level."""
        return self.ar.value(self.values[value])

    def index(self, value: int | SSAValue) -> Value:
        """An index, numbers kept as numbers."""
        return check_index(value, "an index") if isinstance(value, int) else self.values[value]

    def indices(self, values: Sequence[int | SSAValue]) -> list[Value]:
        return [self.index(value) for value in values]

    # --- operations ---------------------------------------------------------------------------

    def lower_block(self, block: Block) -> None:
        """Lowers every operation of a block into the current one."""
        for op in block.ops:
            self.ar.location = op.location
            try:
                for result in op.results:
                    if isinstance(result.type, frag.TileType):
                        _check_fragment(result.type)
                self.lower(op)
            except FragirError as error:
                fail(op, f"{op.name}: {error}")
            except Exception as error:
                note_place(error, op)
                raise

    @singledispatchmethod
    def lower(self, op: Operation) -> None:
        """Any operation on scalars is taken over as it is."""
        if op.regions or any(
            isinstance(v.type, frag.TileType | MemRefType) for v in (*op.operands, *op.results)
        ):
            raise FragirError(
                f"{op.name} has no lowering to lanes",
                hint="tiles take frag, arith in frag.map, scf.for and scf.if",
            )
        operands = [self.scalar(operand) for operand in op.operands]
        lowered = self.ar.insert(
            type(op).create(
                operands=operands,
                result_types=op.result_types,
                properties=dict(op.properties),
                attributes=dict(op.attributes),
            )
        )
        for old, new in zip(op.results, lowered.results, strict=True):
            new.name_hint = old.name_hint
            self.values[old] = new

    @lower.register
    def _(self, op: arith.ConstantOp) -> None:
        if isinstance(op.value, IntegerAttr) and op.result.type == INDEX:
            self.values[op.result] = check_index(op.value.value.data, "an index")
            return
        value = op.value
        self.values[op.result] = self.ar.pure(
            ("constant", value), (), lambda: arith.ConstantOp(value)
        )

    @lower.register
    def _(self, op: arith.AddiOp) -> None:
        self._integer(op, self.ar.add)

    @lower.register
    def _(self, op: arith.SubiOp) -> None:
        self._integer(op, self.ar.sub)

    @lower.register
    def _(self, op: arith.MuliOp) -> None:
        self._integer(op, self.ar.mul)

    @lower.register
    def _(self, op: arith.DivUIOp) -> None:
        self._integer(op, self._divide)

    @lower.register
    def _(self, op: arith.RemUIOp) -> None:
        self._integer(op, self._remainder)

    def _divide(self, x: Value, y: Value, name: str | None) -> Value:
        if isinstance(y, int) and y > 0:
            return self.ar.div(x, y, name)
        return self.ar.insert(arith.DivUIOp(self.ar.value(x), self.ar.value(y)), name).result

    def _remainder(self, x: Value, y: Value, name: str | None) -> Value:
        if isinstance(y, int) and y > 0:
            return self.ar.rem(x, y, name)
        return self.ar.insert(arith.RemUIOp(self.ar.value(x), self.ar.value(y)), name).result

    def _integer(
        self,
        op: arith.SignlessIntegerBinaryOperation,
        build: Callable[[Value, Value, str | None], Value],
    ) -> None:
        x, y, result = op.lhs, op.rhs, op.result
        if result.type == INDEX:
            self.values[result] = build(self.values[x], self.values[y], result.name_hint)
            return
        new = self.ar.insert(type(op)(self.scalar(x), self.scalar(y)), result.name_hint)
        self.values[result] = new.result

    @lower.register
    def _(self, op: func.ReturnOp) -> None:
        if op.arguments:
            raise FragirError("a kernel returns nothing", hint="write results to a memref argument")
        self.ar.insert(func.ReturnOp())

    @lower.register
    def _(self, op: frag.BlockIdOp) -> None:
        register = f"ctaid.{op.dimension.data.value}"
        self.values[op.result] = self.hardware.special(register, op.result.name_hint or "block")

    @lower.register
    def _(self, op: memref.DimOp) -> None:
        index = self.values[op.index]
        shape = self.memories[op.source].shape
        if not isinstance(index, int) or not 0 <= index < len(shape):
            raise FragirError("memref.dim takes a constant number of a dimension")
        self.values[op.result] = shape[index]

    @lower.register
    def _(self, op: memref.ExpandShapeOp) -> None:
        source, target = memref_type(op.src.type), memref_type(op.result.type)
        memory = self.memories[op.src]
        if len(source.get_shape()) != 1 or target.get_shape() != (*source.get_shape(), 1):
            raise FragirError(
                f"{source} cannot be read as {target}", hint="only memref<M> as memref<Mx1>"
            )
        self.memories[op.result] = Memory(
            memory.pointer, (*memory.shape, 1), (*memory.strides, 1), memory.element
        )

    @lower.register
    def _(self, op: memref.AllocOp) -> None:
        type_ = memref_type(op.memref.type)
        if not frag.is_shared(type_):
            raise FragirError(
                f"a kernel can allocate shared memory only, not {type_}",
                hint="write memref<..., #frag.shared> or <..., #frag.shared<swizzle = 128>>",
            )
        shape = type_.get_shape()
        if DYNAMIC_INDEX in shape or len(shape) < 2:
            raise FragirError("shared memory has a static shape of two dimensions or more")
        dummy = ptx.SharedOp(0)
        memory = shared_memory(self.ar, dummy.pointer, type_)
        assert memory.matrix is not None
        total = memory.matrix.bytes
        for size in shape[:-2]:
            total *= size
        op_ = self.ar.insert(ptx.SharedOp(total), op.memref.name_hint)
        allocate(op_, 0, self.target)  # what no block has is not unrolled first
        self.memories[op.memref] = shared_memory(self.ar, op_.pointer, type_)

    @lower.register
    def _(self, op: memref.DeallocOp) -> None:
        """Shared memory lives as long as the block."""

    @lower.register
    def _(self, op: frag.ViewOp) -> None:
        memory = self.memories[op.memory]
        pointer = memory.pointer
        for index, stride in zip(self.indices(op.all_indices()), memory.strides[:-2], strict=True):
            pointer, more = self.ar.offset(pointer, self.ar.mul(index, stride))
            if more:
                pointer, _ = self.ar.offset(pointer, self.ar.constant(more))
        self.memories[op.matrix] = Memory(
            pointer, memory.shape[-2:], memory.strides[-2:], memory.element, memory.matrix
        )

    @lower.register
    def _(self, op: frag.FillOp) -> None:
        tile = op.tile.type
        placement = tile.placement
        assert placement is not None
        count = tile.resolve().size("element") // placement.chunk
        vector = self._splat(op.value, placement.chunk)
        self.tiles[op.tile] = [vector] * count

    def _splat(self, value: SSAValue, count: int) -> SSAValue:
        constant = value.owner
        if isinstance(constant, arith.ConstantOp) and _is_zero(constant.value):
            return self.ar.zero(VectorType(value.type, [count]))
        return self.ar.splat(self.scalar(value), count)

    def _packed(self, tile: frag.TileType, op: frag.LoadOp | frag.StoreOp) -> PackedAccess:
        return PackedAccess(
            self.ar,
            self.hardware,
            tile,
            self.memories[op.memory],
            self.indices(op.all_indices()),
            transposed=op.transposed is not None,
            masked=op.masked is not None,
            target=self.target,
            broadcast=isinstance(op, frag.LoadOp) and op.broadcast is not None,
        )

    @lower.register
    def _(self, op: frag.LoadOp) -> None:
        memory = self.memories[op.memory]
        if memory.bits < 8:
            self.tiles[op.tile] = self._packed(op.tile.type, op).load()
            return
        access = TileAccess(
            self.ar,
            self.hardware,
            op.tile.type,
            memory,
            self.indices(op.all_indices()),
            transposed=op.transposed is not None,
            masked=op.masked is not None,
            target=self.target,
            broadcast=op.broadcast is not None,
        )
        deferred = memory.matrix is None and defers(op)
        self.tiles[op.tile] = (
            Deferred(access.count // access.chunk, access.load_chunk) if deferred else access.load()
        )

    @lower.register
    def _(self, op: frag.StoreOp) -> None:
        tile = op.tile.type
        assert isinstance(tile, frag.TileType)
        if self.memories[op.memory].bits < 8:
            self._packed(tile, op).store(self.tiles[op.tile])
            return
        access = TileAccess(
            self.ar,
            self.hardware,
            tile,
            self.memories[op.memory],
            self.indices(op.all_indices()),
            transposed=op.transposed is not None,
            masked=op.masked is not None,
            target=self.target,
        )
        access.store(self.tiles[op.tile])

    @lower.register
    def _(self, op: frag.CopyOp) -> None:
        copies.copy(
            self.ar,
            self.hardware,
            self.memories[op.source],
            self.indices(op.all_source_indices()),
            self.memories[op.target],
            self.indices(op.all_target_indices()),
            masked=op.masked is not None,
            is_async=op.is_async is not None,
            target_machine=self.target,
        )

    @lower.register
    def _(self, op: frag.CommitOp) -> None:
        if copies.has_cp_async(self.target):
            self.ar.insert(ptx.SyncOp("cp.async.commit_group"))

    @lower.register
    def _(self, op: frag.WaitOp) -> None:
        if copies.has_cp_async(self.target):
            self.ar.insert(ptx.SyncOp("cp.async.wait_group", op.pending.value.data))

    @lower.register
    def _(self, op: frag.BarrierOp) -> None:
        if self.uses_wgmma:
            # wgmma reads through the async proxy, which does not see ordinary writes by itself
            # (PTX ISA 9.2, section 9.7.15.3)
            self.ar.insert(ptx.SyncOp("fence.proxy.async.shared::cta"))
        self.ar.insert(ptx.SyncOp("bar.sync", 0))

    @lower.register
    def _(self, op: frag.MmaOp) -> None:
        a, b, c, *scales = (self.tiles[operand] for operand in op.operands)
        self.tiles[op.d] = multiply.mma(self.ar, op, a, b, c, (), [x for (x,) in scales])

    @lower.register
    def _(self, op: frag.MmaSparseOp) -> None:
        a, b, c, e, *scales = (self.tiles[operand] for operand in op.operands)
        self.tiles[op.d] = multiply.mma(self.ar, op, a, b, c, e, [x for (x,) in scales])

    @lower.register
    def _(self, op: frag.WgmmaOp) -> None:
        a = self.tiles.get(op.a)
        self.tiles[op.d] = multiply.wgmma(
            self.ar,
            self.hardware,
            op,
            self.memories[op.a] if a is None else a,
            self.memories[op.b],
            self.tiles[op.c],
            () if op.metadata is None else self.tiles[op.metadata],
        )

    @lower.register
    def _(self, op: frag.ConvertOp) -> None:
        from fragir.passes.lowering.convert import convert

        source = op.source.type
        assert isinstance(source, frag.TileType)
        self.tiles[op.result] = convert(
            self.ar, self.hardware, source, op.result.type, self.tiles[op.source], self.target
        )

    @lower.register
    def _(self, op: frag.CastOp) -> None:
        source, target = op.source.type, op.result.type
        assert isinstance(source, frag.TileType)
        source_element, target_element = source.element_type, target.element_type
        fragments = self.tiles[op.source]
        self._form(
            op,
            len(fragments),
            lambda i: cast_op(self.ar, fragments[i], source_element, target_element),
        )

    def _form(
        self, op: frag.CastOp | frag.MapOp, count: int, make: Callable[[int], SSAValue]
    ) -> None:
        """The fragments of an elementwise operation, now or when a store asks for them."""
        self.tiles[op.result] = (
            Deferred(count, make) if defers(op) else [make(i) for i in range(count)]
        )

    @lower.register
    def _(self, op: frag.MapOp) -> None:
        placement = op.result.type.placement
        assert placement is not None
        columns = [self.tiles[tile] for tile in op.tiles]
        count = op.result.type.resolve().size("element") // placement.chunk
        chunk, block = placement.chunk, op.body.block

        def make(i: int) -> SSAValue:
            values = [column[i] for column in columns]
            return clone_elementwise(self.ar, block, values, chunk, self.scalar)

        self._form(op, count, make)

    # --- control ------------------------------------------------------------------------------

    def _flat(self, value: SSAValue) -> list[SSAValue]:
        """A value's registers: the fragments of a tile, or a scalar."""
        if isinstance(value.type, frag.TileType):
            return list(self.tiles[value])
        return [self.scalar(value)]

    def _bind(self, value: SSAValue, flat: list[SSAValue]) -> None:
        """Takes a value's registers from the front of a list."""
        if isinstance(value.type, frag.TileType):
            placement = value.type.placement
            assert placement is not None
            count = value.type.resolve().size("element") // placement.chunk
            self.tiles[value] = [flat.pop(0) for _ in range(count)]
        else:
            self.values[value] = flat.pop(0)

    @lower.register
    def _(self, op: scf.ForOp) -> None:
        starts = [flat for value in op.iter_args for flat in self._flat(value)]
        lower, upper, step = (self.values[v] for v in (op.lb, op.ub, op.step))
        body = Block(arg_types=[op.lb.type, *(value.type for value in starts)])
        old = op.body.block
        body.args[0].name_hint = old.args[0].name_hint
        self.values[old.args[0]] = body.args[0]
        if op.lb.type == INDEX:
            self.ar.assume_divisor(body.args[0], gcd(self.ar.divisor(lower), self.ar.divisor(step)))
        flat: list[SSAValue] = list(body.args[1:])
        for argument in old.args[1:]:
            before = len(flat)
            self._bind(argument, flat)
            for value in body.args[len(body.args) - before : len(body.args) - len(flat)]:
                value.name_hint = argument.name_hint
        with self.ar.inside(body):
            self.lower_block(old)
        first, last, by = (self.ar.value(v) for v in (lower, upper, step))
        loop = self.ar.insert(scf.ForOp(first, last, by, starts, body))
        results: list[SSAValue] = list(loop.results)
        for result in op.results:
            self._bind(result, results)

    @lower.register
    def _(self, op: scf.YieldOp) -> None:
        values = [flat for value in op.operands for flat in self._flat(value)]
        self.ar.insert(scf.YieldOp(*values))

    @lower.register
    def _(self, op: scf.IfOp) -> None:
        condition = self.scalar(op.cond)
        regions: list[Region] = []
        for region in op.regions:
            if not region.blocks:
                regions.append(Region())
                continue
            block = Block()
            with self.ar.inside(block):
                self.lower_block(region.block)
            regions.append(Region(block))
        yielded = regions[0].block.last_op
        types = [] if yielded is None else [v.type for v in yielded.operands]
        branch = self.ar.insert(scf.IfOp(condition, types, regions[0], regions[1]))
        results: list[SSAValue] = list(branch.results)
        for result in op.results:
            self._bind(result, results)


@derived
def _check_fragment(tile: frag.TileType) -> None:
    """FragirError where a lane's share of a tile is more than anything should unroll."""
    elements = tile.resolve().size("element")
    check_registers(-(-elements * element_bits(tile.element_type) // 32), str(tile))


def _is_zero(attribute: Attribute) -> bool:
    value = getattr(attribute, "value", None)
    data = getattr(value, "data", None)
    return data == 0 and str(data) != "-0.0"
