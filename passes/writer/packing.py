"""Elements of a byte and less, packed in registers of 32 bits."""

from __future__ import annotations

from fragir.passes.writer.text import KernelText


def padded(names: list[str], count: int) -> list[str]:
    """What fills a register of `count` elements; the last of a vector may hold fewer."""
    return [*names, *names[-1:] * (count - len(names))]


def four_bytes(w: KernelText, target: str, words: list[str]) -> None:
    """A register of the lowest bytes of four."""
    low, high = w.registers.fresh(32), w.registers.fresh(32)
    w.emit("prmt.b32", low, words[0], words[1], "0x0040")
    w.emit("prmt.b32", high, words[2], words[3], "0x0040")
    w.emit("prmt.b32", target, low, high, "0x5410")
