"""Follows the data of a case through its kernels, as elements of two fields (`fragir.algebra`).

Inputs of floats become random elements, the reference's and the kernel's alike. Integers are
numbers of this run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fragir.algebra import Values
from fragir.emulator import follow
from fragir.errors import FragirError
from fragir.judge.shipping import PackedCase, random_inputs
from fragir.reference.formats import FLOATS, PER_BYTE, Array, decode


class NotFollowedError(Exception):
    """Data goes where it cannot be followed; the message says how."""


class Following:
    """The data of one run of a case, whose arrays lie in `memory`: `check` is for every call."""

    def __init__(
        self, case: PackedCase, memory: list[Array], seed: Sequence[int], rounds: int
    ) -> None:
        self.case, self.memory, self.rounds = case, memory, rounds
        for view, element in (*case.inputs, *case.outputs):
            if element in PER_BYTE and element in FLOATS:
                raise NotFollowedError(f"elements of {element} stand several to a byte")
            if element in FLOATS and not self._array(view).flags.c_contiguous:
                raise NotFollowedError("an array has gaps between its elements")
        elements = [element for _, element in case.inputs]
        arrays = [self._array(view) for view, _ in case.inputs]
        numbers = [decode(a, element) for a, element in zip(arrays, elements, strict=True)]
        random = random_inputs(numbers, elements, seed, rounds)
        known = [
            (array, element, values)
            for array, element, values in zip(arrays, elements, random, strict=True)
            if isinstance(values, Values) and values.size
        ]
        try:
            self.check = follow(known, rounds)
        except FragirError as error:
            raise NotFollowedError(error.sentence) from error
        self.opaque, self.compared = self.check.opaque, self.check.compared
        self.rounded = self.check.rounded

    def _array(self, view: int) -> Array:
        return self.case.views[view].of(self.memory)

    def output(self, index: int) -> Values | None:
        """The elements of an output after all calls; None of integers, or where there are none."""
        view, element = self.case.outputs[index]
        array = self._array(view)
        if element not in FLOATS or not np.prod(array.shape):
            return None
        return self.check.output(array, element)
