"""`frag.matmul` with scales that tensor cores multiply in: mxfp8, mxfp4 and nvfp4."""

from __future__ import annotations

from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.errors import FragirError
from tests.passes.test_tensor_scales import E4M3, E5M2, E8M0, NIBBLES, chunks, numbers, powers

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

    def run(self, target: str = "sm_100a", seed: int = 1) -> fragir.Kernel:
        """The product of small whole numbers, which is exact, with every check on."""
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
        kernel = fragir.compile(self.text, target=target)
        c = np.full((*lead, m, n), 7, DTYPES[self.c])
        report = kernel(*given[0], *given[1], c, on="emulator", check=True)
        assert report.findings == []
        assert report.schedules.every
        exact = wide[0] @ wide[1].swapaxes(-1, -2)
        expected = (exact if lead else exact[0]).astype(DTYPES[self.c])
        assert np.array_equal(c.astype(np.float64), expected.astype(np.float64))
        return kernel


CASES = {
    "chunks": Case((200, 136, 304)),
    "rows": Case((200, 136, 304), lie=("rows", "rows")),
    "turned": Case((130, 72, 160), b="f8E5M2", lie=("turned", "turned")),
    "one of each": Case((136, 64, 128), a="f8E5M2", lie=("rows", "chunks"), c="bf16"),
    "across": Case((144, 80, 96), turned=(True, False), lie=("rows", "rows")),
    "few columns": Case((64, 16, 32)),
    "mxfp4": Case((130, 144, 544), FP4, FP4),
    "mxfp4 rows": Case((130, 144, 352), FP4, FP4, lie=("rows", "rows")),
    "nvfp4": Case((130, 144, 544), FP4, FP4, "f8E4M3FN", 16),
    "nvfp4 rows": Case((136, 72, 352), FP4, FP4, "f8E4M3FN", 16, lie=("rows", "turned")),
    "powers for 16": Case((128, 64, 256), FP4, FP4, "f8E8M0FNU", 16),
    "wide": Case((130, 264, 128), attributes="{tile = array<i64: 128, 256, 128>}"),
    "192": Case(
        (130, 264, 128), lie=("rows", "rows"), attributes="{tile = array<i64: 128, 192, 128>}"
    ),
    "batch": Case((130, 72, 160), lie=("rows", "rows"), batch=2),
    "nothing": Case((16, 16, 0)),
}


@pytest.mark.parametrize("name", CASES)
def test_matmul(name: str) -> None:
    kernel = CASES[name].run()
    assert "block_scale" in kernel.ptx
    assert "tcgen05.mma" in kernel.ptx
    (entry,) = kernel.assembled.entries.values()
    assert (entry.spill_loads, entry.spill_stores) == (0, 0)


@settings(max_examples=6, deadline=None)
@given(
    st.tuples(st.integers(1, 20), st.integers(1, 20), st.integers(1, 12)),
    st.sampled_from(["mxfp8", "mxfp4", "nvfp4"]),
    st.tuples(*2 * [st.sampled_from(["rows", "turned", "chunks"])]),
    st.integers(0, 1000),
)
def test_random(size: tuple[int, int, int], form: str, lie: tuple[str, str], seed: int) -> None:
    m, n, k = size
    if form == "mxfp8":
        case = Case((13 * m, 4 * n, 16 * k), lie=lie)
    else:
        scale = {"mxfp4": ("f8E8M0FNU", 32), "nvfp4": ("f8E4M3FN", 16)}[form]
        case = Case((13 * m, 4 * n, 32 * k), FP4, FP4, *scale, lie=lie)
    case.run(seed=seed)


def test_the_same_by_warps() -> None:
    """sm_120a multiplies them with mma.sync: a matrix of scales is read by the same program."""
    kernel = Case((72, 40, 96), lie=("rows", "turned")).run("sm_120a")
    assert "mma.sync" in kernel.ptx
    assert "block_scale" in kernel.ptx


@pytest.mark.parametrize(
    ("case", "target", "message"),
    [
        (Case((64, 64, 64)), "sm_120a", "scales in chunks are for tensor memory"),
        (Case((64, 64, 64)), "sm_90a", "multiply no scales of blocks in"),
        (Case((64, 64, 40)), "sm_100a", "stride of 40 bytes"),
        (
            Case((64, 64, 64), attributes="{cluster = 2 : i64}"),
            "sm_100a",
            "in tensor memory on sm_100a, but a product with cluster",
        ),
        (
            Case((64, 256, 64), attributes="{tile = array<i64: 128, 64, 128>}"),
            "sm_100a",
            "tiles of 64 begin within",
        ),
        (
            Case((64, 64, 64), attributes="{tile = array<i64: 128, 64, 64>}"),
            "sm_100a",
            "no multiple of 128, whose scales",
        ),
    ],
)
def test_refused(case: Case, target: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        fragir.compile(case.text, target=target)


def test_roles() -> None:
    """Scales that threads put into chunks have a role of their own: TMA runs ahead of it."""
    for name, waits in (("rows", 7), ("chunks", 5)):
        kernel = fragir.compile(CASES[name].text, target="sm_100a")
        assert kernel.block == (256, 1, 1)
        assert kernel.ptx.count("tcgen05.cp") == 2
        assert kernel.ptx.count("mbarrier.try_wait") == waits
