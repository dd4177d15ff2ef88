"""Statements with wrong words and operands are refused with a reason; failures are told as ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.sweeps import statements
from fragir.cli.main import main
from fragir.emulator import EmulationError, run
from fragir.emulator.program.failure import EmulatorFailure
from fragir.ptx.opcodes import table
from fragir.sweeps import Task


def test_no_mutant_makes_the_emulator_fail() -> None:
    """`fragir sweep statements` runs many more."""
    batch = len(statements.bases())
    result = statements.run(Task(0, None, 1, {"batch": batch}))
    assert result == {"mutants": batch, "findings": []}


def _replace(monkeypatch: pytest.MonkeyPatch, decode: Any) -> None:
    """Another decoder for popc."""
    row = table.OPCODES.find(("popc", "b32"), 2).opcode
    assert row is not None
    monkeypatch.setitem(row.__dict__, "decode", decode)


def test_a_failure_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace(monkeypatch, _decodes_badly)
    found = statements.verdict("sm_80", "popc.b32 %r2, %r3")
    assert found is not None
    assert "the emulator failed here" in found


def test_every_shape_is_one_that_the_emulator_reads() -> None:
    """The unchanged statements run, or stop where they execute: they are no nonsense themselves."""
    unknown = "multimem istypep tex txq suld sust tcgen05".split()
    refused = [
        s
        for t, s in statements.bases()[::3]
        if (reason := said(t, s)) is not None
        and " in k, block " not in reason
        and "not initialised" not in reason
        and s.split(".")[0].split()[-1] not in unknown
    ]
    assert len(refused) <= 3, refused


def said(target: str, statement: str) -> str | None:
    """What the emulator says of a statement."""
    text = statements.HEAD.format(target=target) + f"{statement};"
    threads = 128 if "wgmma" in statement else 32
    try:
        run(
            text + statements.TAIL.format(),
            arguments=[bytes(64)],
            block=(threads,),
            limit=2000,
        )
    except EmulationError as error:
        return error.message if error.line in (15, None) else f"at line {error.line}"
    return None


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("testp.finite.lt.f32 %p1, %f1", "there is no instruction .*: .lt is no modifier of testp"),
        ("testp.f32.f32 %p1, %f1", ".f32 is given twice"),
        ("vset.s32.u32.lt %v.x, %r3, %r4", "a part is one of .*, not .x"),
        ("vadd.u32.u32.u32 %r2, %v.x, %r4", "a part is one of .*, not .x"),
        ("add.volatile.u32 %r2, %r3, %r4", ".volatile is no modifier of add"),
        ("add.u32 %r2, %r3", "add.u32 takes 3 operands, not 2"),
        ("bra END, MORE", "bra takes 1 operand, not 2"),
        ("mov.b32 %r2", "mov.b32 takes 2 operands, not 1"),
        (
            "shfl.sync.b32 %r2, %r3, 0, 31, -1",
            "it needs one of .up, .down, .bfly, .idx",
        ),
        ("setp.f32 %p1, %f0, %f1", "it needs one of .eq, .ne, .lt"),
        ("prmt.b32 %r2, %r3, %r4, 0x5410, 7", "prmt.b32 takes 4 operands, not 5"),
        ("vadd.u32.u32 %r2, %r3, %r4", "vadd.u32.u32: it needs one of .u32, .s32"),
        ("call (%r2), [%d0], (%r3)", "call takes the name of a function"),
        ("min.s32 %r2, %r3, %r4, %r5", "min.s32 takes 3 operands, not 4"),
        ("cvt.rn.tf32.e4m3x2 %r2, %h1", ".e4m3x2 is no modifier of cvt"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}", "takes 4"),
        ("atom.global.cas.b128 %q0, [%d0], _, %q2", "needs a register here"),
        ("st.global.v4.b32 [%d0], {%r0, _, %r1, %r2}", "`_` leaves elements out of stores of 256"),
        ("st.global.b32 [%d0], _", "`_` leaves elements out"),
        (
            "cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r0], 0x7FFFFFF0",
            "outside|block has",
        ),
        ("cp.async.mbarrier.arrive.b64 [%d0]", "an mbarrier must lie in shared memory"),
        ("mov.u64 %d1, %clock", "%clock has fewer bits than .u64"),
        ("mul.wide.u64 %d1, %d2, %d3", ".u64 is no modifier of mul.wide"),
        ("mov.pred %p1, %laneid", "%laneid cannot be used as .pred"),
    ],
)
def test_what_is_wrong_is_said(statement: str, words: str) -> None:
    text = statements.HEAD.format(target="sm_120a") + f"{statement};"
    with pytest.raises(EmulationError, match=words) as caught:
        run(text + statements.TAIL.format(), arguments=[bytes(64)])
    assert caught.value.line == 15


@pytest.mark.parametrize("statement", ["shl.b32 %r2, %clock, 4", "shr.u32 %r2, %clock64, 4"])
def test_clocks_are_shifted(statement: str) -> None:
    assert said("sm_80", statement) is None


def test_a_wide_clock_is_cut() -> None:
    text = statements.HEAD.format(target="sm_80") + "mov.u32 %r2, %clock64;"
    text += "mad.hi.s32 %r3, %clock64, %r2, %r2; add.f32 %f0, %clock, %f1;"
    run(text + statements.TAIL.format(), arguments=[bytes(64)])


# -- our own failures ------------------------------------------------------------------------------

PTX = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
    .reg .b32 %r<4>;
    mov.b32 %r1, 0;
    popc.b32 %r2, %r1;
    ret;
}
"""


def _decodes_badly(_decoder: Any, _ins: Any) -> Any:
    known: dict[str, int] = {}
    return known["nothing"]


def _runs_badly(_decoder: Any, _ins: Any) -> Any:
    def step(sel: Any, mask: Any) -> None:
        raise ValueError("operands could not be broadcast")

    return step


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    ("fault", "words"), [(_decodes_badly, "KeyError: 'nothing'"), (_runs_badly, "ValueError: oper")]
)
def test_a_fault_of_ours_is_told_as_ours(
    fault: Any, words: str, check: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replace(monkeypatch, fault)
    with pytest.raises(
        EmulatorFailure, match=f"the emulator failed here, at popc.b32: {words}"
    ) as e:
        run(PTX, check=check)
    assert not isinstance(e.value, EmulationError)
    assert (e.value.line, e.value.source) == (7, "    popc.b32 %r2, %r1;")
    assert e.value.hint is not None
    assert "a fault of fragir's" in e.value.hint


@pytest.mark.parametrize("command", ["emulate", "check"])
def test_on_the_command_line(
    command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error with its place, and no finding of the kernel's."""
    _replace(monkeypatch, _runs_badly)
    path = tmp_path / "k.ptx"
    path.write_text(PTX)
    assert main([command, str(path), "--json"]) == 1
    document = json.loads(capfd.readouterr().out)
    assert document["error"]["line"] == 7
    assert "report it" in document["error"]["message"]
