"""Questions about one operand: who holds an element, in which register bits; arrays of the maps.

>>> from fragir import isa
>>> mma = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
>>> view = View.of(mma, "a")
>>> view.holders((9, 3))
(Holder(lane=5, element=3, register=1, low=16, high=31),)
>>> view.held(5)[3]
(Holder(lane=5, element=3, register=1, low=16, high=31), (9, 3))
>>> view.points().shape, view.owners().shape
((32, 8, 2), (16, 16, 2))

Fragments of a matrix, and the matrix of fragments:

>>> import numpy as np
>>> matrix = np.arange(256).reshape(16, 16)
>>> fragments = view.distribute(matrix)
>>> int(fragments[5, 3]) == int(matrix[9, 3]), bool((view.collect(fragments) == matrix).all())
(True, True)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from fragir.errors import FragirError
from fragir.isa.model import Instruction, Operand
from fragir.isa.selection import selected_layout
from fragir.layout import Layout
from fragir.layout.display import Drawn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scalar = TypeVar("Scalar", bound=np.generic)

Point = tuple[int, ...]

# Bits of a narrow float within its 8-bit container: (lowest, highest).
_IN_CONTAINER = {"e2m1": (2, 5), "e2m3": (0, 5), "e3m2": (0, 5)}


@dataclass(frozen=True, slots=True)
class Holder:
    """Where an element is: bits `high`:`low` of register number `register` of a lane.

    `element` counts matrix elements in the lane. Of a narrow float in an 8-bit container these are
    its own bits, without the padding.
    """

    lane: int
    element: int
    register: int
    low: int
    high: int


@dataclass(frozen=True)
class View(Drawn):
    """An operand under the instruction's immediates: its layout, and what can be asked of it.

    `shape` is the extent of the matrix in the layout's dimensions. `scale` is 1, or, for the
    logical view of a sparse A, how many packed columns make a chunk (`logical`).
    """

    instruction: Instruction
    operand: Operand
    layout: Layout
    shape: tuple[int, ...]
    logical: bool = False

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        return f"<{self.operand.name} of {self.instruction.mnemonic}, {size}>"

    @staticmethod
    def of(
        instruction: Instruction,
        operand: str,
        *,
        selector: int = 0,
        byte: int = 0,
        thread: int = 0,
        offset: int = 0,
        logical: bool = False,
    ) -> View:
        """The view of an operand; FragirError for one without a map of lanes.

        The immediates are those of `fragir.isa.selection.selected_layout`. With `logical` the
        points of a sparse A are (row, chunk along K), as those of its metadata.
        """
        found = instruction.operand(operand)
        layout = selected_layout(
            instruction, operand, selector=selector, byte=byte, thread=thread, offset=offset
        )
        shape = layout.shape if instruction.family.startswith("tcgen05") else found.shape
        view = View(instruction, found, layout, shape)
        return view._chunked() if logical else view

    def _chunked(self) -> View:
        metadata = self.instruction.operands.get("e")
        if metadata is None or self.operand.name != "a":
            raise FragirError(
                f"operand {self.operand.name} of {self.instruction.mnemonic} has no chunks",
                hint="a logical view exists of operand a of sparse instructions",
            )
        from fragir.layout import from_function

        kept = metadata.chunk // 2

        def chunk(slot: Point) -> Point:
            row, col = self._point(slot)
            return row, col // kept

        layout = from_function(self.layout.sizes, chunk)
        return replace(self, layout=layout, shape=metadata.shape, logical=True)

    def _point(self, slot: Point) -> Point:
        point = self.layout(**dict(zip(self.layout.names, slot, strict=True)))
        assert point is not None
        return point

    @property
    def lanes(self) -> int:
        return self.layout.size("lane")

    @property
    def elements(self) -> int:
        """Elements in a lane."""
        return self.layout.size("element")

    @property
    def dims(self) -> tuple[str, ...]:
        """What the coordinates of a point are: row, col, ..."""
        if self.logical or self.operand.name == "e":
            return "row", "chunk"
        return {"sfa": ("row", "block"), "sfb": ("block", "col")}.get(
            self.operand.name, self.layout.dims
        )

    @cached_property
    def _slot_bits(self) -> int:
        registers = self.operand.registers
        width = 64 if registers.type.endswith("64") else 32
        return width * registers.count // self.elements

    def place(self, lane: int, element: int) -> Holder:
        """Where an element of a lane is."""
        bits = self._slot_bits
        width = 64 if self.operand.registers.type.endswith("64") else 32
        register, bit = divmod(element * bits, width)
        low, high = 0, bits - 1
        if bits == 8:
            low, high = _IN_CONTAINER.get(self.operand.element, (low, high))
        return Holder(lane, element, register, bit + low, bit + high)

    def holders(self, point: Point) -> tuple[Holder, ...]:
        """Every place that holds the element at a point; FragirError outside the matrix."""
        if len(point) != len(self.shape) or not all(
            0 <= x < size for x, size in zip(point, self.shape, strict=True)
        ):
            raise FragirError(
                f"{','.join(map(str, point))} is no {','.join(self.dims)} of operand "
                f"{self.operand.name}",
                hint=f"its shape is {'x'.join(map(str, self.shape))}",
            )
        return tuple(self.place(*slot) for slot in self.layout.holders.get(point, ()))

    def held(self, lane: int) -> list[tuple[Holder, Point | None]]:
        """Every element of a lane and what it is; None where the slot holds nothing."""
        if not 0 <= lane < self.lanes:
            raise FragirError(f"there is no lane {lane}", hint=f"lanes are 0 to {self.lanes - 1}")
        return [
            (self.place(lane, i), self.layout(lane=lane, element=i)) for i in range(self.elements)
        ]

    def table(self) -> list[list[list[int] | None]]:
        """`[lane][element]` -> `[row, col]`, or None where a slot holds nothing."""
        rows: list[list[list[int] | None]] = [[] for _ in range(self.lanes)]
        for (lane, _), point in self.layout.slots():
            rows[lane].append(None if point is None else list(point))
        return rows

    def inverse(self) -> Layout | None:
        """From the point to (lane, element) of its first holder; None if no layout says it."""
        from fragir.layout import LayoutError, from_function

        holders = self.layout.holders
        sizes = dict(zip(self.dims, self.shape, strict=True))
        try:
            return from_function(sizes, lambda point: holders[point][0], ("lane", "element"))
        except (LayoutError, KeyError):
            return None

    def points(self) -> NDArray[np.int64]:
        """int64 [lane, element, dimension]: the point that a slot holds, -1 where it holds none."""
        return self.layout.array()

    def owners(self) -> NDArray[np.int64]:
        """int64 [row, col, ..., 2]: lane and element of a point's first holder, -1 where none."""
        import numpy as np

        found = np.full((*self.shape, 2), -1, np.int64)
        for point, slots in self.layout.holders.items():
            found[point] = slots[0]
        return found

    def distribute(self, matrix: NDArray[Scalar]) -> NDArray[Scalar]:
        """[lane, element] fragments of a matrix of this operand's shape; 0 in empty slots."""
        import numpy as np

        if matrix.shape != self.shape:
            raise FragirError(f"operand {self.operand.name} is {self.shape}, not {matrix.shape}")
        points = self.points()
        empty = points[..., 0] < 0
        found = matrix[tuple(np.moveaxis(np.where(empty[..., None], 0, points), -1, 0))]
        found[empty] = 0
        return found

    def collect(self, fragments: NDArray[Scalar]) -> NDArray[Scalar]:
        """The matrix whose fragments these are, from each point's first holder."""
        owners = self.owners()
        return fragments[owners[..., 0], owners[..., 1]]
