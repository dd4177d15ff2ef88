"""The meaning of what torch-mlir and IREE have beside linalg, step by step as they define it."""

from __future__ import annotations

import numpy as np

from fragir.dialects.tensors.extensions import (
    FftExtension,
    ScanExtension,
    ScatterExtension,
    SortExtension,
)
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.formats import FLOATS, Array, type_name
from fragir.reference.run import Run


def _along(x: Bounded, dim: int) -> tuple[Array, Array]:
    """Values and bounds, copied, with a dimension in front."""
    return np.moveaxis(x.value, dim, 0).copy(), np.moveaxis(x.bound, dim, 0).copy()


def _back(parts: tuple[Array, Array], dim: int) -> Bounded:
    value, bound = (np.moveaxis(x, 0, dim) for x in parts)
    return Bounded(value, bound)


def sort(run: Run, op: SortExtension) -> None:
    """Neighbours change places as long as the second comes before the first, and not likewise."""
    held = [_along(run[x], op.along) for x in op.outputs]
    size = held[0][0].shape[0]
    for turn in range(size):
        first = slice(turn % 2, size - 1, 2)
        second = slice(turn % 2 + 1, size, 2)
        pairs = [[Bounded(v[at], b[at]) for at in (first, second)] for v, b in held]
        shape = pairs[0][0].value.shape
        given = [x for pair in pairs for x in pair]
        turned = [x for pair in pairs for x in reversed(pair)]
        (ordered,), (swapped,) = (run.region(op.block, x, shape) for x in (given, turned))
        swap = swapped.value.astype(bool) & ~ordered.value.astype(bool)
        for part in (x for pair in held for x in pair):
            low, high = part[first].copy(), part[second].copy()
            part[first], part[second] = np.where(swap, high, low), np.where(swap, low, high)
    for result, parts in zip(op.res, held, strict=True):
        run[result] = _back(parts, op.along)


def scan(run: Run, op: ScanExtension) -> None:
    """Element after element."""
    source, start = run[op.inputs[0]], run[op.outputs[1]]
    values, bounds = _along(source, op.along)
    inclusive = op.inclusive is None or bool(op.inclusive.value.data)
    found, held = np.zeros_like(values), np.zeros_like(bounds)
    before = start
    for at in range(len(values)):
        x = Bounded(values[at], bounds[at])
        if inclusive:
            before = x if at == 0 else run.region(op.block, [before, x], x.value.shape)[0]
        found[at], held[at] = before.value, before.bound
        if not inclusive:
            (before,) = run.region(op.block, [before, x], x.value.shape)
    run[op.res[0]], run[op.res[1]] = _back((found, held), op.along), before


def scatter(run: Run, op: ScatterExtension) -> None:
    """Update after update; one for no row that there is goes nowhere."""
    updates, indices = (run[x] for x in op.inputs)
    whole = run[op.outputs[0]]
    value, bound = whole.value.copy(), whole.bound.copy()
    rows = indices.value.reshape(len(indices.value), -1).astype(np.int64)
    for at, row in enumerate(rows):
        where: list[slice | int] = [slice(None)] * value.ndim
        for dim, number in zip(op.mapped, row, strict=True):
            where[dim] = int(number)
        if any(not 0 <= int(n) < value.shape[d] for d, n in zip(op.mapped, row, strict=True)):
            continue
        place = tuple(where)
        shape = value[place].shape
        given = Bounded(updates.value[at].reshape(shape), updates.bound[at].reshape(shape))
        old = Bounded(value[place].copy(), bound[place].copy())
        (made,) = run.region(op.block, [given, old], shape)
        value[place], bound[place] = made.value, made.bound
    run[op.res[0]] = Bounded(value, bound)


def fft(run: Run, op: FftExtension) -> None:
    """Butterflies, in float64; the bound is that of three operations in the format."""
    stage = run.number(op.inputs[0])
    real, imaginary = (run[x] for x in op.outputs)
    element = FLOATS[type_name(op.res[0].type)]
    size, half = 1 << stage, 1 << (stage - 1)
    if len(op.inputs) != 3 or real.value.shape[-1] % size:
        raise FragirError(f"{op.name}: groups of {size} do not divide the last dimension")
    factor = run[op.inputs[1]].value + 1j * run[op.inputs[2]].value
    groups = (real.value + 1j * imaginary.value).reshape(*real.value.shape[:-1], -1, size)
    low, high = groups[..., :half], groups[..., half:] * factor
    found = np.concatenate([low + high, low - high], -1).reshape(real.value.shape)
    errors = (real.bound + imaginary.bound).reshape(groups.shape)
    spread = np.abs(low) + 2 * np.abs(groups[..., half:]) * np.abs(factor)
    rounded = spread * 2.0 ** (2 - element.precision)
    kept = errors[..., :half] + errors[..., half:] * (np.abs(factor.real) + np.abs(factor.imag))
    bound = np.concatenate([kept + rounded] * 2, -1).reshape(real.value.shape)
    run[op.res[0]] = Bounded(found.real, bound)
    run[op.res[1]] = Bounded(found.imag, bound)
