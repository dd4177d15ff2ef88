"""Memory by tiles of indices, and atomics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.indexed import Indexed
from fragir.errors import FragirError
from fragir.reference import algebra
from fragir.reference.bounded import UNIT, Bounded, bounded
from fragir.reference.formats import (
    FLOATS,
    INTEGERS,
    Array,
    FloatFormat,
    Floats,
    overflow,
    type_name,
)
from fragir.reference.memory import BoundedMemory, Window, unwritten_memory
from fragir.reference.reductions import half_unit, lowest_bits
from fragir.reference.run import Run

# --- gather and scatter ---------------------------------------------------------------------------


class Places(NamedTuple):
    """Where each element of a tile lies in a memory, as numbers of its elements in row-major order;
    and which are accessed at all."""

    flat: Array
    kept: Array


def places(run: Run, op: Indexed) -> Places:
    """The places of an operation's tile.

    FragirError where an index or the mask depends on rounding, or an element lies outside of the
    memory without `masked`.
    """
    memory, shape = run.memory(op.memory), frag.tile_of(op.tiles()[0]).shape
    kept = np.ones(shape, bool)
    if op.mask is not None:
        mask = run[op.mask]
        if mask.bound.any():
            raise FragirError(f"{op.name}: the mask depends on rounding")
        kept = kept & _spread_rows(mask.value, shape)
    tiles = op.index_tiles()
    indices: list[Array] = []
    for dim, index in enumerate(op.all_indices()):
        if dim in tiles:
            given = run[tiles[dim]]
            if (_spread_rows(given.bound, shape) > 0)[kept].any():
                raise FragirError(f"{op.name}: an index depends on rounding")
            indices.append(np.broadcast_to(_spread_rows(given.value, shape), shape))
            continue
        start = np.int64(run.number(index))
        along = dim - memory.value.ndim + len(shape)
        moves = along >= len(shape) - op.behind
        indices.append(start + (np.indices(shape)[along] if moves else np.zeros(shape, np.int64)))
    sizes = memory.value.shape
    inside = np.all([(i >= 0) & (i < n) for i, n in zip(indices, sizes, strict=True)], axis=0)
    if op.masked is None and (kept & ~inside).any():
        first = tuple(np.argwhere(kept & ~inside)[0])
        raise FragirError(
            f"{op.name}: element {_text(first)} of the tile lies at "
            f"{_text(tuple(i[first] for i in indices))}, outside of the memory of "
            f"{'x'.join(map(str, sizes))}",
            hint="write `masked`",
        )
    kept = kept & inside
    clipped = [np.where(kept, i, 0) for i in indices]
    flat = np.ravel_multi_index(clipped, sizes) if kept.any() else np.zeros(shape, np.int64)
    return Places(np.asarray(flat), kept)


def _spread_rows(values: Array, shape: tuple[int, ...]) -> Array:
    """One value for each row along the rows of a tile; what has its shape as it is."""
    values = values.reshape(values.shape + (1,) * (len(shape) - values.ndim))
    return np.broadcast_to(values, shape)


def _text(point: Iterable[Array | np.integer | int]) -> str:
    return "[" + ", ".join(str(int(x)) for x in point) + "]"


def gather(run: Run, op: frag.GatherOp) -> None:
    memory, (flat, kept) = run.memory(op.memory), places(run, op)
    shape = op.tile.type.shape
    value, bound = np.zeros(shape, memory.value.dtype), np.zeros(shape)
    if op.other is not None:
        value[...], bound[...] = run[op.other].value, run[op.other].bound
    value[kept] = memory.value.reshape(-1)[flat[kept]]
    bound[kept] = memory.bound.reshape(-1)[flat[kept]]
    run[op.tile] = Bounded(value, bound)


def scatter(run: Run, op: frag.ScatterOp) -> None:
    flat, kept = places(run, op)
    x = run[op.tile]
    write_one(run.memory(op.memory), flat[kept], Bounded(x.value[kept], x.bound[kept]))


def write_one(memory: BoundedMemory, at: Array, x: Bounded, old: bool = False) -> None:
    """Writes elements to places, of several at one place any; with `old` perhaps none of them."""
    value, bound = memory.value.reshape(-1), memory.bound.reshape(-1)
    if algebra.is_followed():
        value[at], bound[at] = x.value, x.bound
        return
    low, high = np.full(value.shape, np.inf), np.full(value.shape, -np.inf)
    if old:
        low[at], high[at] = value[at] - bound[at], value[at] + bound[at]
    np.minimum.at(low, at, x.value - x.bound)
    np.maximum.at(high, at, x.value + x.bound)
    certain = np.ones(value.shape, bool)
    np.logical_and.at(certain, at, x.bound == 0)
    if old:
        certain[at] &= bound[at] == 0
    alike = certain & ((low == high) | (np.isnan(low) & np.isnan(high) & _all_nan(at, x, value)))
    value[at] = x.value
    found = bounded(value[at], np.maximum(high[at] - value[at], value[at] - low[at]))
    bound[at] = np.where(alike[at], 0.0, found.bound)


def _all_nan(at: Array, x: Bounded, value: Array) -> Array:
    """Where every element that is written is NaN."""
    found = np.ones(value.shape, bool)
    np.logical_and.at(found, at, np.isnan(x.value))
    return found


# --- atomics --------------------------------------------------------------------------------------

_INTEGER: dict[str, np.ufunc] = {
    "add": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def atomic(run: Run, op: frag.AtomicOp) -> None:
    memory, kind, element = run.memory(op.memory), op.kind.data, type_name(op.tile.type)
    flat, kept = places(run, op)
    x = run[op.tile]
    at, values = flat[kept], Bounded(x.value[kept], x.bound[kept])
    if kind in ("exch", "cas"):
        write_one(memory, at, values, old=kind == "cas")
    elif element in INTEGERS:
        change_integers(memory, at, values, kind, element)
    else:
        add_floats(run, memory, at, values, flushes=not frag.is_shared(op.memory.type))
    if op.old is not None:
        # others may have come before
        run[op.old] = unwritten_memory(frag.tile_of(op.old).shape, element).content


def add_tile(run: Run, memory: BoundedMemory, indices: Sequence[int], x: Bounded) -> None:
    """Adds a tile at these indices in any order; what lies outside is dropped."""
    window = Window.of(memory, indices, x.value.shape, True, "add")
    if window.is_empty:
        return
    numbers = np.arange(memory.value.size).reshape(memory.value.shape)
    at = numbers[(*window.leading, *window.inside)].reshape(-1)
    part = Bounded(x.value[window.part].reshape(-1), x.bound[window.part].reshape(-1))
    if memory.element in INTEGERS:
        change_integers(memory, at, part, "add", memory.element)
    else:
        add_floats(run, memory, at, part, flushes=True)


def add_floats(run: Run, memory: BoundedMemory, at: Array, x: Bounded, *, flushes: bool) -> None:
    """Adds in any order; in global memory (`flushes`) sums of f32 have no subnormal numbers."""
    form = FLOATS[memory.element]
    if algebra.is_followed():
        cells = memory.value.reshape(-1), memory.bound.reshape(-1)
        algebra.added_at(cells, at, x, form.name)
        return
    _sums(run, memory).add(at, x, form, flushes and form.name == "f32")


def change_integers(memory: BoundedMemory, at: Array, x: Bounded, kind: str, element: str) -> None:
    """What integers are changed to does not depend on the order."""
    value, bound = memory.value.reshape(-1), memory.bound.reshape(-1)
    form = INTEGERS[element]
    value[at] = form.wrap(value[at])
    new = form.wrap(x.value)
    change = _INTEGER[kind]
    low, high = (value.astype(np.float64) + sign * bound for sign in (-1, 1))
    change.at(value, at, new)
    value[at] = form.wrap(value[at])
    if kind in ("max", "min"):  # of the ends of intervals
        change.at(low, at, new - x.bound)
        change.at(high, at, new + x.bound)
        bound[at] = np.maximum(high[at] - value[at], value[at] - low[at])
        return
    uncertain = bound > 0
    np.logical_or.at(uncertain, at, x.bound > 0)
    bound[at] = np.where(uncertain[at], np.inf, 0.0)


@dataclass
class Sums:
    """What floats in memory are sums of, so far: blocks may have added them in another order.

    A partial sum in another order is of other terms than one here, and larger; so each rounding
    counts with the magnitude of all terms.
    """

    value: Floats
    bound: Floats
    """What lay in memory after the last addition; where it is something else, sums begin anew."""
    terms: Array
    """How many were added."""
    magnitude: Floats
    """How large all together may be."""
    given: Floats
    """The sum of the terms' bounds."""
    step: Floats
    """What divides all terms, a power of two."""
    cells: tuple[Array, Floats]
    """The memory itself."""

    def add(self, at: Array, x: Bounded, form: FloatFormat, flushes: bool) -> None:
        """Adds elements to the sums at these places."""
        value, bound = self.cells
        fresh = (self.value != value) | (self.bound != bound)
        self.terms[fresh] = 0
        self.magnitude[fresh] = np.abs(value[fresh]) + bound[fresh]
        self.given[fresh] = bound[fresh]
        self.step[fresh] = lowest_bits(value[fresh])
        np.add.at(self.terms, at, 1)
        np.add.at(self.magnitude, at, np.abs(x.value) + x.bound)
        np.add.at(self.given, at, x.bound)
        np.minimum.at(self.step, at, lowest_bits(x.value))
        np.add.at(value, at, x.value)
        n, unit = self.terms[at], half_unit(form)
        growth = np.expm1(n * np.log1p(unit)) + n * UNIT
        error = self.given[at] + growth * self.magnitude[at] + n * form.smallest
        if flushes:  # subnormal operands and results become zero (section 9.7.13.12)
            error = error + (2 * n + 1) * 2.0**form.lowest
        few = self.magnitude[at] <= self.step[at] / unit / 2
        least = 2.0**form.lowest if flushes else 0.0
        exact = few & (self.given[at] == 0) & (self.step[at] >= least)
        error = np.where(exact, 0.0, error)
        error = np.where(self.magnitude[at] * (1 + n * unit) >= overflow(form), np.inf, error)
        bound[at] = bounded(value[at], error).bound
        value[at] = np.where(np.isfinite(value[at]), value[at], 0.0)
        self.value, self.bound = value.copy(), bound.copy()


def _sums(run: Run, memory: BoundedMemory) -> Sums:
    """The sums of a memory; kept as long as the run."""
    place = memory.value.__array_interface__["data"][0], memory.value.size
    known: dict[object, Sums] = run.kept.setdefault("atomics", {})
    found = known.get(place)
    if found is None:
        value, bound = memory.value.reshape(-1), memory.bound.reshape(-1)
        none = np.full(value.shape, np.nan)  # equal to nothing
        zeros = np.zeros(value.shape)
        found = known[place] = Sums(
            none, none, zeros.astype(np.int64), zeros, zeros.copy(), zeros.copy(), (value, bound)
        )
    return found
