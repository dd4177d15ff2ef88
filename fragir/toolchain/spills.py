"""Where values are spilled: the line of PTX whose code has most of the loads and stores."""

from __future__ import annotations

from collections import Counter

from fragir.errors import FragirError


def most_spilled(ptx: str, target: str, function: str) -> int | None:
    """The line (1-based) of the PTX with the most accesses to local memory in its machine code.

    None where nvdisasm is missing, or the accesses are of no line. Takes another run of ptxas.
    """
    from fragir.toolchain.ptxas import with_lines
    from fragir.toolchain.sass import disassemble
    from fragir.toolchain.sass_loops import instructions

    try:
        sass = disassemble(with_lines(ptx, target), lines=True)
    except FragirError:
        return None
    lines = Counter(
        one.line
        for one in instructions(sass).get(function, ())
        if one.opcode in ("LDL", "STL") and one.line is not None
    )
    return lines.most_common(1)[0][0] if lines else None
