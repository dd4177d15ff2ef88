"""The table of opcodes: what a row says of words and operands, and a row of one's own."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from benchmarks.sweeps import opcodes as sweep
from fragir.emulator import EmulationError, run
from fragir.emulator.instructions.alu import elementwise
from fragir.emulator.instructions.table import RUNS, STEPS
from fragir.emulator.numbers.types import where
from fragir.emulator.values.arrays import definition
from fragir.emulator.values.c import opcodes_of_line
from fragir.emulator.values.facts import facts
from fragir.emulator.values.language import value_of
from fragir.ptx.opcodes.row import Opcode, Opcodes
from fragir.ptx.opcodes.syntax import SETS, Line
from fragir.ptx.opcodes.table import OPCODES, registered_row
from tests.emulator.test_legality import needs_ptxas

KERNEL = """
.version 9.2
.target sm_90
.address_size 64
.visible .entry k(.param .u64 out)
{{
.reg .b32 %r<9>; .reg .b64 %d<3>; .reg .f32 %f<3>; .reg .pred %p<3>;
ld.param.u64 %d0, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.s64 %d0, %d0, %d1;
mov.b32 %r2, 5; mov.b32 %r3, 7; mov.b32 %f1, 1.0; setp.lt.u32 %p1, %r1, %r2;
{statement};
st.global.u32 [%d0], %r0;
ret;
}}
"""


def launch(statement: str, **more: Any) -> Any:
    out = np.zeros(32, np.uint32)
    run(KERNEL.format(statement=statement), block=(32,), arguments=[out], **more)
    return out


@pytest.mark.parametrize(
    ("statement", "message", "hint"),
    [
        ("add.bogus.u32 %r0, %r1, %r2", ".bogus is no modifier of add", "it is written add.u16|"),
        ("mul.lo.hi.u32 %r0, %r1, %r2", ".hi is no modifier of mul.lo", "mul.lo.u16|u32"),
        ("fma.rn.rz.f32 %r0, %f1, %f1, %f1", ".rn and .rz exclude each other", "fma.rn|rz|rm|rp"),
        ("shfl.sync.bfly.foo.b32 %r0, %r1, 1, 31, -1", ".foo is no modifier of shfl", ".sync"),
        ("add.ftx.f32 %f0, %f1, %f1", ".ftx is no modifier of add", "did you mean .ftz?"),
        ("ad.u32 %r0, %r1, %r2", "ad.u32 is not known", "similar: "),
        ("add.u32 %r0, %r1", "add.u32 takes 3 operands, not 2", "d, a, b"),
        ("setp.lt.and.u32 %p2, %r1, %r2", "takes 4 operands, not 3", "setp"),
        ("cvt.u8.u32.sat %r0, %r1, %r2", "takes 2 operands, not 3", "cvt.sat.u8."),
        ("txq.width.b32 %r0, [%d0]", "is not emulated: textures and surfaces", None),
        ("add.pred.u32 %r0, %r1, %r2", "is not emulated: what .pred means there", None),
        ("add.pred.ftz.u32 %r0, %r1, %r2", "no instruction add.pred.ftz", "it is written"),
        ("mbarrier.test_wait.b64 %p1|%p2, [%d0], %d1", "is not emulated: a second result", None),
        ("bar.sync.all 1", "is not emulated: what .all means there is not documented", None),
        ("bar.sync.gt 1", "there is no instruction bar.sync.gt", "it is written bar.sync a"),
        ("st.async.mbarrier::complete_tx::bytes.v2.u32 [%d0], %r0, [%d1]", "which of 1", None),
        ("red.async.release.gpu.global.min.u32 [%d0], %r1", "but .add is documented", None),
        ("red.async.relaxed.gpu.add.u32 [%d0], %r1", "is not emulated: what it does", None),
    ],
)
def test_what_has_no_row_is_refused_before_anything_runs(
    statement: str, message: str, hint: str | None
) -> None:
    with pytest.raises(EmulationError) as caught:
        launch(statement)
    assert message in caught.value.message
    assert caught.value.line == 10
    assert (hint is None) == (caught.value.hint is None)
    assert hint is None or hint in str(caught.value.hint)


def test_words_come_in_any_order_types_in_theirs() -> None:
    line = Line("{.rn|rz}{.sat}.f32.f16 d, a{, c?sat}")
    assert line.read(("f32", "sat", "f16", "rz")).words == ("rz", "sat", "f32", "f16")
    assert line.read(("f16", "f32")).problems
    assert line.counts(("sat",)) == range(3, 4)
    assert line.counts(("rn",)) == range(2, 3)
    assert [o.is_written for o in line.operands] == [True, False, False]


def _absolute_difference(d: Any, ins: Any) -> Any:
    kind = ins.opcode[-1]

    def function(a: Any, b: Any) -> Any:
        return where(a < b, b - a, a - b)

    return elementwise(function, d.target(ins, 0, kind), [d.source(ins, i, kind) for i in (1, 2)])


ROW = Opcode("absdiff", "{.ftz}.f32 d, a, b\n.u32|s32 d, a, b", _absolute_difference)


@pytest.mark.parametrize("check", [False, True])
def test_an_opcode_of_ones_own_is_a_row_and_a_function(check: bool) -> None:
    with pytest.raises(EmulationError, match=r"absdiff\.s32 is not known"):
        launch("absdiff.s32 %r0, %r1, %r2")
    with registered_row(ROW):
        found = launch("absdiff.s32 %r0, %r1, %r2", check=check)
        assert found.tolist() == [abs(i - 5) for i in range(32)]
        for wrong, why in (
            ("absdiff.sat.s32 %r0, %r1, %r2", ".sat is no modifier of absdiff"),
            ("absdiff.ftz.u32 %r0, %r1, %r2", ".ftz does not go with the others"),
            ("absdiff.u64 %d1, %d1, %d1", ".u64 is no modifier of absdiff"),
            ("absdiff.u32 %r0, %r1", "takes 3 operands, not 2"),
        ):
            with pytest.raises(EmulationError, match=why):
                launch(wrong, check=check)
    assert ROW not in OPCODES.rows


def test_rows_of_one_name_differ_in_types() -> None:
    whole, part = Opcode("x", ".u32 d, a"), Opcode("x", ".f32 d, a")
    table = Opcodes((whole, part))
    assert table.find(("x", "u32"), 2).opcode is whole
    assert table.find(("x", "f32"), 2).opcode is part
    assert table.find(("x", "f64"), 2).opcode is None


def test_every_row_can_be_read() -> None:
    """No set in capitals is left, and every row decodes, ends a piece or says what is missing."""
    for row in OPCODES.rows:
        for line in row.box:
            assert line.is_open or row.missing or not sorted(SETS.keys() & {*line.known})
        assert row.step in STEPS or row.decode or row.ends or row.missing or row.bits, row.name


def test_every_step_is_that_of_a_row() -> None:
    assert {row.step for row in OPCODES.rows if row.step and not row.missing} == STEPS.keys()
    assert STEPS.keys() >= RUNS.keys()


def test_every_text_is_of_its_lines() -> None:
    """Each form is made, to an array function and, where there is one, an expression of C."""
    for row in OPCODES.rows:
        if not isinstance(row.decode, str):
            continue
        assert facts(row).address
        for line in (line for line in row.box if not line.missing):
            for words in opcodes_of_line(row, line):
                for count in line.counts(words):
                    what = value_of(row.decode, line, words, count, row.known)
                    names = [n for n in what.results if n in ("d", "cc")]
                    assert definition(what, tuple(names), (0,) * len(what.immediates))


@needs_ptxas
@pytest.mark.parametrize("name", ["mul.wide", "redux", "mapa", "cp.async.ca"])
def test_statements_are_refused_where_ptxas_refuses(name: str) -> None:
    """`fragir sweep opcodes` asks about every opcode."""
    found = sweep.judge(name, 12, Random(1))
    assert found["findings"] == []
    assert found["taken"] > 0
    assert found["refused"] > 0


@needs_ptxas
def test_a_lax_row_is_found() -> None:
    row = Opcode("mul.wide", ".u64 d, a, b", ROW.decode)
    with registered_row(row):
        found = sweep.judge("mul.wide", 12, Random(1))["findings"]
    assert found
    assert all(f.startswith("ptxas refuses mul.wide.u64") for f in found)
