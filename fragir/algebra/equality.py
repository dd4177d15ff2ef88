"""Whether two computations are the same function, element by element."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.algebra.values import Values


@dataclass(frozen=True)
class ElementEquality:
    """Of one output: elements that are the same function as the reference's, another one, and those
    of which that is not decided; `where`: the first that is another one."""

    equal: int
    different: int
    undecided: int
    where: tuple[int, ...] | None

    @property
    def word(self) -> str:
        if self.different:
            return "another function"
        return "not decided" if self.undecided else "the same function"

    @property
    def sentence(self) -> str:
        """For a table."""
        size = self.equal + self.different + self.undecided
        if self.different:
            place = ", ".join(map(str, self.where or ()))
            return f"{self.word} than the program's in {self.different} of {size}, first [{place}]"
        if self.undecided:
            return f"{self.word} in {self.undecided} of {size}: bits are used, or no meaning known"
        return f"{self.word} of the inputs (2^-60)"

    def document(self) -> dict[str, Any]:
        where = None if self.where is None else list(self.where)
        return {
            "verdict": self.word,
            "equal": self.equal,
            "different": self.different,
            "undecided": self.undecided,
            "first": where,
        }


def equality(
    got: Values, wanted: Values, lost: npt.NDArray[np.bool_], opaque: bool
) -> ElementEquality:
    """Compares elements; where `opaque`, bits were used for something that has no meaning."""
    differs = (got.p != wanted.p) & ~got.doubt & ~wanted.doubt
    other = np.logical_or.reduce(differs, -1)
    # what was rounded to whole numbers, or never computed, is a constant: its number is compared
    same = np.logical_and.reduce(got.p == wanted.p, -1) | (
        ~other & np.logical_or.reduce((got.p == wanted.p) & ~got.doubt & ~wanted.doubt, -1)
    )
    undecided = np.asarray(lost) | (~same & ~other) | (other & opaque)
    different = other & ~undecided
    where = tuple(int(i) for i in np.argwhere(different)[0]) if different.any() else None
    equal = int((same & ~undecided).sum())
    return ElementEquality(equal, int(different.sum()), int(undecided.sum()), where)
