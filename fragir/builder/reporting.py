"""What a kernel says while it runs: the methods `print` and `assert_` of a kernel."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fragir.builder.checks import word
from fragir.builder.places import fail
from fragir.builder.tiles import TileOperations
from fragir.builder.types import condition as condition_type
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag


class ReportingOperations(TileOperations):
    """Lines that a kernel prints, and conditions that must hold."""

    def print(self, text: str, *values: Tile | Scalar) -> None:
        """Prints a line for each element of tiles of one shape: `x[3, 5] = 1.5 (block 0, 0, 0)`.

        Behind the text stand the element's place in the tile, the tiles' elements, the scalars, and
        the block. Without a tile it is a line a block. On the emulator the lines are
        `report.printed`, on a GPU the driver writes them to stdout.
        """
        self.trace.insert(frag.PrintOp(word(text, "the text"), self._values(values)))

    def assert_(self, condition: Tile | Scalar, text: str, *values: Tile | Scalar) -> None:
        """Ends the launch with an error unless a condition holds, of a tile for each element.

        It names the text and the line in this program; before it a line as of `print` says which
        elements fail, and what `values` have there.
        """
        holds = self._condition(condition)
        op = frag.AssertOp(holds, word(text, "the text"), self._values(values))
        self.trace.insert(op)

    def _condition(self, value: object) -> SSAValue:
        if isinstance(value, Tile | Scalar):
            type_ = value.element if isinstance(value, Tile) else value.type
            if type_ == condition_type:
                return self.trace.use(value)
        fail(f"assert_ takes a condition, not {value!r}", "compare: k.assert_(x < 3, ...)")

    def _values(self, values: tuple[object, ...]) -> list[SSAValue]:
        found: list[SSAValue] = []
        for value in values:
            if not isinstance(value, Tile | Scalar):
                fail(f"{value!r} is not printed", "print tiles and scalars of the kernel")
            found.append(self.trace.use(value))
        return found
