"""How a matrix product is cut: tile, warps, stages, instruction, and why."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute

from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.instructions import largest_n
from fragir.dialects.limits import BLOCK_REGISTERS
from fragir.dialects.shorthands import integers, memref_type
from fragir.errors import FragirError
from fragir.isa.model import BITS
from fragir.isa.products import DENSE, has_wgmma, is_emulated, shapes, wgmma_k
from fragir.isa.spelling import mnk
from fragir.isa.versions import CP_ASYNC, has
from fragir.passes.tiling.gemm_schedule import Schedule
from fragir.passes.tiling.operand_layouts import fits
from fragir.ptx.machines import THREADS, machine

ROW_BYTES = 64  # bytes of K in one stage for mma.sync: two or more instructions deep
COLUMNS = 32  # that share a scale: of fewer a lane has many scales


def schedule_for(product: frag.MatmulOp, target: str) -> Schedule:
    """The schedule of a product: what its attributes say, else what suits types and target."""
    a = product.memories()[0]
    element = element_name(a.element_type)
    if element_bits(a.element_type) < 8:
        raise FragirError(
            f"frag.matmul does not stage elements smaller than a byte ({element})",
            hint="load the tiles with frag.load and multiply them with frag.mma",
        )
    if not has_wgmma(element, target):
        return _schedule(product, element, target)
    crossed = _crossed_operands(product)
    if not any(crossed):
        return _schedule(product, element, target, wgmma=True)
    for turned in (True, False) if all(crossed) else (crossed[1],):
        # of both, A is transposed if that may be: its part of a tile is the smaller one
        try:
            return _schedule(
                product, element, target, wgmma=True, turned=turned, transposes=all(crossed)
            )
        except FragirError:
            pass  # of a tile and warps that may suit mma.sync
    return _schedule(product, element, target)


def _schedule(
    product: frag.MatmulOp,
    element: str,
    target: str,
    *,
    wgmma: bool = False,
    turned: bool = False,
    transposes: bool = False,
) -> Schedule:
    """The schedule with these instructions; FragirError where its attributes do not suit them."""
    a = product.memories()[0]
    roles, consumers, cluster, unmapped = "roles" in product.attributes, 1, 1, None
    if roles:
        from fragir.passes.tiling.gemm_schedule import unmapped_reason  # few products have roles

        unmapped = unmapped_reason(product, target)
        roles = unmapped is None
    if unmapped is None:
        consumers = product.consumers.value.data if product.consumers is not None else 1
        cluster = product.cluster.value.data if product.cluster is not None else 1
    converted = not wgmma and is_emulated(element, target)  # operands need room beside the sums
    m, n, k = product.sizes()
    tile, promote, crowded = _attribute(product.tile, 3, "tile"), product.promotion(), False
    if tile is None:
        # one warpgroup has registers for a square
        sides = (m, None, k) if wgmma and consumers > 1 else (m, n, k)
        tile = _default_tile(element, wgmma, *sides)
        if promote is not None:
            from fragir.passes.tiling.scaled_sum import promoted_tile  # few products are promoted

            depth = promote * _bits(a) // 8
            crowded = turned if wgmma else roles or depth > 128 or _is_crowded(product)
            lines = machine(target).shared // (2 * depth)
            tile = promoted_tile(tile, promote, k, lines, crowded, wgmma and consumers > 1)
        if consumers > 1 and not wgmma:  # warps of two roles have half of the registers each
            grouped_parts = promote is not None and product.ends is not None
            tile[1] = max(32, tile[1] // (4 if grouped_parts else 2))
        elif roles and not wgmma and product.in_parts and _is_crowded(product):
            tile[1] = min(64, tile[1])  # by half of the warps, which may have more registers each
    sums = element_bits(product.accumulator())
    if promote is not None:  # partial and whole ones
        sums *= 2
    m, n, k = tile
    held = 2 * sums if crowded or converted else sums
    if converted and product.tile is not None and k > _default_tile(element, wgmma, m, n, None)[2]:
        held *= 2  # a deep tile has more operands at once
    default = _default_warps([n, m, k] if turned else tile, element, held, wgmma)
    if wgmma and consumers > 1:
        default = [1, 1]
    warps = _attribute(product.warps, 2, "warps") or (default[::-1] if turned else default)
    stages = product.stages.value.data if product.stages is not None else None
    schedule = Schedule(
        (m, n, k),
        (warps[0], warps[1]),
        stages if stages is not None else _default_stages(tile, a, target, transposes, roles),
        wgmma,
        target,
        turned,
        transposes,
        roles,
        cluster,
        consumers,
        "grouped" if roles else None,
        product.parts(),
        tuple(each for each in (unmapped, _overfull((m, n, k), consumers, sums)) if each),
    )
    check(schedule, element, a, target)
    return schedule


def _is_crowded(product: frag.MatmulOp) -> bool:
    """Whether mma.sync's warps hold scales of many columns, and something else: the addresses and
    masks by which rows of a group leave from registers, or numbers of tiles and parts; or those of
    even shares, which are many, and others of a batch or of fragments of wider elements."""
    if product.ends is None and not product.in_parts:
        return False
    _, even = product.parts() or (1, False)
    more = bool(product.batch()) or element_bits(product.memories()[0].element_type) > 8
    return (even and more) or any(
        each.name == "B" and each.depth is not None and (each.outer or 0) < COLUMNS
        for each in product.scalings()
    )


def _crossed_operands(product: frag.MatmulOp) -> tuple[bool, bool]:
    """Whether wgmma cannot read A, and B, as memory holds them: other than of 16 bits they must be
    K-major. One of them can be read into registers."""
    if element_bits(product.memories()[0].element_type) == 16:
        return False, False
    return product.a_transposed is not None, product.b_transposed is None


def _attribute(attribute: DenseArrayBase | None, length: int, name: str) -> list[int] | None:
    if attribute is None:
        return None
    values = integers(attribute)
    if len(values) != length or min(values) < 1:
        raise FragirError(f"{name} takes {length} positive numbers")
    return values


def _default_tile(
    element: str, wgmma: bool, m: int | None, n: int | None, k: int | None
) -> list[int]:
    """A tile for these types, smaller where the matrix is; sizes stay powers of two."""
    bits = max(BITS[element], 8)  # narrow floats stand in bytes
    if wgmma:
        tile, least = [128, 256, 1024 // bits], [64, 64, 1024 // bits]
    elif element == "f64":
        tile, least = [64, 64, 16], [16, 16, 8]
    else:
        tile, least = [128, 128, 8 * ROW_BYTES // bits], [32, 32, 256 // bits]
    if wgmma and (m is None or n is None or m < 128 or n < 256):
        tile[1] = 128
    return [
        _fit(extent, whole, low) for extent, whole, low in zip(tile, (m, n, k), least, strict=True)
    ]


def _fit(tile: int, size: int | None, least: int) -> int:
    while size is not None and tile > least and tile // 2 >= size:
        tile //= 2
    return tile


# A lane has 255 registers while a block has 8 warps at most. So many may be sums; operands,
# addresses and masks need the rest.
_SUMS, _WARPS = 128, 8


def _default_warps(tile: list[int], element: str, sum_bits: int, wgmma: bool) -> list[int]:
    """Two by two warps, and more where sums would not fit into registers; warpgroups of 64 or 128
    rows."""
    m, n, _ = tile
    if wgmma:
        return [max(1, m // 64) if m < 256 else 2, max(1, -(-n // 256))]
    first = [2 if m >= 32 else 1, 2 if n >= 32 else 1]
    fewer = ([first[0], 1], [1, first[1]], [1, 1])
    warps = next((pair for pair in (first, *fewer) if _is_divisible(element, tile, pair)), first)
    while m * n * sum_bits // (32 * 32 * warps[0] * warps[1]) > _SUMS:
        more = [[2 * warps[0], warps[1]], [warps[0], 2 * warps[1]]]
        if n * warps[0] > m * warps[1]:  # the longer side first
            more.reverse()
        fitting = [pair for pair in more if _is_divisible(element, tile, pair)]
        if not fitting or warps[0] * warps[1] >= _WARPS:
            break
        warps = fitting[0]
    return warps


def _overfull(tile: tuple[int, int, int], tiles: int, sum_bits: int) -> str | None:
    """What to say of tiles whose sums alone fill the registers of a multiprocessor."""
    needed = tiles * tile[0] * tile[1] * sum_bits // 32
    if needed < BLOCK_REGISTERS:
        return None
    shape = "x".join(map(str, tile))
    what = f"a tile of {shape}" if tiles == 1 else f"{tiles} tiles of {shape}"
    return (
        f"the sums of {what} take {needed} registers, and a multiprocessor has "
        f"{BLOCK_REGISTERS}: they spill with any `warps`, a smaller `tile` does not"
    )


def _is_divisible(element: str, tile: list[int], warps: list[int]) -> bool:
    """Whether an instruction fits into every warp's part of the tile."""
    step = _instruction_step(element, (tile[0], tile[1], tile[2]), (warps[0], warps[1]))
    return tile[0] % (step[0] * warps[0]) == 0 and tile[1] % (step[1] * warps[1]) == 0


