"""Whether programs survive being printed and read again, at every level on their way."""

from __future__ import annotations

from io import StringIO
from random import Random

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

import fragir
from fragir.compiler import parse
from fragir.sweeps.faults import error_text


class RoundTrips:
    """An observer of a compilation: after every pass, the module is what its text says.

    `findings` are the passes after which it is not.
    """

    def __init__(self) -> None:
        self.findings: list[str] = []
        self.texts: dict[str, str] = {}
        """The text after each pass that changed something, by the pass."""

    def __call__(self, level: str, module: ModuleOp) -> None:
        text = text_of(module)
        if text in self.texts.values():
            return
        self.texts[level] = text
        try:
            again = parse(text, level)
        except Exception as error:
            self.findings.append(f"after {level} not read again: {error_text(error)}")
            return
        if not module.is_structurally_equivalent(again):
            self.findings.append(f"after {level} another program is read again")

    def ends_alike(self, ptx: str, target: str, seed: int) -> list[str]:
        """What is wrong with the PTX of the text after one of the passes, where `ptx` is that of
        the program."""
        if not self.texts or self.findings:
            return []
        level = Random(seed).choice(sorted(self.texts))
        try:
            found = fragir.compile(self.texts[level], target=target).ptx
        except Exception as error:
            return [f"text after {level} does not compile: {error_text(error)}"]
        return [] if found == ptx else [f"text after {level} becomes other PTX"]


def text_of(module: ModuleOp) -> str:
    """A module as text."""
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()
