"""Tiles whose elements become what those before them give."""

from __future__ import annotations

from fragir.dialects import frag
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.scan import Scan


def scan(lanes: Lanes, op: frag.ScanOp) -> None:
    lanes.bind(op.result, Scan(lanes, op).run())
