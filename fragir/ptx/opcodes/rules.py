"""What must hold between the words of an opcode beside the slots that they stand in."""

from __future__ import annotations

from fragir.ptx.opcodes.row import Rule
from fragir.ptx.opcodes.syntax import SETS


def needs(words: str, others: str) -> Rule:
    """Any of `words` is there only with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: frozenset[str]) -> str | None:
        found = sorted(first & opcode)
        if found and not second & opcode:
            return f".{found[0]} needs .{', .'.join(sorted(second))}"
        return None

    return rule


def apart(words: str, others: str) -> Rule:
    """None of `words` goes together with one of `others`."""
    first, second = frozenset(words.split()), frozenset(others.split())

    def rule(opcode: frozenset[str]) -> str | None:
        a, b = sorted(first & opcode), sorted(second & opcode)
        return f".{a[0]} and .{b[0]} exclude each other" if a and b else None

    return rule


def width(opcode: frozenset[str]) -> str | None:
    """Vectors have at most 16 bytes, in global memory 32; hints for L2 lines need those."""
    count = next((int(w[1:]) for w in sorted(opcode) if w in ("v2", "v4", "v8")), 1)
    kind = next((w for w in sorted(opcode) if w in _VALUES), "b8")
    bits = int(kind[1:]) * count
    wide = (count, kind[1:]) in ((8, "32"), (4, "64"))
    if bits > 128 and not wide:
        return f".v{count} of .{kind} is too wide"
    if wide and opcode & frozenset("local shared shared::cta shared::cluster const".split()):
        return "256 bits at once are for .global"
    if not wide and opcode & frozenset(SETS["EVICT2"].split("|")):
        return "eviction priorities of L2 need .v8.b32 or .v4.b64"
    return None


_VALUES = frozenset(SETS["VALUE"].split("|"))
SCOPE = SETS["SCOPE"].replace("|", " ")
L1 = SETS["EVICT1"].replace("|", " ")
HINT = SETS["HINT"]
TX = SETS["TX"]
