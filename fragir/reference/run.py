"""What the meaning of an operation is evaluated in: the public face of the reference.

    def evaluate(self, run):
        x = run[self.source]
        run[self.result] = Bounded(np.negative(x.value), x.bound)

`run[value]` is a `Bounded`: an array of values (float64, int64 or bool) and one of bounds, for a
tile as rows x columns, for a scalar without dimensions. The bound says how far any execution that
the semantics allows may be from the value: what the operands' bounds do to the result, plus every
rounding of the operation itself. docs/accuracy.md shows how to derive one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ShapedType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.traits import IsTerminator

from fragir.dialects import frag
from fragir.dialects.interfaces import LOWERINGS, MEANINGS, accesses_of
from fragir.errors import FragirError, pass_on
from fragir.mlir.diagnostics import error_at_operation, unexpected_message
from fragir.plugins import package_of
from fragir.reference.bounded import Bounded
from fragir.reference.formats import INTEGERS, type_name
from fragir.reference.memory import BoundedMemory, unwritten_memory


class Token:
    """A value that holds no numbers of its own: a ring, one of its slots."""


Value = Bounded | BoundedMemory | Token
Note = Callable[[Operation], None]


class Run:
    """The values of one run of a function by one block of the grid, and the blocks in turn.

    Public are indexing, `memory`, `number`, `numbers`, `region`, `target`, `block_id` and
    `grid`.
    """

    def __init__(self, target: str, source: str | None = None, unknown: Note | None = None):
        self.target = target
        """The machine whose tensor cores add, as in "sm_90a"."""
        self.block_id = (0, 0, 0)
        """The block's place in the grid: x, y, z."""
        self.grid = (1, 1, 1)
        """The blocks along x, y and z."""
        self.values: dict[SSAValue, Value] = {}
        # the memory of arguments that are tensors: what is computed in their place ends there
        self.homes: dict[SSAValue, BoundedMemory] = {}
        # for returned tensors that come from no argument
        self.results: list[BoundedMemory] = []
        # what meanings keep from one operation and block to the next
        self.kept: dict[str, Any] = {}
        self.others: Callable[[Callable[[], bool]], bool] | None = None
        """Lets what runs side by side with this go on until a condition holds: True when it does,
        False where nothing will. None where nothing does."""
        self._source = source
        self._unknown = unknown

    def nested(self) -> Run:
        """One of another function, which this one calls."""
        return Run(self.target, self._source, self._unknown)

    # --- values -------------------------------------------------------------------------------

    def __getitem__(self, value: SSAValue) -> Bounded:
        """A scalar, tile or tensor; of memory what lies there now."""
        result = self.values[value]
        if isinstance(result, BoundedMemory):
            return result.content
        return cast("Bounded", result)  # a token goes as it came through loops and branches

    def __setitem__(self, value: SSAValue, result: Value) -> None:
        """FragirError where the arrays do not have the shape of the tile."""
        if isinstance(result, Bounded):
            shapes = result.value.shape, np.shape(result.bound)
            tile = frag.held_tile(value.type)
            wanted = shapes[0] if tile is None else tile.shape
            if shapes != (wanted, wanted):
                given = " and bounds of ".join(str(shape) for shape in shapes)
                name = value.owner.name if isinstance(value.owner, Operation) else "a block"
                raise FragirError(f"{name}: its meaning gives values of {given} for {value.type}")
        self.values[value] = result

    def memory(self, value: SSAValue) -> BoundedMemory:
        """A memref, which can be read and written."""
        result = self.values[value]
        assert isinstance(result, BoundedMemory)
        return result

    def number(self, value: SSAValue | int) -> int:
        """An integer that must be known for certain: an index or a bound of a loop.

        FragirError where it depends on rounding.
        """
        if isinstance(value, int):
            return value
        x = self[value]
        if x.bound.any():
            name = f"%{value.name_hint}" if value.name_hint else "a value"
            raise FragirError(f"{name} steers the program but depends on rounding")
        return int(x.value)

    def numbers(self, values: Sequence[SSAValue | int]) -> list[int]:
        """The same of several, as of the indices of an access."""
        return [self.number(value) for value in values]

    def shape(self, type_: ShapedType, sizes: Sequence[SSAValue]) -> list[int]:
        """A type's shape with the dynamic sizes that an allocation gives."""
        given = iter(self.numbers(sizes))
        return [next(given) if size < 0 else size for size in type_.get_shape()]

    def wait_for(self, ready: Callable[[], bool], words: str) -> None:
        """Waits until others have made a condition hold; FragirError where they never will."""
        if not ready() and (self.others is None or not self.others(ready)):
            raise FragirError(words)

    def region(
        self, block: Block, arguments: Sequence[Bounded], shape: Sequence[int]
    ) -> list[Bounded]:
        """A region of scalars applied to whole arrays, its results broadcast to a shape."""
        for parameter, value in zip(block.args, arguments, strict=True):
            self.values[parameter] = value
        shape = tuple(shape)
        return [
            Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))
            for x in self.run_block(block)
        ]

    # --- running ------------------------------------------------------------------------------

    def run_function(
        self,
        function: func.FuncOp,
        arguments: Sequence[Value],
        grid: tuple[int, int, int],
        results: Sequence[BoundedMemory] = (),
    ) -> None:
        """Runs every block of a grid, one after the other; memories among the arguments change.

        `results` take the returned tensors that come from no argument.
        """
        block = function.body.block
        self.results, self.grid = list(results), grid
        with np.errstate(all="ignore"):
            for z, y, x in product(*(range(n) for n in reversed(grid))):
                self.block_id = (x, y, z)
                self.values = {}
                for parameter, value in zip(block.args, arguments, strict=True):
                    self._bind_argument(parameter, value)
                self.run_block(block)

    def _bind_argument(self, parameter: BlockArgument, value: Value) -> None:
        self.values[parameter] = value
        if isinstance(parameter.type, TensorType):
            assert isinstance(value, BoundedMemory)
            self.values[parameter] = value.content
            self.homes[parameter] = value

    def run_block(self, block: Block) -> list[Bounded]:
        """Runs operations in order; what the terminator passes on."""
        for op in block.ops:
            meaning = MEANINGS.of(type(op))
            if meaning is None and op.has_trait(IsTerminator):
                return [self[value] for value in op.operands]
            self.run_op(op, meaning or Run._without_meaning)
        return []

    def run_known(self, op: Operation) -> None:
        """Runs one operation as what it is attached to mean."""
        self.run_op(op, MEANINGS.of(type(op)) or Run._without_meaning)

    def run_op(self, op: Operation, meaning: Callable[[Run, Any], None]) -> None:
        """Runs one operation; what goes wrong is told of its place."""
        try:
            meaning(self, op)
        except FragirError as error:
            if error.line is not None:
                raise
            raise error_at_operation(op, error.sentence, self._source) from error
        except Exception as error:
            pass_on(error)
            package = package_of(type(op))
            if package is None:
                raise
            message, hint = unexpected_message(error, (package,), f"the meaning of {op.name}")
            raise error_at_operation(op, f"{message} ({hint})", self._source) from error

    def _without_meaning(self, op: Operation) -> None:
        """An operation that can be compiled but says not what it means may give anything.

        FragirError for one that cannot be compiled either.
        """
        if LOWERINGS.of(type(op)) is None:
            raise FragirError(f"the reference does not know {op.name}")
        for result in op.results:
            if isinstance(result.type, MemRefType):
                raise FragirError(f"the reference does not know the memory that {op.name} makes")
            shape = result.type.shape if isinstance(result.type, frag.TileType) else ()
            self[result] = anything(shape, type_name(result.type))
        accesses = accesses_of(op)
        memories = op.operands if accesses is None else accesses.writes()
        for value in memories:
            if isinstance(value.type, MemRefType):
                memory = self.memory(value)
                memory.write(anything(memory.value.shape, memory.element))
        self.note_unknown(op)

    def note_unknown(self, op: Operation) -> None:
        """Tells whoever asked that what an operation does is not known."""
        if self._unknown is not None:
            self._unknown(op)


def anything(shape: Sequence[int], element: str) -> Bounded:
    """Values of which nothing is known."""
    if element in INTEGERS or element != "pred":
        return unwritten_memory(shape, element).content
    return Bounded(np.zeros(shape, bool), np.full(shape, np.inf))
