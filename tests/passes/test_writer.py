"""The writer: registers in place, parallel copies, loops, refused copies in flight."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir import compiler, emulator
from fragir.errors import FragirError
from fragir.passes.writer.kernel import KernelWriter
from fragir.passes.writer.text import RegisterNames


def emit(text: str, target: str = "sm_80") -> str:
    return compiler.emit(compiler.parse(text), target)


LOOP = """
func.func @k(%p: !ptx.ptr<global>) attributes {{ptx.ntid = 32 : i64}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant {trips} : index
  %x0 = ptx.load %p[0] : !ptx.ptr<global> -> i32
  %y0 = ptx.load %p[4] : !ptx.ptr<global> -> i32
  %x, %y = scf.for %i = %zero to %n step %one iter_args(%a = %x0, %b = %y0) -> (i32, i32) {{
    {body}
  }}
  ptx.store %x, %p[0] : i32, !ptx.ptr<global>
  ptx.store %y, %p[4] : i32, !ptx.ptr<global>
  func.return
}}
"""


def run_loop(body: str, trips: int, x: int, y: int) -> tuple[int, int]:
    memory = np.array([x, y], np.int32)
    emulator.run(emit(LOOP.format(body=body, trips=trips)), "k", arguments=[memory])
    return int(memory[0]), int(memory[1])


@pytest.mark.parametrize("trips", [0, 1, 2, 5])
def test_a_swap_takes_a_temporary(trips: int) -> None:
    expected = (3, 7) if trips % 2 == 0 else (7, 3)
    assert run_loop("scf.yield %b, %a : i32, i32", trips, 3, 7) == expected


def test_fibonacci() -> None:
    body = "%s = arith.addi %a, %b : i32\n    scf.yield %b, %s : i32, i32"
    assert run_loop(body, 10, 0, 1) == (55, 89)


def test_an_update_is_in_place() -> None:
    body = "%s = arith.addi %a, %b : i32\n    scf.yield %s, %b : i32, i32"
    text = emit(LOOP.format(body=body, trips=4))
    loop = text[text.index("$loop_0:") : text.index("$done_0")]
    assert "mov" not in loop
    assert run_loop(body, 4, 1, 10) == (41, 10)


def test_a_value_read_after_its_update_is_kept() -> None:
    body = """%s = arith.addi %a, %b : i32
    %t = arith.muli %s, %a : i32
    scf.yield %s, %t : i32, i32"""
    x, y = 2, 3
    for _ in range(3):
        x, y = x + y, (x + y) * x
    assert run_loop(body, 3, 2, 3) == (x, y)


def test_a_start_that_is_used_again_is_copied() -> None:
    text = """
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %x = ptx.load %p[0] : !ptx.ptr<global> -> i32
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (i32) {
    %s = arith.addi %a, %x : i32
    scf.yield %s : i32
  }
  %t = arith.addi %r, %x : i32
  ptx.store %t, %p[0] : i32, !ptx.ptr<global>
  func.return
}
"""
    memory = np.array([5], np.int32)
    emulator.run(emit(text), "k", arguments=[memory])
    assert memory[0] == 25


def test_branches_yield() -> None:
    text = """
