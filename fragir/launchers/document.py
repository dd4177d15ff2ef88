"""A launch plan as JSON: docs/json.md has the schema."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from fragir.launchers.plan import Array, ByValue, LaunchPlan, Map, Parameter, Size, formula

if TYPE_CHECKING:
    from fragir.compiled import Kernel


def document(plan: LaunchPlan, kernel: Kernel) -> str:
    """The text of the document."""
    content = {
        "entry": plan.entry,
        "target": plan.target,
        "ptx_sha256": hashlib.sha256(kernel.ptx.encode()).hexdigest(),
        "sizes": list(plan.sizes),
        "promises": plan.promises,
        "counts": [{"number": number, "sizes": list(names)} for number, names in plan.counts],
        "grid": [
            {
                "formula": formula(count),
                "factors": [{"size": one.size, "divisor": one.divisor} for one in count.factors],
                "resident": count.resident,
                "cluster": count.cluster,
            }
            for count in plan.grid
        ],
        "block": list(plan.block),
        "cluster": list(plan.cluster),
        "whole_clusters": plan.whole_clusters,
        "shared": plan.shared,
        "parameters": [_parameter(one) for one in plan.parameters],
    }
    return json.dumps(content, indent=2) + "\n"


def _parameter(one: Parameter) -> dict[str, Any]:
    match one:
        case Array():
            return {
                "kind": "array",
                "name": one.name,
                "bytes": 8,
                "type": one.type,
                "bits": one.bits,
                "shape": list(one.shape),
                "strides": [list(part) for part in one.strides],
                "least": [{"size": size, "divisor": divisor} for size, divisor in one.least],
            }
        case ByValue():
            return {"kind": "scalar", "name": one.name, "bytes": one.bytes, "type": one.type}
        case Size():
            return {"kind": "size", "name": one.name, "bytes": 4, "type": "s32", "size": one.of}
        case Map():
            return {
                "kind": "tensor_map",
                "name": one.name,
                "bytes": 128,
                "type": one.type,
                "array": one.array,
                "box": list(one.box),
                "swizzle": one.swizzle,
                "promotion": one.promotion,
                "turned": one.turned,
                "written": one.written,
            }
        case _:
            return {"kind": "pointer", "name": one.name, "bytes": 8}
