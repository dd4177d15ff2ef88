"""The `frag` dialect: matrices as tiles, with and without a layout.

Matrix level: `frag.matmul` on memory. Tile level: `!frag.tile`s that the threads of a block hold,
loaded, multiplied (`frag.mma`, `frag.wgmma`), mapped, cast, converted and stored, and copies
between global and shared memory. A tile without a layout says what is computed; the pass
`frag-place` gives every tile the layout that its instruction demands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.dialects.elements import PackedType
from fragir.dialects.frag.attributes import (
    ExplicitLayoutAttr,
    LayoutAttr,
    MmaFragment,
    MmaLayoutAttr,
    SharedAttr,
    sizes_error,
    sizes_of,
)
from fragir.dialects.frag.grid import (
    DIVISIBLE,
    BlockCount,
    Extent,
    GridAttr,
    fixed_extents,
    least_of,
    promises_error,
    promises_of,
    size_names,
)
from fragir.dialects.frag.memory import (
    BarrierOp,
    BlockIdOp,
    CommitOp,
    CopyOp,
    Dimension,
    DimensionAttr,
    ViewOp,
    WaitOp,
)
from fragir.dialects.frag.memory_layout import (
    matrix_layout,
    memory_layout,
    strides_of,
)
from fragir.dialects.frag.pointwise import CastOp, ConvertOp, FillOp, MapOp, YieldOp
from fragir.dialects.frag.products import MmaOp
from fragir.dialects.frag.tiles import LoadOp, StoreOp
from fragir.dialects.frag.types import (
    MOST_DIMENSIONS,
    TileType,
    held_tile,
    is_shared,
    tile_of,
)
from fragir.late_dialect import LateDialect

if TYPE_CHECKING:
    from fragir.dialects.frag.atomics import ArriveOp, AtomicOp
    from fragir.dialects.frag.generated import IotaOp, RandomOp
    from fragir.dialects.frag.grid import LeastAttr
    from fragir.dialects.frag.in_flight import AwaitOp, InFlightOp, InFlightType, UndefinedOp
    from fragir.dialects.frag.indexed import GatherOp, ScatterOp
    from fragir.dialects.frag.kernels import ClusterRankOp, LaunchOp
    from fragir.dialects.frag.lanes import CoordinatesOp, LanesOp, PointerOp
    from fragir.dialects.frag.matmul import MatmulOp
    from fragir.dialects.frag.memory import HeadOp
    from fragir.dialects.frag.products import MmaBatchedOp
    from fragir.dialects.frag.raster import ForTilesOp, GridSizeOp
    from fragir.dialects.frag.reductions import BroadcastOp, ReduceByOp, ReduceOp
    from fragir.dialects.frag.reporting import AssertOp, PrintOp
    from fragir.dialects.frag.ring_types import RingType, SlotType
    from fragir.dialects.frag.rings import (
        AcquireOp,
        NoSlotOp,
        PartOp,
        PassTurnOp,
        PublishOp,
        ReleaseOp,
        RingOp,
        TakeTurnOp,
    )
    from fragir.dialects.frag.roles import RolesOp
    from fragir.dialects.frag.scan import ScanOp
    from fragir.dialects.frag.shapes import (
        ConcatenateOp,
        JoinOp,
        ReshapeOp,
        SliceTileOp,
        SplitOp,
        TransposeOp,
    )
    from fragir.dialects.frag.sparse import MmaSparseOp
    from fragir.dialects.frag.warpgroup_products import WgmmaOp

#: Operations that many programs do without: where their classes stand, by name.
LATE = {
    "frag.acquire": ("fragir.dialects.frag.rings", "AcquireOp"),
    "frag.arrive": ("fragir.dialects.frag.atomics", "ArriveOp"),
    "frag.assert": ("fragir.dialects.frag.reporting", "AssertOp"),
    "frag.atomic": ("fragir.dialects.frag.atomics", "AtomicOp"),
    "frag.await": ("fragir.dialects.frag.in_flight", "AwaitOp"),
    "frag.broadcast": ("fragir.dialects.frag.reductions", "BroadcastOp"),
    "frag.cluster_rank": ("fragir.dialects.frag.kernels", "ClusterRankOp"),
    "frag.concat": ("fragir.dialects.frag.shapes", "ConcatenateOp"),
    "frag.coordinates": ("fragir.dialects.frag.lanes", "CoordinatesOp"),
    "frag.for_tiles": ("fragir.dialects.frag.raster", "ForTilesOp"),
    "frag.gather": ("fragir.dialects.frag.indexed", "GatherOp"),
    "frag.grid_size": ("fragir.dialects.frag.raster", "GridSizeOp"),
    "frag.head": ("fragir.dialects.frag.memory", "HeadOp"),
    "frag.in_flight": ("fragir.dialects.frag.in_flight", "InFlightOp"),
    "frag.iota": ("fragir.dialects.frag.generated", "IotaOp"),
    "frag.join": ("fragir.dialects.frag.shapes", "JoinOp"),
    "frag.lanes": ("fragir.dialects.frag.lanes", "LanesOp"),
    "frag.launch": ("fragir.dialects.frag.kernels", "LaunchOp"),
    "frag.matmul": ("fragir.dialects.frag.matmul", "MatmulOp"),
    "frag.mma_batched": ("fragir.dialects.frag.products", "MmaBatchedOp"),
    "frag.mma_sparse": ("fragir.dialects.frag.sparse", "MmaSparseOp"),
    "frag.no_slot": ("fragir.dialects.frag.rings", "NoSlotOp"),
    "frag.part": ("fragir.dialects.frag.rings", "PartOp"),
    "frag.pass_turn": ("fragir.dialects.frag.rings", "PassTurnOp"),
    "frag.pointer": ("fragir.dialects.frag.lanes", "PointerOp"),
    "frag.print": ("fragir.dialects.frag.reporting", "PrintOp"),
    "frag.publish": ("fragir.dialects.frag.rings", "PublishOp"),
    "frag.random": ("fragir.dialects.frag.generated", "RandomOp"),
    "frag.reduce": ("fragir.dialects.frag.reductions", "ReduceOp"),
    "frag.reduce_by": ("fragir.dialects.frag.reductions", "ReduceByOp"),
    "frag.release": ("fragir.dialects.frag.rings", "ReleaseOp"),
    "frag.reshape": ("fragir.dialects.frag.shapes", "ReshapeOp"),
    "frag.ring": ("fragir.dialects.frag.rings", "RingOp"),
    "frag.roles": ("fragir.dialects.frag.roles", "RolesOp"),
    "frag.scan": ("fragir.dialects.frag.scan", "ScanOp"),
    "frag.scatter": ("fragir.dialects.frag.indexed", "ScatterOp"),
    "frag.slice": ("fragir.dialects.frag.shapes", "SliceTileOp"),
    "frag.split": ("fragir.dialects.frag.shapes", "SplitOp"),
    "frag.take_turn": ("fragir.dialects.frag.rings", "TakeTurnOp"),
    "frag.transpose": ("fragir.dialects.frag.shapes", "TransposeOp"),
    "frag.undefined": ("fragir.dialects.frag.in_flight", "UndefinedOp"),
    "frag.wgmma": ("fragir.dialects.frag.warpgroup_products", "WgmmaOp"),
}

#: The same of types and attributes.
LATE_ATTRIBUTES = {
    "frag.in_flight": ("fragir.dialects.frag.in_flight", "InFlightType"),
    "frag.least": ("fragir.dialects.frag.grid", "LeastAttr"),
    "frag.ring": ("fragir.dialects.frag.ring_types", "RingType"),
    "frag.slot": ("fragir.dialects.frag.ring_types", "SlotType"),
}

Frag = LateDialect(
    "frag",
    [
        BarrierOp,
        BlockIdOp,
        CastOp,
        CommitOp,
        ConvertOp,
        CopyOp,
        FillOp,
        LoadOp,
        MapOp,
        MmaOp,
        StoreOp,
        ViewOp,
        WaitOp,
        YieldOp,
    ],
    [DimensionAttr, ExplicitLayoutAttr, GridAttr, MmaLayoutAttr, PackedType, SharedAttr, TileType],
    LATE,
    LATE_ATTRIBUTES,
)


def __getattr__(name: str) -> object:
    found = Frag.member(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # asked for once
    return found


__all__ = [
    "DIVISIBLE",
    "MOST_DIMENSIONS",
    "AcquireOp",
    "ArriveOp",
    "AssertOp",
    "AtomicOp",
    "AwaitOp",
    "BarrierOp",
    "BlockCount",
    "BlockIdOp",
    "BroadcastOp",
    "CastOp",
    "ClusterRankOp",
    "CommitOp",
    "ConcatenateOp",
    "ConvertOp",
    "CoordinatesOp",
    "CopyOp",
    "Dimension",
    "DimensionAttr",
    "ExplicitLayoutAttr",
    "Extent",
    "FillOp",
    "ForTilesOp",
    "Frag",
    "GatherOp",
    "GridAttr",
    "GridSizeOp",
    "HeadOp",
    "InFlightOp",
    "InFlightType",
    "IotaOp",
    "JoinOp",
    "LanesOp",
    "LaunchOp",
    "LayoutAttr",
    "LeastAttr",
    "LoadOp",
    "MapOp",
    "MatmulOp",
    "MmaBatchedOp",
    "MmaFragment",
    "MmaLayoutAttr",
    "MmaOp",
    "MmaSparseOp",
    "NoSlotOp",
    "PackedType",
    "PartOp",
    "PassTurnOp",
    "PointerOp",
    "PrintOp",
    "PublishOp",
    "RandomOp",
    "ReduceByOp",
    "ReduceOp",
    "ReleaseOp",
    "ReshapeOp",
    "RingOp",
    "RingType",
    "RolesOp",
    "ScanOp",
    "ScatterOp",
    "SharedAttr",
    "SliceTileOp",
    "SlotType",
    "SplitOp",
    "StoreOp",
    "TakeTurnOp",
    "TileType",
    "TransposeOp",
    "UndefinedOp",
    "ViewOp",
    "WaitOp",
    "WgmmaOp",
    "YieldOp",
    "fixed_extents",
    "held_tile",
    "is_shared",
    "least_of",
    "matrix_layout",
    "memory_layout",
    "promises_error",
    "promises_of",
    "size_names",
    "sizes_error",
    "sizes_of",
    "strides_of",
    "tile_of",
]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
