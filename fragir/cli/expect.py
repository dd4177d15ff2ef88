"""`fragir run --expect NAME=FILE.npy | NAME=MODULE:FUNCTION`: answers from outside."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fragir.cli.files import import_object
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array
    from fragir.reference.inputs import ProgramArgument

_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*", re.ASCII)


def answers(
    expected: Mapping[str, str],
    slots: Sequence[ProgramArgument],
    written: Sequence[int],
    inputs: Sequence[Any],
) -> dict[int, Array]:
    """What outputs must be, in storage types, by the number of the argument.

    A function is called with what the arguments hold before the run: float64 or int64 arrays of
    values, numbers for scalars. Raises FragirError for a name that is no output's and for what is
    no such array.
    """
    from fragir.reference.inputs import array_from

    outputs = {slots[i].name: i for i in written}
    results: dict[int, Array] = {}
    for name, text in expected.items():
        if name not in outputs:
            raise FragirError(
                f"--expect {name}: the program has no output of this name",
                hint=f"its outputs are {', '.join(outputs)}",
            )
        slot = slots[outputs[name]]
        found = _array(text, slots, inputs)
        held = array_from(_as_floats(found, slot), slot)
        given = inputs[outputs[name]]
        if held.shape != given.shape:
            shapes = ["x".join(map(str, shape)) for shape in (held.shape, given.shape)]
            raise FragirError(f"{text} has the shape {shapes[0]}, but {name} {shapes[1]}")
        results[outputs[name]] = held
    return results


def _array(text: str, slots: Sequence[ProgramArgument], inputs: Sequence[Any]) -> Array:
    from fragir.cli.arguments import read_array

    return _call(text, slots, inputs) if _FUNCTION.fullmatch(text) else read_array(text)


def _as_floats(array: Array, slot: ProgramArgument) -> Array:
    """Integers are values of a float as well, but where they are its bits."""
    import numpy as np

    from fragir.reference.formats import FLOATS, storage

    bits = array.dtype == storage(slot.element)
    if slot.element in FLOATS and array.dtype.kind in "biu" and not bits:
        return array.astype(np.float64)
    return array


def _call(text: str, slots: Sequence[ProgramArgument], inputs: Sequence[Any]) -> Array:
    import numpy as np

    from fragir.reference.formats import decode

    function = import_object(text, "--expect takes NAME=MODULE:FUNCTION")
    values = [
        decode(x, slot.element).copy() if slot.shape is not None else x
        for slot, x in zip(slots, inputs, strict=True)
    ]
    try:
        result = np.asarray(function(*values))
    except (Exception, SystemExit) as error:
        words = " ".join(str(error).split())
        names = ", ".join(slot.name for slot in slots)
        raise FragirError(
            f"{text} raised {type(error).__name__}: {words}",
            hint=f"it is called with the values of {names}; --debug shows the traceback",
        ) from error
    if result.dtype.kind not in "biufV":
        raise FragirError(f"{text} gave {result.dtype}, which is no array of numbers")
    return result
