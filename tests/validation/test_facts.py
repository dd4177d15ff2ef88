"""What is only assumed of the machine: kernels that ask, and what the emulator answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir.errors import FragirError
from fragir.toolchain import ptxas
from fragir.validation import facts


@pytest.mark.parametrize("name", facts.names())
def test_facts(name: str) -> None:
    """ptxas takes each, the emulator assumes what the file says, and answers differ."""
    fact, ptx = facts.read(name)
    assert ptxas.assemble(ptx, "sm_90a").warnings == []
    assert facts.ask_machine(name, facts.on_emulator)["found"] == fact["assumed"]
    size = fact["arguments"][fact["result"]]["bytes"]
    texts = [answer for answer in fact["answers"].values() if answer != "trap"]
    held = [facts.spelt(*answer) for answer in texts]
    assert all(len(one) == size for one in held)
    assert len({one.tobytes() for one in held}) == len(held)
    assert fact["assumed"] in fact["answers"]


def does_nothing(*_: object) -> None:
    pass


def test_what_a_fact_says_otherwise() -> None:
    def traps(*_: object) -> None:
        raise FragirError("the GPU failed")

    name = "tma-store-inner-coordinate"
    assert facts.ask_machine(name, traps)["found"] == "the kernel traps"
    found = facts.ask_machine(name, does_nothing)
    assert found["found"] == "something else"
    assert facts.spelt("17*3 6..9", 2).tolist() == [17, 17, 17, 6, 7, 8] * 2


def test_the_page_names_every_fact() -> None:
    """With its sources: docs/copy-engine.md."""
    page = (Path(__file__).parents[2] / "docs" / "copy-engine.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `")]
    named = {name for line in rows for name in facts.names() if f"`{name}`" in line}
    assert named == set(facts.names())
