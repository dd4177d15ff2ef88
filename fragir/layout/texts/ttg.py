"""Triton's encodings of registers and of shared memory, `#ttg.blocked<...>` and so on.

An encoding says how a tensor of any shape is spread, so the shape is needed too: as an argument, or
in the text as Triton's IR has it.

>>> mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], " \\
...       "instrShape = [16, 8]}>"
>>> print(from_ttg(mma, (16, 32)))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,16)] warp [2:(0,8)]
>>> print(from_ttg(f"tensor<16xf32, #ttg.slice<{{dim = 1, parent = {mma}}}>>"))
lane [4:0 8:1] element [2:8] warp [2:0]
>>> from_ttg(mma)
Traceback (most recent call last):
...
fragir.layout.modes.LayoutError: <layout>:1:1: #ttg.nvidia_mma is the layout of a tensor of any \
shape, which is not said (write tensor<64x32xf16, #ttg...>, or give the shape)
  #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
  ^

Threads are the axis `lane`, registers `element`, warps `warp`, blocks of a cluster `block`. Shared
memory is a layout from row and col to the number of the element (`index`).
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from fragir.layout.arguments import require_shape, require_text
from fragir.layout.chain import LayoutChain
from fragir.layout.distribution import Distribution, dims_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point
from fragir.layout.texts import shared
from fragir.layout.texts.bases import from_bases
from fragir.layout.texts.encoding import Encoding, read_encoding

# -- distributed -----------------------------------------------------------------------------------
# Triton's distributed encodings: which thread holds which element of a tensor.
#
# What each means was learnt from Triton's documentation of its attributes and holds for Triton 3.6
# (`python benchmarks/triton_layouts.py` compares both); sizes need not be powers of two here, so
# that `#ttg.nvidia_mma` with a `wgmma` of 24 columns is a layout too.

AXES = ("lane", "element", "warp", "block")

_K_WIDTH = 2
"""Neighbouring elements of an accumulator that a lane holds, in every version."""


def distributed_layout(encoding: Encoding, shape: Point) -> Layout:
    """The layout of a tensor of this shape. Raises LayoutError with the field's place."""
    if encoding.name == "slice":
        return _slice(encoding, shape)
    if encoding.name == "linear":
        return _linear(encoding, shape)
    cga = _Blocks(encoding, len(shape))
    inner = tuple(max(1, n // b) for n, b in zip(shape, cga.extent, strict=True))
    try:
        match encoding.name:
            case "blocked":
                tile = _blocked_distribution(encoding, inner)
            case "nvidia_mma":
                tile = _mma(encoding, inner)
            case "dot_op":
                tile = _dot_operand(encoding, inner)
            case _:
                raise encoding.error(
                    f"#ttg.{encoding.name} is not read.",
                    hint=f"there are {', '.join((*DISTRIBUTED, *SHARED))}",
                )
        cga.spread(tile, shape)
    except LayoutError as error:
        raise error if error.line else encoding.error(error.message) from error
    return _layout(tile)


def _one_element(rank: int) -> Distribution:
    return Distribution((1,) * rank, {name: () for name in AXES})


def _layout(tile: Distribution) -> Layout:
    """The tile as a layout; axes of warps and blocks only where there are several."""
    layout = tile.layout(dims_of(len(tile.extent)))
    axes = (axis for axis in layout.axes if axis.modes or axis.name in ("lane", "element"))
    return replace(layout, axes=tuple(axes)).simplified()


DISTRIBUTED = ("blocked", "dot_op", "linear", "nvidia_mma", "slice")
SHARED = ("nvmma_shared", "padded_shared", "shared_linear", "swizzled_shared")


def natural_shape(encoding: Encoding) -> Point | None:
    """The shape that the encoding itself says; None where it says none."""
    if encoding.name == "linear":
        bases = [p for name in _LINEAR for p in encoding.bases(name)]
        if bases:
            return tuple(1 << max(x.bit_length() for x in along) for along in zip(*bases))
    return None


def _check_rank(encoding: Encoding, rank: int, shape: Point) -> None:
    if rank != len(shape):
        raise encoding.error(
            f"#ttg.{encoding.name} is of {rank} dimensions, the tensor "
            f"{'x'.join(map(str, shape))} of {len(shape)}."
        )


def _blocked_distribution(encoding: Encoding, shape: Point) -> Distribution:
    rank = len(encoding.numbers("sizePerThread"))
    _check_rank(encoding, rank, shape)
    order = encoding.order(rank)
    tile = _one_element(rank)
    tile.spread_all("element", encoding.numbers("sizePerThread", rank), order)
    tile.spread_all("lane", encoding.numbers("threadsPerWarp", rank), order)
    tile.spread_all("warp", encoding.numbers("warpsPerCTA", rank), order)
    tile.fit(shape, order)
    return tile


class _Mma:
    """The fields of `#ttg.nvidia_mma`: rows and columns of an instruction, warps, their order."""

    def __init__(self, encoding: Encoding) -> None:
        self.version = encoding.number("versionMajor")
        if self.version not in (2, 3):
            raise encoding.error(
                f"Version {self.version} of #ttg.nvidia_mma is not read.",
                "versionMajor",
                hint="2 is mma.sync, 3 is wgmma",
            )
        self.warps = encoding.numbers("warpsPerCTA")
        self.rank = rank = len(self.warps)
        if rank < 2:
            raise encoding.error("An accumulator has two dimensions or more.", "warpsPerCTA")
        given = encoding.numbers("instrShape")
        if len(given) != (rank if self.version == 2 else 3):
            wanted = f"{rank} numbers" if self.version == 2 else "[M, N, K]"
            raise encoding.error(f"instrShape is {wanted} in this version.", "instrShape")
        self.tile = given if self.version == 2 else (*(1,) * (rank - 2), *given[:2])
        if self.tile[-2] % 8 or self.tile[-1] % (4 * _K_WIDTH):
            raise encoding.error(
                "An instruction has multiples of 8 rows and columns.", "instrShape"
            )
        # Ampere's warps go along the columns first, a warpgroup's four along the rows.
        self.order = range(rank - 1, -1, -1) if self.version == 2 else range(rank)


def _fragment(tile: Distribution, shape: Point, width: int, inner: int, outer: int) -> None:
    """What a warp's lanes hold of one instruction: four lanes along a row, eight below each other.

    `width` neighbours along `inner` lie in a lane; then rows, then columns go on in registers.
    """
    tile.spread("element", width, inner)
    tile.spread("lane", 4, inner)
    tile.spread("lane", 8, outer)
    tile.spread("element", shape[outer] // 8, outer)
    tile.spread("element", shape[inner] // (4 * width), inner)


def _mma(encoding: Encoding, shape: Point) -> Distribution:
    mma = _Mma(encoding)
    _check_rank(encoding, mma.rank, shape)
    tile = _one_element(mma.rank)
    _fragment(tile, mma.tile, _K_WIDTH, mma.rank - 1, mma.rank - 2)
    tile.spread_all("warp", mma.warps, mma.order)
    tile.fit(shape, range(mma.rank - 1, -1, -1))
    return tile


def _dot_operand(encoding: Encoding, shape: Point) -> Distribution:
    operand = encoding.number("opIdx")
    if operand > 1:
        raise encoding.error("opIdx is 0 for A, 1 for B.", "opIdx")
    parent = encoding.encoding("parent")
    if parent.name == "blocked":
        return _dot_operand_blocked(encoding, operand, parent, shape)
    if parent.name != "nvidia_mma":
        raise encoding.error(f"An operand of #ttg.{parent.name} is not read.", "parent")
    mma = _Mma(parent)
    _check_rank(encoding, mma.rank, shape)
    if mma.version == 3 and operand == 1:
        raise encoding.error(
            "B of a wgmma lies in shared memory, no lane holds it.",
            "opIdx",
            hint="its layout is #ttg.nvmma_shared",
        )
    rank, width = mma.rank, encoding.number("kWidth", least=1)
    inner, outer = (rank - 1, rank - 2) if operand == 0 else (rank - 2, rank - 1)
    tile = _one_element(rank)
    extents = [1] * rank
    extents[inner], extents[outer] = 8 * width, 16 if operand == 0 else 8
    _fragment(tile, tuple(extents), width, inner, outer)
    _warps_of_operand(tile, mma.warps, mma.order, inner)
    tile.fit(shape, (inner, outer, *range(rank - 3, -1, -1)))
    return tile


def _warps_of_operand(tile: Distribution, warps: Point, order: Point | range, k: int) -> None:
    """Warps along the result's other dimension hold the same part of an operand."""
    for dim in order:
        if dim == k:
            tile.copies("warp", warps[dim])
        else:
            tile.spread("warp", warps[dim], dim)


def _dot_operand_blocked(
    encoding: Encoding, operand: int, parent: Encoding, shape: Point
) -> Distribution:
    """An operand of a product without tensor cores: a thread holds all of K."""
    rank = len(parent.numbers("sizePerThread"))
    _check_rank(encoding, rank, shape)
    if rank < 2:
        raise encoding.error("An operand has two dimensions or more.", "parent")
    k = rank - 1 if operand == 0 else rank - 2
    order = parent.order(rank)
    tile = _one_element(rank)
    sizes = parent.numbers("sizePerThread", rank)
    tile.spread_all("element", (*sizes[:k], shape[k], *sizes[k + 1 :]), order)
    lanes = parent.numbers("threadsPerWarp", rank)
    for dim in order:
        if dim == k:
            tile.copies("lane", lanes[dim])
        else:
            tile.spread("lane", lanes[dim], dim)
    _warps_of_operand(tile, parent.numbers("warpsPerCTA", rank), order, k)
    tile.fit(shape, order)
    return tile


def _slice(encoding: Encoding, shape: Point) -> Layout:
    """The parent's layout of a tensor of one row, without that dimension and its copies."""
    dim = encoding.number("dim")
    if dim > len(shape):
        raise encoding.error(f"A tensor of {len(shape) + 1} dimensions has none of number {dim}.")
    whole = distributed_layout(encoding.encoding("parent"), (*shape[:dim], 1, *shape[dim:]))
    axes: list[Axis] = []
    for axis in whole.axes:
        modes = [m.moving(m.size, m.step[:dim] + m.step[dim + 1 :]) for m in axis.modes]
        if axis.name == "element":
            modes = [mode for mode in modes if any(mode.step)]
        axes.append(Axis(axis.name, tuple(modes)))
    return replace(whole, axes=tuple(axes), dims=dims_of(len(shape)), offset=()).simplified()


_LINEAR = {"register": "element", "lane": "lane", "warp": "warp", "block": "block"}


def _linear(encoding: Encoding, shape: Point) -> Layout:
    given = {axis: list(encoding.bases(name)) for name, axis in _LINEAR.items()}
    for name, axis in _LINEAR.items():
        for point in given[axis]:
            if len(point) != len(shape):
                raise encoding.error(
                    f"{name} has the point {list(point)}, but the tensor {len(shape)} dimensions.",
                    name,
                )
    for points in given.values():
        for n, point in enumerate(points):
            points[n] = tuple(x if x < e else 0 for x, e in zip(point, shape, strict=True))
    held = [p for points in given.values() for p in points]
    # It grows first along the dimensions that its own registers go along first.
    moved = [dim for point in given["element"] for dim, x in enumerate(point) if x]
    for dim in dict.fromkeys([*moved, *range(len(shape) - 1, -1, -1)]):
        extent = 1 << max((p[dim].bit_length() for p in held), default=0)
        while extent < shape[dim]:
            point = tuple(extent if other == dim else 0 for other in range(len(shape)))
            given["element"].append(point)
            extent *= 2
        if extent != shape[dim]:
            raise encoding.error(
                f"The shape's {shape[dim]} along dimension {dim} is no power of two."
            )
    axes = [(a, given[a]) for a in AXES if a in ("lane", "element") or given[a]]
    return from_bases(axes, dims_of(len(shape)))


class _Blocks:
    """How the tensor is cut over the blocks of a cluster, in either of Triton's ways to say it."""

    def __init__(self, encoding: Encoding, rank: int) -> None:
        self.modes: list[Mode] = []
        self.extent = [1] * rank
        owner, lost = _owner(encoding)
        if owner is None:
            return
        for point in owner.bases("CGALayout"):
            if len(point) != rank:
                raise owner.error(f"CGALayout has points of {rank} numbers.", "CGALayout")
            kept = tuple(0 if dim == lost else x for dim, x in enumerate(point))
            self.modes.append(Mode(2, kept))
            self.extent = [max(e, 2 * x) for e, x in zip(self.extent, kept, strict=True)]
        if not owner.has("CTAsPerCGA"):
            return
        blocks, split = owner.numbers("CTAsPerCGA", rank), owner.numbers("CTASplitNum", rank)
        for dim in owner.order(rank, "CTAOrder"):
            parts = 1 if dim == lost else split[dim]
            if blocks[dim] % parts:
                raise owner.error("CTASplitNum divides CTAsPerCGA.", "CTASplitNum")
            stride = tuple(self.extent[dim] if d == dim else 0 for d in range(rank))
            self.modes += [Mode(parts, stride), Mode(blocks[dim] // parts, (0,) * rank)]
            self.extent[dim] *= parts

    def spread(self, tile: Distribution, shape: Point) -> None:
        """The blocks of a tile that is one block's share of the shape."""
        if not prod(mode.size for mode in self.modes) > 1:
            return
        inner = tuple(max(1, n // b) for n, b in zip(shape, self.extent, strict=True))
        for mode in self.modes:
            stride = tuple(
                s * n if s * n < whole else 0
                for s, n, whole in zip(mode.stride, inner, shape, strict=True)
            )
            tile.modes["block"].append(Mode(mode.size, stride))


def _owner(encoding: Encoding) -> tuple[Encoding | None, int | None]:
    """The encoding that says how blocks are laid out, and the dimension K that none cuts."""
    if encoding.name != "dot_op":
        return encoding, None
    parent = encoding.encoding("parent")
    warps = parent.fields.get("warpsPerCTA", [])
    rank = len(warps) if isinstance(warps, list) else 0
    return parent, rank - 1 if encoding.number("opIdx") == 0 else rank - 2


def from_ttg(text: str, shape: Point | None = None) -> Layout | LayoutChain:
    """The layout that an encoding of Triton's gives a tensor of this shape, of 1 to 4 dimensions.

    Raises LayoutError with the column, for a syntax error, a field that is missing or wrong, a
    shape that is missing or that the encoding cannot cover.
    """
    encoding, said = read_encoding(require_text(text, "a Triton encoding"))
    if shape is None:
        shape = said or _natural_shape(encoding)
    if shape is None:
        raise encoding.error(
            f"#ttg.{encoding.name} is the layout of a tensor of any shape, which is not said",
            hint="write tensor<64x32xf16, #ttg...>, or give the shape",
        )
    shape = require_shape(shape, "the shape")
    if encoding.name in SHARED:
        return shared.shared_encoding_layout(encoding, shape)
    return distributed_layout(encoding, shape)


def _natural_shape(encoding: Encoding) -> Point | None:
    if encoding.name in SHARED:
        return shared.natural_shape(encoding)
    return natural_shape(encoding)
