"""`frag.copy tma`: matrices between global and shared memory by the tensor memory accelerator.

    frag.copy tma %a[%row, %k0] to %sa[] : memref<?x?xf16> to memref<128x64xf16, #frag.shared<...>>
    frag.copy tma %b[%k0, %col] to %sb[] multicast : ...
    frag.copy tma %sc[] to %c[%row, %col] : memref<64x64xf16, #frag.shared<...>> to memref<?x?xf16>

One thread starts a copy. What lies outside of global memory is read as zero and not written. The
shared memory is a matrix of boxes (`fragir.isa.tensor_boxes`), the global memory an argument of
the function with one contiguous dimension of its last two; all its other strides are multiples of
16 bytes, which a launch checks where the program does not say it.

Into a part of a slot (`frag.part`): complete when the slot is awaited. Into other memory: complete
when the operation, or the last of several in a row, is; all threads wait for it. From shared
memory: all threads wait for each other first, so that all of it is written; what is written to the
shared memory, read from or written to the global memory later waits for the copy, and so does the
end of the kernel. `add` adds to what is there, in any order. `multicast`: all blocks of a cluster
copy the same matrix; each fetches its share and sends it to all. PTX ISA 9.2, sections 5.5 and
9.7.9.27.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.memory_layout import (
    check_inside,
    check_memory,
    halved_dimension,
    matrix_layout,
    memory_layout,
    own_part,
    strides_of,
)
from fragir.dialects.frag.types import is_shared
from fragir.dialects.limits import MAPPED_DIMENSIONS
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.tensor_boxes import LARGEST_SIDE, BoxCopies, box_copies
from fragir.layout import Axis, Layout

ADDED = ("f16", "bf16", "f32", "s32")
"""What `add` takes (PTX ISA 9.2, section 9.7.9.27.1.3)."""
APART = "frag.apart"
"""The attribute of an operation that touches nothing of global memory that a copy under way does,
as where each tile is read and written in one turn of a loop: it waits for none."""
UNIT = 16
"""Bytes: the strides of a tensor map are multiples of it (PTX ISA 9.2, section 5.5.1), and so are
the beginnings of boxes (5.5.3.1) and what is written of a row (docs/copy-engine.md)."""


class CopyRequest(Protocol):
    """What is asked of a `frag.copy` here."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> SSAValue: ...
    @property
    def target(self) -> SSAValue: ...
    @property
    def tma(self) -> Attribute | None: ...
    @property
    def is_async(self) -> Attribute | None: ...
    @property
    def masked(self) -> Attribute | None: ...
    @property
    def multicast(self) -> Attribute | None: ...
    @property
    def add(self) -> Attribute | None: ...
    def all_source_indices(self) -> list[int | SSAValue]: ...
    def all_target_indices(self) -> list[int | SSAValue]: ...


class MatrixCopy(NamedTuple):
    """What a `frag.copy tma` moves, and which way."""

    to_shared: bool
    shared: SSAValue
    memory: SSAValue
    """In global memory."""
    along: int
    """The dimension of `memory` in which neighbours lie side by side."""
    indices: tuple[int | SSAValue, ...]
    """Of `memory`, one a dimension."""
    slot: tuple[int | SSAValue, ...]
    """Of `shared`, one for each leading dimension."""

    @property
    def is_turned(self) -> bool:
        """Whether the columns of the matrix, not its rows, are contiguous in global memory."""
        return self.along != len(self.indices) - 1

    def boxes(self, parts: int = 1) -> BoxCopies:
        """The copies of boxes that it takes, if it can be a multiple of `parts`.

        FragirError where no boxes fill the shared memory.
        """
        type_ = memref_type(self.shared.type)
        type_ = own_part(type_)
        layout, shape = memory_layout(type_), type_.get_shape()[-2:]
        matrix = matrix_layout(layout)
        names = ("col", "row") if self.is_turned else ("row", "col")
        axes = [Axis(name, axis.modes) for name, axis in zip(names, matrix.axes, strict=True)]
        if self.is_turned:
            axes, shape = axes[::-1], shape[::-1]
        bits = element_bits(type_.element_type)
        found = _box_copies(
            Layout(tuple(axes), matrix.dims, matrix.offset), bits, (shape[0], shape[1]), parts
        )
        steps = [mode for axis in layout.axes[:-2] for mode in axis.modes if mode.size > 1]
        if any(mode.xor or mode.step[0] * bits % (8 * found.alignment) for mode in steps):
            raise FragirError(
                f"the matrices of {type_} do not all begin at multiples of {found.alignment} bytes",
                hint="give each an allocation of its own, or a number of rows that is a multiple",
            )
        return found


