"""Errors while a statement is decoded or executed: the kernel's get its place, ours say so.

What is wrong with a kernel is raised as EmulationError, by whoever finds it. Any other exception is
a fault of the emulator's own, or of a check that a user brought; it is never told as the kernel's.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace

from fragir.emulator.program.program import Program
from fragir.errors import FragirError, pass_on
from fragir.ptx import tree


class EmulatorFailure(FragirError):
    """The emulator failed, at a statement. No EmulationError: the kernel may be right."""


class CheckFailure(FragirError):
    """A check of the user's own failed. No EmulationError: the kernel may be right."""


def exception_text(problem: Exception) -> str:
    """An exception in a message: its type and its words."""
    words = " ".join(str(problem).split())[:200]
    return f"{type(problem).__name__}: {words}" if words else type(problem).__name__


def failure(program: Program, ins: tree.Instruction, problem: Exception) -> FragirError:
    """The error for an exception that nobody foresaw, at the statement that it came from."""
    place = program.error("", ins.at)
    if isinstance(problem, CheckFailure):
        return replace(
            problem,
            message=f"at {ins.mnemonic}: {problem.message}",
            file=place.file,
            line=place.line,
            col=place.col,
            source=place.source,
        )
    return EmulatorFailure(
        f"the emulator failed here, at {ins.mnemonic}: {exception_text(problem)}",
        place.file,
        place.line,
        place.col,
        place.source,
        "this is a fault of fragir's, not of the kernel's; please report it with this statement, "
        "--debug shows the traceback",
    )


@contextmanager
def statement(program: Program, ins: tree.Instruction) -> Generator[None]:
    """Errors in here are about that statement, and get its place where they have none."""
    try:
        yield
    except FragirError as error:
        if error.line is not None or program.source is None:
            raise
        if isinstance(error, CheckFailure):
            raise failure(program, ins, error) from error
        named = ins.mnemonic in error.message
        text = error.message if named else f"{ins.mnemonic}: {error.message}"
        raise program.error(text, ins.at, error.hint) from error
    except MemoryError:
        raise
    except Exception as problem:
        pass_on(problem)
        raise failure(program, ins, problem) from problem
