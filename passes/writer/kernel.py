"""Writes the operations of one kernel as PTX, front to back."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from fragir.dialects.interfaces import WRITERS
from fragir.errors import FragirError
from fragir.mlir.diagnostics import asking
from fragir.passes.writer import operations as operations  # attaches what is known of each
from fragir.passes.writer.elementwise import ElementwiseWriter
from fragir.passes.writer.text import KernelText


class KernelWriter(KernelText):
    """A text that is written by what `WRITERS` has for each operation."""

    def __init__(
        self, target: str, kernel: str, comments: bool, files: dict[str, int] | None = None
    ):
        super().__init__(target, kernel, comments, files)
        self._elementwise = ElementwiseWriter(self)

    def block(self, block: Block) -> None:
        """Writes a block's operations."""
        for op in block.ops:
            self.origin(op)
            with asking(op):
                writer = WRITERS.of(type(op))
                if writer is None:
                    self._write_elementwise(op)
                else:
                    writer(self, op)

    def _write_elementwise(self, op: Operation) -> None:
        """Elementwise arithmetic is in tables; what is in none has no PTX."""
        if not self._elementwise.write(op):
            from fragir.passes.writer.composed import hint

            raise FragirError("there is no instruction for it", hint=hint(op.name))
