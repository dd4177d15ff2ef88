"""Roles that meet in rings: chains of them, each of which hands on what the one before it gave."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.reference import evaluate
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import main_loop
from tests.properties.judge import examples, judge

ROWS, COLS, BLOCKS = 32, 64, 5
MEMORY = f"memref<{ROWS}x{COLS}xf16, #frag.shared<swizzle = 128>>"
TILE = f"!frag.tile<{ROWS}x{COLS}xf16>"
X = f"memref<{ROWS * BLOCKS}x{COLS}xf16>"


class Chain(NamedTuple):
    """The first role fills a ring, the others read it and fill the next; the last ones store."""

    copy: str
    """How the first role copies: async, tma, plain, or by a tile."""
    warps: tuple[tuple[int, int], ...]
    """Of each role."""
    slots: tuple[int, ...]
    """Of each ring."""
    readers: int
    """Roles at the end of the chain, all of which see every slot."""
    moved: bool
    """Whether registers are moved."""

    def text(self) -> str:
        count = len(self.slots)
        outputs = ", ".join(f"%y{i}: {X}" for i in range(self.readers))
        rings = "\n".join(f"%r{i} = frag.ring {n} : !ring" for i, n in enumerate(self.slots))
        bodies = [self._first()]
        bodies += [self._middle(i) for i in range(1, count)]
        bodies += [self._last(count - 1, i) for i in range(self.readers)]
        registers = "registers 40" if self.moved else ""
        regions = ", ".join(
            f'"r{i}" warps {list(warps)} {registers if i == 0 else ""} {{\n'
            f"scf.for %i = %c0 to %end step %rows {{\n{body}\n}}\n}}"
            for i, (warps, body) in enumerate(zip(self.warps, bodies, strict=True))
        )
        return f"""
!ring = !frag.ring<{MEMORY}>
!slot = !frag.slot<{MEMORY}>
func.func @f(%x: {X}, {outputs}) {{
  %c0 = arith.constant 0 : index
  %rows = arith.constant {ROWS} : index
  %end = arith.constant {ROWS * BLOCKS} : index
  %one = arith.constant 1.0 : f16
  {rings}
  frag.roles {regions}
  func.return
}}"""

    def _first(self) -> str:
        if self.copy == "tile":
            return f"%t = frag.load %x[%i, 0] : {X} -> {TILE}\n{_filled('r0', 't')}"
        word = "" if self.copy == "plain" else self.copy
        return f"""
%s = frag.acquire %r0 : !ring
%m = frag.part %s[0] : !slot
frag.copy {word} %x[%i, 0] to %m[] : {X} to {MEMORY}
frag.publish %s : !slot"""

    def _middle(self, ring: int) -> str:
        return f"""{_read(f"r{ring - 1}")}
%u = frag.map %t : {TILE} -> {TILE} {{
^bb0(%a: f16):
  %b = arith.addf %a, %one : f16
  frag.yield %b : f16
}}
{_filled(f"r{ring}", "u")}"""

    def _last(self, ring: int, output: int) -> str:
        return f"{_read(f'r{ring}')}\nfrag.store %t, %y{output}[%i, 0] : {TILE}, {X}"


def _read(ring: str) -> str:
    return f"""
%o = frag.await %{ring} : !ring
%n = frag.part %o[0] : !slot
%t = frag.load %n[0, 0] : {MEMORY} -> {TILE}
frag.release %o : !slot"""


def _filled(ring: str, tile: str) -> str:
    return f"""
