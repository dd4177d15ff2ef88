"""The lane maps of all operands, as a few rules.

Notation of the PTX ISA: `groupID = lane / 4` and `threadID_in_group = lane % 4`; here they are
the two modes `4` and `8` of the lane axis. P is the number of elements in one 32-bit register
(1 for f64). One rule covers A, one B and one C and D of every `mma`, dense or sparse, but the
m8n8k4 of f16; wgmma adds a mode of four warps, 16 rows each (PTX ISA 9.2, sections 9.7.14.5
and 9.7.15.5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fragir.isa import model
from fragir.isa.model import FLOAT8_6_4, Form, Lowering, Operand, RegisterClass, Registers
from fragir.isa.target_rows import number
from fragir.layout import Axis, Condition, Layout, Mode

PRODUCT = ("row", "col", "product")
MATRIX = ("row", "col", "matrix")
TENSOR_MEMORY = ("tmem_lane", "tmem_column")


def _axis(name: str, *modes: tuple[int, tuple[int, ...]]) -> Axis:
    """An axis from its modes; those of size 1 say nothing and are left out."""
    return Axis(name, tuple(Mode(size, stride) for size, stride in modes if size != 1))


def _lane(quad: tuple[int, ...], group: tuple[int, ...], warps: int, warp: tuple[int, ...]) -> Axis:
    return _axis("lane", (4, quad), (8, group), (warps, warp))


@cache
def dense_a(rows: int, k: int, per_register: int, warps: int = 1) -> Layout:
    """A (rows x k) of one warp: row = group + 8 (r & 1), col = P t + e + 4 P (r >> 1)."""
    p = per_register
    halves = min(rows, 16) // 8
    return Layout(
        (
            _lane((0, p), (1, 0), warps, (16, 0)),
            _axis("element", (p, (0, 1)), (halves, (8, 0)), (k // (4 * p), (0, 4 * p))),
        )
    )


@cache
def dense_b(k: int, per_register: int) -> Layout:
    """B (k x 8): row = P t + e + 4 P r, col = group."""
    p = per_register
    return Layout(
        (
            _lane((p, 0), (0, 1), 1, (0, 0)),
            _axis("element", (p, (1, 0)), (k // (4 * p), (4 * p, 0))),
        )
    )


@cache
def accumulator(rows: int, cols: int, warps: int = 1) -> Layout:
    """C and D: row = group + 8 ((i >> 1) & 1), col = 2 t + (i & 1) + 8 (i >> 2)."""
    halves = min(rows, 16) // 8
    return Layout(
        (
            _lane((0, 2), (1, 0), warps, (16, 0)),
            _axis("element", (2, (0, 1)), (halves, (8, 0)), (cols // 8, (0, 8))),
        )
    )


# m8n8k4 of f16 computes four products, one in each quad pair: lanes 4q..4q+3 and 16+4q..16+4q+3
# (PTX ISA 9.2, section 9.7.14.5.1). Lane modes: 4 in the quad, 4 products, 2 halves of the warp.
@cache
def quad_pair_a(layout: str) -> Layout:
    """A (8 x 4 x product), stored by row or by column."""
    if layout == "row":
        lane = _axis("lane", (4, (1, 0, 0)), (4, (0, 0, 1)), (2, (4, 0, 0)))
        return Layout((lane, _axis("element", (4, (0, 1, 0)))), PRODUCT)
    lane = _axis("lane", (4, (0, 1, 0)), (4, (0, 0, 1)), (2, (4, 0, 0)))
    return Layout((lane, _axis("element", (4, (1, 0, 0)))), PRODUCT)


@cache
def quad_pair_b(layout: str) -> Layout:
    """B (4 x 8 x product), stored by row or by column."""
    if layout == "row":
        lane = _axis("lane", (4, (1, 0, 0)), (4, (0, 0, 1)), (2, (0, 4, 0)))
        return Layout((lane, _axis("element", (4, (0, 1, 0)))), PRODUCT)
    lane = _axis("lane", (4, (0, 1, 0)), (4, (0, 0, 1)), (2, (0, 4, 0)))
    return Layout((lane, _axis("element", (4, (1, 0, 0)))), PRODUCT)


@cache
def quad_pair_accumulator(element: str) -> Layout:
    """C or D (8 x 8 x product); f16 and f32 are spread differently."""
    if element == "f16":
        lane = _axis("lane", (4, (1, 0, 0)), (4, (0, 0, 1)), (2, (4, 0, 0)))
        return Layout((lane, _axis("element", (8, (0, 1, 0)))), PRODUCT)
    lane = _axis("lane", (2, (1, 0, 0)), (2, (0, 2, 0)), (4, (0, 0, 1)), (2, (4, 0, 0)))
    return Layout((lane, _axis("element", (2, (0, 1, 0)), (2, (2, 0, 0)), (2, (0, 4, 0)))), PRODUCT)


@cache
def metadata(spread: int, selector: int, warps: int = 1) -> Layout:
    """Sparse metadata: (lane, nibble) -> (row of A, chunk along K).

    `spread` is one of four ways in which lanes supply it:
    1: the lanes with t == selector, low half-word row g, high row g + 8;
    2: the lane pairs with t / 2 == selector, the same, the pair splits K;
    3: the lane pairs with t / 2 == selector, the pair splits rows g and g + 8;
    4: all lanes, pairs split rows, the two pairs of a quad split K.
    """
    chunks, halves = (4, (0, 1)), (2, (8, 0))
    modes = {
        1: ((4, (0, 0)),),
        2: ((2, (0, 4)), (2, (0, 0))),
        3: ((2, (8, 0)), (2, (0, 0))),
        4: ((2, (8, 0)), (2, (0, 8))),
    }[spread]
    lane = _axis("lane", *modes, (8, (1, 0)), (warps, (16, 0)))
    nibble = _axis("element", chunks, halves) if spread < 3 else _axis("element", (8, (0, 1)))
    where = {
        1: (Condition("lane", 1, 4, selector),),
        2: (Condition("lane", 2, 2, selector),),
        3: (Condition("lane", 2, 2, selector),),
        4: (),
    }[spread]
    return Layout((lane, nibble), where=where)


def _scale_bytes(blocks: int, byte: int) -> tuple[Condition, ...]:
    return () if blocks == 4 else (Condition("element", blocks, 4 // blocks, byte // blocks),)


@cache
def scale_a(blocks: int, byte: int, thread: int) -> Layout:
    """SFA: (lane, byte of the register) -> (row, block along K).

    The lanes with t / 2 == thread supply it: even t row g, odd t row g + 8. Block b stands in
    byte `byte` + b (PTX ISA 9.2, section 9.7.14.3).
    """
    lane = _axis("lane", (2, (8, 0)), (2, (0, 0)), (8, (1, 0)))
    element = _axis("element", (blocks, (0, 1)), (4 // blocks, (0, 0)))
    return Layout(
        (lane, element), where=(Condition("lane", 2, 2, thread), *_scale_bytes(blocks, byte))
    )


@cache
def scale_b(blocks: int, byte: int, thread: int) -> Layout:
    """SFB: (lane, byte of the register) -> (block along K, column): lanes t == thread, column g."""
    lane = _axis("lane", (4, (0, 0)), (8, (0, 1)))
    element = _axis("element", (blocks, (1, 0)), (4 // blocks, (0, 0)))
    return Layout(
        (lane, element), where=(Condition("lane", 1, 4, thread), *_scale_bytes(blocks, byte))
    )


@cache
def matrix_copy(shape: str, num: int, trans: bool) -> Layout:
    """Registers of ldmatrix and stmatrix: (lane, element) -> (stored row, stored column, matrix).

    A stored row is what one address points at. With `.trans` the registers hold the transposed
    matrix, so a lane's consecutive elements run down a stored column (PTX ISA 9.2, sections
    9.7.14.5.15 and 9.7.14.5.16).
    """
    quad, group, elements = {
        ("m8n8", False): ((0, 2), (1, 0), ((2, (0, 1, 0)),)),
        ("m8n8", True): ((2, 0), (0, 1), ((2, (1, 0, 0)),)),
        ("m16n16", True): ((4, 0), (0, 1), ((4, (1, 0, 0)), (2, (0, 8, 0)))),
        ("m8n16", False): ((0, 4), (1, 0), ((4, (0, 1, 0)),)),
        ("m16n8", True): ((2, 0), (0, 1), ((2, (1, 0, 0)), (2, (0, 8, 0)))),
    }[shape, trans]
    lane = _axis("lane", (4, (*quad, 0)), (8, (*group, 0)))
    return Layout((lane, _axis("element", *elements, (num, (0, 0, 1)))), MATRIX)


@cache
def movmatrix_layout() -> Layout:
    """D of movmatrix in A's coordinates: half h of lane (g, t) is A's (2 t + h, g)."""
    return Layout((_axis("lane", (4, (2, 0)), (8, (0, 1))), _axis("element", (2, (1, 0)))))


@cache
def matrix_addresses(rows: int, num: int) -> Layout:
    """Row addresses of ldmatrix and stmatrix: lane -> (stored row, 0, matrix).

    Lane rows * m + r points at row r of matrix m; the addresses of further lanes are ignored.
    """
    used = rows * num
    lane = _axis("lane", (rows, (1, 0, 0)), (num, (0, 0, 1)), (32 // used, (0, 0, 0)))
    where = () if used == 32 else (Condition("lane", used, 32 // used, 0),)
    return Layout((lane, Axis("element", ())), MATRIX, where=where)


@cache
def tensor_memory(shape: str, num: int, packed: bool = False, offset: int = 0) -> Layout:
    """Registers of tcgen05.ld and .st: (lane, element) -> (TMEM lane, TMEM column).

    Relative to the address. A `packed` register (.pack::16b, .unpack::16b) holds two 16-bit
    elements, of TMEM columns 2 c and 2 c + 1 where an unpacked one holds column c. `offset` is
    immHalfSplitoff of 16x32bx2, in columns.
    """
    p = 2 if packed else 1
    lane, element = {
        "32x32b": (((32, (1, 0)),), ((num, (0, p)),)),
        "16x64b": (((2, (8, 0)), (2, (0, p)), (8, (1, 0))), ((num, (0, 2 * p)),)),
        "16x128b": (((4, (0, p)), (8, (1, 0))), ((2, (8, 0)), (num, (0, 4 * p)))),
        "16x256b": (((4, (0, 2 * p)), (8, (1, 0))), ((2, (0, p)), (2, (8, 0)), (num, (0, 8 * p)))),
        "16x32bx2": (((16, (1, 0)), (2, (0, offset))), ((num, (0, p)),)),
    }[shape]
    halves = (p, (0, 1))
    return Layout((_axis("lane", *lane), _axis("element", halves, *element)), TENSOR_MEMORY)


# -- build -----------------------------------------------------------------------------------------
# Operands of the matrix instructions, shared by the families: one function an operand.


def fragment(
    name: str, element: str, layout: Layout, shape: tuple[int, ...], container: int = 0
) -> Operand:
    """A fragment operand; its register count follows from its layout."""
    per = model.per_register(element, container)
    count = max(1, layout.size("element") // per)
    registers = Registers(count, model.register_type(element), "fragment", model.accepts(element))
    return Operand(name, registers, element, layout, shape)


def descriptor(name: str, element: str, shape: tuple[int, ...]) -> Operand:
    """A matrix in shared memory, named by a 64-bit descriptor."""
    return Operand(
        name, Registers(1, "b64", "descriptor", ("b64", "u64", "s64")), element, None, shape
    )


def word(
    name: str,
    cls: RegisterClass,
    element: str,
    layout: Layout,
    shape: tuple[int, ...],
    chunk: int,
) -> Operand:
    """One 32-bit register of metadata or scale factors."""
    return Operand(
        name,
        Registers(1, "b32", cls, ("b32", "u32", "s32")),
        element,
        layout,
        shape,
        chunk,
    )


def scale_operands(blocks: int, element: str, k: int) -> tuple[Operand, Operand]:
    """SFA and SFB with byte and thread selectors 0; a scale serves k / blocks elements."""
    layout_a, layout_b = scale_a(blocks, 0, 0), scale_b(blocks, 0, 0)
    return (
        word("sfa", "scale", element, layout_a, (16, blocks), k // blocks),
        word("sfb", "scale", element, layout_b, (blocks, 8), k // blocks),
    )


Steps = tuple[tuple[int, Lowering], ...]
"""From which machine on an instruction is what, in rising order; native before the first."""

# By the type of A, as read off the machine code of ptxas 13.5; others are native.
_BY_TYPE: Mapping[str, Steps] = {
    **dict.fromkeys(("s4", "u4"), ((90, "emulated"),)),
    **dict.fromkeys(FLOAT8_6_4, ((90, "emulated"), (120, "native"))),
}


def lowering_of(steps: Steps, form: Form, target: str) -> Lowering:
    """What ptxas makes of a form on a target; `()` says that the type of A decides."""
    machine = number(target)
    for first, lowering in reversed(steps or _BY_TYPE.get(form.types[1], ())):
        if machine >= first:
            return lowering
    return "native"


def container(form: Form, element: str) -> int:
    """Bits an element of A or B takes: 8 for the narrow floats but in `.kind::mxf4*`."""
    if element in FLOAT8_6_4:
        return 4 if form.flags & {"kind::mxf4", "kind::mxf4nvf4"} else 8
    return 0


def scale_blocks(form: Form) -> int:
    """Scale factors along K of one row: 1, 2 or 4; 0 without block scales."""
    for blocks in (1, 2, 4):
        if f"scale_vec::{blocks}X" in form.flags:
            return blocks
    return 0
