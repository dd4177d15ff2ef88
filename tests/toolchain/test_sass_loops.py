"""Loops of machine code, and what stands between two waits: ptxas moves waits without a word."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import fragir
from fragir.errors import FragirError
from fragir.toolchain.ptxas import assemble, with_lines
from fragir.toolchain.sass import disassemble, opcodes
from fragir.toolchain.sass_loops import (
    between,
    copy_wait,
    instructions,
    kind_of,
    loops,
    main_loop,
    missed,
    wgmma_wait,
)

_spec = importlib.util.spec_from_file_location("schedules", Path(__file__).parent / "schedules.py")
assert _spec is not None
assert _spec.loader is not None
schedules: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(schedules)


def stretch(pin: str) -> tuple[Counter[str], list[str]]:
    """What stands between the two waits of attention's loop, and the kinds of ptxas's verdicts."""
    assembled = assemble(schedules.attention(pin), "sm_90a")
    loop = main_loop(disassemble(assembled.cubin))
    assert loop.counts["HGMMA"] == 2
    kinds = [verdict.kind for verdict in assembled.verdicts]
    if kinds:
        return Counter(), kinds
    assert loop.waits == ("wgmma 1", "wgmma 0")
    (found,) = between(loop.instructions, wgmma_wait(1), wgmma_wait(0))
    return found, kinds


@pytest.mark.parametrize(
    "pin",
    [
        "",
        "bar.warp.sync -1;",
        "shfl.sync.bfly.b32 %r90, %r20, 1, 31, -1;",
        f"{schedules.NEVER} @%p3 st.global.f32 [%rd1], %f300;",
    ],
)
def test_ptxas_moves_the_wait_above_the_softmax(pin: str) -> None:
    """The wait for O passes the arithmetic that was written before it: nothing overlaps."""
    found, kinds = stretch(pin)
    assert kinds == []
    assert missed(found, ["MUFU>=32"]) == [f"MUFU >= 32 is wanted, there are {found['MUFU']}"]
    assert found["MUFU"] < 4


@pytest.mark.parametrize(
    "guarded", ["nanosleep.u32 0", "st.shared.f32 [%r1], %f300", "bar.arrive 5, 256"]
)
def test_what_keeps_the_wait_in_its_place(guarded: str) -> None:
    """An access to shared memory or a barrier that never happens, on a condition of the sum."""
    found, kinds = stretch(f"{schedules.NEVER} @%p3 {guarded};")
    assert kinds == []
    assert missed(found, ["MUFU>=32", "FADD>=32", "HGMMA=0"]) == []


def test_a_trap_there_makes_products_serial() -> None:
    assert stretch(f"{schedules.NEVER} @%p3 trap;")[1] == ["serialized"]


SQUARE = """func.func @f(%a: memref<4096x4096xf16>, %b: memref<4096x4096xf16>, %c: memref<4096x4096xf32>) {
  frag.matmul %a, %b into %c {stages = 3 : i64}
    : memref<4096x4096xf16>, memref<4096x4096xf16> into memref<4096x4096xf32>
  func.return
}"""  # noqa: E501
# with both said, all threads copy and multiply
ALONE = SQUARE.replace("{stages", "{tile = array<i64: 128, 256, 64>, stages")


@pytest.mark.parametrize(
    ("target", "opcode", "number", "barriers"),
    [("sm_80", "HMMA", 64, 1), ("sm_90a", "HGMMA", 4, 2)],
)
def test_the_main_loop_of_a_product(target: str, opcode: str, number: int, barriers: int) -> None:
    kernel = fragir.compile(ALONE if target == "sm_90a" else SQUARE, target=target)
    sass = disassemble(kernel.cubin)
    loop = main_loop(sass)
    needs = [f"{opcode}={number}", "spill=0", f"barrier={barriers}", "cp.async>=8"]
    assert missed(loop.counts, needs) == []
    assert loop.tensor == loop.kinds["tensor"] == number
    assert sum(loop.counts.values()) == sum(loop.kinds.values()) == len(loop.instructions)
    (around,) = between(loop.instructions, copy_wait(1), copy_wait(1), round=True)
    assert around.total() == len(loop.instructions) - 1


def test_a_loop_that_copies_edges_is_no_main_loop() -> None:
    text = (Path(__file__).parents[2] / "examples" / "gemm.mlir").read_text()
    sass = disassemble(fragir.compile(text, target="sm_80").cubin)
    found = loops(sass)
    main = main_loop(sass)
    inside = [loop for loop in found if loop.is_in(main)]
    assert (main.depth, main.innermost, main.tensor) == (1, False, 64)
    assert inside
    assert all((loop.depth, loop.innermost, loop.tensor) == (2, True, 0) for loop in inside)


def test_every_instruction_is_read() -> None:
    """As many as the plain count, less the padding; every line of PTX is one of the text."""
    ptx = fragir.compile(ALONE, target="sm_90a").ptx
    sass = disassemble(with_lines(ptx, "sm_90a"), lines=True)
    own = instructions(sass)["f"]
    counted = Counter(one.opcode.partition(".")[0] for one in own)
    plain = opcodes(disassemble(assemble(ptx, "sm_90a").cubin))
    assert {name: n for name, n in plain.items() if name not in ("NOP", "BRA")} == {
        name: n for name, n in counted.items() if name not in ("NOP", "BRA")
    }
    assert {kind_of(one.opcode) for one in own}.isdisjoint({"other"})
    text = ptx.splitlines()
    copies = [one.line for one in own if one.opcode == "LDGSTS"]  # HGMMA has no line of its own
    assert len(copies) == sum("cp.async.cg" in line for line in text)
    assert all(line and "cp.async.cg" in text[line - 1] for line in copies)


RETRY = """
.text.k:
        /*0000*/                   MOV R1, R2 ;
