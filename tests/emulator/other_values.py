"""What a launch executes, to compare it with the same launch on other contents of its arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from fragir.emulator import Hooks, Pointer, Struct, TensorMap, run
from fragir.emulator.machine.lanes import Mask, Select, number_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import Access
    from fragir.emulator.machine.lanes import Step
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

#: By place in the text: lanes that came there, and the sum of the addresses that they accessed.
Counts = Counter[tuple[int, str]]


class _Executed(Hooks):
    def __init__(self, machine: Machine, program: Program, counts: Counts) -> None:
        super().__init__(machine, program)
        self.counts = counts

    def _count(self, ins: Instruction, sel: Select, mask: Mask) -> None:
        lanes = 32 * number_of(sel) if mask is None else int(mask.sum())
        self.counts[ins.at, "lanes"] += lanes

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        row = self.program.opcode(group[0])
        if group[0].guard is not None and not row.access and not row.asynchronous:
            return step  # a guard that chooses values may fail; `wrap_guard` counts who came

        def counted(sel: Select, mask: Mask) -> None:
            for ins in group:
                self._count(ins, sel, mask)
            step(sel, mask)

        return counted

    def wrap_guard(self, d: Decoder, instruction: Instruction, step: Step) -> Step:
        def counted(sel: Select, mask: Mask) -> None:
            self._count(instruction, sel, mask)
            step(sel, mask)

        return counted

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        def counted(sel: Select, mask: Mask) -> int | None:
            self._count(instruction, sel, mask)
            return terminator(sel, mask)

        return counted

    def on_access(self, access: Access) -> None:
        total = int(access.address.astype(np.uint64).sum(dtype=np.uint64))
        self.counts[access.instruction.at, "addresses"] += total


def executed(ptx: str, entry: str | None, arguments: Sequence[object], **launch: Any) -> Counts:
    """What a launch executes. It runs in one process."""
    counts: Counts = Counter()
    run(
        ptx,
        entry,
        arguments=arguments,
        jobs=1,
        checks=[lambda machine, program: _Executed(machine, program, counts)],
        **launch,
    )
    return counts


def other_values(
    arguments: Sequence[object], rng: np.random.Generator, structure: Sequence[int] = ()
) -> list[object]:
    """The arguments with other arrays: of random bits, or their own in another order.

    What was one array stays one; what a `Pointer` points to stays as it is, but for arrays.
    """
    made: dict[int, npt.NDArray[Any]] = {}

    def other(value: object) -> Any:
        if isinstance(value, np.ndarray) and cast("npt.NDArray[Any]", value).ndim:
            array = cast("npt.NDArray[Any]", value)
            if id(array) not in made:
                made[id(array)] = _filled(array, rng)
            return made[id(array)]
        if isinstance(value, TensorMap):
            return replace(value, array=cast("npt.NDArray[Any]", other(value.array)))
        if isinstance(value, Struct):
            return Struct({at: other(field) for at, field in value.fields.items()}, value.size)
        if isinstance(value, Pointer):
            return Pointer(other(value.to))
        return cast("Any", value)

    return [v if i in structure else other(v) for i, v in enumerate(arguments)]


def _filled(array: npt.NDArray[Any], rng: np.random.Generator) -> npt.NDArray[Any]:
    if rng.integers(2):
        return rng.permutation(array.reshape(-1)).reshape(array.shape)
    bits = rng.integers(0, 256, array.nbytes, np.uint8)
    return bits.view(array.dtype).reshape(array.shape)
