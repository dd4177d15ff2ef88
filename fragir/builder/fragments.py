"""`fragir.fragment`: the layout of an instruction's operand, said from Python."""

from __future__ import annotations

from fragir import diagnostics
from fragir.builder.checks import pair, word
from fragir.builder.places import error_at, fail, place
from fragir.dialects import frag
from fragir.errors import FragirError, pass_on
from fragir.layout import Layout


def fragment(
    instruction: str,
    operand: str,
    warps: tuple[int, int] = (1, 1),
    *,
    m: str = "",
    n: str = "",
    k: str = "",
) -> frag.MmaFragment:
    """The layout of an instruction's operand, as in `fragment("m16n8k16.f16", "a")`.

    `m`, `n` and `k` count that dimension of the product in another order, by the modes of a layout
    as in `k="2:1 4:8 4:2"`: which k of the tile stands where the instruction has its 0, 1, 2, ...
    """
    over = pair(warps, "warps") or (1, 1)
    orders = tuple(
        (name, _order(name, modes))
        for name, modes in (("k", k), ("m", m), ("n", n))
        if word(modes, f"the order of {name}")
    )
    names = word(instruction, "instruction"), word(operand, "operand")
    made = frag.MmaFragment(*names, over, orders)
    try:
        frag.MmaLayoutAttr(made)
    except Exception as error:
        pass_on(error)
        raise error_at(place(), diagnostics.message_of(error)) from error
    return made


def _order(dimension: str, modes: str) -> Layout:
    try:
        return Layout.parse(f"{dimension} [{modes}] dims ({dimension})")
    except FragirError as error:
        fail(f"{dimension} = {modes!r}: {error.message}", 'write modes as in k="2:1 4:8 4:2"')
