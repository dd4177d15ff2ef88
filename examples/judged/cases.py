"""What the kernels of this folder are judged by: launches, and what must come of them.

fragir judge examples/judged/norm.ptx --case examples/judged/cases.py:norms
python examples/judged/cases.py
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from fragir.judge import Case, KernelCall, sizes

EPSILON = float(np.float32(1e-5))


def norm(x: Any, epsilon: float = EPSILON) -> Any:
    """A row divided by the root of its mean square."""
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + epsilon)


def norms(rng: np.random.Generator, reference: Callable[..., Any] = norm) -> Iterator[Case]:
    """Rows of all kinds of lengths for lanes that take every 32nd column."""
    for columns in sizes(32):
        x = rng.normal(size=(3, columns)).astype(np.float32)
        y = np.empty_like(x)
        call = KernelCall("norm", [x, y, columns, EPSILON], grid=3, block=32)
        tiles = {"columns": (columns, 32)}
        yield Case(call, inputs=[x], outputs=[y], reference=reference, tiles=tiles)


def other_norms(rng: np.random.Generator) -> Iterator[Case]:
    """The reference has twice the epsilon: another function, though the numbers are close."""

    def other(x: Any) -> Any:
        return norm(x, 2 * EPSILON)

    yield from norms(rng, other)


def main() -> None:
    from fragir.judge import judge

    verdict = judge(Path(__file__).with_name("norm.ptx").read_text("utf-8"), f"{__file__}:norms")
    print(f"norm.ptx: {verdict.word}")
    for reason in verdict.reasons:
        print(reason)
    raise SystemExit(verdict.exit_code)


if __name__ == "__main__":
    main()