func.func @k(%p: !ptx.ptr<global>) attributes {ptx.ntid = 32 : i64} {
  %tid = ptx.special "tid.x"
  %four = arith.constant 4 : index
  %c = arith.cmpi slt, %tid, %four : index
  %q = ptx.offset %p, %tid * 4 : !ptx.ptr<global> -> !ptx.ptr<global>
  %v = scf.if %c -> (i32) {
    %one = arith.constant 1 : i32
    scf.yield %one : i32
  } else {
    %x = ptx.load %q[0] : !ptx.ptr<global> -> i32
    %two = arith.constant 2 : i32
    %y = arith.muli %x, %two : i32
    scf.yield %y : i32
  }
  ptx.store %v, %q[0] : i32, !ptx.ptr<global>
  func.return
}
"""
    memory = np.arange(32, dtype=np.int32)
    emulator.run(emit(text), "k", arguments=[memory])
    assert (memory == [1 if i < 4 else 2 * i for i in range(32)]).all()


def test_parallel_move_of_a_cycle() -> None:
    writer = KernelWriter("sm_80", "shared", False)
    writer.parallel_move([("%a0", "%b0", 32), ("%b0", "%c0", 32), ("%c0", "%a0", 32)])
    registers = {"%a0": 1, "%b0": 2, "%c0": 3}
    for line in writer.lines:
        target, source = line.replace(";", "").split()[1:]
        registers[target.rstrip(",")] = registers[source]
    assert (registers["%a0"], registers["%b0"], registers["%c0"]) == (2, 3, 1)
    assert len(writer.lines) == 4


def test_registers_of_one_hint_and_two_widths_do_not_meet() -> None:
    registers = RegisterNames()
    names = [
        registers.fresh_register(bits, hint) for bits in (32, 64) for hint in ("a", "a1", "a", "1x")
    ]
    assert len(set(names)) == len(names)
    declared = " ".join(registers.declarations())
    assert declared.count(".reg") == len({name.rstrip("0123456789") for name in names})


WGMMA = """
func.func @k() attributes {{ptx.ntid = 128 : i64}} {{
  %s = ptx.shared 4096 : !ptx.ptr<shared>
  %d = ptx.descriptor %s, 4611686293338914817
  %zero = ptx.zero : vector<4xf32>
  %c = ptx.copy %zero : vector<4xf32>
  ptx.sync "wgmma.fence.sync.aligned"
  %r = ptx.wgmma "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16" %d "k", %d "k", %c
    : i64, i64, vector<4xf32> -> vector<4xf32>
  ptx.sync "wgmma.commit_group.sync.aligned"
  %w = ptx.wgmma_wait 0, %r : vector<4xf32> -> vector<4xf32>
  {more}
  func.return
}}
"""


def test_wgmma_updates_its_accumulator() -> None:
    text = emit(WGMMA.format(more=""), "sm_90a")
    assert text.count("wgmma.mma_async") == 1
    assert fragir.compiler.lower(compiler.parse(WGMMA.format(more=""))) is not None


def test_an_accumulator_in_flight_is_not_copied() -> None:
    more = "%again = arith.addf %c, %w : vector<4xf32>"
    with pytest.raises(FragirError, match=r"ptx\.wgmma: the accumulator is read or kept elsewhere"):
        emit(WGMMA.format(more=more), "sm_90a")


def test_a_target_without_the_instruction_is_refused() -> None:
    with pytest.raises(FragirError, match="sm_80"):
        emit(WGMMA.format(more=""), "sm_80")


VECTOR = """
func.func @k(%p: !ptx.ptr<global>) attributes {{ptx.ntid = 32 : i64}} {{
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %n = arith.constant 3 : index
  %x = ptx.load %p[0] : !ptx.ptr<global> -> vector<2xf32>
  %r = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (vector<2xf32>) {{
    {body}
    scf.yield %s : vector<2xf32>
  }}
  ptx.store %r, %p[0] : vector<2xf32>, !ptx.ptr<global>
  func.return
}}
"""
CROSSED = """
    %u, %v = ptx.unpack %a : vector<2xf32> -> f32, f32
    %crossed = ptx.pack %v, %u : f32, f32 -> vector<2xf32>
    %s = arith.addf %a, %crossed : vector<2xf32>"""


@pytest.mark.parametrize(
    ("body", "moves", "wanted"),
    [("%s = arith.addf %a, %a : vector<2xf32>", 0, (8, 16)), (CROSSED, 2, (12, 12))],
)
def test_registers_of_a_vector_in_place(body: str, moves: int, wanted: tuple[float, float]) -> None:
    """Where each is read before it is written; not where another is read after it."""
    text = emit(VECTOR.format(body=body))
    loop = text[text.index("$loop_0:") : text.index("$done_0:") if "$done_0:" in text else None]
    assert loop.count("mov.b32") == moves
    memory = np.array([1, 2], np.float32)
    emulator.run(text, "k", arguments=[memory])
    assert tuple(memory) == wanted


@pytest.mark.parametrize(
    ("opcode", "operand", "fits"),
    [
        ("mad.wide.s32", "4202692608", False),
        ("mad.wide.s32", "2147483648", False),
        ("mad.wide.s32", "-2147483648", True),
        ("mad.lo.s64", "4202692608", True),
        ("mov.b32", "0xFFFFFFFF", True),
        ("add.s32", "4294967296", False),
        ("ld.global.b32", "[%rd0+2147483648]", False),
        ("ld.global.b32", "[%rd0+-2147483648]", True),
        ("ld.global.b32", "[%rd0+2147483647]", True),
    ],
)
def test_numbers_that_ptxas_would_cut_are_refused(opcode: str, operand: str, fits: bool) -> None:
    """PTX ISA 9.2, sections 4.5.1 and 6.4.1."""
    writer = KernelWriter("sm_80", "k", comments=False)
    if fits:
        writer.emit(opcode, "%r0", operand)
    else:
        with pytest.raises(FragirError, match=f"{opcode} has no room for"):
            writer.emit(opcode, "%r0", operand)
