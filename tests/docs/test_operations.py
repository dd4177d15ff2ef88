"""docs/operations.md is what the documentation strings say."""

from __future__ import annotations

from fragir.dialects.frag import Frag
from tests.docs import operations


def test_the_page_is_up_to_date() -> None:
    assert operations.PAGE.read_text("utf-8") == operations.page(), (
        "run: python -m tests.docs.operations"
    )


def test_every_operation_has_an_example() -> None:
    page = operations.page()
    for cls in Frag.operations:
        part = page.partition(f"### `{cls.name}`\n")[2].partition("\n### ")[0]
        assert "\n    " in part, cls.name
        assert len(part.splitlines()[1]) > 20, cls.name
