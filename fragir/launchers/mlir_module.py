"""A kernel or a program as a module of MLIR's dialect `gpu`, for those who go on from there.

A `gpu.binary` holds the PTX of all kernels, a function of the host launches them by
`gpu.launch_func`, with what they take: addresses, and sizes as i32. `mlir-opt --gpu-to-llvm` lowers
the host's function as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import StringIO

from xdsl.dialects import arith, func, llvm, memref
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    StridedLayoutAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnregisteredOp,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.printer import Printer
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.compilation.kernel import Compiled, Kernel
from fragir.dialects import frag
from fragir.dialects.frag.grid import BlockCount, Extent
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.host import Program
from fragir.mlir.resources import constant_of_bytes

INDEX = IndexType()


def module(kernel: Compiled) -> str:
    """The module's text. FragirError for kernels that take tensor maps, which gpu.launch_func has
    no way to pass, and for bare addresses.
    """
    binary = f"{kernel.name}_kernels"
    if isinstance(kernel, Kernel):
        function = _host_function(kernel)
    else:
        assert isinstance(kernel, Program)
        function = kernel.host.clone()
        function.attributes.clear()
    kernels: Mapping[str, Kernel] = {part.name: part for part in kernel.parts}
    function.arg_attrs = None
    constants = _bring_constants(function, kernel)
    for op in list(function.walk()):
        if isinstance(op, frag.LaunchOp):
            one = kernels[op.callee.string_value()]
            _Launch(op, one, binary).replace(list(op.arguments))
    _allocate_there(function)
    stream = StringIO()
    printer = Printer(stream, indent_num_spaces=2)
    for op in (*constants, function):
        printer.print_op(op)
        stream.write("\n")
    body = "".join(f"  {line}\n" for line in stream.getvalue().splitlines())
    target = f'#nvvm.target<chip = "{kernel.target}">'
    held = f"#gpu.object<{target}, assembly = {_quote(kernel.ptx)}>"
    return (
        "module attributes {gpu.container_module} {\n"
        f"  gpu.binary @{binary} [{held}]\n{body}}}\n"
    )


def _quote(text: str) -> str:
    found = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\0A")
    return f'"{found}"'.replace("\t", "\\09")


def _host_function(kernel: Kernel) -> func.FuncOp:
    """A function of the host that launches one kernel."""
    block = Block(arg_types=[argument.type for argument in kernel.signature])
    for value, argument in zip(block.args, kernel.signature, strict=True):
        value.name_hint = argument.name
    block.add_ops((frag.LaunchOp(kernel.name, block.args), func.ReturnOp()))
    types = [value.type for value in block.args]
    return func.FuncOp(kernel.name, (types, []), Region(block))


class _Launch:
    """One launch: what stands ahead of it, and itself."""

    def __init__(self, op: frag.LaunchOp, kernel: Kernel, binary: str):
        self._op, self._kernel, self._binary = op, kernel, binary
        self._sizes: dict[str, SSAValue] = {}

    def replace(self, arguments: Sequence[SSAValue]) -> None:
        """Puts a gpu.launch_func in the place of a frag.launch."""
        kernel = self._kernel
        if kernel.tensor_maps:
            raise FragirError(
                f"{kernel.name} takes tensor maps, which gpu.launch_func does not pass",
                hint="compile for a machine before sm_90, or write --launcher c",
            )
        given: list[SSAValue] = []
        for value, argument in zip(arguments, kernel.signature, strict=True):
            if argument.is_pointer or argument.is_tensor_map:
                raise FragirError(f"{argument.name} of {kernel.name} is no array and no number")
            if not argument.is_memory:
                is_index = value.type == INDEX
                given.append(self._insert(arith.IndexCastOp(value, i32)) if is_index else value)
                continue
            given += [self._address(value), *self._numbers(value, argument.dims, argument.strides)]
        grid = [self._blocks(count) for count in self._counts()]
        if kernel.whole_clusters:
            grid = [
                self._times(self._divide(count, size), size)
                for count, size in zip(grid, kernel.cluster, strict=True)
            ]
        cluster = [] if kernel.cluster == (1, 1, 1) else [*map(self._number, kernel.cluster)]
        block = [self._number(size) for size in kernel.block]
        shared = self._insert(arith.ConstantOp(IntegerAttr(kernel.shared, i32)))
        operands = [*grid, *block, *cluster, shared, *given]
        launch = _generic_operation(
            "gpu.launch_func",
            operands,
            [0, *[1] * 6, *[int(bool(cluster))] * 3, 1, len(given), 0],
            kernel=SymbolRefAttr(self._binary, [kernel.name]),
        )
        Rewriter.replace_op(self._op, launch)

    # --- arguments ----------------------------------------------------------------------------

    def _address(self, memory: SSAValue) -> SSAValue:
        layout = memref_type(memory.type).layout
        if isinstance(layout, StridedLayoutAttr) and layout.offset != IntAttr(0):
            raise FragirError(
                f"{self._kernel.name} takes memory with an offset, {memory.type}",
                hint="hand over memory that begins at its address",
            )
        at = memref.ExtractAlignedPointerAsIndexOp.create(operands=[memory], result_types=[INDEX])
        number = self._insert(arith.IndexCastOp(self._insert(at), i64))
        return self._insert(
            llvm.IntToPtrOp.create(operands=[number], result_types=[llvm.LLVMPointerType()])
        )

    def _numbers(
        self,
        memory: SSAValue,
        dims: Sequence[int | str],
        strides: Sequence[int | str] | None,
    ) -> list[SSAValue]:
        """Sizes and strides that the type leaves open, as the kernel takes them."""
        found: list[SSAValue] = []
        for dim, size in enumerate(dims):
            if isinstance(size, str):
                value = self._insert(memref.DimOp(memory, self._number(dim)))
                self._sizes.setdefault(size, value)
                found.append(self._insert(arith.IndexCastOp(value, i32)))
        if strides is None or not any(isinstance(stride, str) for stride in strides):
            return found
        type_ = memref_type(memory.type)
        rank = len(dims)
        told = memref.ExtractStridedMetaDataOp.create(
            operands=[memory],
            result_types=[MemRefType(type_.element_type, []), *[INDEX] * (1 + 2 * rank)],
        )
        self._insert(told)
        for dim, stride in enumerate(strides):
            if isinstance(stride, str):
                found.append(self._insert(arith.IndexCastOp(told.results[2 + rank + dim], i32)))
        return found

    # --- the grid -----------------------------------------------------------------------------

    def _counts(self) -> list[BlockCount]:
        given = self._kernel.grid_attribute
        if given is None:
            return [BlockCount((Extent(size),)) for size in self._kernel.cluster]
        counts = [BlockCount((one,)) if isinstance(one, Extent) else one for one in given.data]
        return [*counts, *(BlockCount((Extent(1),)),) * 3][:3]

    def _blocks(self, count: BlockCount) -> SSAValue:
        """A block for every tile, also where a loop would let fewer do them all."""
        found: SSAValue | None = None
        for factor in count.factors:
            size = factor.size
            if isinstance(size, int):
                part = self._number(factor.evaluate({}))
            else:
                part = self._divide(self._sizes[size], factor.divisor)
            found = part if found is None else self._insert(arith.MuliOp(found, part))
        assert found is not None
        return found

    def _divide(self, value: SSAValue, by: int) -> SSAValue:
        return value if by == 1 else self._insert(arith.CeilDivUIOp(value, self._number(by)))

    def _times(self, value: SSAValue, by: int) -> SSAValue:
        return value if by == 1 else self._insert(arith.MuliOp(value, self._number(by)))

    def _number(self, number: int) -> SSAValue:
        return self._insert(arith.ConstantOp(IntegerAttr(number, INDEX)))

    def _insert(self, op: Operation) -> SSAValue:
        Rewriter.insert_op(op, InsertPoint.before(self._op))
        return op.results[0]


def _bring_constants(function: func.FuncOp, kernel: Compiled) -> list[memref.GlobalOp]:
    """Constants are globals of the module, and no arguments: the function copies them."""
    made: list[memref.GlobalOp] = []
    block = function.body.block
    first, end = block.first_op, block.last_op
    assert first is not None
    assert end is not None
    for at, array in kernel.held.arrays.items():
        value, argument = block.args[at], kernel.signature[at]
        type_ = memref_type(value.type)
        elements = constant_of_bytes(
            array.tobytes(), TensorType(type_.element_type, type_.get_shape())
        )
        name, only = StringAttr(f"{kernel.name}_{argument.name}"), StringAttr("private")
        made.append(memref.GlobalOp.get(name, type_, elements, only, UnitAttr()))
        given = memref.GetGlobalOp(name.data, type_)
        there = _generic_operation("gpu.alloc", [], [0, 0, 0], [type_])
        there.results[0].name_hint = argument.name
        copied = _generic_operation("gpu.memcpy", [there.results[0], given.memref], None)
        back = _generic_operation("gpu.dealloc", [there.results[0]], None)
        Rewriter.insert_op([given, there, copied], InsertPoint.before(first))
        Rewriter.insert_op(back, InsertPoint.before(end))
        value.replace_all_uses_with(there.results[0])
    for at in reversed(kernel.held.arrays):
        block.erase_arg(block.args[at])
    function.update_function_type()
    return made


def _allocate_there(function: func.FuncOp) -> None:
    """Memory between kernels is the device's, and given back at the end."""
    for op in list(function.body.block.ops):
        if not isinstance(op, memref.AllocOp):
            continue
        sizes = list(op.dynamic_sizes)
        made = _generic_operation("gpu.alloc", sizes, [0, len(sizes), 0], [op.memref.type])
        made.results[0].name_hint = op.memref.name_hint
        Rewriter.replace_op(op, made)
        end = function.body.block.last_op
        assert end is not None
        back = _generic_operation("gpu.dealloc", [made.results[0]], None)
        Rewriter.insert_op(back, InsertPoint.before(end))


def _generic_operation(
    name: str,
    operands: Sequence[SSAValue],
    segments: Sequence[int] | None,
    results: Sequence[Attribute] = (),
    **properties: Attribute,
) -> Operation:
    """An operation of the dialect `gpu` in its generic form."""
    if segments is not None:
        properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, list(segments))
    kind = UnregisteredOp.with_name(name)
    return kind.create(operands=operands, result_types=list(results), properties=properties)
