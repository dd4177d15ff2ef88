"""What the compiler says of what it made: instructions not native, schedules that ptxas spoilt."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from fragir.dialects.frag import GridAttr
    from fragir.isa import Instruction
    from fragir.passes.writer.text import LineOrigin
    from fragir.toolchain.ptxas import Assembled, EntryInfo


_PRODUCTS = ("ptx.mma", "ptx.mma_sparse")
_WHAT = {
    "emulated": "ptxas makes a routine of other instructions of it",
    "split": "ptxas makes several smaller tensor-core instructions of it",
}


def instructions_of(module: ModuleOp) -> list[str]:
    """The tensor-core instructions of a module at the lane level, each once, in order."""
    from xdsl.dialects.builtin import StringAttr

    found = [op.properties["instruction"] for op in module.walk() if op.name in _PRODUCTS]
    return list(dict.fromkeys(text.data for text in found if isinstance(text, StringAttr)))


def remarks_of(module: ModuleOp) -> list[str]:
    """What the lowering has to say of the kernels of a module at the lane level."""
    said = [op.attributes["ptx.remarks"] for op in module.ops if "ptx.remarks" in op.attributes]
    if not said:
        return []
    from fragir.dialects.frag import sizes_of as texts_of

    return [words for one in said for words in texts_of(one)]


def instruction_notes(mnemonics: Iterable[str], target: str) -> list[str]:
    """A sentence for each instruction that the target does not have natively, or not for long.

    Read off the machine code of ptxas 13.5, as the table of `fragir.isa` has it, and its advice.
    """
    from fragir import isa

    notes: list[str] = []
    found = [isa.lookup(mnemonic) for mnemonic in mnemonics]
    if any(map(_has_wgmma, found)) and (better := _target_with_wgmma(target)) is not None:
        notes.append(f"products go to mma.sync on {target}; {better} has wgmma (--target {better})")
    for instruction in found:
        lowering = instruction.lowering.get(target, "native")
        advice = unordered_note(instruction)
        if advice is not None:
            notes.append(advice)
        if lowering == "native":
            continue
        native = [t for t, how in instruction.lowering.items() if how == "native"]
        where = f"native on {', '.join(native)}" if native else "native nowhere"
        notes.append(
            f"{instruction.mnemonic} is {lowering} on {target}: {_WHAT[lowering]} ({where})"
        )
    return notes


def lone_block(grid: GridAttr, sizes: dict[str, int]) -> list[str]:
    """What is to be said of a launch of one block where the program asks for more."""
    if grid.asks_for_residents:
        return []
    wanted = grid.evaluate(sizes)
    words = " x ".join(map(str, wanted))
    said = f"one block was launched, the program asks for {words}"
    return [] if wanted == (1, 1, 1) else [said]


_WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"


def _has_wgmma(instruction: Instruction) -> bool:
    """Whether it is a product of elements that wgmma multiplies too."""
    from fragir.isa.products import wgmma_k

    if instruction.family != "mma" or "xor" in instruction.form.flags:
        return False
    return bool(wgmma_k(instruction.operand("a").element))


def _target_with_wgmma(target: str) -> str | None:
    """The target of exactly this machine where that alone has wgmma: sm_90a of sm_90."""
    from fragir import isa
    from fragir.isa.targets import with_features

    machine = with_features(target)
    targets = isa.lookup(_WGMMA).targets
    return machine if machine in targets and target not in targets else None


def spill_notes(entries: Mapping[str, EntryInfo]) -> list[str]:
    """A sentence for each kernel whose values ptxas could not keep in registers."""
    from fragir.toolchain.verdicts import verdicts

    return [str(verdict) for verdict in verdicts((), entries)]


def schedule_notes(
    assembled: Assembled, ptx: str, target: str, origins: Sequence[LineOrigin]
) -> list[str]:
    """What ptxas did to the schedule: a sentence each, with its place in the program.

    Where values were spilled, the place is the operation whose code has most of them.
    """
    if not assembled.verdicts:
        return []
    from fragir.toolchain.sass_loops import most_spilled

    notes: list[str] = []
    for verdict in assembled.verdicts:
        line = verdict.line
        if verdict.kind == "spill" and verdict.function is not None:
            line = most_spilled(ptx, target, verdict.function)
        origin = None if line is None else origin_of(line, origins)
        if origin is not None and verdict.kind == "spill":
            notes.append(f"{verdict}; most of it at {origin} (PTX {line})")
        else:
            where = f"{origin} (PTX {line}): " if origin else f"PTX line {line}: " if line else ""
            notes.append(f"{where}{verdict}")
    return notes


def origin_of(ptx_line: int, origins: Sequence[LineOrigin]) -> LineOrigin | None:
    """The operation that a line of PTX (1-based) comes from; None above the first."""
    index = bisect_right(origins, ptx_line, key=lambda origin: origin.ptx_line)
    return origins[index - 1] if index else None


def unordered_note(instruction: Instruction) -> str | None:
    """What ptxas advises on sparse products whose metadata may stand in any order; else None."""
    if instruction.family != "mma.sp":
        return None
    return (
        f"{instruction.mnemonic}: ptxas expects substantially reduced performance of mma.sp on "
        "future machines; where the metadata is in order, mma.sp::ordered_metadata is the same"
    )
