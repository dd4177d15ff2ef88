"""Products with scales of blocks: `frag.matmul` of mxfp8, mxfp4 and nvfp4, with data."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

E4M3, E5M2 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
E8M0 = ml_dtypes.float8_e8m0fnu
NIBBLES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def chunks(scales: Any, across: int, along: int) -> Any:
    """Scales of rows by blocks as tensor memory takes them, one by one, as the ISA says it; the
    rest of a chunk, which scales zeros, is anything but NaN."""
    found = np.full((across, along, 512), 0x38, np.uint8).view(scales.dtype)
    for row, block in np.ndindex(*scales.shape):
        at = 16 * (row % 32) + 4 * (row % 128 // 32) + block % 4
        found[row // 128, block // 4, at] = scales[row, block]
    return found.reshape(across, along, 2, 256)


def numbers(rng: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Any:
    return rng.integers(-3, 4, shape).astype(dtype)


def powers(rng: np.random.Generator, shape: tuple[int, int], dtype: Any = E8M0) -> Any:
    return (2.0 ** rng.integers(-2, 3, shape)).astype(dtype)


def scaled(x: Any, scales: Any, block: int) -> Any:
    """Each element times its scale, in f64."""
    wide = np.repeat(scales.astype(np.float64), block, 1)[:, : x.shape[1]]
    return x.astype(np.float64) * wide


FP4 = "!frag.packed<f4E2M1FN>"
DTYPES: dict[str, Any] = {
    "f8E4M3FN": E4M3,
    "f8E5M2": E5M2,
    "f8E8M0FNU": E8M0,
    "f32": np.float32,
    "bf16": ml_dtypes.bfloat16,
}


class Case(NamedTuple):
    """A product: its types and sizes, and how its scales lie (plain, turned, chunks)."""

    shape: tuple[int, int, int]
    a: str = "f8E4M3FN"
    b: str = "f8E4M3FN"
    scale: str = "f8E8M0FNU"
    block: int = 32
    lie: tuple[str, str] = ("chunks", "chunks")
    turned: tuple[bool, bool] = (False, True)
    attributes: str = ""
    c: str = "f32"
    batch: int = 0

    def _scale_type(self, rows: int, how: str) -> str:
        blocks = -(-self.shape[2] // self.block)
        if how == "chunks":
            return f"memref<{-(-rows // 128)}x{-(-blocks // 4)}x2x256x{self.scale}>"
        size = f"{blocks}x{rows}" if how == "turned" else f"{rows}x{blocks}"
        return f"memref<{self._lead}{size}x{self.scale}>"

    @property
    def _lead(self) -> str:
        return f"{self.batch}x" if self.batch else ""

    @property
    def text(self) -> str:
        m, n, k = self.shape
        lead = self._lead
        a = (
            f"memref<{lead}{k}x{m}x{self.a}>"
            if self.turned[0]
            else f"memref<{lead}{m}x{k}x{self.a}>"
        )
        b = (
            f"memref<{lead}{n}x{k}x{self.b}>"
            if self.turned[1]
            else f"memref<{lead}{k}x{n}x{self.b}>"
        )
        c = f"memref<{lead}{m}x{n}x{self.c}>"
        x, y = self._scale_type(m, self.lie[0]), self._scale_type(n, self.lie[1])
        at, bt = (" transposed" if turned else "" for turned in self.turned)
        xt = " transposed" if self.lie[0] == "turned" else ""
        yt = "" if self.lie[1] == "turned" else " transposed"
        return f"""\
func.func @product(%a: {a}, %b: {b}, %x: {x}, %y: {y}, %c: {c}) {{
  frag.matmul %a{at} scaled %x{xt} by [1, {self.block}], %b{bt} scaled %y{yt} by [{self.block}, 1]
    into %c {self.attributes} : {a} scaled {x}, {b} scaled {y} into {c}
  func.return
}}
"""

    def data(self, seed: int = 1) -> tuple[list[Any], Any]:
        """Arguments, of small whole numbers and powers of two, and the product, which is exact."""
        rng = np.random.default_rng(seed)
        m, n, k = self.shape
        lead, count = ((self.batch,), self.batch) if self.batch else ((), 1)
        blocks = -(-k // self.block)
        given: list[list[Any]] = [[], []]
        wide: list[Any] = []
        for side, (element, rows) in enumerate(((self.a, m), (self.b, n))):
            held: list[Any] = []
            values: list[Any] = []
            scales: list[Any] = []
            for _ in range(count):
                if element == FP4:
                    codes: Any = rng.integers(0, 16, (rows, k), dtype=np.uint8)
                    values.append(NIBBLES[codes])
                    held.append(codes[:, ::2] | codes[:, 1::2] << 4)
                else:
                    values.append(numbers(rng, (rows, k), DTYPES[element]))
                    held.append(values[-1])
                scales.append(powers(rng, (rows, blocks), DTYPES[self.scale]))
            factors = np.repeat(np.stack(scales).astype(np.float64), self.block, -1)[..., :k]
            wide.append(np.stack(values).astype(np.float64) * factors)
            operand: Any = np.stack(held)
            scale: Any = np.stack(scales)
            if self.turned[side] == (side == 0):
                operand = operand.swapaxes(-1, -2)
            if self.lie[side] == "turned":
                scale = scale.swapaxes(-1, -2)
            if self.lie[side] == "chunks":
                scale = chunks(scale[0], -(-rows // 128), -(-blocks // 4))[None]
            for place, array in zip(given, (operand, scale), strict=True):
                place.append(np.ascontiguousarray(array if lead else array[0]))
        exact = wide[0] @ wide[1].swapaxes(-1, -2)
        c = np.full((*lead, m, n), 7, DTYPES[self.c])
        return [*given[0], *given[1], c], (exact if lead else exact[0]).astype(c.dtype)
