"""Texts that have been read and programs that have been laid out, kept for the next launch.

A program holds where a launch has put its variables, so it is lent to one launch at a time, and
given back by one that has ended well, which then looks at it no more: `Program.unplace` forgets the
rest. Launches at the same time, of other threads or from within a callback, make their own. What is
kept is what was used last, up to a size, and the last of all whatever its size; a row that is added
to the table of opcodes, or taken out of it, makes all programs new.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

from fragir.emulator.program.program import Program
from fragir.ptx.opcodes.row import Opcodes
from fragir.ptx.tree import Module

#: Characters that have been read into trees, of all texts that are kept; with the programs they
#: take some 30 MB. Those of bodies that nothing has called for take a twentieth.
TEXTS, UNREAD = 1 << 19, 20
#: Instructions of the programs that are kept.
CODES = 1 << 14


@dataclass(slots=True)
class _Kept:
    """Programs of one kernel that no launch has; the module, so that its id stays its own."""

    module: Module
    size: int
    idle: list[Program] = field(default_factory=list[Program])


class Shelf:
    """Modules by their text, programs by module and entry. Safe to share between threads."""

    def __init__(self, opcodes: Opcodes) -> None:
        self._opcodes = opcodes
        self._lock = Lock()
        self._texts: OrderedDict[str, Module] = OrderedDict()
        self._programs: OrderedDict[tuple[int, str | None], _Kept] = OrderedDict()
        self._size = 0  # instructions of the programs together
        self._version = opcodes.version  # of the table that they were made with

    def module(self, text: str) -> Module:
        """The tree of a PTX text, whose bodies are read when a launch gets to them.

        PtxSyntaxError where it has none.
        """
        from fragir.ptx.reader import parse

        with self._lock:
            found = self._texts.get(text)
            if found is not None:
                self._texts.move_to_end(text)
                return found
        module = parse(text, lazy=True)
        with self._lock:
            module = self._texts.setdefault(text, module)
            self._trim()
        return module

    def _trim(self) -> None:
        """Drop the texts that were used longest ago. The newest has not been read yet."""
        from fragir.ptx.reader import characters_read

        sizes = [characters_read(m) + len(text) // UNREAD for text, m in self._texts.items()]
        size = sum(sizes)
        for one in sizes[:-1]:
            if size <= TEXTS:
                break
            self._texts.popitem(last=False)
            size -= one

    def take(self, module: Module, entry: str | None) -> Program:
        """A program that nothing else uses. EmulationError as `Program` has it."""
        with self._lock:
            self._renew()
            kept = self._programs.get((id(module), entry))
            if kept is not None and kept.idle:
                self._size -= kept.size
                return kept.idle.pop()
        return Program(module, entry, self._opcodes)

    def give(self, program: Program, entry: str | None) -> None:
        """Take back what was lent for that entry, as it was asked for."""
        size = len(program.code)
        program.unplace()
        key = id(program.module), entry
        with self._lock:
            self._renew()
            if program.version != self._version:
                return
            kept = self._programs.setdefault(key, _Kept(program.module, size))
            self._programs.move_to_end(key)
            kept.idle.append(program)
            self._size += size
            while self._size > CODES and len(self._programs) > 1:
                _, gone = self._programs.popitem(last=False)
                self._size -= gone.size * len(gone.idle)
            while self._size > CODES and len(kept.idle) > 1:
                kept.idle.pop()
                self._size -= size

    def _renew(self) -> None:
        """Drop the programs where the table of opcodes is another."""
        if self._version != self._opcodes.version:
            self._version = self._opcodes.version
            self._programs.clear()
            self._size = 0

    @property
    def held(self) -> tuple[int, int]:
        """How many texts and programs it keeps."""
        with self._lock:
            return len(self._texts), sum(len(kept.idle) for kept in self._programs.values())

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._texts.clear()
            self._programs.clear()
            self._size = 0
