"""The shared memory of conversions: one area or two, and the barriers between its uses."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import fragir
from fragir.emulator import run

# by rows and by columns, over two warps: both exchange everything
ROWS = "warp [2:(16,0)] lane [16:(1,0) 2:(0,16)] element [16:(0,1)]"
COLS = "warp [2:(0,16)] lane [16:(0,1) 2:(16,0)] element [16:(1,0)]"
# each warp keeps its rows
OWN = "warp [2:(16,0)] lane [32:(0,1)] element [16:(1,0)]"
# the same in tiles of 64 rows over four warps, which exchange in pairs
PAIRS = "warp [2:(16,0) 2:(32,0)] lane [16:(1,0) 2:(0,16)] element [16:(0,1)]"
# and in other pairs
ACROSS = "warp [2:(16,0) 2:(0,16)] lane [16:(0,1) 2:(32,0)] element [16:(1,0)]"
PAIRED = "warp [2:(0,16) 2:(32,0)] lane [16:(0,1) 2:(16,0)] element [16:(1,0)]"


def program(body: str, *, rows: int = 32, warps: int = 2) -> str:
    """A kernel on a tile %0 by rows that stores %r by rows; `$T` are types by layout."""
    types = {
        f"${name}": f'!frag.tile<{rows}x32xf32, #frag.layout<"{layout}">>'
        for name, layout in (
            ("ROWS", ROWS), ("COLS", COLS), ("OWN", OWN), ("PAIRS", PAIRS), ("PAIRED", PAIRED),
            ("ACROSS", ACROSS),
        )
    }  # fmt: skip
    text = f"""
