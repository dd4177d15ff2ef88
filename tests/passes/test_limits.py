"""Texts and sizes that no compiler should choke on: one error that names the limit, soon."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fragir import compiler
from fragir.errors import FragirError

LIMITS = {
    "a tile larger than a block's registers": (
        """func.func @f(%a: memref<16x8192xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x8192xf32> -> !frag.tile<16x8192xf32>
  func.return
}
""",
        (2, "131072 registers, a block has 65536"),
    ),
    "a tile over more warps than the block has": (
        """func.func @f(%a: memref<64x8xf32>) attributes {frag.warps = array<i64: 2, 1>} {
  %0 = frag.load %a[0, 0] : memref<64x8xf32>
    -> !frag.tile<64x8xf32, #frag.layout<"warp [4:(16,0)] lane [] element [16:(1,0) 8:(0,1)]">>
  func.return
}
""",
        (2, "spread over 4 warps, but a block of this function has 2"),
    ),
    "a tile of 2^36 elements": (
        """func.func @f(%a: memref<16x4294967296xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x4294967296xf32> -> !frag.tile<16x4294967296xf32>
  func.return
}
""",
        (2, "a block has 65536"),
    ),
    "a tile that takes too much of a lane": (
        """func.func @f(%a: memref<256x256xf32>) {
  %0 = frag.load %a[0, 0] : memref<256x256xf32> -> !frag.tile<256x256xf32>
  frag.store %0, %a[0, 0] : !frag.tile<256x256xf32>, memref<256x256xf32>
  func.return
}
""",
        (2, "2048 registers of every lane, the limit is 1024"),
    ),
    "a layout that holds an element many times": (
        """!t = !frag.tile<8x8xf32, #frag.layout<"lane [8:(0,1)] element [8:(1,0) 99999999:(0,0)]">>
func.func @f(%a: memref<8x8xf32>) {
  %0 = frag.load %a[0, 0] : memref<8x8xf32> -> !t
  frag.store %0, %a[0, 0] : !t, memref<8x8xf32>
  func.return
}
""",
        (3, "the limit is 1024"),
    ),
    "memory beyond 32 bits": (
        """func.func @f(%a: memref<16x4294967296xf32>) {
  %0 = frag.load %a[0, 0] : memref<16x4294967296xf32> -> !frag.tile<16x16xf32>
  frag.store %0, %a[0, 0] : !frag.tile<16x16xf32>, memref<16x4294967296xf32>
  func.return
}
""",
        (1, "4294967296, a kernel's sizes and indices have 32 bits"),
    ),
    "an index beyond 32 bits": (
        """func.func @f(%a: memref<?x?xf32>) {
  %i = arith.constant 4294967296 : index
  %0 = frag.load %a[%i, 0] : memref<?x?xf32> -> !frag.tile<16x16xf32>
  frag.store %0, %a[0, 0] : !frag.tile<16x16xf32>, memref<?x?xf32>
  func.return
}
""",
        (2, "an index is 4294967296"),
    ),
    "a place beyond 32 bits": (
        """func.func @f(%a: memref<?x?xf32>) {
  %0 = frag.load %a[0, 4294967296] : memref<?x?xf32> -> !frag.tile<16x16xf32>
  frag.store %0, %a[0, 0] : !frag.tile<16x16xf32>, memref<?x?xf32>
  func.return
}
""",
        (2, "an index is 4294967296"),
    ),
    "shared memory that no machine has": (
        """!m = memref<64x1048576xf16, #frag.shared>
func.func @f(%a: memref<64x1048576xf16>) {
  %m = memref.alloc() : !m
  frag.copy %a[0, 0] to %m[] : memref<64x1048576xf16> to !m
  func.return
}
""",
        (3, "134217728 bytes of shared memory"),
    ),
    "a constant of 10^9 elements": (
        """func.func @f() attributes {ptx.ntid = 32 : i64} {
  %0 = arith.constant dense<0.0> : vector<1000000000xf32>
  func.return
}
""",
        (2, "a constant of 1000000000 elements; at most 65536 are written out"),
    ),
    "a vector of 10^9 elements": (
        """func.func @f() attributes {ptx.ntid = 32 : i64} {
  %0 = ptx.zero : vector<1000000000xf32>
  func.return
}
""",
        (2, "1000000000 registers of every lane"),
    ),
    "a float of 128 bits": (
        """func.func @f(%x: f128) {
  func.return
}
""",
        (1, "f128 is no type of a GPU; the widest float is f64"),
    ),
    "an integer of 2^32 bits": (
        """func.func @f() attributes {ptx.ntid = 32 : i4294967296} {
  func.return
}
""",
        (1, "an integer of 4294967296 bits; the limit is 4096"),
    ),
    "elements that are no elements": (
        """func.func @f() {
  %m = memref.alloc() : memref<64x32xmemref<2xf16>, #frag.shared>
  func.return
}
""",
        (2, "memref<2xf16> is no type of an element"),
    ),
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits(name: str) -> None:
    text, (line, words) = LIMITS[name]
    start = time.perf_counter()
    with pytest.raises(FragirError) as caught:
        compiler.compile(text, filename="x.mlir")
    assert (caught.value.file, caught.value.line) == ("x.mlir", line)
    assert words in caught.value.sentence
    assert time.perf_counter() - start < 2


def test_a_tile_just_inside_of_the_limits() -> None:
    """1024 registers a lane: a copy of 128x256 f32 by one warp, which needs few at a time."""
    text = """func.func @f(%a: memref<128x256xf32>, %d: memref<128x256xf32>) {
  %0 = frag.load %a[0, 0] : memref<128x256xf32> -> !frag.tile<128x256xf32>
  frag.store %0, %d[0, 0] : !frag.tile<128x256xf32>, memref<128x256xf32>
  func.return
}
"""
    assert compiler.compile(text).ptx.count("ld.global.v4.b32") == 256


READING = {
    "a quote that is missing": (
        'func.func @g(%b: memref<?x?xf16> {frag.sizes = ["k", "n]}, %c: memref<?x?xf32>) {\n',
        (1, 54),
        "this string is not closed on its line",
    ),
    "a long string without an end": (
        '#a = "' + r"words and \22 words \n" * 500 + "\n",
        (1, 6),
        "this string is not closed on its line",
    ),
    "an escape that is none": ('#a = "one \\q two"\n', (1, 11), "no escape in a string"),
    "a string name without an end": ('func.func @"f() {\n}\n', (1, 12), "not closed"),
    "a name that is none": ("func.func @f(% : f32) {\n}\n", (1, 14), "is missing behind %"),
}


@pytest.mark.parametrize("name", READING)
def test_strings(name: str) -> None:
    text, place, words = READING[name]
    start = time.perf_counter()
    with pytest.raises(FragirError) as caught:
        compiler.parse(text)
    assert (caught.value.line, caught.value.col) == place
    assert words in caught.value.message
    assert time.perf_counter() - start < 2


def test_strings_are_read_as_before() -> None:
    text = r'func.func @f() attributes {a = "x\22y\\z\n\09", b = "", c = @"a b"} { func.return }'
    assert r'a = "x\22y\\z\0A\09", b = "", c = @"a b"' in str(compiler.parse(text))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux says the peak of memory")
def test_comments_take_little_memory() -> None:
    """20 MB of comments: xDSL's own expression took 110 bytes for each of theirs."""
    script = (
        "from fragir import compiler;"
        "compiler.parse('// some words of a comment\\n' * 750_000 + 'func.func private @f()');"
        # the process's own peak: getrusage counts what it was before it became this program
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)),
    )
    assert int(done.stdout) < 300_000  # KiB