def _default_stages(
    tile: list[int], a: Attribute, target: str, transposes: bool, roles: bool
) -> int:
    """As many stages as fit, up to 3."""
    if not has(CP_ASYNC, target):
        return 1
    room = machine(target).shared
    if transposes:
        room -= (2 if roles else 1) * max(tile[0], tile[1]) * tile[2] * _bits(a) // 8
    return max(1, min(3, room // _stage_bytes(tile, a)))


def _bits(a: Attribute) -> int:
    return element_bits(memref_type(a).element_type)


def _stage_bytes(tile: list[int] | tuple[int, ...], a: Attribute) -> int:
    return (tile[0] + tile[1]) * tile[2] * _bits(a) // 8


def check(schedule: Schedule, element: str, a: Attribute, target: str) -> None:
    """FragirError where instructions, threads or shared memory do not suit a schedule."""
    m, n, k = schedule.tile
    groups_m, groups_n = schedule.warps
    if schedule.wgmma:
        step = (64, 8, wgmma_k(element))
        columns, parts = n, groups_n
        if schedule.turned:
            step = (8, 64, step[2])
            columns, parts = m, groups_m
        if columns % parts == 0:
            largest_n(columns // parts, element)
    else:
        step = _instruction_step(element, schedule.tile, schedule.warps)
    kind = "warpgroups" if schedule.wgmma else "warps"
    for size, unit, name in zip(
        (m, n, k), (step[0] * groups_m, step[1] * groups_n, step[2]), "MNK", strict=True
    ):
        if size % unit:
            raise FragirError(
                f"a tile of {m}x{n}x{k} over {groups_m}x{groups_n} "
                f"{kind}: {name} must be a multiple of {unit}",
                hint="change `tile` or `warps`",
            )
    threads = schedule.threads * schedule.consumers
    if threads > THREADS:
        raise FragirError(f"{threads} threads a block; the machine takes {THREADS} at most")
    if schedule.consumers < 1 or (schedule.consumers > 1 and not schedule.roles):
        raise FragirError(
            "consumers is the number of roles that multiply", hint="write {roles, consumers = 2}"
        )
    if schedule.stages < 1:
        raise FragirError("stages is 1 or more")
    needed = schedule.stages * _stage_bytes(schedule.tile, a)
    if schedule.transposes:
        rows = m if schedule.turned else n
        if not fits(rows, schedule.threads // 32):
            raise FragirError(f"{rows} rows are not handed out to {schedule.threads // 32} warps")
        places = 2 if schedule.roles else 1  # one is read while the other is written
        needed += places * schedule.consumers * rows * k * _bits(a) // 8
    most = machine(target).shared
    if needed > most:
        raise FragirError(
            f"{schedule.stages} stages of {m}x{n}x{k} take {needed} bytes of shared memory, "
            f"{target} has {most}",
            hint="take fewer stages or a smaller tile",
        )


def is_suitable(product: frag.MatmulOp, schedule: Schedule) -> bool:
    """Whether a schedule suits a product of which the cost model, that found it, may know too
    little: one that is scaled, or of which an operand is transposed in shared memory."""
    if not (schedule.transposes or product.is_scaled):
        return True
    a = product.memories()[0]
    try:
        check(schedule, element_name(a.element_type), a, schedule.target)
        if product.is_scaled:
            from fragir.passes.tiling.scaled_sum import check_tile  # few products have scales

            check_tile(product, schedule.tile)
    except FragirError:
        return False
    return True


def _instruction_step(
    element: str, tile: tuple[int, int, int], warps: tuple[int, int]
) -> tuple[int, int, int]:
    every = shapes(DENSE, element, False)
    for shape in every:
        m, n, k = mnk(shape)
        if tile[0] % (m * warps[0]) == 0 and tile[1] % (n * warps[1]) == 0 and tile[2] % k == 0:
            return m, n, k
    return mnk(every[-1])
