"""A layout printed in the notation of the PTX ISA, which `fragir.layout.formula` reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fragir.layout.modes import WARP, Axis, Condition, LayoutError, Point

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
        if start or not terms:
            terms.append(str(start))
        lines.append(f"{name} = {' + '.join(terms)}")
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


def _terms(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    place = 1
    for mode in axis.modes:
        digit, loose = _quotient(variable, place)
        if place * mode.size < axis.size:
            digit = f"({digit}) % {mode.size}" if loose else f"{digit} % {mode.size}"
            loose = False
        stride = mode.stride[dim]
        if stride == 1:
            yield f"({digit})" if loose else digit
        elif stride:
            yield f"({digit}) * {stride}" if loose else f"{digit} * {stride}"
        place *= mode.size


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
