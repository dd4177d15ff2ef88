"""docs/opcodes.md is what the table of opcodes says."""

from tests.docs import opcodes


def test_the_page_is_up_to_date() -> None:
    assert opcodes.PAGE.read_text("utf-8") == opcodes.page(), "run python -m tests.docs.opcodes"