.L_x_1:
        /*0010*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1], R2 ;
        /*0020*/               @!P0 BRA `(.L_x_3) ;
.L_x_2:
        /*0030*/                   HGMMA.64x8x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0040*/               @P1 BRA `(.L_x_1) ;
        /*0050*/                   EXIT ;
.L_x_3:
        /*0060*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [R1], R2 ;
        /*0070*/               @!P0 BRA `(.L_x_3) ;
        /*0080*/                   BRA `(.L_x_2) ;
.L_x_4:
        /*0090*/                   BRA `(.L_x_4) ;
        /*00a0*/                   NOP ;
"""


def test_what_was_moved_behind_a_loop_belongs_to_it() -> None:
    """A wait that is tried again stands behind the kernel's end, and comes back."""
    outer, inner = loops(RETRY)
    assert [one.address for one in outer.instructions] == [0x10, 0x20, 0x30, 0x40, 0x60, 0x70, 0x80]
    assert [one.address for one in inner.instructions] == [0x60, 0x70]
    assert (outer.depth, inner.depth, main_loop(RETRY)) == (1, 2, outer)


LONG = RETRY.replace(
    "               @P1 BRA `(.L_x_1) ;", "              @!P1 CALL.REL.NOINC `(.L_x_5) ;"
).replace("EXIT ;", "BRA `(.L_x_1) ;\n.L_x_5:\n        /*0058*/                   EXIT ;")


def test_a_call_of_a_label_is_a_way_out_of_a_loop() -> None:
    """ptxas writes so where a loop is long; a call of a function comes back."""
    outer, _ = loops(LONG)
    assert [one.opcode for one in outer.instructions][3:5] == ["CALL", "BRA"]
    assert main_loop(LONG) == outer
    called = LONG.replace("`(.L_x_5)", "`($helper)")
    assert "EXIT" not in main_loop(called).counts


def test_roles_of_triton_begin_with_a_jump_through_a_table() -> None:
    """Their loops are those that BRX leads to."""
    ptx = Path(__file__).parents[1] / "foreign/triton_ptx/gemm_special.sm_100.ptx"
    loop = main_loop(disassemble(assemble(ptx.read_text("utf-8"), "sm_100a").cubin))
    assert loop.counts["UTCHMMA"] == 4
    assert not loop.kinds["tma"]


def test_errors() -> None:
    with pytest.raises(FragirError, match="no loop with tensor-core"):
        main_loop(RETRY.replace("HGMMA", "FADD"))
    with pytest.raises(FragirError, match="stands before"):
        between(loops(RETRY)[0].instructions, "HMMA", "EXIT")
    for need in ("MUFU", "mufus=3", "MUFU>3", ""):
        with pytest.raises(FragirError, match="is no condition"):
            missed(Counter(), [need])
