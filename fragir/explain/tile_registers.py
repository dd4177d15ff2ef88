"""Where the tiles of a program are in its PTX: the registers of every fragment, and the line.

The program is lowered once more, by a lowering that keeps which values of the lane level a tile
became, and written by a writer that keeps which registers those have, and from which line on. A
compilation that nobody asks knows nothing of this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import StringIO
from typing import ClassVar, NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.printer import Printer
from xdsl.utils.arg_spec import ArgSpec

from fragir.compilation import pipeline
from fragir.compilation.pipeline import Given
from fragir.compilation.program import steps
from fragir.dialects import frag, ptx
from fragir.dialects.elements import NoElementError, element_name
from fragir.dialects.frag.kernels import kernels_of
from fragir.layout import Layout
from fragir.passes.convert_frag_to_ptx import ConvertFragToPtxPass
from fragir.passes.lowering.function import FunctionLowering
from fragir.passes.lowering.lane_builder import Deferred
from fragir.passes.scopes import threads_of
from fragir.passes.writer.kernel import KernelWriter
from fragir.passes.writer.module import write_with_origins

WARP = 32
_NO_STATEMENTS = ("//", ".", "{", "}")
_ENDS = ("bra", "brx", "ret", "exit", "call", "trap", "bar", "barrier")


class FragmentPlace(NamedTuple):
    """A fragment of a tile, or a scalar: its registers (or literals) of `width` bits, and the
    statement, by its line of PTX, before or after which they hold it first.
    """

    registers: tuple[str, ...]
    width: int
    line: int
    after: bool


class TileInPtx(NamedTuple):
    """A tile of the placed level, or a scalar (`layout` None), in the PTX.

    `pieces` are its fragments in order, None where one is never formed; `first_warp` is that of the
    block which holds what the layout says of warp 0. `flies`: a wgmma may be about to write it.
    """

    kernel: str
    name: str
    element: str
    shape: tuple[int, ...]
    layout: Layout | None
    place: FileLineColLoc | None
    pieces: tuple[FragmentPlace | None, ...]
    first_warp: int
    flies: bool


@dataclass(frozen=True)
class TilesInPtx:
    """PTX of a program and the tiles and scalars of its placed level in it."""

    ptx: str
    values: tuple[TileInPtx, ...]


def tiles_in_ptx(
    module: ModuleOp,
    target: str,
    *,
    passes: str | Sequence[Given] | None = None,
    source: str | None = None,
) -> TilesInPtx:
    """Lowers a module in place and writes it; FragirError for what is wrong with the program."""
    kept = list[_Kept]()
    pipeline.run(_keeping(steps(module, "lane", target, passes), kept), module, source=source)
    made = list[_KeepingWriter]()

    class Writer(_KeepingWriter):
        texts = made

    text, _ = write_with_origins(module, target, writer=Writer)
    lines = text.split("\n")
    found: list[TileInPtx] = []
    for writer, function in zip(made, kernels_of(module), strict=True):
        name = function.sym_name.data
        head = f".visible .entry {writer.kernel}("
        entry = next(n for n, line in enumerate(lines) if line.startswith(head))
        end = lines.index("}", entry)
        start = end - sum(1 + line.count("\n") for line in writer.lines)
        for one in kept:
            if one.kernel == name:
                found += one.values(_Text(lines, start, writer))
    return TilesInPtx(text, tuple(found))


# The lowering -----------------------------------------------------------------------------------


def _keeping(passes: Iterable[ModulePass], kept: list[_Kept]) -> Iterator[ModulePass]:
    """The same passes; the lowering to lanes keeps what it makes of tiles."""
    for one in passes:
        yield _Keeping(one.target, kept) if type(one) is ConvertFragToPtxPass else one


@dataclass(frozen=True)
class _Keeping(ConvertFragToPtxPass):
    """`convert-frag-to-ptx` that keeps what became of tiles and scalars."""

    kept: list[_Kept] = field(default_factory=list["_Kept"], compare=False)
    name: ClassVar = ConvertFragToPtxPass.name

    def lower(self, function: func.FuncOp) -> func.FuncOp:
        names = _Names(StringIO())
        module = function.parent_op()
        assert module is not None
        names.print_op(module)
        lowering = _KeepingLowering(function, threads_of(function), self.target)
        lowered = lowering.run()
        self.kept.append(_Kept(function.sym_name.data, names.found, lowering))
        return lowered

    def pipeline_pass_spec(self, *, include_default: bool = False) -> ArgSpec:
        return ConvertFragToPtxPass(self.target).pipeline_pass_spec(include_default=include_default)


@dataclass(eq=False, repr=False)
class _Names(Printer):
    """A printer that keeps which value has which name in the text."""

    def __post_init__(self) -> None:
        self.found: dict[SSAValue, str] = {}

    def print_ssa_value(self, value: SSAValue) -> str:
        self.found[value] = super().print_ssa_value(value)
        return self.found[value]


class _KeepingLowering(FunctionLowering):
    """A lowering that keeps which warp of a block is the first of those that run an operation."""

    def __init__(self, function: func.FuncOp, threads: int, target: str):
        self.first_warps: dict[SSAValue, int] = {}
        self.places: dict[SSAValue, FileLineColLoc] = {}
        super().__init__(function, threads, target)

    def lower_block(self, block: Block) -> None:
        parent = block.parent_op()
        self._keep(block.args, parent)
        super().lower_block(block)

    def lower(self, op: Operation) -> None:
        super().lower(op)
        self._keep(op.results, op)

    def _keep(self, values: Sequence[SSAValue], op: Operation | None) -> None:
        place = None if op is None else op.location
        for value in values:
            self.first_warps[value] = self.state.team.first // WARP
            if isinstance(place, FileLineColLoc):
                self.places[value] = place


class _Kept(NamedTuple):
    """What a kernel's tiles and scalars are called, and what they became."""

    kernel: str
    names: dict[SSAValue, str]
    lowering: _KeepingLowering

    def values(self, text: _Text) -> Iterator[TileInPtx]:
        """All of them, in the PTX."""
        state = self.lowering.state
        for value, fragments in state.tiles.items():
            tile = frag.held_tile(value.type)
            if tile is None or value not in self.names:
                continue
            lanes = fragments.make if isinstance(fragments, Deferred) else fragments
            pieces = tuple(None if one is None else text.piece(one) for one in lanes)
            flies = not isinstance(value.type, frag.TileType)
            yield self._value(value, tile.element, tile.shape, tile.resolve(), pieces, flies)
        for value, lane in state.values.items():
            if value not in self.names:
                continue
            try:
                element = element_name(value.type)
            except NoElementError:
                continue
            piece = (
                FragmentPlace((str(lane),), 32, 0, False)
                if isinstance(lane, int)
                else text.piece(lane)
            )
            yield self._value(value, element, (), None, (piece,), False)

    def _value(
        self,
        value: SSAValue,
        element: str,
        shape: tuple[int, ...],
        layout: Layout | None,
        pieces: tuple[FragmentPlace | None, ...],
        flies: bool,
    ) -> TileInPtx:
        known = self.lowering
        place, first = known.places.get(value), known.first_warps.get(value, 0)
        name = self.names[value]
        return TileInPtx(self.kernel, name, element, shape, layout, place, pieces, first, flies)


