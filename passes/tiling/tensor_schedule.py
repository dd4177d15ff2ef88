"""Products in tensor memory: which they are, and their schedule.

Three roles: a warp fetches A and B by TMA, a thread starts the products, warpgroups take finished
sums from tensor memory and store them, while the next tile's are added up beside them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.matmul_sums import BlockScales
from fragir.dialects.frag.tensor_copies import UNIT
from fragir.dialects.frag.tensor_memory import MOST_COLUMNS, M
from fragir.dialects.frag.tensor_scales import (
    BLOCKS,
    CHUNK,
    ROWS,
    chunked,
    kind_named,
    scale_columns,
)
from fragir.dialects.shorthands import integers
from fragir.errors import FragirError
from fragir.isa.tensor_layouts import COLUMNS
from fragir.isa.tensor_products import KINDS, check_shape, check_target
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    ScheduleChoice,
    configuration_of,
    problem_of,
    unmapped_rows,
)
from fragir.passes.tiling.open_sizes import missing_multiples
from fragir.ptx.machines import machine
from fragir.scheduling.candidates import LEAVING

SUMS = 2
"""Tiles whose sums tensor memory holds: one is added up while another is stored."""
_SCALED_COLUMNS = 128
"""Columns of a tile with scales, which take columns too."""
TILE_COLUMNS = (64, 128, 256)
"""Of tiles that the cost model looks at."""
_LEAST_COLUMNS = 64
"""Columns of a tile at least."""
_STAGES, _PAIR_STAGES = 4, 6
_ROW_BYTES = 128
"""Bytes of K of a stage: a row of the widest swizzle."""


def in_tensor_memory(product: frag.MatmulOp, target: str) -> ScheduleChoice | str:
    """The schedule of a product in tensor memory of a target that has it, or why it has none. Where
    nothing says the tile, and sizes are known, the cheapest of a few, as the cost model has it."""
    a, b, _ = product.memories()
    first, second = element_name(a.element_type), element_name(b.element_type)
    scales = product.block_scales()
    try:
        kind = _kind_of(product)
        check_target(kind, target)
    except FragirError:
        return f"{target} has no tcgen05.mma of {first} and {second} that is written here"
    sums = element_name(product.accumulator())
    if sums not in KINDS[kind].results:
        return f"sums of {sums} are not added up in tensor memory"
    for asked, what in (
        (product.is_scaled and scales is None, "scales of f32"),
        (product.in_parts, "parts of sums"),
        (product.ends is not None, "groups of rows"),
        (product.consumers is not None, "consumers"),
    ):
        if asked:
            return f"a product with {what} is not yet made in tensor memory"
    crossed = product.a_transposed is not None or product.b_transposed is None
    if crossed and element_bits(a.element_type) not in (8, 16):
        return f"A or B of {first} does not lie along K, as tcgen05.mma reads it here"
    unmapped = unmapped_rows(product)
    if unmapped is None and "roles" not in product.attributes:
        unmapped = _unpromised(product)
    if unmapped is not None:
        return unmapped
    try:
        usual, *others = schedules(product, target)
    except FragirError as error:
        return error.message
    best = _cheapest(product, usual, others, target) if others else usual
    return ScheduleChoice(best, usual, _given_words(product))


def _given_words(product: frag.MatmulOp) -> tuple[str, ...]:
    """The attributes that say the schedule of a product, or some of it."""
    words = ("tile", product.tile), ("warps", product.warps), ("stages", product.stages)
    return tuple(name for name, value in words if value is not None)


def _kind_of(product: frag.MatmulOp) -> str:
    """As in `.kind::f16`; FragirError where there is none for its types and scales."""
    a, b, _ = (element_name(each.element_type) for each in product.memories())
    scales = product.block_scales()
    return kind_named(a, b, *(("", 0) if scales is None else (scales.element, scales.block)))


def schedules(product: frag.MatmulOp, target: str) -> list[Schedule]:
    """The usual schedule, and those of tiles of other columns, where nothing says the tile and
    sizes are known. FragirError where the usual one suits no tcgen05.mma."""
    kind = _kind_of(product)
    usual = _schedule(product, kind, target)
    found, (_, n, _) = [usual], product.sizes()
    if product.tile is None and None not in product.sizes() and None not in product.batch():
        for columns in TILE_COLUMNS:
            small = n is not None and columns < 2 * n and columns <= _most_columns(product)
            if columns != usual.tile[1] and small:
                try:
                    found.append(_schedule(product, kind, target, columns))
                except FragirError:
                    continue
    return found


def _most_columns(product: frag.MatmulOp) -> int:
    return MOST_COLUMNS if product.block_scales() is None else _SCALED_COLUMNS


def _cheapest(
    product: frag.MatmulOp, usual: Schedule, others: Sequence[Schedule], target: str
) -> Schedule:
    """The cheapest, if it is that much cheaper than the usual one."""
    from fragir.scheduling.choice import BETTER
    from fragir.scheduling.cost import estimate

    m, n, k = product.sizes()
    assert m is not None
    assert n is not None
    assert k is not None
    if not m * n * k:
        return usual
    problem = problem_of(product, (m, n, k), target)
    known = {one: configuration_of(one) for one in (usual, *others)}
    cost = {
        one: estimate(problem, configuration).cycles
        for one, configuration in known.items()
        if configuration.problem(problem) is None
    }
    if usual not in cost:
        return usual
    best = min(cost, key=cost.__getitem__)
    return best if cost[best] * BETTER <= cost[usual] else usual


def _unpromised(product: frag.MatmulOp) -> str | None:
    """Why a launch may bring rows of A or B that no tensor map takes."""
    missing = missing_multiples(product)
    if not missing:
        return None
    bits = element_bits(product.memories()[0].element_type)
    names = [name for name in dict.fromkeys(missing) if name is not None]
    words = ", ".join(f"{name} = {8 * UNIT // bits}" for name in names)
    promise = f": frag.divisible = {{{words}}} promises it" if words and None not in missing else ""
    return f"rows of A or B need not be multiples of {UNIT} bytes, as TMA takes them{promise}"


def _schedule(product: frag.MatmulOp, kind: str, target: str, columns: int = 0) -> Schedule:
    """Of a tile of so many columns, or of as many as are usual. FragirError where what the product
    says suits no tcgen05.mma."""
    bits = element_bits(product.memories()[0].element_type)
    _, n, _ = product.sizes()
    tile = (M, columns or _columns(n, _most_columns(product)), 8 * _ROW_BYTES // bits)
    if product.tile is not None:
        m, n, k = integers(product.tile)
        tile = m, n, k
    m, n, k = tile
    if m != M or n > MOST_COLUMNS or n % 16:
        raise FragirError(f"a tile of {m}x{n} is none of {M} rows and up to {MOST_COLUMNS} columns")
    if k * bits % 256:
        raise FragirError(f"K = {k} of a tile is no multiple of {256 // bits}")
    check_shape(kind, M, n, group=1, ws=False, target=target)
    why_not = _alone(product, kind, n)
    if product.pair is not None and why_not is not None:
        raise FragirError(f"a pair of blocks does not multiply it: {why_not}")
    cluster = 1 if product.cluster is None else product.cluster.value.data
    pair = product.pair is not None or (
        why_not is None and product.cluster is None and _fills_pairs(product, n, target)
    )
    cluster = 2 if pair else cluster
    stage, columns = (m + (n // 2 if pair else n)) * k * bits // 8, n
    scales = product.block_scales()
    if scales is not None:
        stage += _check_scales(scales, tile, product.sizes()[1])
        columns += scale_columns(m, k // scales.block) + scale_columns(n, k // scales.block)
    if columns > COLUMNS:
        raise FragirError(
            f"a tile of {m}x{n}x{k} and its scales take {columns} columns of tensor memory"
        )
    groups = 1
    if product.warps is not None:
        across, groups = integers(product.warps)
        if across != 1:
            raise FragirError("warpgroups that store a tile of tensor memory divide its columns")
    if n % (8 * groups):
        raise FragirError(f"{groups} warpgroups do not divide {n} columns into whole eights")
    stages = max(
        1, min(_PAIR_STAGES if pair else _STAGES, (machine(target).shared - LEAVING) // stage)
    )
    if product.stages is not None:
        stages = product.stages.value.data
    if not 1 <= stages <= machine(target).shared // stage:
        raise FragirError(f"{stages} stages of {m}x{n}x{k} do not fit into shared memory")
    return Schedule(
        tile,
        (1, groups),
        stages,
        False,
        target,
        roles=True,
        cluster=cluster,
        order="grouped",
        tensor=True,
        pair=pair,
    )


def _alone(product: frag.MatmulOp, kind: str, n: int) -> str | None:
    """Why two blocks cannot multiply tiles of n columns together, if they cannot."""
    if product.block_scales() is not None:
        return "scales of blocks are not yet multiplied in by pairs"
    try:
        check_shape(kind, 2 * M, n, group=2, ws=False)
    except FragirError as error:
        return error.message
    row = n // 2 * element_bits(product.memories()[1].element_type) // 8
    if product.b_transposed is None and row % 32:
        return f"half a row of B, {row} bytes, is no multiple of 32, the narrowest swizzle"
    return None


def _fills_pairs(product: frag.MatmulOp, n: int, target: str) -> bool:
    """Whether every block of a pair has a tile, and every multiprocessor a block: of fewer tiles
    pairs would leave some idle for the half of B that they save."""
    from fragir.scheduling.devices import device_for

    rows, columns, _ = product.sizes()
    batch = product.batch()
    if rows is None or columns is None or not all(batch):
        return False
    across = -(-rows // M)
    tiles = prod(size or 1 for size in batch) * across * -(-columns // n)
    return across % 2 == 0 and tiles >= device_for(target).sms


def _check_scales(scales: BlockScales, tile: tuple[int, int, int], n: int | None) -> int:
    """Bytes of shared memory for a stage's scales; FragirError where a tile does not suit them."""
    rows, columns, k = tile
    if k % (BLOCKS * scales.block):
        raise FragirError(
            f"K = {k} of a tile is no multiple of {BLOCKS * scales.block}, whose scales go to "
            "tensor memory together"
        )
    if scales.b.chunked and columns % ROWS and (n is None or n > columns):
        raise FragirError(
            f"scales of {ROWS} columns of B lie together, and tiles of {columns} begin within"
        )
    across = chunked(rows, 1)[0] + chunked(columns, 1)[0]
    return CHUNK * across * (k // scales.block // BLOCKS)


def sums_at_once(columns: int) -> int:
    """How many tiles' sums, of so many columns with their scales, tensor memory holds."""
    return max(1, min(SUMS, COLUMNS // columns))


def _columns(n: int | None, most: int) -> int:
    """Of a tile: of products whose size is not known, or small, fewer."""
    columns = most if n is not None and n >= most else 128
    while n is not None and columns > _LEAST_COLUMNS and columns // 2 >= n:
        columns //= 2
    return columns