%s = frag.acquire %{ring} : !ring
%m = frag.part %s[0] : !slot
frag.store %{tile}, %m[0, 0] : {TILE}, {MEMORY}
frag.publish %s : !slot"""


@st.composite
def chains(draw: st.DrawFn) -> Chain:
    slots = tuple(draw(st.lists(st.integers(1, 3), min_size=1, max_size=3)))
    readers = draw(st.integers(1, 2))
    shape = st.sampled_from([(1, 1), (2, 1), (1, 2), (4, 1)])
    warps = tuple(draw(shape) for _ in range(len(slots) + readers))
    copy = draw(st.sampled_from(["async", "plain", "tile", "tma"]))
    return Chain(copy, warps, slots, readers, draw(st.booleans()))


@examples(3)
@given(chains(), st.sampled_from(["sm_90a", "sm_120a"]), st.integers(0, 99))
def test_chains(chain: Chain, target: str, seed: int) -> None:
    judge(chain.text(), target, seed=seed)


@pytest.mark.parametrize("seed", [4, 7, 11, 24])
def test_all_warps_that_fill_a_ring_keep_up(seed: int) -> None:
    """One thread copies by TMA; a warp that waits beside it must not miss a phase."""
    chain = Chain("tma", ((2, 1), (1, 2)), (1,), 1, moved=True)
    kernel = fragir.compile(chain.text(), target="sm_120a")
    x = np.arange(ROWS * BLOCKS * COLS, dtype=np.float16).reshape(-1, COLS)
    y = np.zeros_like(x)
    kernel.launch((1, 1, 1), None, x, y, on="emulator", schedule=seed, asynchrony="early")
    assert np.array_equal(x, y)


PRODUCT = """
!a = memref<128x64xf16, #frag.shared<swizzle = 128>>
!b = memref<64x64xf16, #frag.shared<swizzle = 128>>
!ring = !frag.ring<!a, !b>
!slot = !frag.slot<!a, !b>
!sum = !frag.tile<128x64xf32>
!M = memref<?x?xf16>
func.func @gemm(%a: !M {frag.sizes = ["m", "k"]}, %b: !M {frag.sizes = ["k", "n"]},
                %c: !M {frag.sizes = ["m", "n"]}) attributes {frag.divisible = {k = 8, n = 8}} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %a, %c0 : !M
  %k = memref.dim %a, %c1 : !M
  %n = memref.dim %b, %c1 : !M
  %ring = frag.ring 3 : !ring
  frag.roles "load" warps [1, 1] registers 24 {
    frag.for_tiles (%row, %col) of (%m, %n) by (128, 64) grouped 8 persistent {
      scf.for %k0 = %c0 to %k step %c64 {
        %s = frag.acquire %ring : !ring
        %sa = frag.part %s[0] : !slot
        %sb = frag.part %s[1] : !slot
        frag.copy tma %a[%row, %k0] to %sa[] : !M to !a
        frag.copy tma %b[%k0, %col] to %sb[] : !M to !b
        frag.publish %s : !slot
      }
    }
  }, "multiply" warpgroups [2, 1] registers 240 {
    frag.for_tiles (%row, %col) of (%m, %n) by (128, 64) grouped 8 persistent {
      %none = frag.no_slot : !slot
      %u = frag.undefined : !frag.in_flight<!sum>
      %t, %last = scf.for %k0 = %c0 to %k step %c64 iter_args(%t0 = %u, %old = %none)
          -> (!frag.in_flight<!sum>, !slot) {
        %s = frag.await %ring : !ring
        %sa = frag.part %s[0] : !slot
        %sb = frag.part %s[1] : !slot
        %more = arith.cmpi ne, %k0, %c0 : index
        %t1 = frag.wgmma async %sa, %sb, %t0 if %more : !a, !b, !frag.in_flight<!sum>
        frag.release %old : !slot
        scf.yield %t1, %s : !frag.in_flight<!sum>, !slot
      }
      %d = frag.await %t : !frag.in_flight<!sum>
      frag.release %last : !slot
      %h = frag.cast %d : !sum -> !frag.tile<128x64xf16>
      frag.store %h, %c[%row, %col] masked : !frag.tile<128x64xf16>, !M
    }
  }
  func.return
}"""


def test_a_product_whose_warps_have_roles() -> None:
    """One warp copies by TMA, two warpgroups multiply; a product stays in flight."""
    kernel = judge(PRODUCT, "sm_90a", {"m": 264, "n": 136, "k": 200}, seed=1)
    assert kernel.notes == []
    (info,) = kernel.assembled.entries.values()
    assert (info.registers, info.spill_stores, info.barriers) == (168, 0, 1)
    loop = kernel.ptx.partition("wgmma.fence")[2].partition("wgmma.wait_group.sync.aligned 0")[0]
    assert "wgmma.wait_group.sync.aligned 1" in loop
    main = main_loop(disassemble(kernel.cubin))
    # descriptors are computed once for a warp: as in a loop that is written by hand (45)
    assert main.counts["HGMMA"] == 4
    assert len(main.instructions) <= 50


FIRST, SECOND = Chain("plain", ((1, 1), (1, 1)), (2,), 1, moved=False).text().split('"r1"')
SHORT = ("%c0 to %end", "%c0 to %rows")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'{FIRST.replace(*SHORT)}"r1"{SECOND}', "no further slot of %r0 is ever published"),
        (f'{FIRST}"r1"{SECOND.replace(*SHORT)}', "no slot of %r0 ever becomes free"),
    ],
    ids=["the reader takes more", "the reader takes less"],
)
def test_what_waits_forever_is_an_error(text: str, words: str) -> None:
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    x, y = (np.zeros((ROWS * BLOCKS, COLS), np.float16) for _ in range(2))
    with pytest.raises(FragirError, match=words):
        evaluate(function, [x, y], target="sm_90a")
    kernel = fragir.compile(text, target="sm_90a")
    with pytest.raises(FragirError, match="deadlock"):
        kernel.launch((1, 1, 1), None, x, y, on="emulator")


@pytest.mark.parametrize("copy", ["async", "plain", "tma"])
def test_older_machines_say_what_to_do(copy: str) -> None:
    """Without tma= nothing is said of a tensor memory accelerator, which nobody asked for."""
    chain = Chain(copy, ((1, 1), (1, 1)), (2,), 1, False)
    reason = (
        "no tensor memory accelerator" if copy == "tma" else "by mbarrier.try_wait, which sm_80"
    )
    with pytest.raises(FragirError, match=reason) as caught:
        fragir.compile(chain.text(), target="sm_80")
    assert "outside of roles" in str(caught.value)
