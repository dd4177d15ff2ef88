"""The C functions are what the table of opcodes says; the library has each."""

import pytest

from fragir.emulator.native.straight import functions
from fragir.emulator.values.c import expressions, header
from fragir.ptx.opcodes.table import OPCODES

from .straight_list import PLACE, text


def test_the_list_is_that_of_the_rows() -> None:
    assert PLACE.read_text("utf-8") == text(), "write it anew: make core"


def test_the_list_is_the_same_for_rows_that_say_the_same_twice() -> None:
    rows = [row for row in OPCODES.rows if row.name in ("add", "sub", "cvt")]
    assert header(rows) == header([*rows, *rows])


def test_the_library_has_every_expression() -> None:
    found = functions()
    if found is None:
        pytest.skip("the compiled core is not in use")
    assert {e.text for e in expressions(OPCODES.rows).values()} <= found.numbers.keys()
