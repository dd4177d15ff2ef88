"""Operands of wgmma and tcgen05.mma in shared memory: the descriptor that says how they lie.

PTX ISA 9.2, sections 9.7.15.5.1 (matrices in shared memory) and 9.7.15.5.1.2 (descriptor). What a
descriptor can say are the canonical layouts; which of them a memref has, its layout's quotient by
the atoms of the ISA tells (`fragir.isa.atoms`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.isa.atoms import Repetition, repetition
from fragir.isa.descriptors import WGMMA, describe
from fragir.isa.versions import requirement
from fragir.passes.lowering.arithmetic import INDEX, Arithmetic, Value
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import LaneMemory, MemoryPlace, address
from fragir.passes.lowering.packed import in_units

if TYPE_CHECKING:
    from fragir.isa.canonical import Major


class DescribedOperand:
    """One operand of wgmma, as seen by a warpgroup, or of tcgen05.mma in shared memory.

    `major` says along which dimension elements are contiguous; K-major, the rows of the memref run
    along M or N. `start` is the first of M or N of this warpgroup. One instruction reads `extent`
    of M or N and `step` of K. With `target` it is an operand of tcgen05.mma there, whose upper word
    is the same for all parts: only the lower one, with the address, is computed.
    """

    def __init__(
        self,
        ar: Arithmetic,
        memory: LaneMemory,
        major: Major,
        name: str,
        start: Value,
        extent: int,
        step: int,
        target: str = "",
    ):
        self._per = 1
        self._of = f"of {'tcgen05.mma' if target else 'wgmma'}"
        self._across = (8, 16) if target else (16,)
        if memory.bits < 8:
            self._per = 8 // memory.bits
            memory, step = in_units(ar, memory, len(memory.shape) - 1), step // self._per
        self.ar, self.memory, self.major, self.name = ar, memory, major, name
        self._form = form = self._repetition(step)
        try:
            canonical = form.canonical(extent, step)
        except FragirError as error:
            raise FragirError(
                f"operand {name} {self._of} lies as {memory.layout}: {error.message}",
                hint=error.hint,
            ) from error
        fields = describe(canonical, 0, target or requirement(WGMMA).lowest_target).word
        number, step = memory.slot
        turns = not isinstance(number, int) and step % 16 == 0
        if turns:  # slots lie behind each other, and so do their descriptors
            self.memory = memory._replace(slot=(0, 0))
        pointer = self._start(start)
        self._upper = fields >> 32 if target else None
        self._base = self._first(pointer, fields)
        if turns and not isinstance(number, int):
            self._base = self._of_slot(number, step)

    def _first(self, pointer: SSAValue, fields: int) -> SSAValue:
        """The descriptor, or its lower word, of what begins at the pointer."""
        ar, name = self.ar, f"desc_{self.name}"
        key, operands = ("descriptor", pointer, fields), (pointer,)
        if self._upper is None:
            return ar.pure(key, operands, lambda: ptx.DescriptorOp(pointer, fields), name)
        text = "bfe.u32 $0, $1, 4, 14"
        name = f"start_{self.name}"
        start = ar.pure(key, operands, lambda: ptx.InstructionOp(text, operands, (INDEX,)), name)
        return ar.value(ar.add(start, fields & 0xFFFFFFFF))

    def _of_slot(self, number: SSAValue, step: int) -> SSAValue:
        """The same of a slot: its address, in units of 16 bytes, is in the lowest bits."""
        ar, base = self.ar, self._base
        if self._upper is not None:
            return ar.value(ar.add(base, ar.mul(number, step >> 4)))
        text = f"mad.wide.u32 $0, $1, {step >> 4}, $2"
        key = ("descriptor of a slot", base, number, step)
        operands = number, base
        return ar.pure(
            key, operands, lambda: ptx.InstructionOp(text, operands, (i64,)), f"desc_{self.name}"
        )

    def _repetition(self, step: int) -> Repetition:
        """How the memref repeats an atom; FragirError where it does not, or its K is too narrow."""
        memory, name = self.memory, self.name
        assert memory.layout is not None
        form = repetition(memory.layout, memory.bits, self.major)
        if form is None and not memory.layout.exclusive:
            raise FragirError(
                f"operand {name} {self._of} lies in shared memory without a swizzle",
                hint="write #frag.shared<swizzle = 128>, or 64 or 32 for narrow rows",
            )
        if form is None:
            raise FragirError(
                f"operand {name} {self._of} lies as {memory.layout}, which no descriptor says",
                hint="`fragir layout MNEMONIC b` shows the layouts that one can say",
            )
        if self.major == "mn" and memory.bits not in self._across:
            raise FragirError(
                f"operand {name} {self._of} is {memory.bits}-bit and not K-major",
                hint="only f16 and bf16 can be; store it with K along the rows"
                if self._across == (16,)
                else "elements of 8 and 16 bits can be; store it with K along the rows",
            )
        if self.major == "k" and form.swizzle and step * memory.size > form.swizzle:
            raise FragirError(
                f"operand {name} {self._of} has {step * memory.size} bytes of K, more than the "
                f"swizzle of {form.swizzle} bytes",
                hint="write #frag.shared<swizzle = 64> or 128 for it",
            )
        return form

    def _start(self, start: Value) -> SSAValue:
        """Where the warpgroup's part begins."""
        width = self._form.atom[0]
        if self.ar.divisor(start) % width:
            if not isinstance(start, int):
                raise FragirError(
                    f"a warpgroup's part of operand {self.name} begins inside a panel of "
                    f"{width} elements",
                    hint="take fewer warpgroups along N, or a narrower swizzle",
                )
            self._refuse_inside(start)
        at = (start, 0) if self.major == "k" else (0, start)
        place = MemoryPlace((NOWHERE, NOWHERE), at)
        pointer, constant = address(self.ar, self.memory, place, (0, 0))
        if constant:
            pointer, _ = self.ar.offset(pointer, self.ar.constant(constant))
        return pointer

    def _refuse_inside(self, mn: int) -> None:
        raise FragirError(
            f"operand {self.name} {self._of} begins at column {mn}, inside a panel of "
            f"{self._form.atom[0]} elements",
            hint="choose N as a multiple of the swizzle's width",
        )

    def descriptor(self, mn: int, k: int) -> SSAValue:
        """The descriptor of the part that begins at (mn, k) of this warpgroup's operand.

        mn is a multiple of 8 and k of the instruction's, so that the part begins where a row of
        the swizzle pattern does.
        """
        if mn % self._form.atom[0]:
            self._refuse_inside(mn)
        layout = self.memory.layout
        assert layout is not None
        first, second = layout.names
        row, col = (mn, k // self._per) if self.major == "k" else (k, mn)
        point = layout(**{first: row, second: col})
        assert point is not None
        offset = (point[0] - layout.origin[0]) * self.memory.size
        if self._upper is not None:
            return self._whole(self.ar.value(self.ar.add(self._base, offset >> 4)))
        if offset == 0:
            return self._base
        step = self.ar.literal(IntegerAttr(offset >> 4, i64))
        base = self._base
        return self.ar.pure(
            ("descriptor+", base, step), (base, step), lambda: arith.AddiOp(base, step)
        )

    def _whole(self, lower: SSAValue) -> SSAValue:
        """The descriptor with this lower word."""
        text = f"mov.b64 $0, {{$1, {self._upper}}}"
        key = ("descriptor of words", lower, self._upper)
        return self.ar.pure(
            key, (lower,), lambda: ptx.InstructionOp(text, (lower,), (i64,)), f"desc_{self.name}"
        )
