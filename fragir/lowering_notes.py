"""What the compiler says about what it made: instructions that are not native, and spills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from fragir.isa import Instruction
    from fragir.toolchain.ptxas import EntryInfo

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


def instruction_notes(mnemonics: Iterable[str], target: str) -> list[str]:
    """A sentence for each instruction that the target does not have natively, or not for long.

    Read off the machine code of ptxas 13.2, as the table of `fragir.isa` has it, and its advice.
    """
    from fragir import isa

    notes: list[str] = []
    for mnemonic in mnemonics:
        instruction = isa.lookup(mnemonic)
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


def spill_notes(entries: Mapping[str, EntryInfo]) -> list[str]:
    """A sentence for each kernel whose values ptxas could not keep in registers."""
    return [
        f"{name} spills: its values do not fit into {info.registers} registers, and every thread "
        f"stores {info.spill_stores} and loads {info.spill_loads} bytes of them in local memory "
        "(more `warps` or a smaller `tile` need fewer)"
        for name, info in entries.items()
        if info.spill_stores or info.spill_loads
    ]


def unordered_note(instruction: Instruction) -> str | None:
    """What ptxas advises on sparse products whose metadata may stand in any order; else None."""
    if instruction.family != "mma.sp":
        return None
    return (
        f"{instruction.mnemonic}: ptxas expects substantially reduced performance of mma.sp on "
        "future machines; where the metadata is in order, mma.sp::ordered_metadata is the same"
    )
