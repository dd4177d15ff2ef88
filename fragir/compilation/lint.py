"""What makes a kernel's launch slow, told from its lane code: `Kernel.lint`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType

from fragir.dialects import ptx
from fragir.dialects.ptx.tensor_maps import launched_cluster, records_of
from fragir.dialects.shorthands import memref_type
from fragir.roofline.counters import block_work
from fragir.roofline.lanes import MEMORY, LaunchView, Scalar
from fragir.roofline.model import USUAL, LaunchModel
from fragir.scheduling.devices import Device, device_for

if TYPE_CHECKING:
    from xdsl.dialects.func import FuncOp
    from xdsl.ir import SSAValue

    from fragir.compilation.signature import Argument, Interface

SUPPOSED = 4096
"""Of a size that only a launch knows: a matrix of this is no small one. An array of one dimension
is as long as such a matrix."""


def launch_model(
    interface: Interface,
    function: FuncOp,
    target: str,
    *,
    sizes: Mapping[str, int] | None = None,
    device: Device | None = None,
    registers: int = USUAL,
) -> LaunchModel:
    """A launch of a kernel, of which `fragir.roofline.lint.remarks` tells; `function` is its lane
    code.

    `sizes` as of `Kernel.grid`; those that are not given are supposed to be 4096, or the next
    multiple that the program is promised. `device` is by default the example of the target,
    `registers` what ptxas gives a thread.
    """
    from fragir.passes.writer.module import shared_bytes

    device = device or device_for(target)
    known = _all_sizes(interface, sizes or {})
    signature = interface.signature
    ntid = function.attributes.get("ptx.ntid")
    shared = shared_bytes(function)
    threads = ntid.value.data if isinstance(ntid, IntegerAttr) else 32
    held = device.room(threads, shared)
    grid = launched_cluster(function)[0]
    if interface.grid is not None:
        grid = interface.grid.evaluate(known, max(1, held) * device.sms)
    values, boxes = _arguments(signature, function, known)
    middle = (grid[0] // 2, grid[1] // 2, grid[2] // 2)
    work = block_work(function, LaunchView(values, middle, grid, threads, boxes), shared)
    bits = {
        number: ptx.bits(memref_type(argument.type).element_type)
        for number, argument in enumerate(signature)
        if argument.is_memory
    }
    arrays = {
        number: prod(known[d] if isinstance(d, str) else d for d in signature[number].dims)
        * each
        // 8
        for number, each in bits.items()
    }
    rows = {
        number: name
        for number in bits
        for name in signature[number].dims[-1:]
        if isinstance(name, str) and (interface.promises.get(name, 1) * bits[number]) % 128
    }
    names = [argument.name for argument in signature]
    return LaunchModel(
        *(function.sym_name.data, names),
        *(work, device, target, prod(grid), threads, shared, arrays, bits, registers, rows),
    )


def _all_sizes(interface: Interface, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a launch and its grid, those that are not given supposed."""
    known = launch_sizes(interface.signature, interface.promises, given)
    for name in interface.grid.names if interface.grid is not None else ():
        known.setdefault(name, _supposed(interface.promises, name, SUPPOSED))
    return known


def launch_sizes(
    signature: Sequence[Argument], promises: Mapping[str, int], given: Mapping[str, int]
) -> dict[str, int]:
    """The sizes and strides of a launch, those that are not given supposed."""
    known = dict(given)
    beside = {n for a in signature if len(a.dims) > 1 for n in a.dims}
    for argument in signature:
        for name in argument.dims:
            if isinstance(name, str):
                length = SUPPOSED if name in beside else SUPPOSED**2
                known.setdefault(name, _supposed(promises, name, length))
    for argument in signature:
        for at, name in enumerate(argument.strides or ()):
            if isinstance(name, str):
                inner = argument.dims[at + 1 :]
                known.setdefault(name, prod(known[d] if isinstance(d, str) else d for d in inner))
    return known


def _supposed(promises: Mapping[str, int], name: str, length: int) -> int:
    promised = promises.get(name, 1)
    return -(-length // promised) * promised


def _arguments(
    signature: Sequence[Argument], function: FuncOp, sizes: Mapping[str, int]
) -> tuple[dict[SSAValue, Scalar], dict[SSAValue, tuple[int, int]]]:
    """What the arguments of the lane code are, and the boxes of its tensor maps."""
    values: dict[SSAValue, Scalar] = {}
    boxes: dict[SSAValue, tuple[int, int]] = {}
    own = iter(function.body.block.args)
    for number, argument in enumerate(signature):
        value = next(own)
        if argument.is_memory or argument.is_pointer:
            values[value] = (number + 1) << MEMORY
        elif isinstance(argument.type, IndexType | IntegerType):
            values[value] = sizes.get(argument.name, SUPPOSED)
        for name in (*argument.dims, *(argument.strides or ())):
            if isinstance(name, str):
                values[next(own)] = sizes[name]
    for record, value in zip(records_of(function), own, strict=False):
        bits = max(8, ptx.bits(memref_type(signature[record.array].type).element_type))
        boxes[value] = record.array, prod(record.box) * bits // 8
    return values, boxes