# The writer -------------------------------------------------------------------------------------


class _KeepingWriter(KernelWriter):
    """A text that keeps from which of its lines on a value is in which registers."""

    texts: ClassVar[list[_KeepingWriter]]

    def __init__(
        self, target: str, kernel: str, comments: bool, files: dict[str, int] | None = None
    ):
        super().__init__(target, kernel, comments, files)
        self.known: dict[SSAValue, tuple[tuple[str, ...], int]] = {}
        self.texts.append(self)

    def origin(self, op: Operation) -> None:
        """Ahead of an operation: what the one before it gives is there, or what its block takes."""
        before, block = op.prev_op, op.parent
        values = before.results if before is not None else block.args if block is not None else ()
        for value in values:
            if (names := self.names.get(value)) is not None:
                self.known[value] = names, len(self.lines)
        super().origin(op)


class _Text(NamedTuple):
    """The lines of PTX, before which of them a kernel's body begins, and its writer."""

    lines: list[str]
    start: int
    writer: _KeepingWriter

    def piece(self, value: SSAValue) -> FragmentPlace | None:
        """The registers of a value of the lane level; None where it has none."""
        found = self.writer.known.get(value)
        if found is None:
            return None
        names, count = found
        at = self.start + sum(1 + line.count("\n") for line in self.writer.lines[:count])
        line, after = self._statement(at)
        return FragmentPlace(names, ptx.register_bits(value.type), line, after)

    def _statement(self, at: int) -> tuple[int, bool]:
        """The statement next to the place ahead of line number `at` (from 0), and whether the
        place is behind it: one that every way to the place goes through.
        """
        before = self.lines[at - 1].strip()
        if _is_statement(before) and before.split(".")[0].split()[-1] not in _ENDS:
            return at, True
        while not _is_statement(self.lines[at].strip()):
            at += 1
        return at + 1, False


def _is_statement(line: str) -> bool:
    return line.endswith(";") and not line.startswith(_NO_STATEMENTS)