def _box_copies(layout: Layout, bits: int, shape: tuple[int, int], parts: int) -> BoxCopies:
    """`box_copies`, also of elements below a byte, as boxes of so many of them."""
    if bits >= 8:
        return box_copies(layout, bits, shape, parts)
    from fragir.layout import recast  # few programs need it

    per = 8 // bits
    found = box_copies(recast(layout.simplified(), bits, 8), 8, (shape[0], shape[1] // per), parts)
    (rows, cols), places = found.box, found.places
    if cols * per > LARGEST_SIDE:
        raise FragirError(f"a box of {rows}x{cols * per} is more than {LARGEST_SIDE} wide")
    return found._replace(
        box=(rows, cols * per), places=tuple((row, col * per, byte) for row, col, byte in places)
    )


def tensor_copy(op: CopyRequest) -> MatrixCopy:
    """What a `frag.copy tma` moves."""
    to_shared = is_shared(op.target.type)
    shared, memory = (op.target, op.source) if to_shared else (op.source, op.target)
    source, target = tuple(op.all_source_indices()), tuple(op.all_target_indices())
    indices, slot = (source, target) if to_shared else (target, source)
    return MatrixCopy(to_shared, shared, memory, contiguous(memory), indices, slot)


def contiguous(memory: SSAValue) -> int:
    """The dimension with the stride 1, of the last two. FragirError where there is none."""
    type_ = memref_type(memory.type)
    rank, strides = len(type_.get_shape()), strides_of(type_)
    if strides is None:
        return rank - 1
    for dim in (rank - 1, rank - 2):
        if strides[dim] == 1:
            return dim
    raise FragirError(
        f"{type_} has no contiguous dimension among its last two",
        hint="frag.copy async copies from any memory",
    )


def check_tensor_copy(op: CopyRequest) -> None:
    """VerifyException for a `frag.copy tma` that no launch can do."""
    try:
        _check(op)
    except FragirError as error:
        words = f"{error.message} ({error.hint})" if error.hint else error.message
        raise VerifyException(f"{op.name} tma: {words}") from error


def _check(op: CopyRequest) -> None:
    if op.tma is None:
        word = "adds" if op.multicast is None else "is multicast"
        raise FragirError(f"only frag.copy tma {word}", hint="write frag.copy tma")
    if op.is_async is not None:
        raise FragirError("it is in the background by itself", hint="leave `async` out")
    if op.masked is not None:
        raise FragirError("what lies outside is always masked", hint="leave `masked` out")
    source, target = memref_type(op.source.type), memref_type(op.target.type)
    if is_shared(source) == is_shared(target):
        raise FragirError("it copies between global and #frag.shared memory")
    if source.element_type != target.element_type:
        raise FragirError(f"source holds {source.element_type}, target {target.element_type}")
    if op.multicast is not None and is_shared(source):
        raise FragirError("what is copied to global memory goes to one place: no multicast")
    if op.add is not None and is_shared(target):
        raise FragirError("it adds to global memory", hint="leave `add` out")
    if op.add is not None and element_name(source.element_type) not in ADDED:
        raise FragirError(
            f"the copy engine adds {', '.join(ADDED)}, not {element_name(source.element_type)}",
            hint="frag.atomic add takes f64",
        )
    if element_bits(source.element_type) < 8 and element_name(source.element_type) != "e2m1x2":
        raise FragirError(
            f"{source.element_type} has less than a byte, and no tensor map has it",
            hint="frag.copy async copies it",
        )
    shared, memory = (target, source) if is_shared(target) else (source, target)
    rank = len(memory.get_shape())
    if len(shared.get_shape()) < 2 or not 2 <= rank <= MAPPED_DIMENSIONS:
        raise FragirError(
            f"it copies matrices, from or to global memory of two to {MAPPED_DIMENSIONS} dimensions"
        )
    given = len(op.all_source_indices()), len(op.all_target_indices())
    at, slot = given if is_shared(target) else given[::-1]
    if at != rank:
        raise FragirError("give one index for every dimension of the global memory")
    stack = shared.get_shape()[:-2]
    if slot != len(stack):
        raise FragirError(
            "give one index for every dimension of the shared memory but the last two"
        )
    check_memory(op.name, shared, pair=True)
    if halved_dimension(shared) is not None and op.multicast is not None:
        raise FragirError(
            "each block of a pair fetches its half, and no other", hint="leave `multicast` out"
        )
    if halved_dimension(shared) is not None and not is_shared(target):
        raise FragirError("what a pair shares only products read")
    copy = tensor_copy(op)
    check_inside(op.name, stack, copy.slot, [1] * len(stack), maskable=False)
    check_strides(memory, copy.along)
    check_column(memory, copy.indices[copy.along])
    if not copy.to_shared:
        check_rows(memory, copy.along)
    boxes = copy.boxes()
    if not copy.to_shared and not boxes.exact:
        raise FragirError(
            f"its boxes, {boxes.box[0]}x{boxes.box[1]}, go beyond the matrix of {shared}",
            hint="make its rows whole swizzles",
        )


def check_strides(memory: MemRefType[Attribute], along: int) -> None:
    """FragirError for strides, known here, that are no multiples of 16 bytes."""
    shape, strides = memory.get_shape(), strides_of(memory)
    bits = element_bits(memory.element_type)
    step = 1
    for dim in range(len(shape) - 1, -1, -1):
        stride = step if strides is None else strides[dim]
        known = stride != DYNAMIC_INDEX and step != DYNAMIC_INDEX
        if dim != along and shape[dim] != 1 and known and stride * bits % (8 * UNIT):
            raise FragirError(
                f"dimension {dim} of {memory} has a stride of {stride * bits // 8} bytes, a tensor "
                f"map takes multiples of {UNIT}",
                hint="pad the rows, or write frag.copy async",
            )
        step = DYNAMIC_INDEX if DYNAMIC_INDEX in (shape[dim], step) else step * shape[dim]


def check_column(memory: MemRefType[Attribute], index: object) -> None:
    """FragirError for an index of the contiguous dimension, known here, at which no box begins."""
    if isinstance(index, int) and index * element_bits(memory.element_type) % (8 * UNIT):
        raise at_no_box(memory, f"begins at element {index} of a row")


def at_no_box(memory: MemRefType[Attribute], words: str) -> FragirError:
    """The error of a copy that begins where no box of a tensor map does."""
    step = 8 * UNIT // element_bits(memory.element_type)
    return FragirError(
        f"it {words} of {memory}; a box of a tensor map begins at multiples of {UNIT} bytes, "
        f"{step} elements",
        hint="write frag.copy async, or begin at a multiple",
    )


def check_rows(memory: MemRefType[Attribute], along: int) -> None:
    """FragirError for rows, of a length known here, that end where the copy engine does not."""
    length, bits = memory.get_shape()[along], element_bits(memory.element_type)
    if length != DYNAMIC_INDEX and length * bits % (8 * UNIT):
        raise FragirError(
            f"rows of {memory} have {length * bits // 8} bytes, and the copy engine writes "
            f"multiples of {UNIT}: what lies behind a row would be overwritten",
            hint="store by threads: frag.store",
        )
