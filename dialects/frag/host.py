"""Programs of several kernels: a function that runs on the host, and launches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerType, MemRefType, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, prop_def, traits_def, var_operand_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, SymbolTable, SymbolUserOpInterface
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.kernels import HOST, is_host
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.narrow import is_memref


class _Launches(SymbolUserOpInterface):
    def verify(self, op: Operation) -> None:
        assert isinstance(op, LaunchOp)
        function = _function_around(op)
        if not is_host(function):
            raise VerifyException(
                f"{op.name} stands in a kernel; a function with the attribute {HOST} launches"
            )
        kernel = SymbolTable.lookup_symbol(op, op.callee)
        name = op.callee.string_value()
        if not isinstance(kernel, FuncOp) or is_host(kernel):
            what = "runs on the host itself" if isinstance(kernel, FuncOp) else "is no function"
            raise VerifyException(f"{op.name}: @{name} {what}; launch a kernel of this module")
        if "ptx.ntid" in kernel.attributes:
            return  # it takes pointers and sizes by now
        wanted, given = kernel.function_type.inputs.data, [x.type for x in op.arguments]
        if len(wanted) != len(given):
            raise VerifyException(
                f"{op.name}: @{name} takes {len(wanted)} arguments, {len(given)} are given"
            )
        for number, (want, type_) in enumerate(zip(wanted, given, strict=True)):
            if not _alike(want, type_):
                raise VerifyException(
                    f"{op.name}: argument {number} of @{name} is {want}, {type_} is given"
                )


def _alike(one: Attribute, other: Attribute) -> bool:
    """Whether types are equal, but for the sign of integers in memory."""
    if is_memref(one) and is_memref(other):
        x, y = one.element_type, other.element_type
        integers = x.name == y.name == IntegerType.name
        if integers and element_bits(x) == element_bits(y):
            one = MemRefType(y, one.shape, one.layout, one.memory_space)
    return one == other


def _function_around(op: Operation) -> Operation:
    while (parent := op.parent_op()) is not None and not isinstance(op, FuncOp):
        op = parent
    return op


@op_definition
class LaunchOp(IRDLOperation, MemoryInterface):
    """Runs a kernel of this module, with the grid that its arguments' sizes ask for.

        frag.launch @scale(%x, %t, %n) : memref<?x64xf16>, memref<?x64xf32>, index

    It stands in a function with the attribute `frag.host`. Launches take effect one after the
    other, in the order in which they stand.
    """

    name = "frag.launch"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def(Attribute)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect(), _Launches())
    assembly_format = "$callee `(` $arguments `)` attr-dict (`:` type($arguments)^)?"

    def __init__(self, callee: str, arguments: Sequence[SSAValue | Operation]):
        super().__init__(operands=[arguments], properties={"callee": SymbolRefAttr(callee)})

    def reads(self) -> Sequence[SSAValue]:
        """Every memory that the kernel gets."""
        return [value for value in self.arguments if is_memref(value.type)]

    def writes(self) -> Sequence[SSAValue]:
        """Every memory that the kernel gets."""
        return self.reads()