func.func @k(%a: memref<{rows}x32xf32>, %d: memref<{rows}x32xf32>)
    attributes {{frag.warps = array<i64: {warps}, 1>}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %many = arith.constant 3 : index
{body}
  func.return
}}
"""
    for name in sorted(types, key=len, reverse=True):
        text = text.replace(name, types[name])
    return text


LOAD = "  %0 = frag.load %a[0, 0] : memref<32x32xf32> -> $ROWS\n"
STORE = "  frag.store %r, %d[0, 0] : $ROWS, memref<32x32xf32>"


def there(source: str, target: str, value: str, result: str) -> str:
    return f"  {result} = frag.convert {value} : ${source} -> ${target}\n"


def loop(value: str, body: str, result: str, end: str) -> str:
    """Three turns that begin with %t = value and end with `end`, all by rows."""
    return (
        f"  {result} = scf.for %i = %zero to %many step %one"
        f" iter_args(%t = {value}) -> ($ROWS) {{\n"
        f"{body}    scf.yield {end} : $ROWS\n  }}\n"
    )


BACK = there("ROWS", "COLS", "%t", "%u") + there("COLS", "ROWS", "%u", "%v")
CASES = {
    # one exchange: one barrier, one area
    "once": (there("ROWS", "OWN", "%0", "%1") + there("OWN", "ROWS", "%1", "%r"), 0, 3),
    "block": (there("ROWS", "COLS", "%0", "%1") + there("COLS", "ROWS", "%1", "%r"), 2, 0),
    # two in a loop take turns, none waits for the next
    "loop": (loop("%0", BACK, "%r", "%v"), 2, 0),
    # what stands alone in a loop has two halves of an area in turn
    "alone": (
        there("ROWS", "COLS", "%0", "%c")
        + loop("%0", there("COLS", "ROWS", "%c", "%v"), "%r", "%v"),
        2,
        0,
    ),
    # a loop's last exchange and the one behind it
    "behind": (
        loop("%0", BACK, "%w", "%v")
        + there("ROWS", "COLS", "%w", "%1")
        + there("COLS", "ROWS", "%1", "%r"),
        4,
        0,
    ),
}  # fmt: skip


def barriers(text: str) -> tuple[int, int]:
    """(of the block, of a warp)."""
    words = Counter(line.split()[0] for line in text.splitlines() if line.strip())
    return words["bar.sync"], words["bar.warp.sync"]


def area(text: str) -> int:
    """Bytes of shared memory."""
    line = next(line for line in text.splitlines() if ".shared .align" in line)
    return int(line[line.index("[") + 1 : line.index("]")])


def check(kernel: fragir.Kernel, rows: int = 32) -> None:
    """The tile comes out as it went in, and nobody reads what another may be writing."""
    rng = np.random.default_rng(1)
    given = rng.standard_normal((rows, 32)).astype(np.float32)
    for seed in (None, 1):
        result = np.zeros_like(given)
        report = run(
            kernel.ptx,
            grid=(1,),
            block=kernel.block,
            arguments=[given, result],
            check=True,
            schedule=seed,
        )
        assert np.array_equal(result, given)
        assert not report.findings


ALONE = there("COLS", "ROWS", "%c", "%v")
COUNTERS = {
    # where turns are counted by steps of a power of two, from a multiple of it
    "from zero": ("%zero", "%one", 2),
    "from two": ("%two", "%two", 2),
    "from one": ("%one", "%two", 3),
    "by three": ("%zero", "%three", 3),
}


@pytest.mark.parametrize("name", sorted(COUNTERS))
def test_an_exchange_alone_in_a_loop(name: str) -> None:
    """It waits once a turn where the counter has a bit that changes from turn to turn."""
    first, step, waits = COUNTERS[name]
    body = (
        "  %two = arith.constant 2 : index\n  %three = arith.constant 3 : index\n"
        "  %end = arith.constant 9 : index\n" + there("ROWS", "COLS", "%0", "%c")
    )
    turns = loop("%0", ALONE, "%r", "%v").replace("%zero to %many", f"{first} to %end")
    body += turns.replace("step %one", f"step {step}")
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    assert barriers(kernel.ptx) == (waits, 0)
    check(kernel)


def test_a_loop_in_a_loop_waits_for_its_last_round() -> None:
    """A round of odd number ends where the next begins, in the same half."""
    inner = loop("%s", ALONE, "%w", "%v").replace("%i =", "%j =")
    outer = loop("%0", "", "%r", "%w").replace("%t =", "%s =")
    body = there("ROWS", "COLS", "%0", "%c") + outer.replace("{\n", "{\n" + inner, 1)
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    assert barriers(kernel.ptx) == (3, 0)
    check(kernel)


@pytest.mark.parametrize("name", sorted(CASES))
def test_threads_wait_as_often_as_they_must(name: str) -> None:
    body, block, warp = CASES[name]
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    assert barriers(kernel.ptx) == (block, warp)
    check(kernel)


def test_numbers_of_lanes_are_computed_before_loops() -> None:
    """A turn has the data's instructions and what counts turns."""
    body, _, _ = CASES["loop"]
    lines = fragir.compile(program(LOAD + body + STORE), target="sm_90a").ptx.splitlines()
    labels = [i for i, line in enumerate(lines) if line.startswith("$")]
    turn = Counter(line.split()[0].split(".")[0] for line in lines[labels[0] : labels[1]])
    assert turn["bar"] == 2
    assert not turn.keys() & {"and", "or", "xor", "shl", "shr", "mul", "mad", "bfe"}
    assert turn["add"] <= 1


def test_memory_is_that_of_the_largest() -> None:
    """Not the sum: exchanges of one warp's own rows follow each other in the same memory."""
    one = there("ROWS", "OWN", "%0", "%1") + there("OWN", "ROWS", "%1", "%r")
    many = (
        there("ROWS", "OWN", "%0", "%1")
        + there("OWN", "ROWS", "%1", "%2")
        + there("ROWS", "OWN", "%2", "%3")
        + there("OWN", "ROWS", "%3", "%r")
    )
    first, second = (
        area(fragir.compile(program(LOAD + body + STORE), target="sm_90a").ptx)
        for body in (one, many)
    )
    assert first == second == 32 * 32 * 4


def test_two_areas_where_that_saves_a_barrier() -> None:
    body, _, _ = CASES["block"]
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    assert area(kernel.ptx) == 2 * 32 * 32 * 4


