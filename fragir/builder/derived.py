"""What methods of tiles make of them, by name: loaded when a kernel has the first."""

from __future__ import annotations

from collections.abc import Callable

from fragir.builder import broadcasting, shapes

DERIVED: dict[str, Callable[..., object]] = {
    "transpose": shapes.transpose,
    "reshape": shapes.reshape,
    "split": shapes.split,
    "item": shapes.item,
    "broadcast": broadcasting.broadcast,
    "broadcast_to": broadcasting.broadcast_to,
    "reduce": shapes.reduce,
    "scan": shapes.scan,
}
