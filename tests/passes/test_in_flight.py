"""Products in flight: which waits they get, and what ptxas makes of them."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

import fragir
from fragir.compiler import Kernel
from fragir.toolchain.sass import disassemble

EXAMPLE = (Path(__file__).parents[2] / "examples" / "wgmma_ring.mlir").read_text()
TARGET = "sm_90a"
A = "memref<64x16xf16, #frag.shared<swizzle = 32>>"
B = "memref<8x16xf16, #frag.shared<swizzle = 32>>"
LEFT, TILE = "!frag.tile<64x16xf16>", "!frag.tile<64x8xf32>"
FLYING = f"!frag.in_flight<{TILE}>"


def program(body: str) -> str:
    """A function of one warpgroup with two operands in shared memory."""
    return f"""
func.func @f(%x: memref<256x16xf16>, %y: memref<8x64xf32>, %n: index) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %rows = arith.constant 64 : index
  %p = arith.cmpi eq, %n, %c1 : index
  %a = memref.alloc() : {A}
  %b = memref.alloc() : {B}
  frag.barrier
  %s = frag.undefined : {FLYING}
  {body}
  func.return
}}"""


def wgmma(result: str, c: str, a: str = "%a", *, word: str = "async ", scale: str = "") -> str:
    """An asynchronous product that adds to c."""
    type_ = A if a == "%a" else LEFT
    of_c = FLYING if word else TILE
    return f"{result} = frag.wgmma {word}{a}, %b transposed, {c}{scale} : {type_}, {B}, {of_c}\n"


def landed(result: str, source: str) -> str:
    """It is awaited."""
    return f"{result} = frag.await {source} : {FLYING}\n"


def waits(body: str) -> list[int]:
    """The numbers of `wgmma.wait_group`, in order."""
    text = fragir.compile(program(body), target=TARGET).ptx
    return [int(n) for n in re.findall(r"wgmma\.wait_group\.sync\.aligned (\d+);", text)]


def test_the_youngest_product_of_a_chain_counts() -> None:
    """Two products into one tile: nothing may be left; one into another behind them may."""
    other = f"%z = frag.undefined : {FLYING}\n"
    first = wgmma("%t", "%s") + wgmma("%t1", "%t")
    assert waits(first + landed("%d", "%t1")) == [0]
    both = other + first + wgmma("%u", "%z")
    assert waits(both + landed("%d", "%t1") + landed("%e", "%u")) == [1, 0]


def test_what_is_complete_is_not_waited_for_again() -> None:
    """A product that waits has completed the one before."""
    zero = f"%f0 = arith.constant 0.0 : f32\n%o = frag.fill %f0 : {TILE}\n"
    body = wgmma("%t", "%s") + zero + wgmma("%w", "%o", word="") + landed("%d", "%t")
    assert waits(body) == [0, 0]
    # its own wait and that of %u: %t is older than %u
    body = f"%z = frag.undefined : {FLYING}\n" + wgmma("%t", "%s") + wgmma("%u", "%z")
    assert waits(body + landed("%e", "%u") + landed("%d", "%t")) == [0, 0]


def loop(body: str, starts: str, passed: str, count: int) -> str:
    results = ", ".join(f"%r{i}" for i in range(count))
    types = ", ".join([FLYING] * count)
    return (
        f"{results} = scf.for %i = %c0 to %n step %c1 iter_args({starts}) -> ({types}) {{\n"
        f"{body}scf.yield {passed} : {types}\n}}\n"
    )


def test_two_chains_of_a_loop_take_turns() -> None:
    """Each is awaited a product later: one stays under way, also round the loop."""
    turn = (
        landed("%d", "%x0")
        + f"%x2 = frag.in_flight %d : {TILE} -> {FLYING}\n"
        + wgmma("%x3", "%x2")
        + landed("%e", "%y0")
        + f"%y2 = frag.in_flight %e : {TILE} -> {FLYING}\n"
        + wgmma("%y3", "%y2")
    )
    body = f"%z = frag.undefined : {FLYING}\n" + wgmma("%t", "%s") + wgmma("%u", "%z")
    body += loop(turn, "%x0 = %t, %y0 = %u", "%x3, %y3", 2)
    assert waits(body + landed("%f", "%r0") + landed("%g", "%r1")) == [1, 1, 1, 0]


def test_the_least_of_two_branches_counts() -> None:
    """Where one branch adds a product behind and the other does not, none may be left."""
    other = wgmma("%t", "%s") + f"%z = frag.undefined : {FLYING}\n"
    branch = (
        f"%u = scf.if %p -> ({FLYING}) {{\n{wgmma('%u1', '%z')}scf.yield %u1 : {FLYING}\n"
        f"}} else {{\nscf.yield %z : {FLYING}\n}}\n"
    )
    assert waits(other + branch + landed("%d", "%t") + landed("%e", "%u")) == [0, 0]
    always = branch.replace(
        f"scf.yield %z : {FLYING}", f"{wgmma('%u2', '%z')}scf.yield %u2 : {FLYING}"
    )
    assert waits(other + always + landed("%d", "%t") + landed("%e", "%u")) == [1, 0]


def test_registers_are_not_written_while_a_product_reads_them() -> None:
    """A comes from registers that each turn loads anew: the turn ends with a wait, no other one."""
    load = (
        "%at = arith.muli %i, %rows : index\n"
        f"%l = frag.load %x[%at, 0] : memref<256x16xf16> -> {LEFT}\n"
    )
    body = loop(load + wgmma("%t", "%x0", "%l"), "%x0 = %s", "%t", 1) + landed("%d", "%r0")
    assert waits(body) == [0, 0]
    once = (
        "%i = arith.constant 1 : index\n"
        + load
        + loop(wgmma("%t", "%x0", "%l").replace("%i", "%j"), "%x0 = %s", "%t", 1).replace(
            "%i =", "%j ="
        )
        + landed("%d", "%r0")
    )
    assert waits(once) == [0]


def test_a_condition_sets_the_first_instruction_only() -> None:
    text = fragir.compile(
        program(wgmma("%t", "%s", scale=" if %p") + landed("%d", "%t")), target=TARGET
    ).ptx
    assert len(re.findall(r"wgmma\.mma_async.*%p\d+, 1, 1", text)) == 1
    assert "mov.b32 %f" not in text, "nothing is zeroed"


@cache
def large() -> Kernel:
    """The example with the tile of a large product: 128x256x64 over two warpgroups."""
    text = EXAMPLE.replace("64x128x", "64x256x").replace("64x64xf16", "128x64xf16")
    text = text.replace("<64x256xf32>", "<128x256xf32>").replace("i64: 1, 1", "i64: 2, 1")
    text = (
        text.replace("128x320", "?x?").replace("320x128", "?x?").replace("128x128xf32", "?x?xf32")
    )
    text = text.replace("arith.constant 320 : index", "memref.dim %a, %c1 : !A")
    text = text.replace("%c0 = ", "%c1 = arith.constant 1 : index\n  %c0 = ", 1)
    text = text.replace("attributes {", "attributes {frag.divisible = {a_d1 = 8, b_d1 = 8}, ")
    return fragir.compile(text, target=TARGET)


def test_ptxas_keeps_products_under_way() -> None:
    """No serialisation, no wait of its own, no spill."""
    assembled = large().assembled
    assert assembled.warnings == []
    (entry,) = assembled.entries.values()
    assert entry.spill_stores == entry.spill_loads == 0


def test_the_main_loop_issues_products_first() -> None:
    """SASS: copies of before awaited, barrier, four HGMMA, one left under way, then copies."""
    sass = disassemble(large().cubin)
    found = re.findall(
        r"(?:@!?U?P\w+\s+)?\b(DEPBAR|BAR|HGMMA|WARPGROUP\.DEPBAR|LDGSTS|LDGDEPBAR|BRA)"
        r"(?:\.[\w.]*)?\s*([^;/]*)",
        sass,
    )
    names = [name for name, _ in found]
    first = names.index("HGMMA")
    assert names[first - 2 : first + 6] == [
        "DEPBAR", "BAR", *["HGMMA"] * 4, "WARPGROUP.DEPBAR", "BAR",
    ]  # fmt: skip
    assert found[first - 2][1].split()[-1] == "0x2"
    assert found[first + 4][1].split()[-1] == "0x1"
    behind = names[first + 6 : first + 6 + names[first + 6 :].index("LDGDEPBAR")]
    assert behind.count("LDGSTS") == 12
    assert "HGMMA" not in names[first + 4 :], "the loop is the only place"


@pytest.mark.parametrize("asynchrony", ["early", "late", "random"])
def test_the_example_on_the_emulator(asynchrony: str) -> None:
    """Every check, whenever products and copies end."""
    import numpy as np

    a, b = (
        np.random.default_rng(1).integers(-2, 3, s).astype("f2") for s in ((128, 320), (320, 128))
    )
    c = np.zeros((128, 128), "f4")
    report = fragir.compile(EXAMPLE, target=TARGET).launch(
        (1, 2, 1), None, a, b, c, on="emulator", check=True, asynchrony=asynchrony, target=TARGET
    )  # fmt: skip
    assert report.findings == []
    assert np.array_equal(c, a.astype("f4") @ b.astype("f4"))


WAITS = {
    "wgmma.wait_group.sync.aligned 1;": ("2", "the wgmma of line .* is still pending"),
    "wgmma.wait_group.sync.aligned 0;": (
        "1",
        "touches a register of a wgmma that is still pending",
    ),
}


@pytest.mark.parametrize("wait", sorted(WAITS))
def test_no_wait_leaves_more_under_way_than_it_may(wait: str) -> None:
    """With one group more left a slot is filled while it is read, or a sum stored too early."""
    import numpy as np

    from fragir.emulator import run
    from fragir.errors import FragirError

    kernel, (number, message) = fragir.compile(EXAMPLE, target=TARGET), WAITS[wait]
    assert kernel.ptx.count(wait) == 1
    a, b = (np.ones(shape, "f2") for shape in ((128, 320), (320, 128)))
    with pytest.raises(FragirError, match=message):
        run(
            kernel.ptx.replace(wait, f"{wait[:-2]}{number};"), grid=(1, 2, 1), block=(128, 1, 1),
            arguments=[a, b, np.zeros((128, 128), "f4")], shared=kernel.shared, target=TARGET,
        )  # fmt: skip
