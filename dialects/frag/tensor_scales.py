"""Scales of blocks in tensor memory: frag.tcgen05_copy puts them there, tcgen05.mma reads them.

A scale is a byte for a block of 16 or 32 elements along K (PTX ISA 9.2, section 9.7.16.10.7). Those
of 128 rows by four blocks are 512 bytes of shared memory, the byte of row r and block j at
16 (r % 32) + 4 (r / 32) + j; `tcgen05.cp.32x128b.warpx4` writes them to four columns, the copies
for each 32 lanes. Such chunks are what memory is made of that is copied: either a stack of them,
memref<M/128 x blocks/4 x 2 x 256>, or a matrix M x blocks whose layout says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, opt_prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_name
from fragir.dialects.frag.memory_layout import check_memory, memory_layout
from fragir.dialects.frag.types import holds_scales, is_shared
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.model import FLOAT6_4
from fragir.isa.tensor_products import KINDS, STEP_BITS, TensorKind
from fragir.layout import Axis, Layout, LayoutError, quotient

ROWS, BLOCKS = 128, 4
"""Rows and blocks along K whose scales lie together."""
_CHUNK = ROWS, BLOCKS
CHUNK = ROWS * BLOCKS
CHUNK_SHAPE = (2, 256)
"""Bytes of them, as memory that is copied by TMA has them: its boxes are up to 256 wide."""
CHUNK_COLUMNS = 4
"""Columns of tensor memory that they take."""
_ROWS_OF_BYTES = "row [2:256] col [256:1]"
_CHUNK_LAYOUT = "row [32:16 4:4] col [4:1]"
SCALES = {"ue8m0": "ue8m0", "e4m3": "ue4m3"}
"""Types of scales: of elements of memory, and what the ISA calls them. A ue4m3 is an e4m3 whose
sign is dropped."""

Memory = MemRefType[Attribute]


def chunked(rows: int, blocks: int) -> tuple[int, int]:
    """How many chunks hold the scales of so many rows and blocks, along both."""
    return -(-rows // ROWS), -(-blocks // BLOCKS)


def scale_columns(rows: int, blocks: int) -> int:
    """Columns of tensor memory that scales take.

    >>> scale_columns(192, 4), scale_columns(128, 16)
    (8, 16)
    """
    across, along = chunked(rows, blocks)
    return CHUNK_COLUMNS * across * along


def scale_place(rows: int, row: int, block: int) -> tuple[int, int]:
    """Of a matrix with so many rows, the column of tensor memory and the byte in it of the scale of
    a row, a multiple of 32, and a block.

    >>> scale_place(256, 128, 6)
    (12, 2)
    """
    across, _ = chunked(rows, 1)
    return row // 32 + CHUNK_COLUMNS * across * (block // BLOCKS), block % BLOCKS


def chunk_layout(rows: int, blocks: int) -> Layout:
    """The layout of a matrix of scales in shared memory whose chunks follow each other, those along
    K first.

    >>> print(chunk_layout(256, 8))
    row [32:16 4:4 2:1024] col [4:1 2:512]
    """
    across, along = chunked(rows, blocks)
    more = f" {across}:{CHUNK * along}" if across > 1 else ""
    deep = f" {along}:{CHUNK}" if along > 1 else ""
    return Layout.parse(f"row [32:16 4:4{more}] col [4:1{deep}]")


def turned(layout: Layout) -> Layout:
    """A layout of matrices whose rows and columns change places."""
    rows, columns = layout.axes
    axes = Axis(rows.name, columns.modes), Axis(columns.name, rows.modes)
    return replace(layout, axes=axes)


def chunks_of(type_: Memory, transposed: bool = False) -> Layout:
    """Where the chunks of scales in shared memory lie: (row, col) of chunks to bytes.

    FragirError where it is not made of chunks, or, `transposed`, has no columns for rows.
    """
    shape = type_.get_shape()
    if is_stack(type_) and not transposed:
        layout = memory_layout(type_)
        across, along, *within = layout.axes
        if Layout(tuple(within), layout.dims).equivalent(Layout.parse(_ROWS_OF_BYTES)):
            axes = Axis("row", across.modes), Axis("col", along.modes)
            return Layout(axes, layout.dims, layout.offset)
    elif len(shape) == 2 and not any(n % of for n, of in zip(_sides(shape, transposed), _CHUNK)):
        layout = memory_layout(type_)
        try:
            return quotient(turned(layout) if transposed else layout, Layout.parse(_CHUNK_LAYOUT))
        except LayoutError:
            pass
    raise FragirError(
        f"{type_} does not hold scales as tensor memory takes them",
        hint="write memref<GxHx2x256, #frag.shared> for G times 128 rows by H times 4 blocks, or a "
        f'matrix of scales with the layout #frag.layout<"{_CHUNK_LAYOUT}">, repeated',
    )


def is_stack(type_: Memory) -> bool:
    """Whether memory is a stack of chunks of scales, by its shape."""
    return tuple(type_.get_shape()[2:]) == CHUNK_SHAPE


def matrix_of(type_: Memory, transposed: bool = False) -> tuple[int, int]:
    """Rows and blocks of scales in shared memory."""
    shape = type_.get_shape()
    return (shape[0] * ROWS, shape[1] * BLOCKS) if is_stack(type_) else _sides(shape, transposed)


def _sides(shape: Sequence[int], transposed: bool) -> tuple[int, int]:
    return (shape[1], shape[0]) if transposed else (shape[0], shape[1])


@op_definition
class TensorCopyOp(IRDLOperation, MemoryInterface):
    """Scales of blocks go from shared to tensor memory (tcgen05.cp).

        frag.tcgen05_copy %x to %sfa : memref<1x1x2x256xf8E8M0FNU, #frag.shared>
          to memref<128x4xf8E8M0FNU, #frag.tensor<scales>>

    It is started here, by the thread that starts products; those that follow wait for it, and it
    waits for those before. The slot that it reads may be released at once. Shared memory holds
    chunks of 128 rows by four blocks, `fragir.dialects.frag.tensor_scales`; a matrix laid out so is
    `transposed` where its rows are blocks. PTX ISA 9.2, section 9.7.16.9.
    """

    name = "frag.tcgen05_copy"
    source = operand_def(MemRefType)
    target = operand_def(MemRefType)
    transposed = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$source (`transposed` $transposed^)? `to` $target attr-dict"
        " `:` type($source) `to` type($target)"
    )

    def __init__(
        self,
        source: SSAValue | Operation,
        target: SSAValue | Operation,
        *,
        transposed: bool = False,
    ):
        super().__init__(
            operands=[source, target],
            properties={"transposed": UnitAttr() if transposed else None},
        )

    def chunks(self) -> Layout:
        """Where the chunks of the source lie: (row, col) to bytes."""
        return chunks_of(memref_type(self.source.type), self.transposed is not None)

    def reads(self) -> list[SSAValue]:
        """The source."""
        return [self.source]

    def writes(self) -> list[SSAValue]:
        """The target."""
        return [self.target]

    def verify_(self) -> None:
        source, target = memref_type(self.source.type), memref_type(self.target.type)
        if not is_shared(source) or not holds_scales(target):
            raise VerifyException(
                f"{self.name} copies scales from shared memory, memref<..., #frag.shared>, to "
                f"memref<..., #frag.tensor<scales>>, not {source} to {target}"
            )
        check_memory(self.name, source)
        try:
            if source.element_type != target.element_type:
                raise FragirError(f"{source} holds other scales than {target}")
            self.chunks()
            rows, blocks = target.get_shape()
            held = matrix_of(source, self.transposed is not None)
            if chunked(*held) != chunked(rows, blocks):
                raise FragirError(
                    f"{source} holds the scales of {held[0]}x{held[1]} blocks, "
                    f"{target} of {rows}x{blocks}"
                )
        except FragirError as error:
            raise VerifyException(f"{self.name}: {error}") from error


def is_multiplied(element: str, kind: TensorKind) -> bool:
    """Whether a kind multiplies elements that memory calls so."""
    if kind.bits == 4:
        return element == "e2m1x2"
    return element in kind.types


def is_read(element: str, kind: TensorKind) -> bool:
    """The same of elements as they lie in memory: those of 4 and 6 bits do not have a byte each."""
    return is_multiplied(element, kind) and element not in FLOAT6_4


def kind_named(
    a: str,
    b: str,
    scale: str = "",
    block: int = 0,
    takes: Callable[[str, TensorKind], bool] = is_read,
) -> str:
    """The kind of products of two types, with scales of a type for `block` of K each or without.

    FragirError where there is none that takes both.

    >>> kind_named("e2m1x2", "e2m1x2", "ue4m3", 16), kind_named("e4m3", "e5m2", "ue8m0", 32)
    ('mxf4nvf4', 'mxf8f6f4')
    """
    for name, kind in KINDS.items():
        if bool(kind.scales) != bool(scale) or not (takes(a, kind) and takes(b, kind)):
            continue
        step = STEP_BITS // kind.bits
        if not scale or any(
            scale in types and count * block == step for count, types in kind.scales.items()
        ):
            return name
    if scale:
        raise FragirError(
            f"tensor cores do not multiply {a} by {b} with scales of {scale} for {block} of K",
            hint="fp8 takes f8E8M0FNU for 32; two !frag.packed<f4E2M1FN> take f8E8M0FNU for 32 or "
            "16, or f8E4M3FN for 16",
        )
    plain = [kind for kind in KINDS.values() if not kind.scales]
    listed = ", ".join(t for kind in plain for t in kind.types if takes(t, kind))
    raise FragirError(
        f"tcgen05.mma does not multiply {a} by {b}",
        hint=f"it multiplies types of one kind: {listed}",
    )


def read_scales(scales: Sequence[SSAValue], m: int, n: int, k: int) -> tuple[str, int]:
    """The type of the scales of an M x N x K product, and how many of K each is for; ("", 0)
    without any. FragirError where they are not those of such a product.
    """
    if not scales:
        return "", 0
    if len(scales) != 2:
        raise FragirError(
            f"`scaled` takes two matrices, not {len(scales)}", hint="write `scaled %sfa, %sfb`"
        )
    for value in scales:
        if not holds_scales(value.type):
            raise FragirError(
                f"scales lie in tensor memory, memref<..., #frag.tensor<scales>>, not in "
                f"{value.type}",
                hint="frag.tcgen05_copy puts them there",
            )
    sfa, sfb = (memref_type(value.type) for value in scales)
    if sfa.element_type != sfb.element_type:
        raise FragirError(f"the scales of A are {sfa.element_type}, those of B {sfb.element_type}")
    name = SCALES.get(element_name(sfa.element_type))
    if name is None:
        raise FragirError(
            f"{sfa.element_type} are no scales",
            hint="write f8E8M0FNU, or f8E4M3FN, whose sign is dropped",
        )
    (rows, blocks), second = sfa.get_shape(), tuple(sfb.get_shape())
    if rows != m or second != (n, blocks) or k % blocks:
        raise FragirError(
            f"the scales are {rows}x{blocks} and {second[0]}x{second[1]} in a product of "
            f"{m}x{n}x{k}",
            hint=f"those of A are {m} x blocks, those of B {n} x blocks, and the blocks divide K",
        )
    return name, k // blocks
