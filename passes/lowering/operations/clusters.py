"""A block's place in its cluster."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes


def rank(lanes: Lanes, op: frag.ClusterRankOp) -> None:
    state = lanes.state
    alone = state.cluster == (1, 1, 1)
    state.values[op.result] = 0 if alone else state.hardware.special("cluster_ctarank", "rank")
