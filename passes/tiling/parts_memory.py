"""Sums in parts that no word of the program asks for: where few tiles leave most SMs without work.

The parts go through memory that the launcher allocates, so the function becomes one of the host:

    %parts = memref.alloc() : memref<4x64x1024xf32>
    %counts = memref.alloc() : memref<1x32xi32>
    frag.launch @f_counts(%counts)                     // zeros
    frag.launch @f_0(%a, %b, %c, %parts, %counts)      // the product

The last block of a tile adds its parts up in their order, so each launch has the same last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    FunctionType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.kernels import HOST
from fragir.dialects.limits import MOST_PARTS
from fragir.dialects.shorthands import memref_type
from fragir.passes.remarks import remark
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    ScheduleChoice,
    configuration_of,
    problem_of,
    unmapped_rows,
    with_roles,
)
from fragir.passes.tiling.schedule import is_suitable
from fragir.passes.tiling.tile_writer import INDEX
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED, in_parts
from fragir.scheduling.choice import choose
from fragir.scheduling.cost import deep, estimate

LAUNCH = 4000
"""Cycles of another launch, of one block: 2.5 us."""
GAIN = 1.2
"""By how much parts must be faster, that launch included, for a program to have two."""
_ROUNDS = 4
"""As many parts are looked at as give each SM so many blocks."""
_COUNTS = (8, 8)
"""Of a tile of counts, which a warp sets to zero."""


# -- whether ---------------------------------------------------------------------------------------


def with_own_parts(product: frag.MatmulOp, choice: ScheduleChoice, target: str) -> Schedule:
    """The schedule of a choice, or one with parts in memory that the launch allocates; sizes are
    known, and no attribute says how the product is cut."""
    m, n, k = product.sizes()
    schedule = choice.schedule
    if not (m and n and k and all(product.batch())) or not _is_plain(product, choice):
        return schedule
    problem, own = problem_of(product, (m, n, k), target), configuration_of(schedule)
    if own.problem(problem) is not None:
        return schedule
    before = estimate(problem, own)
    tiles = ceil(m / own.tile[0]) * ceil(n / own.tile[1]) * problem.batch
    if tiles >= problem.device.sms or before.cycles < GAIN * LAUNCH:
        return schedule
    # whole ones were looked for: of parts, tiles of powers of two do
    most = min(MOST_PARTS, max(2, _ROUNDS * problem.device.sms // tiles))
    parts = tuple((count, False) for count, even in in_parts(most) if not even)
    spaces = [FRAG_TILE]
    if schedule.wgmma and unmapped_rows(product) is None:
        spaces.append(SPECIALISED)
    found = own
    for space in spaces:
        space = deep(space._replace(parts=((1, False), *parts), between=False), problem)
        found = choose(problem, found, space=space)
    if found.parts == 1 or GAIN * (estimate(problem, found).cycles + LAUNCH) > before.cycles:
        return schedule
    cut = with_roles(found, choice.usual)._replace(
        tile=found.tile,
        warps=found.warps,
        stages=found.stages,
        parts=(found.parts, found.even),
    )
    return cut if is_suitable(product, cut) else schedule


def _is_plain(product: frag.MatmulOp, choice: ScheduleChoice) -> bool:
    """Whether all of a product's schedule is open, and its parts may be rounded as sums are."""
    said = (product.roles, product.cluster, product.consumers, product.ends)
    return (
        not choice.given
        and not product.in_parts
        and not product.is_scaled
        and not choice.usual.transposes
        and all(word is None for word in said)
        and element_bits(product.accumulator()) >= 32
    )


# -- made ------------------------------------------------------------------------------------------


def give_memory(
    function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule
) -> tuple[func.FuncOp, frag.MatmulOp]:
    """Makes memory for the parts of a product's sums, in the functions of the host that launch its
    kernel; where none does, one of that name. The kernel, and its product."""
    assert schedule.parts is not None
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    (m, n, _), (tm, tn, _), parts = product.sizes(), schedule.tile, schedule.parts[0]
    assert m
    assert n
    batch = [size or 1 for size in product.batch()]
    types = (
        MemRefType(product.accumulator(), [parts, *batch, m, n]),
        MemRefType(i32, [*batch, ceil(m / tm), ceil(n / tn)]),
    )
    name = function.sym_name.data
    launches = [
        op
        for op in module.walk()
        if isinstance(op, frag.LaunchOp) and op.callee.string_value() == name
    ]
    if not launches:
        function.sym_name = StringAttr(f"{name}_0")
        launches = [_host(function, name)]
    zeros = _zeros(f"{name}_counts", types[1], product)
    Rewriter.insert_op(zeros, InsertPoint.before(function))
    for launch in launches:
        _allocate(launch, types, zeros.sym_name.data)
    taken = _take(function, types)
    made = _through(product, taken)
    remark(
        function,
        [f"sums are cut into {parts} parts, in memory that the launch allocates ({_size(types)})"],
    )
    return function, made


