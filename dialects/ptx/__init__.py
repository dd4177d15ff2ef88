"""The `ptx` dialect: what one lane does.

Scalars and register vectors (`vector<8xf16>` is four 32-bit registers, elements packed lowest
first), `arith`, `math` and `scf` for what every machine has, and the operations below for what
only a GPU has. One operation is one PTX instruction, or the same instruction once per register of
its vector operands. `index` is 32 bits wide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.dialects.ptx.memory import (
    CpAsyncOp,
    FlipOp,
    LdmatrixOp,
    LoadOp,
    OffsetOp,
    SharedOp,
    StmatrixOp,
    StoreOp,
    SyncOp,
)
from fragir.dialects.ptx.registers import (
    CAST_RULES,
    ORDERED_CASTS,
    BitcastOp,
    CompareOp,
    ConcatOp,
    CopyOp,
    CvtOp,
    PackOp,
    SelectOp,
    SliceOp,
    SpecialOp,
    SplatOp,
    UnpackOp,
    ZeroOp,
)
from fragir.dialects.ptx.tensor import DescriptorOp, MmaOp, Scales, WgmmaOp, WgmmaWaitOp
from fragir.dialects.ptx.types import (
    GLOBAL,
    NO_UNROLL,
    SHARED,
    PointerType,
    Space,
    SpaceAttr,
    bits,
    length,
    register_bits,
    registers,
    scalar_type,
    vector_type,
)
from fragir.late_dialect import LateDialect

if TYPE_CHECKING:
    from fragir.dialects.ptx.atomic import AtomicOp
    from fragir.dialects.ptx.bit_types import BitsType
    from fragir.dialects.ptx.distances import MulWideOp, OffsetWideOp
    from fragir.dialects.ptx.exchange import (
        MovmatrixOp,
        NamedBarrierOp,
        NibblesOp,
        PermuteOp,
        ShuffleOp,
        ShuffleXorOp,
    )
    from fragir.dialects.ptx.foreign import EndOp, FunctionOp, TextOp, UndefinedOp
    from fragir.dialects.ptx.instruction import InstructionOp
    from fragir.dialects.ptx.reporting import AssertFailOp, PrintfOp
    from fragir.dialects.ptx.sparse import MmaSparseOp
    from fragir.dialects.ptx.tensor_maps import TensorMapType

#: Operations that few programs have: where their classes stand, by name.
LATE = {
    "ptx.assert_fail": ("fragir.dialects.ptx.reporting", "AssertFailOp"),
    "ptx.atomic": ("fragir.dialects.ptx.atomic", "AtomicOp"),
    "ptx.barrier": ("fragir.dialects.ptx.exchange", "NamedBarrierOp"),
    "ptx.end": ("fragir.dialects.ptx.foreign", "EndOp"),
    "ptx.function": ("fragir.dialects.ptx.foreign", "FunctionOp"),
    "ptx.mma_sparse": ("fragir.dialects.ptx.sparse", "MmaSparseOp"),
    "ptx.movmatrix": ("fragir.dialects.ptx.exchange", "MovmatrixOp"),
    "ptx.mul_wide": ("fragir.dialects.ptx.distances", "MulWideOp"),
    "ptx.nibbles": ("fragir.dialects.ptx.exchange", "NibblesOp"),
    "ptx.offset_wide": ("fragir.dialects.ptx.distances", "OffsetWideOp"),
    "ptx.op": ("fragir.dialects.ptx.instruction", "InstructionOp"),
    "ptx.permute": ("fragir.dialects.ptx.exchange", "PermuteOp"),
    "ptx.printf": ("fragir.dialects.ptx.reporting", "PrintfOp"),
    "ptx.shuffle": ("fragir.dialects.ptx.exchange", "ShuffleOp"),
    "ptx.shuffle_xor": ("fragir.dialects.ptx.exchange", "ShuffleXorOp"),
    "ptx.text": ("fragir.dialects.ptx.foreign", "TextOp"),
    "ptx.undefined": ("fragir.dialects.ptx.foreign", "UndefinedOp"),
}

Ptx = LateDialect(
    "ptx",
    [
        BitcastOp,
        CompareOp,
        ConcatOp,
        CopyOp,
        CpAsyncOp,
        CvtOp,
        DescriptorOp,
        FlipOp,
        LdmatrixOp,
        LoadOp,
        MmaOp,
        OffsetOp,
        PackOp,
        SelectOp,
        SharedOp,
        SliceOp,
        SpecialOp,
        SplatOp,
        StmatrixOp,
        StoreOp,
        SyncOp,
        UnpackOp,
        WgmmaOp,
        WgmmaWaitOp,
        ZeroOp,
    ],
    [PointerType, SpaceAttr],
    LATE,
    {
        "ptx.bits": ("fragir.dialects.ptx.bit_types", "BitsType"),
        "ptx.tensor_map": ("fragir.dialects.ptx.tensor_maps", "TensorMapType"),
    },
)


def __getattr__(name: str) -> object:
    found = Ptx.member(name)
    if found is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found  # asked for once
    return found


__all__ = [
    "CAST_RULES",
    "GLOBAL",
    "NO_UNROLL",
    "ORDERED_CASTS",
    "SHARED",
    "AssertFailOp",
    "AtomicOp",
    "BitcastOp",
    "BitsType",
    "CompareOp",
    "ConcatOp",
    "CopyOp",
    "CpAsyncOp",
    "CvtOp",
    "DescriptorOp",
    "EndOp",
    "FlipOp",
    "FunctionOp",
    "InstructionOp",
    "LdmatrixOp",
    "LoadOp",
    "MmaOp",
    "MmaSparseOp",
    "MovmatrixOp",
    "MulWideOp",
    "NamedBarrierOp",
    "NibblesOp",
    "OffsetOp",
    "OffsetWideOp",
    "PackOp",
    "PermuteOp",
    "PointerType",
    "PrintfOp",
    "Ptx",
    "Scales",
    "SelectOp",
    "SharedOp",
    "ShuffleOp",
    "ShuffleXorOp",
    "SliceOp",
    "Space",
    "SpaceAttr",
    "SpecialOp",
    "SplatOp",
    "StmatrixOp",
    "StoreOp",
    "SyncOp",
    "TensorMapType",
    "TextOp",
    "UndefinedOp",
    "UnpackOp",
    "WgmmaOp",
    "WgmmaWaitOp",
    "ZeroOp",
    "bits",
    "length",
    "register_bits",
    "registers",
    "scalar_type",
    "vector_type",
]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
