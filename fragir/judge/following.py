"""Follows the data of a case through its kernels, as elements of two fields (`fragir.algebra`).

Inputs of floats become random elements, the reference's and the kernel's alike; what a kernel has
left in an array goes into the next one. Integers are numbers of this run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from fragir.algebra import Values
from fragir.emulator.checks.algebra.algebra import Followed, follow
from fragir.judge.shipping import Document, PackedCall, PackedCase, random_inputs
from fragir.reference.formats import FLOATS, PER_BYTE, decode

#: Formats of workspaces, by numpy's type.
_FORMATS = {"float16": "f16", "float32": "f32", "float64": "f64"}


class NotFollowedError(Exception):
    """Data goes where it cannot be followed; the message says how."""


class Following:
    """One run of a case's calls: `before` each, `after` each, and then what came of it."""

    def __init__(self, case: PackedCase, seed: Sequence[int], rounds: int) -> None:
        self.case, self.rounds = case, rounds
        self.opaque: Counter[int] = Counter()
        self.compared: Counter[int] = Counter()
        self.rounded: Counter[int] = Counter()
        memory = case.memory()
        elements = [element for _, element in case.inputs]
        numbers = [decode(case.views[view].of(memory), element) for view, element in case.inputs]
        random = random_inputs(numbers, elements, seed, rounds)
        #: By the number of a view, the format of its elements and what they are.
        self.known: dict[int, tuple[str, Values]] = {
            view: (element, values)
            for (view, element), values in zip(case.inputs, random, strict=True)
            if isinstance(values, Values) and values.size
        }
        self._formats = dict((*case.inputs, *case.outputs))
        self._followed: Followed | None = None
        for view, element in (*case.inputs, *case.outputs):
            if element in PER_BYTE and element in FLOATS:
                raise NotFollowedError(f"elements of {element} stand several to a byte")
            if element in FLOATS and not _is_dense(case, view):
                raise NotFollowedError("an array has gaps between its elements")

    def before(self, call: PackedCall) -> Followed:
        """The check for a call."""
        given: dict[int, tuple[str, Values]] = {}
        for view, known in self.known.items():
            position = self._position(call, view)
            if position is not None:
                given[position] = known
        self._followed = follow(given, self.rounds)
        return self._followed

    def after(self, call: PackedCall, later: Sequence[PackedCall]) -> None:
        """Notes what a call has left in the arrays that matter: outputs, and what is used later."""
        assert self._followed is not None
        outputs = {view for view, _ in self.case.outputs}
        used = {view for other in later for view in _views(other.arguments)}
        for view in sorted({v for v in _views(call.arguments) if v in outputs or v in used}):
            position = self._position(call, view)
            form = self._formats.get(view) or _FORMATS.get(self.case.views[view].type.name)
            pure = view in self.known and view not in outputs
            if position is None or pure or form not in FLOATS or not self._size(view):
                if form is None:
                    raise NotFollowedError("a workspace has no floats of numpy's between calls")
                continue
            shape = self.case.views[view].shape
            self.known[view] = form, self._followed.output(position, form, shape)
        for mine, theirs in (
            (self.opaque, self._followed.opaque),
            (self.compared, self._followed.compared),
            (self.rounded, self._followed.rounded),
        ):
            mine.update(theirs)
        self._followed = None

    def output(self, index: int) -> Values | None:
        """The elements of an output after all calls; None of integers, or where there are none."""
        view, element = self.case.outputs[index]
        if element not in FLOATS or not self._size(view):
            return None
        found = self.known.get(view)
        if found is None:
            raise NotFollowedError("an output is no array argument of any call")
        return found[1]

    def _size(self, view: int) -> int:
        return int(np.prod(self.case.views[view].shape))

    def _position(self, call: PackedCall, view: int) -> int | None:
        """At which argument an array stands; None where a call does not have its memory."""
        arrays, views = call.arrays(), self.case.views
        span = self._span(view)
        roots = {views[v].root for v in _views(call.arguments)}
        if views[view].root not in roots:
            return None
        for position, other in enumerate(arrays):
            if other is not None and views[other].root == views[view].root:
                if self._span(other) == span:
                    return position
        raise NotFollowedError("an array is a part of a larger one, or in a struct")

    def _span(self, view: int) -> tuple[int, int]:
        one = self.case.views[view]
        return one.offset, one.offset + self._size(view) * one.type.itemsize


def _is_dense(case: PackedCase, view: int) -> bool:
    one = case.views[view]
    return bool(one.of(case.memory()).flags.c_contiguous)


def _views(arguments: Sequence[Document | None]) -> Iterator[int]:
    """The numbers of all arrays in arguments, those within structs and behind pointers too."""
    for value in arguments:
        if value is not None:
            if "array" in value:
                yield int(value["array"])
            yield from _views([value.get("to"), *(each for _, each in value.get("struct", ()))])
