"""A layout printed in the notation of the PTX ISA, which `fragir.layout.formula` reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fragir.layout.modes import WARP, Axis, Condition, LayoutError, Mode, Point

_THREAD_NAMES = tuple(f"thread{'_' * n}" for n in range(8))
"""What the thread of a warpgroup is called; the first that means nothing else."""

# The spellings of the axes in formulas; the first of each axis is printed.
VARIABLES = {
    "%laneid": "lane",
    "laneid": "lane",
    "%tid.x": "lane",
    "%tid": "lane",
    "%warpid": "warp",
    "warpid": "warp",
    "i": "element",
}


def formula_of(
    axes: Sequence[Axis], dims: tuple[str, ...], origin: Point, where: Sequence[Condition]
) -> str:
    """One closed formula for each dimension of a layout; `axes` as in its simplified form.

    Raises LayoutError for an axis whose name means another axis in formulas (`i`).
    """
    variables = {axis.name: _variable(axis.name) for axis in axes}
    lines: list[str] = []
    declared = dict(variables)
    lanes = next((axis.size for axis in axes if axis.name == "lane"), 0)
    if lanes > WARP:  # a warpgroup's threads: %laneid ends at 31
        taken = {*variables.values(), *dims}
        thread = next(name for name in _THREAD_NAMES if name not in taken)
        lines.append(f"{thread} = %tid.x % {lanes}")
        variables["lane"], declared["lane"] = thread, "%tid.x"
    for dim, (name, start) in enumerate(zip(dims, origin, strict=True)):
        terms = [term for axis in axes for term in _terms(axis, variables[axis.name], dim)]
        flips = [term for axis in axes for term in _flips(axis, variables[axis.name], dim)]
        if start or not terms + flips:
            terms.append(str(start))
        total = " + ".join(terms)
        flipped = [f"({total})" if flips and len(terms) > 1 else total] if terms else []
        lines.append(f"{name} = {' ^ '.join([*flipped, *flips])}")
    ranges = [f"{declared[axis.name]} = {_set(axis.size)}" for axis in axes]
    if ranges and lines:
        lines[-1] += f" for {', '.join(ranges)}"
    if where:
        conditions = [_condition_text(c, variables[c.axis]) for c in where]
        lines.append(f"held where {' && '.join(conditions)}")
    return "\n".join(lines)


def _variable(axis: str) -> str:
    spelt = next((name for name, meant in VARIABLES.items() if meant == axis), axis)
    if spelt == axis and axis in VARIABLES:
        raise LayoutError(f"In a formula {axis} means {VARIABLES[axis]}; rename the axis {axis}.")
    return spelt


def _digits(axis: Axis, variable: str) -> Iterator[tuple[Mode, str, bool]]:
    """The modes, each with its digit and whether that must be bracketed in a product or sum."""
    place = 1
    for mode in axis.modes:
        digit, loose = _quotient(variable, place)
        if place * mode.size < axis.size:
            digit = f"({digit}) % {mode.size}" if loose else f"{digit} % {mode.size}"
            loose = False
        yield mode, digit, loose
        place *= mode.size


def _terms(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    """What is added."""
    for mode, digit, loose in _digits(axis, variable):
        if not mode.xor and mode.stride[dim]:
            yield _times(digit, loose, mode.stride[dim])


def _flips(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    """What is exclusive-ored: the digit, moved to every bit that its column has."""
    for mode, digit, loose in _digits(axis, variable):
        column = mode.step[dim] if mode.xor else 0
        for bit in range(column.bit_length()):
            if column >> bit & 1:
                yield f"({_times(digit, loose, 1 << bit)})"


def _times(digit: str, loose: bool, factor: int) -> str:
    whole = f"({digit})" if loose else digit
    return whole if factor == 1 else f"{whole} * {factor}"


def _quotient(variable: str, place: int) -> tuple[str, bool]:
    """The variable divided by a place, and whether it must be bracketed in a product or sum."""
    if place == 1:
        return variable, False
    if place & (place - 1) == 0:
        return f"{variable} >> {place.bit_length() - 1}", True
    return f"{variable} / {place}", False


def _condition_text(condition: Condition, variable: str) -> str:
    digit, loose = _quotient(variable, condition.divisor)
    return f"{f'({digit})' if loose else digit} % {condition.modulus} == {condition.value}"


def _set(size: int) -> str:
    return "{0}" if size == 1 else f"{{0,..,{size - 1}}}"
