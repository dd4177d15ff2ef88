"""What lanes do for the operations of `frag`, arith, func, memref and scf, a subject a file.

Importing this attaches them to `fragir.dialects.interfaces.LOWERINGS`: what most programs have at
once, the rest when a program has it.
"""

from fragir.dialects.interfaces import LOWERINGS
from fragir.passes.lowering.operations import memories as memories
from fragir.passes.lowering.operations import products as products
from fragir.passes.lowering.operations import scalars as scalars
from fragir.passes.lowering.operations import tiles as tiles

#: The subjects of operations that many programs do without.
LATE = {
    "arrival": ("frag.arrive",),
    "atomics": ("frag.atomic",),
    "awaiting": ("frag.await",),
    "clusters": ("frag.cluster_rank",),
    "control": ("scf.for", "scf.if", "scf.yield"),
    "copying": ("frag.commit", "frag.copy", "frag.wait"),
    "indexed": ("frag.gather", "frag.scatter", "memref.load"),
    "indexing": ("frag.iota",),
    "lanes": ("frag.coordinates", "frag.lanes", "frag.pointer", "frag.yield"),
    "loops": ("scf.condition", "scf.while"),
    "random": ("frag.random",),
    "reductions": ("frag.broadcast", "frag.reduce"),
    "region_reductions": ("frag.reduce_by",),
    "raster": ("frag.grid_size",),
    "rings": (
        "frag.acquire",
        "frag.no_slot",
        "frag.part",
        "frag.publish",
        "frag.release",
        "frag.ring",
    ),
    "roles": ("frag.roles",),
    "scans": ("frag.scan",),
    "reporting": ("frag.assert", "frag.print"),
    "shapes": (
        "frag.concat",
        "frag.join",
        "frag.reshape",
        "frag.slice",
        "frag.split",
        "frag.transpose",
    ),
    "sparse": ("frag.mma_sparse",),
    "turns": ("frag.pass_turn", "frag.take_turn"),
    "heads": ("frag.head",),
    "in_flight": ("frag.in_flight", "frag.undefined"),
    "warpgroup_products": ("frag.wgmma",),
    "views": ("memref.cast", "memref.reinterpret_cast", "memref.subview"),
    "vectors": ("vector.broadcast", "vector.extract", "vector.insert", "vector.shuffle"),
}

for _subject, _names in LATE.items():
    LOWERINGS.attached_in(f"{__name__}.{_subject}", *_names)