def test_exchanges_of_other_threads_have_memory_of_their_own() -> None:
    """A warp's own elements of 4 bytes and then of 2: no warp waits for another."""
    body = (
        there("ROWS", "OWN", "%0", "%1")
        + "  %2 = frag.cast %1 : $OWN -> $HALF\n"
        + "  %3 = frag.convert %2 : $HALF -> $HALVES\n"
        + "  %4 = frag.cast %3 : $HALVES -> $ROWS\n"
        + there("ROWS", "OWN", "%4", "%5")
        + there("OWN", "ROWS", "%5", "%r")
    )
    for name, layout in (("$HALF", OWN), ("$HALVES", ROWS)):
        body = body.replace(name + " ", f'!frag.tile<32x32xf16, #frag.layout<"{layout}">> ')
        body = body.replace(name + "\n", f'!frag.tile<32x32xf16, #frag.layout<"{layout}">>\n')
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    block, warp = barriers(kernel.ptx)
    assert block == 0
    assert warp >= 4
    assert area(kernel.ptx) == 32 * 32 * (4 + 2)


def test_a_barrier_that_stands_there_is_enough() -> None:
    """With a barrier of the block's own between them two exchanges have one area."""
    body = there("ROWS", "COLS", "%0", "%1") + "  frag.barrier\n"
    body += there("COLS", "ROWS", "%1", "%r")
    kernel = fragir.compile(program(LOAD + body + STORE), target="sm_90a")
    assert barriers(kernel.ptx) == (3, 0)
    assert area(kernel.ptx) == 32 * 32 * 4
    check(kernel)


def test_warps_that_exchange_wait_for_each_other_only() -> None:
    """Four warps in two pairs: two named barriers of 64 threads."""
    body = (
        "  %0 = frag.load %a[0, 0] : memref<64x32xf32> -> $PAIRS\n"
        + there("PAIRS", "PAIRED", "%0", "%1")
        + there("PAIRED", "PAIRS", "%1", "%r")
        + "  frag.store %r, %d[0, 0] : $PAIRS, memref<64x32xf32>"
    )
    kernel = fragir.compile(program(body, rows=64, warps=4), target="sm_90a")
    waits = [line.split(",")[1] for line in kernel.ptx.splitlines() if "bar.sync" in line]
    assert waits == [" 64;"] * len(waits)
    assert len(waits) == 2
    check(kernel, 64)


def test_other_pairs_have_other_barriers() -> None:
    """A warp that is ahead must not be taken for one that its first pair waits for."""
    body = (
        "  %0 = frag.load %a[0, 0] : memref<64x32xf32> -> $PAIRS\n"
        + there("PAIRS", "PAIRED", "%0", "%1")
        + there("PAIRS", "ACROSS", "%0", "%2")
        + "  frag.store %1, %d[0, 0] : $PAIRED, memref<64x32xf32>\n"
        + "  frag.store %2, %d[0, 0] : $ACROSS, memref<64x32xf32>"
    )
    kernel = fragir.compile(program(body, rows=64, warps=4), target="sm_90a")
    lines = [line.split() for line in kernel.ptx.splitlines()]
    waits = [line[1] for line in lines if line[:1] == ["bar.sync"]]
    added = [line[-1] for wait in waits for line in lines if line[:2] == ["add.s32", wait]]
    assert added == ["1;", "3;"]
    check(kernel, 64)


def test_warps_beside_a_layout_wait_too() -> None:
    """A layout of two warps in a block of four: the others hold copies, and the block waits."""
    body = (
        "  %0 = frag.load %a[0, 0] : memref<32x32xf32> -> $ROWS\n"
        + there("ROWS", "OWN", "%0", "%1")
        + there("OWN", "ROWS", "%1", "%r")
        + STORE
    )
    kernel = fragir.compile(program(body, warps=4), target="sm_90a")
    assert barriers(kernel.ptx)[0] >= 2
    check(kernel)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_pairs_that_met_know_nothing_of_other_pairs(times: int) -> None:
    """There and back in pairs, and then in other pairs, through memory that the first have read."""
    body = "  %0 = frag.load %a[0, 0] : memref<64x32xf32> -> $PAIRS\n"
    for number in range(times):
        body += there("PAIRS", "PAIRED", f"%{number}", f"%u{number}")
        body += there("PAIRED", "PAIRS", f"%u{number}", f"%{number + 1}")
    body += there("PAIRS", "ACROSS", f"%{times}", "%r")
    body += "  frag.store %r, %d[0, 0] : $ACROSS, memref<64x32xf32>"
    check(fragir.compile(program(body, rows=64, warps=4), target="sm_90a"), 64)