def _size(types: Sequence[MemRefType[Attribute]]) -> str:
    found = sum(element_bits(one.element_type) // 8 * one.element_count() for one in types)
    return f"{ceil(found / 1024)} KiB"


def _host(kernel: func.FuncOp, name: str) -> frag.LaunchOp:
    """The launch in a new function of the host, which takes what the kernel takes."""
    block = Block(arg_types=kernel.function_type.inputs)
    for own, argument in zip(block.args, kernel.body.block.args, strict=True):
        own.name_hint = argument.name_hint
    host = func.FuncOp(name, kernel.function_type, Region(block))
    host.location = kernel.location
    host.arg_attrs = kernel.arg_attrs
    host.attributes[HOST] = UnitAttr()
    launch, end = frag.LaunchOp(kernel.sym_name.data, block.args), func.ReturnOp()
    launch.location = end.location = kernel.location
    block.add_ops([launch, end])
    Rewriter.insert_op(host, InsertPoint.before(kernel))
    return launch


def _allocate(launch: frag.LaunchOp, types: Sequence[Attribute], zeros: str) -> None:
    """Allocates memory at the top of a host's function, sets counts to zero ahead of a launch."""
    host = launch.parent_op()
    while not isinstance(host, func.FuncOp):
        assert host is not None
        host = host.parent_op()
    made = [memref.AllocOp([], [], type_) for type_ in types]
    for op, name in zip(made, ("parts", "counts"), strict=True):
        op.memref.name_hint, op.location = name, launch.location
    Rewriter.insert_op(made, InsertPoint.at_start(host.body.block))
    ahead = frag.LaunchOp(zeros, [made[1]])
    again = frag.LaunchOp(launch.callee.string_value(), [*launch.arguments, *made])
    ahead.location = again.location = launch.location
    Rewriter.replace_op(launch, [ahead, again], [])


def _take(function: func.FuncOp, types: Sequence[Attribute]) -> list[SSAValue]:
    """More arguments of a kernel."""
    block, known = function.body.block, function.arg_attrs
    taken: list[SSAValue] = []
    for type_, name in zip(types, ("parts", "counts"), strict=True):
        taken.append(block.insert_arg(type_, len(block.args)))
        taken[-1].name_hint = name
    function.function_type = FunctionType.from_lists([a.type for a in block.args], [])
    if known is not None:
        function.arg_attrs = ArrayAttr([*known.data, *[DictionaryAttr({})] * len(types)])
    return taken


def _through(product: frag.MatmulOp, memory: Sequence[SSAValue]) -> frag.MatmulOp:
    """The product with memory for its parts."""
    regions = [[product.detach_region(region) for region in list(product.regions)]]
    made = frag.MatmulOp.build(
        operands=[product.a, product.b, product.c, None, None, None, *memory, list(product.extra)],
        properties={
            name: value
            for name, value in product.properties.items()
            if name != "operandSegmentSizes"
        },
        attributes=dict(product.attributes),
        regions=regions,
    )
    made.location = product.location
    Rewriter.replace_op(product, made, [])
    return made


def _zeros(name: str, type_: MemRefType[Attribute], product: Operation) -> func.FuncOp:
    """A kernel that sets counts to zero."""
    function = func.FuncOp(name, ([type_], []), Region(Block(arg_types=[type_])))
    function.attributes["frag.warps"] = DenseArrayBase.from_list(i64, [1, 1])
    shape, block = memref_type(type_).get_shape(), function.body.block
    block.args[0].name_hint = "counts"
    batch = len(shape) - 2
    body = Block(arg_types=[INDEX] * len(shape))
    tile = frag.TileType(_COUNTS, i32)
    inner = Builder(InsertPoint.at_end(body))
    zero = inner.insert(arith.ConstantOp(IntegerAttr(0, i32)))
    filled = inner.insert(frag.FillOp(zero, tile))
    inner.insert(frag.StoreOp(filled, block.args[0], list(body.args), masked=True))
    block.add_ops([frag.ForTilesOp(shape, (*[1] * batch, *_COUNTS), Region(body)), func.ReturnOp()])
    for op in function.walk():
        op.location = product.location
    return function
