"""Dialects that no package brings: `fragir.parse(..., dialects=[...])`."""

from __future__ import annotations

from typing import Any

import pytest
from xdsl.dialects.builtin import i32
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def

import fragir
from fragir import FragirError
from fragir.dialects import frag
from fragir.late_dialect import LateDialect, rows


@irdl_op_definition
class TakesNumberOp(IRDLOperation):
    """An operation with one operand of i32."""

    name = "ours.takes"
    x = operand_def(i32)
    assembly_format = "$x attr-dict `:` type($x)"


OURS = Dialect("ours", [TakesNumberOp], [])
TEXT = """func.func @f(%x: i32, %y: f32) {
  ours.takes %x : i32
  func.return
}
"""


def test_the_dialect_is_known_for_one_call() -> None:
    module = fragir.parse(TEXT, dialects=[OURS])
    assert [op.name for op in module.walk()][2] == "ours.takes"
    with pytest.raises(FragirError, match=r"no operation ours\.takes"):
        fragir.parse(TEXT)


def test_errors_keep_their_place() -> None:
    with pytest.raises(FragirError) as caught:
        fragir.parse(TEXT.replace("%x : i32", "%y : f32"), "x.mlir", dialects=[OURS])
    assert (caught.value.file, caught.value.line) == ("x.mlir", 2)


@pytest.mark.parametrize(
    ("dialects", "said"),
    [
        ([frag.Frag], "there is a dialect frag already"),
        ([OURS, OURS], "there is a dialect ours already"),
        ([TakesNumberOp], "dialects are xdsl.ir.Dialect objects"),
    ],
)
def test_what_is_refused(dialects: list[Any], said: str) -> None:
    with pytest.raises(FragirError, match=said):
        fragir.parse(TEXT, dialects=dialects)


ROWS = """
operation     cls
rowed.takes   test_in_process:NoSuchOp
"""


def test_a_row_of_what_is_not_there_is_told() -> None:
    rowed = LateDialect("rowed", rows(ROWS, "tests.extending"))
    text = TEXT.replace("ours.takes", "rowed.takes")
    with pytest.raises(FragirError, match=r"a row says tests\.extending.*:NoSuchOp, which is not"):
        fragir.parse(text, dialects=[rowed])
