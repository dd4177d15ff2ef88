"""Triton's linear layouts of encodings, in an environment of their own, without a GPU.

A request is a line of JSON: {"encoding": [kind, fields], "shape": [...], "bits": 16}. The answer
has the tensor's type with the encoding as Triton prints it, and Triton's own bases: of registers,
lanes, warps and blocks; for shared memory from the place to the element, whose dimensions are split
as `split` says (a reshape that splits one has no encoding but Triton's bases).
"""

# Triton is installed in another environement than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys
from typing import Any

from triton._C.libtriton import gluon_ir, ir, nvidia
from triton.experimental.gluon.language import _layouts as gluon

CONTEXT = ir.context()
ir.load_dialects(CONTEXT)
nvidia.load_dialects(CONTEXT)
BUILDER = gluon_ir.GluonOpBuilder(CONTEXT)
BUILDER.set_loc("layouts", 1, 1)
KINDS = {
    "blocked": gluon.BlockedLayout,
    "nvidia_mma": gluon.NVMMADistributedLayout,
    "dot_op": gluon.DotOperandLayout,
    "slice": gluon.SliceLayout,
    "linear": gluon.DistributedLinearLayout,
    "swizzled_shared": gluon.SwizzledSharedLayout,
    "nvmma_shared": gluon.NVMMASharedLayout,
    "shared_linear": gluon.SharedLinearLayout,
}


def encoding(given: list[Any]) -> Any:
    """The encoding of [kind, fields]; a field may be an encoding itself."""
    kind, fields = given
    values = (
        encoding(f) if isinstance(f, list) and f and isinstance(f[0], str) else f for f in fields
    )
    return KINDS[kind](*values)


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """Text and bases."""
    layout, shape = encoding(request["encoding"]), request["shape"]
    element = {
        8: BUILDER.get_int8_ty,
        16: BUILDER.get_half_ty,
        32: BUILDER.get_float_ty,
        64: BUILDER.get_double_ty,
    }[request.get("bits", 16)]()
    attribute = layout._to_ir(BUILDER)
    memory = isinstance(layout, gluon.SharedLayout)
    module = BUILDER.create_module()
    make = BUILDER.get_shared_mem_desc_ty if memory else BUILDER.get_distributed_ty
    type_ = make(element, shape, attribute, shape) if memory else make(element, shape, attribute)
    function_type = BUILDER.get_function_ty([type_], [])
    function = BUILDER.get_or_insert_function(module, "f", function_type, "public", False)
    BUILDER.set_insertion_point_to_start(function.add_entry_block())
    if memory:
        found = BUILDER.create_memdesc_reshape(function.args(0), request["split"])
        bases = {"offset": BUILDER.get_gluon_layout_from_memdesc(found).offset_bases}
    else:
        linear = BUILDER.to_linear_layout(attribute, shape)
        bases = {
            "register": linear.reg_bases,
            "lane": linear.lane_bases,
            "warp": linear.warp_bases,
            "block": linear.block_bases,
        }
    return {"type": str(type_), "bases": bases}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
