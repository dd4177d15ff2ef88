"""What functions are: kernels or on the host, their clusters, how many blocks stay side by side.

`frag.host` makes a function one that runs on the host, and launches kernels. A kernel's clusters:

    func.func @f(...) attributes {frag.cluster = array<i64: 2, 1, 1>}

Blocks along x, y and z of the grid that run side by side and see each other's shared memory (PTX
ISA 9.2, sections 2.2.2 and 11.3). A grid is rounded up to whole clusters where all accesses to
global memory are masked; else a launch with another grid is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    SymbolRefAttr,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import IRDLOperation, prop_def, result_def, traits_def, var_operand_def
from xdsl.traits import (
    MemoryReadEffect,
    MemoryWriteEffect,
    NoMemoryEffect,
    Pure,
    SymbolTable,
    SymbolUserOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.shorthands import integers, is_array, is_memref
from fragir.errors import FragirError

HOST = "frag.host"
"""The attribute of a function that runs on the host."""


def is_host(function: Operation) -> bool:
    """Whether a function runs on the host, where it launches kernels."""
    return HOST in function.attributes


def kernels_of(module: ModuleOp) -> Iterator[FuncOp]:
    """The functions with a body that run on the GPU, those that there are now."""
    for op in list(module.ops):
        if isinstance(op, FuncOp) and not op.is_declaration and not is_host(op):
            yield op


CONDITIONS = "frag.bool"
"""The attribute of an argument whose bytes are conditions: 0 or 1."""


def holds_conditions(function: FuncOp, index: int) -> bool:
    """Whether an argument says so."""
    given = function.arg_attrs
    return given is not None and CONDITIONS in given.data[index].data


# --- blocks of a multiprocessor -------------------------------------------------------------------

BLOCKS_PER_SM = "frag.blocks_per_sm"
"""The attribute of a function with that number, at least: it bounds the registers of a thread."""
MOST_RESIDENT = 32
"""What the largest machines hold (CUDA programming guide, technical specifications per compute
capability: maximum number of resident blocks per SM)."""


def blocks_per_sm(function: FuncOp) -> int | None:
    """The blocks that a multiprocessor is to hold at least; None where a function does not say it.

    FragirError for what is no such number.
    """
    attribute = function.attributes.get(BLOCKS_PER_SM)
    if attribute is None:
        return None
    if isinstance(attribute, IntegerAttr) and 1 <= attribute.value.data <= MOST_RESIDENT:
        return attribute.value.data
    raise FragirError(
        f"{BLOCKS_PER_SM} = {attribute} is no number of blocks from 1 to {MOST_RESIDENT}",
        hint=f"write {BLOCKS_PER_SM} = 2 : i64",
    )


# --- what an operation stands in ------------------------------------------------------------------

RARE = "frag.rare"
"""The attribute of an scf.if that seldom holds: its branches compute all they need themselves."""


def is_rare(op: Operation) -> bool:
    """Whether an operation stands where a condition seldom leads."""
    while (parent := op.parent_op()) is not None:
        if RARE in parent.attributes and op.parent is parent.regions[0].first_block:
            return True
        op = parent
    return False


def role_of(op: Operation) -> Region | None:
    """The role that an operation belongs to; None outside of `frag.roles`."""
    above: Operation | None = op
    while above is not None:
        parent = above.parent_op()
        if parent is not None and parent.name == "frag.roles":
            return above.parent_region()
        above = parent
    return None


# --- clusters -------------------------------------------------------------------------------------

CLUSTER = "frag.cluster"
MOST_BLOCKS = 8
"""What every machine with clusters runs (CUDA programming guide, thread block clusters)."""


@op_definition
class ClusterRankOp(IRDLOperation):
    """The block's number in its cluster, from 0 on, x fastest; 0 where there is no cluster."""

    name = "frag.cluster_rank"
    result = result_def(IndexType)
    traits = traits_def(NoMemoryEffect(), Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[IndexType()])


def cluster_of(function: FuncOp) -> tuple[int, int, int]:
    """The blocks of a function's clusters; (1, 1, 1) without `frag.cluster`.

    FragirError for what is no cluster.
    """
    attribute: Attribute | None = function.attributes.get(CLUSTER)
    if attribute is None:
        return 1, 1, 1
    sizes = integers(attribute) if is_array(attribute) else []
    if len(sizes) == 3 and min(sizes) > 0 and prod(sizes) <= MOST_BLOCKS:
        return sizes[0], sizes[1], sizes[2]
    raise FragirError(
        f"{CLUSTER} = {attribute} is no cluster of at most {MOST_BLOCKS} blocks",
        hint=f"write {CLUSTER} = array<i64: 2, 1, 1>",
    )


# --- launches -------------------------------------------------------------------------------------


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
            if not _are_alike(want, type_):
                raise VerifyException(
                    f"{op.name}: argument {number} of @{name} is {want}, {type_} is given"
                )


def _are_alike(one: Attribute, other: Attribute) -> bool:
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
