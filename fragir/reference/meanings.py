"""Attaches what operations mean to `fragir.dialects.interfaces.MEANINGS`, a subject a file."""

from fragir.dialects.interfaces import MEANINGS
from fragir.reference import atomics as atomics
from fragir.reference import buffers as buffers
from fragir.reference import contraction as contraction
from fragir.reference import control as control
from fragir.reference import indexed as indexed
from fragir.reference import products as products
from fragir.reference import random as random
from fragir.reference import reductions as reductions
from fragir.reference import region_reductions as region_reductions
from fragir.reference import reporting as reporting
from fragir.reference import scalars as scalars
from fragir.reference import scans as scans
from fragir.reference import shapes as shapes
from fragir.reference import tiles as tiles

MEANINGS.attached_in("fragir.reference.lanes.region", "frag.lanes")
MEANINGS.attached_in("fragir.reference.raster", "frag.for_tiles", "frag.grid_size")
MEANINGS.attached_in("fragir.reference.arrival", "frag.arrive")
MEANINGS.attached_in("fragir.reference.awaiting", "frag.await")
MEANINGS.attached_in("fragir.reference.clusters", "frag.cluster_rank")
MEANINGS.attached_in("fragir.reference.heads", "frag.head")
MEANINGS.attached_in("fragir.reference.affine_values", "affine.apply", "affine.min")
MEANINGS.attached_in("fragir.reference.calls", "func.call")
MEANINGS.attached_in("fragir.reference.launches", "frag.launch")
MEANINGS.attached_in(
    "fragir.reference.tensors",
    "tensor.collapse_shape",
    "tensor.concat",
    "tensor.expand_shape",
    "tensor.extract",
    "tensor.extract_slice",
    "tensor.from_elements",
    "tensor.insert",
    "tensor.insert_slice",
    "tensor.pad",
    "tensor.splat",
)
_TENSORS = ("tensor.generate", "tensor.pack", "tensor.unpack", "linalg.pack", "linalg.unpack")
MEANINGS.attached_in("fragir.reference.packing", *_TENSORS)
MEANINGS.attached_in("fragir.reference.softmax", "linalg.softmax")
MEANINGS.attached_in(
    "fragir.reference.side_by_side", "frag.pass_turn", "frag.roles", "frag.take_turn"
)
MEANINGS.attached_in(
    "fragir.reference.rings",
    "frag.acquire",
    "frag.no_slot",
    "frag.part",
    "frag.publish",
    "frag.release",
    "frag.ring",
)
