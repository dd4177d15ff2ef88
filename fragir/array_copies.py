"""Arrays that a launch cannot pass as they are: with gaps, or in memory that overlaps others'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from fragir.arguments import ALIGNMENT, ArrayView
from fragir.errors import FragirError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_WORK = 100_000  # steps that it may take to see whether two arrays with gaps have common elements


class Borrowed:
    """The arrays of one launch on the host, by the names of their arguments.

    The launchers pass contiguous memory, and give arrays that overlap one buffer. What has gaps is
    taken along as a copy of all the memory that it spans, together with every array that it has
    elements in common with; afterwards `give_back` copies the elements, and only those, back.

    Raises FragirError for negative strides, and for overlapping arrays whose distance no pointer of
    a kernel can have.
    """

    def __init__(self, views: Mapping[str, ArrayView]) -> None:
        self._lent: dict[str, Array] = {}
        self._inside: list[tuple[Array, Array]] = []
        hosts = {name: view for name, view in views.items() if not view.on_gpu}
        for name, view in hosts.items():
            if min(view.strides, default=0) < 0:
                raise FragirError(f"{name} has a negative stride", hint="pass a copy")
        for group in _sharing({name: cast("Array", view.value) for name, view in hosts.items()}):
            if len(group) > 1 and any(array.flags.writeable for array in group.values()):
                _check_distances(group)
            if not all(hosts[name].is_contiguous for name in group):
                self._copy(group)

    def lend(self, view: ArrayView, name: str) -> object:
        """What to pass for an array."""
        return self._lent.get(name, view.value)

    def give_back(self) -> None:
        """Copies what the kernel wrote into the arrays."""
        for array, inside in self._inside:
            if array.flags.writeable:
                array[...] = inside

    def _copy(self, group: Mapping[str, Array]) -> None:
        """One piece of memory for arrays that share elements, without what lies in their gaps."""
        import numpy as np

        spans = {name: _span(array) for name, array in group.items()}
        first = min(start for start, _ in spans.values())
        memory = np.zeros(max(end for _, end in spans.values()) - first, np.uint8)
        for name, array in group.items():
            start, end = (at - first for at in spans[name])
            span = memory[start:end].view(array.dtype)
            inside = np.lib.stride_tricks.as_strided(span, array.shape, array.strides)
            inside[...] = array
            self._inside.append((array, inside))
            lent = span[:]
            lent.flags.writeable = array.flags.writeable
            self._lent[name] = lent


def _span(array: Array) -> tuple[int, int]:
    """The addresses of an array's first byte and of that behind its last; strides from 0 up."""
    start = int(array.__array_interface__["data"][0])
    if array.size == 0:
        return start, start
    steps = zip(array.shape, array.strides, strict=True)
    return start, start + sum((n - 1) * stride for n, stride in steps) + array.itemsize


def _sharing(arrays: Mapping[str, Array]) -> list[dict[str, Array]]:
    """The arrays in groups that have no element in common with another group."""
    groups: list[dict[str, Array]] = []
    for name, array in arrays.items():
        joined = {name: array}
        apart: list[dict[str, Array]] = []
        for group in groups:
            if any(_share(array, other) for other in group.values()):
                joined = group | joined
            else:
                apart.append(group)
        groups = [*apart, joined]
    return groups


def _share(one: Array, other: Array) -> bool:
    """Whether two arrays have elements in common."""
    import numpy as np

    (start, end), (low, high) = _span(one), _span(other)
    if start >= high or low >= end:
        return False
    try:
        return np.shares_memory(one, other, max_work=_WORK)  # pyright: ignore[reportArgumentType]
    except np.exceptions.TooHardError:
        return True


def _check_distances(group: Mapping[str, Array]) -> None:
    """FragirError where arrays of one buffer cannot all begin at addresses that kernels take."""
    (first, array), *others = group.items()
    at = _span(array)[0]
    for name, other in others:
        distance = _span(other)[0] - at
        if distance % ALIGNMENT:
            raise FragirError(
                f"{name} overlaps {first} and begins {abs(distance)} bytes"
                f" {'behind' if distance > 0 else 'before'} it, no multiple of {ALIGNMENT}",
                hint="pass a copy, or read-only views of what the kernel only reads",
            )
