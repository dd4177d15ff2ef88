"""What a target has for conversions of layouts."""

from __future__ import annotations

from fragir.isa.registry import per_table
from fragir.isa.versions import has
from fragir.layout.planning.costs import Features


@per_table
def features_of(target: str) -> Features:
    """The instructions of conversions that a target has."""
    matrix = "sync.aligned.m8n8.x1"
    return Features(
        ldmatrix=has(f"ldmatrix.{matrix}.shared.b16", target),
        stmatrix=has(f"stmatrix.{matrix}.shared.b16", target),
        movmatrix=has("movmatrix.sync.aligned.m8n8.trans.b16", target),
    )
