"""`-t ptx`: PTX text from the lane level."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import PassFailedException
from xdsl.utils.target import Target

from fragir.errors import FragirError


@dataclass(frozen=True)
class PtxTarget(Target):
    """Prints every kernel as PTX for one target, with the lowest `.version` that will do.

    `comments=true` puts the operation a group of instructions came from before it; `lines=true`
    says it by `.loc`, for debuggers and profilers.
    """

    name = "ptx"
    arch: str = "sm_80"
    comments: bool = False
    lines: bool = False

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        from fragir.passes.writer.module import write_module

        try:
            text = write_module(module, self.arch, comments=self.comments, lines=self.lines)
            output.write(text)
        except FragirError as error:
            raise PassFailedException(str(error)) from error
