"""wgmma's operands in shared memory: descriptors for the swizzled matrices of `SharedMatrix`.

PTX ISA 9.2, sections 9.7.15.5.1 (matrices in shared memory) and 9.7.15.5.1.2 (descriptor).
K-major (K runs along a row): a row of a panel is one row of M or N, 8 rows lie 8 x W bytes apart,
and a step of K advances within the row. MN-major: a row of a panel is one k; the leading offset
leads to the next panel of M or N, the stride offset to the next 8 k.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.memory import LaneMemory

SWIZZLE_CODE = {128: 1, 64: 2, 32: 3}  # descriptor bits 63:62


class WgmmaOperand:
    """One operand of wgmma in shared memory, as seen by a warpgroup.

    `k_major`: rows of the matrix run along M or N, so that K is contiguous. `start` is the first
    row of M or N of this warpgroup. One instruction reads `step` elements along K.
    """

    def __init__(
        self, ar: Arithmetic, memory: LaneMemory, k_major: bool, name: str, start: Value, step: int
    ):
        matrix = memory.matrix
        assert matrix is not None
        if matrix.swizzle == 0:
            raise FragirError(
                f"operand {name} of wgmma lies in shared memory without a swizzle",
                hint="write #frag.shared<swizzle = 128>, or 64 or 32 for narrow rows",
            )
        if not k_major and matrix.bits != 16:
            raise FragirError(
                f"operand {name} of wgmma is {matrix.bits}-bit and not K-major",
                hint="only f16 and bf16 can be; store it with K along the rows",
            )
        if k_major and step * matrix.bits // 8 > matrix.width:
            raise FragirError(
                f"operand {name} of wgmma has {step * matrix.bits // 8} bytes of K, more than the "
                f"swizzle of {matrix.width} bytes",
                hint="write #frag.shared<swizzle = 64> or 128 for it",
            )
        self.ar, self.memory, self.matrix, self.name = ar, memory, matrix, name
        self.k_major = k_major
        self.major = "k" if k_major else "mn"
        leading, stride = (
            (16, 8 * matrix.width) if k_major else (matrix.panel_bytes, 8 * matrix.width)
        )
        self.fields = (
            (leading & 0x3FFFF) >> 4 << 16
            | (stride & 0x3FFFF) >> 4 << 32
            | SWIZZLE_CODE[matrix.swizzle] << 62
        )
        pointer = memory.pointer
        for term in (self._start(start),):
            pointer, constant = ar.offset(pointer, term)
            if constant:
                pointer, _ = ar.offset(pointer, ar.constant(constant))
        fields = self.fields
        self.base = ar.pure(
            ("descriptor", pointer, fields),
            (pointer,),
            lambda: ptx.DescriptorOp(pointer, fields),
            f"desc_{name}",
        )

    def _start(self, start: Value) -> Value:
        """The bytes at which row or column `start` of M or N begins."""
        matrix = self.matrix
        if isinstance(start, int) and start == 0:
            return 0
        if self.k_major:
            return self.ar.mul(start, matrix.width)
        if isinstance(start, int):
            return self._mn_offset(start)
        if self.ar.divisor(start) % matrix.panel_cols:
            raise FragirError(
                f"a warpgroup's part of operand {self.name} begins inside a panel of "
                f"{matrix.panel_cols} elements",
                hint="take fewer warpgroups along N, or a narrower swizzle",
            )
        return self.ar.mul(self.ar.div(start, matrix.panel_cols), matrix.panel_bytes)

    def _mn_offset(self, mn: int) -> int:
        panel, inside = divmod(mn, self.matrix.panel_cols)
        if inside:
            raise FragirError(
                f"operand {self.name} of wgmma begins at column {mn}, inside a panel of "
                f"{self.matrix.panel_cols} elements",
                hint="choose N as a multiple of the swizzle's width",
            )
        return panel * self.matrix.panel_bytes

    def descriptor(self, mn: int, k: int) -> SSAValue:
        """The descriptor of the part that begins at (mn, k) of this warpgroup's operand.

        mn and k are multiples of 8, so that the part begins where the swizzle pattern does.
        """
        matrix = self.matrix
        if self.k_major:
            panel, inside = divmod(k, matrix.panel_cols)
            offset = panel * matrix.panel_bytes + mn * matrix.width + inside * matrix.bits // 8
        else:
            offset = self._mn_offset(mn) + k * matrix.width
        if offset == 0:
            return self.base
        step = self.ar.pure(
            ("constant64", offset >> 4),
            (),
            lambda: arith.ConstantOp(IntegerAttr(offset >> 4, i64)),
        )
        base = self.base
        return self.ar.pure(
            ("descriptor+", base, step), (base, step), lambda: arith.AddiOp(base, step)
        )
