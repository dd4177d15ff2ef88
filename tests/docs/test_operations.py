"""What is written of operations is what their rows and documentation strings say."""

from __future__ import annotations

from fragir.dialects.frag import Frag
from tests.docs import operations


def test_what_is_written_is_up_to_date() -> None:
    for path, text in operations.written().items():
        assert path.read_text("utf-8") == text, f"{path}: run python -m tests.docs.operations"


def test_every_operation_has_an_example() -> None:
    page = operations.page()
    for cls in Frag.operations:
        part = page.partition(f"### `{cls.name}`\n")[2].partition("\n### ")[0]
        assert "\n    " in part, cls.name
        assert len(part.splitlines()[1]) > 20, cls.name
