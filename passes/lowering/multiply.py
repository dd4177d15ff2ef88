"""Products of tiles as products of fragments: mma.sync and wgmma."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, VectorType, i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.instructions import instruction_of
from fragir.dialects.frag.instructions import wgmma as wgmma_instruction
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.passes.lowering.access import split
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.descriptors import Operand
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import Memory


def mma(
    ar: Arithmetic,
    op: frag.MmaOp,
    a: Sequence[SSAValue],
    b: Sequence[SSAValue],
    c: Sequence[SSAValue],
) -> list[SSAValue]:
    """`frag.mma` as one ptx.mma for every instruction, K in the outermost loop.

    Fragments of an operand come rows fastest: A (m, k) is a[m + M k], B (k, n) is b[k + K n].
    """
    types = op.tile_types()
    name = op.instruction_name()
    instruction = instruction_of(name, *(t.element for t in types))
    steps_k = types[0].cols.data // instruction.shape[2]
    steps_m, steps_n = len(a) // steps_k, len(b) // steps_k
    if "e2m1" in (types[0].element, types[1].element):
        a, b = [_in_container(ar, x) for x in a], [_in_container(ar, x) for x in b]
    result = list(c)
    placement = types[3].placement
    assert placement is not None
    element = types[3].element_type
    d_type = VectorType(element, [placement.chunk])
    for k in range(steps_k):
        for n in range(steps_n):
            for m in range(steps_m):
                at = m + steps_m * n
                product = ptx.MmaOp(
                    instruction.mnemonic,
                    a[m + steps_m * k],
                    b[k + steps_k * n],
                    result[at],
                    d_type,
                )
                result[at] = ar.insert(product).d
    return result


def mma_sparse(
    ar: Arithmetic,
    op: frag.MmaSparseOp,
    a: Sequence[SSAValue],
    b: Sequence[SSAValue],
    c: Sequence[SSAValue],
    metadata: Sequence[SSAValue],
) -> list[SSAValue]:
    """`frag.mma_sparse` as one ptx.mma_sparse for every instruction.

    A, C and D are fragments of the dense instruction of half the K, B is two of them; the metadata
    come a register for every A, in A's order.
    """
    instruction = op.instruction()
    types = op.tile_types()
    steps_k = types[1].rows.data // instruction.shape[2]
    steps_m, steps_n = len(a) // steps_k, len(b) // (2 * steps_k)
    (nibbles,) = metadata
    registers = split(ar, nibbles, 8)
    result = list(c)
    for k in range(steps_k):
        for n in range(steps_n):
            pair = b[2 * k + 2 * steps_k * n : 2 * k + 2 * steps_k * n + 2]
            right = ar.insert(ptx.ConcatOp(pair)).result
            for m in range(steps_m):
                at, left = m + steps_m * n, m + steps_m * k
                product = ptx.MmaSparseOp(
                    instruction.mnemonic, a[left], right, result[at], registers[left]
                )
                result[at] = ar.insert(product).d
    return result


def _in_container(ar: Arithmetic, fragment: SSAValue) -> SSAValue:
    """e2m1 moved from the lowest bits of its bytes to bits 5:2, where kind::f8f6f4 reads it.

    PTX ISA 9.2, section 9.7.14.5.11. Fragments of other types stay.
    """
    type_ = fragment.type
    if element_name(ptx.scalar_type(type_)) != "e2m1":
        return fragment
    words = VectorType(i32, [ptx.registers(type_)])
    moved = arith.ShLIOp(
        ar.insert(ptx.BitcastOp(fragment, words)).result,
        ar.insert(arith.ConstantOp(DenseIntOrFPElementsAttr.from_list(words, [2]))).result,
    )
    return ar.insert(ptx.BitcastOp(ar.insert(moved).result, type_)).result


def wgmma(
    ar: Arithmetic,
    hardware: Hardware,
    op: frag.WgmmaOp,
    a: Memory | Sequence[SSAValue],
    b: Memory,
    c: Sequence[SSAValue],
) -> list[SSAValue]:
    """`frag.wgmma` as fence, one wgmma for every instruction, commit and wait.

    Each warpgroup computes its block of C; its A and B begin at its own rows and columns.
    """
    tile = op.d.type
    assert isinstance(tile, frag.TileType)
    placement = tile.placement
    if not isinstance(placement, frag.MmaLayoutAttr) or not placement.data.is_wgmma:
        raise FragirError(
            "the accumulator of frag.wgmma has no wgmma layout", hint="run the pass frag-place"
        )
    _, _, k = op.shapes()
    a_element, b_element = _elements(op)
    n = placement.data.mnk[1]
    instruction = wgmma_instruction(n, a_element, b_element, tile.element)
    step = instruction.shape[2]
    groups_m, groups_n = placement.data.warps
    rows, cols = tile.rows.data // groups_m, tile.cols.data // groups_n
    group = hardware.axis("warp") if hardware.threads > 128 else 0
    group = ar.div(group, 4)
    group_m = ar.rem(group, groups_m) if groups_n > 1 else group
    group_n = ar.div(group, groups_m) if groups_n > 1 else 0
    b_side = Operand(ar, b, op.b_transposed is not None, "b", ar.mul(group_n, cols))
    a_side = (
        Operand(ar, a, op.a_transposed is None, "a", ar.mul(group_m, rows))
        if isinstance(a, Memory)
        else None
    )
    result = [ar.insert(ptx.CopyOp(value)).result for value in c]
    ar.insert(ptx.SyncOp("wgmma.fence.sync.aligned"))
    repeats_m, repeats_n = rows // 64, cols // n
    for kk in range(k // step):
        for j in range(repeats_n):
            for i in range(repeats_m):
                at = i + repeats_m * j
                if a_side is None:
                    assert not isinstance(a, Memory)
                    left = a[i + repeats_m * kk]
                else:
                    left = a_side.descriptor(64 * i, kk * step)
                product = ptx.WgmmaOp(
                    instruction.mnemonic,
                    left,
                    b_side.descriptor(n * j, kk * step),
                    result[at],
                    a_major="k" if a_side is None else a_side.major,
                    b_major=b_side.major,
                )
                result[at] = ar.insert(product).d
    ar.insert(ptx.SyncOp("wgmma.commit_group.sync.aligned"))
    return list(ar.insert(ptx.WgmmaWaitOp(0, result)).completed)


def _elements(op: frag.WgmmaOp) -> tuple[str, str]:
    names: list[str] = []
    for operand in (op.a, op.b):
        type_ = operand.type
        tile = isinstance(type_, frag.TileType)
        element = type_.element_type if tile else memref_type(type_).element_type
        names.append(element_name(element))
    return names[0], names[1]
