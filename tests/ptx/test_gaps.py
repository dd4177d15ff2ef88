"""What ptxas takes and no row has is said by name, and is no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir.isa.targets import NEWEST_VERSION
from fragir.ptx.opcodes.gaps import Gap, gap_of, gaps
from fragir.ptx.opcodes.row import NOT_EMULATED
from fragir.ptx.opcodes.table import OPCODES
from tests.docs import completeness
from tests.isa.assembler import NoPtxas, installed
from tests.isa.version_forms import head


@pytest.mark.parametrize("gap", gaps(), ids=lambda gap: gap.what)
def test_no_row_has_them_and_they_are_refused_by_name(gap: Gap) -> None:
    for example in gap.examples:
        opcode = tuple(example.partition(" ")[0].split("."))
        assert gap_of(opcode) is gap
        found = OPCODES.find(opcode)
        assert found.opcode is None
        assert found.problem == f"{'.'.join(opcode)}{NOT_EMULATED}{gap.what}"


def test_ptxas_takes_them() -> None:
    try:
        ptxas = installed()
    except NoPtxas as error:
        pytest.skip(str(error))
    for target in sorted({gap.target for gap in gaps()}):
        asked = [f"{e};" for gap in gaps() if gap.target == target for e in gap.examples]
        told = ptxas.refusals(asked, target, NEWEST_VERSION, head)
        assert told == [None] * len(asked)


def test_other_opcodes_are_in_no_gap() -> None:
    for text in ("add.bogus.u32", "cp.async.bogus", "mbarrier.init.shared::cta", "fence.bogus"):
        found = OPCODES.find(tuple(text.split(".")))
        assert found.opcode is not None or NOT_EMULATED not in found.problem


def test_the_page_says_what_the_table_lacks() -> None:
    text = Path(completeness.PAGE).read_text("utf-8")
    assert completeness.written(text) == text
